/*
 * Whose turn it is: the lock of a volume, which is the name of a resize in the volume's
 * annotations.
 *
 * It is written over an empty one only, and every write of it names the version of the volume that
 * was read. A lock whose holder is no more is nobody's, and is taken off by who comes next.
 */
#include "controllers/volume/resize.h"

bool resizing_holds_lock(const struct resizing *g)
{
    return g->w.volume && str_eq(volume_annotation(g->w.volume, g->w.c->engine->resize->lock),
                                 kube_name(g->resize));
}

/*
 * The oldest resize of the volume that waits, other than ours, and came before; NULL. To be freed.
 */
static char *who_is_before(struct resizing *g)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", g->w.ns, g->w.name);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    const char *ours = volume_text(g->resize, "metadata", "creationTimestamp");
    kube_informer_find(g->w.c->resizes, "volume", key, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *it = kube_object_json(found.p[i]);
        int order = strcmp(volume_text(it, "metadata", "creationTimestamp"), ours);
        if (!order)
            order = strcmp(kube_name(it), kube_name(g->resize));
        const struct jiva_resize other = jiva_resize_of(it, NULL);
        if (order < 0 && !jiva_resize_is_over(&other) && !kube_deleting(it))
            return mem_strdup(kube_name(it));
    }
    return NULL;
}

/* Takes the lock off the volume, and with it the order of whoever had it. */
static int free_lock(struct resizing *g, const char *what, struct err *e)
{
    const struct volume_resize_names *names = g->w.c->engine->resize;
    json_auto_t *patch = names->order(NULL, NULL);
    json_auto_t *off = json_pack("{s:{s:{s:n}}}", "metadata", "annotations", names->lock);
    json_object_update_recursive(patch, off);
    return volume_patch(&g->w, patch, what, e);
}

/* A lock whose holder is no more, or has ended, is taken off; 1 when it was. */
static int break_lock(struct resizing *g, const char *holder, struct err *e)
{
    struct err why = {0};
    json_auto_t *other = kube_get(g->w.c->client, &g->w.c->resizes_r, g->w.ns, holder, &why);
    const char *about = other ? kube_label(other, g->w.c->engine->resize->about) : NULL;
    if (!other && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    if (other && about && str_eq(about, g->w.name))
        return 0; /* it lives, or it will take the lock off itself */
    return free_lock(g, "break lock", e) < 0 ? -1 : 1;
}

int resizing_lock(struct resizing *g, struct err *e)
{
    if (resizing_holds_lock(g))
        return 1;
    const char *holder = volume_annotation(g->w.volume, g->w.c->engine->resize->lock);
    _cleanup_free_ char *before = *holder ? mem_strdup(holder) : who_is_before(g);
    if (*holder) {
        int broken = break_lock(g, before, e);
        if (broken < 0)
            return -1;
        if (broken)
            return resizing_lock(g, e);
    }
    if (before) {
        _cleanup_free_ char *text = mem_printf("Waits for its turn: %s \"%s\" comes before",
                                               g->w.c->engine->resize->kind, before);
        return resizing_wait(g, "WaitsForTurn", text, e);
    }
    if (volume_annotate(&g->w, "lock",
                        json_pack("{s:s}", g->w.c->engine->resize->lock, kube_name(g->resize)),
                        e) < 0)
        return -1;
    return 1;
}

int resizing_unlock(struct resizing *g, struct err *e)
{
    if (!resizing_holds_lock(g))
        return 0;
    resizing_forget(g);
    return free_lock(g, "unlock", e);
}

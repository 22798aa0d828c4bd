/*
 * An object that is worked on: reading it, and every write to it.
 */
#include "base/crash.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/str.h"
#include "node/lv_impl.h"

json_t *lv_object(struct node_lvs *s, const char *index, const char *value)
{
    _cleanup_(kube_objects_done) struct kube_objects list = {0};
    kube_groups_find(&s->lvs, index, value, &list);
    return list.len ? kube_object_json(list.p[0]) : NULL;
}

/*
 * The names of finalizer and annotation in each group. Whoever came from one to the other may have
 * brought the old ones along: all count.
 */
static const char *const groups[KUBE_GROUPS] = {"topolvm.cybozu.com", "topolvm.io"};
static const char *const finalizers[] = {"topolvm.cybozu.com/logicalvolume",
                                         "topolvm.io/logicalvolume", NULL};
static const char *const annotations[] = {"topolvm.cybozu.com/resize-requested-at",
                                          "topolvm.io/resize-requested-at", NULL};

const char *lv_group(const struct lv_work *w)
{
    return groups[w->kind - w->s->lvs.resources];
}

const char *lv_finalizer(const json_t *object)
{
    const char *const *name = finalizers;
    while (*name && !kube_finalizer_has(object, *name))
        name++;
    return *name;
}

/* For which wish it was said that it cannot be fulfilled. */
static char *wish_text(const struct lv_work *w)
{
    struct str text = {0};
    str_appendf(&text, "%lld", (long long)kube_generation(w->object));
    for (const char *const *name = annotations; *name; name++) {
        const char *asked = kube_annotation(w->object, *name);
        str_appendf(&text, " %s", asked ? asked : "");
    }
    return str_take(&text);
}

bool lv_was_judged(struct lv_work *w)
{
    _cleanup_free_ char *wish = wish_text(w);
    pthread_mutex_lock(&w->s->lock);
    const char *judged = map_get(&w->s->judged, w->uid);
    bool same = judged && str_eq(judged, wish);
    pthread_mutex_unlock(&w->s->lock);
    return same;
}

void lv_judge(struct lv_work *w, bool infeasible)
{
    char *wish = infeasible ? wish_text(w) : NULL;
    pthread_mutex_lock(&w->s->lock);
    free(wish ? map_set(&w->s->judged, w->uid, wish) : map_remove(&w->s->judged, w->uid));
    pthread_mutex_unlock(&w->s->lock);
}

/* Writing it. */

static int write_status(struct lv_work *w, const json_t *status, struct err *e)
{
    const json_t *before = json_object_get(w->object, "status");
    if (before ? json_equal(before, status) : !json_object_size(status))
        return 0;
    crash_point("status");
    int done = kube_status_write(w->s->n->client, w->kind, &w->object, status, e);
    crash_point("status");
    return done;
}

int lv_fail(struct lv_work *w, const struct err *why, struct err *e)
{
    struct logical_volume now = logical_volume_of(w->object);
    bool infeasible = err_is_infeasible(why->code) || why->code == ERR_RESOURCE_EXHAUSTED;
    *e = *why;
    if (why->code == ERR_CANCELLED)
        return -1;
    bool news = !str_eq(now.status.message, why->msg);
    now.status.code = why->code;
    now.status.message = why->msg;
    json_auto_t *status = logical_volume_status(&now);
    if (write_status(w, status, e) < 0)
        return -1;
    if (news) {
        kube_event_warning(w->s->n->recorder, w->object, why->reason, "%s", why->msg);
        log_warn("a logical volume cannot be as it is wanted", LOG_S("name", kube_name(w->object)),
                 LOG_ERR(why));
    }
    if (!infeasible) {
        *e = *why;
        return -1;
    }
    lv_judge(w, true);
    return 0;
}

int lv_tell(struct lv_work *w, const struct lvm_lv *lv, struct err *e)
{
    const struct logical_volume now = {
        .status = {.volume_id = lv->name, .current_size = (int64_t)lv->size}};
    json_auto_t *status = logical_volume_status(&now);
    lv_judge(w, false);
    return write_status(w, status, e);
}

int lv_finalizer_add(struct lv_work *w, struct err *e)
{
    if (lv_finalizer(w->object))
        return 0;
    crash_point("finalizer");
    int status = kube_finalizer_add(w->s->n->client, w->kind, &w->object,
                                    finalizers[w->kind - w->s->lvs.resources], e);
    crash_point("finalizer");
    return status;
}

int lv_finalizer_remove(struct lv_work *w, struct err *e)
{
    int status = 0;
    for (const char *const *name = finalizers; status == 0 && *name; name++) {
        if (!kube_finalizer_has(w->object, *name))
            continue;
        crash_point("finalizer");
        status = kube_finalizer_remove(w->s->n->client, w->kind, &w->object, *name, e);
        crash_point("finalizer");
    }
    return status;
}

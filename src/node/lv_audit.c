/*
 * Does LVM have what the API says, and the other way round?
 *
 * A volume with our tag is an orphan when no object has its uid, neither before the report was made
 * (else its object may just have gone, and it with it) nor after (else it may just have been made), and no
 * status names it: objects that were restored have other uids than their volumes. While the server has no
 * LogicalVolumes at all, nothing is known of any. An object whose volume is missing is left to its reconcile,
 * which looks for itself.
 */
#include "base/log.h"
#include "base/str.h"
#include "node/lv_impl.h"

static void orphan_free(struct lv_orphan *o)
{
    free(o->vg);
    free(o->lv);
    free(o->owner);
    free(o);
}

void lv_orphans_done(struct node_lvs *s)
{
    map_for_each(&s->orphans, it)
        orphan_free(it->value);
    map_done(&s->orphans);
}

/* Whether the object may have to say something else now: its volume is missing, or it was said to be. */
static bool is_news(struct node_lvs *s, const struct lvm_view *v, const char *uid)
{
    pthread_mutex_lock(&s->lock);
    bool judged = map_has(&s->judged, uid);
    pthread_mutex_unlock(&s->lock);
    return judged || !lv_find(v, uid);
}

/* The uids of all objects. */
static void know(struct node_lvs *s, const struct lvm_view *v, struct map *uids)
{
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        struct kube_objects list = {0};
        kube_informer_list(s->lvs.informers[i], NULL, &list);
        vec_for_each(&list, it) {
            map_set(uids, (*it)->uid, s);
            if (v && strstr((*it)->text, s->n->name.node) && is_news(s, v, (*it)->uid))
                kube_controller_add(s->volumes, "", (*it)->uid);
        }
        kube_objects_done(&list);
    }
}

/* Locked. */
static void note(struct node_lvs *s, const struct lvm_lv *lv, char *owner)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", lv->vg, lv->name);
    struct lv_orphan *o = map_get(&s->orphans, key);
    if (o) {
        free(owner);
    } else {
        o = NEW(struct lv_orphan);
        o->vg = mem_strdup(lv->vg);
        o->lv = mem_strdup(lv->name);
        o->owner = owner;
        o->since = clock_mono_ns(s->n->clock);
        map_set(&s->orphans, key, o);
    }
    o->size = lv->size;
    o->seen = true;
}

static bool is_named(struct node_lvs *s, const struct lvm_lv *lv)
{
    json_auto_t *object = lv_object(s, LV_BY_VOLUME, lv->name);
    return object != NULL;
}

static void find_orphans(struct node_lvs *s, const struct lvm_view *v, const struct map *before,
                         const struct map *after)
{
    pthread_mutex_lock(&s->lock);
    map_for_each(&s->orphans, it)
        ((struct lv_orphan *)it->value)->seen = false;
    vec_for_each(&v->lvs, lv) {
        char *owner = lvm_lv_tag(lv, LV_OWNER);
        if (owner && !map_has(before, lv->name) && !map_has(after, lv->name) && !is_named(s, lv))
            note(s, lv, owner);
        else
            free(owner);
    }
    map_for_each(&s->orphans, it) {
        struct lv_orphan *o = it->value;
        if (!o->seen) {
            map_remove(&s->orphans, it->key);
            orphan_free(o);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

/* Nobody else changes the set: the audit is one key of one worker. */
static void say(struct node_lvs *s)
{
    json_auto_t *node = kube_informer_json(s->n->nodes, NULL, s->n->name.node, NULL);
    map_for_each(&s->orphans, it) {
        struct lv_orphan *o = it->value;
        if (o->said || !node)
            continue;
        o->said = true;
        log_warn("a logical volume belongs to no object", LOG_S("lv", it->key),
                 LOG_S("owner", o->owner));
        kube_event_warning(s->n->recorder, node, "OrphanedLogicalVolume",
                           "the logical volume %s of %s belongs to no LogicalVolume", it->key,
                           o->owner);
    }
}

static bool is_or_lacks(const struct node_lvs *s, const struct lvm_view *v, const json_t *object,
                        const char *lv)
{
    struct logical_volume its = logical_volume_of(object);
    const char *id = its.status.volume_id;
    bool here = str_eq(its.spec.node_name, s->n->name.node);
    return str_eq(kube_uid(object), lv) || str_eq(id, lv) ||
           (here && !lv_find(v, *id ? id : kube_uid(object)));
}

/*
 * The server itself is asked, not a cache: has it an object under the owner's name whose volume this is, by uid
 * or by status, or may be, since it is missing its own? Who owns it is known only where the server has the
 * owner's group.
 */
static int confirm_absent(struct node_lvs *s, const struct lvm_view *v, const struct lv_orphan *o,
                          bool *ret_absent, struct err *e)
{
    const char *slash = strchr(o->owner, '/');
    *ret_absent = false;
    if (!slash || !slash[1])
        return 0;
    _cleanup_free_ char *group = mem_strndup(o->owner, (size_t)(slash - o->owner));
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        struct err why = {0};
        json_auto_t *there = kube_get(s->n->client, &s->lvs.resources[i], NULL, slash + 1, &why);
        if (there && is_or_lacks(s, v, there, o->lv))
            return 0;
        if (!there && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
    }
    *ret_absent = kube_groups_served(&s->lvs, group);
    return 0;
}

static int reclaim(struct node_lvs *s, const struct lvm_view *v, struct err *e)
{
    int64_t now = clock_mono_ns(s->n->clock);
    map_for_each(&s->orphans, it) {
        struct lv_orphan *o = it->value;
        const struct lvm_lv *lv = lvm_view_lv(v, o->vg, o->lv);
        bool absent = false;
        if (!lv || now - o->since < s->n->options.lvs.orphan_grace_ns)
            continue;
        if (confirm_absent(s, v, o, &absent, e) < 0)
            return -1;
        if (!absent)
            continue;
        if (lv_remove(s, v, lv, e) < 0)
            return err_prefix(e, "the orphan %s", it->key);
        log_info("removed a logical volume that belonged to no object", LOG_S("lv", it->key));
        kube_controller_add(s->keeper, "", LV_AUDIT);
    }
    return 0;
}

int lv_audit(struct node_lvs *s, struct err *e)
{
    struct map before = {0}, after = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = NULL;
    know(s, NULL, &before);
    int status = lv_look(s, LV_PATIENCE, &v, e);
    if (status == 0) {
        know(s, v, &after);
        if (kube_groups_served(&s->lvs, NULL))
            find_orphans(s, v, &before, &after);
        say(s);
        lv_pools_warn(s, v);
        if (s->n->options.lvs.reclaim_orphans)
            status = reclaim(s, v, e);
        kube_controller_add(s->keeper, "", LV_ANNOUNCE);
    }
    map_done(&before);
    map_done(&after);
    return status;
}

/*
 * One LogicalVolume.
 *
 *     not deleting, no volumeID     finalizer ─> create, unless it is there ─> look ─> status
 *     not deleting, volumeID        finalizer; not there: lost. too small: extend ─> look ─> status
 *     deleting, our finalizer       wipe, remove ─> look: gone? ─> finalizer
 *
 * Each arrow can be the last before kill -9: what is in LVM and in the object says where to go on.
 */
#include "base/log.h"
#include "base/str.h"
#include "lvm/data.h"
#include "metrics/metrics.h"
#include "node/lv_impl.h"

/* *v becomes what LVM has from now on. */
static int look_again(struct lv_work *w, struct lvm_view **v, struct err *e)
{
    struct lvm_view *fresh;
    if (lv_look(w->s, LV_PATIENCE, &fresh, e) < 0)
        return -1;
    lvm_view_unref(*v);
    *v = fresh;
    return 0;
}

/*
 * The volume that an object's status names; NULL: there is none. Whoever can write a status must not have
 * others' volumes grown, removed or copied by it, such as the machine's own: it is called by the object's
 * uid, or tagged.
 */
static int find_own(struct lv_work *w, const json_t *object, const struct lvm_view *v,
                    const char *id, const struct lvm_lv **ret_lv, struct err *e)
{
    *ret_lv = lv_find(v, id);
    if (!*ret_lv || str_eq(id, kube_uid(object)))
        return 0;
    _cleanup_free_ char *owner = lvm_lv_tag(*ret_lv, LV_OWNER);
    const char *slash = owner ? strchr(owner, '/') : NULL;
    if (slash && str_eq(slash + 1, kube_name(object)))
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "NotOurs",
                   "the volume %s is not the object's: it has another uid, and no tag " LV_OWNER
                   "=%s/%s",
                   id, lv_group(w), kube_name(object));
}

/* What the source is, if there is to be one; 0, or -1 and why. */
static int find_source(struct lv_work *w, const struct lvm_view *v, const char *name,
                       const struct lvm_lv **ret_origin, struct err *e)
{
    json_auto_t *source = lv_object(w->s, LV_BY_NAME, name);
    if (!source)
        return err_set(e, ERR_NOT_FOUND, "NoSource", "the source %s is not there", name);
    struct logical_volume its = logical_volume_of(source);
    if (!str_eq(its.spec.node_name, w->s->n->name.node))
        return err_set(e, ERR_FAILED_PRECONDITION, "SourceElsewhere",
                       "the source %s is on the node %s: a snapshot or clone must be there too",
                       name, its.spec.node_name);
    *ret_origin = NULL;
    if (*its.status.volume_id && find_own(w, source, v, its.status.volume_id, ret_origin, e) < 0)
        return -1;
    return *ret_origin ? 0
                       : err_set(e, ERR_UNAVAILABLE, "SourceNotReady",
                                 "the source %s has no volume yet", name);
}

/* To be freed. */
static char *tag_of(const struct lv_work *w)
{
    return mem_printf(LV_OWNER "=%s/%s", lv_group(w), kube_name(w->object));
}

static int create(struct lv_work *w, struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *origin = NULL;
    struct err why = {0};
    struct logical_volume wanted = logical_volume_of(w->object);
    struct lv_wish wish = {
        .uid = w->uid,
        .class = wanted.spec.class_name,
        .options = wanted.spec.option_class,
        .source = wanted.spec.source,
        .read_only = str_eq(wanted.spec.access_type, "ro"),
        .size = (uint64_t)wanted.spec.size,
    };
    _cleanup_free_ char *tag = tag_of(w);
    wish.tag = tag;
    if ((*wish.source && find_source(w, v, wish.source, &origin, &why) < 0) ||
        lv_make(w->s, &wish, origin, &why) < 0)
        return lv_fail(w, &why, e);
    log_info("made a logical volume", LOG_S("name", kube_name(w->object)), LOG_S("lv", w->uid));
    return 0;
}

/*
 * Asks the server itself whether the volume is still wanted: 1, 0, -1. What caches say may be old, and where two
 * groups are names of one object there are two of them: one may still have what was removed by what the other said.
 */
static int is_wanted(struct lv_work *w, struct err *e)
{
    struct err why = {0};
    json_t *live = kube_get(w->s->n->client, w->kind, NULL, kube_name(w->object), &why);
    if (!live && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    if (!live || !str_eq(kube_uid(live), w->uid) || kube_deleting(live)) {
        json_decref(live);
        return 0;
    }
    json_decref(w->object);
    w->object = live;
    return *logical_volume_of(live).status.volume_id
               ? err_set(e, ERR_ABORTED, "Conflict", "it was made before")
               : 1;
}

/*
 * No volumeID yet. A volume that was just made begins with zeros; where there is a device, lvcreate has
 * seen to that. One that is found is left as it is: there may be data on it, if the API's store was put
 * back to an earlier time.
 */
static int make(struct lv_work *w, struct err *e)
{
    struct err why = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    if (lv_finalizer_add(w, e) < 0)
        return -1;
    const struct lvm_lv *lv = lv_find(v, w->uid);
    if (lv)
        return lv_tell(w, lv, e);
    if (lv_was_judged(w))
        return 0;
    int wanted = is_wanted(w, e);
    if (wanted <= 0)
        return wanted;
    if (create(w, e) < 0)
        return -1;
    if (lv_was_judged(w))
        return 0;
    if (look_again(w, &v, &why) < 0)
        return lv_fail(w, &why, e);
    lv = lv_find(v, w->uid);
    if (!lv)
        err_set(&why, ERR_INTERNAL, "NotMade",
                "lvcreate said that it had made %s, and there is no such volume", w->uid);
    if (!lv || (!lvm_has_devices(w->s->lvm) && lvm_data_wipe(v, lv->vg, lv->name, &why) < 0))
        return lv_fail(w, &why, e);
    return lv_tell(w, lv, e);
}

/* One that another agent made, TopoLVM's own, is ours by its name: now also by its tag, for the audit. */
static void adopt(struct lv_work *w, const struct lvm_lv *lv)
{
    _cleanup_free_ char *owner = lvm_lv_tag(lv, LV_OWNER);
    struct err why = {0};
    if (owner)
        return;
    _cleanup_free_ char *tag = tag_of(w);
    if (lv_tag(w->s, lv, tag, &why) < 0)
        log_warn("cannot tag a logical volume", LOG_S("name", kube_name(w->object)), LOG_ERR(&why));
    else
        log_info("took over a logical volume", LOG_S("name", kube_name(w->object)));
}

static int lost(struct lv_work *w, const char *id, struct err *e)
{
    struct err why = {0};
    err_set(&why, ERR_NOT_FOUND, "LogicalVolumeLost",
            "the volume %s is gone from the node %s, and its data with it; it is not made again: "
            "if a disk is missing, bring it back, else delete this object",
            id, w->s->n->name.node);
    return lv_fail(w, &why, e);
}

/* It has a volumeID: is it there, and large enough? One that came from a backup may lack the finalizer. */
static int keep(struct lv_work *w, struct err *e)
{
    struct err why = {0};
    if (lv_finalizer_add(w, e) < 0)
        return -1;
    _cleanup_free_ char *id = mem_strdup(logical_volume_of(w->object).status.volume_id);
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *lv;
    if (!lv_find(v, id) && look_again(w, &v, &why) < 0) /* so grave a verdict needs a fresh look */
        return lv_fail(w, &why, e);
    if (find_own(w, w->object, v, id, &lv, &why) < 0)
        return lv_fail(w, &why, e);
    if (!lv)
        return lost(w, id, e);
    adopt(w, lv);
    uint64_t wanted = (uint64_t)logical_volume_of(w->object).spec.size;
    if (lv->size >= wanted || lvm_lv_is_read_only(lv))
        return lv_tell(w, lv, e);
    if (lv_was_judged(w))
        return 0;
    if (lv_grow(w->s, lv, wanted, &why) < 0) {
        metrics_add(metrics_at(w->s->resize_failures,
                               METRICS_VALUES(w->s->n->name.node, kube_name(w->object))),
                    1);
        return lv_fail(w, &why, e);
    }
    if (look_again(w, &v, &why) < 0)
        return lv_fail(w, &why, e);
    lv = lv_find(v, id);
    if (!lv)
        return lost(w, id, e);
    if (lv->size < wanted) {
        err_set(&why, ERR_INTERNAL, "NotGrown",
                "lvextend said that it was done, and the volume has %llu bytes, not %llu",
                (unsigned long long)lv->size, (unsigned long long)wanted);
        return lv_fail(w, &why, e);
    }
    log_info("a logical volume has grown", LOG_S("name", kube_name(w->object)),
             LOG_I("bytes", (int64_t)lv->size));
    return lv_tell(w, lv, e);
}

static int remove_volume(struct lv_work *w, struct err *e)
{
    struct err why = {0};
    if (!lv_finalizer(w->object))
        return 0;
    const char *id = logical_volume_of(w->object).status.volume_id;
    if (!*id)
        id = w->uid;
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *lv;
    if (!lv_find(v, id) && look_again(w, &v, &why) < 0) /* nobody looks for it afterwards */
        return lv_fail(w, &why, e);
    if (find_own(w, w->object, v, id, &lv, &why) < 0)
        return lv_fail(w, &why, e);
    if (lv) {
        if (lv_remove(w->s, v, lv, &why) < 0 || look_again(w, &v, &why) < 0)
            return lv_fail(w, &why, e);
        if (lv_find(v, id)) {
            err_set(&why, ERR_INTERNAL, "NotRemoved",
                    "lvremove said that it was done, and the volume is there");
            return lv_fail(w, &why, e);
        }
        log_info("removed a logical volume", LOG_S("name", kube_name(w->object)));
    }
    lv_judge(w, false);
    return lv_finalizer_remove(w, e);
}

int lv_reconcile(void *context, const char *ns, const char *uid, struct kube_result *ret,
                 struct err *e)
{
    struct lv_work w = {.s = context, .uid = uid};
    (void)ns;
    (void)ret;
    w.object = lv_object(w.s, LV_BY_UID, uid);
    if (!w.object) { /* gone, and its volume with it */
        lv_judge(&w, false);
        if (w.s->keeper)
            kube_controller_add_after(w.s->keeper, "", LV_AUDIT, CLOCK_SECOND);
        return 0;
    }
    int status = 0;
    w.kind = kube_groups_of(&w.s->lvs, w.object);
    const struct err broken = lv_broken(w.s);
    struct logical_volume lv = logical_volume_of(w.object);
    if (!str_eq(lv.spec.node_name, w.s->n->name.node))
        status = 0;
    else if (broken.code)
        status = lv_was_judged(&w) ? 0 : lv_fail(&w, &broken, e);
    else
        status = kube_deleting(w.object) ? remove_volume(&w, e)
                 : *lv.status.volume_id  ? keep(&w, e)
                                         : make(&w, e);
    json_decref(w.object);
    return status;
}

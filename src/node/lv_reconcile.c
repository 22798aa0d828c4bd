/*
 * One LogicalVolume.
 *
 *     not deleting, no volumeID     finalizer ─> create, unless it is there ─> look ─> status
 *     not deleting, volumeID        not there: lost. too small: extend ─> look ─> status
 *     deleting, our finalizer       wipe, remove ─> look: gone? ─> finalizer
 *
 * Each arrow can be the last before kill -9: what is in LVM and in the object says where to go on.
 */
#include "base/crash.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/str.h"
#include "lvm/data.h"
#include "metrics/metrics.h"
#include "node/lv_impl.h"

struct work {
    struct node_lvs *s;
    const struct lv_group *group;
    json_t *object; /* a tree of our own */
    const char *uid;
};

/* Reading the object. */

static const char *text_at(const json_t *object, const char *part, const char *key)
{
    const char *text = json_str(json_object_get(object, part), key);
    return text ? text : "";
}

static uint64_t size_at(const json_t *object, const char *part, const char *key)
{
    uint64_t bytes = 0;
    const json_t *value = json_at(object, part, key);
    if (json_is_integer(value) && json_integer_value(value) > 0)
        return (uint64_t)json_integer_value(value);
    return json_is_string(value) &&
                   quantity_parse_bytes(json_string_value(value), &bytes, NULL) == 0
               ? bytes
               : 0;
}

json_t *lv_object(struct node_lvs *s, const char *index, const char *value,
                  const struct lv_group **ret_group)
{
    json_t *found = NULL;
    for (size_t i = 0; !found && i < s->n_groups; i++) {
        struct kube_objects list = {0};
        kube_informer_find(s->groups[i].informer, index, value, &list);
        if (list.len) {
            found = kube_object_json(list.p[0]);
            *ret_group = &s->groups[i];
        }
        kube_objects_done(&list);
    }
    return found;
}

/*
 * The names of finalizer and annotation in each group. Whoever came from one to the other may have
 * brought the old ones along: all count.
 */
static const char *const finalizers[] = {"topolvm.cybozu.com/logicalvolume",
                                         "topolvm.io/logicalvolume", NULL};
static const char *const annotations[] = {"topolvm.cybozu.com/resize-requested-at",
                                          "topolvm.io/resize-requested-at", NULL};

static const char *finalizer_of(const json_t *object)
{
    const char *const *name = finalizers;
    while (*name && !kube_finalizer_has(object, *name))
        name++;
    return *name;
}

/* For which wish it was said that it cannot be fulfilled. */
static char *wish_text(const struct work *w)
{
    struct str text = {0};
    str_appendf(&text, "%lld", (long long)kube_generation(w->object));
    for (const char *const *name = annotations; *name; name++) {
        const char *asked = kube_annotation(w->object, *name);
        str_appendf(&text, " %s", asked ? asked : "");
    }
    return str_take(&text);
}

static bool was_judged(struct work *w)
{
    _cleanup_free_ char *wish = wish_text(w);
    pthread_mutex_lock(&w->s->lock);
    const char *judged = map_get(&w->s->judged, w->uid);
    bool same = judged && str_eq(judged, wish);
    pthread_mutex_unlock(&w->s->lock);
    return same;
}

static void judge(struct work *w, bool infeasible)
{
    char *wish = infeasible ? wish_text(w) : NULL;
    pthread_mutex_lock(&w->s->lock);
    free(wish ? map_set(&w->s->judged, w->uid, wish) : map_remove(&w->s->judged, w->uid));
    pthread_mutex_unlock(&w->s->lock);
}

/* Writing it. */

static int write_status(struct work *w, const json_t *status, struct err *e)
{
    const json_t *before = json_object_get(w->object, "status");
    if (before ? json_equal(before, status) : !json_object_size(status))
        return 0;
    crash_point("status");
    int done = kube_status_write(w->s->n->client, &w->group->kind, &w->object, status, e);
    crash_point("status");
    return done;
}

static json_t *status_of(const struct work *w)
{
    const json_t *status = json_object_get(w->object, "status");
    return status ? json_deep_copy(status) : json_object();
}

/*
 * Says what went wrong, and hands the error on: the queue tries again what may pass. What is
 * infeasible is remembered instead.
 */
static int fail(struct work *w, const struct err *why, struct err *e)
{
    json_auto_t *status = status_of(w);
    bool infeasible = err_is_infeasible(why->code) || why->code == ERR_RESOURCE_EXHAUSTED;
    *e = *why;
    if (why->code == ERR_CANCELLED)
        return -1;
    const char *before = json_str(status, "message");
    bool news = !before || !str_eq(before, why->msg);
    json_object_set_new(status, "code", json_integer(why->code));
    json_object_set_new(status, "message", json_string(why->msg));
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
    judge(w, true);
    return 0;
}

/* The volume is there: what it is called and how large it is, as LVM says. */
static int tell(struct work *w, const struct lvm_lv *lv, struct err *e)
{
    char text[QUANTITY_TEXT_MAX];
    json_auto_t *status = status_of(w);
    struct quantity size = quantity_from_int((int64_t)lv->size, QUANTITY_BINARY_SI);
    json_object_set_new(status, "volumeID", json_string(lv->name));
    if (size_at(w->object, "status", "currentSize") != lv->size)
        json_object_set_new(status, "currentSize", json_string(quantity_format(&size, text)));
    json_object_del(status, "code");
    json_object_del(status, "message");
    judge(w, false);
    return write_status(w, status, e);
}

static int add_finalizer(struct work *w, struct err *e)
{
    if (finalizer_of(w->object))
        return 0;
    crash_point("finalizer");
    int status =
        kube_finalizer_add(w->s->n->client, &w->group->kind, &w->object, w->group->finalizer, e);
    crash_point("finalizer");
    return status;
}

static int remove_finalizer(struct work *w, struct err *e)
{
    int status = 0;
    for (const char *const *name = finalizers; status == 0 && *name; name++) {
        if (!kube_finalizer_has(w->object, *name))
            continue;
        crash_point("finalizer");
        status = kube_finalizer_remove(w->s->n->client, &w->group->kind, &w->object, *name, e);
        crash_point("finalizer");
    }
    return status;
}

/* Steps. */

/* What the source is, if there is to be one; 0, or -1 and why. */
static int find_source(struct work *w, const struct lvm_view *v, const char *name,
                       const struct lvm_lv **ret_origin, struct err *e)
{
    const struct lv_group *group;
    json_auto_t *source = lv_object(w->s, LV_BY_NAME, name, &group);
    if (!source)
        return err_set(e, ERR_NOT_FOUND, "NoSource", "the source %s is not there", name);
    if (!str_eq(text_at(source, "spec", "nodeName"), w->s->n->name.node))
        return err_set(e, ERR_FAILED_PRECONDITION, "SourceElsewhere",
                       "the source %s is on the node %s: a snapshot or clone must be there too",
                       name, text_at(source, "spec", "nodeName"));
    const char *id = text_at(source, "status", "volumeID");
    *ret_origin = *id ? lv_find(v, id) : NULL;
    return *ret_origin ? 0
                       : err_set(e, ERR_UNAVAILABLE, "SourceNotReady",
                                 "the source %s has no volume yet", name);
}

static int create(struct work *w, struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *origin = NULL;
    struct err why = {0};
    struct lv_wish wish = {
        .uid = w->uid,
        .class = text_at(w->object, "spec", "vgName"),
        .options = text_at(w->object, "spec", "lvcreateOptionClass"),
        .source = text_at(w->object, "spec", "source"),
        .read_only = str_eq(text_at(w->object, "spec", "accessType"), "ro"),
        .size = size_at(w->object, "spec", "size"),
    };
    if (!*wish.class)
        wish.class = text_at(w->object, "spec", "deviceClass");
    _cleanup_free_ char *tag = mem_printf(LV_OWNER "=%s/%s", w->group->group, kube_name(w->object));
    wish.tag = tag;
    if ((*wish.source && find_source(w, v, wish.source, &origin, &why) < 0) ||
        lv_make(w->s, &wish, origin, &why) < 0)
        return fail(w, &why, e);
    log_info("made a logical volume", LOG_S("name", kube_name(w->object)), LOG_S("lv", w->uid));
    return 0;
}

/* A new volume begins with zeros; where there is a device, lvcreate has seen to that. */
static int clear(struct work *w, const struct lvm_view *v, const struct lvm_lv *lv, struct err *e)
{
    return lvm_has_devices(w->s->lvm) ? 0 : lvm_data_wipe(v, lv->vg, lv->name, e);
}

/* No volumeID yet. */
static int make(struct work *w, struct err *e)
{
    struct err why = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    if (add_finalizer(w, e) < 0)
        return -1;
    const struct lvm_lv *lv = lv_find(v, w->uid);
    if (!lv) {
        if (was_judged(w))
            return 0;
        if (create(w, e) < 0)
            return -1;
        if (was_judged(w))
            return 0;
        lvm_view_unref(v);
        v = NULL;
        if (lv_look(w->s, LV_PATIENCE, &v, &why) < 0)
            return fail(w, &why, e);
        lv = lv_find(v, w->uid);
    }
    if (!lv)
        err_set(&why, ERR_INTERNAL, "NotMade",
                "lvcreate said that it had made %s, and there is no such volume", w->uid);
    if (!lv || clear(w, v, lv, &why) < 0)
        return fail(w, &why, e);
    return tell(w, lv, e);
}

static int lost(struct work *w, const char *id, struct err *e)
{
    struct err why = {0};
    err_set(&why, ERR_NOT_FOUND, "LogicalVolumeLost",
            "the volume %s is gone from the node %s, and its data with it; it is not made again: "
            "if a disk is missing, bring it back, else delete this object",
            id, w->s->n->name.node);
    return fail(w, &why, e);
}

/* It has a volumeID: is it there, and large enough? */
static int keep(struct work *w, const char *id, struct err *e)
{
    struct err why = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *lv = lv_find(v, id);
    if (!lv) { /* a verdict of such weight needs a fresh look */
        lvm_view_unref(v);
        v = NULL;
        if (lv_look(w->s, LV_PATIENCE, &v, &why) < 0)
            return fail(w, &why, e);
        if (!(lv = lv_find(v, id)))
            return lost(w, id, e);
    }
    uint64_t wanted = size_at(w->object, "spec", "size");
    if (lv->size >= wanted || lvm_lv_is_read_only(lv))
        return tell(w, lv, e);
    if (was_judged(w))
        return 0;
    if (lv_grow(w->s, lv, wanted, &why) < 0) {
        metrics_add(metrics_at(w->s->resize_failures,
                               METRICS_VALUES(w->s->n->name.node, kube_name(w->object))),
                    1);
        return fail(w, &why, e);
    }
    lvm_view_unref(v);
    v = NULL;
    if (lv_look(w->s, LV_PATIENCE, &v, &why) < 0)
        return fail(w, &why, e);
    lv = lv_find(v, id);
    if (!lv)
        return lost(w, id, e);
    if (lv->size < wanted) {
        err_set(&why, ERR_INTERNAL, "NotGrown",
                "lvextend said that it was done, and the volume has %llu bytes, not %llu",
                (unsigned long long)lv->size, (unsigned long long)wanted);
        return fail(w, &why, e);
    }
    log_info("a logical volume has grown", LOG_S("name", kube_name(w->object)),
             LOG_I("bytes", (int64_t)lv->size));
    return tell(w, lv, e);
}

static int delete (struct work *w, struct err *e)
{
    struct err why = {0};
    if (!finalizer_of(w->object))
        return 0;
    const char *id = text_at(w->object, "status", "volumeID");
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(w->s);
    const struct lvm_lv *lv = lv_find(v, *id ? id : w->uid);
    if (lv) {
        if (lv_remove(w->s, v, lv, &why) < 0)
            return fail(w, &why, e);
        lvm_view_unref(v);
        v = NULL;
        if (lv_look(w->s, LV_PATIENCE, &v, &why) < 0)
            return fail(w, &why, e);
        if (lv_find(v, *id ? id : w->uid)) {
            err_set(&why, ERR_INTERNAL, "NotRemoved",
                    "lvremove said that it was done, and the volume is there");
            return fail(w, &why, e);
        }
        log_info("removed a logical volume", LOG_S("name", kube_name(w->object)));
    }
    judge(w, false);
    return remove_finalizer(w, e);
}

int lv_reconcile(void *context, const char *ns, const char *uid, struct kube_result *ret,
                 struct err *e)
{
    struct work w = {.s = context, .uid = uid};
    (void)ns;
    (void)ret;
    w.object = lv_object(w.s, LV_BY_UID, uid, &w.group);
    if (!w.object) { /* gone, and its volume with it */
        judge(&w, false);
        if (w.s->keeper)
            kube_controller_add_after(w.s->keeper, "", LV_AUDIT, CLOCK_SECOND);
        return 0;
    }
    int status = 0;
    const char *id = text_at(w.object, "status", "volumeID");
    if (!str_eq(text_at(w.object, "spec", "nodeName"), w.s->n->name.node))
        status = 0;
    else if (w.s->broken.code)
        status = was_judged(&w) ? 0 : fail(&w, &w.s->broken, e);
    else
        status = kube_deleting(w.object) ? delete (&w, e) : *id ? keep(&w, id, e) : make(&w, e);
    json_decref(w.object);
    return status;
}

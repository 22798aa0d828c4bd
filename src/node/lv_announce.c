/*
 * What others see of the node's volume groups: annotations of its Node, by which volumes are placed, and
 * metrics under TopoLVM's names.
 */
#include "base/str.h"
#include "json/patch.h"
#include "metrics/metrics.h"
#include "node/lv_impl.h"

#define CLASSES "topolvm.io/device-classes"
#define ORPHANS "topolvm.io/orphans"
enum { ORPHANS_MAX = 50 };
static const char *const prefixes[] = {"capacity.topolvm.io/", "capacity.topolvm.cybozu.com/"};

static void set_json(json_t *annotations, const char *key, const json_t *value)
{
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    json_object_set_new(annotations, key, json_string(str_get(&text)));
}

static void set_capacity(json_t *annotations, const char *class, uint64_t free_bytes)
{
    _cleanup_free_ char *text = mem_printf("%llu", (unsigned long long)free_bytes);
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        _cleanup_free_ char *key = mem_printf("%s%s", prefixes[i], class);
        json_object_set_new(annotations, key, json_string(text));
    }
}

static json_t *orphan_list(struct node_lvs *s)
{
    json_t *list = json_array();
    pthread_mutex_lock(&s->lock);
    map_for_each(&s->orphans, it) {
        const struct lv_orphan *o = it->value;
        if (json_array_size(list) < ORPHANS_MAX)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:I, s:s}", "vg", o->vg, "lv", o->lv,
                                            "sizeBytes", (json_int_t)o->size, "owner", o->owner));
    }
    pthread_mutex_unlock(&s->lock);
    return list;
}

/* All that we say of ourselves; a class whose group is not there is not offered. */
static json_t *wanted(struct node_lvs *s)
{
    json_t *annotations = json_object();
    json_auto_t *classes = json_array(), *orphans = orphan_list(s);
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(s);
    _cleanup_(lv_classes_unrefp) struct lv_classes *in_force = lv_classes(s);
    vec_for_each(&in_force->set.classes, c) {
        struct lvm_room room;
        lvm_class_room(c, v, &room);
        if (!room.there)
            continue;
        set_capacity(annotations, c->name, room.free);
        if (c->is_default)
            set_capacity(annotations, "00default", room.free);
        json_array_append_new(classes,
                              json_pack("{s:s, s:s, s:s, s:b, s:I, s:I}", "name", c->name, "vg",
                                        c->vg, "type", c->pool ? "thin" : "thick", "default",
                                        c->is_default, "sizeBytes", (json_int_t)room.size,
                                        "freeBytes", (json_int_t)room.free));
    }
    if (json_array_size(classes))
        set_json(annotations, CLASSES, classes);
    if (json_array_size(orphans))
        set_json(annotations, ORPHANS, orphans);
    return annotations;
}

static bool is_ours(const char *key)
{
    return str_starts_with(key, prefixes[0]) || str_starts_with(key, prefixes[1]) ||
           str_eq(key, CLASSES) || str_eq(key, ORPHANS);
}

int lv_announce(struct node_lvs *s, struct err *e)
{
    json_auto_t *node = kube_informer_json(s->n->nodes, NULL, s->n->name.node, NULL);
    json_auto_t *now = wanted(s), *before = json_object();
    const char *key;
    json_t *value;
    if (!node)
        return 0; /* when it is there, this is called again */
    json_object_foreach((json_t *)json_at(node, "metadata", "annotations"), key, value) {
        if (is_ours(key))
            json_object_set(before, key, value);
    }
    json_auto_t *diff = json_merge_diff(before, now);
    if (!json_object_size(diff))
        return 0;
    /* Nobody else writes these: no need to compare versions with those who write other parts. */
    json_auto_t *patch = json_pack("{s:{s:O}}", "metadata", "annotations", diff);
    json_auto_t *written = kube_patch(s->n->client, &s->n->node_kind, NULL, s->n->name.node,
                                      KUBE_MERGE_PATCH, patch, NULL, e);
    return written ? 0 : -1;
}

void lv_map_node(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)object;
    (void)context;
    kube_controller_add(c, "", LV_ANNOUNCE);
}

void lv_map_nothing(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)c;
    (void)object;
    (void)context;
}

/* Metrics. */

static double vg_available(const struct lvm_room *r)
{
    return (double)(r->vg ? r->vg->free : 0);
}

static double vg_size(const struct lvm_room *r)
{
    return (double)(r->vg ? r->vg->size : 0);
}

static double pool_size(const struct lvm_room *r)
{
    return (double)r->pool->size;
}

static double pool_data(const struct lvm_room *r)
{
    return r->pool->data_percent;
}

static double pool_metadata(const struct lvm_room *r)
{
    return r->pool->metadata_percent;
}

static double pool_available(const struct lvm_room *r)
{
    return (double)r->free;
}

static const struct gauge {
    const char *name, *help;
    bool thin;
    double (*value)(const struct lvm_room *r);
} gauges[] = {
    {"topolvm_volumegroup_available_bytes", "Free bytes of the volume group.", false, vg_available},
    {"topolvm_volumegroup_size_bytes", "Size of the volume group.", false, vg_size},
    {"topolvm_thinpool_size_bytes", "Size of the thin pool.", true, pool_size},
    {"topolvm_thinpool_data_percent", "How full the thin pool's data is.", true, pool_data},
    {"topolvm_thinpool_metadata_percent", "How full the thin pool's metadata is.", true,
     pool_metadata},
    {"topolvm_thinpool_overprovisioned_available", "Bytes the thin pool can still promise.", true,
     pool_available},
};

static void collect(void *context, struct metrics_out *out)
{
    struct node_lvs *s = context;
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(s);
    _cleanup_(lv_classes_unrefp) struct lv_classes *in_force = lv_classes(s);
    for (size_t i = 0; i < ARRAY_SIZE(gauges); i++) {
        const struct gauge *g = &gauges[i];
        metrics_out_family(out, g->name, g->help, METRICS_GAUGE);
        vec_for_each(&in_force->set.classes, c) {
            struct lvm_room room;
            lvm_class_room(c, v, &room);
            if (room.there && (!g->thin || room.pool))
                metrics_out_value(out, METRICS_LABELS("node", "device_class"),
                                  METRICS_VALUES(s->n->name.node, c->name), g->value(&room));
        }
    }
    metrics_out_family(out, "orlop_logicalvolume_orphans",
                       "Logical volumes of ours that belong to no object.", METRICS_GAUGE);
    pthread_mutex_lock(&s->lock);
    double orphans = (double)s->orphans.count;
    pthread_mutex_unlock(&s->lock);
    metrics_out_value(out, METRICS_LABELS("node"), METRICS_VALUES(s->n->name.node), orphans);
}

void lv_metrics_setup(struct node_lvs *s)
{
    struct metrics *m = kube_manager_metrics(s->n->manager);
    s->resize_failures = metrics_counter(m, "orlop_logicalvolume_resize_failures_total",
                                         "Times that a logical volume could not grow.",
                                         METRICS_LABELS("node", "name"));
    metrics_collect(m, collect, s);
}

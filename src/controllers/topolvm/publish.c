/*
 * How much room there is, for whoever places pods: a CSIStorageCapacity for each node and StorageClass
 * of ours, with the arithmetic that promises follow. It is owned by the node, so it goes with it; with
 * its class it goes from here.
 *
 * And a CSIDriver that says that capacity is to be looked at, where there is none: schedulers believe
 * capacities only of drivers that say so.
 */
#include "controllers/topolvm/topolvm.h"
#include "kube/condition.h"
#include "kube/names.h"

#define NODE_KEY "orlop.io/node"

static char *name_of(const char *node, const char *class)
{
    char hash[KUBE_HASH];
    json_auto_t *both = json_pack("[s,s]", node, class);
    kube_hash(both, 0, hash);
    return mem_printf("topolvm-%s", hash);
}

static json_t *make(struct topolvm *t, const json_t *node, const json_t *class, int64_t room)
{
    char size[TOPOLVM_SIZE_MAX];
    _cleanup_free_ char *name = name_of(kube_name(node), kube_name(class));
    json_t *capacity = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s},s:[{s:s,s:s,s:s,s:s}]},s:s,s:{s:o},s:s,s:s}", "apiVersion",
        "storage.k8s.io/v1", "kind", "CSIStorageCapacity", "metadata", "name", name, "namespace",
        kube_client_namespace(t->client), "labels", "csi.storage.k8s.io/drivername",
        json_str(class, "provisioner"), NODE_KEY, kube_name(node), "ownerReferences", "apiVersion",
        "v1", "kind", "Node", "name", kube_name(node), "uid", kube_uid(node), "storageClassName",
        kube_name(class), "nodeTopology", "matchLabels", topolvm_topology(node), "capacity",
        topolvm_size(room, size), "maximumVolumeSize", size);
    return capacity;
}

static bool same(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"nodeTopology", "capacity", "maximumVolumeSize"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
            return false;
    }
    return json_equal(json_at(a, "metadata", "ownerReferences"),
                      json_at(b, "metadata", "ownerReferences"));
}

static int write(struct topolvm *t, const json_t *wanted, struct err *e)
{
    const char *ns = kube_namespace(wanted), *name = kube_name(wanted);
    json_auto_t *there = kube_informer_json(t->capacities, ns, name, NULL);
    json_auto_t *now = NULL;
    if (there && same(there, wanted))
        return 0;
    if (!there) {
        struct err why = {0};
        now = kube_create(t->client, &t->capacities_r, wanted, NULL, &why);
        if (now)
            return 0;
        *e = why;
        return why.code == ERR_ALREADY_EXISTS ? err_set(e, ERR_ABORTED, "Conflict", "it is there")
                                              : -1;
    }
    json_object_set_new(json_object_get((json_t *)(uintptr_t)wanted, "metadata"), "resourceVersion",
                        json_string(kube_version(there)));
    now = kube_update(t->client, &t->capacities_r, wanted, NULL, e);
    return now ? 0 : -1;
}

/* Those of the node that are not in `wanted` (by name). */
static int sweep(struct topolvm *t, const char *node, const json_t *wanted, struct err *e)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(t->capacities, "node", node, &found);
    for (size_t i = 0; i < found.len; i++) {
        const struct kube_delete o = {.uid = found.p[i]->uid, .grace_seconds = -1};
        if (!json_object_get(wanted, found.p[i]->name) &&
            kube_delete(t->client, &t->capacities_r, found.p[i]->ns, found.p[i]->name, &o, e) < 0)
            return -1;
    }
    return 0;
}

static int ensure_driver(struct topolvm *t, const char *name, struct err *e)
{
    _cleanup_(kube_object_unrefp) struct kube_object *there =
        kube_informer_get(t->drivers, NULL, name);
    if (there)
        return 0;
    json_auto_t *driver =
        json_pack("{s:s,s:s,s:{s:s},s:{s:b,s:b,s:b,s:[s]}}", "apiVersion", "storage.k8s.io/v1",
                  "kind", "CSIDriver", "metadata", "name", name, "spec", "attachRequired", 0,
                  "podInfoOnMount", 1, "storageCapacity", 1, "volumeLifecycleModes", "Persistent");
    struct err why = {0};
    json_auto_t *made = kube_create(t->client, &t->drivers_r, driver, NULL, &why);
    if (made || why.code == ERR_ALREADY_EXISTS)
        return 0;
    *e = why;
    return -1;
}

static int publish(struct topolvm *t, const json_t *node, const json_t *class, json_t *wanted,
                   struct err *e)
{
    int64_t room;
    topolvm_ledger_lock(t->ledger);
    bool known =
        topolvm_ledger_room(t->ledger, kube_name(node), node, topolvm_class_of(class), &room);
    topolvm_ledger_unlock(t->ledger);
    if (!known)
        return 0;
    json_auto_t *capacity = make(t, node, class, kube_condition_is_true(node, "Ready") ? room : 0);
    json_object_set_new(wanted, kube_name(capacity), json_true());
    return ensure_driver(t, json_str(class, "provisioner"), e) < 0 ? -1 : write(t, capacity, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct topolvm *t = context;
    (void)ns;
    (void)ret;
    json_auto_t *node = kube_informer_json(t->ledger->nodes, NULL, name, NULL);
    json_auto_t *wanted = json_object();
    _cleanup_(kube_objects_done) struct kube_objects classes = {0};
    kube_informer_list(t->classes, NULL, &classes);
    for (size_t i = 0; node && i < classes.len; i++) {
        json_auto_t *class = kube_object_json(classes.p[i]);
        if (topolvm_is_ours(json_str(class, "provisioner")) &&
            publish(t, node, class, wanted, e) < 0)
            return -1;
    }
    return sweep(t, name, wanted, e);
}

static void node_values(const json_t *capacity, struct kube_index_values *out)
{
    const char *node = kube_label(capacity, NODE_KEY);
    if (node)
        kube_index_add(out, node);
}

static void map_capacity(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *capacity = kube_object_json(object);
    const char *node = kube_label(capacity, NODE_KEY);
    if (node)
        kube_controller_add(c, NULL, node);
}

static void map_lv(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    json_auto_t *lv = kube_object_json(object);
    kube_controller_add_after(c, NULL, logical_volume_of(lv).spec.node_name, CLOCK_SECOND / 20);
}

static void map_class(struct kube_controller *c, const struct kube_object *class, void *context)
{
    struct topolvm *t = context;
    (void)class;
    _cleanup_(kube_objects_done) struct kube_objects nodes = {0};
    kube_informer_list(t->ledger->nodes, NULL, &nodes);
    for (size_t i = 0; i < nodes.len; i++)
        kube_controller_add(c, NULL, nodes.p[i]->name);
}

/* What was promised and is not made, of each node and class that it has. */
static void collect(void *context, struct metrics_out *out)
{
    struct topolvm *t = context;
    _cleanup_(kube_objects_done) struct kube_objects nodes = {0};
    kube_informer_list(t->ledger->nodes, NULL, &nodes);
    metrics_out_family(out, "orlop_topolvm_reserved_bytes",
                       "Room that volumes will take which are not made or grown yet.",
                       METRICS_GAUGE);
    for (size_t i = 0; i < nodes.len; i++) {
        json_auto_t *node = kube_object_json(nodes.p[i]), *classes = topolvm_classes(node);
        size_t k;
        json_t *class;
        json_array_foreach(classes, k, class) {
            const char *name = json_str(class, "name");
            if (!name)
                continue;
            int64_t bytes = topolvm_ledger_pending(t->ledger, node, name);
            metrics_out_value(out, METRICS_LABELS("node", "device_class"),
                              METRICS_VALUES(kube_name(node), name), (double)bytes);
        }
    }
}

int topolvm_setup_publish(struct topolvm *t, struct kube_manager *m, struct err *e)
{
    static const struct kube_index by_node = {"node", node_values};
    kube_informer_add_index(t->capacities, &by_node);
    metrics_collect(t->metrics, collect, t);
    const struct kube_controller_options o = {
        .name = "topolvm-capacity", .workers = 1, .reconcile = reconcile, .context = t};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    const struct kube_source sources[] = {
        {.informer = t->ledger->nodes},
        {.informer = t->classes, .map = map_class, .context = t},
        {.informer = t->capacities, .map = map_capacity},
        {.informer = t->drivers, .map = map_class, .context = t},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        kube_controller_watch(c, sources[i]);
    kube_groups_watch(&t->ledger->lvs, c, (struct kube_source){.map = map_lv});
    return 0;
}

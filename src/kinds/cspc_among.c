/*
 * CStorPoolCluster among the other objects: its nodes, its devices, its instances and their volumes.
 *
 * A pool goes on as long as it has one of its devices, as in cspc.c; the same goes for a group in it.
 *
 *     new pool        a node of its own; each device may be had
 *     pool goes on    each device that is new in it may be had; at most one replaced in a group
 *       ... moves     another node: all its devices are there
 *     pool is gone    nothing lives on it
 *     deletion        nothing lives on any
 */
#include "kinds/blockdevice.h"
#include "kinds/cspc.h"
#include "kinds/pool.h"

const char *api_cspc_object_name(const json_t *object)
{
    return json_text(object, "metadata", "name");
}

const char *api_cspc_label(const json_t *object, const char *key)
{
    return json_text(object, "metadata", "labels", key);
}

const char *api_cspc_annotation(const json_t *object, const char *key)
{
    return json_text(object, "metadata", "annotations", key);
}

static const json_t *pools_of(const json_t *cluster)
{
    return pool_cluster_of(cluster).pools;
}

/* Each device of a cluster, with a value, into a map. */
static void each_device(const json_t *cluster, struct map *into,
                        void *(*value)(const json_t *cluster, size_t pool, size_t group))
{
    size_t i;
    json_t *pool;
    json_array_foreach(pools_of(cluster), i, pool) {
        pool_each_device(pool, it)
            map_set(into, it.name, value(cluster, i, it.group));
    }
}

static void *its_name(const json_t *cluster, size_t pool, size_t group)
{
    (void)pool;
    (void)group;
    return (void *)api_cspc_object_name(cluster);
}

static void *its_place(const json_t *cluster, size_t pool, size_t group)
{
    (void)cluster;
    return api_cspc_place(pool, group);
}

static int view_init(struct api_cspc_view *v, const struct api_among *a, struct err *e)
{
    const struct api_lookup *l = a->lookup;
    const json_t *metadata = json_object_get(a->object, "metadata");
    const char *ns = json_str(metadata, "namespace");
    *v = (struct api_cspc_view){
        .a = a, .ns = ns ? ns : "default", .name = api_cspc_object_name(a->object)};
    v->nodes = l->list(l->context, &api_kubernetes_node, NULL, e);
    v->claims = v->nodes ? l->list(l->context, &api_block_device_claim, v->ns, e) : NULL;
    v->clusters = v->claims ? l->list(l->context, &api_cstor_pool_cluster, v->ns, e) : NULL;
    if (!v->clusters)
        return -1;
    size_t i;
    json_t *it;
    json_array_foreach(v->claims, i, it) {
        const char *device = block_device_claim_of(it).spec.device;
        /* Of several that want it the one that has it counts. */
        if (*device && (block_device_claim_is_bound(it) || !map_has(&v->claim_of, device)))
            map_set(&v->claim_of, device, it);
    }
    json_array_foreach(v->clusters, i, it) {
        if (!str_eq(api_cspc_object_name(it), v->name))
            each_device(it, &v->cluster_of, its_name);
    }
    each_device(a->old, &v->place_of, its_place);
    v->node_of = mem_zalloc((json_array_size(pools_of(a->object)) + 1) * sizeof(*v->node_of));
    return 0;
}

static void view_done(struct api_cspc_view *v)
{
    map_done(&v->claim_of);
    map_done(&v->cluster_of);
    map_done(&v->place_of);
    free(v->node_of);
    json_decref(v->nodes);
    json_decref(v->claims);
    json_decref(v->clusters);
}

/* The place, in the old cluster, of a device of the pool that was in it; NULL: it is a new pool. */
static const void *old_place(const struct api_cspc_view *v, const json_t *pool)
{
    pool_each_device(pool, it) {
        const void *place = map_get(&v->place_of, it.name);
        if (place)
            return place;
    }
    return NULL;
}

static const json_t *old_pool(const struct api_cspc_view *v, const json_t *pool)
{
    const void *place = old_place(v, pool);
    return place ? json_array_get(pools_of(v->a->old), api_cspc_place_pool(place)) : NULL;
}

/* Nodes. */

static bool selects(const json_t *selector, const json_t *node)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value) {
        const json_t *label = json_at(node, "metadata", "labels", key);
        if (!label || !json_equal(label, value))
            return false;
    }
    return true;
}

/* The node of a pool; a problem where there is not exactly one and `must` says that it is needed. */
static const json_t *find_node(const struct api_cspc_view *v, const json_t *pool, bool must,
                               const struct api_path *at)
{
    const json_t *selector = json_object_get(pool, "nodeSelector"), *found = NULL;
    _cleanup_(str_done) struct str names = {0};
    size_t i, n = 0;
    json_t *node;
    json_array_foreach(v->nodes, i, node) {
        if (!selects(selector, node))
            continue;
        if (n < 5)
            str_appendf(&names, "%s%s", n ? ", " : "", api_cspc_object_name(node));
        found = node;
        n++;
    }
    if (n == 1)
        return found;
    if (must && n)
        api_problem(v->a->report, API_KEY(at, "nodeSelector"), API_INVALID, selector,
                    "selects %zu nodes (%s%s) and must select exactly one; kubernetes.io/hostname "
                    "does [node-selector]",
                    n, str_get(&names), n > 5 ? ", ..." : "");
    else if (must)
        api_problem(v->a->report, API_KEY(at, "nodeSelector"), API_INVALID, selector,
                    "no node has these labels; `kubectl get nodes --show-labels` shows those "
                    "there are [node-selector]");
    return NULL;
}

/* Whether the pool gets a device that it had not. */
static bool gets_device(const struct api_cspc_view *v, const json_t *pool)
{
    pool_each_device(pool, it) {
        if (!map_has(&v->place_of, it.name))
            return true;
    }
    return false;
}

static bool moves(const json_t *old, const json_t *pool)
{
    return old &&
           !json_equal(json_object_get(old, "nodeSelector"), json_object_get(pool, "nodeSelector"));
}

/* Finds the nodes of all pools; different selectors must not lead to the same. */
static void find_nodes(struct api_cspc_view *v, const struct api_path *pools_at)
{
    const json_t *pools = pools_of(v->a->object);
    _cleanup_free_ bool *changes = mem_zalloc(json_array_size(pools) + 1);
    struct map taken = {0};
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool) {
        const json_t *old = old_pool(v, pool);
        changes[i] = !old || moves(old, pool) || gets_device(v, pool);
        const json_t *node = v->node_of[i] = find_node(v, pool, changes[i], API_AT(pools_at, i));
        size_t first =
            node ? (size_t)map_set(&taken, api_cspc_object_name(node), (void *)(i + 1)) : 0;
        if (first && (changes[i] || changes[first - 1]))
            api_problem(v->a->report, API_KEY(API_AT(pools_at, i), "nodeSelector"), API_DUPLICATE,
                        json_object_get(pool, "nodeSelector"),
                        "this is node \"%s\", which spec.pools[%zu] is for already; a node has one "
                        "pool of a cluster [one-pool-per-node]",
                        api_cspc_object_name(node), first - 1);
    }
    map_done(&taken);
}

/* Devices. */

static int check_group(const struct api_cspc_view *v, const json_t *old, const json_t *group,
                       const json_t *node, const struct api_path *at, struct err *e)
{
    const void *place = NULL;
    raid_each_device(group, it) {
        const void *its = map_get(&v->place_of, it.name);
        const struct api_path *device_at = API_AT(API_KEY(at, "blockDevices"), it.device);
        if (its)
            place = its;
        else if (api_cspc_check_device(v, it.json, node, device_at, e) < 0)
            return -1;
    }
    if (!old || !place)
        return 0;
    const json_t *before =
        json_array_get(json_object_get(old, "raidGroups"), api_cspc_place_group(place));
    return api_cspc_check_replaced(v, before, group, at, e);
}

/* All devices that a pool takes along are where it goes; the first that is not is reported. */
static int check_move(const struct api_cspc_view *v, const json_t *pool, const json_t *node,
                      const struct api_path *at, struct err *e)
{
    bool fine = true;
    pool_each_device(pool, it) {
        if (!map_has(&v->place_of, it.name))
            continue; /* it is looked at as one that is new */
        if (api_cspc_check_moved(v, it.name, node, API_KEY(at, "nodeSelector"), &fine, e) < 0)
            return -1;
        if (!fine)
            return 0;
    }
    return 0;
}

static int check_pool(const struct api_cspc_view *v, size_t index, const json_t *pool,
                      const struct api_path *at, struct err *e)
{
    const json_t *old = old_pool(v, pool), *node = v->node_of[index];
    if (moves(old, pool) && node && check_move(v, pool, node, at, e) < 0)
        return -1;
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        if (check_group(v, old, group, node, API_AT(API_KEY(at, "raidGroups"), i), e) < 0)
            return -1;
    }
    return 0;
}

static int check_removed(const struct api_cspc_view *v, const struct api_path *pools_at,
                         struct err *e)
{
    const json_t *before = pools_of(v->a->old);
    _cleanup_free_ bool *continued = mem_zalloc(json_array_size(before) + 1);
    json_auto_t *instances = NULL;
    size_t i;
    json_t *pool;
    json_array_foreach(pools_of(v->a->object), i, pool) {
        const void *place = old_place(v, pool);
        if (place)
            continued[api_cspc_place_pool(place)] = true;
    }
    json_array_foreach(before, i, pool) {
        const struct api_lookup *l = v->a->lookup;
        if (continued[i])
            continue;
        if (!instances)
            instances = l->list(l->context, &api_cstor_pool_instance, v->ns, e);
        if (!instances || api_cspc_check_gone(v, instances, i, pool, pools_at, e) < 0)
            return -1;
    }
    return 0;
}

static int check_all(struct api_cspc_view *v, struct err *e)
{
    const struct api_path *pools_at = API_KEY(API_KEY(NULL, "spec"), "pools");
    find_nodes(v, pools_at);
    size_t i;
    json_t *pool;
    json_array_foreach(pools_of(v->a->object), i, pool) {
        if (check_pool(v, i, pool, API_AT(pools_at, i), e) < 0)
            return -1;
    }
    return check_removed(v, pools_at, e);
}

int api_cstor_pool_cluster_among(const struct api_among *a, struct err *e)
{
    if (!a->object)
        return api_cspc_check_deletion(a, e);
    struct api_cspc_view v;
    int r = view_init(&v, a, e) < 0 ? -1 : check_all(&v, e);
    view_done(&v);
    return r;
}

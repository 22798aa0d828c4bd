/*
 * CStorPoolCluster: the pools that a user wants, one per node.
 */
#include "base/map.h"
#include "kinds/pool.h"

#define CSPC struct pool_cluster
#define POOL struct pool_spec

static const struct api_field pool_spec[] = {
    {"nodeSelector", API_STRING, API_MAP, API_REQUIRED, API_JSON(POOL, node_selector),
     .keys = &api_qualified_name, .format = &api_label_value,
     .doc = "Labels of the one node that has the devices; kubernetes.io/hostname as a rule."},
    {"raidGroups", API_OBJECT, API_LIST, API_REQUIRED, API_ARRAY(POOL, groups),
     .fields = api_raid_group, .aliases = API_ALIASES("dataRaidGroups"),
     .doc = "The groups of devices that make up the pool."},
    {"writeCacheRaidGroups", API_OBJECT, API_LIST, API_FOLDED, .fields = api_raid_group,
     .doc = "Published form only: groups with isWriteCache."},
    {"poolConfig", API_OBJECT, API_STRUCT(POOL, config), .def = "{}", .fields = api_pool_config,
     .doc = "Settings of the pool."},
    {0},
};

static const struct api_field spec[] = {
    {"pools", API_OBJECT, API_LIST, API_REQUIRED, API_JSON(CSPC, pools), .fields = pool_spec,
     .doc = "One entry per pool. Add one to scale out, remove one to delete that pool."},
    {"resources", API_OBJECT, .fields = api_resources,
     .doc = "Resources of pool containers whose poolConfig says none."},
    {"auxResources", API_OBJECT, .fields = api_resources,
     .doc = "Resources of side-car containers whose poolConfig says none."},
    {"tolerations", API_OBJECT, API_LIST, .fields = api_toleration,
     .doc = "Tolerations of pool pods whose poolConfig says none."},
    {"priorityClassName", API_STRING,
     .doc = "Priority class of pool pods whose poolConfig says none."},
    {0},
};

/* Quantities; older writers have ZFS's own words, such as 68.5K. */
static const struct api_field capacity[] = {
    {"total", API_INT_OR_STRING, .doc = "Size of all pools together."},
    {"free", API_INT_OR_STRING, .doc = "Space that is free."},
    {"used", API_INT_OR_STRING, .doc = "Space that is used."},
    {0},
};

/* What is known of each pool also when its instance is gone; the instance says more while it is there. */
static const struct api_field instance[] = {
    {"name", API_STRING, API_TEXT(struct pool_record, name), .flags = API_REQUIRED,
     .doc = "Name of the pool's CStorPoolInstance."},
    {"hostName", API_STRING, .doc = "Node that has the pool."},
    {"phase", API_STRING, .doc = "State of the pool, as its instance says."},
    {"guid", API_STRING, API_TEXT(struct pool_record, guid), .format = &api_sequence,
     .doc = "Identity of the pool as written on its devices; an instance that is made again for "
            "them imports it."},
    {"raidGroups", API_OBJECT, API_LIST, .fields = api_raid_group,
     .doc = "Its groups, as its instance had them last."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING,
     .doc = "State of the pools as a whole: Pending, ONLINE, DEGRADED, OFFLINE or Deleting."},
    {"capacity", API_OBJECT, .fields = capacity, .doc = "Sum over the pools."},
    {"desiredInstances", API_INT, .min = 0, .max = INT32_MAX, .doc = "Pools that are asked for."},
    {"provisionedInstances", API_INT, .min = 0, .max = INT32_MAX, .doc = "Pools that are there."},
    {"healthyInstances", API_INT, .min = 0, .max = INT32_MAX, .doc = "Pools that are online."},
    {"instances", API_OBJECT, API_LIST, API_JSON(CSPC, records), .fields = instance,
     .merge_key = "name", .doc = "The pools, one by one."},
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",
     .doc = "What is under way or wrong: Ready, PoolsProvisioned, PoolsUpToDate, PoolsDeleted, "
            "PoolManagerAvailable."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The pools that are wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The pools that are there."},
    {0},
};

struct pool_cluster pool_cluster_of(const json_t *json)
{
    struct pool_cluster cluster = {0};
    api_decode(fields, json, &cluster, NULL);
    return cluster;
}

struct pool_spec pool_spec_of(const json_t *json, struct arena *arena)
{
    struct pool_spec pool = {0};
    api_decode(pool_spec, json, &pool, arena);
    return pool;
}

struct pool_record pool_record_of(const json_t *json)
{
    struct pool_record record = {0};
    api_decode(instance, json, &record, NULL);
    return record;
}

static const struct api_column columns[] = {
    {"HealthyInstances", "integer", ".status.healthyInstances", "Pools that are online"},
    {"ProvisionedInstances", "integer", ".status.provisionedInstances", "Pools that are there"},
    {"DesiredInstances", "integer", ".status.desiredInstances", "Pools that are asked for"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

static const struct api_path *const pools_at = API_KEY(API_KEY(NULL, "spec"), "pools");

static void normalize(json_t *object, struct api_report *report)
{
    size_t i;
    json_t *pool;
    json_array_foreach((json_t *)json_at(object, "spec", "pools"), i, pool) {
        if (json_is_object(pool))
            api_pool_normalize(pool, API_AT(pools_at, i), report);
    }
}

/* The node selector as text, the same for the same selector. */
static char *node_text(const json_t *pool)
{
    json_t *selector = json_object_get(pool, "nodeSelector");
    void *only = json_object_iter(selector);
    if (json_object_size(selector) == 1) /* nearly always */
        return mem_printf("%s=%s", json_object_iter_key(only),
                          json_string_value(json_object_iter_value(only)));
    return json_dumps(selector, JSON_SORT_KEYS | JSON_COMPACT);
}

/* A node has one pool of a cluster: no two pools select it in the same words. */
static void check_duplicate_nodes(const json_t *pools, struct api_report *report)
{
    struct map seen = {0};
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool) {
        _cleanup_free_ char *node = node_text(pool);
        size_t first = (size_t)map_get(&seen, node);
        if (first)
            api_problem(report, API_KEY(API_AT(pools_at, i), "nodeSelector"), API_DUPLICATE,
                        json_object_get(pool, "nodeSelector"),
                        "spec.pools[%zu] is for this node already; a node has one pool "
                        "of a cluster [one-pool-per-node]",
                        first - 1);
        else
            map_set(&seen, node, (void *)(i + 1));
    }
    map_done(&seen);
}

static void validate(const json_t *object, struct api_report *report)
{
    const json_t *pools = json_at(object, "spec", "pools");
    struct map devices = {0};
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool)
        api_pool_validate(pool, API_AT(pools_at, i), &devices, report);
    map_done(&devices);
    check_duplicate_nodes(pools, report);
}

/* What an old pool is found by: its devices and, failing those, its node. */
struct old_pools {
    struct map by_device, by_node; /* index + 1 */
};

static void map_old_pools(const json_t *pools, struct old_pools *old)
{
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool) {
        _cleanup_free_ char *node = node_text(pool);
        map_set(&old->by_node, node, (void *)(i + 1));
        pool_each_device(pool, it)
            map_set(&old->by_device, it.name, (void *)(i + 1));
    }
}

/*
 * The old pool, index + 1, whose devices the pool has and so continues; 0: none, or an error
 * reported. The devices of a pool stay together: it is an error when they come from two pools, or
 * when another pool has continued the one they come from.
 */
static size_t find_by_device(const struct old_pools *old, bool *continued, const json_t *pool,
                             const struct api_path *at, struct api_report *report)
{
    size_t match = 0;
    pool_each_device(pool, it) {
        size_t owner = (size_t)map_get(&old->by_device, it.name);
        if (!owner || owner == match)
            continue;
        if (match || continued[owner]) {
            const struct api_path *group_at = API_AT(API_KEY(at, "raidGroups"), it.group);
            const struct api_path *device_at = API_AT(API_KEY(group_at, "blockDevices"), it.device);
            api_problem(report, API_KEY(device_at, "blockDeviceName"), API_FORBIDDEN,
                        json_object_get(it.json, "blockDeviceName"),
                        "is in use by another pool of this cluster; use a free device "
                        "[device-one-group]");
            return 0;
        }
        match = owner;
    }
    continued[match] = true;
    return match;
}

/*
 * A pool is the same pool as before when it has devices of it, wherever it is now (a changed node
 * selector is a migration). A pool with none of the old devices on the node of an old pool that no
 * other pool continues is taken for that pool with all its devices exchanged, and refused. A pool
 * that is gone is deleted, a pool that is new is created; both are allowed here.
 */
static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const json_t *old_pools = json_at(old, "spec", "pools"),
                 *pools = json_at(object, "spec", "pools");
    struct old_pools known = {0};
    map_old_pools(old_pools, &known);
    _cleanup_free_ bool *continued = mem_zalloc(json_array_size(old_pools) + 1);
    _cleanup_free_ size_t *match = mem_zalloc((json_array_size(pools) + 1) * sizeof(size_t));

    unsigned before = report->errors;
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool)
        match[i] = find_by_device(&known, continued, pool, API_AT(pools_at, i), report);
    bool mixed = report->errors > before; /* then what follows would only repeat it */
    json_array_foreach(mixed ? NULL : pools, i, pool) {
        _cleanup_free_ char *node = node_text(pool);
        size_t same_node = (size_t)map_get(&known.by_node, node);
        if (!match[i] && !continued[same_node])
            match[i] = same_node;
        if (match[i])
            api_pool_validate_update(json_array_get(old_pools, match[i] - 1), pool,
                                     API_AT(pools_at, i), report);
    }
    map_done(&known.by_device);
    map_done(&known.by_node);
}

static void publish(json_t *object, struct api_report *report)
{
    size_t i;
    json_t *pool;
    json_array_foreach((json_t *)json_at(object, "spec", "pools"), i, pool)
        api_pool_publish(pool, API_AT(pools_at, i), report);
}

const struct api_kind api_cstor_pool_cluster = {
    .kind = "CStorPoolCluster",
    .plural = "cstorpoolclusters",
    .singular = "cstorpoolcluster",
    .short_names = API_WORDS("cspc"),
    .versions = (const struct api_group_version[]){{"openebs.io", "v1alpha1"},
                                                   {"cstor.openebs.io", "v1"},
                                                   {0}},
    .published = 1,
    .flags = API_STATUS,
    .fields = fields,
    .columns = columns,
    .normalize = normalize,
    .validate = validate,
    .validate_update = validate_update,
    .among = api_cstor_pool_cluster_among,
    .publish = publish,
    .doc = "ZFS pools over a set of nodes, and every change to them: add a device or a group to "
           "grow a pool, replace a device by writing another name, add or remove a pool.",
};

/*
 * What an edit of the cluster changes in pools that exist.
 *
 *     1  migration      another node selector: when every device is on the new node
 *     2  expansion      a device more in a stripe, a group more: when the devices are claimed
 *     3  replacement    another device in a mirror or raidz: when it is claimed, and its claim says what it
 *                       replaces
 *
 * Of one pool all that can be done is done with one write of its instance; orlop-pool does the rest, and of a
 * pool that moves the Deployment follows its instance (pool.c). What has to wait says why. Nothing is begun while a pool of the cluster is being made or destroyed.
 */
#include "controllers/cspc/cspc.h"
#include "json/patch.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

struct operation {
    struct cspc_run *r;
    const struct cspc_pool *pool;
    json_t *instance; /* borrowed */
    json_t *spec;     /* owned: as it is to be */
    const char *host; /* another value of the label kubernetes.io/hostname; NULL */
    struct str done;  /* what was changed, for people */
};

static bool is_under_way(const struct cspc_run *r)
{
    size_t i;
    json_t *instance;
    vec_for_each(&r->plan.pools, p) {
        if (!p->instance)
            return true;
    }
    json_array_foreach(r->instances, i, instance) {
        if (kube_deleting(instance))
            return true;
    }
    return r->plan.unwanted.len > 0;
}

/* Whether orlop-pool has made or found the pool. */
static bool is_made(const json_t *instance)
{
    static const char *const words[] = {"", "Pending", "Init", NULL};
    return !str_in(pool_instance_of(instance, NULL).status.phase, words);
}

/* 1 */

static bool is_attached(struct operation *o, const char *name, const char *node)
{
    json_auto_t *device = cspc_device(o->r->c, kube_namespace(o->r->cluster), name);
    const struct block_device its = block_device_of(device);
    bool here = str_eq(its.spec.node_name, node);
    if (here && str_eq(its.status.state, "Active"))
        return true;
    cspc_trouble(o->r, CSPC_OPERATION, false, "DevicesNotAttached",
                 "pool %s moves to node %s when all its devices are there: %s is %s%s",
                 kube_name(o->instance), node, name, here ? "" : "on ",
                 here                  ? "not Active"
                 : *its.spec.node_name ? its.spec.node_name
                                       : "no node");
    return false;
}

/* False: it waits, and so does the rest. */
static bool migrate(struct operation *o, json_t **ret_node)
{
    json_t *selector = json_object_get(o->pool->spec, "nodeSelector");
    const char *from = json_str(o->spec, "hostName");
    if (json_equal(selector, json_object_get(o->spec, "nodeSelector")))
        return true;
    json_t *node = cspc_node(o->r, CSPC_OPERATION, selector);
    *ret_node = node;
    if (!node)
        return false;
    if (!from || !str_eq(from, kube_name(node))) {
        bool all = true;
        pool_each_device(o->spec, it)
            all &= is_attached(o, it.name, kube_name(node));
        if (!all)
            return false;
        const char *host = kube_label(node, API_POOL_HOSTNAME);
        o->host = host ? host : kube_name(node);
        str_appendf(&o->done, "it moves from node %s to %s", from ? from : "(none)",
                    kube_name(node));
        json_object_set_new(o->spec, "hostName", json_string(kube_name(node))); /* it was from */
        cspc_describe(o->r, o->spec);
    }
    json_object_set(o->spec, "nodeSelector", selector);
    return true;
}

/* 2 and 3 */

static int claim(struct operation *o, const char *device, const char *predecessor, struct err *e)
{
    return cspc_claim(o->r, CSPC_OPERATION, device, json_str(o->spec, "hostName"), predecessor, e);
}

static int claim_group(struct operation *o, const json_t *group, struct err *e)
{
    int all = 1;
    raid_each_device(group, it) {
        int bound = claim(o, it.name, NULL, e);
        if (bound < 0)
            return -1;
        all &= bound;
    }
    return all;
}

/* As its BlockDevice says, or where that is gone as the instance knew it; 0: nobody knows. */
static int64_t device_size(struct operation *o, const char *name)
{
    json_auto_t *device = cspc_device(o->r->c, kube_namespace(o->r->cluster), name);
    int64_t size = block_device_of(device).spec.size;
    if (size)
        return size;
    pool_each_device(o->spec, it) {
        if (str_eq(it.name, name))
            return api_quantity_int(json_object_get(it.json, "capacity"));
    }
    return 0;
}

static bool is_large_enough(struct operation *o, const struct cspc_change *change)
{
    int64_t new = device_size(o, change->device);
    if (!new || new >= device_size(o, change->old))
        return true;
    cspc_trouble(o->r, CSPC_OPERATION, false, "DeviceTooSmall",
                 "device %s is smaller than %s, which it is to replace in pool %s; use one of at "
                 "least its size",
                 change->device, change->old, kube_name(o->instance));
    return false;
}

/* Whether another replacement has to be over first: of this group, or that of the device itself. */
static bool has_to_wait(struct operation *o, const struct cspc_change *change)
{
    const json_t *group = json_array_get(json_object_get(o->spec, "raidGroups"), change->group);
    raid_each_device(group, it) {
        json_auto_t *claim = cspc_claim_of(o->r, it.name);
        const char *old = claim ? cspc_predecessor(claim) : NULL;
        if (!old)
            continue;
        cspc_trouble(o->r, CSPC_OPERATION, true, "ReplacementInProgress",
                     "pool %s: %s replaces %s when %s has replaced %s", kube_name(o->instance),
                     change->device, change->old, it.name, old);
        return true;
    }
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_free_ char *key =
        mem_printf("%s/%s", kube_namespace(o->r->cluster), kube_name(o->r->cluster));
    kube_informer_find(o->r->c->claims, CSPC_BY_CLUSTER, key, &found);
    for (size_t n = 0; n < found.len; n++) {
        json_auto_t *claim = kube_object_json(found.p[n]);
        const char *old = cspc_predecessor(claim);
        if (!old || !str_eq(old, change->device))
            continue;
        cspc_trouble(o->r, CSPC_OPERATION, true, "ReplacementInProgress",
                     "device %s is being replaced itself; use another, or wait until that is done",
                     change->device);
        return true;
    }
    return false;
}

/* 1: it can be put into the spec. */
static int prepare(struct operation *o, const struct cspc_change *change, struct err *e)
{
    switch (change->kind) {
    case CSPC_NEW_GROUP:
        return claim_group(o, change->wanted, e);
    case CSPC_ADD_DEVICE:
        return claim(o, change->device, NULL, e);
    case CSPC_REPLACE_DEVICE:
        return is_large_enough(o, change) && !has_to_wait(o, change)
                   ? claim(o, change->device, change->old, e)
                   : 0;
    case CSPC_NOT_POSSIBLE:
        break;
    }
    cspc_trouble(o->r, CSPC_OPERATION, false, "NotPossible", "pool %s, device %s: %s",
                 kube_name(o->instance), change->device ? change->device : "", change->why);
    return 0;
}

static void note_done(struct operation *o, const struct cspc_change *change)
{
    const char *comma = o->done.len ? ", " : "";
    if (change->kind == CSPC_NEW_GROUP)
        str_appendf(&o->done, "%sit gets another group", comma);
    else if (change->kind == CSPC_ADD_DEVICE)
        str_appendf(&o->done, "%sit gets device %s", comma, change->device);
    else
        str_appendf(&o->done, "%sdevice %s replaces %s", comma, change->device, change->old);
}

static int change_groups(struct operation *o, struct err *e)
{
    struct cspc_changes changes = {0};
    int status = 0;
    cspc_changes_find(o->pool->spec, o->instance, &changes);
    vec_for_each(&changes, change) {
        int ready = status < 0 ? 0 : prepare(o, change, e);
        if (ready < 0)
            status = -1;
        if (ready <= 0)
            continue;
        cspc_change_apply(o->spec, o->pool->spec, change);
        note_done(o, change);
    }
    if (changes.len && status == 0)
        cspc_describe(o->r, o->spec);
    vec_done(&changes);
    return status;
}

static int write_spec(struct operation *o, struct err *e)
{
    json_t *diff = json_merge_diff(json_object_get(o->instance, "spec"), o->spec);
    if (!json_object_size(diff)) {
        json_decref(diff);
        return 0;
    }
    json_t *patch = json_pack("{s:o}", "spec", diff);
    if (o->host)
        json_object_set_new(patch, "metadata",
                            json_pack("{s:{s:s}}", "labels", API_POOL_HOSTNAME, o->host));
    if (cspc_patch(o->r->c, &o->r->c->instances_r, o->instance, patch, "instance changed", e) < 0)
        return -1;
    if (o->done.len)
        kube_event_normal(o->r->c->recorder, o->r->cluster, "PoolChanged", "Pool %s: %s",
                          kube_name(o->instance), str_get(&o->done));
    return 0;
}

/* Whether the pool spec asks for anything that the instance has not. */
static bool differs(const struct cspc_pool *pool)
{
    const json_t *spec = json_object_get(pool->instance, "spec");
    struct cspc_changes changes = {0};
    cspc_changes_find(pool->spec, pool->instance, &changes);
    size_t n = changes.len;
    vec_done(&changes);
    return n || !json_equal(json_object_get(pool->spec, "nodeSelector"),
                            json_object_get(spec, "nodeSelector"));
}

/* Settings of the pool may change at any time. */
static void take_config(struct operation *o)
{
    json_t *config = json_object_get(o->pool->spec, "poolConfig");
    if (config)
        json_object_set(o->spec, "poolConfig", config);
}

static int operate(struct cspc_run *r, const struct cspc_pool *pool, bool under_way, struct err *e)
{
    struct operation o = {.r = r, .pool = pool, .instance = pool->instance};
    o.spec = json_deep_copy(json_object_get(pool->instance, "spec"));
    json_t *node = NULL;
    int status = 0;
    take_config(&o);
    if (differs(pool) && under_way)
        cspc_trouble(r, CSPC_OPERATION, true, "PoolsPending",
                     "pool %s is changed when no pool of the cluster is being made or destroyed",
                     kube_name(pool->instance));
    else if (differs(pool) && !is_made(pool->instance))
        cspc_trouble(r, CSPC_OPERATION, true, "PoolNotReady", "pool %s is changed when it is there",
                     kube_name(pool->instance));
    else if (migrate(&o, &node))
        status = change_groups(&o, e);
    if (status == 0)
        status = write_spec(&o, e);
    json_decref(node);
    json_decref(o.spec);
    str_done(&o.done);
    return status;
}

int cspc_operate(struct cspc_run *r, struct err *e)
{
    bool under_way = is_under_way(r);
    vec_for_each(&r->plan.pools, pool) {
        if (pool->instance && !kube_deleting(pool->instance) && operate(r, pool, under_way, e) < 0)
            return -1;
    }
    return 0;
}

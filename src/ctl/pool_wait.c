/*
 * What --wait waits for: all pools of a cluster as they are asked for, or gone.
 */
#include "ctl/pools.h"

/* Adds what is known of a resilver; false: there is none. */
static bool append_resilver(const struct pool_instance *instance, struct str *out)
{
    if (instance->status.resilver.percent == POOL_NOT_SAID)
        return false;
    const char *device = instance->status.resilver.device;
    str_appendf(out, ", %s: %d %% of %s", kube_name(instance->json),
                (int)instance->status.resilver.percent, *device ? device : "a device");
    return true;
}

/* Whether the instance has all devices that the pool is to have, by what it says of them. */
static bool has_devices(const struct pool_instance *instance, const json_t *pool)
{
    pool_each_device(pool, it) {
        bool found = false;
        for (size_t i = 0; i < instance->status.devices.len; i++)
            found |= str_eq(instance->status.devices.p[i].name, it.name);
        if (!found)
            return false;
    }
    return true;
}

/* Whether a device is still in the place of another: until then its claim says so. 1, 0, -1. */
static int is_replacing(const struct ctl_pool_change *c, struct err *e)
{
    const struct kube_resource r = kube_resource("openebs.io/v1alpha1", "BlockDeviceClaim");
    json_auto_t *claims = kube_list(c->client, &r, c->ns, NULL, e);
    size_t i;
    json_t *claim;
    json_array_foreach(claims, i, claim) {
        const char *cluster = kube_label(claim, API_POOL_CLUSTER);
        const char *old = kube_annotation(claim, API_POOL_PREDECESSOR);
        if (cluster && str_eq(cluster, c->name) && old && *old)
            return 1;
    }
    return claims ? 0 : -1;
}

/* Whether all pools of the cluster are there, online, with the devices that are asked for. */
int ctl_pool_is_converged(void *context, struct str *ret_progress, struct err *e)
{
    const struct ctl_pool_change *c = context;
    json_auto_t *cluster = ctl_cstor_get(c->client, &api_cstor_pool_cluster, c->ns, c->name, e);
    json_auto_t *instances = cluster ? ctl_instances_of(c->client, c->ns, c->name, e) : NULL;
    if (!instances)
        return -1;
    const json_t *wanted = pool_cluster_of(cluster).pools;
    size_t i, ready = 0, pools = json_array_size(wanted);
    bool busy = false;
    json_t *pool;
    _cleanup_(str_done) struct str detail = {0};
    _cleanup_(arena_done) struct arena arena = {0};
    json_array_foreach(wanted, i, pool) {
        const struct pool_instance instance =
            pool_instance_of(ctl_instance_of(instances, pool), &arena);
        bool there =
            json_equal(instance.spec.node_selector, pool_spec_of(pool, NULL).node_selector);
        busy |= append_resilver(&instance, &detail);
        ready += str_eq(instance.status.phase, "ONLINE") && there && has_devices(&instance, pool);
    }
    int replacing = is_replacing(c, e);
    str_appendf(ret_progress, "%s: %zu of %zu pools are online%s", c->name, ready, pools,
                str_get(&detail));
    return replacing < 0
               ? -1
               : ready == pools && !busy && !replacing && json_array_size(instances) == pools;
}

int ctl_pool_is_gone(void *context, struct str *ret_progress, struct err *e)
{
    const struct ctl_pool_change *c = context;
    json_auto_t *instances = ctl_instances_of(c->client, c->ns, c->name, e);
    struct err why = {0};
    if (!instances)
        return -1;
    json_auto_t *cluster = ctl_cstor_get(c->client, &api_cstor_pool_cluster, c->ns, c->name, &why);
    if (!cluster && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    size_t pools = json_array_size(pool_cluster_of(cluster).pools);
    size_t are = json_array_size(instances);
    bool whole = !c->node; /* the cluster itself goes too */
    size_t left = whole ? are : are > pools ? are - pools : 0;
    str_appendf(ret_progress, "%s: %zu pool%s left", c->name, left, left == 1 ? " is" : "s are");
    return whole ? !cluster && !are : are <= pools;
}

/*
 * What --wait waits for: all pools of a cluster as they are asked for, or gone.
 */
#include "ctl/pools.h"

static bool is_online(const json_t *instance)
{
    return str_eq(ctl_text(instance, "status", "phase"), "ONLINE");
}

/* Adds what is known of a resilver; false: there is none. */
static bool append_resilver(const json_t *instance, struct str *out)
{
    const json_t *resilver = json_at(instance, "status", "resilver");
    if (!resilver)
        return false;
    const char *device = json_str(resilver, "blockDeviceName");
    str_appendf(out, ", %s: %d %% of %s", kube_name(instance),
                (int)json_integer_value(json_object_get(resilver, "percent")),
                device ? device : "a device");
    return true;
}

/* Whether all pools of the cluster are there, online, with the devices that are asked for. */
int ctl_pool_is_converged(void *context, struct str *ret_progress, struct err *e)
{
    const struct ctl_pool_change *c = context;
    const struct kube_resource r = ctl_clusters();
    json_auto_t *cluster = kube_get(c->client, &r, c->ns, c->name, e);
    json_auto_t *instances = cluster ? ctl_instances_of(c->client, c->ns, c->name, e) : NULL;
    if (!instances)
        return -1;
    size_t i, ready = 0, pools = json_array_size(json_at(cluster, "spec", "pools"));
    bool busy = false;
    json_t *pool;
    _cleanup_(str_done) struct str detail = {0};
    json_array_foreach(json_at(cluster, "spec", "pools"), i, pool) {
        const json_t *instance = ctl_instance_of(instances, pool);
        bool there = json_equal(json_at(instance, "spec", "nodeSelector"),
                                json_object_get(pool, "nodeSelector"));
        busy |= append_resilver(instance, &detail);
        ready += is_online(instance) && there;
    }
    size_t with = 0;
    json_array_foreach(instances, i, pool)
        with += c->device && ctl_pool_has(json_object_get(pool, "spec"), c->device);
    str_appendf(ret_progress, "%s: %zu of %zu pools are online%s", c->name, ready, pools,
                str_get(&detail));
    return ready == pools && !busy && (!c->device || with) && json_array_size(instances) == pools;
}

int ctl_pool_is_gone(void *context, struct str *ret_progress, struct err *e)
{
    const struct ctl_pool_change *c = context;
    const struct kube_resource r = ctl_clusters();
    json_auto_t *instances = ctl_instances_of(c->client, c->ns, c->name, e);
    struct err why = {0};
    if (!instances)
        return -1;
    json_auto_t *cluster = kube_get(c->client, &r, c->ns, c->name, &why);
    if (!cluster && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    size_t pools = json_array_size(json_at(cluster, "spec", "pools"));
    size_t are = json_array_size(instances);
    bool whole = !c->node; /* the cluster itself goes too */
    str_appendf(ret_progress, "%s: %zu pools are left", c->name, whole ? are : are - pools);
    return whole ? !cluster && !are : are <= pools;
}

/*
 * pool scrub and pool clear: what is asked of pools by an annotation on their instances. They answer each
 * value once, and say in their status which they answered.
 */
#include "base/rfc3339.h"
#include "ctl/pools.h"
#include "kube/groups.h"

/* Asks every pool of the cluster, or that of --node. */
static int ask(struct ctl_pool_change *c, const char *annotation, const char *what, struct err *e)
{
    const char *node = ctl_settings(c->args)->node;
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock_system())), RFC3339_MICRO, now);
    json_auto_t *cluster = ctl_pool_cluster(c, e);
    json_auto_t *instances = cluster ? ctl_instances_of(c->client, c->ns, c->name, e) : NULL;
    json_auto_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", annotation, now);
    size_t i, n = 0;
    json_t *instance;
    if (!instances)
        return -1;
    json_array_foreach(instances, i, instance) {
        if (node && !str_eq(ctl_node_of(instance, json_object_get(instance, "spec")), node))
            continue;
        const struct kube_resource r = kube_resource_of(instance);
        json_auto_t *is =
            kube_patch(c->client, &r, c->ns, kube_name(instance), KUBE_MERGE_PATCH, patch, NULL, e);
        if (!is)
            return -1;
        printf(CTL_INSTANCE "/%s %s requested\n", kube_name(instance), what);
        n++;
    }
    return n ? 0
             : err_set(e, ERR_NOT_FOUND, "NotFound", "%s has no pool%s%s yet", c->name,
                       node ? " on node " : "", node ? node : "");
}

static int run_request(const struct cli_args *args, const char *annotation, const char *what)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = ctl_pool_begin(args, &c);
    return status != CLI_DONE ? status : ctl_pool_end(&c, ask(&c, annotation, what, &e), &e);
}

static int run_scrub(const struct cli_args *args)
{
    return run_request(args, API_POOL_SCRUB, "scrub");
}

static int run_clear(const struct cli_args *args)
{
    return run_request(args, API_POOL_CLEAR, "clear");
}

static const struct cli_option options[] = {
    CTL_NODE_OPTION("Ask only the pool of this node."),
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(pool_scrub) = {
    .name = "pool scrub",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Read all data of pools and repair what is damaged",
    .doc =
        "Asks the pools of a cluster to read everything they hold, compare it with its checksums, "
        "and repair it from redundancy. `orlop pool show` shows the result.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop pool scrub fast --node node-1", "Scrub the pool of node-1."},
            {NULL},
        },
    .run = run_scrub,
};

CLI_COMMAND(pool_clear) = {
    .name = "pool clear",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Reset the error counters of devices and retry failed ones",
    .doc = "Asks the pools of a cluster to reset the error counters of their devices and to try "
           "failed "
           "devices again, for example after a cable was put back. What they missed is copied to "
           "them. A suspended pool resumes by itself when its devices do.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop pool clear fast --node node-1", "Retry the devices of node-1."},
            {NULL},
        },
    .run = run_clear,
};

/*
 * pool scrub and pool clear: what is asked of pools by an annotation on their instances. They answer each
 * value once, and say in their status which they answered.
 */
#include "base/rfc3339.h"
#include "ctl/commands.h"
#include "ctl/pools.h"
#include "kube/groups.h"

/* Asks every pool of the cluster, or that of --node. */
static int ask(struct ctl_pool_change *c, const char *annotation, const char *what, struct err *e)
{
    const char *node = cli_get(c->args, "node");
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

static int run(const struct cli_args *args, const char *annotation, const char *what)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = ctl_pool_begin(args, &c);
    return status != CLI_DONE ? status : ctl_pool_end(&c, ask(&c, annotation, what, &e), &e);
}

int ctl_pool_scrub(const struct cli_args *args)
{
    return run(args, API_POOL_SCRUB, "scrub");
}

int ctl_pool_clear(const struct cli_args *args)
{
    return run(args, API_POOL_CLEAR, "clear");
}

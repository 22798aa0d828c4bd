/*
 * pool delete and pool forget: a pool that goes, and one that is gone.
 *
 * Forgetting is told by a mark on the instance (API_POOL_FORGOTTEN) before the pool leaves the cluster, so
 * that whoever sees it go finds the mark: what is on its devices is then left alone.
 */
#include "base/rfc3339.h"
#include "ctl/pools.h"
#include "kube/groups.h"

static int remove_pool(struct ctl_pool_change *c, json_t *cluster, struct err *e)
{
    json_t *pools = (json_t *)json_at(cluster, "spec", "pools");
    const json_t *pool = ctl_pool_of_node(c, cluster, c->node, e);
    if (!pool)
        return -1;
    if (json_array_size(pools) == 1)
        return err_set(e, ERR_FAILED_PRECONDITION, "LastPool",
                       "this is the last pool of %s; `orlop pool delete %s` deletes the cluster",
                       c->name, c->name);
    for (size_t i = 0; i < json_array_size(pools); i++) {
        if (json_array_get(pools, i) == pool)
            return json_array_remove(pools, i);
    }
    return 0;
}

static int delete (struct ctl_pool_change *c, struct err *e)
{
    c->node = ctl_settings(c->args)->node;
    if (c->node)
        return ctl_pool_edit(c, remove_pool, "changed", e);
    json_auto_t *cluster = ctl_pool_cluster(c, e);
    if (!cluster)
        return -1;
    const struct kube_resource r = kube_resource_of(cluster);
    const struct kube_delete o = {.uid = kube_uid(cluster), .grace_seconds = -1};
    if (kube_delete(c->client, &r, c->ns, c->name, &o, e) < 0)
        return -1;
    printf(CTL_CLUSTER " \"%s\" deleted\n", c->name);
    fflush(stdout);
    return 0;
}

static int run_delete(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = ctl_pool_begin(args, &c);
    if (status != CLI_DONE)
        return status;
    int r = delete (&c, &e);
    if (r == 0)
        r = ctl_pool_wait(&c, ctl_pool_is_gone, &e);
    return ctl_pool_end(&c, r, &e);
}

static const struct cli_option delete_options[] = {
    CTL_NODE_OPTION("Delete only the pool of this node; the cluster keeps the others."),
    CTL_WAIT_OPTIONS,
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(pool_delete) = {
    .name = "pool delete",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Delete pools and their data",
    .doc =
        "Deletes a CStorPoolCluster, or with --node one pool of it. Refused while volumes live on "
        "a pool that would go. The devices are released and cleaned.",
    .settings = sizeof(struct ctl_settings),
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool delete fast --node node-2 --wait", "Delete the pool of node-2."},
            {NULL},
        },
    .run = run_delete,
};

/* Forget. */

static const json_t *instance_on(const json_t *instances, const char *node)
{
    size_t i;
    json_t *instance;
    json_array_foreach(instances, i, instance) {
        if (str_eq(ctl_node_of(instance, NULL), node))
            return instance;
    }
    return NULL;
}

/* Whether the cluster still asks for it. */
static bool is_wanted(const json_t *cluster, const json_t *instances, const json_t *instance)
{
    size_t i;
    json_t *pool;
    json_array_foreach(pool_cluster_of(cluster).pools, i, pool) {
        if (ctl_instance_of(instances, pool) == instance)
            return !kube_deleting(instance) && !kube_deleting(cluster);
    }
    return false;
}

/* word NULL: takes the mark off. */
static int mark(struct ctl_pool_change *c, const json_t *instance, const char *word, struct err *e)
{
    const struct kube_resource r = kube_resource_of(instance);
    json_auto_t *patch =
        json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", API_POOL_FORGOTTEN, word);
    json_auto_t *now =
        kube_patch(c->client, &r, c->ns, kube_name(instance), KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static int check_silent(struct ctl_pool_change *c, const json_t *instance, struct err *e)
{
    int64_t age = ctl_lease_age(c->client, c->ns, kube_name(instance), e);
    if (age < 0 || ctl_settings(c->args)->force)
        return age == -2 ? -1 : 0;
    return err_set(
        e, ERR_FAILED_PRECONDITION, "Alive",
        "pool %s lives: its process said so %lld s ago. `orlop pool delete %s --node %s` "
        "removes it in order; --force forgets it, and leaves what is on its disks",
        kube_name(instance), (long long)age, c->name, c->node);
}

static int forget(struct ctl_pool_change *c, struct err *e)
{
    c->node = ctl_settings(c->args)->node;
    json_auto_t *cluster = ctl_pool_cluster(c, e);
    json_auto_t *instances = cluster ? ctl_instances_of(c->client, c->ns, c->name, e) : NULL;
    const json_t *instance = instances ? instance_on(instances, c->node) : NULL;
    if (!instances)
        return -1;
    if (!instance)
        return err_set(e, ERR_NOT_FOUND, "NotFound",
                       "%s has no pool on node \"%s\"; `orlop pool list %s` shows those it has",
                       c->name, c->node, c->name);
    json_auto_t *who = check_silent(c, instance, e) == 0
                           ? ctl_forget_word(c->client, ctl_settings(c->args)->force, e)
                           : NULL;
    _cleanup_(str_done) struct str word = {0};
    if (!who)
        return -1;
    json_format(who, &word);
    bool going = !is_wanted(cluster, instances, instance);
    bool last = json_array_size(pool_cluster_of(cluster).pools) == 1;
    if (mark(c, instance, str_get(&word), e) < 0)
        return -1;
    if (going || last) {
        printf(CTL_INSTANCE "/%s forgotten%s%s\n", kube_name(instance),
               going ? ""
                     : "; it is the last pool of the cluster, which goes with: orlop pool delete ",
               going ? "" : c->name);
        return 0;
    }
    if (ctl_pool_edit(c, remove_pool, "changed, a pool of it forgotten", e) == 0)
        return 0;
    (void)mark(c, instance, NULL, &(struct err){0}); /* it stays in the cluster: nothing was said */
    return -1;
}

static int run_forget(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = ctl_pool_begin(args, &c);
    if (status != CLI_DONE)
        return status;
    int r = forget(&c, &e);
    if (r == 0)
        r = ctl_pool_wait(&c, ctl_pool_is_gone, &e);
    return ctl_pool_end(&c, r, &e);
}

static const struct cli_option forget_options[] = {
    {"node", 'N', "NODE", CLI_STRING, CTL_AT(node), .required = true,
     .doc = "The node whose pool will not come back."},
    {"force", 0, NULL, CLI_SWITCH, CTL_AT(force),
     .doc = "Forget it even if its process has renewed its Lease in time."},
    CTL_WAIT_OPTIONS,
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(pool_forget) = {
    .name = "pool forget",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Stop waiting for a pool that will not come back",
    .doc =
        "Declares that a pool is lost for good, with its node or its disks, and takes it out of "
        "the cluster. Its instance, and an Event, record who said so and when. Nothing on its "
        "disks is touched: if they come back after all, they are not wiped, and nobody can claim "
        "them until you wipe them.\n\n"
        "Refused while volumes live on it, and while its process is alive: `orlop pool delete` "
        "removes such a pool in order.",
    .settings = sizeof(struct ctl_settings),
    .options = forget_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool forget fast --node node-3", "node-3 is gone, with its disks."},
            {NULL},
        },
    .run = run_forget,
};

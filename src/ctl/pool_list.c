/*
 * pool list: a line for each pool that is asked for or there.
 */
#include <inttypes.h>

#include "ctl/pools.h"

/* What is under way in a pool; "" for nothing. */
static const char *activity_of(const struct pool_instance *instance, char buf[64])
{
    buf[0] = '\0';
    if (instance->status.resilver.percent != POOL_NOT_SAID)
        snprintf(buf, 64, "resilver %" PRId64 " %%", instance->status.resilver.percent);
    else if (instance->status.read_only)
        snprintf(buf, 64, "read-only");
    return buf;
}

static size_t devices_of(const json_t *pool)
{
    size_t n = 0;
    pool_each_device(pool, it)
        n++;
    return n;
}

/* A pool with its instance; either may be NULL. */
static void add_row(struct ctl_table *t, const json_t *cluster, const json_t *pool,
                    const json_t *json)
{
    const struct pool_instance instance = pool_instance_of(json, NULL);
    const json_t *total = instance.status.capacity.total;
    char size[CTL_BYTES_MAX], full[16] = "", age[AGE_MAX], replicas[24] = "", devices[24], busy[64];
    const char *phase = instance.status.phase;
    int percent = ctl_percent(instance.status.capacity.used, total);
    if (percent >= 0)
        snprintf(full, sizeof(full), "%d%%", percent);
    if (json)
        snprintf(replicas, sizeof(replicas), "%" PRId64, instance.status.provisioned_replicas);
    snprintf(devices, sizeof(devices), "%zu",
             devices_of(pool ? pool : json_object_get(json, "spec")));
    const char *state = !json                 ? "Missing"
                        : kube_deleting(json) ? "Deleting"
                        : !pool               ? "Unwanted"
                        : *phase              ? phase
                                              : "Pending";
    ctl_table_add(t, (const char *const[]){
                         cluster ? kube_name(cluster) : kube_label(json, API_POOL_CLUSTER),
                         json ? kube_name(json) : "", ctl_node_of(json, pool), state,
                         ctl_bytes(total, size), full, replicas,
                         ctl_age(json ? json : cluster, age), devices, activity_of(&instance, busy),
                         kube_namespace(cluster ? cluster : json)});
}

static bool is_wanted(const struct cli_args *args, const json_t *pool, const json_t *instance)
{
    const char *wanted = ctl_settings(args)->node, *node = ctl_node_of(instance, pool);
    return !wanted || (node && str_eq(wanted, node));
}

static json_t *instances_in(const json_t *instances, const json_t *cluster)
{
    json_t *own = json_array(), *instance;
    size_t i;
    json_array_foreach(instances, i, instance) {
        const char *of = kube_label(instance, API_POOL_CLUSTER);
        if (of && str_eq(of, kube_name(cluster)) &&
            str_eq(kube_namespace(instance), kube_namespace(cluster)))
            json_array_append(own, instance);
    }
    return own;
}

static void add_cluster(const struct cli_args *args, struct ctl_table *t, const json_t *cluster,
                        const json_t *instances)
{
    json_auto_t *own = instances_in(instances, cluster), *known = json_array();
    size_t i, j;
    json_t *pool, *instance, *it;
    json_array_foreach(pool_cluster_of(cluster).pools, i, pool) {
        const json_t *its = ctl_instance_of(own, pool);
        if (its)
            json_array_append(known, (json_t *)its);
        if (is_wanted(args, pool, its))
            add_row(t, cluster, pool, its);
    }
    json_array_foreach(own, i, instance) {
        bool shown = false;
        json_array_foreach(known, j, it)
            shown |= it == instance;
        if (!shown && is_wanted(args, json_object_get(instance, "spec"), instance))
            add_row(t, cluster, NULL, instance);
    }
}

/* Those that were named, or all. */
static json_t *find(const struct cli_args *args, struct kube_client *client, const char *ns,
                    struct err *e)
{
    if (!args->count)
        return ctl_cstor_list(client, &api_cstor_pool_cluster, ns, NULL, e);
    json_auto_t *clusters = json_array();
    for (int i = 0; i < args->count; i++) {
        json_t *cluster =
            ctl_cstor_get(client, &api_cstor_pool_cluster, ns ? ns : "openebs", args->words[i], e);
        if (!cluster)
            return NULL;
        json_array_append_new(clusters, cluster);
    }
    return json_incref(clusters);
}

static void print_table(const struct cli_args *args, const json_t *clusters,
                        const json_t *instances)
{
    static const char *const titles[] = {"CLUSTER", "POOL",     "NODE",      "STATE",
                                         "SIZE",    "USED",     "REPLICAS",  "AGE",
                                         "DISKS",   "ACTIVITY", "NAMESPACE", NULL};
    static const char *const narrow[] = {"CLUSTER", "POOL",     "NODE", "STATE", "SIZE",
                                         "USED",    "REPLICAS", "AGE",  NULL};
    const char *output = ctl_settings(args)->output;
    struct ctl_table t;
    size_t i;
    json_t *cluster;
    ctl_table_init(&t, output && str_eq(output, "wide") ? titles : narrow);
    json_array_foreach(clusters, i, cluster)
        add_cluster(args, &t, cluster, instances);
    if (json_array_size(t.rows) > 1)
        ctl_table_print(&t, stdout);
    else
        fputs("No pools found\n", stderr);
    ctl_table_done(&t);
}

static int list(const struct cli_args *args, struct kube_client *client, struct err *e)
{
    const char *ns = ctl_namespace(args, client);
    json_auto_t *clusters = find(args, client, ns, e);
    json_auto_t *instances =
        clusters ? ctl_cstor_list(client, &api_cstor_pool_instance, ns, NULL, e) : NULL;
    if (!instances)
        return -1;
    json_auto_t *own = json_array();
    size_t i, j;
    json_t *cluster, *instance;
    json_array_foreach(clusters, i, cluster) {
        json_auto_t *its = instances_in(instances, cluster);
        json_array_foreach(its, j, instance) {
            if (is_wanted(args, json_object_get(instance, "spec"), instance))
                json_array_append(own, instance);
        }
    }
    if (!ctl_print_objects(args, own, CTL_INSTANCE))
        print_table(args, clusters, instances);
    return 0;
}

static int run_list(const struct cli_args *args)
{
    return ctl_run(args, list);
}

static const struct cli_option options[] = {
    CTL_LIST_OPTION("disks, activity and namespace"),
    CTL_NODE_OPTION("Show only those of this node."),
    CTL_ALL_NAMESPACES_OPTION,
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(pool_list) = {
    .name = "pool list",
    .topic = CLI_STORAGE,
    .arguments = "[CLUSTER]...",
    .most = -1,
    .summary = "Show pools",
    .doc = "Shows the pools of CStorPoolClusters: where each is, its state, and how full it is. A "
           "pool "
           "that is asked for and does not exist yet is shown as Missing. As json or yaml it shows "
           "the CStorPoolInstances.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop pool list -o wide", "Show all, with their activity."},
            {"orlop pool list -o name", "Print names, for a script."},
            {NULL},
        },
    .run = run_list,
};

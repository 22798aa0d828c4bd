/*
 * pool create, expand, replace and migrate: one edit of a CStorPoolCluster each, which admission judges, and
 * with --wait what becomes of it.
 *
 * An edit is made on the object as it is; when somebody else was faster it is made again on what they
 * left.
 */
#include "ctl/pools.h"

enum { TRIES = 5 };

int ctl_pool_wait(struct ctl_pool_change *c, ctl_done_fn *is_done, struct err *e)
{
    return ctl_settings(c->args)->wait ? ctl_wait(c->args, "pool show", is_done, c, e) : 0;
}

/* Edits. */

static void report(const struct ctl_pool_change *c, json_t *cluster, const char *done)
{
    const char *output = ctl_settings(c->args)->output;
    if (output && !str_eq(output, "name")) {
        ctl_print(cluster, output);
    } else {
        printf(CTL_CLUSTER "/%s%s%s%s\n", c->name, output ? "" : " ", output ? "" : done,
               !output && ctl_settings(c->args)->dry_run ? " (dry run)" : "");
    }
    fflush(stdout);
}

json_t *ctl_pool_cluster(const struct ctl_pool_change *c, struct err *e)
{
    return ctl_cstor_get(c->client, &api_cstor_pool_cluster, c->ns, c->name, e);
}

int ctl_pool_edit(struct ctl_pool_change *c, ctl_edit_fn *fn, const char *done, struct err *e)
{
    const struct kube_write w = {.dry_run = ctl_settings(c->args)->dry_run};
    for (int tries = TRIES;; tries--) {
        struct err why = {0};
        json_auto_t *cluster = ctl_pool_cluster(c, e);
        if (!cluster || fn(c, cluster, e) < 0)
            return -1;
        json_auto_t *now = ctl_cstor_update(c->client, &api_cstor_pool_cluster, cluster, &w, &why);
        if (now) {
            report(c, now, done);
            return 0;
        }
        if (why.code == ERR_ABORTED && tries)
            continue;
        *e = why;
        return -1;
    }
}

int ctl_pool_begin(const struct cli_args *args, struct ctl_pool_change *c)
{
    struct err e = {0};
    *c = (struct ctl_pool_change){.args = args, .name = args->words[0]};
    c->client = ctl_connect(args, &e);
    c->ns = ctl_namespace(args, c->client);
    return c->client ? CLI_DONE : cli_fail(args, "%s", e.msg);
}

int ctl_pool_end(struct ctl_pool_change *c, int status, const struct err *e)
{
    if (c->client)
        kube_client_free(c->client);
    if (status < 0)
        return cli_fail(c->args, "%s", e->msg);
    return cli_finish(c->args);
}

/* Create and expand. */

static int add_groups(struct ctl_pool_change *c, json_t *cluster, struct err *e)
{
    const struct kube_resource nodes_r = kube_resource("v1", "Node"), disks_r = ctl_disks();
    json_auto_t *nodes = kube_list(c->client, &nodes_r, NULL, NULL, e);
    json_auto_t *disks = nodes ? kube_list(c->client, &disks_r, c->ns, NULL, e) : NULL;
    return disks ? ctl_add_groups(c->args, cluster, nodes, disks, e) : -1;
}

static void set_config(const struct ctl_pool_change *c, json_t *cluster)
{
    const char *compression = ctl_settings(c->args)->compression;
    size_t i;
    json_t *pool;
    json_array_foreach((json_t *)json_at(cluster, "spec", "pools"), i, pool) {
        json_t *config = json_object_get(pool, "poolConfig");
        if (compression)
            json_object_set_new(config, "compression", json_string(compression));
        if (ctl_settings(c->args)->thin)
            json_object_set_new(config, "overProvisioning", json_true());
    }
}

static json_t *new_cluster(const char *ns, const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:[]}}", "apiVersion", "openebs.io/v1alpha1",
                     "kind", "CStorPoolCluster", "metadata", "name", name, "namespace", ns, "spec",
                     "pools");
}

/* What is wrong with the command line is said before anybody is asked. */
static int check_groups(const struct cli_args *args)
{
    struct err e = {0};
    json_auto_t *scratch = new_cluster("", args->words[0]);
    return ctl_add_groups(args, scratch, NULL, NULL, &e) < 0 ? cli_misuse(args, "%s", e.msg)
                                                             : CLI_DONE;
}

/* Groups of devices; each may be given several times, and their order is kept. */
#define GROUP_OPTION(name, text)                                                                   \
    {                                                                                              \
        name, 0, "NODE:DISK,...", CLI_ITEMS, CTL_AT(groups), .doc = text                           \
    }
#define GROUP_OPTIONS                                                                              \
    GROUP_OPTION("stripe", "Disks without redundancy: losing one loses the pool."),                \
        GROUP_OPTION("mirror", "A group in which every disk has all data."),                       \
        GROUP_OPTION("raidz", "A group that survives the loss of one disk."),                      \
        GROUP_OPTION("raidz2", "A group that survives the loss of two disks."),                    \
        GROUP_OPTION("log", "Disks that speed up synchronous writes; two or more are a mirror."),  \
        GROUP_OPTION("cache", "Disks that cache reads."),                                          \
        GROUP_OPTION("spare", "Disks that take over when another one fails.")

#define CHANGE_OPTIONS                                                                             \
    {"dry-run",                                                                                    \
     0,                                                                                            \
     NULL,                                                                                         \
     CLI_SWITCH,                                                                                   \
     CTL_AT(dry_run),                                                                              \
     .doc = "Change nothing: with -o, show what would be asked for."},                             \
        CTL_MADE_OPTION, CTL_WAIT_OPTIONS, CTL_NAMESPACE_OPTION, CTL_API_OPTIONS

static int create(struct ctl_pool_change *c, struct err *e)
{
    bool dry = ctl_settings(c->args)->dry_run;
    json_auto_t *cluster = new_cluster(c->ns, c->name);
    if ((dry ? ctl_add_groups(c->args, cluster, NULL, NULL, e) : add_groups(c, cluster, e)) < 0)
        return -1;
    set_config(c, cluster);
    json_auto_t *made = dry ? json_incref(cluster)
                            : ctl_cstor_create(c->client, &api_cstor_pool_cluster, cluster, e);
    if (!made)
        return -1;
    report(c, made, "created");
    return dry ? 0 : ctl_pool_wait(c, ctl_pool_is_converged, e);
}

static int run_create(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c = {
        .args = args, .name = args->words[0], .ns = ctl_namespace(args, NULL)};
    int status = check_groups(args);
    if (status == CLI_DONE && !ctl_settings(args)->dry_run)
        status = ctl_pool_begin(args, &c);
    return status != CLI_DONE ? status : ctl_pool_end(&c, create(&c, &e), &e);
}

static const struct cli_option create_options[] = {
    GROUP_OPTIONS,
    {"compression", 0, "WORD", CLI_STRING, CTL_AT(compression),
     .doc = "Compression of new data: off, lz4, zstd, gzip, ...; without it off."},
    {"thin", 0, NULL, CLI_SWITCH, CTL_AT(thin),
     .doc = "Let volumes promise more than the pools can hold."},
    CHANGE_OPTIONS,
    {0},
};

CLI_COMMAND(pool_create) = {
    .name = "pool create",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Create pools from disks",
    .doc = "Creates a CStorPoolCluster: each node that is named gets a pool of the groups that are "
           "given for it, in their order.\n\n" CTL_DISK_DOC "\n\n"
           "With --dry-run it asks no API, takes disks by name, and shows the manifest.",
    .settings = sizeof(struct ctl_settings),
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool create fast --mirror node-1:sdb,sdc --mirror node-2:sdb,sdc --wait",
             "Create a mirror on each of two nodes."},
            {"orlop pool create fast --raidz2 node-1:bd-1,bd-2,bd-3,bd-4 --log node-1:bd-5 "
             "--dry-run -o yaml",
             "Show only the manifest."},
            {NULL},
        },
    .run = run_create,
};

/* An edit from the command line to its end. */
static int run_edit(const struct cli_args *args, ctl_edit_fn *fn, const char *done)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = ctl_pool_begin(args, &c);
    if (status != CLI_DONE)
        return status;
    int r = ctl_pool_edit(&c, fn, done, &e);
    if (r == 0 && !ctl_settings(args)->dry_run)
        r = ctl_pool_wait(&c, ctl_pool_is_converged, &e);
    return ctl_pool_end(&c, r, &e);
}

static int run_expand(const struct cli_args *args)
{
    int status = check_groups(args);
    return status != CLI_DONE ? status : run_edit(args, add_groups, "expanded");
}

static const struct cli_option expand_options[] = {
    GROUP_OPTIONS,
    CHANGE_OPTIONS,
    {0},
};

CLI_COMMAND(pool_expand) = {
    .name = "pool expand",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Add devices, groups or pools to a cluster",
    .doc =
        "Adds to a CStorPoolCluster. Disks of --stripe join the stripe of their node's pool; any "
        "other group is added to it; a node without a pool gets one. What was added cannot be "
        "taken out again.\n\n" CTL_DISK_DOC,
    .settings = sizeof(struct ctl_settings),
    .options = expand_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool expand fast --mirror node-1:sdd,sde", "Add a second mirror on node-1."},
            {"orlop pool expand fast --mirror node-3:sdb,sdc", "Add a pool on a third node."},
            {NULL},
        },
    .run = run_expand,
};

/* Replace. */

/* The entry of a device in spec.pools[], and its pool; NULL. */
static json_t *find_entry(const json_t *cluster, const char *device, json_t **ret_pool)
{
    size_t i;
    json_array_foreach((json_t *)pool_cluster_of(cluster).pools, i, *ret_pool) {
        pool_each_device(*ret_pool, it) {
            if (str_eq(it.name, device))
                return (json_t *)it.json;
        }
    }
    return NULL;
}

static int replace(struct ctl_pool_change *c, json_t *cluster, struct err *e)
{
    const struct kube_resource disks_r = ctl_disks();
    const char *old = c->args->words[1], *new = c->args->words[2];
    json_auto_t *disks = kube_list(c->client, &disks_r, c->ns, NULL, e);
    if (!disks)
        return -1;
    json_t *pool, *entry = find_entry(cluster, old, &pool);
    const json_t *disk = entry ? NULL : ctl_disk_find(disks, NULL, old, NULL);
    if (disk)
        entry = find_entry(cluster, kube_name(disk), &pool);
    if (!entry)
        return err_set(e, ERR_NOT_FOUND, "NotFound",
                       "no pool of %s has the disk \"%s\"; `orlop pool show %s` shows them",
                       c->name, old, c->name);
    disk = ctl_disk_find(disks, ctl_node_of(NULL, pool), new, NULL);
    if (!disk)
        disk = ctl_disk_find(disks, NULL, new, e); /* where it is instead, admission says */
    if (!disk)
        return -1;
    json_object_set_new(entry, "blockDeviceName", json_string(kube_name(disk)));
    json_object_del(entry, "capacity"); /* those were of the old one */
    json_object_del(entry, "devLink");
    return 0;
}

static int run_replace(const struct cli_args *args)
{
    return run_edit(args, replace, "changed");
}

static const struct cli_option change_options[] = {
    CHANGE_OPTIONS,
    {0},
};

CLI_COMMAND(pool_replace) = {
    .name = "pool replace",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER OLD NEW",
    .least = 3,
    .most = 3,
    .summary = "Put a disk in the place of another",
    .doc = "Replaces a device of a mirror, raidz or raidz2 group. The new one is filled from the "
           "others, then the old one is released and cleaned. With --wait the command shows the "
           "progress.\n\n" CTL_DISK_DOC,
    .settings = sizeof(struct ctl_settings),
    .options = change_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool replace fast bd-2 sdf --wait", "Replace the broken bd-2 by sdf."},
            {NULL},
        },
    .run = run_replace,
};

/* Migrate. */

static json_t *find_node(struct ctl_pool_change *c, const char *name, struct err *e)
{
    const struct kube_resource r = kube_resource("v1", "Node");
    return kube_get(c->client, &r, NULL, name, e);
}

/* The pool that is on a node, which may be gone. */
json_t *ctl_pool_of_node(struct ctl_pool_change *c, const json_t *cluster, const char *name,
                         struct err *e)
{
    struct err why = {0};
    json_auto_t *node = find_node(c, name, &why);
    json_t *pool = ctl_pool_on(cluster, name, node);
    if (!pool)
        err_set(e, ERR_NOT_FOUND, "NotFound", "%s has no pool on node \"%s\"", c->name, name);
    return pool;
}

static int migrate(struct ctl_pool_change *c, json_t *cluster, struct err *e)
{
    json_t *pool = ctl_pool_of_node(c, cluster, c->args->words[1], e);
    json_auto_t *node = pool ? find_node(c, c->args->words[2], e) : NULL;
    if (!node)
        return -1;
    const char *host = kube_label(node, API_POOL_HOSTNAME);
    json_object_set_new(pool, "nodeSelector",
                        json_pack("{s:s}", API_POOL_HOSTNAME, host ? host : kube_name(node)));
    return 0;
}

static int run_migrate(const struct cli_args *args)
{
    return run_edit(args, migrate, "changed");
}

CLI_COMMAND(pool_migrate) = {
    .name = "pool migrate",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER FROM TO",
    .least = 3,
    .most = 3,
    .summary = "Move a pool to the node that has its disks now",
    .doc = "Declares that the pool of node FROM is on node TO from now on. Attach all its devices "
           "there first: until they are seen on the new node, the command is refused.",
    .settings = sizeof(struct ctl_settings),
    .options = change_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool migrate fast node-1 node-4 --wait",
             "The disks of node-1 are in node-4 now."},
            {NULL},
        },
    .run = run_migrate,
};

/*
 * pool create, expand, replace, migrate, scrub and delete: one edit of a CStorPoolCluster each, which
 * admission judges, and with --wait what becomes of it.
 *
 * An edit is made on the object as it is; when somebody else was faster it is made again on what they
 * left.
 */
#include "base/rfc3339.h"
#include "ctl/commands.h"
#include "ctl/pools.h"

enum { TRIES = 5 };

typedef int edit_fn(struct ctl_pool_change *c, json_t *cluster, struct err *e);

static bool has(const struct ctl_pool_change *c, const char *option)
{
    return cli_get(c->args, option) != NULL;
}

static int wait_for(struct ctl_pool_change *c, ctl_done_fn *is_done, struct err *e)
{
    return has(c, "wait") ? ctl_wait(c->args, "pool show", is_done, c, e) : 0;
}

/* Edits. */

static void report(const struct ctl_pool_change *c, json_t *cluster, const char *done)
{
    const char *output = cli_get(c->args, "output");
    if (output && !str_eq(output, "name")) {
        json_object_del(json_object_get(cluster, "metadata"), "managedFields");
        ctl_print(cluster, output);
    } else {
        printf(CTL_CLUSTER "/%s%s%s%s\n", c->name, output ? "" : " ", output ? "" : done,
               !output && has(c, "dry-run") ? " (dry run)" : "");
    }
    fflush(stdout);
}

static json_t *cluster_of(const struct ctl_pool_change *c, struct err *e)
{
    return ctl_cstor_get(c->client, &api_cstor_pool_cluster, c->ns, c->name, e);
}

static int edit(struct ctl_pool_change *c, edit_fn *fn, const char *done, struct err *e)
{
    const struct kube_write w = {.dry_run = has(c, "dry-run")};
    for (int tries = TRIES;; tries--) {
        struct err why = {0};
        json_auto_t *cluster = cluster_of(c, e);
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

static int begin(const struct cli_args *args, struct ctl_pool_change *c)
{
    struct err e = {0};
    *c = (struct ctl_pool_change){.args = args, .name = args->words[0]};
    if (ctl_check_timeout(args) != CLI_DONE)
        return CLI_USAGE;
    c->client = ctl_connect(args, &e);
    c->ns = ctl_namespace(args, c->client);
    return c->client ? CLI_DONE : cli_fail(args, "%s", e.msg);
}

static int end(struct ctl_pool_change *c, int status, const struct err *e)
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
    const char *compression = cli_get(c->args, "compression");
    size_t i;
    json_t *pool;
    json_array_foreach((json_t *)json_at(cluster, "spec", "pools"), i, pool) {
        json_t *config = json_object_get(pool, "poolConfig");
        if (compression)
            json_object_set_new(config, "compression", json_string(compression));
        if (has(c, "thin"))
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

static int create(struct ctl_pool_change *c, struct err *e)
{
    bool dry = has(c, "dry-run");
    json_auto_t *cluster = new_cluster(c->ns, c->name);
    if ((dry ? ctl_add_groups(c->args, cluster, NULL, NULL, e) : add_groups(c, cluster, e)) < 0)
        return -1;
    set_config(c, cluster);
    json_auto_t *made = dry ? json_incref(cluster)
                            : ctl_cstor_create(c->client, &api_cstor_pool_cluster, cluster, e);
    if (!made)
        return -1;
    report(c, made, "created");
    return dry ? 0 : wait_for(c, ctl_pool_is_converged, e);
}

int ctl_pool_create(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c = {
        .args = args, .name = args->words[0], .ns = ctl_namespace(args, NULL)};
    int status = check_groups(args);
    if (status == CLI_DONE && !cli_get(args, "dry-run"))
        status = begin(args, &c);
    return status != CLI_DONE ? status : end(&c, create(&c, &e), &e);
}

/* An edit from the command line to its end. */
static int run_edit(const struct cli_args *args, edit_fn *fn, const char *done)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = begin(args, &c);
    if (status != CLI_DONE)
        return status;
    int r = edit(&c, fn, done, &e);
    if (r == 0 && !has(&c, "dry-run"))
        r = wait_for(&c, ctl_pool_is_converged, &e);
    return end(&c, r, &e);
}

int ctl_pool_expand(const struct cli_args *args)
{
    int status = check_groups(args);
    return status != CLI_DONE ? status : run_edit(args, add_groups, "expanded");
}

/* Replace. */

/* The entry of a device in spec.pools[], and its pool; NULL. */
static json_t *find_entry(const json_t *cluster, const char *device, json_t **ret_pool)
{
    size_t i, j, k;
    json_t *group, *entry;
    json_array_foreach((json_t *)json_at(cluster, "spec", "pools"), i, *ret_pool) {
        json_array_foreach(json_object_get(*ret_pool, "raidGroups"), j, group) {
            json_array_foreach(json_object_get(group, "blockDevices"), k, entry) {
                const char *name = json_str(entry, "blockDeviceName");
                if (name && str_eq(name, device))
                    return entry;
            }
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

int ctl_pool_replace(const struct cli_args *args)
{
    return run_edit(args, replace, "changed");
}

/* Migrate, scrub, delete. */

static json_t *find_node(struct ctl_pool_change *c, const char *name, struct err *e)
{
    const struct kube_resource r = kube_resource("v1", "Node");
    return kube_get(c->client, &r, NULL, name, e);
}

/* The pool that is on a node, which may be gone. */
static json_t *pool_of(struct ctl_pool_change *c, const json_t *cluster, const char *name,
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
    json_t *pool = pool_of(c, cluster, c->args->words[1], e);
    json_auto_t *node = pool ? find_node(c, c->args->words[2], e) : NULL;
    if (!node)
        return -1;
    const char *host = kube_label(node, API_POOL_HOSTNAME);
    json_object_set_new(pool, "nodeSelector",
                        json_pack("{s:s}", API_POOL_HOSTNAME, host ? host : kube_name(node)));
    return 0;
}

int ctl_pool_migrate(const struct cli_args *args)
{
    return run_edit(args, migrate, "changed");
}

static int scrub(struct ctl_pool_change *c, struct err *e)
{
    const char *node = cli_get(c->args, "node");
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock_system())), RFC3339_SECONDS, now);
    json_auto_t *cluster = cluster_of(c, e);
    json_auto_t *instances = cluster ? ctl_instances_of(c->client, c->ns, c->name, e) : NULL;
    json_auto_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", API_POOL_SCRUB, now);
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
        printf(CTL_INSTANCE "/%s scrub requested\n", kube_name(instance));
        n++;
    }
    return n ? 0
             : err_set(e, ERR_NOT_FOUND, "NotFound", "%s has no pool%s%s yet", c->name,
                       node ? " on node " : "", node ? node : "");
}

int ctl_pool_scrub(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = begin(args, &c);
    return status != CLI_DONE ? status : end(&c, scrub(&c, &e), &e);
}

static int remove_pool(struct ctl_pool_change *c, json_t *cluster, struct err *e)
{
    json_t *pools = (json_t *)json_at(cluster, "spec", "pools");
    const json_t *pool = pool_of(c, cluster, c->node, e);
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
    c->node = cli_get(c->args, "node");
    if (c->node)
        return edit(c, remove_pool, "changed", e);
    json_auto_t *cluster = cluster_of(c, e);
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

int ctl_pool_delete(const struct cli_args *args)
{
    struct err e = {0};
    struct ctl_pool_change c;
    int status = begin(args, &c);
    if (status != CLI_DONE)
        return status;
    int r = delete (&c, &e);
    if (r == 0)
        r = wait_for(&c, ctl_pool_is_gone, &e);
    return end(&c, r, &e);
}

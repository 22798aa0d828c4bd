/*
 * Groups of devices from a command line into the spec of a cluster:
 *
 *     --mirror node-1:sdb,sdc  ─>  the pool of node-1  ─>  {type: mirror, blockDevices: [...]}
 */
#include "ctl/pools.h"

static const struct {
    const char *option, *type;
    const char *role; /* the switch that makes it no data; NULL: data */
} kinds[] = {
    {"stripe", "stripe", NULL},     {"mirror", "mirror", NULL},
    {"raidz", "raidz", NULL},       {"raidz2", "raidz2", NULL},
    {"log", NULL, "isWriteCache"},  {"cache", "stripe", "isReadCache"},
    {"spare", "stripe", "isSpare"},
};

/* One group as it was given. */
struct given {
    const char *option, *type, *role;
    char *node;
    const char *disks;
};

static bool take(size_t kind, const char *value, struct given *ret, struct err *e)
{
    const char *option = kinds[kind].option, *colon = strchr(value, ':');
    if (!colon || colon == value || !colon[1]) {
        err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                "--%s takes NODE:DISK,DISK,..., such as node-1:sdb,sdc, not '%s'", option, value);
        return false;
    }
    *ret = (struct given){.option = option, .type = kinds[kind].type, .role = kinds[kind].role};
    ret->node = mem_strndup(value, (size_t)(colon - value));
    ret->disks = colon + 1;
    if (!ret->type)
        ret->type = strchr(ret->disks, ',') ? "mirror" : "stripe";
    return true;
}

/* The names of its devices, as an array. */
static json_t *names_of(const struct given *g, const char *node, const json_t *disks, struct err *e)
{
    json_auto_t *names = json_array();
    for (const char *at = g->disks; *at;) {
        size_t n = strcspn(at, ",");
        _cleanup_free_ char *text = mem_strndup(at, n);
        const json_t *disk = disks && n ? ctl_disk_find(disks, node, text, e) : NULL;
        if (disks && n && !disk)
            return NULL;
        if (n)
            json_array_append_new(names, json_string(disk ? kube_name(disk) : text));
        at += n;
        at += *at == ',';
    }
    if (!json_array_size(names)) {
        err_set(e, ERR_INVALID_ARGUMENT, "Usage", "--%s %s: names no disk", g->option, g->node);
        return NULL;
    }
    return json_incref(names);
}

static const json_t *node_called(const json_t *nodes, const char *name)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node) {
        const char *host = kube_label(node, API_POOL_HOSTNAME);
        if (str_eq(kube_name(node), name) || (host && str_eq(host, name)))
            return node;
    }
    return NULL;
}

static json_t *new_pool(json_t *cluster, const char *host, const char *type)
{
    json_t *pool = json_pack("{s:{s:s}, s:[], s:{s:s}}", "nodeSelector", API_POOL_HOSTNAME, host,
                             "raidGroups", "poolConfig", "defaultRaidGroupType", type);
    json_array_append_new((json_t *)json_at(cluster, "spec", "pools"), pool);
    return pool;
}

/* The stripe that holds data, which grows in place; NULL. */
static json_t *stripe_of(const json_t *pool)
{
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        const char *type = api_raid_type(pool, group);
        if (type && str_eq(type, "stripe") && api_raid_role_of(group) == API_RAID_DATA)
            return group;
    }
    return NULL;
}

static int add(const struct given *g, json_t *cluster, const json_t *nodes, const json_t *disks,
               struct err *e)
{
    const json_t *node = node_called(nodes, g->node);
    if (nodes && !node)
        return err_set(e, ERR_NOT_FOUND, "NotFound", "there is no node \"%s\"", g->node);
    json_auto_t *names = names_of(g, node ? kube_name(node) : g->node, disks, e);
    if (!names)
        return -1;
    const char *host = node ? kube_label(node, API_POOL_HOSTNAME) : NULL;
    json_t *pool = ctl_pool_on(cluster, g->node, node);
    if (!pool)
        pool = new_pool(cluster, host ? host : g->node, g->role ? "stripe" : g->type);
    json_t *group = !g->role && str_eq(g->type, "stripe") ? stripe_of(pool) : NULL;
    if (!group) {
        group = json_pack("{s:s, s:[]}", "type", g->type, "blockDevices");
        if (g->role)
            json_object_set_new(group, g->role, json_true());
        json_array_append_new(json_object_get(pool, "raidGroups"), group);
    }
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
        json_array_append_new(json_object_get(group, "blockDevices"),
                              json_pack("{s:O}", "blockDeviceName", name));
    return 0;
}

static size_t kind_of(const char *option)
{
    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(kinds) && !str_eq(kinds[i].option, option))
        i++;
    return i;
}

int ctl_add_groups(const struct cli_args *args, json_t *cluster, const json_t *nodes,
                   const json_t *disks, struct err *e)
{
    const struct cli_list *groups = &ctl_settings(args)->groups;
    for (size_t i = 0; i < groups->len; i++) {
        struct given g = {0};
        if (!take(kind_of(groups->options[i]), groups->p[i], &g, e))
            return -1;
        int r = add(&g, cluster, nodes, disks, e);
        free(g.node);
        if (r < 0)
            return -1;
    }
    return groups->len
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                         "say of which disks: --mirror NODE:DISK,DISK, --raidz, --stripe, ...");
}

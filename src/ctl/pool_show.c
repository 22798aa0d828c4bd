/*
 * pool show: a cluster as a tree.
 *
 *     fast   2 of 2 pools online
 *     ├─ fast-x2k9q on node-1   ONLINE   [████░░░░░░] 41%   4.1Gi of 10Gi
 *     │  └─ mirror
 *     │     ├─ bd-1   ONLINE   10Gi   /dev/sdb
 *     │     └─ bd-2   ONLINE   10Gi   /dev/sdc   [██████░░░░] 63% resilvered, 2m left
 *     └─ ...
 */
#include <inttypes.h>

#include "ctl/pools.h"
#include "ui/term.h"

enum { BAR = 20, DEPTH = 4 };

struct drawing {
    const json_t *disks;
    bool last[DEPTH]; /* whether the branch at that depth is the last of its kind */
    size_t depth;
};

/* Begins a line of the tree. */
static void branch(struct drawing *d, bool last)
{
    bool unicode = ui_has_unicode();
    for (size_t i = 0; i < d->depth; i++)
        fputs(d->last[i] ? "   " : unicode ? "│  " : "|  ", stdout);
    fputs(last ? unicode ? "└─ " : "`- " : unicode ? "├─ " : "|- ", stdout);
    d->last[d->depth] = last;
}

static enum ui_colour colour_of(const char *state)
{
    static const char *const bad[] = {"FAULTED", "UNAVAIL",
                                      "REMOVED", "OFFLINE",
                                      "Error",   "DeletionFailed",
                                      "Invalid", "PoolCreationFailed",
                                      "Missing", NULL};
    if (str_eq(state, "ONLINE"))
        return UI_GREEN;
    return str_in(state, bad) ? UI_RED : UI_YELLOW;
}

static void print_state(const char *state)
{
    fputs(ui_colour(stdout, colour_of(state)), stdout);
    ui_text(stdout, state, strlen(state));
    fputs(ui_colour(stdout, UI_PLAIN), stdout);
}

static void print_text(const char *text)
{
    ui_text(stdout, text, strlen(text));
}

static const struct pool_device_status *find_status(const struct pool_instance *instance,
                                                    const char *name)
{
    static const struct pool_device_status none = {.state = ""};
    for (size_t i = 0; i < instance->status.devices.len; i++) {
        if (str_eq(instance->status.devices.p[i].name, name))
            return &instance->status.devices.p[i];
    }
    return &none;
}

static void print_errors(int64_t n, const char *kind)
{
    if (n)
        printf("   %s%" PRId64 " %s error%s%s", ui_colour(stdout, UI_RED), n, kind,
               n == 1 ? "" : "s", ui_colour(stdout, UI_PLAIN));
}

static void print_resilver(const struct pool_instance *instance, const char *device)
{
    int64_t percent = instance->status.resilver.percent,
            left = instance->status.resilver.seconds_left;
    char age[AGE_MAX];
    if (!str_eq(instance->status.resilver.device, device))
        return;
    fputs("   ", stdout);
    ui_bar(stdout, (unsigned)percent, BAR);
    printf(" %u%% resilvered", (unsigned)percent);
    if (left != POOL_NOT_SAID)
        printf(", %s left", age_format(left * CLOCK_SECOND, age));
}

static void draw_device(struct drawing *d, const struct pool_instance *instance,
                        const struct raid_device *device, bool last)
{
    const json_t *known = kube_find(d->disks, device->name);
    const struct block_device disk = block_device_of(known);
    const struct pool_device_status *status = find_status(instance, device->name);
    char bytes[CTL_BYTES_MAX];
    branch(d, last);
    print_text(device->name);
    fputs("   ", stdout);
    print_state(*status->state ? status->state : "unknown");
    printf("   %s", ctl_size(disk.spec.size ? disk.spec.size : device->capacity, bytes));
    if (*disk.spec.path)
        fputs("   ", stdout);
    print_text(disk.spec.path);
    if (known && !str_eq(disk.status.state, "Active"))
        printf("   disk is %s", disk.status.state);
    else if (!known)
        fputs("   no such disk is known", stdout);
    print_errors(status->read_errors, "read");
    print_errors(status->write_errors, "write");
    print_errors(status->checksum_errors, "checksum");
    print_resilver(instance, device->name);
    putchar('\n');
}

static void draw_group(struct drawing *d, const struct pool_instance *instance,
                       const struct pool_spec *pool, const struct raid_group *group, bool last)
{
    static const char *const roles[] = {[API_RAID_DATA] = "",
                                        [API_RAID_WRITE_CACHE] = "log",
                                        [API_RAID_READ_CACHE] = "cache",
                                        [API_RAID_SPARE] = "spare"};
    const char *role = roles[raid_group_role(group)], *type = raid_group_type(group, &pool->config);
    branch(d, last);
    bool plain = !type || str_eq(type, "stripe"); /* of those with a role nothing to speak of */
    printf("%s%s", role, *role && !plain ? " " : "");
    if (!*role || !plain)
        print_text(type ? type : "stripe");
    if (*group->name) {
        fputs("   ", stdout);
        print_text(group->name);
    }
    putchar('\n');
    d->depth++;
    for (size_t i = 0; i < group->devices.len; i++)
        draw_device(d, instance, &group->devices.p[i], i + 1 == group->devices.len);
    d->depth--;
}

static void print_capacity(const struct pool_instance *instance)
{
    const json_t *total = instance->status.capacity.total, *used = instance->status.capacity.used;
    int percent = ctl_percent(used, total);
    char a[CTL_BYTES_MAX], b[CTL_BYTES_MAX];
    if (percent < 0)
        return;
    fputs("   ", stdout);
    ui_bar(stdout, (unsigned)percent, BAR);
    printf(" %d%%   %s of %s", percent, ctl_bytes(used, a), ctl_bytes(total, b));
    if (instance->status.read_only)
        printf("   %sread-only%s", ui_colour(stdout, UI_RED), ui_colour(stdout, UI_PLAIN));
}

/* Whether a condition tells of something that is wrong or under way. */
static bool is_news(const json_t *condition)
{
    static const char *const troubles[] = {"PoolExpansion", "DiskReplacement", "DiskUnavailable",
                                           "PoolLost", NULL};
    const char *status = json_str(condition, "status"), *type = json_str(condition, "type");
    if (!status || !type || str_eq(type, "Ready")) /* the last only repeats another */
        return false;
    if (str_eq(status, "Unknown"))
        return true;
    return str_eq(status, str_in(type, troubles) ? "True" : "False");
}

static void draw_conditions(struct drawing *d, const json_t *object)
{
    size_t i;
    json_t *condition;
    json_array_foreach(json_at(object, "status", "conditions"), i, condition) {
        const char *message = json_str(condition, "message");
        if (!is_news(condition) || !message || !*message)
            continue;
        branch(d, false);
        print_text(json_str(condition, "type"));
        fputs(": ", stdout);
        print_text(message);
        putchar('\n');
    }
}

/* The last scrub, or the one that runs. */
static void draw_scrub(struct drawing *d, const struct pool_instance *instance)
{
    int64_t percent = instance->status.scrub.percent, errors = instance->status.scrub.errors;
    const char *ended = instance->status.scrub.end_time;
    char bytes[CTL_BYTES_MAX], age[AGE_MAX];
    if (!*instance->status.scrub.start_time)
        return;
    branch(d, false);
    if (*ended) {
        printf("scrubbed %s ago", age_since(ended, clock_real_ns(clock_system()), age));
    } else {
        fputs("scrub ", stdout);
        ui_bar(stdout, (unsigned)percent, BAR);
        printf(" %d%%", (int)percent);
    }
    printf(": %s mended", ctl_bytes(instance->status.scrub.repaired, bytes));
    if (errors)
        printf(", %s%" PRId64 " block%s damaged without another copy%s", ui_colour(stdout, UI_RED),
               errors, errors == 1 ? "" : "s", ui_colour(stdout, UI_PLAIN));
    putchar('\n');
}

static void draw_pool(struct drawing *d, const json_t *json, const json_t *wanted, bool last)
{
    _cleanup_(arena_done) struct arena arena = {0};
    const struct pool_instance instance = pool_instance_of(json, &arena);
    const struct pool_spec pool = pool_spec_of(wanted, &arena);
    const char *phase = instance.status.phase;
    branch(d, last);
    print_text(json ? kube_name(json) : "(no instance yet)");
    fputs(" on ", stdout);
    print_text(ctl_node_of(json, wanted));
    fputs("   ", stdout);
    print_state(!json ? "Missing" : *phase ? phase : "Pending");
    print_capacity(&instance);
    putchar('\n');
    d->depth++;
    draw_conditions(d, json);
    draw_scrub(d, &instance);
    for (size_t i = 0; i < pool.groups.len; i++)
        draw_group(d, &instance, &pool, &pool.groups.p[i], i + 1 == pool.groups.len);
    d->depth--;
}

static bool is_online(const json_t *instance)
{
    return str_eq(pool_instance_of(instance, NULL).status.phase, "ONLINE");
}

static void draw(const json_t *cluster, const json_t *instances, const json_t *disks)
{
    struct drawing d = {.disks = disks};
    const json_t *pools = pool_cluster_of(cluster).pools;
    size_t i, online = 0, n = json_array_size(pools);
    json_t *pool;
    json_array_foreach(pools, i, pool)
        online += is_online(ctl_instance_of(instances, pool));
    fputs(ui_colour(stdout, UI_BOLD), stdout);
    print_text(kube_name(cluster));
    printf("%s   %zu of %zu pools online%s\n", ui_colour(stdout, UI_PLAIN), online, n,
           kube_deleting(cluster) ? ", being deleted" : "");
    draw_conditions(&d, cluster);
    json_array_foreach(pools, i, pool)
        draw_pool(&d, ctl_instance_of(instances, pool), pool, i + 1 == n);
}

static int show(const struct cli_args *args, struct kube_client *client, struct err *e)
{
    const struct kube_resource disks_r = ctl_disks();
    const char *ns = ctl_namespace(args, client), *output = ctl_settings(args)->output;
    json_auto_t *cluster = ctl_cstor_get(client, &api_cstor_pool_cluster, ns, args->words[0], e);
    json_auto_t *instances = cluster ? ctl_instances_of(client, ns, kube_name(cluster), e) : NULL;
    json_auto_t *disks = instances ? kube_list(client, &disks_r, ns, NULL, e) : NULL;
    if (!disks)
        return -1;
    if (!output || str_eq(output, "tree")) {
        draw(cluster, instances, disks);
        return 0;
    }
    json_auto_t *all = json_pack("[O]", cluster), *list = NULL;
    json_array_extend(all, instances);
    list = ctl_list(all);
    ctl_print(list, output);
    return 0;
}

static int run_show(const struct cli_args *args)
{
    return ctl_run(args, show);
}

static const struct cli_option options[] = {
    {"output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output), .def = "tree",
     .choices = CLI_WORDS("tree", "json", "yaml"),
     .doc = "Output format. json and yaml show the cluster and its instances."},
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(pool_show) = {
    .name = "pool show",
    .topic = CLI_STORAGE,
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Draw the pools of a cluster with their groups and devices",
    .doc = "Draws a CStorPoolCluster as a tree: its pools and how full they are, their groups, and "
           "their devices with state, errors and the progress of a replacement.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop pool show fast", "Show all of it."},
            {NULL},
        },
    .run = run_show,
};

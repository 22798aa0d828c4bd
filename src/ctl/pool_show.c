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

static const json_t *by_name(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *it;
    json_array_foreach(list, i, it) {
        const char *its = key ? json_str(it, key) : kube_name(it);
        if (its && str_eq(its, name))
            return it;
    }
    return NULL;
}

static void print_errors(const json_t *status)
{
    static const char *const kinds[][2] = {
        {"readErrors", "read"}, {"writeErrors", "write"}, {"checksumErrors", "checksum"}};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        json_int_t n = json_integer_value(json_object_get(status, kinds[i][0]));
        if (n)
            printf("   %s%" JSON_INTEGER_FORMAT " %s error%s%s", ui_colour(stdout, UI_RED), n,
                   kinds[i][1], n == 1 ? "" : "s", ui_colour(stdout, UI_PLAIN));
    }
}

static void print_resilver(const json_t *instance, const char *device)
{
    const json_t *resilver = json_at(instance, "status", "resilver");
    const char *filled = json_str(resilver, "blockDeviceName");
    if (!filled || !str_eq(filled, device))
        return;
    unsigned percent = (unsigned)json_integer_value(json_object_get(resilver, "percent"));
    const json_t *left = json_object_get(resilver, "remainingSeconds");
    char age[AGE_MAX];
    fputs("   ", stdout);
    ui_bar(stdout, percent, BAR);
    printf(" %u%% resilvered", percent);
    if (left)
        printf(", %s left", age_format(json_integer_value(left) * CLOCK_SECOND, age));
}

static void draw_device(struct drawing *d, const json_t *instance, const json_t *device, bool last)
{
    const char *name = json_str(device, "blockDeviceName");
    const json_t *disk = by_name(d->disks, NULL, name);
    const json_t *status = by_name(json_at(instance, "status", "devices"), "blockDeviceName", name);
    const char *state = json_str(status, "state"), *path = ctl_text(disk, "spec", "path");
    const json_t *size = json_at(disk, "spec", "capacity", "storage");
    char bytes[CTL_BYTES_MAX];
    branch(d, last);
    print_text(name);
    fputs("   ", stdout);
    print_state(state ? state : "unknown");
    printf("   %s", ctl_bytes(size ? size : json_object_get(device, "capacity"), bytes));
    if (*path)
        fputs("   ", stdout);
    print_text(path);
    if (disk && !str_eq(ctl_text(disk, "status", "state"), "Active"))
        printf("   disk is %s", ctl_text(disk, "status", "state"));
    else if (!disk)
        fputs("   no such disk is known", stdout);
    print_errors(status);
    print_resilver(instance, name);
    putchar('\n');
}

static void draw_group(struct drawing *d, const json_t *instance, const json_t *pool,
                       const json_t *group, bool last)
{
    static const char *const roles[][2] = {
        {"isWriteCache", "log"}, {"isReadCache", "cache"}, {"isSpare", "spare"}};
    const char *type = json_str(group, "type"), *name = json_str(group, "name"), *role = NULL;
    if (!type || !*type)
        type = json_str(json_object_get(pool, "poolConfig"), "defaultRaidGroupType");
    branch(d, last);
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
        if (json_is_true(json_object_get(group, roles[i][0])))
            role = roles[i][1];
    }
    bool plain = !type || str_eq(type, "stripe"); /* of those with a role nothing to speak of */
    printf("%s%s", role ? role : "", role && !plain ? " " : "");
    if (!role || !plain)
        print_text(type ? type : "stripe");
    if (name && *name) {
        fputs("   ", stdout);
        print_text(name);
    }
    putchar('\n');
    d->depth++;
    const json_t *devices = json_object_get(group, "blockDevices");
    size_t i, n = json_array_size(devices);
    json_t *device;
    json_array_foreach(devices, i, device)
        draw_device(d, instance, device, i + 1 == n);
    d->depth--;
}

static void print_capacity(const json_t *instance)
{
    const json_t *capacity = json_at(instance, "status", "capacity");
    const json_t *total = json_object_get(capacity, "total"),
                 *used = json_object_get(capacity, "used");
    int percent = ctl_percent(used, total);
    char a[CTL_BYTES_MAX], b[CTL_BYTES_MAX];
    if (percent < 0)
        return;
    fputs("   ", stdout);
    ui_bar(stdout, (unsigned)percent, BAR);
    printf(" %d%%   %s of %s", percent, ctl_bytes(used, a), ctl_bytes(total, b));
    if (json_is_true(json_at(instance, "status", "readOnly")))
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
static void draw_scrub(struct drawing *d, const json_t *instance)
{
    const json_t *scrub = json_at(instance, "status", "scrub"),
                 *repaired = json_object_get(scrub, "repaired");
    const char *ended = json_str(scrub, "endTime");
    json_int_t errors = json_integer_value(json_object_get(scrub, "errors"));
    char bytes[CTL_BYTES_MAX], age[AGE_MAX];
    if (!scrub)
        return;
    branch(d, false);
    if (ended) {
        printf("scrubbed %s ago", age_since(ended, clock_real_ns(clock_system()), age));
    } else {
        fputs("scrub ", stdout);
        ui_bar(stdout, (unsigned)json_integer_value(json_object_get(scrub, "percent")), BAR);
        printf(" %d%%", (int)json_integer_value(json_object_get(scrub, "percent")));
    }
    printf(": %s mended", ctl_bytes(repaired, bytes));
    if (errors)
        printf(", %s%" JSON_INTEGER_FORMAT " block%s damaged without another copy%s",
               ui_colour(stdout, UI_RED), errors, errors == 1 ? "" : "s",
               ui_colour(stdout, UI_PLAIN));
    putchar('\n');
}

static void draw_pool(struct drawing *d, const json_t *instance, const json_t *pool, bool last)
{
    const char *phase = ctl_text(instance, "status", "phase");
    branch(d, last);
    print_text(instance ? kube_name(instance) : "(no instance yet)");
    fputs(" on ", stdout);
    print_text(ctl_node_of(instance, pool));
    fputs("   ", stdout);
    print_state(!instance ? "Missing" : *phase ? phase : "Pending");
    print_capacity(instance);
    putchar('\n');
    d->depth++;
    draw_conditions(d, instance);
    draw_scrub(d, instance);
    const json_t *groups = json_object_get(pool, "raidGroups");
    size_t i, n = json_array_size(groups);
    json_t *group;
    json_array_foreach(groups, i, group)
        draw_group(d, instance, pool, group, i + 1 == n);
    d->depth--;
}

static void draw(const json_t *cluster, const json_t *instances, const json_t *disks)
{
    struct drawing d = {.disks = disks};
    const json_t *pools = json_at(cluster, "spec", "pools");
    size_t i, online = 0, n = json_array_size(pools);
    json_t *pool;
    json_array_foreach(pools, i, pool)
        online += str_eq(ctl_text(ctl_instance_of(instances, pool), "status", "phase"), "ONLINE");
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
    struct err e = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    if (!client || show(args, client, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return cli_finish(args);
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

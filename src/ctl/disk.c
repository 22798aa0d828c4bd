/*
 * disk list, show and locate: BlockDevices, and the clusters that have them.
 */
#include <inttypes.h>

#include "ctl/pools.h"
#include "kube/condition.h"
#include "ui/term.h"

/* Why it can be had, or not, in a word. */
static const char *use_of(const struct block_device *disk)
{
    const char *reason = json_str(kube_condition_get(disk->json, "Claimable"), "reason");
    return reason && *reason ? reason : disk->status.claim_state;
}

/* Whether a claim or a pool can have it. */
static bool is_free(const json_t *json)
{
    const struct block_device disk = block_device_of(json);
    const char *claimable = json_str(kube_condition_get(json, "Claimable"), "status");
    return str_eq(disk.status.claim_state, "Unclaimed") && str_eq(disk.status.state, "Active") &&
           (!claimable || str_eq(claimable, "True"));
}

/* One read of everything that is shown. */
struct view {
    json_t *disks, *clusters;
};

static int view_read(const struct cli_args *args, struct kube_client *client, struct view *ret,
                     struct err *e)
{
    const struct kube_resource disks_r = ctl_disks();
    const char *ns = ctl_namespace(args, client);
    ret->disks = kube_list(client, &disks_r, ns, NULL, e);
    ret->clusters =
        ret->disks ? ctl_cstor_list(client, &api_cstor_pool_cluster, ns, NULL, e) : NULL;
    return ret->clusters ? 0 : -1;
}

static void view_done(struct view *v)
{
    json_decref(v->disks);
    json_decref(v->clusters);
}

static void add_row(struct ctl_table *t, const struct view *v, const json_t *json)
{
    const struct block_device disk = block_device_of(json);
    const json_t *cluster = ctl_cluster_with(v->clusters, kube_name(json));
    char size[CTL_BYTES_MAX], age[AGE_MAX];
    ctl_table_add(t, (const char *const[]){kube_name(json), ctl_disk_node(json), disk.spec.path,
                                           ctl_size(disk.spec.size, size), disk.spec.device_type,
                                           disk.status.state, use_of(&disk),
                                           cluster ? kube_name(cluster) : "", ctl_age(json, age),
                                           disk.spec.model, disk.spec.serial, disk.spec.claim.name,
                                           kube_namespace(json)});
}

static void print_table(const struct cli_args *args, const struct view *v, const json_t *disks)
{
    static const char *const titles[] = {"NAME",   "NODE",  "PATH",      "SIZE", "TYPE",
                                         "STATE",  "USE",   "POOL",      "AGE",  "MODEL",
                                         "SERIAL", "CLAIM", "NAMESPACE", NULL};
    static const char *const narrow[] = {"NAME",  "NODE", "PATH", "SIZE", "TYPE",
                                         "STATE", "USE",  "POOL", "AGE",  NULL};
    const char *output = ctl_settings(args)->output;
    struct ctl_table t;
    size_t i;
    json_t *disk;
    ctl_table_init(&t, output && str_eq(output, "wide") ? titles : narrow);
    json_array_foreach(disks, i, disk)
        add_row(&t, v, disk);
    if (json_array_size(disks))
        ctl_table_print(&t, stdout);
    else
        fputs("No disks found\n", stderr);
    ctl_table_done(&t);
}

/* Those that were named, or all, of the node that was named. */
static json_t *choose(const struct cli_args *args, const struct view *v, struct err *e)
{
    const char *node = ctl_settings(args)->node;
    json_auto_t *chosen = json_array();
    for (int i = 0; i < args->count; i++) {
        const json_t *disk = ctl_disk_find(v->disks, node, args->words[i], e);
        if (!disk)
            return NULL;
        json_array_append(chosen, (json_t *)disk);
    }
    size_t i;
    json_t *disk;
    json_array_foreach(args->count ? NULL : v->disks, i, disk) {
        if ((!node || str_eq(node, ctl_disk_node(disk))) &&
            (!ctl_settings(args)->free || is_free(disk)))
            json_array_append(chosen, disk);
    }
    return json_incref(chosen);
}

static int run_list(const struct cli_args *args)
{
    struct err e = {0};
    _cleanup_(view_done) struct view v = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    json_auto_t *disks =
        client && view_read(args, client, &v, &e) == 0 ? choose(args, &v, &e) : NULL;
    if (!disks)
        return cli_fail(args, "%s", e.msg);
    if (!ctl_print_objects(args, disks, CTL_DISK))
        print_table(args, &v, disks);
    return cli_finish(args);
}

static const struct cli_option list_options[] = {
    {"free", 0, NULL, CLI_SWITCH, CTL_AT(free),
     .doc = "Without names: show only disks that a claim or a pool can have."},
    CTL_LIST_OPTION("model, serial number, claim and namespace"),
    CTL_NODE_OPTION("Show only those of this node."),
    CTL_ALL_NAMESPACES_OPTION,
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(disk_list) = {
    .name = "disk list",
    .topic = CLI_STORAGE,
    .arguments = "[DISK]...",
    .most = -1,
    .summary = "Show the disks of the nodes",
    .doc = "Shows BlockDevices: where they are, how large, who uses them, and why they cannot be "
           "used.\n\n" CTL_DISK_DOC,
    .settings = sizeof(struct ctl_settings),
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk list --node node-1", "Show those of one node."},
            {"orlop disk list --free -o name", "Print the names of those that nobody uses."},
            {NULL},
        },
    .run = run_list,
};

/* Show and locate. */

static void line(const char *title, const char *text)
{
    if (!text || !*text)
        return;
    printf("%-13s", title);
    ui_text(stdout, text, strlen(text));
    putchar('\n');
}

static void print_links(const struct block_device *disk)
{
    size_t i, j;
    json_t *kind, *link;
    const char *title = "Links:";
    json_array_foreach(disk->spec.devlinks, i, kind) {
        json_array_foreach(device_links_of(kind).links, j, link) {
            line(title, json_string_value(link));
            title = "";
        }
    }
}

static void print_disk(const struct view *v, const json_t *json)
{
    const struct block_device disk = block_device_of(json);
    const json_t *cluster = ctl_cluster_with(v->clusters, kube_name(json));
    const json_t *claimable = kube_condition_get(json, "Claimable");
    char size[CTL_BYTES_MAX], age[AGE_MAX];
    _cleanup_free_ char *made_by =
        mem_printf("%s %s %s", disk.spec.vendor, disk.spec.model, disk.spec.firmware);
    line("Name:", kube_name(json));
    line("Node:", ctl_disk_node(json));
    line("Path:", disk.spec.path);
    print_links(&disk);
    line("Size:", ctl_size(disk.spec.size, size));
    line("Type:", disk.spec.device_type);
    line("Drive:", disk.spec.drive_type);
    line("Made by:", made_by + strspn(made_by, " "));
    line("Serial:", disk.spec.serial);
    line("State:", disk.status.state);
    line("Claim state:", disk.status.claim_state);
    line("Claim:", disk.spec.claim.name);
    line("Use:", json_str(claimable, "reason"));
    line("", json_str(claimable, "message"));
    line("File system:", disk.spec.fs_type);
    line("Mounted on:", disk.spec.mount_point);
    line("Pool:", cluster ? kube_name(cluster) : NULL);
    line("Known for:", ctl_age(json, age));
}

/* The first stable path of a kind; NULL. */
static const char *link_of(const struct block_device *disk, const char *kind)
{
    size_t i;
    json_t *links;
    json_array_foreach(disk->spec.devlinks, i, links) {
        if (str_eq(device_links_of(links).kind, kind))
            return json_string_value(json_array_get(device_links_of(links).links, 0));
    }
    return NULL;
}

/* Whether whoever pulls it takes it away from a pool. */
static bool print_place(const struct view *v, const json_t *json)
{
    const struct block_device disk = block_device_of(json);
    const json_t *cluster = ctl_cluster_with(v->clusters, kube_name(json));
    _cleanup_free_ char *printed = mem_printf("%s %s", disk.spec.vendor, disk.spec.model);
    bool needed = cluster || str_eq(disk.status.claim_state, "Claimed");
    line("Node:", ctl_disk_node(json));
    line("Slot:", link_of(&disk, "by-path"));
    line("Path:", disk.spec.path);
    line("Printed on:", printed + strspn(printed, " "));
    line("Serial:", disk.spec.serial);
    line("State:", disk.status.state);
    if (cluster)
        printf(
            "%sDo not pull it: pool cluster %s has it; `orlop pool replace %s %s NEW` first.%s\n",
            ui_colour(stdout, UI_RED), kube_name(cluster), kube_name(cluster), kube_name(json),
            ui_colour(stdout, UI_PLAIN));
    else if (needed)
        printf("%sDo not pull it: the claim %s has it.%s\n", ui_colour(stdout, UI_RED),
               disk.spec.claim.name, ui_colour(stdout, UI_PLAIN));
    else
        puts("No pool and no claim has it: it can be pulled.");
    return needed;
}

static int tell(const struct cli_args *args, bool (*print)(const struct view *, const json_t *))
{
    struct err e = {0};
    const char *output = ctl_settings(args)->output;
    _cleanup_(view_done) struct view v = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    const json_t *disk = client && view_read(args, client, &v, &e) == 0
                             ? ctl_disk_find(v.disks, ctl_settings(args)->node, args->words[0], &e)
                             : NULL;
    bool bad = false;
    if (!disk)
        return cli_fail(args, "%s", e.msg);
    if (output && !str_eq(output, "text"))
        ctl_print(disk, output);
    else
        bad = print(&v, disk);
    int status = cli_finish(args);
    return bad && status == CLI_DONE ? CLI_FAILED : status;
}

static bool print_all(const struct view *v, const json_t *disk)
{
    print_disk(v, disk);
    return false;
}

static int run_show(const struct cli_args *args)
{
    return tell(args, print_all);
}

static int run_locate(const struct cli_args *args)
{
    return tell(args, print_place);
}

static const struct cli_option disk_options[] = {
    CTL_NODE_OPTION("The node of the disk, where DISK is a path."),
    {"output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output), .def = "text",
     .choices = CLI_WORDS("text", "json", "yaml"), .doc = "Output format."},
    CTL_NAMESPACE_OPTION,
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(disk_show) = {
    .name = "disk show",
    .topic = CLI_STORAGE,
    .arguments = "DISK",
    .least = 1,
    .most = 1,
    .summary = "Show everything about a disk",
    .doc =
        "Shows what is known of a BlockDevice: what it is, where it is, who uses it and in which "
        "pool.\n\n" CTL_DISK_DOC,
    .settings = sizeof(struct ctl_settings),
    .options = disk_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk show sdb --node node-1", "By its path."},
            {NULL},
        },
    .run = run_show,
};

CLI_COMMAND(disk_locate) = {
    .name = "disk locate",
    .topic = CLI_STORAGE,
    .arguments = "DISK",
    .least = 1,
    .most = 1,
    .summary = "Say where a disk is, for the person who goes to pull it",
    .doc =
        "Says in a few lines how to find a disk: node, slot or path, maker, model and serial "
        "number "
        "as they are printed on it, and whether a pool still needs it. The exit status is 1 when a "
        "pool does.\n\n" CTL_DISK_DOC,
    .settings = sizeof(struct ctl_settings),
    .options = disk_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk locate bd-2", "Before you walk to the rack."},
            {NULL},
        },
    .run = run_locate,
};

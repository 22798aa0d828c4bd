/*
 * pool and disk, as far as they are done by orlop-ctl, which speaks with the API: help, completion and
 * the command line.
 */
#include "cli/commands.h"
#include "cli/options.h"

#define NAMESPACE_OPTION                                                                           \
    {                                                                                              \
        "namespace", 'n', "NAME",                                                                  \
            .doc = "Where the pools and devices are; openebs without it, unless the context says " \
                   "otherwise."                                                                    \
    }

#define LIST_OPTION                                                                                \
    {                                                                                              \
        "output", 'o', "FORMAT",                                                                   \
            .choices = (const char *const[]){"table", "wide", "json", "yaml", "name", NULL},       \
            .doc = "table (the default), wide (with more columns), json, yaml or name."            \
    }

/* Groups of devices; each may be given several times, and their order is kept. */
#define GROUP_OPTIONS                                                                              \
    {"stripe", 0, "NODE:DISK,...",                                                                 \
     .doc = "Devices without redundancy: each that is lost loses the pool."},                      \
        {"mirror", 0, "NODE:DISK,...", .doc = "A group in which every device has all data."},      \
        {"raidz", 0, "NODE:DISK,...", .doc = "A group of which one device may be lost."},          \
        {"raidz2", 0, "NODE:DISK,...", .doc = "A group of which two devices may be lost."},        \
        {"log", 0, "NODE:DISK,...",                                                                \
         .doc = "Devices that make synchronous writes fast; two or more are a mirror."},           \
        {"cache", 0, "NODE:DISK,...", .doc = "Devices that cache reads."},                         \
    {                                                                                              \
        "spare", 0, "NODE:DISK,...", .doc = "Devices that take over when another one fails."       \
    }

#define DRY_RUN_OPTION                                                                             \
    {                                                                                              \
        "dry-run", 0, .doc = "Change nothing: show with -o what would be asked for."               \
    }

#define DISK_DOC                                                                                   \
    "A DISK is the name of a BlockDevice, or its beginning where no other begins so, or the path " \
    "that it has on the node at the moment (/dev/sdb, or sdb)."

static const struct cli_option list_options[] = {
    LIST_OPTION,
    {"node", 'N', "NODE", .doc = "Only those of this node."},
    {"all-namespaces", 'A', .doc = "Those of all namespaces."},
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_list = {
    .name = "pool list",
    .arguments = "[CLUSTER]...",
    .most = -1,
    .summary = "Show pools",
    .doc =
        "Shows the pools of CStorPoolClusters: where each is, how it is, and how full. A pool that "
        "is asked for and not there yet is shown as Missing. As json or yaml it is the clusters' "
        "instances (CStorPoolInstances).",
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool list -o wide", "All of them, with what is under way."},
            {"orlop pool list -o name", "Names, for a script."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option show_options[] = {
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"tree", "json", "yaml", NULL},
     .doc = "tree (the default), or the cluster and its instances as json or yaml."},
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_show = {
    .name = "pool show",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Draw the pools of a cluster with their groups and devices",
    .doc =
        "Draws a CStorPoolCluster as a tree: its pools with how full they are, their groups, their "
        "devices with their state and errors, and how far a replacement is.",
    .options = show_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool show fast", "All of it."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option create_options[] = {
    GROUP_OPTIONS,
    {"compression", 0, "WORD", .doc = "Of new data: off, lz4, zstd, gzip, ...; off without it."},
    {"thin", 0, .doc = "Volumes may promise more than the pools can hold."},
    DRY_RUN_OPTION,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", "name", NULL},
     .doc = "Show what was made as json, yaml or name."},
    CLI_WAIT_OPTIONS,
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_create = {
    .name = "pool create",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Make pools from disks",
    .doc = "Makes a CStorPoolCluster: each node that is named gets a pool of the groups that are "
           "given "
           "for it, in their order.\n\n" DISK_DOC "\n\n"
           "With --dry-run no API is asked, disks are taken by name, and the manifest is shown.",
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool create fast --mirror node-1:sdb,sdc --mirror node-2:sdb,sdc --wait",
             "A mirror on each of two nodes."},
            {"orlop pool create fast --raidz2 node-1:bd-1,bd-2,bd-3,bd-4 --log node-1:bd-5 "
             "--dry-run -o yaml",
             "Only the manifest."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option expand_options[] = {
    GROUP_OPTIONS,
    DRY_RUN_OPTION,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", "name", NULL},
     .doc = "Show what it became as json, yaml or name."},
    CLI_WAIT_OPTIONS,
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_expand = {
    .name = "pool expand",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Add devices, groups or pools to a cluster",
    .doc =
        "Adds to a CStorPoolCluster. Devices of --stripe join the stripe of their node's pool; any "
        "other group is added to it; a node without a pool gets one. What was added cannot be "
        "taken "
        "out again.\n\n" DISK_DOC,
    .options = expand_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool expand fast --mirror node-1:sdd,sde", "A second mirror on node-1."},
            {"orlop pool expand fast --mirror node-3:sdb,sdc", "A pool on a third node."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option change_options[] = {
    DRY_RUN_OPTION,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", "name", NULL},
     .doc = "Show what it became as json, yaml or name."},
    CLI_WAIT_OPTIONS,
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_replace = {
    .name = "pool replace",
    .arguments = "CLUSTER OLD NEW",
    .least = 3,
    .most = 3,
    .summary = "Put a disk in the place of another",
    .doc =
        "Replaces a device of a mirror, raidz or raidz2 group. The new one is filled from the "
        "others, then the old one is released and cleaned. With --wait the command shows how far "
        "it is.\n\n" DISK_DOC,
    .options = change_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool replace fast bd-2 sdf --wait", "bd-2 is broken; sdf is new."},
            {NULL},
        },
    .program = "ctl",
};

const struct cli_command cli_pool_migrate = {
    .name = "pool migrate",
    .arguments = "CLUSTER FROM TO",
    .least = 3,
    .most = 3,
    .summary = "Move a pool to the node that has its disks now",
    .doc =
        "Says that the pool of node FROM is on node TO from now on. Attach all its devices there "
        "first: until they are seen on the new node, this is refused.",
    .options = change_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool migrate fast node-1 node-4 --wait", "The disks of node-1 are in node-4."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option scrub_options[] = {
    {"node", 'N', "NODE", .doc = "Only the pool of this node."},
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_scrub = {
    .name = "pool scrub",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Read all data of pools and mend what is damaged",
    .doc =
        "Asks the pools of a cluster to read everything they hold, compare it with its checksums, "
        "and mend it from redundancy. `orlop pool show` says what was found.",
    .options = scrub_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool scrub fast --node node-1", "The pool of node-1."},
            {NULL},
        },
    .program = "ctl",
};

const struct cli_command cli_pool_clear = {
    .name = "pool clear",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Forget the errors of devices and try failed ones again",
    .doc = "Asks the pools of a cluster to begin counting the errors of their devices anew, and to "
           "try those again that failed: after a cable was put back, say. What they missed is "
           "copied to them. A pool that is suspended goes on by itself when its devices do.",
    .options = scrub_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool clear fast --node node-1", "The pool of node-1."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option forget_options[] = {
    {"node", 'N', "NODE", .doc = "The node whose pool will not be back."},
    {"force", 0, .doc = "Also a pool whose process has just said that it lives."},
    CLI_WAIT_OPTIONS,
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_forget = {
    .name = "pool forget",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Wait no more for a pool that will not be back",
    .doc =
        "Says of a pool that it is lost for good, with its node or its disks, and takes it out of "
        "the cluster; nobody waits for it any more. Who said so, and when, is written on its "
        "instance and in Events. Nothing on its disks is touched: should they be back after all, "
        "they are not wiped, and refused to others until you wipe them.\n\n"
        "Refused while volumes live on it, and while its process says that it lives: `orlop pool "
        "delete` removes such a pool in order.",
    .options = forget_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool forget fast --node node-3", "Node-3 burnt down, with its disks."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option delete_options[] = {
    {"node", 'N', "NODE",
     .doc = "Only the pool of this node; the cluster goes on with the others."},
    CLI_WAIT_OPTIONS,
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_pool_delete = {
    .name = "pool delete",
    .arguments = "CLUSTER",
    .least = 1,
    .most = 1,
    .summary = "Remove pools and what is on them",
    .doc =
        "Deletes a CStorPoolCluster, or with --node one pool of it. Refused while volumes live on "
        "what is to go. Their devices are released and cleaned.",
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop pool delete fast --node node-2 --wait", "The pool of node-2."},
            {NULL},
        },
    .program = "ctl",
};

const struct cli_command cli_disk_list = {
    .name = "disk list",
    .arguments = "[DISK]...",
    .most = -1,
    .summary = "Show the disks of the nodes",
    .doc = "Shows BlockDevices: where they are, how large, who has them, and why they cannot be "
           "had.\n\n" DISK_DOC,
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk list --node node-1", "Those of one node."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option disk_options[] = {
    {"node", 'N', "NODE", .doc = "The node that has it, where its path is given."},
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"text", "json", "yaml", NULL},
     .doc = "text (the default), json or yaml."},
    NAMESPACE_OPTION,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_disk_show = {
    .name = "disk show",
    .arguments = "DISK",
    .least = 1,
    .most = 1,
    .summary = "Tell everything of a disk",
    .doc =
        "Shows what is known of a BlockDevice: what it is, where, who has it and in which pool it "
        "is.\n\n" DISK_DOC,
    .options = disk_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk show sdb --node node-1", "By its path."},
            {NULL},
        },
    .program = "ctl",
};

const struct cli_command cli_disk_locate = {
    .name = "disk locate",
    .arguments = "DISK",
    .least = 1,
    .most = 1,
    .summary = "Say where a disk is, for whoever goes to pull it",
    .doc =
        "Says in a few lines how to find a disk: node, slot or path, maker, model and serial "
        "number "
        "as they are printed on it, and whether a pool still needs it. The exit status is 1 when a "
        "pool does.\n\n" DISK_DOC,
    .options = disk_options,
    .examples =
        (const char *const[][2]){
            {"orlop disk locate bd-2", "Before you walk."},
            {NULL},
        },
    .program = "ctl",
};

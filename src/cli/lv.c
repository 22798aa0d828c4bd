/*
 * lv and node forget. The work is done by orlop-ctl, which speaks with the API; here is what people see
 * of it: help, completion and the command line.
 */
#include "cli/commands.h"
#include "cli/options.h"

static const struct cli_option list_options[] = {
    {"output", 'o', "FORMAT",
     .choices = (const char *const[]){"table", "wide", "json", "yaml", "name", NULL},
     .doc = "table (the default), wide (with claims and ids), json, yaml or name."},
    {"node", 'n', "NODE", .doc = "Only those of this node."},
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_lv_list = {
    .name = "lv list",
    .arguments = "[NAME]...",
    .most = -1,
    .summary = "Show logical volumes",
    .doc = "Shows LogicalVolumes: where they are, how large they are and are to be, and what is "
           "wrong with them.",
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv list -o wide", "All of them, and whose they are."},
            {"orlop lv list --node node-1 -o name", "Names, for a script."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option create_options[] = {
    {"node", 'n', "NODE", .doc = "The node that is to have it."},
    {"size", 's', "SIZE", .doc = "How large it is to be, such as 10Gi."},
    {"class", 'c', "CLASS",
     .doc = "The device class, or volume group; the node's default without it."},
    CLI_WAIT_OPTIONS,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", "name", NULL},
     .doc = "Show what was made as json, yaml or name."},
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_lv_create = {
    .name = "lv create",
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Make a logical volume on a node",
    .doc = "Makes a LogicalVolume that no claim asks for. Volumes for Pods are made by claims.",
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv create scratch --node node-1 --size 10Gi --wait", "One of 10 GiB."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option resize_options[] = {
    CLI_WAIT_OPTIONS,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_lv_resize = {
    .name = "lv resize",
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Grow a logical volume",
    .doc = "Asks for another size. The same size again asks the node to try again what failed; a "
           "smaller one, not below what the volume has, takes back a growth that failed. A volume "
           "that a claim has grows with its claim.",
    .options = resize_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv resize scratch 20Gi --wait", "Twice as large."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option delete_options[] = {
    {"force", 0, .doc = "Also those that a PersistentVolume stands for. Its data is lost."},
    CLI_WAIT_OPTIONS,
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_lv_delete = {
    .name = "lv delete",
    .arguments = "NAME...",
    .least = 1,
    .most = -1,
    .summary = "Remove logical volumes and what is on them",
    .doc = "Deletes LogicalVolumes; their nodes remove them. What a PersistentVolume stands for is "
           "deleted with its claim, and by this only with --force.",
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv delete scratch", "One of them."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option audit_options[] = {
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"table", "json", "yaml", NULL},
     .doc = "table (the default), json or yaml."},
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_lv_audit = {
    .name = "lv audit",
    .summary = "Compare logical volumes with what nodes have",
    .doc =
        "Shows, both ways, what does not fit together: volumes on nodes that belong to no object "
        "(Orphan), objects whose volume is gone from its node (Lost), and objects of nodes that "
        "are no more (NodeGone). The exit status is 0 when there is nothing of the kind, 1 "
        "otherwise. Nothing is changed.",
    .options = audit_options,
    .examples =
        (const char *const[][2]){
            {"orlop lv audit", "Before you sleep."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option forget_options[] = {
    {"force", 0, .doc = "Also a node that has said within its lease that it lives."},
    CLI_API_OPTIONS,
    {0},
};

const struct cli_command cli_node_forget = {
    .name = "node forget",
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Wait no more for a node that will not be back",
    .doc =
        "Says of a node that it is gone for good: LogicalVolumes and pools of it that are deleted, "
        "now "
        "or later, do not wait for it any more, and its Node object is deleted. Who said so, and "
        "when, is written on each of them and in Events. A node that is back after all shows what "
        "it still has as orphans: `orlop lv audit`.\n\n"
        "Nothing else is deleted: claims of lost volumes are for their users to delete.",
    .options = forget_options,
    .examples =
        (const char *const[][2]){
            {"orlop node forget node-3", "It burnt down."},
            {NULL},
        },
    .program = "ctl",
};

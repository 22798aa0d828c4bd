/*
 * volume: the commands of replicated volumes. The work is done by orlop-ctl.
 */
#include "cli/commands.h"

#define API_OPTIONS                                                                                \
    {"namespace", 'n', "NAMESPACE", .doc = "Where the volume is; the context's without it."},      \
        {"kubeconfig", 0, "FILE", .complete = CLI_FILES,                                           \
         .doc = "Where the API is; else $KUBECONFIG, then the data folder's."},                    \
        {"context", 0, "NAME", .doc = "The context of it to use."},                                \
    {                                                                                              \
        "data", 'd', "DIR", .complete = CLI_DIRS,                                                  \
                            .doc = "The data folder of an `orlop up`, whose API is meant."         \
    }

#define WAIT_OPTIONS                                                                               \
    {"wait", 'w', .doc = "Wait until it is done, or has failed."},                                 \
    {                                                                                              \
        "timeout", 't', "SECONDS", .doc = "How long to wait at most; 60 without it."               \
    }

static const struct cli_option list_options[] = {
    {"output", 'o', "FORMAT",
     .choices = (const char *const[]){"table", "wide", "json", "yaml", "name", NULL},
     .doc = "table (the default), wide (with portals and what is under way), json, yaml or name."},
    {"all-namespaces", 'A', .doc = "Those of all namespaces."},
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_list = {
    .name = "volume list",
    .arguments = "[NAME]...",
    .most = -1,
    .summary = "Show replicated volumes",
    .doc = "Shows JivaVolumes: how large they are, whether they take writes, how many of their "
           "replicas have everything.",
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume list -A", "All there are."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option show_options[] = {
    {"login", 'l', .doc = "Show, instead, what is needed to log in to it: the secrets too."},
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"text", "json", "yaml", "url", NULL},
     .doc = "text (the default: a picture), json, yaml, or with --login url."},
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_show = {
    .name = "volume show",
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Draw a volume: initiators, target, replicas",
    .doc =
        "Draws who is logged in, where the target is, and each replica: its node, its state, "
        "how far behind it is, how far a rebuild is. Below stands what is under way or wrong.\n\n"
        "With --login it shows how to log in by hand: portal, target, unit, the name and "
        "password of the volume, those by which the target proves itself (mutual CHAP), and all "
        "of it as a URL that libiscsi and qemu take. It reads the volume's Secret, NAME-chap: "
        "who may read that may use the volume.",
    .options = show_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume show data", "One of them."},
            {"orlop volume show data --login", "How to log in to it by hand."},
            {"qemu-img info \"$(orlop volume show data --login -o url)\"", "With qemu."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option create_options[] = {
    {"replicas", 'r', "N", .doc = "How many replicas it has; 3 without it."},
    {"reclaim", 0, "POLICY", .choices = (const char *const[]){"Delete", "Retain", NULL},
     .doc = "What becomes of the data when the volume is deleted; Retain without it."},
    {"fixed", 0, .doc = "It may not be resized, until it is annotated otherwise."},
    WAIT_OPTIONS,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", "name", NULL},
     .doc = "Show what was made as json, yaml or name."},
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_create = {
    .name = "volume create",
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Make a replicated volume",
    .doc = "Makes a JivaVolume: a target and its replicas, each on a node of its own, reached over "
           "iSCSI at the address that `orlop volume show` has.",
    .options = create_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume create data 10Gi --wait", "One with three replicas."},
            {"orlop volume create scratch 1Gi --replicas 1 --reclaim Delete",
             "One whose data goes with it."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option resize_options[] = {
    {"keep", 0, .doc = "Leave the JivaVolumeResize there when it is completed."},
    {"timeout", 't', "SECONDS", .doc = "How long to wait at most; 60 without it."},
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_resize = {
    .name = "volume resize",
    .arguments = "NAME SIZE",
    .least = 2,
    .most = 2,
    .summary = "Grow a replicated volume while it is in use",
    .doc = "Checks that the volume lets itself be resized, creates a JivaVolumeResize, shows how "
           "far it is, and deletes it when it is completed. Initiators are told of the new size "
           "and stay logged in.\n\n"
           "When it fails the volume is as it was; the reason is shown, and the status is 1. When "
           "it takes longer than the time-out it goes on: `kubectl get jvr` shows it. Ended with "
           "an interrupt, it is deleted, which withdraws it unless the target has begun.",
    .options = resize_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume resize data 20Gi", "To 20 GiB."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option snapshot_options[] = {
    {"timeout", 't', "SECONDS", .doc = "How long to wait at most; 60 without it."},
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"table", "json", "yaml", NULL},
     .doc = "Of list: table (the default), json or yaml."},
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_snapshot = {
    .name = "volume snapshot",
    .arguments = "list|create|delete|revert VOLUME [SNAPSHOT]",
    .least = 2,
    .most = 3,
    .summary = "Keep a volume as it is, go back to it, let it go",
    .doc =
        "`create` keeps the volume as it is now, on every replica; it takes no copy, and writes "
        "go on. `list` shows what was kept, the oldest first. `revert` makes the volume what it "
        "was then, for which nobody may be logged in and later snapshots have to be deleted first; "
        "what was written since is lost. `delete` "
        "lets a snapshot go, and merges what only it has into the next.\n\n"
        "It waits until it is done; when it fails the reason is shown, and the status is 1.",
    .options = snapshot_options,
    .choices = (const char *const[]){"list", "create", "delete", "revert", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop volume snapshot create data before-upgrade", "Before something risky."},
            {"orlop volume snapshot revert data before-upgrade", "It was."},
            {NULL},
        },
    .program = "ctl",
};

static const struct cli_option delete_options[] = {
    {"erase", 0, .doc = "Their data too, whatever they say of it."},
    WAIT_OPTIONS,
    API_OPTIONS,
    {0},
};

const struct cli_command cli_volume_delete = {
    .name = "volume delete",
    .arguments = "NAME...",
    .least = 1,
    .most = -1,
    .summary = "Remove replicated volumes",
    .doc = "Deletes JivaVolumes: their target ends, then their replicas. Data stays in the folders "
           "of the nodes unless the volume was made with --reclaim Delete, its PersistentVolume "
           "says Delete, or --erase is given.",
    .options = delete_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume delete scratch --erase", "With all that was on it."},
            {NULL},
        },
    .program = "ctl",
};

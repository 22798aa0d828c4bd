/*
 * up, down, status and logs. The work is done by orlop-up; here is what people see of it: help,
 * completion and the command line.
 */
#include "cli/commands.h"

#define DATA_OPTION                                                                                \
    {                                                                                              \
        "data", 'd', "DIR",                                                                        \
            .complete = CLI_DIRS,                                                                  \
            .doc = "Where everything is kept. Without it: $ORLOP_DATA, else /var/lib/orlop for "   \
                   "root and ~/.local/share/orlop for others."                                     \
    }

static const struct cli_option up_options[] = {
    DATA_OPTION,
    {"nodes", 'n', "N", .doc = "How many virtual nodes to run; 1 without it."},
    {"sparse-disks", 0, "NxSIZE",
     .doc = "Sparse files on every node to use as disks, such as 3x10Gi. They take the room that "
            "is written to them."},
    {"vg-disks", 0, "NxSIZE",
     .doc = "Sparse files on every node to make its volume group orlop of, for local volumes, such "
            "as 1x4Gi. They need loop devices."},
    {"listen", 'l', "ADDRESS",
     .doc = "Where the API listens: an address, a port, or both; 127.0.0.1:6443 without it. Port 0 "
            "is any that is free."},
    {"lost-after", 0, "TIME",
     .doc = "How long a node may be silent before it counts as lost; 40s without it."},
    {"rehome-after", 0, "TIME",
     .doc = "How long a node is lost before replicas of JivaVolumes are made anew elsewhere; 5m "
            "without it."},
    {"detach", 0, .doc = "Go to the background once everything is ready."},
    {0},
};

const struct cli_command cli_up = {
    .name = "up",
    .summary = "Start the whole system on this machine",
    .doc =
        "Starts the API server, the controllers and virtual nodes as programs of their own, keeps "
        "them running, and says where they are and what to type next. Ctrl-C, or `orlop down`, "
        "ends them all; what is in the data folder stays, and the next `orlop up` goes on with "
        "it. A program that ends by itself is started again.\n\n"
        "DIR/kubeconfig is the administrator's. What the programs say is in DIR/logs.",
    .options = up_options,
    .examples =
        (const char *const[][2]){
            {"orlop up --nodes 3 --sparse-disks 3x10Gi", "Three nodes with three disks each."},
            {"orlop up --data /srv/orlop --detach", "In the background, with a folder of its own."},
            {NULL},
        },
    .program = "up",
};

static const struct cli_option down_options[] = {
    DATA_OPTION,
    {"force", 0,
     .doc = "Kill what does not end in time, and what an `orlop up` that was killed left."},
    {0},
};

const struct cli_command cli_down = {
    .name = "down",
    .summary = "Stop the system that `orlop up` started",
    .doc =
        "Ends the programs of a system in order, and waits until they have ended. What is in the "
        "data folder stays.",
    .options = down_options,
    .examples =
        (const char *const[][2]){
            {"orlop down", "Stop it."},
            {NULL},
        },
    .program = "up",
};

static const struct cli_option status_options[] = {
    DATA_OPTION,
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"table", "json", NULL},
     .doc = "table (the default) or json."},
    {0},
};

const struct cli_command cli_status = {
    .name = "status",
    .summary = "Show what `orlop up` runs",
    .doc =
        "Shows the programs of a system, since when they run, how often they were started again, "
        "and how they ended last. The exit status is 0 when all of them run, 1 otherwise.",
    .options = status_options,
    .examples =
        (const char *const[][2]){
            {"orlop status -o json", "For a script."},
            {NULL},
        },
    .program = "up",
};

static const struct cli_option logs_options[] = {
    DATA_OPTION,
    {"follow", 'f', .doc = "Go on with what is written from now on, until Ctrl-C."},
    {"tail", 0, "N", .doc = "Only the last N lines of each; 100 without it, 0 is all."},
    {0},
};

const struct cli_command cli_logs = {
    .name = "logs",
    .arguments = "[PROGRAM]",
    .most = 1,
    .summary = "Show what the programs of `orlop up` say",
    .doc =
        "Shows the log of one program (apiserver, controller, node-1, ...) or of all of them. Logs "
        "of Pods are shown by `kubectl logs`.",
    .options = logs_options,
    .examples =
        (const char *const[][2]){
            {"orlop logs node-1 -f", "Follow a node's."},
            {NULL},
        },
    .program = "up",
};

static const struct cli_option token_options[] = {
    DATA_OPTION,
    {"ttl", 0, "SECONDS", .doc = "How long it is good for; 86400, a day, without it."},
    {"server", 0, "URL",
     .doc = "The API as the other machine reaches it; without it as this one does."},
    {"description", 0, "TEXT", .doc = "What it is for, to be read in `kubectl get secrets`."},
    {0},
};

const struct cli_command cli_token = {
    .name = "token",
    .arguments = "create",
    .least = 1,
    .most = 1,
    .summary = "Make a token with which another machine can join",
    .doc =
        "Makes a bootstrap token and prints the command to run on the other machine. Whoever has "
        "the token can join a node while it is good. The API must listen where that machine can "
        "reach it: see --listen of `orlop up`.",
    .options = token_options,
    .choices = (const char *const[]){"create", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop token create --ttl 600", "One for the next ten minutes."},
            {NULL},
        },
    .program = "up",
};

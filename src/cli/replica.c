/*
 * replica: the command line of one replica of a volume. The work is done by orlop-replica.
 */
#include "cli/commands.h"

static const struct cli_option options[] = {
    {"dir", 'd', "DIR", .complete = CLI_DIRS,
     .doc = "The replica's folder: who it is, its metadata and, unless --store says otherwise, its "
            "data. Made where there is none."},
    {"target", 't', "ADDRESS[:PORT]",
     .doc = "Where the volume's target awaits its replicas (port 6060)."},
    {"source", 0, "ADDRESS",
     .doc = "The address of this machine to dial from, under which the target shows the replica."},
    {"volume", 0, "NAME", .doc = "The volume's name, or its UUID: as the target was told."},
    {"store", 's', "STORE",
     .doc = "Where the data is (file:DIR/data): file:PATH or file:PATH?direct=1."},
    {"key-file", 0, "FILE", .complete = CLI_FILES,
     .doc = "The volume's key, which target and replicas share: 16 characters or more in its first "
            "line. They then speak TLS; between machines they must."},
    {"except", 0, "UUID,...", .doc = "Replicas that erase leaves alone, by their file `id`."},
    {"insecure", 0, .doc = "Between machines in the clear, without a key."},
    {"io", 0, "HOW", .choices = (const char *const[]){"auto", "uring", "epoll", NULL},
     .doc = "The event loop's back end (auto: io_uring, or epoll where that is refused)."},
    {"log-format", 0, "FORMAT", .choices = (const char *const[]){"text", "json", NULL},
     .doc = "Of the lines on standard error."},
    {"log-level", 0, "LEVEL",
     .choices = (const char *const[]){"error", "warn", "info", "debug", NULL},
     .doc = "What to log."},
    {0},
};

const struct cli_command cli_replica = {
    .name = "replica",
    .arguments = "serve|erase",
    .least = 1,
    .most = 1,
    .summary = "Keep a replica of a volume",
    .doc = "`serve` keeps one replica of a replicated volume in a folder, in the foreground, until "
           "SIGTERM. It dials the volume's target and dials again whenever the connection ends; "
           "what it "
           "missed meanwhile is copied to it while the volume goes on. No API is needed.\n\n"
           "The target is `orlop target serve --replicas N`.\n\n"
           "`erase` removes the folder of a replica of that volume which does not run. A folder "
           "that is anything else stays.",
    .options = options,
    .choices = (const char *const[]){"serve", "erase", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop replica serve --dir /srv/replica --target 192.0.2.10 --volume data",
             "Keep a replica of the volume data."},
            {NULL},
        },
    .program = "replica",
};

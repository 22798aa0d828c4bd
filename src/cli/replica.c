/*
 * replica: the command line of one replica of a volume. The work is done by orlop-replica.
 */
#include "cli/commands.h"
#include "cli/serving.h"

static const struct cli_option options[] = {
    {"dir", 'd', "DIR", .complete = CLI_DIRS,
     .doc = "The replica's folder: who it is, its metadata and, unless --store says otherwise, its "
            "data. Made where there is none."},
    {"target", 't', "ADDRESS[:PORT]",
     .doc = "Where the volume's target awaits its replicas (port 6060)."},
    {"source", 0, "ADDRESS",
     .doc = "The address of this machine to dial from, under which the target shows the replica."},
    {"volume", 0, "NAME", .doc = "The volume's name, or its UUID: as the target was told."},
    {"id", 0, "NAME",
     .doc =
         "Who it is: a UUID, or a name that one is made from (made at random). A folder that has "
         "another is refused."},
    {"store", 's', "STORE",
     .doc = "Where the data is (file:DIR/data): file:PATH or file:PATH?direct=1."},
    {"direct", 0, NULL,
     .doc = "Keep the data in DIR/data past the page cache, where the file system can; it says so "
            "when it cannot."},
    CLI_KEY_OPTIONS,
    {"beneath", 0, "DIR", .complete = CLI_DIRS,
     .doc = "With erase: --dir lies in this folder, and is refused if links or dots lead out."},
    {"except", 0, "UUID,...", .doc = "Replicas that erase leaves alone, by their file `id`."},
    CLI_SERVING_OPTIONS,
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
           "Its target is `orlop target serve --volume NAME`. A disk that is full is waited for; "
           "when a flush or "
           "the metadata fails, it ends, and says why: mend that and start it again.\n\n"
           "`erase` removes the folder of a replica of that volume which does not run. A folder "
           "that is anything else stays.",
    .options = options,
    .choices = (const char *const[]){"serve", "erase", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop replica serve --dir /srv/replica --target 192.0.2.10 --volume data --key-file "
             "key",
             "Keep a replica of the volume data."},
            {NULL},
        },
    .program = "replica",
};

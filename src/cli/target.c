/*
 * target: the command line of a volume served over iSCSI. The work is done by orlop-target.
 */
#include "cli/commands.h"
#include "cli/serving.h"

static const struct cli_option options[] = {
    {"store", 's', "STORE",
     .doc = "Where the data is: file:PATH, file:PATH?direct=1 (past the page cache) or mem:."},
    {"volume", 0, "NAME",
     .doc =
         "Instead of a store: a replicated volume, by its name or UUID, as its replicas are told."},
    {"create", 0,
     .doc = "Make the volume, of --size and of so many --replicas, once that many blank ones have "
            "come. Only for a volume that was never served; with --replica-ids it may be said for "
            "ever."},
    {"replica-ids", 0, "NAME,...",
     .doc = "With --create: the volume is made of these replicas and of no others, as their --id "
            "says. It is not made again when it was."},
    {"replicas", 0, "N", .doc = "How many replicas a new volume has."},
    {"consistency", 0, "N",
     .doc = "How many of them must have a write before it is acknowledged (more than half)."},
    {"replica-listen", 0, "ADDRESS[:PORT]", .doc = "Where replicas come (127.0.0.1:6060)."},
    {"replica", 0, "UUID", .doc = "Which one to add or remove: its folder's file `id` says."},
    {"name", 0, "NAME", .doc = "The snapshot's: up to 47 letters, digits, '.', '_' and '-'."},
    {"force", 0,
     .doc =
         "With remove: one that is gone for ever, without which there is no quorum. What only it "
         "had is lost, and if it comes back elsewhere there are two volumes: destroy it first."},
    {"instead", 0, "UUID", .doc = "The one that it replaces."},
    {"fail-seconds", 0, "N",
     .doc = "Let I/O fail when too few replicas have been in sync for so long (0: it waits)."},
    {"rebuild-rate", 0, "SIZE",
     .doc = "Bytes a second that rebuilds may take, such as 100Mi (0: no limit)."},
    {"scrub-days", 0, "N",
     .doc = "In how many days the background scrub reads the whole volume once (7; 0: none)."},
    {"size", 0, "SIZE", .doc = "Of a new store, or to grow one to: 10Gi."},
    {"iqn", 0, "NAME", .doc = "The target's name, such as iqn.2026-01.io.orlop:volume."},
    {"portal", 'p', "ADDRESS[:PORT]", .doc = "Where to listen (127.0.0.1:3260)."},
    {"block-size", 0, "BYTES", .choices = (const char *const[]){"512", "4096", NULL},
     .doc = "Of a logical block (512)."},
    {"lun", 0, "N", .doc = "The number of the logical unit, to 255 (0)."},
    {"read-only", 0, .doc = "Let nobody write."},
    {"removable", 0, .doc = "The medium can be ejected, and loaded again, by initiators."},
    {"chap-user", 0, "NAME", .doc = "Initiators must know this name and its secret."},
    {"chap-secret-file", 0, "FILE", .complete = CLI_FILES,
     .doc = "A file with the secret: 12 characters or more."},
    {"mutual-user", 0, "NAME", .doc = "The target proves itself with this name (mutual CHAP)."},
    {"mutual-secret-file", 0, "FILE", .complete = CLI_FILES, .doc = "And with this secret."},
    {"initiators", 0, "NAME,...", .doc = "Only these initiators may log in (all)."},
    {"alias", 0, "TEXT", .doc = "What initiators may show people."},
    {"serial", 0, "TEXT", .doc = "The unit's serial number (made from the name)."},
    {"state-dir", 0, "DIR", .complete = CLI_DIRS,
     .doc = "Where persistent reservations are kept, so that they survive a restart."},
    CLI_KEY_OPTIONS,
    {"control", 'c', "PATH", .complete = CLI_FILES,
     .doc = "The control socket: serve makes it, the others ask there."},
    {"metrics", 0, "ADDRESS[:PORT]", .doc = "Serve metrics for Prometheus there (port 9500)."},
    {"drain-seconds", 0, "N", .doc = "How long initiators have to log out at the end (5)."},
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"text", "json", "yaml", NULL},
     .doc = "How to show what there is: text (the default), json or yaml."},
    CLI_SERVING_OPTIONS,
    {0},
};

const struct cli_command cli_target = {
    .name = "target",
    .arguments =
        "serve|show|grow|drain|add|remove|scrub|rate|snapshot|snapshots|snapshot-delete|revert",
    .least = 1,
    .most = 1,
    .summary = "Serve a volume over iSCSI",
    .doc =
        "`serve` serves one store as one iSCSI target, in the foreground, until SIGTERM: then "
        "initiators are asked to log out, and everything is flushed. No API is needed.\n\n"
        "The others ask a target that runs, over its control socket: `show` prints what it is and "
        "does, for each initiator; `grow` makes the volume larger while it is in use, and "
        "initiators are told; `drain` lets nobody log in any more and asks those who are to log "
        "out.\n\n"
        "Of a replicated volume, `add` takes a replica in, in place of another with --instead, and "
        "ends "
        "when it has everything; `remove` lets one go; `scrub` compares all replicas and mends "
        "what "
        "differs by majority; `rate` limits what rebuilds take. What takes long is waited for; "
        "interrupted, it goes on, and `show` says so.\n\n"
        "`snapshot` keeps a replicated volume as it is now, under a name; `snapshots` lists what "
        "was "
        "kept, and how many replicas have it: one that was away gets it when it comes back; "
        "`snapshot-delete` forgets one, and replicas give its space back in the background; "
        "`revert` "
        "makes the volume as it was then, while nobody is logged in. A volume never shrinks: what "
        "it "
        "grew by since reads as zeroes after the revert. Snapshots later than the one gone back to "
        "must be deleted first.\n\n"
        "A secret is read from a file, so that it is seen neither in ps nor in the log.",
    .options = options,
    .choices =
        (const char *const[]){"serve", "show", "grow", "drain", "add", "remove", "scrub", "rate",
                              "snapshot", "snapshots", "snapshot-delete", "revert", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop target serve --store file:/srv/volume --size 10Gi --iqn "
             "iqn.2026-01.io.orlop:volume --control /run/volume.sock",
             "Serve a sparse file on 127.0.0.1:3260."},
            {"orlop target serve --volume data --create --replicas 3 --size 10Gi --iqn "
             "iqn.2026-01.io.orlop:data --key-file key --control /run/data.sock",
             "Serve a volume of three replicas on this machine, once they have come."},
            {"orlop target show --control /run/volume.sock", "Who is logged in, and how it fares."},
            {"orlop target grow --control /run/volume.sock --size 20Gi", "Grow it in use."},
            {NULL},
        },
    .program = "target",
};

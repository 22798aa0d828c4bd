/*
 * `orlop target`: its command line.
 */
#pragma once

#include "cli/serving.h"
#include "target/target.h"

struct target_settings {
    struct target_options o;
    struct cli_list replica_ids, initiators;
    const char *replica_listen, *portal, *metrics, *block_size, *key_file;
    const char *chap_user, *chap_secret, *mutual_user, *mutual_secret;
    const char *replica, *instead, *name, *output; /* of a request to a running target */
    bool force;
    enum io_backend io;
    struct cli_log log;
};

#define TARGET_AT(member) CLI_AT(struct target_settings, member)

static const struct cli_option target_cli_options[] = {
    {"store", 's', "STORE", CLI_STRING, TARGET_AT(o.store),
     .doc = "Where the data is: file:PATH, file:PATH?direct=1 (bypassing the page cache) or mem:."},
    {"volume", 0, "NAME", CLI_STRING, TARGET_AT(o.volume),
     .doc = "Instead of a store: a replicated volume, by its name or UUID, as given to its "
            "replicas."},
    {"create", 0, NULL, CLI_SWITCH, TARGET_AT(o.create),
     .doc = "Create the volume, with --size and --replicas, once that many blank replicas have "
            "connected. Only for a volume that was never served; with --replica-ids the option may "
            "stay for ever."},
    {"replica-ids", 0, "NAME,...", CLI_LIST, TARGET_AT(replica_ids), .replaces = true,
     .doc = "With --create: create the volume of exactly these replicas, as their --id says. An "
            "existing volume is not created again."},
    {"replicas", 0, "N", CLI_INT, TARGET_AT(o.replicas), .most = REPL_MEMBERS,
     .doc = "How many replicas a new volume has."},
    {"consistency", 0, "N", CLI_INT, TARGET_AT(o.consistency), .most = REPL_MEMBERS,
     .doc = "How many replicas must have a write before it is acknowledged; without it more than "
            "half."},
    {"replica-listen", 0, "ADDRESS[:PORT]", CLI_STRING, TARGET_AT(replica_listen),
     .def = "127.0.0.1", .doc = "Where replicas connect (port 6060)."},
    {"replica", 0, "UUID", CLI_STRING, TARGET_AT(replica),
     .doc = "The replica to add or remove, by the file `id` of its folder."},
    {"name", 0, "NAME", CLI_STRING, TARGET_AT(name),
     .doc = "Name of the snapshot: up to 47 letters, digits, '.', '_' and '-'."},
    {"force", 0, NULL, CLI_SWITCH, TARGET_AT(force),
     .doc = "With remove: a replica that is gone for ever, without which there is no quorum. What "
            "only it had is lost, and if it comes back elsewhere there are two volumes: destroy it "
            "first."},
    {"instead", 0, "UUID", CLI_STRING, TARGET_AT(instead),
     .doc = "With add: the replica to replace."},
    {"fail-seconds", 0, "N", CLI_INT, TARGET_AT(o.fail_seconds), .def = "0", .most = 86400,
     .doc = "Let I/O fail when too few replicas have been in sync for so many seconds; 0 waits."},
    {"rebuild-rate", 0, "SIZE", CLI_SIZE, TARGET_AT(o.rebuild_rate), .def = "0",
     .doc = "Bytes a second that rebuilds may use, such as 100Mi; 0 is no limit."},
    {"scrub-days", 0, "N", CLI_INT, TARGET_AT(o.scrub_days), .def = "7", .most = 3650,
     .doc = "Days in which the background scrub reads the whole volume once; 0 is no scrub."},
    {"size", 0, "SIZE", CLI_SIZE, TARGET_AT(o.size),
     .doc = "Size of a new store, or the size to grow to, such as 10Gi."},
    {"iqn", 0, "NAME", CLI_STRING, TARGET_AT(o.iqn),
     .doc = "The target's name, such as iqn.2026-01.io.orlop:volume."},
    {"portal", 'p', "ADDRESS[:PORT]", CLI_STRING, TARGET_AT(portal), .def = "127.0.0.1",
     .doc = "Where to listen for initiators (port 3260)."},
    {"block-size", 0, "BYTES", CLI_ENUM, TARGET_AT(block_size), .def = "512",
     .choices = CLI_WORDS("512", "4096"), .doc = "Size of a logical block."},
    {"lun", 0, "N", CLI_INT, TARGET_AT(o.lun), .def = "0", .most = 255,
     .doc = "Number of the logical unit."},
    {"read-only", 0, NULL, CLI_SWITCH, TARGET_AT(o.read_only), .doc = "Refuse writes."},
    {"removable", 0, NULL, CLI_SWITCH, TARGET_AT(o.removable),
     .doc = "Let initiators eject the medium and load it again."},
    {"chap-user", 0, "NAME", CLI_STRING, TARGET_AT(chap_user),
     .doc = "Name with which initiators must log in (CHAP)."},
    {"chap-secret-file", 0, "FILE", CLI_FILE, TARGET_AT(chap_secret),
     .doc = "File with its secret: 12 characters or more."},
    {"mutual-user", 0, "NAME", CLI_STRING, TARGET_AT(mutual_user),
     .doc = "Name with which the target proves itself (mutual CHAP)."},
    {"mutual-secret-file", 0, "FILE", CLI_FILE, TARGET_AT(mutual_secret),
     .doc = "File with its secret."},
    {"initiators", 0, "NAME,...", CLI_LIST, TARGET_AT(initiators), .replaces = true,
     .doc = "Initiators that may log in; without it all."},
    {"alias", 0, "TEXT", CLI_STRING, TARGET_AT(o.alias),
     .doc = "A name that initiators may show to people."},
    {"serial", 0, "TEXT", CLI_STRING, TARGET_AT(o.serial),
     .doc = "Serial number of the unit; without it one that is made from the target's name."},
    {"state-dir", 0, "DIR", CLI_DIR, TARGET_AT(o.state_dir),
     .doc = "Folder for persistent reservations, so that they survive a restart."},
    CLI_KEY_OPTION(struct target_settings),
    {"control", 'c', "PATH", CLI_FILE, TARGET_AT(o.control),
     .doc = "The control socket: serve creates it, the other verbs connect to it."},
    {"metrics", 0, "ADDRESS[:PORT]", CLI_STRING, TARGET_AT(metrics),
     .doc = "Serve metrics for Prometheus there (port 9500)."},
    {"queue-depth", 0, "N", CLI_INT, TARGET_AT(o.queue_depth), .most = 1024,
     .doc = "How many commands an initiator may have under way (128)."},
    {"drain-seconds", 0, "N", CLI_INT, TARGET_AT(o.drain_seconds), .def = "5", .most = 3600,
     .doc = "How many seconds initiators have to log out at the end."},
    {"output", 'o', "FORMAT", CLI_ENUM, TARGET_AT(output), .def = "text",
     .choices = CLI_WORDS("text", "json", "yaml"), .doc = "Output format of the other verbs."},
    CLI_SERVING_OPTIONS(struct target_settings),
    {0},
};

static const struct cli_command target_row = {
    .name = "target",
    .topic = CLI_PROGRAMS,
    .arguments =
        "serve|show|grow|drain|add|remove|scrub|rate|snapshot|snapshots|snapshot-delete|revert",
    .least = 1,
    .most = 1,
    .summary = "Serve a volume over iSCSI",
    .doc = "Instead of a store: a replicated volume, by its name or UUID, as its replicas are "
           "told.createMake the volume, of --size and of so many --replicas, once that many blank "
           "ones have come. Only for a volume that was never served; with --replica-ids it may be "
           "said for ever.replica-idsNAME,...With --create: the volume is made of these replicas "
           "and of no others, as their --id says. It is not made again when it was.replicasNHow "
           "many replicas a new volume has.consistencyNHow many of them must have a write before "
           "it is acknowledged (more than half).replica-listenADDRESS[:PORT]Where replicas come "
           "(127.0.0.1:6060).replicaUUIDWhich one to add or remove: its folder's file `id` "
           "says.nameNAMEThe snapshot's: up to 47 letters, digits, '.', '_' and '-'.forceWith "
           "remove: one that is gone for ever, without which there is no quorum. What only it had "
           "is lost, and if it comes back elsewhere there are two volumes: destroy it "
           "first.insteadUUIDThe one that it replaces.fail-secondsNLet I/O fail when too few "
           "replicas have been in sync for so long (0: it waits).rebuild-rateSIZEBytes a second "
           "that rebuilds may take, such as 100Mi (0: no limit).scrub-daysNIn how many days the "
           "background scrub reads the whole volume once (7; 0: none).sizeSIZEOf a new store, or "
           "to grow one to: 10Gi.iqnNAMEThe target's name, such as "
           "iqn.2026-01.io.orlop:volume.portalADDRESS[:PORT]Where to listen "
           "(127.0.0.1:3260).block-sizeBYTES5124096Of a logical block (512).lunNThe number of the "
           "logical unit, to 255 (0).read-onlyLet nobody write.removableThe medium can be "
           "ejected, and loaded again, by initiators.chap-userNAMEInitiators must know this name "
           "and its secret.chap-secret-fileFILEA file with the secret: 12 characters or "
           "more.mutual-userNAMEThe target proves itself with this name (mutual "
           "CHAP).mutual-secret-fileFILEAnd with this secret.initiatorsNAME,...Only these "
           "initiators may log in (all).aliasTEXTWhat initiators may show people.serialTEXTThe "
           "unit's serial number (made from the name).state-dirDIRWhere persistent reservations "
           "are kept, so that they survive a restart.controlPATHThe control socket: serve makes "
           "it, the others ask there.metricsADDRESS[:PORT]Serve metrics for Prometheus there "
           "(port 9500).drain-secondsNHow long initiators have to log out at the end "
           "(5).outputFORMATtextjsonyamlHow to show what there is: text (the default), json or "
           "yaml.targetserve|show|grow|drain|add|remove|scrub|rate|snapshot|snapshots|snapshot-"
           "delete|revertServe "
           "a volume over iSCSI`serve` serves one store as one iSCSI target, in the foreground, "
           "until SIGTERM: then initiators are asked to log out, and everything is flushed. No "
           "API is needed.\n\n"
           "The others ask a target that runs, over its control socket: `show` prints what it is "
           "and does, for each initiator; `grow` makes the volume larger while it is in use, and "
           "initiators are told; `drain` refuses new logins and asks those who are logged in to "
           "log out.\n\n"
           "Of a replicated volume, `add` adds a replica, in place of another with --instead, and "
           "ends when the replica is complete; `remove` removes one; `scrub` compares all "
           "replicas and repairs differences by majority; `rate` limits what rebuilds take. The "
           "command waits for what takes long; when it is interrupted the work goes on, and "
           "`show` says so.\n\n"
           "`snapshot` keeps a replicated volume as it is now, under a name; `snapshots` lists "
           "them, and how many replicas have each: a replica that was away gets it when it comes "
           "back; `snapshot-delete` deletes one, and replicas free its space in the background; "
           "`revert` restores the volume as it was then, while nobody is logged in. A volume "
           "never shrinks: what it grew by since reads as zeroes after the revert. Later "
           "snapshots must be deleted first.\n\n"
           "A secret is read from a file, so that it is seen neither in ps nor in the log.",
    .settings = sizeof(struct target_settings),
    .options = target_cli_options,
    .choices = CLI_WORDS("serve", "show", "grow", "drain", "add", "remove", "scrub", "rate",
                         "snapshot", "snapshots", "snapshot-delete", "revert"),
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

int target_command(const struct cli_args *args);
/* client.c: asks a running target. */
int target_ask(const struct cli_args *args, const char *verb);

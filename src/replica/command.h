/*
 * `orlop replica`: its command line.
 */
#pragma once

#include "cli/serving.h"
#include "io/loop.h"

struct replica_settings {
    const char *dir, *target, *source, *volume, *id, *store, *key_file, *beneath, *except;
    bool direct;
    enum io_backend io;
    struct cli_log log;
};

#define REPLICA_AT(member) CLI_AT(struct replica_settings, member)

static const struct cli_option replica_options[] = {
    {"dir", 'd', "DIR", CLI_DIR, REPLICA_AT(dir), .required = true,
     .doc = "The replica's folder: its identity, its metadata and, unless --store says otherwise, "
            "its data. Created if it does not exist."},
    {"target", 't', "ADDRESS[:PORT]", CLI_STRING, REPLICA_AT(target),
     .doc = "Where the volume's target listens for its replicas (port 6060)."},
    {"source", 0, "ADDRESS", CLI_STRING, REPLICA_AT(source),
     .doc = "The address of this machine to dial from, under which the target shows the replica."},
    {"volume", 0, "NAME", CLI_STRING, REPLICA_AT(volume), .required = true,
     .doc = "The volume's name, or its UUID, as given to the target."},
    {"id", 0, "NAME", CLI_STRING, REPLICA_AT(id),
     .doc =
         "Identity of the replica: a UUID, or a name from which one is made; without it a random "
         "one. A folder with another identity is refused."},
    {"store", 's', "STORE", CLI_STRING, REPLICA_AT(store),
     .doc = "Where the data is, file:PATH or file:PATH?direct=1; without it file:DIR/data."},
    {"direct", 0, NULL, CLI_SWITCH, REPLICA_AT(direct),
     .doc = "Bypass the page cache for the data in DIR/data, where the file system can; the log "
            "says so when it cannot."},
    CLI_KEY_OPTION(struct replica_settings),
    {"beneath", 0, "DIR", CLI_DIR, REPLICA_AT(beneath),
     .doc = "With erase: --dir must be in this folder; it is refused if links or dots lead out."},
    {"except", 0, "UUID,...", CLI_STRING, REPLICA_AT(except),
     .doc = "With erase: replicas to leave alone, by their file `id`."},
    CLI_SERVING_OPTIONS(struct replica_settings),
    {0},
};

static const struct cli_command replica_row = {
    .name = "replica",
    .topic = CLI_PROGRAMS,
    .arguments = "serve|erase",
    .least = 1,
    .most = 1,
    .summary = "Keep a replica of a volume",
    .doc =
        "`serve` keeps one replica of a replicated volume in a folder, in the foreground, until "
        "SIGTERM. It dials the volume's target, and dials again whenever the connection ends; "
        "what it missed meanwhile is copied to it while the volume goes on. No API is needed.\n\n"
        "Its target is `orlop target serve --volume NAME`. It waits while the disk is full; when "
        "a flush or the metadata fails, it ends, and says why: repair that and start it "
        "again.\n\n"
        "`erase` removes the folder of a replica of that volume which does not run. A folder "
        "that is anything else stays.",
    .settings = sizeof(struct replica_settings),
    .options = replica_options,
    .choices = CLI_WORDS("serve", "erase"),
    .examples =
        (const char *const[][2]){
            {"orlop replica serve --dir /srv/replica --target 192.0.2.10 --volume data --key-file "
             "key",
             "Keep a replica of the volume data."},
            {NULL},
        },
    .program = "replica",
};

int replica_command(const struct cli_args *args);

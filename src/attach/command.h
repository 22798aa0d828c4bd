/*
 * `orlop attach`: its command line.
 */
#pragma once

#include "attach/serve.h"
#include "cli/log.h"

struct attach_settings {
    struct attach_serve_options o;
    const char *background, *dir, *id, *output;
    const char *chap_secret, *mutual_secret; /* files */
    int64_t flush_within;
    bool force;
    struct cli_log log;
};

#define ATTACH_AT(member) CLI_AT(struct attach_settings, member)

static const struct cli_option attach_options[] = {
    {"portal", 'p', "ADDRESS[:PORT]", CLI_STRING, ATTACH_AT(o.session.portal),
     .doc = "Where the target listens (port 3260)."},
    {"iqn", 0, "NAME", CLI_STRING, ATTACH_AT(o.session.iqn),
     .doc = "The target's name, such as iqn.2026-01.io.orlop:volume."},
    {"lun", 0, "N", CLI_INT, ATTACH_AT(o.session.lun), .def = "0", .most = 255,
     .doc = "Number of the logical unit."},
    {"initiator", 0, "NAME", CLI_STRING, ATTACH_AT(o.session.initiator),
     .def = "iqn.2026-01.io.orlop:node",
     .doc =
         "Name of this node as an initiator. A session of the same name to the same unit ends an "
         "earlier one."},
    {"chap-user", 0, "NAME", CLI_STRING, ATTACH_AT(o.session.chap_user),
     .doc = "Name to log in with (CHAP)."},
    {"chap-secret-file", 0, "FILE", CLI_FILE, ATTACH_AT(chap_secret),
     .doc = "File with its secret."},
    {"mutual-user", 0, "NAME", CLI_STRING, ATTACH_AT(o.session.mutual_user),
     .doc = "Name with which the target must prove itself (mutual CHAP)."},
    {"mutual-secret-file", 0, "FILE", CLI_FILE, ATTACH_AT(mutual_secret),
     .doc = "File with its secret."},
    {"fail-after", 0, "TIME", CLI_DURATION, ATTACH_AT(o.session.fail_after_ns), .def = "0",
     .doc = "Let I/O fail that has waited for the target for so long; 0 is never."},
    {"login-within", 0, "TIME", CLI_DURATION, ATTACH_AT(o.login_within_ns), .def = "10s",
     .doc = "How long the first login may take. Later ones are tried for ever."},
    {"mount", 0, "DIR", CLI_DIR, ATTACH_AT(o.mount),
     .doc = "With serve: where the file system is mounted; the volume is the file DIR/volume."},
    {"control", 'c', "PATH", CLI_FILE, ATTACH_AT(o.control),
     .doc = "With serve: the control socket that is made. PATH.lock beside it is locked."},
    {"background", 0, "FILE", CLI_FILE, ATTACH_AT(background),
     .doc =
         "With serve: return once the volume can be used, and go on in the background with the log "
         "in that file."},
    {"dir", 0, "DIR", CLI_DIR, ATTACH_AT(dir), .def = "/var/lib/orlop/attach",
     .doc = "Folder of all volumes that are attached on this node."},
    {"id", 0, "ID", CLI_STRING, ATTACH_AT(id), .doc = "The volume, by any name."},
    {"flush-within", 0, "TIME", CLI_DURATION, ATTACH_AT(flush_within), .def = "30s",
     .doc = "With remove: how long the flush may take."},
    {"force", 0, NULL, CLI_SWITCH, ATTACH_AT(force),
     .doc = "With remove: even if the device is in use or cannot be flushed. I/O that waits fails, "
            "and "
            "what was not flushed is lost."},
    {"output", 'o', "FORMAT", CLI_ENUM, ATTACH_AT(output), .def = "text",
     .choices = CLI_WORDS("text", "json"), .doc = "Output format of show and list."},
    CLI_LOG_OPTIONS(struct attach_settings),
    {0},
};

static const struct cli_command attach_row = {
    .name = "attach",
    .topic = CLI_PROGRAMS,
    .arguments = "serve|add|show|grow|remove|list",
    .least = 1,
    .most = 1,
    .summary = "Attach a volume without the kernel's iSCSI initiator",
    .doc =
        "Makes an iSCSI volume a block device of this machine where the kernel has no initiator: a "
        "process logs in to the target and shows the volume as one file (FUSE), and a loop device "
        "on "
        "the file is the block device, with flush, discard and growth while it is in use.\n\n"
        "`add` attaches a volume and prints its device; a volume that is attached already stays as "
        "it "
        "is, and what a process that was killed left behind is cleaned up. `grow` takes over a "
        "larger "
        "size of the volume. `remove` flushes, and removes device, process and mount. `show` and "
        "`list` "
        "say what is there, and what does not belong together any more.\n\n"
        "`serve` is the process itself; `add` starts it in the background, and it goes on when "
        "whoever "
        "started it ends. When the target is away, I/O waits and is sent again once the session is "
        "back; "
        "nothing fails unless --fail-after says so. SIGTERM ends it: if the file is still in use, "
        "I/O "
        "that waits fails. When a process cannot begin, its exit status is 64 and the number of a "
        "gRPC "
        "code: 71 when the target refuses the login, 78 when it does not answer.\n\n"
        "Root, FUSE and loop devices are needed. Secrets are read from files, so that they are "
        "seen "
        "neither in ps nor in the log.",
    .settings = sizeof(struct attach_settings),
    .options = attach_options,
    .choices = CLI_WORDS("serve", "add", "show", "grow", "remove", "list"),
    .examples =
        (const char *const[][2]){
            {"orlop attach add --id data --portal 127.0.0.1 --iqn iqn.2026-01.io.orlop:data",
             "Attach a volume; prints /dev/loop0."},
            {"orlop attach remove --id data", "Detach it."},
            {NULL},
        },
    .program = "attach",
};

int attach_command(const struct cli_args *args);

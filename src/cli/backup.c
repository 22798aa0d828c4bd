/*
 * backup and restore. The work is done by the program that owns the store; here is what people see
 * of it: help, completion and the command line.
 */
#include "cli/commands.h"

static const struct cli_option backup_options[] = {
    {"data-dir", 'd', "DIR", .complete = CLI_DIRS, .doc = "The data folder of the API server."},
    {"quiet", 'q', .doc = "Say nothing unless something is wrong."},
    {0},
};

const struct cli_command cli_backup = {
    .name = "backup",
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "Copy the API server's store into a file",
    .doc =
        "Makes FILE a complete copy of the store as of one moment. A server that is running goes "
        "on serving and makes the copy itself; it is reached through control.sock in its data "
        "folder, so this must run on the same machine, as root or as the server's user. Where no "
        "server is running the store is checked and copied directly.\n\n"
        "FILE appears under its name when it is complete and on disk; a FILE that exists is "
        "replaced then, and left alone when anything fails. It holds everything that the API "
        "holds, Secrets too: only its owner can read it.",
    .options = backup_options,
    .complete = CLI_FILES,
    .examples =
        (const char *const[][2]){
            {"orlop backup --data-dir /var/lib/orlop /backup/orlop.db", "Copy the store."},
            {NULL},
        },
    .program = "apiserver",
};

static const struct cli_option restore_options[] = {
    {"data-dir", 'd', "DIR", .complete = CLI_DIRS, .doc = "The data folder to restore into."},
    {"force", 0, .doc = "Also where there is a store already, which is kept beside."},
    {"quiet", 'q', .doc = "Say nothing unless something is wrong."},
    {0},
};

const struct cli_command cli_restore = {
    .name = "restore",
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "Put a backup in place of the API server's store",
    .doc =
        "Puts a copy that `orlop backup` made in place of the store. The server must be stopped. "
        "The backup is checked first; a store that is there is replaced only with --force, and "
        "kept as store.db.before-restore-TIME.\n\n"
        "Revisions go on where neither the backup nor the store that it replaces has been: "
        "1,000,000,000 above the higher of both. So clients that knew the store before are told "
        "to list again, and none mistakes an old state for a newer one.",
    .options = restore_options,
    .complete = CLI_FILES,
    .examples =
        (const char *const[][2]){
            {"orlop restore --data-dir /var/lib/orlop --force /backup/orlop.db",
             "Go back to a backup."},
            {NULL},
        },
    .program = "apiserver",
};

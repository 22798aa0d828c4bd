/*
 * orlop-apiserver: its command lines.
 */
#pragma once

#include "cli/log.h"
#include "k8s/apiserver/serve.h"

struct apiserver_settings {
    struct apiserver_options server;
    const char *folder, *features;
    struct cli_list names;
    unsigned audit_megabytes;
    int64_t event_ttl;
    bool verbose;
    struct cli_log log;
};

#define APISERVER_AT(member) CLI_AT(struct apiserver_settings, member)

static const struct cli_option apiserver_options[] = {
    {"data-dir", 0, "DIR", CLI_DIR, APISERVER_AT(folder), .required = true,
     .doc = "Folder for everything the server keeps; created if it does not exist."},
    {"address", 0, "IP", CLI_STRING, APISERVER_AT(server.address), .def = "127.0.0.1",
     .doc = "Address to listen on."},
    {"port", 0, "PORT", CLI_INT, APISERVER_AT(server.port), .def = "6443", .most = UINT16_MAX,
     .doc = "Port to listen on; 0 is any free one."},
    {"tls-san", 0, "NAME", CLI_ITEMS, APISERVER_AT(names),
     .doc = "Another name or address at which clients reach the server; may be repeated."},
    {"token-auth-file", 0, "FILE", CLI_FILE, APISERVER_AT(server.token_file),
     .doc = "Static tokens: lines of token,user,uid,\"group,group\"."},
    {"service-cluster-ip-range", 0, "CIDR", CLI_STRING, APISERVER_AT(server.service_range),
     .doc = "Addresses of Services; without it 127.96.0.0/12, on loopback, for one machine."},
    {"pod-logs", 0, "DIR", CLI_STRING, APISERVER_AT(server.pods),
     .doc = "Where nodes write the logs of containers; without it DIR/pods of the data folder. "
            "{node} in it stands for a node's name."},
    {"only-kubernetes", 0, NULL, CLI_SWITCH, APISERVER_AT(server.only_kubernetes),
     .doc = "Do not build in Orlop's kinds: they come with their definitions (orlop crds), as on "
            "any cluster."},
    {"plain-http", 0, NULL, CLI_SWITCH, APISERVER_AT(server.plain_http),
     .doc = "Serve without TLS, for tests: whoever reaches the server may do everything, so it "
            "listens on loopback only."},
    {"audit-log-path", 0, "FILE", CLI_STRING, APISERVER_AT(server.audit.path),
     .doc = "The audit log; without it audit.log in the data folder. - is standard output, off is "
            "none."},
    {"audit-level", 0, "LEVEL", CLI_ENUM, APISERVER_AT(server.audit.level), .def = "writes",
     .choices = CLI_WORDS("off", "writes", "all"),
     .doc = "What to write to the audit log. writes includes what was refused."},
    {"audit-log-maxsize", 0, "MB", CLI_INT, APISERVER_AT(audit_megabytes), .def = "100",
     .most = 1000000, .doc = "Size in megabytes at which the audit log is rotated; 0 is never."},
    {"audit-log-maxbackup", 0, "N", CLI_INT, APISERVER_AT(server.audit.backups), .def = "5",
     .most = 1000, .doc = "How many rotated audit logs to keep."},
    {"max-requests-per-client", 0, "N", CLI_INT, APISERVER_AT(server.limits.per_second),
     .def = "5000", .most = 1000000,
     .doc = "Requests a second that one client may send, with bursts of twice as many; 0 is no "
            "limit."},
    {"max-requests-inflight", 0, "N", CLI_INT, APISERVER_AT(server.limits.in_flight), .def = "400",
     .most = 1000000,
     .doc = "Requests of all clients served at a time, not counting watches; 0 is no limit."},
    {"event-ttl", 0, "TIME", CLI_SECONDS, APISERVER_AT(event_ttl), .def = "3600",
     .least = CLOCK_SECOND,
     .doc = "How long Events are kept; a number without a unit counts seconds."},
    {"feature-gates", 0, "NAME=BOOL,...", CLI_STRING, APISERVER_AT(features),
     .doc = "StatefulSetVolumeExpansion: sizes in volumeClaimTemplates can be changed (true). "
            "OrlopAdmission: the rules of Orlop's kinds; false leaves them to a webhook (true)."},
    CLI_LOG_OPTIONS(struct apiserver_settings),
    {"verbose", 'v', NULL, CLI_SWITCH, APISERVER_AT(verbose),
     .doc = "The same as --log-level debug: log every request."},
    {0},
};

static const struct cli_command apiserver_command = {
    .name = "apiserver",
    .topic = CLI_PROGRAMS,
    .summary = "Serve the Kubernetes API from a database",
    .doc = "Serves the Kubernetes API for the kinds that Orlop knows, and for those that users "
           "define, over TLS. Keys and certificates are created in DIR/pki and renewed there; "
           "kubectl connects with DIR/admin.kubeconfig. Secrets are encrypted with "
           "DIR/encryption.key: keep a copy of that file apart from the backups.",
    .settings = sizeof(struct apiserver_settings),
    .options = apiserver_options,
    .examples =
        (const char *const[][2]){
            {"orlop apiserver --data-dir /var/lib/orlop/api", "Serve on 127.0.0.1:6443."},
            {NULL},
        },
    .program = "apiserver",
};

struct backup_settings {
    const char *folder;
    bool force, quiet;
};

#define BACKUP_OPTIONS(text)                                                                       \
    {"data-dir",       'd',        "DIR", CLI_DIR, CLI_AT(struct backup_settings, folder),         \
     .required = true, .doc = text},                                                               \
    {                                                                                              \
        "quiet", 'q', NULL, CLI_SWITCH, CLI_AT(struct backup_settings, quiet),                     \
            .doc = "Print nothing unless something is wrong."                                      \
    }

static const struct cli_option backup_options[] = {
    BACKUP_OPTIONS("Data folder of the API server."),
    {0},
};

static const struct cli_command backup_command = {
    .name = "backup",
    .topic = CLI_MACHINE,
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "Copy the API server's store into a file",
    .doc =
        "Makes FILE a complete copy of the store as of one moment. A server that is running goes "
        "on serving and makes the copy itself; it is reached through control.sock in its data "
        "folder, so this must run on the same machine, as root or as the server's user. Where "
        "no server is running the store is checked and copied directly.\n\n"
        "FILE appears under its name when it is complete and on disk; a FILE that exists is "
        "replaced then, and left alone when anything fails. It holds everything that the API "
        "holds, including Secrets: only its owner can read it.",
    .settings = sizeof(struct backup_settings),
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
    BACKUP_OPTIONS("Data folder to restore into."),
    {"force", 0, NULL, CLI_SWITCH, CLI_AT(struct backup_settings, force),
     .doc = "Replace a store that is there already; it is kept beside the new one."},
    {0},
};

static const struct cli_command restore_command = {
    .name = "restore",
    .topic = CLI_MACHINE,
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "Put a backup in place of the API server's store",
    .doc =
        "Puts a copy that `orlop backup` made in place of the store. The server must be stopped. "
        "The backup is checked first; a store that is there is replaced only with --force, and "
        "kept as store.db.before-restore-TIME.\n\n"
        "Revisions continue 1,000,000,000 above the higher of the backup's and the replaced "
        "store's. So clients that knew the store before are told to list again, and none "
        "mistakes an old state for a newer one.",
    .settings = sizeof(struct backup_settings),
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

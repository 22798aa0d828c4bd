/*
 * orlop-target: one volume, served over iSCSI.
 *
 *     loop ─┬─ iscsi server ── node ── target ── unit ── store
 *           ├─ control socket: one JSON request a line, one JSON answer a line
 *           ├─ SIGTERM: drain, flush, end
 *           └─ (a thread of its own) metrics over HTTP
 */
#pragma once

#include "base/err.h"
#include "cli/cli.h"
#include "http/server.h"
#include "io/loop.h"
#include "iscsi/server.h"
#include "json/json.h"
#include "metrics/metrics.h"
#include "replio/volume.h"

struct target_options {
    const char *store;  /* its name; or, for a replicated volume: */
    const char *volume; /* its name */
    unsigned replicas, consistency;
    bool create;
    struct uuid first[REPL_MEMBERS]; /* of whom, if they were named */
    unsigned first_n;
    const char *replica_address; /* where replicas come */
    uint16_t replica_port;
    const struct replio_key *key; /* or NULL */
    unsigned fail_seconds;        /* without a quorum for so long: I/O fails; 0: never */
    uint64_t rebuild_rate;        /* bytes a second; 0: no limit */
    unsigned scrub_days;          /* in which the slow scrub reads everything; 0: there is none */
    const char *iqn, *alias, *serial;
    const char *address; /* of the portal */
    uint16_t port;
    uint64_t size;
    uint32_t block_size;
    unsigned lun;
    unsigned queue_depth; /* commands that an initiator may have under way; 0: as usual */
    bool read_only, removable;
    enum io_backend io;
    struct iscsi_auth auth;
    const char *const *initiators;
    const char *control, *state_dir;
    const char *metrics_address; /* NULL: none */
    uint16_t metrics_port;
    unsigned drain_seconds;
};

struct target_control;

struct target {
    const struct target_options *o;
    struct io_loop *loop;
    struct store *store;
    struct replio_volume *volume; /* NULL: the store is local */
    bool ready;                   /* the size is known: initiators may come */
    int error;                    /* of what went wrong then; 0 */
    struct err why;
    struct scsi_unit *unit;
    struct iscsi_node *node;
    struct iscsi_server *server;
    struct target_control *control;
    struct metrics *metrics;
    struct http_server *http;
    _Atomic uint64_t size; /* of the store, for other threads; and of a replicated volume: */
    _Atomic uint64_t healthy, degraded, members, status;
    struct io_timer look;
    uint16_t port;
    int64_t began;
    struct io_watch stop_watch;
    struct io_timer stop_timer;
    int64_t stop_at;
    bool stopping, closing;
    struct store_io flush;
    int flush_error;
};

/* Serves until stop_fd is readable. */
int target_serve(const struct target_options *o, int stop_fd, struct err *e);

/* control.c: a unix socket. */
struct target_control *target_control_new(struct target *t, const char *path, struct err *e);
/* What is under way that was asked for there: "growth"; "" */
const char *target_control_doing(const struct target_control *c);
/* The same as one of the words that a volume's status.operation has: "Growth"; "" */
const char *target_control_operation(const struct target_control *c);
void target_control_close(
    struct target_control *c); /* its connections end with the loop's next turns */

/* snapshots.c */
struct str;
bool target_snapshot_name(const char *name); /* is one */
/* Those of a replicated volume, as JSON; brief: names and times. */
json_t *target_snapshots(const struct target *t);
json_t *target_snapshots_brief(const struct target *t);
void target_snapshot_why(const struct target *t, const char *name, int error, struct str *out);
/* And as a person sees them. */
void target_snapshots_print(const json_t *list);

/* status.c */
/* All that there is to know, as JSON. */
void target_status(const struct target *t, struct str *out);

/* metrics.c */
enum target_volume_status { TARGET_OFFLINE = 1, TARGET_DEGRADED, TARGET_HEALTHY };
int target_metrics_start(struct target *t, struct err *e);

/* client.c: show, grow and drain. */
int target_ask(const struct cli_args *args, const char *verb);

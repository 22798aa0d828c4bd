/*
 * iSCSI targets (RFC 7143), without sockets: bytes come in, bytes go into a queue.
 *
 *     bytes ──> connection ── PDUs ──> login ──> session ── commands ──> scsi ──> store
 *                   queue <── answers ────────────┴────────────┘
 *
 *   node         the targets that are served together, limits, all sessions and connections
 *   target       a name and one logical unit; who may log in
 *   session      an initiator port logged in to a target (a nexus): sequence numbers, tasks
 *   connection   bytes to PDUs; a session has at most one (MaxConnections=1)
 *
 * Invariants:
 *   - Everything of a node happens on one thread.
 *   - Hostile input ends a connection, never the process: every length is checked before it is used,
 *     and what a connection can make us keep is bounded (see limits).
 *   - Error recovery is level 0: a connection that errs is closed, its session with it, its tasks are
 *     aborted. A session that an initiator reinstates begins only when the tasks of the old one have
 *     left the store.
 *   - Memory: a command is not run before there is room for its answer, and a connection is not read
 *     while what it sent or is to receive exceeds its share.
 */
#pragma once

#include "base/clock.h"
#include "io/queue.h"
#include "iscsi/chap.h"
#include "iscsi/stats.h"
#include "scsi/scsi.h"

struct iscsi_node;
struct iscsi_target;
struct iscsi_conn;

struct iscsi_limits {
    unsigned sessions;          /* of all targets */
    unsigned window;            /* commands that a session may have under way */
    uint32_t session_in;        /* bytes of answers under way, beyond which commands wait */
    uint32_t session_out;       /* bytes received for commands, beyond which reading stops */
    int64_t login_ns;           /* how long a login may take */
    int64_t idle_ns, answer_ns; /* silence until we ask; how long an answer may take */
};

extern const struct iscsi_limits iscsi_default_limits;

struct iscsi_target_config {
    const char *name;  /* iqn. */
    const char *alias; /* or NULL */
    struct scsi_unit *unit;
    struct iscsi_auth auth;
    const char *const *initiators; /* who may log in; ends with NULL; NULL: all */
};

struct iscsi_node *iscsi_node_new(struct io_pool *pool, const struct clock *clock,
                                  const struct iscsi_limits *limits);
/* With no connection and no session left. */
void iscsi_node_free(struct iscsi_node *node);
DEFINE_CLEANUP(struct iscsi_node *, iscsi_node_free)
/* The strings of the config are copied. Lives as long as the node. */
struct iscsi_target *iscsi_target_new(struct iscsi_node *node,
                                      const struct iscsi_target_config *config, struct err *e);

/* No new logins; those who are logged in are asked to log out. */
void iscsi_node_drain(struct iscsi_node *node, unsigned seconds);
/* Sessions, and commands under way. */
unsigned iscsi_node_sessions(const struct iscsi_node *node);
unsigned iscsi_node_commands(const struct iscsi_node *node);
bool iscsi_node_draining(const struct iscsi_node *node);
/* Of all that were ever logged in, and of each session; *initiator lives as long as the call. */
const struct iscsi_stats *iscsi_node_stats(const struct iscsi_node *node);
struct iscsi_session_info {
    const char *initiator, *address, *target;
    unsigned tsih, commands;
    int64_t since_ns; /* of the clock, monotonic */
    const struct iscsi_stats *stats;
};
void iscsi_node_each_session(const struct iscsi_node *node,
                             void (*fn)(void *context, const struct iscsi_session_info *info),
                             void *context);

/* What a connection asks of whoever carries its bytes. */
struct iscsi_conn_ops {
    void (*flush)(struct iscsi_conn *c);               /* there is something in the queue */
    void (*close)(struct iscsi_conn *c, bool at_once); /* or when the queue is empty */
    void (*pause)(struct iscsi_conn *c, bool paused);  /* do not read meanwhile */
    void (*logged_in)(struct iscsi_conn *c);           /* much may come from now on */
};

/* local is "ADDRESS:PORT", for discovery; peer the address, for logs. */
struct iscsi_conn *iscsi_conn_new(struct iscsi_node *node, struct io_queue *out,
                                  const struct iscsi_conn_ops *ops, void *carrier,
                                  const char *local, const char *peer);
void *iscsi_conn_carrier(const struct iscsi_conn *c);
/* Bytes of buf, in order. */
void iscsi_conn_received(struct iscsi_conn *c, struct io_buf *buf, const uint8_t *data, size_t n);
/* After all that one receive brought: what is ready runs. */
void iscsi_conn_turn(struct iscsi_conn *c);
/* Some of the queue has left. */
void iscsi_conn_sent(struct iscsi_conn *c);
/* Every second or so. */
void iscsi_conn_tick(struct iscsi_conn *c);
/* The connection is gone; its queue too. */
void iscsi_conn_free(struct iscsi_conn *c);

/*
 * What the parts of the module share.
 */
#pragma once

#include "base/list.h"
#include "base/vec.h"
#include "iscsi/iscsi.h"
#include "iscsi/params.h"
#include "iscsi/pdu.h"

enum { TASK_VECTORS = 6, TASK_HASH = 256, PORTAL_GROUP = 1, TSIH_MAX = 0xffff };

struct iscsi_target {
    struct list_link link;
    struct iscsi_node *node;
    char *name, *alias;
    char *texts[4]; /* of auth, owned */
    struct iscsi_auth auth;
    VEC(char *) initiators;
    bool any_initiator;
    struct scsi_unit *unit;
};

struct iscsi_node {
    struct io_pool *pool;
    const struct clock *clock;
    struct iscsi_limits limits;
    struct list_link targets, sessions;
    struct list_link managing; /* task management that waits for tasks to end */
    struct list_link free_tasks;
    uint16_t last_tsih;
    uint64_t serial; /* of tasks */
    bool draining;
    struct iscsi_stats stats;
};

/*
 * A command from its PDU to its answer.
 *
 *     begin ──> DATA ──all data-out is here──> READY ──room for data-in──> RUNNING ──> answered, freed
 *                  └───── aborted: freed ────────┘                            └── aborted: freed when done
 *
 * A task management function is one too (MANAGING), so that its memory comes from the same place.
 */
enum task_state { TASK_DATA, TASK_READY, TASK_RUNNING, TASK_MANAGING };

struct iscsi_task {
    struct list_link link;   /* of its session's tasks; or the free list, or `managing` */
    struct list_link queued; /* READY: in the session's queue */
    struct iscsi_task *next; /* in the session's hash */
    struct iscsi_session *session;
    enum task_state state;
    bool aborted, ordered, hashed;
    bool numbered;             /* takes a place in the window of commands */
    bool write, read, refused; /* refused: scsi has answered already */
    uint32_t itt, expected;
    uint32_t want;     /* bytes of data-out that the command takes */
    uint32_t received; /* of data-out so far, wanted or not */
    uint32_t kept;     /* of those, kept */
    bool unsolicited;  /* more of it may come without R2T */
    uint32_t r2t_end;  /* the sequence that was asked for last ends here; 0: none is under way */
    uint32_t r2t_sn, data_sn, ttt;
    uint32_t cmdsn;
    uint64_t serial;
    int64_t began, progressed;

    /* Data, in or out: vectors and the buffers behind them. Few lie here; more in a buffer. */
    unsigned vectors, room, outs; /* outs: how many of them are data-out */
    struct iovec *iov;
    struct io_buf **bufs;
    struct io_buf *table;
    struct iovec few_iov[TASK_VECTORS];
    struct io_buf *few_bufs[TASK_VECTORS];
    uint32_t last_used; /* of the last buffer, when data is copied together */
    bool copying;

    /* MANAGING: */
    uint8_t function;
    uint32_t itt_aborted;
    bool whole_unit;
    struct iscsi_target *target;
    uint64_t upto; /* tasks of a later serial are not meant */

    struct scsi_task scsi;
};

struct iscsi_session {
    struct list_link link;
    struct iscsi_node *node;
    struct iscsi_target *target; /* NULL: discovery */
    struct iscsi_conn *conn;     /* NULL: gone, the session waits for its tasks */
    struct iscsi_conn *waiting;  /* who logs in again, and waits for that */
    struct scsi_nexus *nexus;
    char initiator[ISCSI_NAME_MAX + 1];
    char address[64];
    uint8_t isid[6];
    uint16_t tsih;
    uint32_t exp_cmdsn;
    struct list_link tasks, ready;
    struct iscsi_task *by_itt[TASK_HASH];
    unsigned commands, running; /* in all states; RUNNING */
    unsigned numbered;          /* that take a place in the window */
    bool ordered_running, in_run, ending;
    uint64_t in_bytes, out_bytes; /* of buffers that tasks hold */
    uint32_t ttt;
    int64_t since;
    struct iscsi_stats stats;
};

/* Where the data of the PDU that is being read goes. */
enum data_sink { SINK_DROP, SINK_TEXT, SINK_TASK };
enum conn_phase { PHASE_SECURITY, PHASE_OPERATIONAL, PHASE_FULL };

struct iscsi_conn {
    struct iscsi_node *node;
    struct iscsi_session *session; /* NULL until logged in */
    struct io_queue *out;
    const struct iscsi_conn_ops *ops;
    void *carrier;
    char *local, *peer;
    bool closing, paused;

    /* The PDU that is being read. */
    uint8_t header[ISCSI_HEADER + ISCSI_AHS_MAX + ISCSI_DIGEST];
    uint32_t header_used, header_size; /* of what is there; of what there will be */
    uint32_t data_left, data_tail;     /* data; padding and digest behind it */
    uint32_t tail_used;
    uint8_t tail[3 + ISCSI_DIGEST];
    uint32_t crc;
    enum data_sink sink;
    struct iscsi_task *task;
    struct str text; /* data of PDUs that are no commands' */

    /* Login, and what was agreed. */
    enum conn_phase phase;
    struct iscsi_params params;
    bool header_digest, data_digest; /* in force: after the login */
    uint64_t seen;
    struct iscsi_chap chap;
    bool first_login, chose_auth, authenticated, declared, told_recv;
    struct iscsi_target *target;
    char initiator[ISCSI_NAME_MAX + 1];
    uint8_t isid[6];
    uint16_t cid, tsih;
    uint32_t login_itt;
    uint8_t login_flags; /* of the final answer, while it waits for an old session to end */
    struct str login_answer;
    uint32_t stat_sn, exp_cmdsn;
    struct str text_request; /* of a text request in several PDUs */

    int64_t began, heard; /* when the connection came, and when something last did */
    uint32_t ping;        /* the tag of our question; 0: none is open */
};

/* pdu.c */
/* A header in the queue, zeroed but for the opcode and flags; 48 bytes. `more` is data to follow. */
uint8_t *iscsi_pdu_begin(struct iscsi_conn *c, enum iscsi_opcode opcode, uint8_t flags,
                         uint32_t data_length);
/* Fills in StatSN (counted on where `counts`), ExpCmdSN, MaxCmdSN, then the digest of the header. */
void iscsi_pdu_status(struct iscsi_conn *c, uint8_t *h, bool counts);
void iscsi_pdu_seal(struct iscsi_conn *c, uint8_t *h);
/* Data that is copied, with padding and digest; after the seal. */
void iscsi_pdu_text(struct iscsi_conn *c, const void *data, uint32_t n);
/* The end of data that was added slice by slice: padding, digest. */
void iscsi_pdu_tail(struct iscsi_conn *c, uint32_t length, uint32_t crc);
void iscsi_conn_reject(struct iscsi_conn *c, enum iscsi_reject reason);

/* conn.c */
void iscsi_conn_close(struct iscsi_conn *c, bool at_once);
void iscsi_nop_out(struct iscsi_conn *c);
void iscsi_logout(struct iscsi_conn *c);
/* The peer broke the protocol: says so, and ends the connection. */
void iscsi_conn_violated(struct iscsi_conn *c, const char *what);
void iscsi_conn_settle(struct iscsi_conn *c); /* pauses or goes on, as limits say */

/* login.c */
void iscsi_login_request(struct iscsi_conn *c);
void iscsi_login_finish(struct iscsi_conn *c); /* the session is there */

/* text_request.c */
void iscsi_text_request(struct iscsi_conn *c);

/* session.c */
struct iscsi_session *iscsi_session_find(struct iscsi_node *node, const struct iscsi_conn *c);
struct iscsi_session *iscsi_session_new(struct iscsi_conn *c);
void iscsi_session_end(struct iscsi_session *s); /* tasks are aborted; freed when they are done */
uint32_t iscsi_session_max_cmdsn(const struct iscsi_session *s);
/* Of a PDU with a CmdSN: false when it is to be ignored. */
bool iscsi_session_take_cmdsn(struct iscsi_conn *c, bool *ret_ignore);

/* task.c */
struct iscsi_task *iscsi_task_new(struct iscsi_session *s);
void iscsi_task_free(struct iscsi_task *t);
void iscsi_task_unnumber(struct iscsi_task *t); /* its place in the window is free */
void iscsi_task_hash(struct iscsi_task *t);     /* itt is set */
struct iscsi_task *iscsi_task_find(const struct iscsi_session *s, uint32_t itt);
/* Data-out: part of a buffer, kept by reference or copied together. */
void iscsi_task_keep(struct iscsi_task *t, struct io_buf *buf, const uint8_t *data, uint32_t n);
void iscsi_task_make_room(struct iscsi_task *t, uint32_t n); /* buffers for data-in */
void iscsi_task_ready(struct iscsi_task *t);
void iscsi_session_run(struct iscsi_session *s);
/* Drops it where it is not with the unit yet, else has it end; true when it is gone. */
bool iscsi_task_abort(struct iscsi_task *t);

/* command.c */
void iscsi_command_begin(struct iscsi_conn *c); /* the header is there; sets the sink */
void iscsi_command_data(struct iscsi_conn *c);  /* the data too */
void iscsi_data_out_begin(struct iscsi_conn *c);
void iscsi_data_out_end(struct iscsi_conn *c);

/* answer.c */
void iscsi_task_answer(struct iscsi_task *t);

/* manage.c */
void iscsi_manage_request(struct iscsi_conn *c);
void iscsi_manage_check(struct iscsi_node *node); /* a task that was aborted has ended */

/*
 * The volume behind an attached device: an iSCSI session on libiscsi that is logged in again for as long
 * as it takes, and I/O that waits meanwhile.
 *
 *                 connect        login           READ CAPACITY, limits
 *     AWAY ----------> CONNECTING ----> LOGGING_IN ----> ASKING ----> READY
 *      ^                    |                |               |          |
 *      '--------------------+----------------+---------------+----------'
 *        refused, closed, silent for too long: tried again after a pause that grows to RETRY_MOST
 *
 * An I/O is on one list at a time: `waiting` (there is no session, or it is to be sent again) or `busy`
 * (libiscsi has it). When the session is lost, what was busy waits, ahead of what came later, and is
 * sent again once the session is back. Nothing that was answered is ever sent again. A session of the
 * same initiator to the same unit has the same ISID, so the target ends the old session, with all its
 * commands, before the new one begins: no write of the old session can come after one of the new.
 *
 * An I/O fails when the target says so for good (a medium error, a reservation conflict), when it has
 * waited for longer than fail_after_ns, or when the session is ended. Unit attentions, "not ready",
 * "busy" and lost connections are no failures.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

enum attach_op {
    ATTACH_READ,
    ATTACH_WRITE,
    ATTACH_FLUSH,
    ATTACH_UNMAP, /* reads as zeroes, and the space is given back where the target can */
    ATTACH_ZERO,  /* reads as zeroes, and keeps its space */
    ATTACH_OPS
};

/* The caller's memory, which stays in its place until done() is called, from attach_session_service(). */
struct attach_io {
    enum attach_op op;
    bool fua;
    uint64_t offset, length; /* multiples of the block size */
    uint8_t *data;
    void (*done)(struct attach_io *io, int error); /* 0, or an errno */

    struct list_link link; /* the rest is the session's */
    struct attach_session *session;
    uint64_t at;    /* how much of it is done: large ones go in pieces */
    uint32_t piece; /* of what is under way */
    int64_t since;
    uint64_t iov[2]; /* libiscsi's vector */
};

struct attach_session_options {
    const char *portal, *iqn, *initiator; /* portal: numeric */
    unsigned lun;
    const char *chap_user, *chap_secret, *mutual_user, *mutual_secret; /* NULL: none */
    int64_t fail_after_ns;                                             /* 0: never */
};

/* What is known of the volume and of the session; counts are since the start of the process. */
struct attach_facts {
    uint64_t size;
    uint32_t block_size;
    bool known; /* it was logged in once: the two above are true */
    bool ready;
    int64_t away_ns; /* how long it has not been ready */
    enum err_code
        refused; /* why the last login was refused, if waiting does not mend it; else ERR_OK */
    char last_error[256]; /* why it is away, or was the last time */
    unsigned logins;      /* how often it was logged in */
    uint64_t attentions;  /* unit attentions seen */
    uint64_t done[ATTACH_OPS];
    uint64_t failed;
};

struct attach_session;

/* changed() is called when the size has become known or another. Borrowed: what o points at. */
struct attach_session *attach_session_new(const struct attach_session_options *o,
                                          void (*changed)(void *context), void *context);
/* What a predecessor knew of the volume. */
void attach_session_assume(struct attach_session *s, uint64_t size, uint32_t block_size);
/* Fails what waits and what is under way with EIO, and logs out if that takes no second. */
void attach_session_free(struct attach_session *s);

void attach_session_submit(struct attach_session *s, struct attach_io *io);
/* Asks for the size anew; answer() is called with 0 when it is known, else with an errno. One at a time: EBUSY. */
void attach_session_rescan(struct attach_session *s, void (*answer)(void *context, int error),
                           void *context);
const struct attach_facts *attach_session_facts(struct attach_session *s);
/* How many I/Os wait for a session, and how many the target has. */
void attach_session_count(const struct attach_session *s, unsigned *ret_waiting,
                          unsigned *ret_busy);

/* For poll(): -1 when there is none; it changes with each connection. */
int attach_session_fd(const struct attach_session *s);
short attach_session_events(const struct attach_session *s);
/* What poll() saw, or 0; sends what was submitted, calls done(). Returns how many ms it may be left alone. */
int attach_session_service(struct attach_session *s, short events);

/*
 * A session with a target, on libiscsi: connect, submit, be told. The only file that knows libiscsi.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"

struct bench_session;

enum bench_op { BENCH_READ, BENCH_WRITE, BENCH_FLUSH, BENCH_OPS };

/* One I/O; the caller's memory, which stays in its place until done() is called. */
struct bench_io {
    enum bench_op op;
    bool fua;
    uint64_t offset;
    uint8_t *data;
    uint32_t length;
    void (*done)(struct bench_io *io, const char *error); /* NULL: it succeeded */

    struct bench_session *session; /* the session's */
    uint64_t iov[2];
};

struct bench_session_options {
    const char *url, *initiator;
    unsigned number; /* of the session among those of this process */
    bool header_digest;
    /* Goes on with what is under way when the connection is back in that time; 0: does not. */
    int64_t reconnect_ns;
};

/* Connects and logs in; *ret_size and *ret_block_size are the volume's. */
struct bench_session *bench_session_new(const struct bench_session_options *o, uint64_t *ret_size,
                                        uint32_t *ret_block_size, struct err *e);
/* Logs out, if that is possible. What is under way is not told. */
void bench_session_free(struct bench_session *s);

int bench_session_submit(struct bench_session *s, struct bench_io *io, struct err *e);
/* For poll(); the descriptor may change when the session is connected anew. */
int bench_session_fd(struct bench_session *s);
short bench_session_events(struct bench_session *s);
/* What poll() saw; calls done(). Fails when the session is lost. */
int bench_session_service(struct bench_session *s, short events, struct err *e);
/* How often it was connected anew. */
unsigned bench_session_reconnects(const struct bench_session *s);
/* Checks a URL; the same without user and password is appended to *ret, for reports. */
int bench_session_check_url(const char *url, char *ret, size_t size, struct err *e);

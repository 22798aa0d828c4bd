/*
 * Payloads as the core of replication knows them (struct repl_buf), over buffers of the loop.
 *
 * The core counts references without knowing what it refers to; here each is a record that holds
 * references to the buffers behind a payload's pieces, in their order. Records are used again, so that
 * nothing is allocated in the steady state. All of one loop's thread.
 */
#pragma once

#include "base/mem.h"
#include "io/buf.h"
#include "repl/repl.h"

struct replio_payload {
    struct repl_buf counted; /* first, so that a repl_buf is a payload */
    struct io_buf **bufs;    /* owned, and a reference to each */
    struct iovec *iov;       /* owned: where the payload lies in each, of one that was received */
    unsigned n, room;
    struct replio_payloads *of;
    struct replio_payload *next; /* while free */
};

struct replio_payloads {
    struct io_pool *pool;
    struct replio_payload *free;
};

/* A record with one reference, the caller's, of buffers that it takes references to. */
struct repl_buf *replio_payload_new(struct replio_payloads *of, struct io_buf *const *bufs,
                                    unsigned n);
/* The same of a payload that was received in pieces. */
struct repl_buf *replio_payload_received(struct replio_payloads *of, const struct io_slice *pieces,
                                         unsigned n);
/* Memory of its own for n bytes, at most IO_HUGE. */
struct repl_buf *replio_payload_alloc(struct replio_payloads *of, size_t n, void **ret_data);
/* Frees the records; none is in use. */
void replio_payloads_done(struct replio_payloads *of);

static inline unsigned replio_payload_count(const struct repl_buf *counted)
{
    return ((const struct replio_payload *)counted)->n;
}

static inline const struct iovec *replio_payload_iov(const struct repl_buf *counted)
{
    return ((const struct replio_payload *)counted)->iov;
}

/*
 * What is to be sent on a connection: slices in order, without I/O. Whoever answers adds to it, a
 * stream (or a test) takes from it.
 *
 *     [ 48 bytes, copied ][ slice of a buffer ][ 48 bytes, copied ] ...
 *
 * Small things are copied one behind the other into a buffer of the queue's own, and neighbours become
 * one piece. Nothing is allocated once the array of slices has grown to what a connection needs.
 */
#pragma once

#include <stdbool.h>

#include "io/buf.h"

struct io_queue {
    struct io_pool *pool;
    struct io_slice *slices; /* a ring of `cap`, owned */
    unsigned head, count, cap;
    uint32_t skipped; /* of the first slice: already taken */
    size_t bytes;     /* in the queue */
    struct io_buf *scratch;
    uint32_t scratch_used;
};

void io_queue_init(struct io_queue *q, struct io_pool *pool);
/* Drops what is in it. */
void io_queue_done(struct io_queue *q);

/* Room at the end for n <= 4096 bytes, which the caller fills in at once. */
uint8_t *io_queue_reserve(struct io_queue *q, uint32_t n);
/* A slice of buf; the queue takes a reference of its own. buf NULL: memory that outlives the queue. */
void io_queue_add(struct io_queue *q, struct io_buf *buf, const uint8_t *data, uint32_t length);
/* Any number of bytes, copied. */
void io_queue_copy(struct io_queue *q, const void *data, size_t n);

/* The first pieces, at most `most`; how many. They stay valid until they are dropped. */
unsigned io_queue_peek(const struct io_queue *q, struct iovec *iov, unsigned most);
/* The first n bytes are done with. */
void io_queue_drop(struct io_queue *q, size_t n);

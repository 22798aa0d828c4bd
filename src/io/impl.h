/*
 * What the parts of the loop share: the loop itself and what a back end does for it.
 */
#pragma once

#include "base/ring.h"
#include "base/vec.h"
#include "io/loop.h"
#include "io/stream.h"

struct io_workers;

struct io_backend_ops {
    const char *name;
    /* false: not here. */
    bool (*init)(struct io_loop *loop, struct err *e);
    void (*done)(struct io_loop *loop);
    /* Waits at most so long (< 0: for ever) and calls back for all that happened. */
    void (*wait)(struct io_loop *loop, int64_t most_ns);
    void (*watch)(struct io_loop *loop, struct io_watch *watch);
    void (*unwatch)(struct io_loop *loop, struct io_watch *watch);
    void (*start)(struct io_stream *s);
    /* Receives when there is something, unless that is under way. */
    void (*receive)(struct io_stream *s);
    /* Sends what is queued, unless that is under way. */
    void (*send)(struct io_stream *s);
    /* Has what is under way ended; io_stream_gone() when nothing is. */
    void (*stop)(struct io_stream *s);
    void (*submit)(struct io_loop *loop, struct io_request *r);
};

extern const struct io_backend_ops io_uring_ops, io_epoll_ops;

struct io_loop {
    const struct io_backend_ops *ops;
    void *backend; /* the back end's, owned */
    struct io_pool *pool;
    struct ring *ring; /* messages from other threads */
    struct io_watch ring_watch;
    bool woken; /* by a message, in this turn */
    struct io_workers *workers;
    VEC(struct io_timer *) timers; /* a heap */
    struct list_link dirty, deferred;
    int64_t now;
    bool stop;
};

/* Buffers to receive into: fills s->in_iov and s->in_msg; the bytes there is room for. */
size_t io_stream_prepare(struct io_stream *s);
/* n bytes came into them; 0: the end; < 0: an errno. Calls the owner back. */
void io_stream_arrived(struct io_stream *s, int64_t n);
/* n bytes of the queue left, or < 0: an errno. */
void io_stream_left(struct io_stream *s, int64_t n);
/* Fills s->out_msg with what is queued. */
void io_stream_gather(struct io_stream *s);
/* Nothing of it is under way any more. */
void io_stream_gone(struct io_stream *s);
/* At the end of a turn: sends, or closes. */
void io_stream_turn_end(struct io_stream *s);

/* Does a request in the calling thread. */
int64_t io_request_run(const struct io_request *r);
/* A few threads for that; started at the first submit. */
struct io_workers *io_workers_new(struct io_loop *loop);
void io_workers_free(struct io_workers *w);
void io_workers_submit(struct io_workers *w, struct io_request *r);

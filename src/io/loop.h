/*
 * An event loop: connections, timers, files and messages from other threads, on one thread.
 *
 *              ┌────────────────────────── a turn ───────────────────────────┐
 *     wait ──> │ received ── requests done ── timers ── messages ── deferred │ ──> send ──> wait
 *              └─────────────────────────────────────────────────────────────┘
 *
 * In a turn each connection is read at most once, into large buffers; whatever arrived is worked off;
 * all that was answered leaves with one system call per connection (epoll) or for all of them
 * (io_uring). Two back ends do the same: io_uring, and epoll with a few worker threads for what would
 * block, where the system refuses io_uring.
 *
 * Invariants:
 *   - Everything happens on the thread that runs the loop, except io_loop_post().
 *   - Callbacks are called from the loop, never from within the call that caused them, save where a
 *     comment says so.
 *   - Nothing is allocated in the steady state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "io/buf.h"

struct io_loop;

enum io_backend { IO_AUTO, IO_URING, IO_EPOLL };

/* IO_AUTO: io_uring, or epoll where that is refused. */
struct io_loop *io_loop_new(enum io_backend backend, struct err *e);
/* With no stream, watch, timer or request left. */
void io_loop_free(struct io_loop *loop);
DEFINE_CLEANUP(struct io_loop *, io_loop_free)
const char *io_loop_backend(const struct io_loop *loop);

/* Until io_loop_stop(). */
void io_loop_run(struct io_loop *loop);
/* One turn, waiting for something to happen for at most so long; < 0: for ever. For tests. */
void io_loop_turn(struct io_loop *loop, int64_t most_ns);
void io_loop_stop(struct io_loop *loop);

/* Monotonic time as of the beginning of the turn. */
int64_t io_loop_now(const struct io_loop *loop);
struct io_pool *io_loop_pool(struct io_loop *loop);

/* A function to be called at a time, once; it may start its timer again. */
struct io_timer {
    void (*fn)(struct io_timer *timer); /* the owner's */
    int64_t at;                         /* the loop's from here */
    unsigned place;                     /* in the heap, from 1; 0: not started */
};

/* At a monotonic time; one that is started already is moved. */
void io_timer_start(struct io_loop *loop, struct io_timer *timer, int64_t at_ns);
void io_timer_stop(struct io_loop *loop, struct io_timer *timer);

/* A function to be called once at the end of this turn, or of the next where it is asked for later. */
struct io_deferred {
    void (*fn)(struct io_deferred *deferred);
    struct list_link link; /* list_init() it */
};

void io_loop_defer(struct io_loop *loop, struct io_deferred *deferred);

/* A function to be called on the loop, asked for by any thread. */
struct io_message {
    void (*fn)(struct io_message *message);
};

/* False when too many are under way: try again later. */
bool io_loop_post(struct io_loop *loop, struct io_message *message);

/* A descriptor that becomes readable: a listening socket, an eventfd. */
struct io_watch {
    void (*readable)(struct io_watch *watch); /* the owner's */
    void (*removed)(
        struct io_watch *watch); /* after io_watch_remove(): the memory is free; or NULL */
    int fd;                      /* the loop's from here */
    struct io_loop *loop;
    bool active, armed;
    struct io_deferred gone;
};

void io_watch_add(struct io_loop *loop, struct io_watch *watch, int fd);
void io_watch_remove(struct io_watch *watch);

/* Work on a file that may block. */
enum io_op {
    IO_READ,
    IO_WRITE,
    IO_SYNC,  /* fdatasync */
    IO_PUNCH, /* a hole; reads as zeroes */
    IO_ZERO,  /* zeroes, with the space kept */
    IO_CALL,  /* a function, on a thread where it may wait */
};

struct io_request {
    /* The owner's: */
    enum io_op op;
    int fd, flags; /* RWF_* */
    uint64_t offset, length;
    struct iovec *iov; /* READ, WRITE; kept until done */
    unsigned iovs;
    int (*call)(void *context); /* CALL: 0 or -errno */
    void *context;
    void (*done)(struct io_request *request, int64_t result); /* bytes, 0, or -errno */

    /* The loop's: */
    struct io_message message;
    struct io_loop *loop;
    struct list_link link;
    int64_t result;
};

void io_submit(struct io_loop *loop, struct io_request *request);

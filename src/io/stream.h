/*
 * A connection: bytes in order, both ways, over any stream socket.
 *
 *     socket ──> [ large buffers ] ── received(slices) ──> owner
 *     socket <── one sendmsg ──────── queue <── io_queue_add(), _reserve(), _copy() ── owner
 *
 * Invariants:
 *   - received() is called at most once in a turn, with all that one receive brought. The slices are
 *     the stream's: the owner takes references (io_buf_ref) to the buffers it needs longer.
 *   - The owner adds to the queue at any time and says so with io_stream_flush(), also when in
 *     received(); it leaves at the end of the turn.
 *   - sent() is called when some of the queue has left: who waits for room goes on.
 *   - closed() is called exactly once, last, when nothing of the stream is in use any more: after
 *     io_stream_close(), after io_stream_finish() when the queue is empty, or when the peer or the
 *     network ended the connection (error 0: an orderly end). Until then the memory is the loop's.
 *   - A paused stream is not read: its peer is slowed down by TCP. What a receive that was under way
 *     brought may still come.
 */
#pragma once

#include <sys/socket.h>

#include "io/loop.h"
#include "io/queue.h"

enum { IO_IN_MAX = 4, IO_OUT_IOVECS = 128 };

struct io_stream;

struct io_stream_ops {
    void (*received)(struct io_stream *s, const struct io_slice *slices, unsigned n);
    void (*sent)(struct io_stream *s); /* or NULL */
    void (*closed)(struct io_stream *s, int error);
};

struct io_stream {
    const struct io_stream_ops *ops;
    struct io_loop *loop;
    struct io_queue out;

    /* The loop's from here. */
    int fd, error;
    bool paused, closing, finishing;
    bool receiving, sending; /* uring: requests are under way */
    bool readable, writable; /* epoll: as far as is known */
    bool ended;              /* epoll: the peer has; what is left is read until that is seen */
    unsigned in_buffers;     /* how many to receive into, 0: one small one */
    struct io_buf *in[IO_IN_MAX];
    uint32_t in_used;       /* of in[0] */
    struct list_link dirty; /* has something to send, or to close */
    struct list_link ready; /* to be read: epoll, it can be; uring, it is to be asked for */
    struct iovec in_iov[IO_IN_MAX], out_iov[IO_OUT_IOVECS];
    struct msghdr in_msg, out_msg;
};

/* fd is the stream's from here on, and becomes non-blocking. It receives into one small buffer until
 * io_stream_widen(). */
void io_stream_start(struct io_stream *s, struct io_loop *loop, int fd,
                     const struct io_stream_ops *ops);
/* A peer that may send much: receive into large buffers. */
void io_stream_widen(struct io_stream *s);
void io_stream_flush(struct io_stream *s);
void io_stream_pause(struct io_stream *s, bool paused);
/* Now; what is queued is dropped. */
void io_stream_close(struct io_stream *s);
/* When what is queued has been sent; nothing more is received. */
void io_stream_finish(struct io_stream *s);

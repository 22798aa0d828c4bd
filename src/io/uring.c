/*
 * The loop on io_uring. One system call per turn submits what the turn asked for and waits for the
 * next. The kernel runs completions only in that call (DEFER_TASKRUN), so nothing interrupts a turn.
 *
 * Each connection has at most one receive and one send under way; memory they use is the stream's
 * until they come back, also when it closes: closing cancels them, and io_stream_gone() follows the
 * last. The low bits of a completion's pointer say what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/impl.h"

enum { ENTRIES = 512, CQ_ENTRIES = 4096 };
enum tag { TAG_NONE, TAG_RECEIVE, TAG_SEND, TAG_WATCH, TAG_REQUEST, TAG_MASK = 7 };

struct uring {
    struct io_uring ring;
    bool enabled;
    struct list_link ready; /* streams that are to receive */
};

static bool try_init(struct io_uring *ring, unsigned flags)
{
    struct io_uring_params p = {
        .flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
        .cq_entries = CQ_ENTRIES,
    };
    return io_uring_queue_init_params(ENTRIES, ring, &p) == 0 &&
           (p.features & IORING_FEAT_EXT_ARG) && (p.features & IORING_FEAT_NODROP);
}

static bool init(struct io_loop *loop, struct err *e)
{
    struct uring *u = NEW(struct uring);
    list_init(&u->ready);
    /* The thread that runs the first turn is the one that the ring belongs to. */
    if (!try_init(&u->ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL)) {
        if (!try_init(&u->ring, 0)) {
            err_set(e, ERR_UNIMPLEMENTED, "NoIoUring",
                    "io_uring is refused here (old kernel, seccomp or kernel.io_uring_disabled): "
                    "use --io epoll");
            free(u);
            return false;
        }
        u->enabled = true;
    }
    loop->backend = u;
    return true;
}

static void done(struct io_loop *loop)
{
    struct uring *u = loop->backend;
    io_uring_queue_exit(&u->ring);
    free(u);
}

static void enable(struct uring *u)
{
    if (!u->enabled)
        /* io_uring_enable_rings() is not exported by the library of Debian 12. */
        syscall(SYS_io_uring_register, u->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
    u->enabled = true;
}

static struct io_uring_sqe *get(struct io_loop *loop)
{
    struct uring *u = loop->backend;
    struct io_uring_sqe *sqe;
    while (!(sqe = io_uring_get_sqe(&u->ring))) {
        enable(u);
        io_uring_submit(&u->ring);
    }
    return sqe;
}

static void tag(struct io_uring_sqe *sqe, const void *p, enum tag t)
{
    io_uring_sqe_set_data64(sqe, (uintptr_t)p | t);
}

static void cancel(struct io_loop *loop, const void *p, enum tag t)
{
    struct io_uring_sqe *sqe = get(loop);
    io_uring_prep_cancel64(sqe, (uintptr_t)p | t, 0);
    tag(sqe, NULL, TAG_NONE);
}

/* Watches: a poll, asked for again after each event. */

static void watch(struct io_loop *loop, struct io_watch *w)
{
    struct io_uring_sqe *sqe = get(loop);
    io_uring_prep_poll_add(sqe, w->fd, POLLIN);
    tag(sqe, w, TAG_WATCH);
    w->armed = true;
}

static void unwatch(struct io_loop *loop, struct io_watch *w)
{
    if (w->armed)
        cancel(loop, w, TAG_WATCH);
    else
        io_loop_defer(loop, &w->gone);
}

static void watched(struct io_watch *w)
{
    w->armed = false;
    if (w->active)
        w->readable(w);
    if (w->active)
        watch(w->loop, w);
    else
        io_loop_defer(w->loop, &w->gone);
}

/* Streams. */

static void start(struct io_stream *s)
{
    (void)s;
}

/* Asked for at the end of the turn, behind what is sent: the kernel works in that order, and a peer
 * that has its answers does something while we receive. */
static void receive(struct io_stream *s)
{
    struct uring *u = s->loop->backend;
    if (!s->receiving && !list_is_linked(&s->ready))
        list_push(&u->ready, &s->ready);
}

static void receive_now(struct io_stream *s)
{
    if (s->receiving || s->paused || s->closing || s->finishing)
        return;
    io_stream_prepare(s);
    struct io_uring_sqe *sqe = get(s->loop);
    io_uring_prep_recvmsg(sqe, s->fd, &s->in_msg, 0);
    tag(sqe, s, TAG_RECEIVE);
    s->receiving = true;
}

static void send_queue(struct io_stream *s)
{
    if (s->sending)
        return;
    io_stream_gather(s);
    struct io_uring_sqe *sqe = get(s->loop);
    io_uring_prep_sendmsg(sqe, s->fd, &s->out_msg, MSG_NOSIGNAL);
    tag(sqe, s, TAG_SEND);
    s->sending = true;
}

static void stop(struct io_stream *s)
{
    if (!s->receiving && !s->sending) {
        io_stream_gone(s);
        return;
    }
    if (s->receiving)
        cancel(s->loop, s, TAG_RECEIVE);
    if (s->sending)
        cancel(s->loop, s, TAG_SEND);
}

static void received(struct io_stream *s, int n)
{
    s->receiving = false;
    if (s->closing || s->finishing) {
        io_stream_flush(s);
        return;
    }
    if (n != -EINTR && n != -EAGAIN)
        io_stream_arrived(s, n);
    receive(s);
}

static void was_sent(struct io_stream *s, int n)
{
    s->sending = false;
    if (!s->closing && n != -EINTR && n != -EAGAIN)
        io_stream_left(s, n);
    if (s->closing || s->out.bytes)
        io_stream_flush(s);
}

/* Requests. */

static void submit(struct io_loop *loop, struct io_request *r)
{
    struct io_uring_sqe *sqe = get(loop);
    switch (r->op) {
    case IO_READ:
        io_uring_prep_readv2(sqe, r->fd, r->iov, r->iovs, r->offset, r->flags);
        break;
    case IO_WRITE:
        io_uring_prep_writev2(sqe, r->fd, r->iov, r->iovs, r->offset, r->flags);
        break;
    case IO_SYNC:
        io_uring_prep_fsync(sqe, r->fd, IORING_FSYNC_DATASYNC);
        break;
    case IO_PUNCH:
        io_uring_prep_fallocate(sqe, r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                (off_t)r->offset, (off_t)r->length);
        break;
    case IO_ZERO:
        io_uring_prep_fallocate(sqe, r->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                                (off_t)r->offset, (off_t)r->length);
        break;
    case IO_CALL: /* io_submit() gives it to the workers */
        break;
    }
    tag(sqe, r, TAG_REQUEST);
}

static void complete(uint64_t data, int result)
{
    void *p = (void *)(uintptr_t)(data & ~(uint64_t)TAG_MASK);
    struct io_request *r = p;
    switch ((enum tag)(data & TAG_MASK)) {
    case TAG_RECEIVE:
        received(p, result);
        break;
    case TAG_SEND:
        was_sent(p, result);
        break;
    case TAG_WATCH:
        watched(p);
        break;
    case TAG_REQUEST:
        r->done(r, result);
        break;
    default: /* a cancellation came through, or was too late */
        break;
    }
}

static void wait(struct io_loop *loop, int64_t most_ns)
{
    struct uring *u = loop->backend;
    struct __kernel_timespec most = {.tv_sec = most_ns / 1000000000,
                                     .tv_nsec = most_ns % 1000000000};
    struct io_uring_cqe *cqe;
    for (struct list_link *l; (l = list_take(&u->ready));)
        receive_now(container_of(l, struct io_stream, ready));
    enable(u);
    if (most_ns == 0)
        io_uring_submit_and_get_events(&u->ring);
    else
        io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, most_ns > 0 ? &most : NULL, NULL);
    /* Only what is there now: completions that come meanwhile are the next turn's. */
    struct io_uring_cqe *cqes[CQ_ENTRIES / 8];
    unsigned n = io_uring_peek_batch_cqe(&u->ring, cqes, ARRAY_SIZE(cqes));
    for (unsigned i = 0; i < n; i++)
        complete(cqes[i]->user_data, cqes[i]->res);
    io_uring_cq_advance(&u->ring, n);
}

const struct io_backend_ops io_uring_ops = {
    .name = "io_uring",
    .init = init,
    .done = done,
    .wait = wait,
    .watch = watch,
    .unwatch = unwatch,
    .start = start,
    .receive = receive,
    .send = send_queue,
    .stop = stop,
    .submit = submit,
};

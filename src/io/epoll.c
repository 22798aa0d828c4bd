/*
 * The loop on epoll. Sockets are registered once, edge-triggered: what is known of each lies in its
 * `readable` and `writable`, and in the steady state no call changes a registration.
 *
 *     readable: set by an edge; cleared when a receive brought less than there was room for, unless
 *               the edge also told of the end, of which there will be no second one
 *     writable: cleared when a send took less than was offered; set by an edge
 *
 * A stream that is readable, and read this turn only in part, stays on the list `ready`, and the next
 * wait does not sleep.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/impl.h"

enum { EVENTS = 256, TAG_WATCH = 1 };

struct epoll {
    int fd;
    struct list_link ready;
    struct epoll_event events[EVENTS];
};

static bool init(struct io_loop *loop, struct err *e)
{
    struct epoll *ep = NEW(struct epoll);
    list_init(&ep->ready);
    ep->fd = epoll_create1(EPOLL_CLOEXEC);
    if (ep->fd < 0) {
        err_errno(e, errno, "epoll");
        free(ep);
        return false;
    }
    loop->backend = ep;
    return true;
}

static void done(struct io_loop *loop)
{
    struct epoll *ep = loop->backend;
    close(ep->fd);
    free(ep);
}

static void watch(struct io_loop *loop, struct io_watch *w)
{
    struct epoll *ep = loop->backend;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uintptr_t)w | TAG_WATCH};
    epoll_ctl(ep->fd, EPOLL_CTL_ADD, w->fd, &event);
}

static void unwatch(struct io_loop *loop, struct io_watch *w)
{
    struct epoll *ep = loop->backend;
    epoll_ctl(ep->fd, EPOLL_CTL_DEL, w->fd, NULL);
    io_loop_defer(loop, &w->gone);
}

static void start(struct io_stream *s)
{
    struct epoll *ep = s->loop->backend;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u64 = (uintptr_t)s};
    s->writable = true;
    epoll_ctl(ep->fd, EPOLL_CTL_ADD, s->fd, &event);
}

static void receive(struct io_stream *s)
{
    struct epoll *ep = s->loop->backend;
    if (s->readable && !list_is_linked(&s->ready))
        list_push(&ep->ready, &s->ready);
}

static void receive_now(struct io_stream *s)
{
    if (s->paused || s->closing || s->finishing)
        return;
    size_t room = io_stream_prepare(s);
    ssize_t n = recvmsg(s->fd, &s->in_msg, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        s->readable = errno == EINTR;
        receive(s);
        return;
    }
    s->readable = n > 0 && ((size_t)n == room || s->ended);
    receive(s);
    io_stream_arrived(s, n < 0 ? -errno : n);
}

static void send_now(struct io_stream *s)
{
    while (s->writable && s->out.bytes && !s->closing) {
        io_stream_gather(s);
        ssize_t n = sendmsg(s->fd, &s->out_msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            s->writable = false;
            return;
        }
        if (n < 0 && errno == EINTR)
            continue;
        io_stream_left(s, n < 0 ? -errno : n);
    }
}

static void stop(struct io_stream *s)
{
    struct epoll *ep = s->loop->backend;
    epoll_ctl(ep->fd, EPOLL_CTL_DEL, s->fd, NULL);
    io_stream_gone(s);
}

static void handle(struct epoll *ep, const struct epoll_event *event)
{
    if (event->data.u64 & TAG_WATCH) {
        struct io_watch *w = (void *)(uintptr_t)(event->data.u64 & ~(uint64_t)TAG_WATCH);
        if (w->active)
            w->readable(w);
        return;
    }
    struct io_stream *s = (void *)(uintptr_t)event->data.u64;
    if (event->events & EPOLLOUT) {
        s->writable = true;
        if (s->out.bytes)
            io_stream_flush(s);
    }
    if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        s->readable = true;
        s->ended |= (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        if (!list_is_linked(&s->ready))
            list_push(&ep->ready, &s->ready);
    }
}

static int milliseconds(int64_t ns)
{
    if (ns < 0)
        return -1;
    int64_t ms = (ns + 999999) / 1000000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static void wait(struct io_loop *loop, int64_t most_ns)
{
    struct epoll *ep = loop->backend;
    int most = list_empty(&ep->ready) ? milliseconds(most_ns) : 0;
    int n = epoll_wait(ep->fd, ep->events, EVENTS, most);
    for (int i = 0; i < n; i++)
        handle(ep, &ep->events[i]);
    struct list_link now;
    list_init(&now);
    list_splice(&now, &ep->ready);
    for (struct list_link *l; (l = list_take(&now));)
        receive_now(container_of(l, struct io_stream, ready));
}

static void submit(struct io_loop *loop, struct io_request *r)
{
    io_workers_submit(loop->workers, r);
}

const struct io_backend_ops io_epoll_ops = {
    .name = "epoll",
    .init = init,
    .done = done,
    .wait = wait,
    .watch = watch,
    .unwatch = unwatch,
    .start = start,
    .receive = receive,
    .send = send_now,
    .stop = stop,
    .submit = submit,
};

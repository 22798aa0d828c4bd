/*
 * A cancel is a descriptor that, once fired, can be read for ever: whoever polls it wakes, now or
 * later, and nobody has to know who does.
 */
#include "http/wait.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    LONGEST_MS = 60000,
    LOOK_MS = 100, /* at a cancel that could get no descriptor */
};

struct http_cancel {
    atomic_bool fired;
    int fd;
};

struct http_cancel *http_cancel_new(void)
{
    struct http_cancel *c = NEW(struct http_cancel);
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return c;
}

void http_cancel_free(struct http_cancel *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

void http_cancel_fire(struct http_cancel *c)
{
    atomic_store(&c->fired, true);
    if (c->fd >= 0)
        eventfd_write(c->fd, 1);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

void http_wait_begin(struct http_wait *w, int64_t timeout_ns, int64_t idle_ns,
                     struct http_cancel *cancel)
{
    int64_t now = now_ns();
    *w = (struct http_wait){.idle_ns = idle_ns, .heard = now, .began = now, .cancel = cancel};
    if (timeout_ns && __builtin_add_overflow(now, timeout_ns, &w->deadline))
        w->deadline = 0;
}

void http_wait_heard(struct http_wait *w)
{
    w->heard = now_ns();
}

/* The first moment that is too late. */
static int64_t end_of(const struct http_wait *w)
{
    int64_t end = w->deadline ? w->deadline : INT64_MAX, silent;
    if (!w->idle_ns || __builtin_add_overflow(w->heard, w->idle_ns, &silent))
        return end;
    return silent < end ? silent : end;
}

int64_t http_wait_left(const struct http_wait *w, int64_t most)
{
    int64_t left = end_of(w) - now_ns();
    return left < most ? left : most;
}

struct http_wait http_wait_within(const struct http_wait *w, int64_t ns)
{
    struct http_wait brief = *w;
    brief.deadline = now_ns() + http_wait_left(w, ns);
    return brief;
}

int http_wait_check(const struct http_wait *w, struct err *e)
{
    if (w->cancel && atomic_load(&w->cancel->fired))
        return err_set(e, ERR_CANCELLED, "Cancelled", "the request was given up");
    int64_t now = now_ns();
    if (now < end_of(w))
        return 0;
    bool over = w->deadline && now >= w->deadline;
    return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout", "no answer within %.3g s",
                   (double)(over ? now - w->began : w->idle_ns) / CLOCK_SECOND);
}

int http_wait_for(const struct http_wait *w, int fd, short events, struct err *e)
{
    int cancel = w->cancel ? w->cancel->fd : -1; /* poll() passes over negative ones */
    int64_t most = w->cancel && cancel < 0 ? LOOK_MS : LONGEST_MS;
    for (;;) {
        if (http_wait_check(w, e) < 0)
            return -1;
        struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = cancel, .events = POLLIN}};
        int64_t left = http_wait_left(w, most * 1000000);
        int n = poll(fds, 2, left > 0 ? (int)(left / 1000000) + 1 : 0);
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "cannot wait for an answer");
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

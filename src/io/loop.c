#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "io/impl.h"

enum { MESSAGES = 1024 };

/* Messages from other threads. */

static void drain_ring(struct io_loop *loop)
{
    struct io_message *message;
    for (int i = 0; i < MESSAGES && (message = ring_pop(loop->ring)); i++)
        message->fn(message);
}

/* Every turn looks into the ring. */
static void ring_readable(struct io_watch *watch)
{
    container_of(watch, struct io_loop, ring_watch)->woken = true;
}

bool io_loop_post(struct io_loop *loop, struct io_message *message)
{
    return ring_push(loop->ring, message);
}

/* Making and ending. */

struct io_loop *io_loop_new(enum io_backend backend, struct err *e)
{
    static const struct io_backend_ops *const table[][2] = {
        [IO_AUTO] = {&io_uring_ops, &io_epoll_ops},
        [IO_URING] = {&io_uring_ops},
        [IO_EPOLL] = {&io_epoll_ops},
    };
    struct io_loop *loop = NEW(struct io_loop);
    list_init(&loop->dirty);
    list_init(&loop->deferred);
    loop->now = clock_mono_ns(clock_system());
    loop->pool = io_pool_new();
    for (size_t i = 0; i < 2 && table[backend][i]; i++) {
        loop->ops = table[backend][i];
        if (loop->ops->init(loop, e))
            break;
        loop->ops = NULL;
    }
    loop->ring = loop->ops ? ring_new(MESSAGES, e) : NULL;
    if (!loop->ring) {
        io_loop_free(loop);
        return NULL;
    }
    loop->ring_watch.readable = ring_readable;
    io_watch_add(loop, &loop->ring_watch, ring_fd(loop->ring));
    loop->workers = io_workers_new(loop);
    return loop;
}

void io_loop_free(struct io_loop *loop)
{
    if (loop->ring) {
        io_watch_remove(&loop->ring_watch);
        for (int i = 0; i < 4; i++) /* for what must come back from the kernel */
            io_loop_turn(loop, 0);
    }
    if (loop->workers)
        io_workers_free(loop->workers);
    if (loop->ops)
        loop->ops->done(loop);
    if (loop->ring)
        ring_free(loop->ring);
    assert(loop->timers.len == 0);
    vec_done(&loop->timers);
    io_pool_free(loop->pool);
    free(loop);
}

const char *io_loop_backend(const struct io_loop *loop)
{
    return loop->ops->name;
}

int64_t io_loop_now(const struct io_loop *loop)
{
    return loop->now;
}

struct io_pool *io_loop_pool(struct io_loop *loop)
{
    return loop->pool;
}

/* Turns. */

static void run_timers(struct io_loop *loop)
{
    while (loop->timers.len && loop->timers.p[0]->at <= loop->now) {
        struct io_timer *timer = loop->timers.p[0];
        io_timer_stop(loop, timer);
        timer->fn(timer);
    }
}

static void run_deferred(struct io_loop *loop)
{
    struct list_link now;
    list_init(&now);
    list_splice(&now, &loop->deferred);
    for (struct list_link *l; (l = list_take(&now));) {
        struct io_deferred *d = container_of(l, struct io_deferred, link);
        d->fn(d);
    }
}

static void send_all(struct io_loop *loop)
{
    struct list_link now;
    list_init(&now);
    list_splice(&now, &loop->dirty);
    for (struct list_link *l; (l = list_take(&now));)
        io_stream_turn_end(container_of(l, struct io_stream, dirty));
}

static int64_t time_to_wait(struct io_loop *loop, int64_t most)
{
    if (!list_empty(&loop->deferred) || !list_empty(&loop->dirty) || loop->stop)
        return 0;
    if (loop->timers.len) {
        int64_t left = loop->timers.p[0]->at - clock_mono_ns(clock_system());
        left = left < 0 ? 0 : left;
        most = most < 0 || left < most ? left : most;
    }
    return most;
}

void io_loop_turn(struct io_loop *loop, int64_t most_ns)
{
    int64_t wait = time_to_wait(loop, most_ns);
    if (wait != 0 && !ring_arm(loop->ring))
        wait = 0;
    loop->woken = false;
    loop->ops->wait(loop, wait);
    if (loop->woken)
        ring_disarm(loop->ring);
    else
        ring_disarm_quietly(loop->ring);
    loop->now = clock_mono_ns(clock_system());
    drain_ring(loop);
    run_timers(loop);
    run_deferred(loop);
    send_all(loop);
}

void io_loop_run(struct io_loop *loop)
{
    while (!loop->stop)
        io_loop_turn(loop, -1);
    loop->stop = false;
}

void io_loop_stop(struct io_loop *loop)
{
    loop->stop = true;
}

void io_loop_defer(struct io_loop *loop, struct io_deferred *deferred)
{
    if (!list_is_linked(&deferred->link))
        list_push(&loop->deferred, &deferred->link);
}

/* Watches. */

static void watch_gone(struct io_deferred *d)
{
    struct io_watch *watch = container_of(d, struct io_watch, gone);
    if (watch->removed)
        watch->removed(watch);
}

void io_watch_add(struct io_loop *loop, struct io_watch *watch, int fd)
{
    watch->loop = loop;
    watch->fd = fd;
    watch->active = true;
    watch->armed = false;
    watch->gone.fn = watch_gone;
    list_init(&watch->gone.link);
    loop->ops->watch(loop, watch);
}

void io_watch_remove(struct io_watch *watch)
{
    if (!watch->active)
        return;
    watch->active = false;
    watch->loop->ops->unwatch(watch->loop, watch);
}

/* Requests. */

void io_submit(struct io_loop *loop, struct io_request *request)
{
    request->loop = loop;
    list_init(&request->link);
    if (request->op == IO_CALL)
        io_workers_submit(loop->workers, request);
    else
        loop->ops->submit(loop, request);
}

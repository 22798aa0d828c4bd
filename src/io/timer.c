/*
 * Timers in a binary heap: the first is at the top, each knows its place, so that it can be moved and
 * taken out.
 */
#include "io/impl.h"

static void put(struct io_loop *loop, size_t at, struct io_timer *timer)
{
    loop->timers.p[at] = timer;
    timer->place = (unsigned)at + 1;
}

static void up(struct io_loop *loop, size_t at, struct io_timer *timer)
{
    while (at > 0) {
        size_t above = (at - 1) / 2;
        if (loop->timers.p[above]->at <= timer->at)
            break;
        put(loop, at, loop->timers.p[above]);
        at = above;
    }
    put(loop, at, timer);
}

static void down(struct io_loop *loop, size_t at, struct io_timer *timer)
{
    size_t n = loop->timers.len;
    for (size_t below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && loop->timers.p[below + 1]->at < loop->timers.p[below]->at)
            below++;
        if (timer->at <= loop->timers.p[below]->at)
            break;
        put(loop, at, loop->timers.p[below]);
    }
    put(loop, at, timer);
}

void io_timer_start(struct io_loop *loop, struct io_timer *timer, int64_t at_ns)
{
    if (!timer->place) {
        vec_push(&loop->timers, timer);
        timer->at = at_ns;
        up(loop, loop->timers.len - 1, timer);
        return;
    }
    int64_t was = timer->at;
    timer->at = at_ns;
    if (at_ns < was)
        up(loop, timer->place - 1, timer);
    else
        down(loop, timer->place - 1, timer);
}

void io_timer_stop(struct io_loop *loop, struct io_timer *timer)
{
    if (!timer->place)
        return;
    size_t at = timer->place - 1;
    struct io_timer *last = vec_pop(&loop->timers);
    timer->place = 0;
    if (last == timer)
        return;
    if (at > 0 && last->at < loop->timers.p[(at - 1) / 2]->at)
        up(loop, at, last);
    else
        down(loop, at, last);
}

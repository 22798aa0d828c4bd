/*
 * A pool without room: writes wait here until there is some.
 *
 *     write ──ENOSPC, or nearly full──> held ──a quarter of a second──> the first is tried again
 *                                        ^                                 │ done: all others are started
 *                                        └───────── ENOSPC ────────────────┘
 *
 * Whoever waits for them waits as for a slow disk: nothing is lost, and nothing fails. A replica whose writes were
 * answered with an error would have to forget what it knows; if all replicas of a volume did at once, writes that
 * were acknowledged could no longer be vouched for.
 */
#include <errno.h>

#include "base/clock.h"
#include "pool/zvol_impl.h"

static const int64_t RETRY_NS = CLOCK_SECOND / 4;

static bool takes_room(const struct store_io *io)
{
    return io->op == STORE_WRITE;
}

static bool has_room(const struct zvol *z)
{
    return !z->nearly_full || !atomic_load(z->nearly_full);
}

static void wait_for_room(struct zvol *z, struct store_io *io)
{
    struct io_loop *loop = z->zvols->loop;
    list_push(&z->held, &io->link);
    if (!z->retry.place && !z->attempt)
        io_timer_start(loop, &z->retry, io_loop_now(loop) + RETRY_NS);
}

bool pool_zvol_hold(struct zvol *z, struct store_io *io)
{
    bool full = !has_room(z);
    if (!takes_room(io) || (!full && list_empty(&z->held) && !z->attempt))
        return false;
    if (z->patient && !z->closing)
        wait_for_room(z, io);
    else
        io->done(io, ENOSPC);
    return true;
}

static void start_all(struct zvol *z)
{
    struct list_link held;
    list_init(&held);
    list_splice(&held, &z->held);
    for (struct list_link *l; (l = list_take(&held));)
        pool_zvol_start(z, container_of(l, struct store_io, link));
}

bool pool_zvol_keep(struct zvol *z, struct store_io *io, int error)
{
    bool attempt = io == z->attempt;
    if (attempt)
        z->attempt = NULL;
    /* What gives space back may need some first. */
    if (error == ENOSPC && io->op != STORE_READ && z->patient && !z->closing) {
        if (attempt)
            list_push_front(&z->held, &io->link);
        else
            list_push(&z->held, &io->link);
        if (!z->retry.place && !z->attempt)
            io_timer_start(z->zvols->loop, &z->retry, io_loop_now(z->zvols->loop) + RETRY_NS);
        return true;
    }
    if (attempt)
        start_all(z);
    return false;
}

static void try_again(struct io_timer *timer)
{
    struct zvol *z = container_of(timer, struct zvol, retry);
    struct list_link *first = has_room(z) ? list_take(&z->held) : NULL;
    if (first) {
        z->attempt = container_of(first, struct store_io, link);
        pool_zvol_start(z, z->attempt);
    } else if (!list_empty(&z->held)) {
        io_timer_start(z->zvols->loop, timer, io_loop_now(z->zvols->loop) + RETRY_NS);
    }
}

void pool_zvol_room_init(struct zvol *z)
{
    list_init(&z->held);
    z->retry.fn = try_again;
}

void pool_zvol_quiet(struct zvol *z)
{
    void (*paused)(void *context) = z->paused;
    if (!paused || z->rereads)
        return;
    z->paused = NULL;
    paused(z->pause_context);
}

void pool_zvol_pause(struct store *s, void (*done)(void *context), void *context)
{
    struct zvol *z = container_of(s, struct zvol, store);
    z->closing = true;
    z->paused = done;
    z->pause_context = context;
    io_timer_stop(z->zvols->loop, &z->retry);
    for (struct list_link *l; (l = list_take(&z->held));) {
        struct store_io *io = container_of(l, struct store_io, link);
        io->done(io, ENOSPC);
    }
    pool_zvol_quiet(z);
}

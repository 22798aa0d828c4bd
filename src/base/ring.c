/*
 * Each cell carries a turn, which says who may touch it next. For the cell of position p, in a ring
 * of n cells:
 *
 *     turn == p        free: the producer that takes position p may fill it
 *     turn == p + 1    full: the consumer at position p may empty it
 *     turn == p + n    free again, for position p + n
 *
 * A producer takes a position by moving `head` on, fills the cell and passes the turn. The consumer
 * alone knows `tail`. Positions count up without end; only differences matter, so wrapping is fine.
 *
 * Waking: the consumer writes `asleep` and then looks into the next cell; a producer writes the turn
 * of its cell and then looks at `asleep`. All four are sequentially consistent, so at least one of
 * the two sees what the other wrote, and no push is slept through. A producer that was overtaken
 * between taking its position and filling it does its own look afterwards; the consumer, woken by
 * whoever overtook it, finds nothing yet and sleeps again.
 */
#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CACHE_LINE = 64, CAPACITY_MAX = 1 << 24 };

struct cell {
    _Atomic size_t turn;
    void *item;
};

struct ring {
    struct cell *cells; /* owned */
    size_t mask;
    int fd; /* owned */
    char apart1[CACHE_LINE];
    _Atomic size_t head; /* producers' */
    char apart2[CACHE_LINE];
    size_t tail; /* the consumer's */
    char apart3[CACHE_LINE];
    atomic_bool asleep;
};

struct ring *ring_new(size_t capacity, struct err *e)
{
    if (capacity == 0 || capacity > CAPACITY_MAX) {
        err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "a ring has 1 to %d cells, not %zu",
                (int)CAPACITY_MAX, capacity);
        return NULL;
    }
    size_t n = 2; /* with one cell, "full" and "free again" would be the same turn */
    while (n < capacity)
        n *= 2;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        err_errno(e, errno, "cannot make an eventfd");
        return NULL;
    }
    struct ring *r = NEW(struct ring);
    r->cells = mem_realloc_array(NULL, n, sizeof(*r->cells));
    for (size_t i = 0; i < n; i++)
        atomic_init(&r->cells[i].turn, i);
    r->mask = n - 1;
    r->fd = fd;
    return r;
}

void ring_free(struct ring *r)
{
    if (!r)
        return;
    close(r->fd);
    free(r->cells);
    free(r);
}

static void wake(struct ring *r)
{
    /* Of several producers one wakes. The counter cannot overflow: the consumer resets it. */
    if (!atomic_exchange(&r->asleep, false))
        return;
    uint64_t one = 1;
    ssize_t n;
    do
        n = write(r->fd, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
    assert(n == (ssize_t)sizeof(one) || errno == EAGAIN);
}

bool ring_push(struct ring *r, void *item)
{
    assert(item);
    size_t position = atomic_load_explicit(&r->head, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = &r->cells[position & r->mask];
        size_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
        if (turn == position) {
            /* On failure position is where head is now. */
            if (atomic_compare_exchange_weak_explicit(&r->head, &position, position + 1,
                                                      memory_order_relaxed, memory_order_relaxed))
                break;
        } else if ((ssize_t)(turn - position) < 0) {
            return false; /* the item of one round ago is still there */
        } else {
            position = atomic_load_explicit(&r->head, memory_order_relaxed);
        }
    }
    cell->item = item;
    atomic_store(&cell->turn, position + 1);
    if (atomic_load(&r->asleep))
        wake(r);
    return true;
}

void *ring_pop(struct ring *r)
{
    struct cell *cell = &r->cells[r->tail & r->mask];
    if (atomic_load_explicit(&cell->turn, memory_order_acquire) != r->tail + 1)
        return NULL;
    void *item = cell->item;
    atomic_store_explicit(&cell->turn, r->tail + r->mask + 1, memory_order_release);
    r->tail++;
    return item;
}

int ring_fd(const struct ring *r)
{
    return r->fd;
}

bool ring_arm(struct ring *r)
{
    atomic_store(&r->asleep, true);
    if (atomic_load(&r->cells[r->tail & r->mask].turn) != r->tail + 1)
        return true;
    atomic_store(&r->asleep, false);
    return false;
}

void ring_disarm_quietly(struct ring *r)
{
    atomic_store(&r->asleep, false);
}

void ring_disarm(struct ring *r)
{
    atomic_store(&r->asleep, false);
    /*
     * Read always: a producer that is about to write, having taken `asleep` earlier, wakes a later
     * sleep for nothing, and that must not go on for ever.
     */
    uint64_t count;
    while (read(r->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

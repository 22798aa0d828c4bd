/*
 * Layers that belong to no snapshot any more, merged with the one above, in the background.
 *
 *     find the lowest ──> copy a run of granules ──> pause ──┐          after some megabytes: flush, mark
 *          ^                    ^────────────────────────────┘
 *          └── manifest without the upper one <── flush <── nothing is left to copy
 *
 * The upper layer's granules are copied down, since it is they that count. While clients are busy a copy is followed by
 * a pause four times as long. Progress of a layer that cannot change any more is kept in the manifest; that of the head
 * begins anew after a crash.
 */
#include <errno.h>
#include <string.h>

#include "store/chain.h"

enum { RUN = IO_LARGE, MARK = 128 << 20, PAUSE_SHARE = 4 };

static const int64_t RETRY = 1000000000LL, LEAST = 100000;

/* The next run of granules that the upper layer has; false: there is none. */
static bool next_run(const struct layer *upper, uint64_t size, uint64_t at, uint64_t *ret_from,
                     uint64_t *ret_to)
{
    uint64_t g = (at + GRANULE - 1) / GRANULE, end = (size + GRANULE - 1) / GRANULE;
    while (g < end) {
        if (g % 64 == 0 && g + 64 <= end) { /* most words are empty */
            uint64_t word;
            memcpy(&word, upper->bits + g / 8, sizeof(word));
            if (!word) {
                g += 64;
                continue;
            }
        }
        if (layer_has(upper, g))
            break;
        g++;
    }
    if (g >= end)
        return false;
    uint64_t to = g + 1;
    while (to < end && (to - g) * GRANULE < RUN && layer_has(upper, to))
        to++;
    *ret_from = g * GRANULE;
    *ret_to = to * GRANULE < size ? to * GRANULE : size;
    return true;
}

/* Copies, flushes and changes end here. */
static void rest(struct chain *c)
{
    void (*paused)(void *context) = c->paused;
    c->merge.copying = c->merge.flushed = false;
    c->paused = NULL;
    if (paused)
        paused(c->paused_context);
}

void chain_merge_pause(struct store *s, void (*done)(void *context), void *context)
{
    struct chain *c = chain_of(s);
    c->closing = true;
    c->paused = done;
    c->paused_context = context;
    if (!c->merge.copying)
        rest(c);
}

/* I/O of clients since the last copy. */
static bool clients_busy(struct chain *c)
{
    bool busy = c->merge.seen != c->ios;
    c->merge.seen = c->ios;
    return busy;
}

static void changed(void *context, int error)
{
    struct chain *c = context;
    if (c->closing)
        rest(c);
    else if (error && error != ECANCELED)
        io_timer_start(c->loop, &c->merge.timer, io_loop_now(c->loop) + RETRY);
}

static void ask_change(struct chain *c, int kind)
{
    c->merge.since_mark = 0;
    c->merge.change = (struct chain_change){.kind = kind, .done = changed, .context = c};
    chain_change_add(c, &c->merge.change);
}

/* Before I/O is held: what takes long is done by then. */
static void flushed(struct store_io *io, int error)
{
    struct chain *c = container_of(io, struct chain, merge.flush);
    uint64_t from, to;
    if (error || !c->merge.upper || c->closing) {
        rest(c);
        return;
    }
    bool more = next_run(c->merge.upper, c->merge.upper->file->size, c->merge.at, &from, &to);
    ask_change(c, more ? CHANGE_MARK : CHANGE_MERGED);
}

static void flush(struct chain *c)
{
    c->merge.copying = c->merge.flushed = true;
    c->merge.flush = (struct store_io){.op = STORE_FLUSH, .sums = true, .done = flushed};
    chain_flush(c, &c->merge.flush);
}

static void copy_next(struct io_timer *timer)
{
    struct chain *c = container_of(timer, struct chain, merge.timer);
    uint64_t from, to;
    if (c->merge.copying || c->closing || c->change || c->broken)
        return;
    if (!c->merge.upper) {
        chain_merge_kick(c);
        return;
    }
    bool more = next_run(c->merge.upper, c->merge.upper->file->size, c->merge.at, &from, &to);
    if (!more || (c->merge.since_mark >= MARK && !chain_mirrors(c))) {
        flush(c);
        return;
    }
    c->merge.copying = true;
    c->merge.since_mark += to - from;
    c->merge.from = from;
    c->merge.at = to;
    c->merge.began = io_loop_now(c->loop);
    chain_copy(c, from, to);
}

void chain_merge_copied(struct chain *c, int error)
{
    int64_t now = io_loop_now(c->loop), took = now - c->merge.began;
    rest(c);
    if (c->closing)
        return;
    if (error)
        c->merge.at = c->merge.from; /* again, later */
    int64_t pause = 1;               /* in the next turn */
    if (error)
        pause = RETRY;
    else if (clients_busy(c))
        pause = PAUSE_SHARE * (took > LEAST ? took : LEAST);
    io_timer_start(c->loop, &c->merge.timer, now + pause);
}

void chain_merge_check(struct chain *c)
{
    for (unsigned i = 0; i + 1 < c->n; i++)
        if (c->layers[i] == c->merge.lower && c->layers[i + 1] == c->merge.upper)
            return;
    c->merge.lower = c->merge.upper = NULL;
}

static void grown(void *context, int error)
{
    *(int *)context = error;
}

static void choose(struct chain *c)
{
    for (unsigned i = 0; i + 1 < c->n; i++) {
        struct layer *lower = c->layers[i], *upper = c->layers[i + 1];
        bool frozen = i + 2 < c->n;
        if (lower->snapshot)
            continue;
        if (!frozen && c->inflight)
            return; /* what is being written would not be copied */
        int error = layer_map_resize(lower, upper->file->size);
        if (!error && lower->file->size < upper->file->size)
            store_grow(lower->file, upper->file->size, grown, &error);
        if (error)
            return;
        c->merge.lower = lower;
        c->merge.upper = upper;
        c->merge.at = frozen ? lower->merged : 0;
        c->merge.since_mark = 0;
        return;
    }
}

static bool wanted(const struct chain *c)
{
    for (unsigned i = 0; i + 1 < c->n; i++)
        if (!c->layers[i]->snapshot)
            return true;
    return false;
}

void chain_merge_kick(struct chain *c)
{
    if (c->closing || c->store.read_only || c->change || c->merge.copying || !wanted(c))
        return;
    if (!c->merge.upper)
        choose(c);
    io_timer_start(c->loop, &c->merge.timer, io_loop_now(c->loop) + (c->merge.upper ? 1 : RETRY));
}

void chain_merge_init(struct chain *c)
{
    c->merge.timer.fn = copy_next;
    chain_merge_kick(c);
}

/*
 * Another store behind a cache that forgets, for tests: `volatile:NAME`. As disks have it: what was written and not
 * flushed is gone when the process is killed, but for some writes, or the first half of one, which had reached
 * the store below in any order.
 *
 *     write ──> cache, done ──┬── flush: all of it, in order ──> below, then a flush there
 *                             └── now and then one of them, or half of it
 *     read  ──> below, then what the cache has over it
 *
 * One request at a time is under way below, so that what a read brings and what the cache has belong together. A
 * write leaves the cache early only if no earlier one overlaps it: else that one would later overwrite it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "io/loop.h"
#include "store/impl.h"

enum { OLDEST = 32, MOST = 512 };

struct cached {
    struct list_link link;
    uint64_t offset, length;
    bool unverified;
    struct iovec iov;
    uint8_t data[];
};

struct cache {
    struct store store;
    struct store *below;
    struct list_link cached; /* in order; at most MOST, or the oldest go */
    unsigned count;
    struct list_link waiting; /* reads, flushes and new checksums */
    struct store_io io;       /* what is under way below */
    struct store_io *reading; /* or making checksums anew; or: */
    struct cached *writing;
    bool keep; /* only half of it was written */
    bool busy, flushing, stepping;
    int error; /* of a write, for the next flush */
    uint64_t random;
};

static struct cache *cache_of(struct store *s)
{
    return container_of(s, struct cache, store);
}

static uint64_t below(struct cache *c, uint64_t n)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (c->random >> 33) % n;
}

static void step(struct cache *c);

static bool overlap(const struct cached *a, uint64_t offset, uint64_t length)
{
    return a->offset < offset + length && offset < a->offset + a->length;
}

/* Copies what lies in both: from the cache into a read's vectors, or from a write's into the cache. */
static void copy(const struct store_io *io, struct cached *w, bool in)
{
    uint64_t at = io->offset;
    for (unsigned i = 0; i < io->iovs; at += io->iov[i++].iov_len) {
        uint64_t from = at > w->offset ? at : w->offset, end = at + io->iov[i].iov_len;
        end = end < w->offset + w->length ? end : w->offset + w->length;
        if (from >= end)
            continue;
        uint8_t *theirs = (uint8_t *)io->iov[i].iov_base + (from - at);
        uint8_t *ours = w->data + (from - w->offset);
        memcpy(in ? ours : theirs, in ? theirs : ours, end - from);
    }
}

static void forget(struct cache *c, struct cached *w)
{
    c->count--;
    list_unlink(&w->link);
    free(w);
}

static void done_below(struct store_io *io, int error)
{
    struct cache *c = container_of(io, struct cache, io);
    struct store_io *reading = c->reading;
    c->busy = false;
    c->reading = NULL;
    if (reading) {
        list_for_each(&c->cached, w, struct cached, link)
            if (!reading->snapshot)
                copy(reading, w, false);
        store_done(reading, error);
    } else if (c->writing) {
        if (!c->keep)
            forget(c, c->writing);
        if (error)
            c->error = error;
        c->writing = NULL;
    } else if (c->flushing) {
        struct store_io *flush = list_first(&c->waiting, struct store_io, link);
        c->flushing = false;
        list_unlink(&flush->link);
        error = error ? error : c->error;
        c->error = 0;
        store_done(flush, error);
    }
    step(c);
}

/* The same as a request of the cache's own. */
static void submit_below(struct cache *c, const struct store_io *of)
{
    c->busy = true;
    c->io = (struct store_io){.op = of->op,
                              .offset = of->offset,
                              .length = of->length,
                              .snapshot = of->snapshot,
                              .unverified = of->unverified,
                              .sums = of->sums,
                              .iov = of->iov,
                              .iovs = of->iovs,
                              .done = done_below};
    store_submit(c->below, &c->io);
}

static void write_out(struct cache *c, struct cached *w, bool half)
{
    uint64_t length = half ? w->length / 2 / c->store.block_size * c->store.block_size : w->length;
    c->writing = w;
    c->keep = half;
    w->iov = (struct iovec){w->data, length};
    submit_below(c, &(struct store_io){.op = STORE_WRITE,
                                       .offset = w->offset,
                                       .length = length,
                                       .unverified = w->unverified,
                                       .iov = &w->iov,
                                       .iovs = 1});
}

static void begin(struct cache *c, struct store_io *next)
{
    struct cached *oldest = list_first(&c->cached, struct cached, link);
    if (next && (next->op == STORE_READ || next->op == STORE_RESUM)) {
        list_unlink(&next->link);
        c->reading = next;
        submit_below(c, next);
    } else if (oldest) {
        write_out(c, oldest, false);
    } else {
        c->flushing = true;
        submit_below(c, &(struct store_io){.op = STORE_FLUSH, .sums = next && next->sums});
    }
}

/* What waits, in order: a flush when the cache is empty. */
static void step(struct cache *c)
{
    if (c->stepping)
        return;
    c->stepping = true;
    while (!c->busy && (!list_empty(&c->waiting) || c->count > MOST))
        begin(c, list_first(&c->waiting, struct store_io, link));
    c->stepping = false;
}

/* A write reaches the disk by itself: one of the oldest. */
static void leak(struct cache *c)
{
    struct cached *chosen = NULL;
    uint64_t n = 0;
    unsigned looked_at = 0;
    list_for_each(&c->cached, w, struct cached, link) {
        bool free = true;
        if (looked_at++ == OLDEST)
            break;
        list_for_each(&c->cached, before, struct cached, link) {
            if (before == w)
                break;
            free = free && !overlap(before, w->offset, w->length);
        }
        if (free && below(c, ++n) == 0)
            chosen = w;
    }
    if (chosen)
        write_out(c, chosen, below(c, 3) == 0);
}

static void keep_write(struct cache *c, const struct store_io *io)
{
    struct cached *w = mem_zalloc(sizeof(*w) + io->length);
    w->offset = io->offset;
    w->length = io->length;
    w->unverified = io->unverified;
    if (io->op == STORE_WRITE)
        copy(io, w, true);
    list_push(&c->cached, &w->link);
    c->count++;
}

static void submit(struct store *s, struct store_io *io)
{
    struct cache *c = cache_of(s);
    bool writes = io->op == STORE_WRITE || io->op == STORE_UNMAP || io->op == STORE_ZERO;
    if (writes)
        keep_write(c, io);
    if (writes && !io->fua) {
        store_done(io, 0);
        if (!c->busy && below(c, 4) == 0)
            leak(c);
        step(c);
        return;
    }
    list_push(&c->waiting, &io->link);
    step(c);
}

struct growing {
    struct cache *cache;
    void (*done)(void *context, int error);
    void *context;
};

static void grown(void *context, int error)
{
    struct growing *g = context;
    g->cache->store.size = g->cache->below->size;
    g->done(g->context, error);
    free(g);
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct growing *g = NEW(struct growing);
    *g = (struct growing){cache_of(s), done, context};
    store_grow(g->cache->below, size, grown, g);
}

/* Changes of snapshots: when the cache is empty. */

struct change {
    struct cache *cache;
    void (*change)(struct store *s, uint64_t id, void (*done)(void *context, int error),
                   void *context);
    uint64_t id;
    void (*done)(void *context, int error);
    void *context;
    struct store_io flush;
};

static void flushed(struct store_io *io, int error)
{
    struct change *ch = container_of(io, struct change, flush);
    if (error)
        ch->done(ch->context, error);
    else
        ch->change(ch->cache->below, ch->id, ch->done, ch->context);
    free(ch);
}

static void flush_and(struct store *s,
                      void (*change)(struct store *, uint64_t, void (*)(void *, int), void *),
                      uint64_t id, void (*done)(void *context, int error), void *context)
{
    struct change *ch = NEW(struct change);
    *ch = (struct change){cache_of(s), change, id, done, context, {0}};
    ch->flush.op = STORE_FLUSH;
    ch->flush.done = flushed;
    store_submit(s, &ch->flush);
}

static void snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                     void *context)
{
    flush_and(s, store_snapshot, id, done, context);
}

static void snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                          void *context)
{
    flush_and(s, store_snapshot_drop, id, done, context);
}

static void revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                   void *context)
{
    flush_and(s, store_revert, id, done, context);
}

static unsigned snapshots(struct store *s, struct store_snapshot *out, unsigned most)
{
    return store_snapshots(cache_of(s)->below, out, most);
}

static bool mark(struct store *s, struct store_mark *ret_mark)
{
    return store_mark(cache_of(s)->below, ret_mark);
}

static void stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                  void *context)
{
    store_stamp(cache_of(s)->below, generation, done, context);
}

static int inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                   void *context, struct err *e)
{
    return store_inspect(cache_of(s)->below, stale, context, e);
}

static void pause_below(struct store *s, void (*done)(void *context), void *context)
{
    store_pause(cache_of(s)->below, done, context);
}

static uint64_t used(struct store *s)
{
    return store_used(cache_of(s)->below);
}

static void close_cache(struct store *s)
{
    struct cache *c = cache_of(s);
    list_for_each_safe(&c->cached, w, struct cached, link)
        forget(c, w);
    store_close(c->below);
    free(c);
}

static const struct store_ops cache_ops = {
    .name = "volatile",
    .submit = submit,
    .grow = grow,
    .snapshot = snapshot,
    .snapshot_drop = snapshot_drop,
    .revert = revert,
    .snapshots = snapshots,
    .used = used,
    .mark = mark,
    .stamp = stamp,
    .inspect = inspect,
    .pause = pause_below,
    .close = close_cache,
};

struct store *store_volatile_open(const char *rest, const struct store_options *o, struct err *e)
{
    struct store *below = store_open(rest, o, e);
    if (!below)
        return NULL;
    struct cache *c = NEW(struct cache);
    c->store = *below;
    c->store.ops = &cache_ops;
    c->store.volatile_cache = true;
    c->store.atomic = 0;
    c->below = below;
    c->random = (uint64_t)io_loop_now(o->loop);
    list_init(&c->cached);
    list_init(&c->waiting);
    return &c->store;
}

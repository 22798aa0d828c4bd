#include "store/chain.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/str.h"

struct layer *chain_find(const struct chain *c, uint64_t snapshot, unsigned *ret_index)
{
    for (unsigned i = 0; snapshot && i < c->n; i++) {
        if (c->layers[i]->snapshot != snapshot)
            continue;
        if (ret_index)
            *ret_index = i;
        return c->layers[i];
    }
    return NULL;
}

/* Dispatch. */

static void submit(struct store *s, struct store_io *io)
{
    struct chain *c = chain_of(s);
    if (c->n > 1 || c->change) {
        chain_submit(c, io);
        return;
    }
    /* No snapshots: the file, and nothing else. */
    struct store *file = c->layers[0]->file;
    io->store = file;
    if (io->snapshot)
        store_done(io, ENOENT);
    else
        file->ops->submit(file, io);
}

static void set_error(void *context, int error)
{
    *(int *)context = error;
}

int chain_grow_now(struct chain *c, uint64_t size)
{
    int error = layer_map_resize(chain_head(c), size);
    if (!error && chain_mirrors(c)) {
        error = layer_map_resize(c->merge.lower, size);
        if (!error)
            store_grow(c->merge.lower->file, size, set_error, &error);
    }
    if (!error)
        store_grow(chain_head(c)->file, size, set_error, &error);
    if (!error)
        c->store.size = size;
    return error;
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct chain *c = chain_of(s);
    if (c->change)
        chain_change_ask(s, CHANGE_GROW, size, done, context);
    else
        done(context, chain_grow_now(c, size));
}

static enum store_extent extent(struct store *s, uint64_t offset, uint64_t *ret_length)
{
    const struct chain *c = chain_of(s);
    uint64_t run, length;
    unsigned layer = chain_run(c, c->n - 1, offset, s->size, &run);
    struct store *file = c->layers[layer]->file;
    enum store_extent kind = STORE_UNMAPPED;
    length = run;
    if (offset < file->size) {
        kind = file->ops->extent(file, offset, &length);
        if (kind == STORE_UNMAPPED && length == file->size - offset)
            length = run;
    }
    *ret_length = length < run ? length : run;
    return kind;
}

static uint64_t used(struct store *s)
{
    const struct chain *c = chain_of(s);
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->n; i++) {
        struct stat st;
        sum += store_used(c->layers[i]->file);
        if (c->layers[i]->map_fd >= 0 && fstat(c->layers[i]->map_fd, &st) == 0)
            sum += (uint64_t)st.st_blocks * 512;
    }
    return sum;
}

static void close_chain(struct store *s)
{
    struct chain *c = chain_of(s);
    c->closing = true;
    while (c->inflight || c->flushing || c->change || c->stamping)
        io_loop_turn(c->loop, -1);
    if (c->merge.timer.fn)
        io_timer_stop(c->loop, &c->merge.timer);
    list_for_each_safe(&c->free_ops, op, struct chain_op, link) {
        free(op->iov);
        free(op);
    }
    while (c->n)
        chain_layer_close(c->layers[--c->n]);
    sums_cache_free(c->cache);
    free(c->staged);
    free(c->path);
    free(c);
}

static const struct store_ops chain_ops = {
    .name = "file",
    .submit = submit,
    .grow = grow,
    .snapshot = chain_snapshot,
    .snapshot_drop = chain_snapshot_drop,
    .revert = chain_revert,
    .snapshots = chain_snapshots,
    .extent = extent,
    .used = used,
    .mark = chain_mark,
    .stamp = chain_stamp,
    .inspect = chain_inspect,
    .pause = chain_merge_pause,
    .close = close_chain,
};

struct store *store_chain_open(const char *rest, const struct store_options *o, struct err *e)
{
    struct chain *c = NEW(struct chain);
    size_t length = strcspn(rest, "?");
    c->store =
        (struct store){.ops = &chain_ops, .block_size = o->block_size, .read_only = o->read_only};
    c->loop = o->loop;
    c->path = mem_strndup(rest, length);
    c->direct = str_eq(rest + length, "?direct=1");
    c->cache = o->sums ? sums_cache_new(o->loop, o->sums_cache) : NULL;
    struct list_link *lists[] = {&c->active,        &c->waiting,      &c->held,    &c->free_ops,
                                 &c->flush_waiting, &c->flush_served, &c->changes, &c->stamps};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        list_init(lists[i]);
    if (store_file_check(rest, e) < 0 || chain_open_layers(c, o, e) < 0) {
        close_chain(&c->store);
        return NULL;
    }
    chain_merge_init(c);
    return &c->store;
}

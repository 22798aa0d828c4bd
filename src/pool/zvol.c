#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "pool/zvol_impl.h"

enum { DEPTH = 256 };

/* The threads. */

static void reap(struct io_watch *watch)
{
    struct pool_zvols *z = container_of(watch, struct pool_zvols, watch);
    zpool_workers_reap(z->workers);
}

struct pool_zvols *pool_zvols_new(struct io_loop *loop, unsigned threads, struct err *e)
{
    struct zpool_workers *workers = zpool_workers_new(threads, DEPTH, e);
    if (!workers)
        return NULL;
    struct pool_zvols *z = NEW(struct pool_zvols);
    z->loop = loop;
    z->workers = workers;
    z->watch.readable = reap;
    io_watch_add(loop, &z->watch, zpool_workers_fd(workers));
    return z;
}

static void removed(struct io_watch *watch)
{
    struct pool_zvols *z = container_of(watch, struct pool_zvols, watch);
    zpool_workers_free(z->workers);
    free(z);
}

void pool_zvols_free(struct pool_zvols *z)
{
    z->watch.removed = removed;
    io_watch_remove(&z->watch);
}

/* I/O: the engine's request lies in the store's. */

static_assert(sizeof(struct zpool_io) <= sizeof(((struct store_io *)0)->state),
              "a request of the pool fits in one of a store");

static struct zpool_io *inner(struct store_io *io)
{
    return (struct zpool_io *)(void *)io->state;
}

static void io_done(struct zpool_io *zio)
{
    struct store_io *io = container_of(zio, struct store_io, state);
    struct zvol *z = container_of(io->store, struct zvol, store);
    int error = zio->error;
    z->under_way--;
    struct list_link *next = list_take(&z->waiting);
    if (next)
        pool_zvol_start(z, container_of(next, struct store_io, link));
    if (pool_zvol_keep(z, io, error))
        return;
    pool_zvol_note(z, io, error);
    io->done(io, error);
}

/* Where the I/O goes: the volume, or the snapshot that a read asks for; NULL. */
static struct zpool_volume *find(const struct zvol *z, uint64_t snapshot)
{
    if (!snapshot)
        return z->volume;
    vec_for_each(&z->snapshots, s) {
        if (s->id == snapshot)
            return s->volume;
    }
    return NULL;
}

static void clear(struct store_io *io)
{
    for (unsigned i = 0; i < io->iovs; i++)
        memset(io->iov[i].iov_base, 0, io->iov[i].iov_len);
}

/* The volume may have grown since the snapshot: what was not there reads as zeroes. */
static bool lies_beyond(struct zpool_volume *v, struct store_io *io)
{
    uint64_t size = zpool_volume_size(v);
    return io->snapshot && (io->offset >= size || io->length > size - io->offset);
}

void pool_zvol_start(struct zvol *z, struct store_io *io)
{
    static const enum zpool_op
        ops[] =
            {
                [STORE_READ] = ZPOOL_READ,   [STORE_WRITE] = ZPOOL_WRITE,
                [STORE_FLUSH] = ZPOOL_FLUSH, [STORE_UNMAP] = ZPOOL_UNMAP,
                [STORE_ZERO] = ZPOOL_UNMAP, /* the space of a thick volume stays its own */
            };
    if (z->most && z->under_way >= z->most) {
        list_push(&z->waiting, &io->link);
        return;
    }
    struct zpool_volume *v = find(z, io->snapshot);
    int error = v ? 0 : io->snapshot ? ENOENT : EIO;
    uint64_t length = io->length;
    if (!error && lies_beyond(v, io)) {
        uint64_t size = zpool_volume_size(v);
        clear(io);
        length = io->offset < size ? size - io->offset : 0;
    }
    if (error || (!length && io->op != STORE_FLUSH)) {
        io->done(io, error);
        return;
    }
    *inner(io) = (struct zpool_io){
        .volume = v,
        .op = ops[io->op],
        .fua = io->fua,
        .offset = io->offset,
        .length = length,
        .iov = io->iov,
        .iovs = io->iovs,
        .done = io_done,
    };
    if (io->op == STORE_READ && zpool_io_try_read(inner(io))) {
        pool_zvol_note(z, io, 0);
        io->done(io, 0);
        return;
    }
    z->under_way++;
    zpool_workers_submit(z->zvols->workers, inner(io));
}

static void submit(struct store *s, struct store_io *io)
{
    struct zvol *z = container_of(s, struct zvol, store);
    if (io->op == STORE_RESUM) /* ZFS's checksums are of what is there, also after a crash */
        io->done(io, 0);
    else if (!pool_zvol_hold(z, io))
        pool_zvol_start(z, io);
}

static bool read_mark(struct store *s, struct store_mark *ret_mark)
{
    const struct zvol *z = container_of(s, struct zvol, store);
    *ret_mark = (struct store_mark){.id = z->identity, .generation = z->mark};
    return true;
}

void pool_zvol_health(struct store *s, struct pool_zvol_health *ret)
{
    const struct zvol *z = container_of(s, struct zvol, store);
    *ret = (struct pool_zvol_health){
        .full = !list_empty(&z->held) || z->attempt, .damaged = z->damaged, .mended = z->mended};
}

/* Opening and closing. */

static void close_zvol(struct store *s)
{
    struct zvol *z = container_of(s, struct zvol, store);
    vec_for_each(&z->snapshots, it)
        zpool_volume_close(it->volume);
    vec_done(&z->snapshots);
    pool_zvol_damage_done(z);
    if (z->volume)
        zpool_volume_close(z->volume);
    free(z->name);
    free(z);
}

static const struct store_ops zvol_ops = {
    .name = "zvol",
    .submit = submit,
    .grow = pool_zvol_grow,
    .snapshot = pool_zvol_snapshot,
    .snapshot_drop = pool_zvol_snapshot_drop,
    .revert = pool_zvol_revert,
    .snapshots = pool_zvol_snapshots,
    .mark = read_mark,
    .stamp = pool_zvol_stamp,
    .pause = pool_zvol_pause,
    .close = close_zvol,
};

/* The volume, made if there is none, and as large as it is to be. */
static struct zpool_volume *open_volume(const struct pool_zvol_options *o, struct err *e)
{
    struct err why = {0};
    struct zpool_volume_spec spec = o->spec;
    uint32_t block = spec.block_size ? spec.block_size : 16384;
    spec.size = pool_zvol_round(spec.size, block);
    if (spec.size && zpool_volume_create(o->pool, o->name, &spec, &why) < 0 &&
        why.code != ERR_ALREADY_EXISTS) {
        *e = why;
        return NULL;
    }
    /* A process that died while it was being made left it without its settings. */
    if (spec.size && zpool_volume_set(o->pool, o->name, &spec, e) < 0)
        return NULL;
    struct zpool_volume *v = zpool_volume_open(o->pool, o->name, false, e);
    if (v && zpool_volume_size(v) < spec.size && zpool_volume_grow(v, spec.size, e) < 0) {
        zpool_volume_close(v);
        return NULL;
    }
    return v;
}

struct store *pool_zvol_open(const struct pool_zvol_options *o, struct err *e)
{
    struct zpool_volume *v =
        pool_zvol_finish_revert(o->pool, o->name, e) < 0 ? NULL : open_volume(o, e);
    if (!v)
        return NULL;
    struct zvol *z = NEW(struct zvol);
    z->store = (struct store){
        .ops = &zvol_ops,
        .size = zpool_volume_size(v),
        .block_size = o->block_size,
        .volatile_cache = true,
        .checked = true,
        .sums_with_data = true, /* both are in one transaction */
        .atomic = o->block_size,
    };
    z->zvols = o->zvols;
    z->pool = o->pool;
    z->volume = v;
    z->name = mem_strdup(o->name);
    z->nearly_full = o->nearly_full;
    z->identity = o->identity;
    z->mark = zpool_volume_mark(v);
    z->most = o->most;
    z->patient = o->patient;
    list_init(&z->waiting);
    list_init(&z->damage);
    pool_zvol_room_init(z);
    z->run = o->run;
    z->engine = o->engine;
    if (pool_zvol_open_snapshots(z, e) < 0) {
        close_zvol(&z->store);
        return NULL;
    }
    return &z->store;
}

int pool_zvol_read(struct store *s, uint64_t offset, void *data, size_t length)
{
    struct iovec iov = {data, length};
    const struct zpool_io io = {.volume = container_of(s, struct zvol, store)->volume,
                                .op = ZPOOL_READ,
                                .offset = offset,
                                .length = length,
                                .iov = &iov,
                                .iovs = 1};
    return zpool_io_run(&io);
}

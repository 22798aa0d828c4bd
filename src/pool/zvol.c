#include "pool/zvol.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/vec.h"

enum { DEPTH = 256, SNAPSHOTS_MAX = 1024 };
#define SNAPSHOT "orlop-"

struct pool_zvols {
    struct io_loop *loop;
    struct zpool_workers *workers; /* owned */
    struct io_watch watch;
};

struct snapshot {
    uint64_t id;
    struct zpool_volume *volume; /* owned; open for reading */
};

struct zvol {
    struct store store;
    struct pool_zvols *zvols;
    struct zpool *pool;
    struct zpool_volume *volume; /* owned; NULL after a revert that failed */
    char *name;                  /* owned */
    const atomic_bool *nearly_full;
    int (*run)(void *engine, int (*fn)(void *context), void *context);
    void *engine;
    VEC(struct snapshot) snapshots; /* oldest first */
};

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
    io->done(io, zio->error);
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

static void submit(struct store *s, struct store_io *io)
{
    static const enum zpool_op
        ops[] =
            {
                [STORE_READ] = ZPOOL_READ,   [STORE_WRITE] = ZPOOL_WRITE,
                [STORE_FLUSH] = ZPOOL_FLUSH, [STORE_UNMAP] = ZPOOL_UNMAP,
                [STORE_ZERO] = ZPOOL_UNMAP, /* the space of a thick volume stays its own */
            };
    struct zvol *z = container_of(s, struct zvol, store);
    struct zpool_volume *v = find(z, io->snapshot);
    int error = !v ? (io->snapshot ? ENOENT : EIO)
                : io->op == STORE_WRITE && z->nearly_full && atomic_load(z->nearly_full) ? ENOSPC
                                                                                         : 0;
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
    zpool_workers_submit(z->zvols->workers, inner(io));
}

/* What changes the pool: from the loop to a thread that may wait, and there to where it may be done. */

struct change {
    struct io_request request;
    struct zvol *z;
    int (*fn)(struct change *c);
    uint64_t number; /* the size, or the snapshot's */
    void (*done)(void *context, int error);
    void *context;
};

static int errno_of(const struct err *e)
{
    switch (e->code) {
    case ERR_NOT_FOUND:
        return ENOENT;
    case ERR_ALREADY_EXISTS:
        return EEXIST;
    case ERR_RESOURCE_EXHAUSTED:
        return ENOSPC;
    case ERR_FAILED_PRECONDITION:
        return EBUSY;
    default:
        return EIO;
    }
}

static int call_change(void *context)
{
    struct change *c = context;
    return c->fn(c);
}

static int run_change(void *context)
{
    struct change *c = context;
    return -c->z->run(c->z->engine, call_change, c);
}

static void change_done(struct io_request *request, int64_t result)
{
    struct change *c = container_of(request, struct change, request);
    void (*done)(void *context, int error) = c->done;
    void *context = c->context;
    if (c->z->volume)
        c->z->store.size = zpool_volume_size(c->z->volume);
    free(c);
    done(context, (int)-result);
}

static void change(struct store *s, int (*fn)(struct change *c), uint64_t number,
                   void (*done)(void *context, int error), void *context)
{
    struct change *c = NEW(struct change);
    c->z = container_of(s, struct zvol, store);
    c->fn = fn;
    c->number = number;
    c->done = done;
    c->context = context;
    c->request =
        (struct io_request){.op = IO_CALL, .call = run_change, .context = c, .done = change_done};
    io_submit(c->z->zvols->loop, &c->request);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static int do_grow(struct change *c)
{
    struct err e = {0};
    struct zpool_volume *v = c->z->volume;
    if (!v)
        return EIO;
    uint64_t size = round_up(c->number, zpool_volume_block_size(v));
    return zpool_volume_grow(v, size, &e) < 0 ? errno_of(&e) : 0;
}

/* "VOLUME@orlop-N", or what stands behind the @; to be freed. */
static char *snapshot_path(const struct zvol *z, uint64_t id)
{
    return mem_printf("%s@" SNAPSHOT "%llu", z->name, (unsigned long long)id);
}

static int open_snapshot(struct zvol *z, uint64_t id, struct err *e)
{
    _cleanup_free_ char *path = snapshot_path(z, id);
    struct zpool_volume *v = zpool_volume_open(z->pool, path, true, e);
    if (!v)
        return -1;
    vec_push(&z->snapshots, (struct snapshot){id, v});
    return 0;
}

static int do_snapshot(struct change *c)
{
    struct err e = {0};
    struct zvol *z = c->z;
    _cleanup_free_ char *path = snapshot_path(z, c->number);
    if (z->snapshots.len == SNAPSHOTS_MAX)
        return ENOSPC;
    if (zpool_snapshot(z->pool, z->name, strchr(path, '@') + 1, &e) < 0 ||
        zpool_sync(z->pool, &e) < 0 || open_snapshot(z, c->number, &e) < 0)
        return errno_of(&e);
    return 0;
}

/* The one at that place. */
static int drop_at(struct zvol *z, size_t i)
{
    struct err e = {0};
    uint64_t id = z->snapshots.p[i].id;
    _cleanup_free_ char *path = snapshot_path(z, id);
    zpool_volume_close(z->snapshots.p[i].volume);
    memmove(&z->snapshots.p[i], &z->snapshots.p[i + 1],
            (z->snapshots.len - i - 1) * sizeof(*z->snapshots.p));
    z->snapshots.len--;
    return zpool_volume_destroy(z->pool, path, &e) < 0 ? errno_of(&e) : 0;
}

static int do_drop(struct change *c)
{
    for (size_t i = 0; i < c->z->snapshots.len; i++)
        if (c->z->snapshots.p[i].id == c->number)
            return drop_at(c->z, i);
    return 0;
}

/* Later ones go; the volume is as it was then, and as large as it is now. */
static int do_revert(struct change *c)
{
    struct zvol *z = c->z;
    struct err e = {0};
    size_t at = 0;
    while (at < z->snapshots.len && z->snapshots.p[at].id != c->number)
        at++;
    if (at == z->snapshots.len)
        return ENOENT;
    while (z->snapshots.len > at + 1) {
        int error = drop_at(z, z->snapshots.len - 1);
        if (error)
            return error;
    }
    uint64_t size = z->store.size;
    _cleanup_free_ char *path = snapshot_path(z, c->number);
    zpool_volume_close(z->volume);
    int error = zpool_rollback(z->pool, path, &e) < 0 ? errno_of(&e) : 0;
    z->volume = zpool_volume_open(z->pool, z->name, false, &e);
    if (!z->volume)
        return EIO;
    if (!error && zpool_volume_size(z->volume) < size && zpool_volume_grow(z->volume, size, &e) < 0)
        error = errno_of(&e);
    if (!error && zpool_sync(z->pool, &e) < 0)
        error = EIO;
    return error;
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    change(s, do_grow, size, done, context);
}

static void snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                     void *context)
{
    change(s, do_snapshot, id, done, context);
}

static void snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                          void *context)
{
    change(s, do_drop, id, done, context);
}

static void revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                   void *context)
{
    change(s, do_revert, id, done, context);
}

static unsigned snapshots(struct store *s, struct store_snapshot *out, unsigned most)
{
    struct zvol *z = container_of(s, struct zvol, store);
    unsigned n = 0;
    vec_for_each(&z->snapshots, it) {
        if (n < most)
            out[n] = (struct store_snapshot){it->id, zpool_volume_size(it->volume), 0};
        n++;
    }
    return n < most ? n : most;
}

/* Opening and closing. */

static void close_zvol(struct store *s)
{
    struct zvol *z = container_of(s, struct zvol, store);
    vec_for_each(&z->snapshots, it)
        zpool_volume_close(it->volume);
    vec_done(&z->snapshots);
    if (z->volume)
        zpool_volume_close(z->volume);
    free(z->name);
    free(z);
}

static const struct store_ops zvol_ops = {
    .name = "zvol",
    .submit = submit,
    .grow = grow,
    .snapshot = snapshot,
    .snapshot_drop = snapshot_drop,
    .revert = revert,
    .snapshots = snapshots,
    .close = close_zvol,
};

static int open_snapshots(struct zvol *z, struct err *e)
{
    struct zpool_volume_info *list;
    size_t n;
    _cleanup_free_ char *prefix = mem_printf("%s@" SNAPSHOT, z->name);
    if (zpool_volume_list(z->pool, &list, &n, e) < 0)
        return -1;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        if (list[i].snapshot && str_starts_with(list[i].name, prefix))
            status = open_snapshot(z, strtoull(list[i].name + strlen(prefix), NULL, 10), e);
    }
    free(list);
    return status;
}

/* The volume, made if there is none, and as large as it is to be. */
static struct zpool_volume *open_volume(const struct pool_zvol_options *o, struct err *e)
{
    struct err why = {0};
    struct zpool_volume_spec spec = o->spec;
    uint32_t block = spec.block_size ? spec.block_size : 16384;
    spec.size = round_up(spec.size, block);
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
    struct zpool_volume *v = open_volume(o, e);
    if (!v)
        return NULL;
    struct zvol *z = NEW(struct zvol);
    z->store = (struct store){
        .ops = &zvol_ops,
        .size = zpool_volume_size(v),
        .block_size = o->block_size,
        .volatile_cache = true,
        .atomic = o->block_size,
    };
    z->zvols = o->zvols;
    z->pool = o->pool;
    z->volume = v;
    z->name = mem_strdup(o->name);
    z->nearly_full = o->nearly_full;
    z->run = o->run;
    z->engine = o->engine;
    if (open_snapshots(z, e) < 0) {
        close_zvol(&z->store);
        return NULL;
    }
    return &z->store;
}

/*
 * Growth and snapshots of a volume: they change the pool, so they go from the loop to a thread that may wait,
 * and there to where the pool may be changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "pool/zvol_impl.h"

enum { SNAPSHOTS_MAX = 1024 };
#define SNAPSHOT "orlop-"

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

/* What needs no more than the volume itself is done where it is. */
static int run_here(void *context)
{
    struct change *c = context;
    return -c->fn(c);
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

static void change_by(struct store *s, int (*run)(void *context), int (*fn)(struct change *c),
                      uint64_t number, void (*done)(void *context, int error), void *context)
{
    struct change *c = NEW(struct change);
    c->z = container_of(s, struct zvol, store);
    c->fn = fn;
    c->number = number;
    c->done = done;
    c->context = context;
    c->request = (struct io_request){.op = IO_CALL, .call = run, .context = c, .done = change_done};
    io_submit(c->z->zvols->loop, &c->request);
}

static void change(struct store *s, int (*fn)(struct change *c), uint64_t number,
                   void (*done)(void *context, int error), void *context)
{
    change_by(s, run_change, fn, number, done, context);
}

static int do_stamp(struct change *c)
{
    struct err e = {0};
    if (!c->z->volume)
        return EIO;
    if (zpool_volume_set_mark(c->z->volume, c->number, &e) < 0)
        return errno_of(&e);
    c->z->mark = c->number;
    return 0;
}

void pool_zvol_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                     void *context)
{
    change_by(s, run_here, do_stamp, generation, done, context);
}

static int do_grow(struct change *c)
{
    struct err e = {0};
    struct zpool_volume *v = c->z->volume;
    if (!v)
        return EIO;
    uint64_t size = pool_zvol_round(c->number, zpool_volume_block_size(v));
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

/*
 * A revert has several steps, and a crash between two of them must leave neither the old state nor the new in doubt: all
 * replicas of a volume revert at once, and one that is in doubt counts for nothing. So what is to be done is noted on
 * the volume first, where a rollback does not reach; opening finds the note and does it, from the beginning.
 */
#define REVERTING "io.orlop:reverting"

struct reverting {
    unsigned long long id, mark, size;
};

static bool read_reverting(struct zpool *p, const char *name, struct reverting *ret)
{
    char text[96];
    zpool_volume_read_note(p, name, REVERTING, text, sizeof(text));
    return sscanf(text, "%llu %llu %llu", &ret->id, &ret->mark, &ret->size) == 3;
}

/* Snapshots that were taken after this one. */
static int drop_later(struct zpool *p, const char *name, unsigned long long id, struct err *e)
{
    struct zpool_volume_info *list;
    size_t n;
    _cleanup_free_ char *prefix = mem_printf("%s@" SNAPSHOT, name),
                        *kept = mem_printf("%s%llu", prefix, id);
    if (zpool_volume_list(p, &list, &n, e) < 0)
        return -1;
    int status = 0;
    bool later = false;
    for (size_t i = 0; i < n && status == 0; i++) {
        if (later && str_starts_with(list[i].name, prefix))
            status = zpool_volume_destroy(p, list[i].name, e);
        later |= str_eq(list[i].name, kept);
    }
    free(list);
    return status;
}

int pool_zvol_finish_revert(struct zpool *p, const char *name, struct err *e)
{
    struct reverting r;
    if (!read_reverting(p, name, &r))
        return 0;
    _cleanup_free_ char *path = mem_printf("%s@" SNAPSHOT "%llu", name, r.id);
    if (drop_later(p, name, r.id, e) < 0 || zpool_rollback(p, path, e) < 0)
        return -1;
    struct zpool_volume *v = zpool_volume_open(p, name, false, e);
    if (!v)
        return -1;
    int status = zpool_volume_size(v) < r.size ? zpool_volume_grow(v, r.size, e) : 0;
    if (status == 0)
        status = zpool_volume_set_mark(v, r.mark, e);
    zpool_volume_close(v);
    if (status < 0 || zpool_sync(p, e) < 0)
        return -1;
    return zpool_volume_note(p, name, REVERTING, "", e);
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
    _cleanup_free_ char *note =
        mem_printf("%llu %llu %llu", (unsigned long long)c->number, (unsigned long long)z->mark,
                   (unsigned long long)z->store.size);
    if (zpool_volume_note(z->pool, z->name, REVERTING, note, &e) < 0)
        return errno_of(&e);
    while (z->snapshots.len > at + 1)
        zpool_volume_close(vec_pop(&z->snapshots).volume);
    zpool_volume_close(z->volume);
    int error = pool_zvol_finish_revert(z->pool, z->name, &e) < 0 ? errno_of(&e) : 0;
    z->volume = zpool_volume_open(z->pool, z->name, false, &e);
    return z->volume ? error : EIO;
}

void pool_zvol_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                    void *context)
{
    change(s, do_grow, size, done, context);
}

void pool_zvol_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                        void *context)
{
    change(s, do_snapshot, id, done, context);
}

void pool_zvol_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                             void *context)
{
    change(s, do_drop, id, done, context);
}

void pool_zvol_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                      void *context)
{
    change(s, do_revert, id, done, context);
}

unsigned pool_zvol_snapshots(struct store *s, struct store_snapshot *out, unsigned most)
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

int pool_zvol_open_snapshots(struct zvol *z, struct err *e)
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

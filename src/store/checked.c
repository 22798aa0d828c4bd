/*
 * A file with checksums: dispatch, flushes, growing and opening.
 *
 *     flush with checksums ──> waiting ── none under way ──┬──> the file is synced ──────────┬──> done()
 *                                                          └──> changed pages are, as copies ─┘
 */
#include <errno.h>
#include <sys/stat.h>

#include "store/checked_impl.h"

/* Flushes: with the checksums. */

static void flush_start(struct checked *c);

static void flush_part(struct checked *c, int error)
{
    c->flush_error = c->flush_error ? c->flush_error : error;
    if (--c->flushes)
        return;
    struct list_link served, *l;
    int result = c->flush_error;
    list_init(&served);
    list_splice(&served, &c->flush_served);
    if (!list_empty(&c->flush_waiting))
        flush_start(c);
    while ((l = list_take(&served)))
        store_done(container_of(l, struct store_io, link), result);
}

static void file_flushed(struct store_io *io, int error)
{
    flush_part(container_of(io, struct checked, flush), error);
}

static void sums_flushed(void *context, int error)
{
    flush_part(context, error);
}

static void flush_start(struct checked *c)
{
    list_splice(&c->flush_served, &c->flush_waiting);
    c->flushes = 2;
    c->flush_error = 0;
    c->flush = (struct store_io){.op = STORE_FLUSH, .done = file_flushed};
    store_submit(c->file, &c->flush);
    sums_flush(c->sums, sums_flushed, c);
}

/* The store. */

static void submit(struct store *s, struct store_io *io)
{
    struct checked *c = checked_of(s);
    if (io->op == STORE_FLUSH && io->sums) {
        list_push(&c->flush_waiting, &io->link);
        if (!c->flushes)
            flush_start(c);
        return;
    }
    if (io->op == STORE_FLUSH || (io->op == STORE_READ && io->unverified)) {
        io->store = c->file;
        c->file->ops->submit(c->file, io);
        return;
    }
    checked_run(c, io);
}

static void set_error(void *context, int error)
{
    *(int *)context = error;
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct checked *c = checked_of(s);
    int error = 0;
    if (c->file->size < size)
        store_grow(c->file, size, set_error, &error);
    if (!error)
        error = -sums_grow(c->sums, size);
    if (!error)
        s->size = size;
    done(context, error);
}

static enum store_extent extent(struct store *s, uint64_t offset, uint64_t *ret_length)
{
    struct store *file = checked_of(s)->file;
    enum store_extent kind = file->ops->extent(file, offset, ret_length);
    if (*ret_length > s->size - offset)
        *ret_length = s->size - offset;
    return kind;
}

static uint64_t used(struct store *s)
{
    struct checked *c = checked_of(s);
    struct stat st;
    uint64_t sums = fstat(c->sums->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    return store_used(c->file) + sums;
}

static void close_checked(struct store *s)
{
    struct checked *c = checked_of(s);
    checked_free_ops(c);
    sums_close(c->sums);
    if (c->file)
        store_close(c->file);
    free(c);
}

static const struct store_ops checked_ops = {
    .name = "file",
    .submit = submit,
    .grow = grow,
    .extent = extent,
    .used = used,
    .close = close_checked,
};

struct sums_file *checked_sums(struct store *s)
{
    return s->ops == &checked_ops ? checked_of(s)->sums : NULL;
}

struct store *checked_file(struct store *s)
{
    return s->ops == &checked_ops ? checked_of(s)->file : s;
}

int checked_carry(struct store *s, uint64_t first, unsigned n, uint32_t *sums, bool put,
                  struct sums_wait *wait)
{
    int error = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t granule = first + i;
        struct sums_page *p = sums_get(checked_of(s)->sums, granule / SUMS_PER_PAGE, wait, &error);
        if (!p)
            return error ? error : -1;
        uint32_t *stored = &p->sums[granule % SUMS_PER_PAGE];
        if (put)
            *stored = sums[i];
        else
            sums[i] = *stored;
        if (put)
            sums_changed(p);
    }
    return 0;
}

/* Opening. */

static int check_whole(const struct checked *c, const struct checked_options *co, struct err *e)
{
    const struct sums_header *h = &c->sums->header;
    struct stat st;
    if (h->layer != co->layer || (!co->any_identity && !uuid_eq(&h->identity, &co->identity)))
        return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s belongs to another store, or layer",
                       co->sums);
    if (stat(co->path, &st) < 0)
        return errno == ENOENT
                   ? err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s is missing", co->path)
                   : err_errno(e, errno, "cannot look at %s", co->path);
    if ((uint64_t)st.st_size < h->size)
        return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s is damaged: it has %lld bytes of %llu",
                       co->path, (long long)st.st_size, (unsigned long long)h->size);
    return 0;
}

struct store *checked_open(const struct checked_options *co, const struct store_options *o,
                           struct err *e)
{
    struct checked *c = NEW(struct checked);
    struct store_options below = *o;
    below.size = 0;
    below.existing = true;
    c->loop = o->loop;
    list_init(&c->active);
    list_init(&c->waiting);
    list_init(&c->free_ops);
    list_init(&c->flush_waiting);
    list_init(&c->flush_served);
    c->sums = sums_open(co->cache, co->sums, o->read_only, e);
    if (!c->sums || check_whole(c, co, e) < 0 ||
        !(c->file = store_file_open(co->name, &below, e))) {
        close_checked(&c->store);
        return NULL;
    }
    c->store = *c->file;
    c->store.ops = &checked_ops;
    c->store.size = c->sums->header.size;
    c->store.checked = true;
    return &c->store;
}

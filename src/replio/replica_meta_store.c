/*
 * Metadata in a store, whose I/Os have no order of their own:
 *
 *     write ──> waits for those before it that it overlaps ──> store ──> done
 *     sync  ──> waits for all writes before it ──────────────> flush ──> done
 *     log_write ──> as a write, with fua ────────────────────> store ──> done
 *
 * It is read from an image of the store, which the caller has made: reading would wait.
 */
#include "repl/busy.h"
#include "replio/replica_impl.h"
#include "replio/replica_meta.h"

/* A write, on `writes` from the call until it is done. */
struct write {
    struct store_io io;
    struct iovec iov;
    struct list_link link;
    struct meta_store *store;
    bool started, log;
    uint8_t data[];
};

struct meta_store {
    struct replica_meta meta;
    struct store *store;
    const uint8_t *image;
    size_t image_size;
    struct list_link writes; /* in the order of their calls */
    unsigned unsynced;       /* writes under way that a sync waits for */
    bool sync_waits;
    struct store_io sync;
};

static struct meta_store *store_of(struct replica_meta *m)
{
    return container_of(m, struct meta_store, meta);
}

static void read_image(struct replica_meta *m, uint64_t offset, void *data, size_t size)
{
    const struct meta_store *s = store_of(m);
    size_t there = offset < s->image_size ? s->image_size - offset : 0;
    size_t n = size < there ? size : there;
    if (n)
        memcpy(data, s->image + offset, n);
    memset((uint8_t *)data + n, 0, size - n);
}

static void image_read(struct replica_meta *m)
{
    store_of(m)->image = NULL;
    store_of(m)->image_size = 0;
}

static void synced(struct store_io *io, int error)
{
    struct meta_store *s = container_of(io, struct meta_store, sync);
    s->meta.under_way--;
    replica_meta_synced(&s->meta, error);
}

static void begin_sync(struct meta_store *s)
{
    s->sync_waits = false;
    s->sync = (struct store_io){.op = STORE_FLUSH, .done = synced};
    store_submit(s->store, &s->sync);
}

static bool must_wait(const struct meta_store *s, const struct write *w)
{
    list_for_each(&s->writes, before, struct write, link) {
        if (before == w)
            return false;
        if (repl_overlap(before->io.offset, before->io.length, w->io.offset, w->io.length))
            return true;
    }
    return false;
}

static void begin_writes(struct meta_store *s)
{
    bool again = true;
    while (again) { /* one may be done before submit returns, and change the list */
        again = false;
        list_for_each(&s->writes, w, struct write, link) {
            if (w->started || must_wait(s, w))
                continue;
            w->started = again = true;
            store_submit(s->store, &w->io);
            break;
        }
    }
}

static void written(struct store_io *io, int error)
{
    struct write *w = container_of(io, struct write, io);
    struct meta_store *s = w->store;
    bool log = w->log;
    list_unlink(&w->link);
    free(w);
    s->meta.under_way--;
    if (error)
        s->meta.error = error;
    begin_writes(s);
    if (log) {
        replica_meta_logged(&s->meta, error);
        return;
    }
    if (--s->unsynced == 0 && s->sync_waits)
        begin_sync(s);
    else
        turn_soon(s->meta.replica); /* who is being freed waits for it */
}

static void add_write(struct meta_store *s, uint64_t offset, const void *data, size_t size,
                      bool log)
{
    struct write *w = mem_zalloc(sizeof(*w) + size);
    memcpy(w->data, data, size);
    w->iov = (struct iovec){w->data, size};
    w->io = (struct store_io){.op = STORE_WRITE,
                              .fua = log,
                              .offset = offset,
                              .length = size,
                              .iov = &w->iov,
                              .iovs = 1,
                              .done = written};
    w->store = s;
    w->log = log;
    s->meta.under_way++;
    s->unsynced += !log;
    list_push(&s->writes, &w->link);
    begin_writes(s);
}

static void write_store(struct replica_meta *m, uint64_t offset, const void *data, size_t size)
{
    add_write(store_of(m), offset, data, size, false);
}

static int write_log(struct replica_meta *m, uint64_t offset, const void *data, size_t size)
{
    if (m->error)
        return -m->error;
    add_write(store_of(m), offset, data, size, true);
    return 0;
}

static int sync_store(struct replica_meta *m)
{
    struct meta_store *s = store_of(m);
    if (m->error)
        return -m->error;
    m->under_way++;
    s->sync_waits = true;
    if (!s->unsynced)
        begin_sync(s);
    return 0;
}

static void close_store(struct replica_meta *m)
{
    free(store_of(m));
}

static const struct replica_meta_ops meta_store_ops = {
    .read = read_image,
    .write = write_store,
    .sync = sync_store,
    .log_write = write_log,
    .loaded = image_read,
    .close = close_store,
};

struct replica_meta *replica_meta_store(struct replio_replica *r, struct store *store,
                                        const void *image, size_t image_size)
{
    struct meta_store *s = NEW(struct meta_store);
    s->meta = (struct replica_meta){.ops = &meta_store_ops, .replica = r};
    s->store = store;
    s->image = image;
    s->image_size = image_size;
    list_init(&s->writes);
    return &s->meta;
}

/*
 * Reads, writes and flushes of a file with checksums.
 *
 *     read      whole granules, into the client's memory and the edges' ──> compare ──┬──> done()
 *                     ^── once more, when nobody writes there ──────────── differs ────┘ twice: EBADMSG
 *     write     the granules at the edges, if only parts of them are written: read, compare ──> write ──> set ──> done()
 *     unmap, zero   the same
 *     resum     64 KiB at a time: read ──> set
 *
 * Two that change the same granule never run at once: the last one's checksum would belong to the first one's data. A
 * read runs at any time; where it differs it may have met a write, so it counts only when it is repeated as one
 * that nobody else runs with.
 *
 * In the steady state a page of checksums is in memory and the file works at once, so an I/O is done when submit()
 * returns.
 */
#include "store/checked.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/le.h"

enum { GRANULE = STORE_GRANULE, CHUNK = IO_LARGE };

enum step {
    READ_DATA,
    READ_CHECK,
    EDGE_READ, /* of the first or the last granule */
    EDGE_CHECK,
    DATA,
    SET,
    RESUM_READ,
    RESUM_SET,
};

struct checked {
    struct store store;
    struct store *file;
    struct sums_file *sums;
    struct io_loop *loop;
    struct list_link active, waiting, free_ops; /* those that change something, or must run alone */
    struct list_link flush_waiting, flush_served;
    struct store_io flush;
    unsigned flushes;
    int flush_error;
};

/* Where in a list of vectors. */
struct cursor {
    const struct iovec *iov;
    unsigned n;
    size_t at;
};

struct op {
    struct checked *c;
    struct list_link link;
    struct store_io *of;
    enum step step;
    int error;
    bool tracked, alone; /* on the list of the active; a read for the second time */
    bool submitting, ended;
    bool edge[2];         /* the first, the last granule is written in part */
    unsigned edge_at;     /* the one that is being read */
    uint64_t first, last; /* granules */
    uint64_t at;          /* the granule whose checksum is next */
    struct cursor cursor; /* of that granule's bytes */
    struct sums_wait wait;
    struct store_io sub;
    struct iovec one, *iov;
    unsigned iov_cap;
    struct io_buf *buf;
    uint8_t *edges; /* two granules; owned */
};

static struct checked *checked_of(struct store *s)
{
    return container_of(s, struct checked, store);
}

/* How many bytes of a granule there are. */
static uint64_t granule_length(const struct checked *c, uint64_t granule)
{
    uint64_t left = c->store.size - granule * GRANULE;
    return left < GRANULE ? left : GRANULE;
}

static uint8_t *edge_of(const struct op *op, unsigned which)
{
    return op->edges + (size_t)which * GRANULE;
}

/* Checksums. */

static void skip(struct cursor *k, uint64_t bytes)
{
    while (k->n && bytes >= k->iov->iov_len - k->at) {
        bytes -= k->iov->iov_len - k->at;
        k->iov++;
        k->n--;
        k->at = 0;
    }
    if (k->n)
        k->at += bytes;
}

/* Of the next n bytes. */
static uint32_t sum_next(struct cursor *k, size_t n)
{
    uint32_t crc = 0;
    for (size_t left = n; left && k->n;) {
        size_t has = k->iov->iov_len - k->at, part = has < left ? has : left;
        crc = crc_32c_more(crc, (const uint8_t *)k->iov->iov_base + k->at, part);
        left -= part;
        k->at += part;
        if (k->at == k->iov->iov_len) {
            k->iov++;
            k->n--;
            k->at = 0;
        }
    }
    return sums_from_crc(crc, n);
}

/* What a granule's checksum is to be. */
static uint32_t sum_wanted(struct op *op, uint64_t granule)
{
    size_t n = granule_length(op->c, granule);
    if (op->edge[0] && granule == op->first)
        return sums_of(edge_of(op, 0), n);
    if (op->edge[1] && granule == op->last)
        return sums_of(edge_of(op, 1), n);
    bool zero = op->of->op == STORE_UNMAP || op->of->op == STORE_ZERO;
    return zero ? 0 : sum_next(&op->cursor, n);
}

/* From op->at up to `last`, each compared or set. True: over; false: a page is on its way. */
static bool walk_sums(struct op *op, uint64_t last, bool set)
{
    while (op->at <= last) {
        struct sums_page *p = sums_get(op->c->sums, op->at / SUMS_PER_PAGE, &op->wait, &op->error);
        if (!p)
            return op->error != 0;
        uint64_t end = (op->at / SUMS_PER_PAGE + 1) * SUMS_PER_PAGE;
        for (; op->at < end && op->at <= last; op->at++) {
            uint32_t *stored = &p->sums[op->at % SUMS_PER_PAGE],
                     sum = htole32(sum_wanted(op, op->at));
            if (set) {
                *stored = sum;
            } else if (*stored != sum) {
                op->error = EBADMSG;
                return true;
            }
        }
        if (set)
            sums_changed(p);
    }
    return true;
}

/* Whole pages of zeroes that are not in memory are not brought there. */
static bool clear_sums(struct op *op)
{
    uint64_t end = op->edge[1] ? op->last : op->last + 1;
    while (!op->error && op->at <= op->last) {
        uint64_t page = op->at / SUMS_PER_PAGE, n = 0;
        while (op->at % SUMS_PER_PAGE == 0 && (page + n + 1) * SUMS_PER_PAGE <= end &&
               !(n == 0 && op->edge[0] && op->at == op->first) &&
               !sums_cached(op->c->sums, page + n))
            n++;
        if (n) {
            op->error = -sums_clear(op->c->sums, page, n);
            op->at += n * SUMS_PER_PAGE;
            continue;
        }
        uint64_t last = (page + 1) * SUMS_PER_PAGE - 1;
        if (!walk_sums(op, last < op->last ? last : op->last, true))
            return false;
    }
    return true;
}

/* Below. */

static void op_run(struct op *op);

static void sub_done(struct store_io *io, int error)
{
    struct op *op = container_of(io, struct op, sub);
    op->error = error;
    if (op->submitting)
        op->ended = true;
    else
        op_run(op);
}

static void page_ready(struct sums_wait *wait)
{
    op_run(container_of(wait, struct op, wait));
}

/* True: it is done, or has failed, already. */
static bool sub(struct op *op, enum store_op kind, uint64_t offset, uint64_t length,
                struct iovec *iov, unsigned iovs)
{
    struct store *file = op->c->file;
    op->sub.op = kind;
    op->sub.offset = offset;
    op->sub.length = length;
    op->sub.iov = iov;
    op->sub.iovs = iovs;
    op->sub.store = file;
    op->submitting = true;
    op->ended = false;
    file->ops->submit(file, &op->sub);
    op->submitting = false;
    return op->ended;
}

static void need_edges(struct op *op)
{
    if (!op->edges && posix_memalign((void **)&op->edges, GRANULE, 2 * GRANULE) != 0)
        abort();
}

/* Reads. */

static bool read_data(struct op *op)
{
    struct store_io *io = op->of;
    uint64_t from = op->first * GRANULE, before = io->offset - from,
             to = op->last * GRANULE + granule_length(op->c, op->last),
             after = to - io->offset - io->length;
    struct iovec *iov = io->iov;
    unsigned n = io->iovs;
    if (before || after) {
        need_edges(op);
        if (op->iov_cap < n + 2) {
            op->iov_cap = n + 2;
            op->iov = mem_realloc_array(op->iov, op->iov_cap, sizeof(*op->iov));
        }
        iov = op->iov;
        n = 0;
        if (before)
            iov[n++] = (struct iovec){edge_of(op, 0), before};
        uint64_t left = io->length;
        for (unsigned i = 0; i < io->iovs && left; i++) {
            size_t part = io->iov[i].iov_len < left ? io->iov[i].iov_len : left;
            iov[n++] = (struct iovec){io->iov[i].iov_base, part};
            left -= part;
        }
        if (after)
            iov[n++] = (struct iovec){edge_of(op, 1), after};
    }
    op->at = op->first;
    op->cursor = (struct cursor){iov, n, 0};
    return sub(op, STORE_READ, from, to - from, iov, n);
}

/* Writes. */

static void find_edges(struct op *op)
{
    uint64_t end = op->of->offset + op->of->length,
             last_end = op->last * GRANULE + granule_length(op->c, op->last);
    bool cut = end != last_end;
    op->edge[0] = op->of->offset % GRANULE || (op->first == op->last && cut);
    op->edge[1] = op->first != op->last && cut;
    op->edge_at = op->edge[0] ? 0 : 1;
    op->step = op->edge[0] || op->edge[1] ? EDGE_READ : DATA;
    if (op->step == EDGE_READ)
        need_edges(op);
}

static uint64_t edge_granule(const struct op *op)
{
    return op->edge_at ? op->last : op->first;
}

static bool edge_read(struct op *op)
{
    uint64_t granule = edge_granule(op), n = granule_length(op->c, granule);
    op->one = (struct iovec){edge_of(op, op->edge_at), n};
    return sub(op, STORE_READ, granule * GRANULE, n, &op->one, 1);
}

/* The new content of an edge, from what was there and what is written. */
static void overlay(struct op *op)
{
    const struct store_io *io = op->of;
    uint64_t start = edge_granule(op) * GRANULE, end = io->offset + io->length,
             from = io->offset > start ? io->offset : start,
             to = end < start + GRANULE ? end : start + GRANULE;
    uint8_t *at = edge_of(op, op->edge_at) + (from - start);
    if (io->op != STORE_WRITE) {
        memset(at, 0, to - from);
        return;
    }
    struct cursor k = {io->iov, io->iovs, 0};
    skip(&k, from - io->offset);
    for (uint64_t left = to - from; left && k.n;) {
        size_t has = k.iov->iov_len - k.at, part = has < left ? has : left;
        memcpy(at, (const uint8_t *)k.iov->iov_base + k.at, part);
        at += part;
        left -= part;
        skip(&k, part);
    }
}

static bool edge_check(struct op *op)
{
    uint64_t granule = edge_granule(op);
    if (!op->of->unverified) {
        struct sums_page *p = sums_get(op->c->sums, granule / SUMS_PER_PAGE, &op->wait, &op->error);
        if (!p)
            return op->error != 0;
        uint32_t sum = sums_of(edge_of(op, op->edge_at), granule_length(op->c, granule));
        if (le32toh(p->sums[granule % SUMS_PER_PAGE]) != sum) {
            op->error = EBADMSG;
            return true;
        }
    }
    overlay(op);
    op->step = !op->edge_at && op->edge[1] ? EDGE_READ : DATA;
    op->edge_at = 1;
    return true;
}

static bool write_data(struct op *op)
{
    const struct store_io *io = op->of;
    op->at = op->first;
    op->cursor = (struct cursor){io->iov, io->iovs, 0};
    if (op->edge[0]) /* whole granules follow */
        skip(&op->cursor, (op->first + 1) * GRANULE - io->offset);
    op->sub.fua = io->fua;
    return sub(op, io->op, io->offset, io->length, io->iov, io->iovs);
}

/* Checksums made anew. */

static uint64_t chunk_last(const struct op *op)
{
    uint64_t last = op->at + CHUNK / GRANULE - 1;
    return last < op->last ? last : op->last;
}

static bool resum_read(struct op *op)
{
    uint64_t last = chunk_last(op), from = op->at * GRANULE;
    if (!op->buf)
        op->buf = io_buf_new(io_loop_pool(op->c->loop), CHUNK);
    op->one = (struct iovec){op->buf->data, last * GRANULE + granule_length(op->c, last) - from};
    op->cursor = (struct cursor){&op->one, 1, 0};
    op->edge_at = (unsigned)(last - op->at); /* granules of this chunk but one */
    op->first = op->at;
    return sub(op, STORE_READ, from, op->one.iov_len, &op->one, 1);
}

/* Life. */

static bool conflict(const struct op *a, const struct op *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static bool must_wait(const struct checked *c, const struct op *op)
{
    list_for_each(&c->active, it, struct op, link)
        if (conflict(it, op))
            return true;
    list_for_each(&c->waiting, it, struct op, link) {
        if (it == op)
            break;
        if (conflict(it, op))
            return true;
    }
    return false;
}

static void wake_waiting(struct checked *c)
{
    for (bool again = true; again;) {
        again = false;
        list_for_each(&c->waiting, it, struct op, link) {
            if (must_wait(c, it))
                continue;
            list_unlink(&it->link);
            list_push(&c->active, &it->link);
            op_run(it);
            again = true;
            break;
        }
    }
}

/* True: its turn has come. */
static bool track(struct op *op)
{
    struct checked *c = op->c;
    op->tracked = true;
    bool wait = must_wait(c, op);
    list_push(wait ? &c->waiting : &c->active, &op->link);
    return !wait;
}

static void op_end(struct op *op)
{
    struct checked *c = op->c;
    struct store_io *of = op->of;
    int error = op->error;
    if (op->tracked)
        list_unlink(&op->link);
    io_buf_unref(op->buf);
    op->buf = NULL;
    list_push_front(&c->free_ops, &op->link);
    if (op->tracked && !list_empty(&c->waiting))
        wake_waiting(c);
    store_done(of, error);
}

/* The next step; false: it is on its way. */
static bool op_step(struct op *op)
{
    switch (op->step) {
    case READ_DATA:
        op->step = READ_CHECK;
        return read_data(op);
    case READ_CHECK:
        return walk_sums(op, op->last, false);
    case EDGE_READ:
        op->step = EDGE_CHECK;
        return edge_read(op);
    case EDGE_CHECK:
        return edge_check(op);
    case DATA:
        op->step = SET;
        return write_data(op);
    case SET:
        return op->of->op == STORE_WRITE ? walk_sums(op, op->last, true) : clear_sums(op);
    case RESUM_READ:
        op->step = RESUM_SET;
        return resum_read(op);
    default:
        if (!walk_sums(op, op->first + op->edge_at, true))
            return false;
        op->step = RESUM_READ;
        return true;
    }
}

static bool op_over(const struct op *op)
{
    if (op->error)
        return true;
    return (op->step == READ_CHECK || op->step == SET || op->step == RESUM_READ) &&
           op->at > op->last;
}

static void op_run(struct op *op)
{
    for (;;) {
        while (!op_over(op))
            if (!op_step(op))
                return;
        if (op->error != EBADMSG || op->step != READ_CHECK || op->alone)
            break;
        /* Perhaps it met a write. */
        op->alone = true;
        op->error = 0;
        op->step = READ_DATA;
        if (!track(op))
            return;
    }
    op_end(op);
}

static struct op *op_take(struct checked *c)
{
    struct op *op = list_first(&c->free_ops, struct op, link);
    if (op) {
        list_unlink(&op->link);
    } else {
        op = NEW(struct op);
        op->c = c;
        list_init(&op->link);
        op->sub.done = sub_done;
        op->wait.ready = page_ready;
    }
    op->error = 0;
    op->sub.fua = false;
    op->tracked = op->alone = op->edge[0] = op->edge[1] = false;
    return op;
}

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
    struct op *op = op_take(c);
    op->of = io;
    op->first = op->at = io->offset / GRANULE;
    op->last = (io->offset + io->length - 1) / GRANULE;
    if (io->op == STORE_READ) {
        int error; /* loaded together with the data */
        op->step = READ_DATA;
        sums_get(c->sums, op->first / SUMS_PER_PAGE, NULL, &error);
        op_run(op);
        return;
    }
    if (io->op == STORE_RESUM)
        op->step = RESUM_READ;
    else
        find_edges(op);
    if (track(op))
        op_run(op);
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
    list_for_each_safe(&c->free_ops, op, struct op, link) {
        free(op->iov);
        free(op->edges);
        free(op);
    }
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
    if (c->sums && check_whole(c, co, e) == 0)
        c->file = store_file_open(co->name, &below, e);
    if (!c->file) {
        close_checked(&c->store);
        return NULL;
    }
    c->store = *c->file;
    c->store.ops = &checked_ops;
    c->store.size = c->sums->header.size;
    c->store.checked = true;
    return &c->store;
}

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
#include <errno.h>

#include "base/crc.h"
#include "store/checked_impl.h"

enum { GRANULE = STORE_GRANULE, CHUNK = IO_LARGE };

enum step {
    READ_DATA,
    READ_CHECK,
    EDGES,
    EDGE_READ, /* of the first or the last granule */
    EDGE_CHECK,
    DATA,
    SET,
    RESUM_READ,
    RESUM_SET,
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
    size_t left = n;
    while (left && k->n) {
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
    return sums_from_crc(crc, n - left); /* fewer: the store grew meanwhile, by zeroes */
}

/* What a granule's checksum is to be. */
static uint32_t sum_wanted(struct op *op, uint64_t granule)
{
    if (op->edge[0] && granule == op->first)
        return sums_of(edge_of(op, 0), GRANULE);
    if (op->edge[1] && granule == op->last)
        return sums_of(edge_of(op, 1), GRANULE);
    bool zero = op->of->op == STORE_UNMAP || op->of->op == STORE_ZERO;
    return zero ? 0 : sum_next(&op->cursor, granule_length(op->c, granule));
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
    if (!op->edges && posix_memalign((void **)&op->edges, GRANULE, (size_t)2 * GRANULE) != 0)
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

/* When its turn has come: the store may have grown meanwhile. */
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
    memset(edge_of(op, op->edge_at) + n, 0, GRANULE - n);
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
        uint32_t sum = sums_of(edge_of(op, op->edge_at), GRANULE);
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
    case EDGES:
        find_edges(op);
        return true;
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

void checked_run(struct checked *c, struct store_io *io)
{
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
    op->step = io->op == STORE_RESUM ? RESUM_READ : EDGES;
    if (track(op))
        op_run(op);
}

void checked_free_ops(struct checked *c)
{
    list_for_each_safe(&c->free_ops, op, struct op, link) {
        free(op->iov);
        free(op->edges);
        free(op);
    }
}

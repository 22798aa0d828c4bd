/*
 * Reads, writes and copies in a chain.
 *
 *     read    for each run of granules that one layer has: read there
 *     write   ─┬─ whole granules, or parts of some that the head has: write, set bits
 *              └─ parts of others: copy them up, write, set bits       exclusive
 *     unmap, zero   the same; the bit of a hole hides what is below
 *     resum   for each run of granules that the head has: there, then copied down if it is being merged    exclusive
 *     copy    64 KiB at a time: read above, write below, with its checksums as they are stored    exclusive
 *
 * Two that change the same granule, one of them exclusive, never run at once: otherwise a copy could bring back what
 * a write in between had replaced. Others have no order, as with any store.
 */
#include <errno.h>
#include <string.h>

#include "store/chain.h"

enum { CHUNK = IO_LARGE };

enum {
    READ_NEXT,
    READ_PART,
    UP_READ,
    UP_WRITE,
    DATA,
    DATA_DONE,
    RESUM_NEXT,
    COPY_READ,
    COPY_SUMS,
    COPY_WRITE,
    COPY_PUT,
    COPY_DONE
};

static void op_run(struct chain_op *op);

/* Below. */

static void sub_done(struct store_io *io, int error)
{
    struct chain_op *op = container_of(io, struct chain_op, sub);
    op->error = error;
    if (op->submitting)
        op->ended = true;
    else
        op_run(op);
}

/* True: it is done, or has failed, already. */
static bool sub(struct chain_op *op, struct store *file, enum store_op kind, uint64_t offset,
                uint64_t length, struct iovec *iov, unsigned iovs)
{
    op->sub.op = kind;
    op->sub.offset = offset;
    op->sub.length = length;
    op->sub.iov = iov;
    op->sub.iovs = iovs;
    op->sub.unverified = op->of && op->of->unverified;
    op->submitting = true;
    op->ended = false;
    store_submit(file, &op->sub);
    op->submitting = false;
    return op->ended;
}

/* Memory of the op's own. */
static bool sub_own(struct chain_op *op, struct store *file, enum store_op kind, uint64_t offset,
                    uint64_t length)
{
    op->one = (struct iovec){op->buf->data, length};
    return sub(op, file, kind, offset, length, &op->one, 1);
}

/* Reads. */

static unsigned layer_at(const struct chain *c, unsigned top, uint64_t granule)
{
    while (top && !layer_has(c->layers[top], granule))
        top--;
    return top;
}

unsigned chain_run(const struct chain *c, unsigned top, uint64_t offset, uint64_t end,
                   uint64_t *ret_length)
{
    uint64_t granule = offset / GRANULE;
    unsigned layer = layer_at(c, top, granule);
    do
        granule++;
    while (granule * GRANULE < end && layer_at(c, top, granule) == layer);
    *ret_length = (granule * GRANULE < end ? granule * GRANULE : end) - offset;
    return layer;
}

/* Vectors of a part of the client's memory; how many. */
static unsigned slice(struct chain_op *op, uint64_t skip, uint64_t length)
{
    const struct store_io *io = op->of;
    unsigned n = 0;
    if (op->iov_cap < io->iovs) {
        op->iov_cap = io->iovs;
        op->iov = mem_realloc_array(op->iov, op->iov_cap, sizeof(*op->iov));
    }
    for (unsigned i = 0; i < io->iovs && length; i++) {
        uint64_t has = io->iov[i].iov_len;
        if (skip >= has) {
            skip -= has;
            continue;
        }
        uint64_t part = has - skip < length ? has - skip : length;
        op->iov[n++] = (struct iovec){(uint8_t *)io->iov[i].iov_base + skip, part};
        length -= part;
        skip = 0;
    }
    return n;
}

static bool read_next(struct chain_op *op)
{
    struct chain *c = op->chain;
    uint64_t from = op->of->offset + op->at, end = op->of->offset + op->of->length;
    uint64_t run;
    struct store *file = c->layers[chain_run(c, op->top, from, end, &run)]->file;
    uint64_t there = from < file->size ? file->size - from : 0;
    uint64_t part = there && there < run ? there : run;
    unsigned n = slice(op, op->at, part);
    op->at += part;
    if (there)
        return sub(op, file, STORE_READ, from, part, op->iov, n);
    for (unsigned i = 0; i < n; i++)
        memset(op->iov[i].iov_base, 0, op->iov[i].iov_len);
    return true;
}

/* Writes. */

/* Granules that are written in part and are not in the head. */
static void find_ups(struct chain_op *op)
{
    const struct chain *c = op->chain;
    uint64_t offset = op->of->offset, end = offset + op->of->length;
    op->ups = 0;
    if (offset % GRANULE && !layer_has(chain_head(c), op->first))
        op->up[op->ups++] = op->first;
    if (end % GRANULE && end != c->store.size && !layer_has(chain_head(c), op->last) &&
        !(op->ups && op->last == op->first))
        op->up[op->ups++] = op->last;
}

static uint64_t granule_length(const struct chain *c, uint64_t granule)
{
    uint64_t left = c->store.size - granule * GRANULE;
    return left < GRANULE ? left : GRANULE;
}

static bool up_read(struct chain_op *op)
{
    const struct chain *c = op->chain;
    uint64_t granule = op->up[op->ups - 1], offset = granule * GRANULE;
    struct store *file = c->layers[layer_at(c, c->n - 1, granule)]->file;
    uint64_t there = offset < file->size ? file->size - offset : 0;
    there = there < GRANULE ? there : GRANULE;
    if (!op->buf)
        op->buf = io_buf_new(io_loop_pool(c->loop), IO_SMALL);
    memset(op->buf->data, 0, GRANULE);
    return !there || sub_own(op, file, STORE_READ, offset, there);
}

static bool up_write(struct chain_op *op)
{
    struct chain *c = op->chain;
    uint64_t granule = op->up[--op->ups];
    return sub_own(op, chain_head(c)->file, STORE_WRITE, granule * GRANULE,
                   granule_length(c, granule));
}

/* Copies. */

static bool all_zero(const uint8_t *p, uint64_t n)
{
    return !p[0] && memcmp(p, p + 1, n - 1) == 0;
}

static uint64_t chunk_length(const struct chain_op *op)
{
    return op->end - op->at < CHUNK ? op->end - op->at : CHUNK;
}

static bool copy_read(struct chain_op *op)
{
    struct chain *c = op->chain;
    if (op->buf && op->buf->size < CHUNK) {
        io_buf_unref(op->buf);
        op->buf = NULL;
    }
    if (!op->buf)
        op->buf = io_buf_new(io_loop_pool(c->loop), CHUNK);
    return sub_own(op, checked_file(c->merge.upper->file), STORE_READ, op->at, chunk_length(op));
}

static void page_ready(struct sums_wait *wait)
{
    op_run(container_of(wait, struct chain_op, wait));
}

/* The checksums of what is being copied: whatever was read, they stay as they were. */
static bool carry_sums(struct chain_op *op, bool put, int next)
{
    struct chain *c = op->chain;
    struct store *file = put ? c->merge.lower->file : c->merge.upper->file;
    int status = 0;
    op->wait.ready = page_ready;
    if (c->cache)
        status = checked_carry(file, op->at / GRANULE,
                               (unsigned)((chunk_length(op) + GRANULE - 1) / GRANULE), op->sums,
                               put, &op->wait);
    if (status < 0)
        return false;
    op->error = status;
    op->step = next;
    return true;
}

static bool copy_write(struct chain_op *op)
{
    uint64_t n = chunk_length(op);
    enum store_op kind = all_zero(op->buf->data, n) ? STORE_UNMAP : STORE_WRITE;
    return sub_own(op, checked_file(op->chain->merge.lower->file), kind, op->at, n);
}

static void copy_bits(struct chain_op *op)
{
    uint64_t n = chunk_length(op);
    layer_map_set(op->chain->merge.lower, op->at / GRANULE, (op->at + n - 1) / GRANULE);
    op->at += n;
}

/* Checksums made anew. */

/*
 * The layer that has a granule, if it is one that is written to: the head, or the one below, into which the head is, or
 * was before a crash, being merged. NULL: it is a snapshot's.
 */
static struct layer *written_layer(const struct chain *c, uint64_t granule)
{
    struct layer *head = chain_head(c), *below = c->n > 1 ? c->layers[c->n - 2] : NULL;
    if (layer_has(head, granule))
        return head;
    return below && !below->snapshot && layer_has(below, granule) ? below : NULL;
}

static bool resum_next(struct chain_op *op)
{
    struct chain *c = op->chain;
    while (op->resum <= op->last && !written_layer(c, op->resum))
        op->resum++;
    uint64_t from = op->resum;
    struct layer *l = from <= op->last ? written_layer(c, from) : NULL;
    op->resuming = l;
    op->at = op->end = from * GRANULE;
    op->step = l == chain_head(c) && chain_mirrors(c) ? COPY_READ : RESUM_NEXT;
    if (!l) {
        op->step = COPY_READ; /* over */
        return true;
    }
    while (op->resum <= op->last && written_layer(c, op->resum) == l)
        op->resum++;
    op->end = (op->resum - 1) * GRANULE + granule_length(c, op->resum - 1);
    if (op->end > l->file->size)
        op->end = l->file->size;
    if (op->at >= op->end) /* zeroes beyond its end */
        return true;
    return sub(op, l->file, STORE_RESUM, op->at, op->end - op->at, NULL, 0);
}

/* Life. */

static bool conflict(const struct chain_op *a, const struct chain_op *b)
{
    return (a->exclusive || b->exclusive) && a->first <= b->last && b->first <= a->last;
}

static bool must_wait(const struct chain *c, const struct chain_op *op)
{
    if (!op->exclusive && !c->exclusives)
        return false;
    list_for_each(&c->active, it, struct chain_op, link)
        if (conflict(it, op))
            return true;
    list_for_each(&c->waiting, it, struct chain_op, link) {
        if (it == op)
            break;
        if (conflict(it, op))
            return true;
    }
    return false;
}

static void op_begin(struct chain_op *op)
{
    list_push(&op->chain->active, &op->link);
    if (op->of && op->step == DATA) {
        find_ups(op);
        op->step = op->ups ? UP_READ : DATA;
    }
    op_run(op);
}

static void wake_waiting(struct chain *c)
{
    for (bool again = true; again;) {
        again = false;
        list_for_each(&c->waiting, it, struct chain_op, link) {
            if (must_wait(c, it))
                continue;
            list_unlink(&it->link);
            op_begin(it);
            again = true;
            break;
        }
    }
}

static void op_end(struct chain_op *op)
{
    struct chain *c = op->chain;
    struct store_io *of = op->of;
    int error = op->error;
    list_unlink(&op->link);
    list_push_front(&c->free_ops, &op->link);
    io_buf_unref(op->buf);
    op->buf = NULL;
    c->exclusives -= op->exclusive;
    if (!of)
        chain_merge_copied(c, error);
    else if (!error && of->fua && of->op != STORE_READ)
        chain_flush(c, of);
    else
        store_done(of, error);
    if (!list_empty(&c->waiting))
        wake_waiting(c);
    c->inflight--;
    if (c->change)
        chain_change_go(c);
}

/* The next step; false: it is on its way. */
static bool op_step(struct chain_op *op)
{
    struct chain *c = op->chain;
    switch (op->step) {
    case READ_NEXT:
        return read_next(op);
    case UP_READ:
        op->step = UP_WRITE;
        return up_read(op);
    case UP_WRITE:
        op->step = op->ups > 1 ? UP_READ : DATA;
        return up_write(op);
    case DATA:
        op->step = DATA_DONE;
        return sub(op, chain_head(c)->file, op->of->op, op->of->offset, op->of->length, op->of->iov,
                   op->of->iovs);
    case DATA_DONE:
        layer_map_set(chain_head(c), op->first, op->last);
        op->at = op->first * GRANULE;
        op->end = op->last * GRANULE + granule_length(c, op->last);
        if (!chain_mirrors(c))
            op->at = op->end;
        op->step = COPY_READ;
        return true;
    case RESUM_NEXT:
        return resum_next(op);
    case COPY_READ:
        op->step = op->at == op->end ? RESUM_NEXT : COPY_SUMS;
        return op->at == op->end || copy_read(op);
    case COPY_SUMS:
        return carry_sums(op, false, COPY_WRITE);
    case COPY_WRITE:
        op->step = COPY_PUT;
        return copy_write(op);
    case COPY_PUT:
        return carry_sums(op, true, COPY_DONE);
    default:
        copy_bits(op);
        op->step = COPY_READ;
        return true;
    }
}

static bool op_over(const struct chain_op *op)
{
    if (op->error)
        return true;
    return (op->step == READ_NEXT || op->step == COPY_READ) && op->at == op->end && !op->resuming;
}

static void op_run(struct chain_op *op)
{
    while (!op_over(op))
        if (!op_step(op))
            return;
    op_end(op);
}

static struct chain_op *op_take(struct chain *c)
{
    struct chain_op *op = list_first(&c->free_ops, struct chain_op, link);
    if (op)
        list_unlink(&op->link);
    else
        op = NEW(struct chain_op);
    memset(op, 0, offsetof(struct chain_op, sub)); /* the vectors stay */
    list_init(&op->link);
    op->chain = c;
    op->sub.done = sub_done;
    c->inflight++;
    return op;
}

static void op_start(struct chain_op *op)
{
    struct chain *c = op->chain;
    c->exclusives += op->exclusive;
    if (must_wait(c, op))
        list_push(&c->waiting, &op->link);
    else
        op_begin(op);
}

void chain_submit(struct chain *c, struct store_io *io)
{
    c->ios++;
    if (c->change) {
        list_push(&c->held, &io->link);
        return;
    }
    if (io->op == STORE_FLUSH) {
        chain_flush(c, io);
        return;
    }
    unsigned top = c->n - 1;
    if (io->snapshot && !chain_find(c, io->snapshot, &top)) {
        store_done(io, ENOENT);
        return;
    }
    if (io->op != STORE_READ && c->broken) {
        store_done(io, c->broken);
        return;
    }
    struct chain_op *op = op_take(c);
    op->of = io;
    op->top = top;
    if (io->op == STORE_READ) {
        list_push(&c->active, &op->link);
        op->first = UINT64_MAX; /* changes nothing */
        op->end = io->length;
        op_run(op);
        return;
    }
    op->first = op->resum = io->offset / GRANULE;
    op->last = (io->offset + io->length - 1) / GRANULE;
    op->resuming = io->op == STORE_RESUM;
    op->step = op->resuming ? RESUM_NEXT : DATA;
    if (!op->resuming)
        find_ups(op);
    op->exclusive = op->resuming || op->ups || chain_mirrors(c);
    op_start(op);
}

void chain_copy(struct chain *c, uint64_t from, uint64_t to)
{
    struct chain_op *op = op_take(c);
    op->step = COPY_READ;
    op->exclusive = true;
    op->first = from / GRANULE;
    op->last = (to - 1) / GRANULE;
    op->at = from;
    op->end = to;
    op_start(op);
}

void chain_release(struct chain *c)
{
    struct list_link held, *l;
    list_init(&held);
    list_splice(&held, &c->held);
    while ((l = list_take(&held)))
        store_submit(&c->store, container_of(l, struct store_io, link));
}

/*
 * Requests to the store, executed in the order of their arrival as far as that can be seen: two that overlap,
 * one of them writing, never run at once or in another order. `applied` is the prefix of the writes that are
 * executed; a write waits until the log on disk has its extents. Snapshots, and growth, wait for all before them
 * and hold all after them.
 */
#include <endian.h>
#include <errno.h>

#include "base/mem.h"
#include "repl/frame.h"
#include "repl/replica_impl.h"
#include "repl/view.h"

static bool barrier(const struct op *o)
{
    return o->type == REPL_SNAP || o->type == REPL_SNAP_DROP || o->type == REPL_PREPARE ||
           o->type == REPL_VIEW || o->type == REPL_REVERT;
}

static bool writes(const struct op *o)
{
    return o->type == REPL_WRITE || o->type == REPL_ZERO || o->type == REPL_DATA ||
           o->type == REPL_REVERT;
}

static bool conflict(const struct op *a, const struct op *b)
{
    if (barrier(a) || barrier(b))
        return true;
    return (MUTANT(125, writes(a), false) || writes(b)) &&
           repl_overlap(a->offset, a->length, b->offset, b->length);
}

/* A snapshot keeps the checksums of what it keeps for ever, so they must be right. */
static bool awaits_sums(const struct repl_replica *r, const struct op *o)
{
    return o->type == REPL_SNAP && !o->running && r->stale_n;
}

bool op_conflicts(const struct repl_replica *r, const struct op *o)
{
    list_for_each(&r->active, before, struct op, link) {
        /* What a snapshot waits for passes it, and what is held behind it: none of that has begun. */
        if (before == o || (o->type == OP_RESUM && awaits_sums(r, before)))
            break;
        if (conflict(before, o))
            return true;
    }
    return false;
}

static bool must_wait(struct repl_replica *r, const struct op *o)
{
    return !GUARD(4, o->need <= r->synced && o->need_log <= r->logged) || awaits_sums(r, o) ||
           op_conflicts(r, o);
}

/* The next part of a rebuilt piece that no client has written since BEGIN; false when there is none. */
static bool next_part(struct op *o, uint64_t from)
{
    uint64_t n = o->length / REPL_SECTOR, i = from, j;
    while (i < n && o->skip[i / 8] >> i % 8 & 1)
        i++;
    for (j = i; j < n && !(o->skip[j / 8] >> j % 8 & 1); j++)
        ;
    o->req.offset = o->offset + i * REPL_SECTOR;
    o->req.length = (j - i) * REPL_SECTOR;
    o->req.skip = i * REPL_SECTOR;
    return i < n;
}

static void op_free(struct repl_replica *r, struct op *o)
{
    list_unlink(&o->link);
    list_push(&r->free_ops, &o->link);
    repl_busy_count(&r->busy, o->offset, o->length, -1);
    if (!o->running)
        r->waiting--;
    r->ops_n--;
    if (o->pinned)
        map_release(r, o->offset, o->length);
    r->resums -= o->type == OP_RESUM;
    free(o->copy);
    free(o->view);
    repl_buf_unref(o->owner);
}

static void applied(struct repl_replica *r, const struct op *o)
{
    if (o->session != r->session)
        return;
    r->done_bits[o->seq % WINDOW / 64] |= (uint64_t)1 << o->seq % 64;
    for (;;) {
        uint64_t next = r->applied + 1, bit = (uint64_t)1 << next % 64;
        if (next > r->received || !(r->done_bits[next % WINDOW / 64] & bit))
            break;
        r->done_bits[next % WINDOW / 64] &= ~bit;
        r->applied = next;
    }
    if (r->complete)
        r->pos = repl_pos(repl_pos_epoch(r->pos), r->applied);
}

static void answer(struct repl_replica *r, struct op *o, int status)
{
    struct repl_msg m = {.seq = o->seq, .offset = o->offset, .count = o->length};
    if (!r->peer[o->peer].open || r->peer[o->peer].life != o->peer_life)
        return;
    m.flags = status < 0 ? REPL_FAILED : 0;
    uint64_t sums[REPL_PIECE / REPL_SECTOR];
    const void *payload = NULL;
    switch (o->type) {
    case REPL_READ:
        m.type = REPL_READ_OK;
        payload = o->one.iov_base;
        m.length = status < 0 ? 0 : (uint32_t)o->length;
        break;
    case REPL_SUMS:
        m.type = REPL_SUMS_OK;
        m.flags |= r->cfg.checked && !o->req.unverified ? REPL_VOUCHED : 0;
        payload = sums;
        if (status >= 0) {
            uint64_t block = (uint64_t)1 << r->sb.view.block_shift;
            for (uint64_t at = 0; at < o->length; at += block, m.length += 8) {
                uint64_t left = o->length - at;
                sums[at / block] =
                    repl_sum((uint8_t *)o->one.iov_base + at, left < block ? left : block);
            }
        }
        break;
    case REPL_SNAP:
        m = (struct repl_msg){.type = REPL_SNAP_OK, .flags = m.flags, .seq = o->seq};
        break;
    case REPL_PREPARE:
        m = (struct repl_msg){.type = REPL_PREPARE_OK, .flags = m.flags, .seq = o->seq};
        break;
    default:
        return;
    }
    replica_send(r, o->peer, &m, payload, o->type == REPL_READ ? o->owner : NULL);
}

static void view_take(struct repl_replica *r, struct op *o, int status)
{
    if (o->peer != r->bound || r->peer[o->peer].life != o->peer_life)
        return; /* it will be sent again after the next promise */
    if (status < 0) {
        replica_fault(r, "the store cannot grow to the size of the volume");
        return;
    }
    if (o->view->size > r->store_size)
        r->store_size = o->view->size;
    /* With a view it is blank no more, though it has nothing: it may have been a voter once, on a disk that is lost. */
    if (!r->sb.view.version && o->view->flags & REPL_FORMED && !GUARD(70, false))
        r->sb.lost = true;
    r->sb.view = *o->view;
    r->sb_dirty = true;
    r->view_sync = meta_next(r);
}

/* What the store has now. */
static void note_held(struct repl_replica *r, const struct op *o)
{
    struct repl_held *h = &r->sb.held;
    if (o->type == REPL_SNAP)
        repl_held_add(h, o->seq);
    if (o->type == REPL_SNAP_DROP)
        repl_held_drop(h, o->seq);
    while (o->type == REPL_REVERT && h->n && h->id[h->n - 1] != o->req.offset)
        h->n--;
}

static int run(struct repl_replica *r, struct op *o)
{
    if (o->type == REPL_SNAP && r->sb.held.n == REPL_HELD)
        return -ENOSPC;
    if ((o->type == REPL_VIEW || o->type == REPL_PREPARE) && o->req.length <= r->store_size)
        return 1;
    o->req.unverified = !o->snap && !barrier(o) && map_stale(r, o->offset, o->length);
    return r->ops->store(r->ctx, &o->req);
}

/* Takes an executed request off, and tells whom it concerns. */
static void finish(struct repl_replica *r, struct op *o, int status)
{
    bool failed_write = status < 0 && writes(o);
    if (writes(o) && !failed_write && o->type != REPL_DATA)
        applied(r, o);
    if (o->type == REPL_VIEW)
        view_take(r, o, status);
    if (status >= 0)
        note_held(r, o);
    if (o->type == REPL_PREPARE && status >= 0 && o->req.length > r->store_size)
        r->store_size = o->req.length;
    if (o->type == OP_RESUM)
        map_fresh(r, (uint32_t)o->seq, status >= 0);
    if (failed_write && !barrier(o))
        map_spoil(r, o->offset, o->length);
    answer(r, o, status);
    op_free(r, o);
    if (failed_write)
        replica_fault(r, "the store cannot write");
}

static void start(struct repl_replica *r, struct op *o)
{
    o->running = true;
    r->waiting--;
    int status = run(r, o);
    while (status > 0 && o->type == REPL_DATA &&
           next_part(o, (o->req.offset + o->req.length - o->offset) / REPL_SECTOR))
        status = run(r, o);
    if (status)
        finish(r, o, status < 0 ? status : 0);
}

void ops_kick(struct repl_replica *r)
{
    bool again = r->waiting > 0;
    while (again) {
        again = false;
        list_for_each(&r->active, o, struct op, link) {
            if (o->running || must_wait(r, o))
                continue;
            start(r, o);
            again = r->waiting > 0;
            break;
        }
    }
}

void ops_drop_waiting(struct repl_replica *r)
{
    list_for_each_safe(&r->active, o, struct op, link)
        if (!o->running)
            op_free(r, o);
}

void repl_replica_stored(struct repl_replica *r, struct repl_req *req, int status)
{
    struct op *o = (struct op *)req;
    if (o == &r->flush_op) {
        flush_stored(r, status);
        return;
    }
    if (o == &r->retire_op) {
        retire_stored(r, status);
        return;
    }
    if (o == &r->stamp_op) {
        seal_stored(r, status);
        return;
    }
    if (status >= 0 && o->type == REPL_DATA &&
        next_part(o, (o->req.offset + o->req.length - o->offset) / REPL_SECTOR)) {
        status = run(r, o);
        if (!status)
            return;
    }
    finish(r, o, status < 0 ? status : 0);
    ops_kick(r);
}

void pieces_forget(struct repl_replica *r)
{
    while (r->places)
        r->pieces[--r->places].length = 0;
}

/* Notes which sectors of a piece that is being rebuilt a client writes. */
static void note_written(struct piece *p, uint64_t offset, uint64_t length)
{
    uint64_t end = offset + length, piece_end = p->offset + p->length;
    if (!repl_overlap(offset, length, p->offset, p->length))
        return;
    offset = offset > p->offset ? offset : p->offset;
    end = end < piece_end ? end : piece_end;
    for (uint64_t s = (offset - p->offset) / REPL_SECTOR;
         s + MUTANT(124, 0, 1) < (end - p->offset) / REPL_SECTOR; s++)
        p->written[s / 8] |= (uint8_t)(1 << s % 8);
}

static void touch(struct repl_replica *r, struct op *o, uint64_t pos)
{
    o->need_log = map_touch(r, o->offset, o->length, pos);
    o->pinned = true;
}

static void op_init(struct repl_replica *r, struct op *o, const struct repl_msg *m)
{
    static const enum repl_store kinds[REPL_TYPES] = {
        [REPL_READ] = REPL_STORE_READ,           [REPL_SUMS] = REPL_STORE_READ,
        [REPL_WRITE] = REPL_STORE_WRITE,         [REPL_DATA] = REPL_STORE_WRITE,
        [REPL_ZERO] = REPL_STORE_ZERO,           [REPL_SNAP] = REPL_STORE_SNAPSHOT,
        [REPL_PREPARE] = REPL_STORE_RESIZE,      [REPL_VIEW] = REPL_STORE_RESIZE,
        [REPL_SNAP_DROP] = REPL_STORE_SNAP_DROP, [REPL_REVERT] = REPL_STORE_REVERT,
    };
    o->offset = barrier(o) ? 0 : m->offset;
    o->length = barrier(o) ? INT64_MAX : m->count;
    o->req = (struct repl_req){.kind = kinds[m->type],
                               .unmap = m->flags & REPL_UNMAP,
                               .offset = o->offset,
                               .length = o->length,
                               .snap = o->snap,
                               .iov = o->iov,
                               .iov_n = o->iov_n};
    if (m->type == REPL_SNAP || m->type == REPL_SNAP_DROP)
        o->req.offset = m->seq;
    if (m->type == REPL_PREPARE)
        o->req.length = m->seq;
    if (m->type == REPL_VIEW)
        o->req.length = o->view->size;
    if (m->type == REPL_WRITE || m->type == REPL_ZERO || m->type == REPL_REVERT) {
        r->received = m->seq;
        for (uint32_t i = 0; i < r->places; i++)
            note_written(&r->pieces[i], o->offset, o->length);
        uint64_t pos = repl_pos(r->sb.promised, m->seq);
        if (m->type != REPL_REVERT)
            touch(r, o, pos);
        else if (!GUARD(33, false)) /* a write to every region that was written since */
            o->need = map_stamp_above(r, m->count, pos);
    }
    if (m->type == REPL_REVERT)
        o->req.offset = m->offset;
    if (m->type == REPL_DATA) {
        const struct piece *p = &r->pieces[m->flags];
        for (uint64_t s = 0; s < o->length / REPL_SECTOR; s++) {
            uint64_t at = (o->offset - p->offset) / REPL_SECTOR + s;
            if (GUARD(5, !(p->written[at / 8] >> at % 8 & 1)))
                continue;
            o->skip[s / 8] |= (uint8_t)(1 << s % 8);
        }
        o->need = p->need;
        if (!p->need)
            touch(r, o, 0);
    }
    if (writes(o) && o->need < r->forget_sync)
        o->need = r->forget_sync;
}

/* The payload, as long as the request lives. */
static void op_payload(struct repl_replica *r, struct op *o, const struct repl_msg *m,
                       const struct iovec *iov, int n, struct repl_buf *owner)
{
    o->iov = &o->one;
    o->iov_n = 1;
    if (m->type == REPL_READ || m->type == REPL_SUMS) {
        o->owner = r->ops->buffer(r->ctx, m->count, &o->one.iov_base);
        o->one.iov_len = m->count;
        if (m->length) {
            struct iovec number = {&o->snap, sizeof(o->snap)};
            repl_iov_copy(&number, 1, iov, n, 0, sizeof(o->snap));
            o->snap = le64toh(o->snap);
        }
    } else if (m->length && owner) {
        o->owner = repl_buf_ref(owner);
        o->iov = iov;
        o->iov_n = n;
    } else if (m->length) {
        o->copy = mem_alloc(m->length);
        o->one = (struct iovec){o->copy, m->length};
        repl_iov_copy(&o->one, 1, iov, n, 0, m->length);
    }
}

static struct op *op_new(struct repl_replica *r)
{
    struct op *o = list_first(&r->free_ops, struct op, link);
    if (!o)
        return NULL;
    list_unlink(&o->link);
    struct list_link keep = o->link;
    memset(o, 0, sizeof(*o));
    o->link = keep;
    return o;
}

static void op_push(struct repl_replica *r, struct op *o)
{
    list_push(&r->active, &o->link);
    repl_busy_count(&r->busy, o->offset, o->length, 1);
    r->ops_n++;
    r->waiting++;
}

bool op_take(struct repl_replica *r, int link, const struct repl_msg *m, const struct iovec *iov,
             int n, struct repl_buf *owner)
{
    bool touches = m->type == REPL_WRITE || m->type == REPL_ZERO || m->type == REPL_DATA;
    if (touches && !map_room(r, m->offset, m->count))
        return false;
    struct op *o = op_new(r);
    if (!o)
        return false;
    if (m->type == REPL_VIEW)
        *(o->view = mem_alloc(sizeof(*o->view))) = r->view_in;
    o->type = m->type;
    o->flags = m->flags;
    o->peer = link;
    o->peer_life = r->peer[link].life;
    o->session = r->session;
    o->seq = m->seq;
    o->arrival = ++r->arrivals;
    if (m->type == REPL_SUMS)
        r->compared_at = r->now;
    if ((m->type == REPL_SUMS || m->type == REPL_DATA) && !r->complete) {
        r->rebuilding = true;
        r->rebuilt_to = m->offset + m->count;
    }
    op_payload(r, o, m, iov, n, owner);
    op_init(r, o, m);
    bool wait = o->need || o->need_log || MUTANT(126, awaits_sums(r, o), false) ||
                repl_busy_maybe(&r->busy, o->offset, o->length);
    op_push(r, o);
    bool nothing = m->type == REPL_DATA && !next_part(o, 0);
    if (nothing)
        finish(r, o, 0);
    else if (!wait || !must_wait(r, o))
        start(r, o);
    return true;
}

/*
 * One at a time while there is other work; more when there is none, or when the end of a rebuild waits for it. Very few
 * while data is compared, here or elsewhere: clients may be waiting for that, and it wants the same disks.
 */
void ops_resum(struct repl_replica *r)
{
    enum { IDLE_BATCH = 16, URGENT_BATCH = 64 };
    const int64_t SECOND = 1000 * 1000000LL, SELDOM = SECOND / 100;
    bool urgent = flush_awaits_sums(r) || (!list_empty(&r->active) &&
                                           awaits_sums(r, list_first(&r->active, struct op, link)));
    bool comparing = (r->joined && !r->complete) || r->now - r->compared_at < SECOND;
    int most = urgent ? URGENT_BATCH : r->ops_n || comparing ? 1 : IDLE_BATCH;
    if (!urgent && comparing && r->now - r->resummed_at < SELDOM)
        return;
    r->resummed_at = r->now;
    for (int n = 0;
         n < most && !r->resums && !r->failed && !r->stopping && map_next_stale(r, &r->stale_next);
         n++) {
        uint32_t region = r->stale_next++;
        uint64_t offset = (uint64_t)region << r->sb.view.region_shift;
        uint64_t left = offset < r->store_size ? r->store_size - offset : 0,
                 span = (uint64_t)1 << r->sb.view.region_shift;
        struct op *o = left ? op_new(r) : NULL;
        if (!left)
            map_fresh(r, region, true);
        if (!o)
            return;
        o->type = OP_RESUM;
        o->seq = region;
        o->arrival = ++r->arrivals;
        o->session = r->session;
        o->offset = offset;
        o->length = left < span ? left : span;
        o->req =
            (struct repl_req){.kind = REPL_STORE_RESUM, .offset = o->offset, .length = o->length};
        op_push(r, o);
        r->resums++;
        if (!must_wait(r, o))
            start(r, o);
    }
}

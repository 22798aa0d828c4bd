/*
 * What targets say to a replica.
 *
 * A link is bound when its target's epoch is promised, durably; only then may it read and write. Another
 * target's PROMISE with a higher epoch unbinds it. What had not begun is dropped, what had begun ends, and only
 * then is the promise answered, so the position in the answer is final.
 */
#include "repl/meta.h"
#include "repl/replica_impl.h"
#include "repl/view.h"

static void refuse(struct repl_replica *r, int link, uint32_t epoch)
{
    struct repl_msg m = {.type = REPL_REFUSE, .seq = epoch};
    replica_send(r, link, &m, NULL, NULL);
}

/* One target may wait for the end of the lease; the others must ask again, with a higher epoch. */
static void promise_later(struct repl_replica *r, int link, const struct repl_msg *m)
{
    if (r->later_link >= 0 && r->later_link != link) {
        if (m->epoch <= r->later.epoch) {
            refuse(r, link, r->later.epoch);
            return;
        }
        refuse(r, r->later_link, m->epoch);
    }
    r->later_link = link;
    r->later = *m;
}

void replica_promise(struct repl_replica *r, int link, const struct repl_msg *m)
{
    bool same = m->epoch == r->sb.promised && m->seq == r->sb.owner;
    if (!same && !GUARD(8, m->epoch > r->sb.promised)) {
        refuse(r, link, r->sb.promised);
        return;
    }
    /* Whoever was promised before may still be reading. */
    if (!same && m->seq != r->sb.owner && !GUARD(9, r->now >= r->lease_until)) {
        promise_later(r, link, m);
        return;
    }
    if (r->bound >= 0 && r->bound != link && !GUARD(12, false))
        replica_drop(r, r->bound, "another target has a newer epoch");
    else if (r->bound >= 0)
        replica_unbind(r);
    r->bound = link;
    r->sb.promised = m->epoch;
    r->sb.owner = m->seq;
    r->sb_dirty = true;
    r->promise_owed = true;
    r->promise_sync = meta_next(r);
}

/* What is written from now on is not of the snapshot that was being rebuilt. */
static void forget_snap_mark(struct repl_replica *r)
{
    if (r->mark_snap)
        r->mark_owed = false;
    if (r->flush_snap)
        r->flush_mark = false;
    if (!r->sb.snap_mark)
        return;
    r->sb.snap_mark = r->sb.snap_region = 0;
    r->sb_dirty = true;
    r->forget_sync = meta_next(r);
}

/* A mark at 0 is the beginning of a snapshot's rebuild. */
static void take_mark(struct repl_replica *r, const struct repl_msg *m)
{
    if (!m->offset) {
        forget_snap_mark(r);
        return;
    }
    r->mark_owed = true;
    r->mark_region = (uint32_t)m->offset;
    r->mark_snap = m->count;
}

static void join(struct repl_replica *r, uint64_t count, uint64_t number)
{
    r->session++;
    r->join = number;
    r->joined = true;
    r->complete = false;
    r->received = r->applied = r->durable = r->applied_told = r->durable_told = count;
    replica_forget_rebuild(r);
    if (!GUARD(43, false))
        forget_snap_mark(r);
    memset(r->done_bits, 0, sizeof(r->done_bits));
}

static bool in_piece(const struct repl_replica *r, const struct repl_msg *m)
{
    const struct piece *p = &r->pieces[m->flags % REPL_PIECES];
    return m->flags < REPL_PIECES && m->offset >= p->offset && m->count <= p->length &&
           m->offset - p->offset <= p->length - m->count;
}

static bool in_range(const struct repl_replica *r, const struct repl_msg *m)
{
    uint64_t size = r->view_in.size > r->sb.view.size ? r->view_in.size : r->sb.view.size;
    return m->count <= size && m->offset <= size - m->count;
}

static void send_map(struct repl_replica *r, int link, const struct repl_msg *m)
{
    uint64_t first = m->offset < r->regions ? m->offset : r->regions;
    uint64_t n = m->count < r->regions - first ? m->count : r->regions - first;
    uint64_t entries[REPL_PAGE_ENTRIES];
    memcpy(entries, r->map + first, n * 8);
    struct repl_msg answer = {.type = REPL_MAP_OK,
                              .seq = m->seq,
                              .offset = first,
                              .count = n,
                              .length = (uint32_t)(n * 8)};
    replica_send(r, link, &answer, entries, NULL);
}

/* The history that a rebuild ends with goes upward, to the epoch that was promised. */
static bool is_history(const struct repl_replica *r, const struct repl_lineage *l)
{
    for (uint32_t i = 1; i < l->n; i++)
        if (l->at[i].epoch <= l->at[i - 1].epoch ||
            (i + 1 < l->n && l->at[i].end < l->at[i - 1].end))
            return false;
    return l->n && l->at[l->n - 1].epoch == r->sb.promised;
}

static const char *take_super(struct repl_replica *r, const struct repl_msg *m, const void *payload)
{
    struct repl_super s;
    if (m->length != REPL_SUPER_SIZE || repl_super_decode(payload, &s, NULL) < 0)
        return "a superblock that cannot be read";
    if (m->type == REPL_DONE && !is_history(r, &s.lineage))
        return "a history that is not of this epoch";
    if (m->type == REPL_DONE) {
        r->done_lineage = s.lineage;
        r->done_owed = true;
        pieces_forget(r);
        flush_request(r);
        return NULL;
    }
    if (!s.view.version)
        return "a view that says nothing";
    if (r->sb.view.version && (s.view.region_shift != r->sb.view.region_shift ||
                               s.view.block_shift != r->sb.view.block_shift))
        return "a view with regions of another size";
    r->view_in = s.view;
    if (!r->sb.view.version) {
        r->sb.view.region_shift = s.view.region_shift;
        r->sb.view.block_shift = s.view.block_shift;
    }
    map_resize(r, s.view.size > r->store_size ? s.view.size : r->store_size, s.view.region_shift);
    return NULL;
}

static bool is_range(uint8_t type)
{
    return type == REPL_WRITE || type == REPL_ZERO || type == REPL_READ || type == REPL_SUMS ||
           type == REPL_BEGIN || type == REPL_DATA;
}

/* What only a target may say whose epoch is promised. Why the link must end, or NULL; *full: no room. */
static const char *bound_input(struct repl_replica *r, int link, const struct repl_msg *m,
                               const struct iovec *iov, int n, struct repl_buf *owner, bool *full)
{
    const void *payload = n ? iov->iov_base : NULL;
    if (is_range(m->type) && !in_range(r, m))
        return "a request beyond the end of the volume";
    switch (m->type) {
    case REPL_VIEW:
        if (list_empty(&r->free_ops)) {
            *full = true;
            return NULL;
        }
        const char *why = take_super(r, m, payload);
        if (why)
            return why;
        *full = !op_take(r, link, m, NULL, 0, NULL);
        return NULL;
    case REPL_DONE:
        return take_super(r, m, payload);
    case REPL_JOIN:
        join(r, m->seq, m->offset);
        return NULL;
    case REPL_REVERT:
        if (!repl_held_has(&r->sb.held, m->offset))
            return "a way back to a snapshot that is not here";
        /* fall through */
    case REPL_WRITE:
    case REPL_ZERO:
        if (m->seq != r->received + 1 || m->seq - r->applied > WINDOW)
            return "a write out of order";
        *full = !op_take(r, link, m, iov, n, owner);
        if (!*full && m->flags & REPL_FUA)
            flush_request(r);
        return NULL;
    case REPL_FLUSH:
        if (m->flags & REPL_MARK)
            take_mark(r, m);
        flush_request(r);
        return NULL;
    case REPL_DATA:
        if (!in_piece(r, m))
            return "rebuilt data for no piece that was begun";
        /* fall through */
    case REPL_READ:
    case REPL_SUMS:
        if (m->type != REPL_DATA && m->length && m->length != sizeof(uint64_t))
            return "a snapshot's number that is none";
        /* fall through */
    case REPL_SNAP:
    case REPL_SNAP_DROP:
        *full = !op_take(r, link, m, iov, n, owner);
        return NULL;
    case REPL_PREPARE:
        if (m->seq % REPL_SECTOR || m->seq > repl_view_most(&r->sb.view))
            return "a size that is no size";
        *full = !op_take(r, link, m, NULL, 0, NULL);
        return NULL;
    case REPL_BEGIN:
        if (m->flags >= REPL_PIECES)
            return "a piece too many";
        r->pieces[m->flags] = (struct piece){.offset = m->offset, .length = m->count};
        if (r->places <= m->flags)
            r->places = m->flags + 1u;
        if (m->seq)
            r->pieces[m->flags].need = map_stamp(r, m->offset, m->count, m->seq);
        return NULL;
    case REPL_MAP:
        send_map(r, link, m);
        return NULL;
    default:
        return "a message that no target sends";
    }
}

bool repl_replica_input(struct repl_replica *r, int link, const struct repl_msg *m,
                        const struct iovec *iov, int n, struct repl_buf *owner)
{
    bool full = false;
    if (!r->peer[link].open || r->failed)
        return true;
    if (m->type == REPL_PROMISE) {
        replica_promise(r, link, m);
        return true;
    }
    if (!GUARD(12, link == r->bound && m->epoch == r->sb.promised) || r->promise_owed) {
        refuse(r, link, r->sb.promised);
        return true;
    }
    if (m->type == REPL_PING) {
        r->ping_owed = true;
        r->ping = m->seq;
        return true;
    }
    if (m->type == REPL_BYE) {
        r->lease_until = r->now;
        return true;
    }
    const char *why = bound_input(r, link, m, iov, n, owner, &full);
    if (why)
        replica_drop(r, link, why);
    return !full;
}

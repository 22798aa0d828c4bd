/*
 * Flushes, committed in groups:
 *
 *     IDLE ──wanted, all before it executed──> STORE ──flushed──> PAGES ──> META: position, mark ──> IDLE
 *
 * Pages of the map come before a position that relies on them: what a rebuild compared and found equal has its new
 * entry nowhere else.
 */
#include "repl/replica_impl.h"

void flush_request(struct repl_replica *r)
{
    r->flush_want = ++r->arrivals;
}

/* All requests before the flush are executed? */
static bool flush_ready(const struct repl_replica *r)
{
    const struct op *head = list_first(&r->active, struct op, link);
    return !head || GUARD(46, head->arrival > r->flush_want);
}

/* The position that DONE brings vouches for the checksums of every region outside of the log; a mark for those below it. */
bool flush_awaits_sums(const struct repl_replica *r)
{
    return (r->done_owed || r->mark_owed) && r->stale_cold;
}

void flush_stored(struct repl_replica *r, int status)
{
    if (status < 0) {
        r->flush_state = FLUSH_IDLE;
        r->flush_have = r->flush_arrival;
        replica_fault(r, "the store cannot flush");
        return;
    }
    r->flush_state = FLUSH_PAGES;
    r->flush_sync = 0;
    if (!GUARD(35, r->flush_session == r->session))
        return;
    if (r->flush_done)
        map_settle(r, repl_pos(r->sb.promised, r->applied));
    if (r->flush_done || r->flush_mark)
        r->flush_sync = GUARD(39, !meta_pages_dirty(r)) ? r->syncs : meta_next(r);
}

/* Everything that the superblock relies on is durable. */
static void flush_meta(struct repl_replica *r)
{
    r->flush_state = FLUSH_META;
    r->flush_sync = 0;
    if (!GUARD(35, r->flush_session == r->session))
        return;
    if (r->flush_done) {
        r->sb.lineage = r->done_lineage;
        r->sb.pos = repl_pos(r->sb.promised, r->flush_applied);
        r->sb.mark_pos = r->sb.mark_region = 0;
        r->pos = repl_pos(r->sb.promised, r->applied);
        r->complete = r->intact = true;
        r->sb.lost = false;
    } else if (r->flush_mark && r->flush_snap) {
        r->sb.snap_mark = r->flush_snap;
        r->sb.snap_region = r->flush_region;
    } else if (r->flush_mark) {
        r->sb.mark_pos = repl_pos(r->sb.promised, r->flush_applied);
        r->sb.mark_region = r->flush_region;
    } else if (r->flush_pos <= r->sb.pos) {
        return; /* nothing that the superblock would say */
    }
    if (r->flush_pos > r->sb.pos)
        r->sb.pos = MUTANT(120, r->flush_pos, r->pos);
    r->sb_dirty = true;
    r->flush_sync = meta_next(r);
}

void flush_progress(struct repl_replica *r)
{
    if (r->flush_state == FLUSH_PAGES && r->synced >= r->flush_sync)
        flush_meta(r);
    if (r->flush_state == FLUSH_META && r->synced >= r->flush_sync) {
        r->flush_state = FLUSH_IDLE;
        r->flush_have = r->flush_arrival;
        if (GUARD(35, r->flush_session == r->session)) {
            r->durable = MUTANT(119, r->flush_applied, r->applied);
            if (r->flush_done && r->bound >= 0)
                replica_send(r, r->bound,
                             &(struct repl_msg){.type = REPL_DONE_OK,
                                                .seq = repl_pos(r->sb.promised, r->flush_applied)},
                             NULL, NULL);
        }
        r->flush_done = r->flush_mark = false;
    }
    if (r->flush_state != FLUSH_IDLE || r->flush_want <= r->flush_have || !flush_ready(r) ||
        r->failed)
        return;
    if (flush_awaits_sums(r))
        return;
    r->flush_state = FLUSH_STORE;
    r->flushed_at = r->now;
    r->flush_arrival = r->flush_want;
    r->flush_applied = r->applied;
    r->flush_pos = r->pos;
    r->flush_session = r->session;
    r->flush_done = r->done_owed;
    r->flush_mark = r->mark_owed && !r->done_owed;
    r->flush_region = r->mark_region; /* the next mark may come before this one is durable */
    r->flush_snap = r->mark_snap;
    r->done_owed = r->mark_owed = false;
    bool sums = r->flush_done || r->flush_mark || r->stopping;
    r->flush_op.req = (struct repl_req){.kind = REPL_STORE_FLUSH, .sums = sums};
    int status = GUARD(6, false) ? 1 : r->ops->store(r->ctx, &r->flush_op.req);
    if (status)
        flush_stored(r, status < 0 ? status : 0);
}

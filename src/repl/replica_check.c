/*
 * What is always true of a replica after its turn:
 *
 *   R1   Of the writes of a session: durable is at most applied, and applied at most received.
 *   R2   The position in memory is not below the durable one; one that is complete follows what it has applied.
 *   R3   No position, mark or epoch of the history is above the epoch that was promised; the history goes upward.
 *   R4   At most one sync of the metadata is under way, and none is counted that was not begun.
 *   R5   A flush covers nothing that was not asked for, and in its session nothing that was not applied; all requests
 *        before it are executed when it begins.
 *   R6   A target that may write, or waits to be promised, is connected; a promise is owed only to the first.
 *   R7   Requests are counted, and in the order of their arrival.
 *   R8   What is executed waits for nothing: no sync of the metadata, no write of the log, and no request before it that it
 *        conflicts with.
 *   R9   It is complete only at a position of its own history.
 *   R10  Active extents are counted, each in its slot; the log has room for them. Who retires has nothing under way.
 *   R11  Regions with stale checksums are counted; one that is complete has them in active extents only.
 *
 * The simulator looks after every turn, and so do debug and sanitizer builds.
 */
#include "repl/replica_impl.h"

enum { NEAR = 64 }; /* requests that are compared with one another */

static const char *check_positions(const struct repl_replica *r)
{
    const struct repl_lineage *l = &r->sb.lineage;
    if (r->durable > r->applied || r->applied > r->received)
        return "R1: more is durable than applied, or applied than received";
    if (r->pos < r->sb.pos || (r->complete && repl_pos_count(r->pos) != r->applied))
        return "R2: the position is below what is durable, or is not what was applied";
    if (repl_pos_epoch(r->sb.pos) > r->sb.promised ||
        repl_pos_epoch(r->sb.mark_pos) > r->sb.promised ||
        (l->n && l->at[l->n - 1].epoch > r->sb.promised))
        return "R3: a position of an epoch that was not promised";
    for (uint32_t i = 1; i < l->n; i++)
        if (l->at[i].epoch <= l->at[i - 1].epoch ||
            (i + 1 < l->n && l->at[i].end < l->at[i - 1].end))
            return "R3: a history that does not go upward";
    if (r->complete && (!l->n || l->at[l->n - 1].epoch != repl_pos_epoch(r->pos)))
        return "R9: complete at a position that is not of its history";
    return NULL;
}

static const char *check_flush(const struct repl_replica *r)
{
    bool running = r->flush_state != FLUSH_IDLE;
    if (r->flush_have > r->flush_want || r->flush_want > r->arrivals ||
        (running && r->flush_arrival > r->flush_want))
        return "R5: a flush that was not asked for";
    const struct op *head = list_first(&r->active, struct op, link);
    if (running && head && head->arrival < r->flush_arrival)
        return "R5: a flush that did not wait for a request before it";
    if (running && r->flush_session == r->session &&
        (r->flush_applied > r->applied || r->flush_pos > r->pos))
        return "R5: a flush of what was not applied";
    return NULL;
}

static const char *check_requests(const struct repl_replica *r)
{
    uint32_t n = 0, waiting = 0;
    uint64_t before = 0;
    list_for_each(&r->active, o, struct op, link) {
        if (o->arrival <= before)
            return "R7: requests out of order";
        before = o->arrival;
        waiting += !o->running;
        n++;
        if (o->running && (o->need > r->synced || o->need_log > r->logged))
            return "R8: a request is executed before its metadata is durable";
        if (o->running && n <= NEAR && op_conflicts(r, o))
            return "R8: a request is executed before one that it conflicts with";
    }
    return n == r->ops_n && waiting == r->waiting ? NULL : "R7: the number of requests is wrong";
}

static const char *check_extents(const struct repl_replica *r)
{
    uint32_t n = 0;
    list_for_each(&r->lru, x, struct extent, link) {
        if (r->slot_of[x->number] != x - r->extents + 1 || (x->retiring && x->pins))
            return "R10: an extent that is not in its slot, or retires while it is written";
        n++;
    }
    if (n != r->active_n || n > r->cfg.active_room)
        return "R10: the number of active extents is wrong";
    if (r->stale_cold > r->stale_n || (r->complete && r->stale_cold))
        return "R11: stale checksums where nobody would make them anew after a crash";
    return NULL;
}

const char *repl_replica_check(const struct repl_replica *r)
{
    if (!r->started || r->failed)
        return NULL;
    if (r->synced > r->syncs || r->syncs - r->synced != r->sync_running)
        return "R4: the number of syncs is wrong";
    if ((r->bound >= 0 && !r->peer[r->bound].open) || (r->promise_owed && r->bound < 0) ||
        (r->later_link >= 0 && !r->peer[r->later_link].open))
        return "R6: a target that is gone may write, or is waited for";
    const char *broken = check_positions(r);
    if (!broken)
        broken = check_flush(r);
    if (!broken)
        broken = check_extents(r);
    return broken ? broken : check_requests(r);
}

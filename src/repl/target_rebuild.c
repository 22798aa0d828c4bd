/*
 * Rebuilds: each replica that is not in sync has a job, which goes through the regions in order.
 *
 *     JOIN ─> READY ─> MAP: entries of 507 regions of both ─> READY: pieces of the regions in delta ─┐
 *               ^                                                                                    │
 *               └──────────────────────────── no piece is under way ─────────────────────────────────┘
 *             end: DONE ─> in sync
 *
 *     A snapshot that the replica lacks comes first, in the same way, from the source's: without JOIN, since the
 *     replica is brought to a point of the past; at the end SNAP instead of DONE, and then the next one.
 *
 * Answers carry the tag of the step they belong to; when a source is lost, all pieces under way begin again
 * with other tags and another source, and old answers mean nothing. Invariants: a region is passed over only if
 * both entries are at most the fork; entries are asked for, marks made and the rebuild ended only when no piece is under
 * way. Pieces are target_piece.c.
 */
#include <endian.h>

#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/target_impl.h"
#include "repl/view.h"

enum { TRIES = 5 }; /* then it is not by chance that a source cannot read something */
static const int64_t RETRY = 200 * 1000000LL;

uint64_t rebuild_tag(struct repl_target *t)
{
    return REPL_TAG_OWN | ++t->tags;
}

static uint32_t regions(const struct repl_target *t)
{
    uint64_t span = (uint64_t)1 << t->view.region_shift;
    return (uint32_t)((t->view.size + span - 1) >> t->view.region_shift);
}

void rebuild_ask(struct repl_target *t, int link, uint8_t type, uint64_t tag, uint64_t offset,
                 uint64_t count)
{
    struct repl_msg m = {.type = type, .seq = tag, .offset = offset, .count = count};
    target_send(t, link, &m, NULL, 0, NULL);
}

/* Of the source: of the snapshot that is rebuilt, if one is. */
void rebuild_ask_source(struct repl_target *t, const struct job *j, uint8_t type, uint64_t tag,
                        uint64_t offset, uint64_t count)
{
    uint64_t snap = htole64(j->snap);
    struct iovec iov = {&snap, sizeof(snap)};
    struct repl_msg m = {.type = type, .seq = tag, .offset = offset, .count = count};
    if (j->snap) {
        m.length = sizeof(snap);
        m.data_crc = repl_iov_crc(&iov, 1);
    }
    target_send(t, j->source, &m, &iov, j->snap ? 1 : 0, NULL);
}

static int pick_source(const struct repl_target *t, int link, const struct job *j)
{
    int best = -1;
    each_peer(t, i)
    {
        if (i == link || !t->peer[i].insync || j->avoid & bit(i) ||
            (j->snap && !repl_held_has(&t->peer[i].held, j->snap)))
            continue;
        if (best < 0 || t->peer[i].reads < t->peer[best].reads)
            best = i;
    }
    return best;
}

static void send_done(struct repl_target *t, int link)
{
    uint8_t block[REPL_SUPER_SIZE];
    struct repl_super s = {.generation = 1, .volume = t->cfg.volume, .lineage = t->lineage};
    repl_super_encode(&s, block);
    struct iovec iov = {block, sizeof(block)};
    struct repl_msg m = {.type = REPL_DONE,
                         .seq = repl_pos(t->epoch, t->last),
                         .length = sizeof(block),
                         .data_crc = repl_iov_crc(&iov, 1)};
    t->peer[link].job.state = JOB_DONE;
    target_send(t, link, &m, &iov, 1, NULL);
}

static void new_job(struct repl_target *t, int link, int source)
{
    t->peer[link].job = (struct job){.state = JOB_READY, .source = source};
    for (int n = 0; n < REPL_PIECES; n++)
        t->pieces[link][n].state = PIECE_NONE;
}

/* What lies behind is as good as new, if only it is durable. */
static void send_mark(struct repl_target *t, int link)
{
    const struct job *j = &t->peer[link].job;
    struct repl_msg m = {.type = REPL_FLUSH,
                         .flags = REPL_MARK,
                         .seq = t->last,
                         .offset = j->region,
                         .count = j->snap};
    target_send(t, link, &m, NULL, 0, NULL);
}

/* True: the next snapshot that it lacks comes first. */
static bool snap_first(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    int missing = link == t->truth ? -1 : snap_missing(t, link);
    if (missing < 0)
        return false;
    new_job(t, link, -1);
    p->job.snap = t->view.snaps.at[missing].id;
    p->job.snap_pos = t->view.snaps.at[missing].pos;
    p->job.since = t->now;
    if (p->sb.snap_mark == p->job.snap && !p->lost) {
        p->job.region = p->sb.snap_region; /* it was interrupted there */
    } else {
        p->sb.snap_mark = p->sb.snap_region = 0;
        send_mark(t, link);
    }
    return true;
}

void rebuild_start(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct repl_msg m = {.type = REPL_JOIN, .seq = t->last, .offset = t->joins + 1};
    p->fork = p->lost ? 0 : repl_fork(&p->sb.lineage, p->pos, &t->lineage);
    p->mark = p->lost || !p->sb.mark_region ? 0 : repl_fork_mark(p->sb.mark_pos, &t->lineage);
    if (snap_first(t, link))
        return;
    target_send(t, link, &m, NULL, 0, NULL);
    p->join = ++t->joins;
    p->joined = true;
    p->applied = p->durable = t->last;
    p->owed = 0;
    new_job(t, link, -1);
    p->job.since = t->now;
    if (link == t->truth)
        send_done(t, link);
}

void rebuild_stop(struct repl_target *t, int link)
{
    t->peer[link].joined = false;
    t->peer[link].job.state = JOB_NONE;
    io_peer_down(t, link);
}

/* The replica has the snapshot. */
void rebuild_snapped(struct repl_target *t, int link, const struct repl_msg *m)
{
    struct job *j = &t->peer[link].job;
    if (j->state != JOB_SNAP || m->seq != j->snap)
        return;
    j->state = JOB_NONE; /* the next begins with the next turn */
    if (m->flags & REPL_FAILED)
        target_drop(t, link, "the replica cannot take a snapshot");
}

/* Below the mark the replica has everything up to the mark's position. */
static uint64_t fork_at(const struct peer *p, uint32_t region)
{
    uint64_t fork =
        p->mark > p->fork && region < p->sb.mark_region + MUTANT(116, 0, 1) ? p->mark : p->fork;
    return p->job.snap && p->job.snap_pos < fork ? p->job.snap_pos : fork;
}

/* The replica's new entry of a region. */
static uint64_t stamp_of(const struct repl_target *t, const struct peer *p, uint32_t region)
{
    const struct job *j = &p->job;
    uint64_t own = j->own[region - j->first], theirs = j->theirs[region - j->first];
    uint64_t high = p->pos > p->sb.mark_pos ? p->pos : p->sb.mark_pos;
    /* Above all that the replica may be taken for, should it crash before the piece is copied. */
    bool safe = own <= fork_at(p, region) && theirs > high;
    return GUARD(25, safe) ? theirs : repl_pos(t->epoch, t->last);
}

static void ask_maps(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    uint32_t left = regions(t) - j->region;
    j->first = j->region;
    j->count = left < t->cfg.map_chunk ? left : t->cfg.map_chunk;
    j->tag = rebuild_tag(t);
    j->have_source = j->have_own = false;
    j->state = JOB_MAP;
    rebuild_ask(t, link, REPL_MAP, j->tag, j->first, j->count);
    rebuild_ask(t, j->source, REPL_MAP, j->tag, j->first, j->count);
}

/* Entries that are here, or on their way, are from before: they would make the replica's map too low. */
void rebuild_reverted(struct repl_target *t, uint64_t above, uint64_t pos)
{
    each_peer(t, i)
    {
        struct job *j = &t->peer[i].job;
        if (j->state == JOB_NONE)
            continue;
        for (uint32_t k = 0; k < j->count; k++)
            if (j->theirs[k] > above)
                j->theirs[k] = pos;
        if (j->state == JOB_MAP)
            ask_maps(t, i);
    }
}

/* After some megabytes. A snapshot stays what it is; what the volume is, only a target knows that serves. */
static void maybe_mark(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    bool sure = j->snap || t->serving;
    bool further =
        j->snap ? j->region > p->sb.snap_region : !p->mark || j->region > p->sb.mark_region;
    if (!sure || !further || j->bytes - j->marked < t->cfg.mark_bytes || !j->region)
        return;
    send_mark(t, link);
    j->marked = j->bytes;
}

/* What it has not, and what it has and should not. */
static bool equal(const struct peer *p, uint32_t region)
{
    const struct job *j = &p->job;
    uint64_t fork = fork_at(p, region);
    return GUARD(26, j->theirs[region - j->first] <= fork) &&
           GUARD(27, j->own[region - j->first] <= fork);
}

/* An entry that never rose: no write and no data was ever executed there. */
static bool has_zeros(const struct peer *p, uint32_t region)
{
    return !p->lost && !p->job.own[region - p->job.first];
}

/* Whether a piece may go on into the next region: both are in delta, and get the same entry. */
static bool goes_on(const struct repl_target *t, const struct peer *p, uint32_t region)
{
    const struct job *j = &p->job;
    return region + 1 < j->first + j->count && !equal(p, region + 1) &&
           stamp_of(t, p, region) == stamp_of(t, p, region + 1) &&
           has_zeros(p, region) == has_zeros(p, region + 1);
}

/* The next piece of the region at hand, or of the next in delta. False: the entries are used up. */
static bool next_piece(struct repl_target *t, struct peer *p)
{
    struct job *j = &p->job;
    uint64_t span = (uint64_t)1 << t->view.region_shift;
    uint64_t next = j->piece + j->piece_length;
    if (j->piece_length && next < (j->region + 1) * span && next < t->view.size) {
        j->piece = next;
    } else {
        if (j->piece_length)
            j->region++;
        j->piece_length = 0;
        while (j->region < j->first + j->count && equal(p, j->region))
            j->region++;
        if (j->region >= j->first + j->count)
            return false;
        j->piece = j->region * span;
    }
    uint64_t end = (j->region + 1) * span;
    for (; end - j->piece + span <= REPL_PIECE && goes_on(t, p, j->region); j->region++)
        end += span;
    end = end < t->view.size ? end : t->view.size;
    j->piece_length = end - j->piece < REPL_PIECE ? end - j->piece : REPL_PIECE;
    return true;
}

/* Many at a time, and while as many are still to be asked for: the replica syncs once for all their stamps. */
static void begin_pieces(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    if (j->begins - j->asks > t->cfg.ahead / 2)
        return;
    while (j->begins - j->asks < t->cfg.ahead &&
           t->pieces[link][j->begins % REPL_PIECES].state == PIECE_NONE &&
           (j->repair ? !j->begun : j->count && next_piece(t, p))) {
        bool zeros = !j->repair && has_zeros(p, j->region);
        piece_begin(t, link, j->repair ? 0 : stamp_of(t, p, j->region), zeros);
    }
}

/* True: a piece was asked for. */
static bool step(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    if (j->source < 0 || !t->peer[j->source].insync)
        j->source = pick_source(t, link, j);
    if (j->snap && repl_snap_find(&t->view.snaps, j->snap) < 0) {
        j->state = JOB_NONE; /* it was deleted */
        t->changed = true;
        return false;
    }
    if (j->source < 0) { /* every source failed: again, later */
        int alone = t->insync ? __builtin_ctz(t->insync) : -1;
        j->failures += j->avoid != 0;
        if (j->failures >= TRIES && alone >= 0 && !j->repair && elect_without(t, alone))
            return false;
        j->avoid = 0;
        j->retry_at = t->now + RETRY;
        if (j->repair)
            j->state = JOB_NONE;
        return false;
    }
    begin_pieces(t, link);
    if (j->asks != j->begins) {
        piece_ask(t, link);
        return true;
    }
    if (!GUARD(44, !j->flying))
        return false;
    if (j->region < regions(t)) {
        maybe_mark(t, link);
        ask_maps(t, link);
    } else if (j->snap) {
        j->state = JOB_SNAP;
        rebuild_ask(t, link, REPL_SNAP, j->snap, 0, 0);
    } else {
        send_done(t, link);
    }
    return false;
}

/* The pieces under way, or the entries, begin again with another source. */
static void again(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    struct piece *pieces = t->pieces[link];
    if (j->state == JOB_NONE || j->state == JOB_SNAP || j->state == JOB_DONE)
        return;
    for (int n = 0; n < REPL_PIECES; n++) {
        uint32_t region = (uint32_t)(pieces[n].offset >> t->view.region_shift);
        if (pieces[n].state != PIECE_NONE && !GUARD(54, region >= j->region))
            j->region = region;
        pieces[n].state = PIECE_NONE;
    }
    j->flying = 0;
    j->begins = j->asks = 0;
    j->source = -1;
    j->tag = 0;
    j->piece_length = 0;
    j->count = 0;
    j->state = j->repair ? JOB_NONE : JOB_READY; /* scrub comes again */
}

void rebuild_repair(struct repl_target *t, int link, int source, uint64_t offset)
{
    struct peer *p = &t->peer[link];
    if (!p->insync || p->job.state != JOB_NONE)
        return;
    uint64_t start = offset / REPL_PIECE * REPL_PIECE, end = start + REPL_PIECE;
    end = end < t->view.size ? end : t->view.size;
    new_job(t, link, source);
    p->job.repair = true;
    p->job.piece = start;
    p->job.piece_length = end - start;
}

/* A rebuild that goes on now, and whose end brings a quorum nearer. */
static bool may_complete(const struct repl_target *t, int link)
{
    const struct peer *p = &t->peer[link];
    const struct job *j = &p->job;
    bool works = (j->state == JOB_READY || j->state == JOB_MAP) && t->now >= j->retry_at;
    return works && !j->repair && !p->lost && t->now - p->heard < t->cfg.lag_ns &&
           bit(link) & (t->q[0].links | t->q[1].links | t->q[2].links | t->q[3].links);
}

/*
 * Whose jobs go on. While clients wait for a quorum those that complete it come first, the nearest to the truth
 * before the others: all at once would take as long as all of them.
 */
static uint16_t whose_turn(const struct repl_target *t)
{
    uint16_t with = counted(t), first = 0;
    while (!quorum_met(t, with)) {
        int next = -1;
        each_peer(t, i)
        {
            if (!(with & bit(i)) && may_complete(t, i) &&
                (next < 0 || t->peer[i].fork > t->peer[next].fork))
                next = i;
        }
        if (next < 0)
            return UINT16_MAX;
        with |= bit(next);
        first |= bit(next);
    }
    return first ? first : UINT16_MAX;
}

void rebuild_turn(struct repl_target *t)
{
    if (t->cfg.rebuild_rate) {
        int64_t most = (int64_t)t->cfg.rebuild_rate / 10 + REPL_PIECE;
        t->rate_tokens +=
            (t->now - t->rate_at) / 1000 * (int64_t)(t->cfg.rebuild_rate / 1000) / 1000;
        t->rate_tokens = t->rate_tokens < most ? t->rate_tokens : most;
        t->rate_at = t->now;
    }
    pace_turn(t);
    uint16_t turn = whose_turn(t);
    each_peer(t, i)
    {
        struct job *j = &t->peer[i].job;
        while (turn & bit(i) && j->state == JOB_READY && t->now >= j->retry_at &&
               (t->peer[i].joined || j->snap) && j->flying < REPL_FLYING && pace_room(t) > 0 &&
               (!t->cfg.rebuild_rate || t->rate_tokens > 0) && step(t, i))
            pace_turn(t);
    }
}

void rebuild_peer_down(struct repl_target *t, int link)
{
    each_peer(t, i) if (t->peer[i].job.source == link) again(t, i);
}

void rebuild_source_failed(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    j->avoid |= bit(j->source);
    j->retry_at = t->now;
    again(t, link);
}

static void take_map(struct repl_target *t, int link, bool own, const struct repl_msg *m,
                     const void *payload)
{
    struct job *j = &t->peer[link].job;
    if (m->length != j->count * 8 || m->offset != j->first) {
        target_drop(t, own ? link : j->source, "a region map of another size");
        return;
    }
    memcpy(own ? j->own : j->theirs, payload, m->length);
    *(own ? &j->have_own : &j->have_source) = true;
    if (j->have_own && j->have_source)
        j->state = JOB_READY;
}

void rebuild_answer(struct repl_target *t, int link, const struct repl_msg *m, const void *payload,
                    struct repl_buf *owner)
{
    each_peer(t, i)
    {
        struct job *j = &t->peer[i].job;
        bool own = i == link;
        if (!own && j->source != link)
            continue;
        if (j->state == JOB_MAP && m->type == REPL_MAP_OK && m->seq == j->tag) {
            take_map(t, i, own, m, payload);
            return;
        }
        for (int n = 0; n < REPL_PIECES && j->state == JOB_READY; n++) {
            struct piece *c = &t->pieces[i][n];
            if (c->state != PIECE_NONE && c->tag == m->seq) {
                piece_answer(t, i, c, own, m, payload, owner);
                return;
            }
        }
    }
}

void repl_target_set_rate(struct repl_target *t, uint64_t bytes_per_second)
{
    t->cfg.rebuild_rate = bytes_per_second;
    t->rate_at = t->now;
    t->rate_tokens = 0;
}

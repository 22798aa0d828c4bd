/*
 * Rebuilds: each replica that is not in sync has a job, which goes through the regions in order.
 *
 *     JOIN ─> READY ─> MAP: entries of 510 regions of both ─┐
 *               ^                                           v
 *               │      region in delta: BEGIN, SUMS of both ─> READ from the source, DATA ─┐
 *               └───────────────────────────────────────────────────────────── next run ───┘
 *             end: DONE ─> in sync
 *
 * Answers carry the tag of the step they belong to; when a source is lost the step begins again with another
 * tag and another source, and old answers mean nothing. Invariants: a region is passed over only if both
 * entries are at most the fork; BEGIN goes out before the sums are asked for, at the same point of the order.
 */
#include "base/mem.h"
#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/target_impl.h"
#include "repl/view.h"

static const int64_t RETRY = 200 * 1000000LL;

static uint64_t new_tag(struct repl_target *t)
{
    return (uint64_t)1 << 63 | ++t->tags;
}

static uint32_t regions(const struct repl_target *t)
{
    uint64_t span = (uint64_t)1 << t->view.region_shift;
    return (uint32_t)((t->view.size + span - 1) >> t->view.region_shift);
}

static void ask(struct repl_target *t, int link, uint8_t type, uint64_t tag, uint64_t offset,
                uint64_t count)
{
    struct repl_msg m = {.type = type, .seq = tag, .offset = offset, .count = count};
    target_send(t, link, &m, NULL, 0, NULL);
}

static int pick_source(const struct repl_target *t, int link, uint16_t avoid)
{
    int best = -1;
    each_peer(t, i)
    {
        if (i == link || !t->peer[i].insync || avoid & bit(i))
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

void rebuild_start(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct repl_msg m = {.type = REPL_JOIN, .seq = t->last};
    target_send(t, link, &m, NULL, 0, NULL);
    p->joined = true;
    p->applied = p->durable = t->last;
    p->owed = 0;
    p->fork = p->lost ? 0 : repl_fork(&p->sb.lineage, p->pos, &t->lineage);
    p->mark = p->lost || !p->sb.mark_region ? 0 : repl_fork_mark(p->sb.mark_pos, &t->lineage);
    p->job = (struct job){.state = JOB_READY, .source = -1, .since = t->now};
    if (link == t->truth)
        send_done(t, link);
}

/* Below the mark the replica has everything up to the mark's position. */
static uint64_t fork_at(const struct peer *p, uint32_t region)
{
    return p->mark > p->fork && region < p->sb.mark_region ? p->mark : p->fork;
}

static void begin_piece(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    uint64_t stamp = 0;
    if (!j->repair) {
        uint64_t own = j->own[j->region - j->first], theirs = j->theirs[j->region - j->first];
        uint64_t high = p->pos > p->sb.mark_pos ? p->pos : p->sb.mark_pos;
        /* Above all that the replica may be taken for, should it crash before the piece is copied. */
        bool safe = own <= fork_at(p, j->region) && theirs > high;
        stamp = GUARD(25, safe) ? theirs : repl_pos(t->epoch, t->last);
    }
    ask(t, link, REPL_BEGIN, stamp, j->piece, j->piece_length);
    j->tag = new_tag(t);
    j->have_source = j->have_own = false;
    j->at = 0;
    j->state = JOB_SUMS;
    ask(t, link, REPL_SUMS, j->tag, j->piece, j->piece_length);
    ask(t, j->source, REPL_SUMS, j->tag, j->piece, j->piece_length);
    t->rate_tokens -= (int64_t)j->piece_length;
    j->bytes += j->piece_length;
}

static void ask_maps(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    uint32_t left = regions(t) - j->region;
    j->first = j->region;
    j->count = left < t->cfg.map_chunk ? left : t->cfg.map_chunk;
    j->tag = new_tag(t);
    j->have_source = j->have_own = false;
    j->state = JOB_MAP;
    ask(t, link, REPL_MAP, j->tag, j->first, j->count);
    ask(t, j->source, REPL_MAP, j->tag, j->first, j->count);
}

/* After some megabytes: what lies behind is as good as new, if only it is durable. */
static void maybe_mark(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    bool further = !p->mark || j->region > p->sb.mark_region;
    if (!t->serving || !further || j->bytes - j->marked < t->cfg.mark_bytes || !j->region)
        return;
    struct repl_msg m = {
        .type = REPL_FLUSH, .flags = REPL_MARK, .seq = t->last, .offset = j->region};
    target_send(t, link, &m, NULL, 0, NULL);
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
    end = end < t->view.size ? end : t->view.size;
    j->piece_length = end - j->piece < REPL_PIECE ? end - j->piece : REPL_PIECE;
    return true;
}

static void step(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    struct job *j = &p->job;
    if (j->source < 0 || !t->peer[j->source].insync)
        j->source = pick_source(t, link, j->avoid);
    if (j->source < 0) { /* every source failed: again, later */
        j->avoid = 0;
        j->retry_at = t->now + RETRY;
        if (j->repair)
            j->state = JOB_NONE;
        return;
    }
    if (j->repair || (j->count && next_piece(t, p))) {
        begin_piece(t, link);
    } else if (j->region < regions(t)) {
        maybe_mark(t, link);
        ask_maps(t, link);
    } else {
        send_done(t, link);
    }
}

/* The piece, or the entries, begin again with another source. */
static void again(struct job *j)
{
    if (j->state == JOB_NONE || j->state == JOB_DONE)
        return;
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
    p->job = (struct job){.state = JOB_READY,
                          .repair = true,
                          .source = source,
                          .piece = start,
                          .piece_length = end - start};
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
    each_peer(t, i)
    {
        struct job *j = &t->peer[i].job;
        if (j->state == JOB_READY && t->now >= j->retry_at && t->peer[i].joined &&
            (!t->cfg.rebuild_rate || t->rate_tokens > 0))
            step(t, i);
    }
}

void rebuild_peer_down(struct repl_target *t, int link)
{
    each_peer(t, i) if (t->peer[i].job.source == link) again(&t->peer[i].job);
}

/* The next run of blocks that differ is read; at the end of the piece the next step comes. */
static void next_run(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    uint64_t block = (uint64_t)1 << t->view.block_shift, from = j->at, to;
    while (from < j->piece_length && j->own_sum[from / block] == j->theirs_sum[from / block])
        from += block;
    if (from >= j->piece_length) {
        j->state = j->repair ? JOB_NONE : JOB_READY;
        return;
    }
    for (to = from + block;
         to < j->piece_length && j->own_sum[to / block] != j->theirs_sum[to / block];)
        to += block;
    to = to < j->piece_length ? to : j->piece_length;
    j->at = to;
    j->state = JOB_READ;
    j->tag = new_tag(t);
    ask(t, j->source, REPL_READ, j->tag, j->piece + from, to - from);
}

static void take_data(struct repl_target *t, int link, const struct repl_msg *m,
                      const void *payload, struct repl_buf *owner)
{
    struct iovec iov = {(void *)payload, m->length};
    struct repl_msg data = {.type = REPL_DATA,
                            .offset = m->offset,
                            .count = m->length,
                            .length = m->length,
                            .data_crc = m->data_crc};
    target_send(t, link, &data, &iov, 1, owner);
    t->peer[link].job.copied += m->length;
    next_run(t, link);
}

static void source_failed(struct repl_target *t, struct job *j)
{
    j->avoid |= bit(j->source);
    j->retry_at = t->now;
    again(j);
}

static void take_sums(struct repl_target *t, int link, bool own, const struct repl_msg *m,
                      const void *payload)
{
    struct job *j = &t->peer[link].job;
    uint64_t block = (uint64_t)1 << t->view.block_shift;
    uint64_t n = (j->piece_length + block - 1) / block;
    bool failed = m->flags & REPL_FAILED || m->length != n * 8;
    if (failed && !own) {
        source_failed(t, j);
        return;
    }
    if (!failed)
        memcpy(own ? j->own_sum : j->theirs_sum, payload, n * 8);
    if (own) {
        j->have_own = true;
        j->own_failed = failed;
    } else {
        j->have_source = true;
    }
    if (!j->have_own || !j->have_source)
        return;
    for (uint64_t i = 0; j->own_failed && i < n; i++) /* what cannot be read differs */
        j->own_sum[i] = ~j->theirs_sum[i];
    next_run(t, link);
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
        if (m->seq != j->tag || (!own && j->source != link))
            continue;
        if (j->state == JOB_MAP && m->type == REPL_MAP_OK) {
            take_map(t, i, own, m, payload);
        } else if (j->state == JOB_SUMS && m->type == REPL_SUMS_OK) {
            take_sums(t, i, own, m, payload);
        } else if (j->state == JOB_READ && m->type == REPL_READ_OK && !own) {
            if (m->flags & REPL_FAILED)
                source_failed(t, j);
            else
                take_data(t, i, m, payload, owner);
        }
        return;
    }
}

void repl_target_set_rate(struct repl_target *t, uint64_t bytes_per_second)
{
    t->cfg.rebuild_rate = bytes_per_second;
    t->rate_at = t->now;
    t->rate_tokens = 0;
}

/*
 * The target's links and messages, and the turn.
 *
 *            hellos of k voters         k promises                truth: JOIN, DONE; others: rebuild
 *  COLLECT ───────────────────> PROMISE ──────────> ACTIVE ── cf in sync: serving
 *     ^                            │                  │ nobody in sync is left
 *     └────────────────────────────┴──────────────────┘           refused after having served: FENCED
 *
 * Everything is decided again in each turn from what is there; no decision waits for a message that may
 * not come.
 */
#include "repl/target.h"

#include <errno.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "repl/target_impl.h"
#include "repl/view.h"

enum { MS = 1000000 };

static void set_defaults(struct repl_target_config *c)
{
    c->block_shift = c->block_shift ? c->block_shift : 12;
    if (!c->region_shift)
        for (c->region_shift = 16; c->size >> c->region_shift > 1 << 20;)
            c->region_shift++;
    c->window = c->window ? c->window : 1 << 14;
    c->reads = c->reads ? c->reads : 1024;
    c->lag_bytes = c->lag_bytes ? c->lag_bytes : 32 << 20;
    c->lag_ns = c->lag_ns ? c->lag_ns : 400 * (int64_t)MS;
    c->lease_ns = c->lease_ns ? c->lease_ns : 600 * (int64_t)MS;
    c->dead_ns = c->dead_ns ? c->dead_ns : 5000 * (int64_t)MS;
    c->grace_ns = c->grace_ns ? c->grace_ns : 30000 * (int64_t)MS;
    c->place_shift = c->place_shift ? c->place_shift : 22;
    c->map_chunk = c->map_chunk ? c->map_chunk : REPL_PAGE_ENTRIES;
    c->ahead = !c->ahead ? 1 : c->ahead < REPL_PIECES ? c->ahead : REPL_PIECES;
    c->mark_bytes = c->mark_bytes ? c->mark_bytes : 256 << 20;
}

struct repl_target *repl_target_new(const struct repl_target_config *c,
                                    const struct repl_target_ops *ops, void *ctx)
{
    struct repl_target *t = NEW(struct repl_target);
    t->cfg = *c;
    set_defaults(&t->cfg);
    t->ops = ops;
    t->ctx = ctx;
    t->truth = -1;
    t->base = 1;
    t->mask = t->cfg.window - 1;
    t->window = mem_zalloc(t->cfg.window * sizeof(*t->window));
    t->reads = mem_zalloc(t->cfg.reads * sizeof(*t->reads));
    t->read_free = mem_zalloc(t->cfg.reads * sizeof(*t->read_free));
    for (uint32_t i = 0; i < t->cfg.reads; i++)
        t->read_free[t->read_free_n++] = t->cfg.reads - 1 - i;
    list_init(&t->queue);
    list_init(&t->syncs);
    list_init(&t->parked);
    list_init(&t->revert.link);
    return t;
}

void repl_target_create(struct repl_target *t, uint64_t size, uint8_t rf, uint8_t cf)
{
    if (t->view.flags & REPL_FORMED || t->cfg.create)
        return;
    t->cfg.create = true;
    t->cfg.size = size;
    t->cfg.rf = rf;
    t->cfg.cf = cf;
    t->cfg.region_shift = 0; /* by the size */
    set_defaults(&t->cfg);
    t->changed = true;
}

void repl_target_free(struct repl_target *t)
{
    if (!t)
        return;
    free(t->window);
    free(t->reads);
    free(t->read_free);
    free(t);
}

void target_send(struct repl_target *t, int link, struct repl_msg *m, const struct iovec *iov,
                 int n, struct repl_buf *owner)
{
    m->volume = t->cfg.volume;
    m->epoch = t->epoch;
    t->ops->send(t->ctx, link, m, iov, n, owner);
}

void target_restart(struct repl_target *t)
{
    t->phase = COLLECT;
    t->elect_at = t->now;
    t->truth = -1;
    t->insync = 0;
    t->next.version = 0;
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        p->ask = ASK_NO;
        p->joined = p->insync = false;
        p->view_ok = p->view_sent = 0;
        p->job.state = JOB_NONE;
    }
    t->scrub.active = false;
    io_restart(t);
    list_unlink(&t->revert.link); /* nobody is told that it failed and then sees it happen */
    t->revert_status = 0;
    if (t->admin)
        admin_end(t, -EAGAIN);
}

static void peer_down(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    bool mattered = p->insync || t->truth == link;
    t->changed = true;
    p->open = p->hello = p->joined = p->insync = false;
    p->ask = ASK_NO;
    p->job.state = JOB_NONE;
    t->insync &= (uint16_t)~bit(link);
    view_sets(t);
    if (t->phase == ACTIVE && mattered && !t->insync) {
        target_restart(t);
        return;
    }
    if (t->truth == link)
        t->truth = -1;
    admin_peer_down(t, link);
    scrub_peer_down(t, link);
    rebuild_peer_down(t, link);
    io_peer_down(t, link);
}

void target_drop(struct repl_target *t, int link, const char *why)
{
    if (!t->peer[link].open)
        return;
    peer_down(t, link);
    t->ops->close(t->ctx, link, why);
}

void repl_target_open(struct repl_target *t, int link)
{
    t->peer[link] = (struct peer){.open = true, .heard = t->now, .opened = t->now};
}

void repl_target_close(struct repl_target *t, int link)
{
    if (t->peer[link].open)
        peer_down(t, link);
}

void target_became_insync(struct repl_target *t, int link)
{
    struct peer *p = &t->peer[link];
    t->changed = true;
    p->insync = true;
    p->job.state = JOB_NONE;
    t->insync |= bit(link);
    t->truth = -1;
    t->was_active = true;
    io_joined(t, link);
    t->ops->event(t->ctx, REPL_EV_INSYNC, (uint64_t)link, 0);
}

void target_fenced(struct repl_target *t, uint32_t by)
{
    t->phase = FENCED;
    t->serving = false;
    each_peer(t, i) target_drop(t, i, "another target has a newer epoch");
    t->ops->event(t->ctx, REPL_EV_FENCED, by, 0);
}

/* The rebuild's first step, as soon as the replica has a view of this epoch. */
static void bring_in(struct repl_target *t)
{
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        if (p->hello && p->ask == ASK_NO && view_link(t, &p->sb.replica) == i)
            ask_promise(t, i);
        if (p->ask == ASK_YES && !p->view_sent)
            view_tell(t, i);
        if (p->ask != ASK_YES || p->joined || p->view_ok >> 32 != t->epoch)
            continue;
        if (p->job.state != JOB_NONE || snap_taking(t))
            continue;
        if (i == t->truth || t->insync)
            rebuild_start(t, i);
    }
}

/*
 * Of two with one id one is a copy: a folder was copied, or put back from a backup. Who greets is let go if it is
 * behind what the other has; else the other is an end of a connection that it has lost. False: it was let go.
 */
static bool is_itself(struct repl_target *t, int link, const struct repl_super *s)
{
    each_peer(t, i)
    {
        const struct peer *p = &t->peer[i];
        if (i == link || !p->hello || !uuid_eq(&p->sb.replica, &s->replica))
            continue;
        uint64_t has = p->insync ? repl_pos(t->epoch, p->durable) : p->sb.pos;
        if (s->pos < has || s->boot < p->sb.boot) {
            target_drop(t, link, "an older copy of a replica that is connected");
            return false;
        }
        target_drop(t, i, "the replica has connected again");
    }
    return t->peer[link].open;
}

static void take_state(struct repl_target *t, int link, const struct repl_msg *m,
                       const void *payload)
{
    struct peer *p = &t->peer[link];
    struct repl_super s;
    if (m->length != REPL_SUPER_SIZE || repl_super_decode(payload, &s, NULL) < 0 ||
        !uuid_eq(&s.volume, &t->cfg.volume)) {
        target_drop(t, link, "a greeting that cannot be read");
        return;
    }
    if (m->type == REPL_HELLO && !is_itself(t, link, &s))
        return;
    p->sb = s;
    p->held = s.held;
    p->hello = true;
    p->pos = m->seq;
    p->blank = m->flags & REPL_BLANK;
    p->intact = m->flags & REPL_INTACT;
    p->says_lost = m->flags & REPL_LOST;
    if (p->says_lost && m->type == REPL_HELLO)
        t->ops->event(t->ctx, REPL_EV_LOST, (uint64_t)link, 0);
    if (m->type == REPL_HELLO || p->ask != ASK_SENT || m->epoch != t->epoch)
        return;
    p->ask = ASK_YES;
    p->pong = t->now - MUTANT(103, t->cfg.lease_ns, 0);
    if (t->phase == ACTIVE) {
        int member = repl_view_find(&t->view, &s.replica);
        /* While the volume is being made there is nothing that could be lost. */
        p->lost = member >= 0 && t->view.flags & REPL_FORMED &&
                  has_lost(p, &t->view.member[member], &t->view);
        view_sets(t);
    }
}

static void refused(struct repl_target *t, int link, const struct repl_msg *m)
{
    if (m->seq < t->epoch || t->peer[link].ask == ASK_NO)
        return; /* of an epoch that is over */
    if (m->seq > REPL_EPOCH_LAST) {
        target_drop(t, link, "an epoch that cannot be");
        return;
    }
    if (m->seq == t->epoch && t->peer[link].ask == ASK_YES)
        return; /* it answers what was sent before its promise */
    if (t->was_active) {
        target_fenced(t, (uint32_t)m->seq);
        return;
    }
    t->epoch = (uint32_t)m->seq;
    target_restart(t);
    t->elect_at = t->now + t->cfg.lease_ns / 4 * (1 + (int64_t)(t->owner >> 60) % 4);
}

void repl_target_input(struct repl_target *t, int link, const struct repl_msg *m,
                       const struct iovec *iov, int n, struct repl_buf *owner)
{
    const void *payload = n ? iov->iov_base : NULL;
    struct peer *p = &t->peer[link];
    if (!p->open || t->phase == FENCED)
        return;
    p->heard = t->now;
    if (m->type != REPL_ACK && m->type != REPL_READ_OK && m->type != REPL_PONG)
        t->changed = true;
    if (m->type == REPL_HELLO || m->type == REPL_PROMISED) {
        take_state(t, link, m, payload);
        return;
    }
    if (m->type == REPL_REFUSE) {
        refused(t, link, m);
        return;
    }
    if (p->ask != ASK_YES || m->epoch != t->epoch)
        return; /* an answer to an epoch that is over */
    switch (m->type) {
    case REPL_ACK:
        if (p->joined && GUARD(34, m->count == p->join))
            io_ack(t, link, m->seq, m->offset);
        break;
    case REPL_PONG:
        p->pong = MUTANT(102, (int64_t)m->seq, t->now);
        break;
    case REPL_VIEW_OK:
        view_ok(t, link, m->seq);
        break;
    case REPL_DONE_OK:
        if (p->joined && !p->insync && (p->job.state == JOB_DONE)) {
            p->durable = repl_pos_count(m->seq);
            target_became_insync(t, link);
        }
        break;
    case REPL_READ_OK:
        if (!read_answer(t, link, m, iov, n))
            rebuild_answer(t, link, m, payload, owner);
        break;
    case REPL_SUMS_OK:
        scrub_answer(t, link, m, payload);
        rebuild_answer(t, link, m, payload, owner);
        break;
    case REPL_MAP_OK:
        rebuild_answer(t, link, m, payload, owner);
        break;
    case REPL_SNAP_OK:
        if (!(m->flags & REPL_FAILED))
            repl_held_add(&p->held, m->seq);
        rebuild_snapped(t, link, m);
        admin_answer(t, link, m);
        break;
    case REPL_PREPARE_OK:
        admin_answer(t, link, m);
        break;
    default:
        target_drop(t, link, "a message that no replica sends");
    }
}

static void ping(struct repl_target *t)
{
    if (t->now < t->ping_at)
        return;
    t->ping_at = t->now + t->cfg.lease_ns / 6;
    each_peer(t, i)
    {
        struct repl_msg m = {.type = REPL_PING, .seq = (uint64_t)t->now};
        if (t->peer[i].ask == ASK_YES)
            target_send(t, i, &m, NULL, 0, NULL);
    }
}

/* How long it may take for a write to be applied. */
static int64_t patience(const struct repl_target *t, const struct peer *p)
{
    /* A snapshot, or the way back to one, may take some time; and so may it to catch up, unless clients wait for it. */
    bool full = t->last + 1 - t->base >= t->cfg.window;
    bool patient = p->insync ? snap_taking(t) || t->revert_status > 0 : !full;
    return patient ? 10 * t->cfg.lag_ns : t->cfg.lag_ns;
}

/*
 * Who is silent or too far behind is dropped; the latter only if there are enough others. Who is not asked anything has
 * nothing to say but its greeting, and comes again when it hears nothing.
 */
static void watch(struct repl_target *t)
{
    if (t->now < t->watch_at)
        return;
    t->changed = true;
    t->watch_at = t->now + t->cfg.lag_ns / 16;
    io_watch(t);
    each_peer(t, i)
    {
        struct peer *p = &t->peer[i];
        const struct entry *oldest = &t->window[(p->applied + 1) & t->mask];
        int64_t lag = p->joined && p->applied < t->last ? t->now - oldest->since : 0;
        bool behind = lag > patience(t, p) || p->owed > t->cfg.lag_bytes;
        bool spare = !p->insync || quorum_met(t, counted(t) & (uint16_t)~bit(i));
        bool silent = t->now - p->heard > (p->ask == ASK_YES ? 1 : 2) * t->cfg.dead_ns;
        if (!silent && !(behind && spare))
            continue;
        if (p->hello)
            t->ops->event(t->ctx, REPL_EV_DROPPED, (uint64_t)i, 0);
        target_drop(t, i, silent ? "the replica was silent" : "the replica fell behind");
    }
}

void repl_target_time(struct repl_target *t, int64_t now)
{
    t->now = now;
}

int64_t repl_target_turn(struct repl_target *t, int64_t now)
{
    t->now = now;
    if (t->phase == FENCED)
        return INT64_MAX;
    watch(t);
    if (t->phase == COLLECT && now >= t->elect_at)
        collect(t);
    if (t->phase == PROMISE)
        elect(t);
    if (t->phase == ACTIVE && t->changed) {
        t->changed = false;
        view_step(t);
        snap_turn(t);
        bring_in(t);
    }
    ping(t);
    io_turn(t);
    if (t->phase == ACTIVE)
        rebuild_turn(t);
    if (t->phase == ACTIVE)
        scrub_turn(t);
    REPL_CHECK(repl_target_check(t));
    int64_t next = t->ping_at < t->watch_at ? t->ping_at : t->watch_at;
    return t->pace.next_at > now && t->pace.next_at < next ? t->pace.next_at : next;
}

void repl_target_bye(struct repl_target *t)
{
    each_peer(t, i)
    {
        struct repl_msg m = {.type = REPL_BYE};
        if (t->peer[i].ask == ASK_YES)
            target_send(t, i, &m, NULL, 0, NULL);
    }
}

/*
 * Connections: messages that are delayed, blocked and lost, always in order and without gaps; who finds no room for one
 * is given it again. An end that is gone is heard of some time later.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

struct message *net_message(const struct repl_msg *m, size_t length)
{
    struct message *q = mem_alloc(sizeof(*q) + length);
    q->next = NULL;
    q->length = (uint32_t)length;
    repl_frame_encode(m, q->header);
    return q;
}

void net_message_free(struct repl_buf *b)
{
    free(container_of(b, struct message, buf));
}

void net_post(struct sim *s, int t, int r, int to, struct message *q)
{
    struct conn *c = &s->conn[t][r];
    int64_t at = s->now + 1000 + (int64_t)sim_below(s, (uint64_t)s->delay);
    if (sim_chance(s, 2))
        at += (int64_t)sim_below(s, (uint64_t)s->delay * 20);
    if (c->clear_at[to] == NEVER) {
        repl_buf_unref(&q->buf);
        return;
    }
    if (c->blocked[to] > at)
        at = c->blocked[to];
    if (at <= c->clear_at[to])
        at = c->clear_at[to] + 1;
    c->clear_at[to] = at;
    world_event(s, at, EV_MESSAGE, t * REPLICAS + r, to, c->life, q);
}

void net_free_held(struct conn *c, int side)
{
    while (c->held[side]) {
        struct message *q = c->held[side];
        c->held[side] = q->next;
        repl_buf_unref(&q->buf);
    }
    c->held_end[side] = &c->held[side];
}

/* An end hears that the other is gone: some time later, and not while nothing gets through. */
static void tell_broken(struct sim *s, int t, int r, int side)
{
    struct conn *c = &s->conn[t][r];
    int64_t at = s->now + 1 + (int64_t)sim_below(s, (uint64_t)(20 * MS));
    world_event(s, c->blocked[side] > at ? c->blocked[side] : at, EV_BROKEN, t * REPLICAS + r, side,
                c->life, NULL);
}

/* One end is gone: nothing more is exchanged. */
void net_end(struct sim *s, int t, int r, int side)
{
    struct conn *c = &s->conn[t][r];
    c->up[side] = false;
    net_free_held(c, side);
    if (c->up[!side])
        tell_broken(s, t, r, !side);
}

void conn_break(struct sim *s, int t, int r)
{
    struct conn *c = &s->conn[t][r];
    for (int side = 0; side < 2; side++)
        if (c->up[side])
            tell_broken(s, t, r, side);
    c->clear_at[0] = c->clear_at[1] = NEVER;
}

void net_dial(struct sim *s, int r)
{
    struct sim_replica *m = &s->replica[r];
    for (int t = 0; t < TARGETS; t++) {
        struct conn *c = &s->conn[t][r];
        if (!s->target[t].p.up || c->up[0] || c->up[1] || c->blocked[0] > s->now ||
            c->blocked[1] > s->now || !m->used || m->stopping)
            continue;
        c->life++;
        c->up[0] = c->up[1] = true;
        c->promised = 0;
        c->clear_at[0] = c->clear_at[1] = s->now;
        for (int side = 0; side < 2; side++)
            net_free_held(c, side);
        repl_target_open(s->target[t].core, r);
        repl_replica_open(m->core, t);
        sim_trace(s, "replica %d connects to target %d", r, t);
    }
    world_event(s, s->now + 2 * MS + (int64_t)sim_below(s, (uint64_t)(6 * MS)), EV_DIAL, r, 0,
                m->p.life, NULL);
}

/* Delivery. */

/* A payload as it came: in pieces, where it may be. How many. */
static int cut_payload(struct sim *s, struct message *q, const struct repl_msg *m)
{
    uint32_t cut = repl_frame_in_pieces(m) && m->length ? (uint32_t)sim_below(s, m->length) : 0;
    q->iov[0] = (struct iovec){q->payload, cut ? cut : m->length};
    q->iov[1] = (struct iovec){q->payload + cut, m->length - cut};
    return !m->length ? 0 : cut ? 2 : 1;
}

static void give(struct sim *s, int t, int r, int to, struct message *q)
{
    struct repl_msg m;
    struct err e;
    struct conn *c = &s->conn[t][r];
    if (repl_frame_decode(q->header, &s->volume, &m, &e) < 0 || m.length != q->length ||
        repl_iov_crc(&(struct iovec){q->payload, q->length}, 1) != m.data_crc) {
        sim_fail(s, "a frame that cannot be read: %s", e.msg);
        repl_buf_unref(&q->buf);
        return;
    }
    if (s->trace && m.type != REPL_PING && m.type != REPL_PONG)
        sim_trace(s, "  %s%d %s %s%d: epoch %u seq %lx offset %lu count %lu flags %x",
                  to ? "t" : "r", to ? t : r, repl_type_name(m.type), to ? "r" : "t", to ? r : t,
                  m.epoch, m.seq, m.offset, m.count, m.flags);
    int n = cut_payload(s, q, &m);
    if (!to) {
        struct repl_status st;
        if (m.type == REPL_VIEW_OK)
            repl_target_status(s->target[t].core, &st);
        repl_target_time(s->target[t].core, local_time(s, &s->target[t].p));
        repl_target_input(s->target[t].core, r, &m, q->iov, n, &q->buf);
        if (m.type == REPL_VIEW_OK)
            claims_answered(s, t, st.version);
        repl_buf_unref(&q->buf);
        return;
    }
    life_given(s, t, r, m.type);
    claims_given(s, r, &m);
    if (!repl_replica_input(s->replica[r].core, t, &m, q->iov, n, &q->buf)) {
        q->next = NULL;
        *c->held_end[1] = q;
        c->held_end[1] = &q->next;
        return;
    }
    repl_buf_unref(&q->buf);
}

/* What found no room is given again, in order. */
void net_give_held(struct sim *s, int r)
{
    for (int t = 0; t < TARGETS; t++) {
        struct conn *c = &s->conn[t][r];
        struct message *q = c->held[1];
        c->held[1] = NULL;
        c->held_end[1] = &c->held[1];
        while (q) {
            struct message *next = q->next;
            if (!c->up[1]) {
                repl_buf_unref(&q->buf);
            } else if (c->held[1]) {
                q->next = NULL;
                *c->held_end[1] = q;
                c->held_end[1] = &q->next;
            } else {
                give(s, t, r, 1, q);
            }
            q = next;
        }
    }
}

void net_arrived(struct sim *s, struct event *e)
{
    int t = e->a / REPLICAS, r = e->a % REPLICAS;
    struct conn *c = &s->conn[t][r];
    struct message *q = e->p;
    if (c->life != e->life || !c->up[e->b] || c->clear_at[e->b] == NEVER) {
        repl_buf_unref(&q->buf);
        return;
    }
    if (e->b && c->held[1]) {
        q->next = NULL;
        *c->held_end[1] = q;
        c->held_end[1] = &q->next;
        return;
    }
    give(s, t, r, e->b, q);
}

void net_broken(struct sim *s, struct event *e)
{
    int t = e->a / REPLICAS, r = e->a % REPLICAS;
    struct conn *c = &s->conn[t][r];
    if (c->life != e->life || !c->up[e->b])
        return;
    net_end(s, t, r, e->b);
    sim_trace(s, "%s %d sees its connection to %d broken", e->b ? "replica" : "target",
              e->b ? r : t, e->b ? t : r);
    if (e->b)
        repl_replica_close(s->replica[r].core, t);
    else
        repl_target_close(s->target[t].core, r);
}

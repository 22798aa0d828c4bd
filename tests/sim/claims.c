/*
 * What targets and replicas say is true at the moment when they say it. A wrong claim is noticed here long before it leads
 * to a wrong read, which often takes a second accident.
 *
 *   replica   PROMISED, HELLO, VIEW_OK, DONE_OK, ACK: what they name is on its disk, synced
 *             PROMISED: nobody else may still read by a lease; a crash does not end a lease
 *             HELLO, PROMISED: one that has lost something says so until it was rebuilt; one that has crashed does
 *             not say that its memory is whole
 *   target    client's READ: cf voters have a lease for it now, by their own clocks
 *             VIEW: nobody's floor is above what it has; a new snapshot is on cf voters, durably
 *             a write, or a flush, is complete: cf voters in sync have it
 *   both      drop nobody for a message that a sound program does not send
 */
#include <string.h>

#include "repl/meta.h"
#include "repl/view.h"
#include "sim.h"

/* Reasons for which a sound peer may be dropped. */
static const char *const reasons[] = {
    "another target has a newer epoch",
    "an older copy of a replica that is connected",
    "the metadata cannot be written",
    "the replica cannot take a snapshot",
    "the replica fell behind",
    "the replica has connected again",
    "the replica is no longer a member",
    "the replica stops",
    "the replica was silent",
    "the store cannot flush",
    "the store cannot grow to the size of the volume",
    "the store cannot write",
};

void claims_dropped(struct sim *s, const char *who, int i, const char *why)
{
    for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++)
        if (strcmp(reasons[k], why) == 0)
            return;
    sim_fail(s, "%s %d drops a connection because of %s", who, i, why);
}

/* By its own clock a replica still promises nobody else. */
static bool lease_runs(const struct sim *s, const struct sim_replica *r)
{
    return r->pong.owner && (double)(s->now - r->pong.at) * r->p.rate < (double)(LEASE - 1000);
}

static void check_promise(struct sim *s, struct sim_replica *r, const struct repl_super *now)
{
    const struct repl_super *sure = &r->sure.super;
    if (sure->promised != now->promised || sure->owner != now->owner)
        sim_fail(s, "replica %d gives a promise of epoch %u that is not durable", r->i,
                 now->promised);
    if (r->pong.owner != now->owner && lease_runs(s, r) && !r->wiped)
        sim_fail(s, "replica %d gives a promise while another target has a lease", r->i);
    /* With its disk it lost the lease that it gave, and the target knows: that was another connection. */
    if (r->wiped && r->pong.owner == now->owner)
        r->pong.owner = 0;
}

static const struct had *had_for(const struct sim_replica *r, uint64_t owner)
{
    static const struct had nothing;
    for (size_t i = 0; i < sizeof(r->had) / sizeof(r->had[0]) && r->had[i].owner; i++)
        if (r->had[i].owner == owner)
            return &r->had[i];
    return &nothing;
}

static void note_acked(struct sim_replica *r, const struct repl_super *now, uint64_t applied,
                       uint64_t durable)
{
    struct had *had = &r->had[0];
    if (had->owner != now->owner) {
        memmove(&r->had[1], &r->had[0], sizeof(r->had) - sizeof(r->had[0]));
        *had = (struct had){.owner = now->owner};
    }
    had->applied = applied > had->applied ? applied : had->applied;
    had->durable = durable > had->durable ? durable : had->durable;
}

void claims_replica(struct sim *s, int t, int i, const struct repl_msg *m)
{
    struct sim_replica *r = &s->replica[i];
    struct repl_replica_status st;
    if (m->type == REPL_READ_OK || m->type == REPL_SUMS_OK || m->type == REPL_MAP_OK)
        return; /* data has oracles of its own */
    repl_replica_status(r->core, &st);
    const struct repl_super *sure = &r->sure.super;
    switch (m->type) {
    case REPL_PROMISED:
        check_promise(s, r, st.super);
        s->conn[t][i].promised = st.super->owner;
        history_check_memory(s, i, false);
        if (r->gone == GONE_REBUILT || (sure->pos && !r->forgot))
            r->gone = GONE_NO;
        /* fall through */
    case REPL_HELLO:
        if (sure->boot != m->offset)
            sim_fail(s, "replica %d greets before its start is durable", i);
        if (r->forgot && !(m->flags & (REPL_LOST | REPL_BLANK)))
            sim_fail(s, "replica %d does not say that it has lost something", i);
        if (r->crashed && m->flags & REPL_INTACT)
            sim_fail(s, "replica %d says that its memory is whole, and it has crashed", i);
        break;
    case REPL_VIEW_OK:
        if (sure->view.version != m->seq)
            sim_fail(s, "replica %d confirms a view that is not durable", i);
        r->view_ok[0] = m->seq;
        if (!r->gone)
            r->view_ok[1] = m->seq;
        break;
    case REPL_DONE_OK:
        if (sure->pos < m->seq || sure->lineage.n != st.super->lineage.n)
            sim_fail(s, "replica %d says that it is rebuilt, and it is not durable", i);
        r->rejoined = false;
        r->gone = r->gone ? GONE_REBUILT : GONE_NO;
        note_acked(r, st.super, repl_pos_count(st.position), repl_pos_count(m->seq));
        history_check_memory(s, i, true);
        break;
    case REPL_ACK:
        if (r->rejoined || !st.complete || repl_pos_epoch(st.position) != m->epoch)
            break;
        if (m->offset > had_for(r, st.super->owner)->durable &&
            sure->pos < repl_pos(m->epoch, m->offset))
            sim_fail(s, "replica %d says that write %lu is durable, and is at %lx", i, m->offset,
                     sure->pos);
        note_acked(r, st.super, m->seq, m->offset);
        if (sim_chance(s, 20))
            history_check_memory(s, i, true);
        break;
    case REPL_SNAP_OK:
        if (!(m->flags & REPL_FAILED) && disk_find(&r->disk, m->seq) < 0)
            sim_fail(s, "replica %d says that it has snapshot %lx", i, m->seq);
        break;
    case REPL_PONG:
        r->pong.owner = st.super->owner;
        r->pong.at = s->now;
        break;
    default:
        break;
    }
}

void claims_given(struct sim *s, int i, const struct repl_msg *m)
{
    struct sim_replica *r = &s->replica[i];
    struct repl_replica_status st;
    r->rejoined |= m->type == REPL_JOIN;
    if (m->type == REPL_DONE)
        r->forgot = r->crashed = false;
    if (m->type != REPL_BYE)
        return;
    repl_replica_status(r->core, &st);
    if (m->epoch == st.super->promised)
        r->pong.owner = 0;
}

static struct sim_replica *replica_of(struct sim *s, const struct uuid *id)
{
    for (int i = 0; i < REPLICAS; i++)
        if (uuid_eq(&s->replica[i].id, id))
            return &s->replica[i];
    return NULL;
}

static bool has_applied(const struct sim *s, const struct sim_replica *r, int t, uint64_t count)
{
    return had_for(r, s->target[t].owner)->applied >= count;
}

/* How many voters that count have what `has` says, and how many should. */
static void count_voters(struct sim *s, int t, const char *what,
                         bool (*has)(const struct sim *s, const struct sim_replica *r, int t,
                                     uint64_t count),
                         uint64_t count)
{
    struct repl_status st;
    int n = 0;
    repl_target_status(s->target[t].core, &st);
    for (int m = 0; m < st.n; m++) {
        struct sim_replica *r = replica_of(s, &st.replica[m].replica_id);
        bool insync = strcmp(st.replica[m].mode, "Healthy") == 0;
        bool one = st.replica[m].quorum && r && has(s, r, t, count);
        n += one;
        if (one && insync && has == has_applied)
            r->ever = true;
    }
    if (n < st.cf)
        sim_fail(s, "target %d: %s (%lu) with %d voters of %d", t, what, count, n, st.cf);
}

static bool has_durably(const struct sim *s, const struct sim_replica *r, int t, uint64_t count)
{
    return had_for(r, s->target[t].owner)->durable >= count;
}

static bool has_lease(const struct sim *s, const struct sim_replica *r, int t, uint64_t count)
{
    (void)count;
    return r->pong.owner == s->target[t].owner && lease_runs(s, r);
}

/* Durably, as was checked then; since then it may have lost its disk, and the target has not heard of it. */
static bool has_promised(const struct sim *s, const struct sim_replica *r, int t, uint64_t epoch)
{
    (void)epoch;
    return s->conn[t][r->i].promised == s->target[t].owner;
}

/* A view counts: cf voters have it, and so have k whose disk is as it was. */
void claims_answered(struct sim *s, int t, uint64_t before)
{
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    if (st.version == before || st.version >> 32 != st.epoch)
        return;
    unsigned have = 0, sound = 0, voters = 0;
    for (int m = 0; m < st.n; m++) {
        const struct sim_replica *r = replica_of(s, &st.replica[m].replica_id);
        voters += st.replica[m].voter;
        have += st.replica[m].voter && r && r->view_ok[0] >= st.version;
        sound += st.replica[m].voter && r && r->view_ok[1] >= st.version;
    }
    if (have < st.cf || sound < repl_meet(st.cf, voters))
        sim_fail(s, "target %d: view %lx counts with %u voters, %u of them sound", t, st.version,
                 have, sound);
    for (int m = 0; m < st.n; m++) {
        struct sim_replica *r = replica_of(s, &st.replica[m].replica_id);
        if (!r || !st.replica[m].quorum || r->gone != GONE_REBUILT ||
            r->sure.super.promised != st.epoch)
            continue; /* that it was rebuilt in an epoch before is enough */
        const struct repl_view *v = &s->target[t].proposed;
        int k = repl_view_find(v, &r->id);
        if (k < 0 || (v->version == st.version && !(v->member[k].flags & REPL_INSYNC)))
            sim_fail(s, "target %d: replica %d counts again, and no view has its new floor", t,
                     r->i);
        r->gone = GONE_NO;
    }
}

void claims_serves(struct sim *s, int t)
{
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    history_serves(s, t, st.epoch);
    count_voters(s, t, "serves in an epoch", has_promised, st.epoch);
}

void claims_complete(struct sim *s, int t, const struct client_io *c)
{
    struct sim_target *it = &s->target[t];
    bool durable = c->io.flags & REPL_FUA;
    if (c->io.op == REPL_IO_FLUSH) {
        if (c->owner == it->owner)
            count_voters(s, t, "a flush is complete", has_durably, c->must);
    } else if (c->io.op != REPL_IO_READ) {
        count_voters(s, t, "a write is complete", durable ? has_durably : has_applied, c->io.point);
        it->acked = c->io.point > it->acked ? c->io.point : it->acked;
    }
}

static void check_view(struct sim *s, int t, const struct repl_view *v)
{
    for (int m = 0; m < v->n; m++) {
        const struct sim_replica *r = replica_of(s, &v->member[m].id);
        if (r && !r->wiped && v->member[m].floor > r->sure.super.pos)
            sim_fail(s, "target %d: a view in which replica %d is at %lx, durably; it is at %lx", t,
                     r->i, v->member[m].floor, r->sure.super.pos);
    }
    for (int k = 0; k < v->snaps.n; k++) {
        const struct repl_snap *snap = &v->snaps.at[k];
        unsigned n = 0, voters = repl_view_count(v, REPL_VOTER);
        if (snap->id <= s->target[t].snap_seen || snap->id >> 32 != v->version >> 32)
            continue;
        s->target[t].snap_seen = snap->id;
        for (int m = 0; m < v->n; m++) {
            const struct sim_replica *r = replica_of(s, &v->member[m].id);
            bool has = r && disk_find(&r->disk, snap->id) >= 0 && r->sure.super.pos >= snap->pos;
            /* One that has a new disk, or went over to another target, had it. */
            bool moved = r && (r->wiped || r->sure.super.promised > v->version >> 32);
            n += v->member[m].flags & REPL_VOTER && (has || moved);
        }
        if (n < repl_cf(v->cf, voters))
            sim_fail(s, "target %d: a view with a snapshot that %u voters have", t, n);
    }
}

void claims_target(struct sim *s, int t, const struct repl_msg *m, const struct iovec *iov)
{
    struct sim_target *it = &s->target[t];
    if (m->type == REPL_PROMISE && it->owner != m->seq) {
        it->owner = m->seq;
        it->acked = 0;
    }
    if (m->type == REPL_READ && !(m->seq & REPL_TAG_OWN))
        count_voters(s, t, "a read is sent", has_lease, m->seq);
    if (m->type == REPL_VIEW && m->seq != it->proposed.version) {
        struct repl_super super;
        if (repl_super_decode(iov->iov_base, &super, NULL) == 0)
            check_view(s, t, &super.view);
        it->proposed = super.view;
    }
    history_sent(s, t, m, iov);
}

/*
 * What goes wrong: crashes of replicas, targets and nodes, replicas that stop in order, freezes, partitions, slow and failing
 * disks, new disks, a second target; and what administrators do meanwhile. In a "safe" life never more replicas are without
 * memory than a quorum can miss.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

enum { KINDS = 18 }; /* of faults, as in life_fault() */

static int some_replica(struct sim *s)
{
    int i = (int)sim_below(s, REPLICAS);
    while (!s->replica[i].used)
        i = (i + 1) % REPLICAS;
    return i;
}

static bool may_crash(const struct sim *s, int i)
{
    return !s->safe || sim_impaired(&s->replica[i]) || sim_without_memory(s) + 1 <= sim_limit(s);
}

static void crash_and_restart(struct sim *s, int i, int64_t most)
{
    if (!s->replica[i].p.up)
        return;
    replica_crash(s, i);
    world_event(s, s->now + sim_between(s, 2 * MS, most), EV_START_REPLICA, i, 0, 0, NULL);
}

/* In order: nothing is lost, so any number may; but one that misses something anyway is none better for it. */
static void stop_in_order(struct sim *s, int i)
{
    struct repl_replica_status st;
    if (!s->replica[i].p.up)
        return;
    repl_replica_status(s->replica[i].core, &st);
    if (!st.complete && !may_crash(s, i))
        return;
    s->replica[i].weak |= !st.complete; /* from now on, not from when it has stopped */
    replica_stop(s, i);
    if (sim_chance(s, 50)) /* what it misses is what it has: only its entries are too low */
        s->zeros_until = s->now + 100 * MS;
}

/* No faults now. A split is left alone, long enough for the new target to write what the old one could read. */
static bool calm(const struct sim *s)
{
    return s->stage != RUN || s->lossy || s->now < s->calm_until ||
           (s->splits && s->now < s->split_until);
}

void life_syncing(struct sim *s, int replica)
{
    if (!calm(s) && s->served && sim_chance(s, 2))
        world_event(s, s->now + (int64_t)sim_below(s, (uint64_t)s->disk_delay), EV_CRASH, replica,
                    sim_chance(s, 50), 0, NULL);
}

static void fall_behind(struct sim *s, int lost, int keep);

/* The volume is being made, perhaps by two. Who does not hear that it is made may be asked to make it with others. */
static void while_made(struct sim *s, int t, int r)
{
    if (sim_chance(s, 3))
        conn_break(s, t, r);
    if (sim_chance(s, 3))
        world_event(s, s->now + sim_between(s, 0, 6 * MS), EV_HANDOVER, t, 0, 0, NULL);
    if (r == s->rf - 1 && s->replica[s->rf].used && sim_chance(s, 40))
        s->conn[t][r].blocked[1] = s->now + 150 * MS;
}

/*
 * A mark is on its way to one that is being rebuilt, and so are the last writes, to everybody. They reach only that one, and
 * are durable with its mark; the next target starts without it: these writes never were.
 */
void life_sent(struct sim *s, int t, int r, const struct repl_msg *m)
{
    if (m->type != REPL_FLUSH || !(m->flags & REPL_MARK) || !m->offset || m->count || calm(s) ||
        !sim_chance(s, s->rebuilds ? 70 : 30))
        return;
    for (int k = 0; k < REPLICAS; k++)
        if (k != r)
            conn_break(s, t, k);
    sim_trace(s, "what target %d has said reaches only replica %d", t, r);
    int64_t end = s->now + sim_between(s, 1 * MS, 12 * MS);
    s->reads_until = end + 150 * MS; /* what is written again is compared anyway */
    world_event(s, end, EV_CUT_OFF, r, (int)sim_between(s, 70, 120), 0, NULL);
    world_event(s, end, EV_HANDOVER, t, 0, 0, NULL);
}

/* Rebuilds are short here; so that they are interrupted, too: */
void life_given(struct sim *s, int t, int r, uint8_t type)
{
    if (type == REPL_VIEW && !s->served)
        while_made(s, t, r);
    if (calm(s))
        return;
    if (type == REPL_BEGIN && s->target[t].serving && sim_chance(s, s->behind ? 30 : 1)) {
        /* A write that only this one gets besides one that is lost: it must not count before it is rebuilt. */
        int lost = some_replica(s);
        if (lost != r)
            fall_behind(s, lost, r);
    }
    if (type == REPL_BEGIN && sim_chance(s, s->rebuilds ? 25 : 3))
        conn_break(s, t, r);
    if (type == REPL_BEGIN && s->snaps && sim_chance(s, 10)) /* a rebuild that begins anew */
        world_event(s, s->now, EV_SNAPS, 0, 0, 0, NULL);
    if (type == REPL_BEGIN && s->rebuilds && !s->target[t].serving && sim_chance(s, 15)) {
        /* A target that never serves; the next one may take another truth. */
        world_event(s, s->now + sim_between(s, 0, 6 * MS), EV_HANDOVER, t, 0, 0, NULL);
        int other = some_replica(s);
        if (other != r)
            life_cut_off(s, other, s->now + sim_between(s, 20 * MS, 100 * MS));
    }
    if (type == REPL_DONE && s->handover && sim_chance(s, 50)) {
        /* The next target, too, may end before the replica's flush does, or before it is rebuilt anew. */
        s->replica[r].slow = true;
        world_event(s, s->now + sim_between(s, 0, 6 * MS), EV_HANDOVER, t, 0, 0, NULL);
        if (sim_chance(s, 60))
            world_event(s, s->now + sim_between(s, 8 * MS, 60 * MS), EV_HANDOVER, t, 0, 0, NULL);
    } else if ((type == REPL_DONE && sim_chance(s, 15)) ||
               (type == REPL_BEGIN && sim_chance(s, s->rebuilds ? 5 : 1))) {
        world_event(s, s->now + (int64_t)sim_below(s, (uint64_t)(2 * s->disk_delay)), EV_CRASH, r,
                    0, 0, NULL);
    }
}

/* A target ends in order, so that nobody waits for a lease, and is soon there again. */
void life_handover(struct sim *s, int t)
{
    if (calm(s) || !s->target[t].p.up)
        return;
    target_stop(s, t);
    world_event(s, s->now + sim_between(s, 0, 6 * MS), EV_START_TARGET, t, 0, 0, NULL);
}

void life_cut_off(struct sim *s, int r, int64_t until)
{
    if (calm(s))
        return;
    sim_trace(s, "replica %d is cut off", r);
    for (int t = 0; t < TARGETS; t++)
        s->conn[t][r].blocked[0] = s->conn[t][r].blocked[1] = until;
}

/* One target's way to a replica is cut off for as long as a split lasts; both ends learn it then. */
void life_cut_from(struct sim *s, int r, int t)
{
    if (s->stage != RUN || s->lossy)
        return;
    s->conn[t][r].blocked[0] = s->conn[t][r].blocked[1] = s->split_until;
    conn_break(s, t, r);
}

/* A node with a replica, and perhaps a target. */
void life_crash_node(struct sim *s, int r, bool target)
{
    if (calm(s) || !s->replica[r].used || !may_crash(s, r))
        return;
    crash_and_restart(s, r, 60 * MS);
    for (int t = 0; target && t < TARGETS; t++) {
        if (!s->target[t].p.up)
            continue;
        target_crash(s, t);
        world_event(s, s->now + sim_between(s, MS, 40 * MS), EV_START_TARGET, t, 0, 0, NULL);
    }
}

/*
 * Some replicas miss the last writes; then the target is lost, and one replica that had them loses its memory; all
 * others that had them cannot be reached while a new target starts. If all but one miss them, they were never
 * acknowledged, and one replica has what it should not have: it crashes, or comes back too late to be heard. `keep`
 * stays connected all the time.
 */
static void fall_behind(struct sim *s, int lost, int keep)
{
    int t = sim_serving_target(s), behind = sim_chance(s, 50) ? sim_limit(s) : REPLICAS;
    bool late = behind == REPLICAS && sim_chance(s, 50);
    if (t < 0 || (!late && !may_crash(s, lost)))
        return;
    int64_t crash = sim_between(s, 2 * MS, 25 * MS);
    int first = (int)sim_below(s, REPLICAS);
    for (int k = 0; k < REPLICAS; k++) {
        int r = (first + k) % REPLICAS;
        if (!s->replica[r].used || r == lost || r == keep)
            continue;
        if (behind-- > 0) {
            conn_break(s, t, r);
            life_cut_off(s, r, s->now + crash);
        } else {
            world_event(s, s->now + crash, EV_CUT_OFF, r, (int)sim_between(s, 60, 250), 0, NULL);
        }
    }
    if (late) {
        world_event(s, s->now + crash, EV_CUT_OFF, lost, (int)sim_between(s, 5, 80), 0, NULL);
        world_event(s, s->now + crash, EV_HANDOVER, t, 0, 0, NULL);
    } else if (sim_chance(s, 30)) {
        world_event(s, s->now + crash, EV_LOSE_DISK, lost, 0, 0, NULL);
        world_event(s, s->now + crash, EV_HANDOVER, t, 0, 0, NULL);
    } else {
        world_event(s, s->now + crash, EV_CRASH, lost, true, 0, NULL);
    }
}

/* A replica stops and comes back with another disk, or one that somebody changes meanwhile. */
bool life_new_disk(struct sim *s, int i, bool blank)
{
    struct sim_replica *r = &s->replica[i];
    bool counted = sim_impaired(r);
    if (calm(s) || !s->served || s->put_away_at || !r->used || !r->p.up ||
        (s->safe ? sim_without_memory(s) + !counted : sim_wiped(s) + !r->wiped) > sim_limit(s))
        return false;
    crash_and_restart(s, i, 50 * MS);
    r->wiped = true;
    if (!blank)
        return true;
    damage_forgot(r);
    replica_wipe(s, i);
    sim_trace(s, "replica %d has a new disk", i);
    return true;
}

void life_lose_disk(struct sim *s, int i)
{
    life_new_disk(s, i, true);
}

/* The other target sees only a new replica, which looks as if the volume never was. */
static void hide_from_other(struct sim *s, int t, int fresh)
{
    for (int r = 0; r < REPLICAS; r++)
        if (r != fresh)
            s->conn[!t][r].blocked[0] = s->conn[!t][r].blocked[1] = s->now + 80 * MS;
    target_crash(s, !t);
    world_event(s, s->now + 1, EV_START_TARGET, !t, 0, 0, NULL);
}

static void admin(struct sim *s, bool snaps)
{
    int t = sim_serving_target(s);
    if (t < 0 || s->admin || s->back)
        return;
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    s->admin_target = t;
    s->admin_started = s->now;
    s->admin_instead = -1;
    enum repl_admin op = REPL_ADMIN_NONE;
    switch (snaps ? 1 : sim_below(s, 4)) {
    case 0:
        s->admin_value = s->size + (1 + sim_below(s, 6)) * SECTOR;
        if (s->admin_value <= SECTORS_MAX * SECTOR &&
            repl_target_grow(s->target[t].core, s->admin_value) == 0)
            op = REPL_GROW;
        break;
    case 1:
        if (sim_chance(s, 20)) { /* one misses it, and perhaps nothing else */
            int r = some_replica(s);
            conn_break(s, t, r);
            life_cut_off(s, r, s->now + sim_between(s, 5 * MS, 25 * MS));
        }
        snaps_admin(s, t, &op);
        break;
    case 2: {
        int fresh = -1;
        for (int i = 0; i < REPLICAS; i++)
            if (!s->replica[i].used && !s->replica[i].p.up && i != s->buried)
                fresh = i;
        if (fresh < 0 || !s->served || s->put_away_at || st.n >= REPL_MEMBERS || st.n > s->rf)
            break;
        s->admin_replica = fresh;
        s->replica[fresh].id.bytes[1]++; /* a new one */
        if (sim_chance(s, 60)) {
            s->admin_instead = some_replica(s);
            bool member = false;
            for (int m = 0; m < st.n; m++)
                member |= uuid_eq(&st.replica[m].replica_id, &s->replica[s->admin_instead].id);
            if (!member)
                break;
        }
        if (!repl_target_add(s->target[t].core, &s->replica[fresh].id,
                             s->admin_instead >= 0 ? &s->replica[s->admin_instead].id : NULL))
            break;
        op = REPL_ADD;
        replica_wipe(s, fresh);
        s->replica[fresh].used = s->replica[fresh].added = true;
        s->replica[fresh].weak = s->replica[fresh].wiped = s->replica[fresh].ever = false;
        s->replica[fresh].forgot = s->replica[fresh].damaged = false;
        s->replica[fresh].gone = GONE_NO;
        replica_start(s, fresh);
        if (sim_chance(s, 30))
            hide_from_other(s, t, fresh);
        else if (sim_chance(s, 60)) /* it must not vote before it has everything */
            world_event(s, s->now + sim_between(s, 5 * MS, 50 * MS), EV_CRASH, some_replica(s),
                        true, 0, NULL);
        break;
    }
    default:
        if (st.n <= s->rf)
            break;
        s->admin_replica = some_replica(s);
        if (repl_target_remove(s->target[t].core, &s->replica[s->admin_replica].id))
            op = REPL_REMOVE;
    }
    s->admin = op;
    if (op)
        sim_trace(s, "admin %d at target %d: value %lu replica %d instead of %d", op, t,
                  s->admin_value, s->admin_replica, s->admin_instead);
    target_turn(s, t);
}

/* A snapshot is taken. What comes next finds replicas that have it, or have not, with little else that differs. */
void life_snapped(struct sim *s, int t)
{
    int r = some_replica(s);
    if (calm(s) || !sim_chance(s, 45))
        return;
    if (sim_chance(s, 30)) { /* the next target chooses among them */
        s->reads_until = s->now + 20 * MS;
        world_event(s, s->now + sim_between(s, 0, MS), EV_HANDOVER, t, 0, 0, NULL);
        return;
    }
    /* One misses the writes since, and is rebuilt while the volume goes back. */
    conn_break(s, t, r);
    int64_t until = s->now + sim_between(s, 2 * MS, 12 * MS);
    life_cut_off(s, r, until);
    world_event(s, until - MS, EV_SNAPS, 1, 0, 0, NULL);
}

void life_snaps(struct sim *s, int chance)
{
    if (s->snaps && s->stage == RUN && !s->lossy && sim_chance(s, chance))
        admin(s, true);
}

static void block(struct sim *s)
{
    int t = (int)sim_below(s, TARGETS), r = some_replica(s);
    int64_t until = s->now + sim_between(s, 5 * MS, 150 * MS);
    int which = (int)sim_below(s, 3);
    if (which != 1)
        s->conn[t][r].blocked[0] = until;
    if (which != 0)
        s->conn[t][r].blocked[1] = until;
    sim_trace(s, "target %d and replica %d cannot talk (%d)", t, r, which);
}

/* A replica is gone for ever, and with it the quorum: of two, so that the other one has everything. */
static void bury(struct sim *s, int r)
{
    int t = sim_serving_target(s);
    if (t < 0 || s->admin || s->buried >= 0 || s->rf != 2)
        return;
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    bool member = false, voters = st.n == 2;
    for (int m = 0; m < st.n; m++) {
        member |= uuid_eq(&st.replica[m].replica_id, &s->replica[r].id);
        voters = voters && st.replica[m].voter;
    }
    if (!member || !voters || sim_without_memory(s))
        return;
    s->replica[r].used = false;
    replica_crash(s, r);
    s->replica[r].weak = false;
    s->buried = r;
    s->buried_at = s->now + sim_between(s, 0, 60 * MS);
    sim_trace(s, "replica %d is gone for ever", r);
}

/*
 * The target that serves loses all replicas, one of them last, which may have writes that nobody else has; another takes
 * over. When the first one has its replicas back it must not write again what it still has.
 */
static void usurp(struct sim *s, int last)
{
    int old = sim_serving_target(s);
    s->split_until = s->now + sim_between(s, 150 * MS, 300 * MS);
    s->split_reader = -1;
    for (int r = 0; r < REPLICAS; r++)
        world_event(s, s->now + (r == last ? sim_between(s, 2 * MS, 8 * MS) : 0), EV_CUT_FROM, r,
                    old, 0, NULL);
    sim_trace(s, "target %d loses all replicas, %d last", old, last);
    world_event(s, s->now + 10 * MS, EV_START_TARGET, !old, 0, 0, NULL);
}

/* Two halves: the target that serves with one replica, a new one with all others. */
static void split(struct sim *s, int alone)
{
    int64_t until = s->now + sim_between(s, 60 * MS, 300 * MS);
    s->split_until = until;
    int old = sim_serving_target(s) == 1;
    s->split_reader = sim_chance(s, 50) ? old : -1;
    for (int r = 0; r < REPLICAS; r++) {
        struct conn *c = &s->conn[r == alone ? !old : old][r];
        c->blocked[0] = c->blocked[1] = until;
    }
    sim_trace(s, "target %d has only replica %d, target %d all others", old, alone, !old);
    world_event(s, s->now, EV_START_TARGET, !old, 0, 0, NULL);
}

/* What waits for the end of one must not be overtaken because of another. */
static void freeze(struct sim *s, struct process *p, int64_t most)
{
    int64_t until = s->now + sim_between(s, 5 * MS, most);
    if (until > p->frozen_until)
        p->frozen_until = until;
}

/* Of those that this life has. */
static int some_kind(struct sim *s)
{
    int k = (int)sim_below(s, KINDS);
    while (!(s->kinds >> k & 1))
        k = (k + 1) % KINDS;
    return k;
}

void life_fault(struct sim *s)
{
    world_event(s, s->now + sim_between(s, 2 * MS, s->fault_every), EV_FAULT, 0, 0, 0, NULL);
    if (calm(s))
        return;
    int r = some_replica(s), t = (int)sim_below(s, TARGETS);
    if (s->damages && sim_chance(s, 45)) {
        damage_store(s, r);
        return;
    }
    if (s->rots && sim_chance(s, 40)) {
        damage_rot(s, r);
        return;
    }
    if (s->behind && sim_chance(s, 25) && sim_serving_target(s) >= 0) {
        /* It misses some writes, and is rebuilt with its memory whole. */
        conn_break(s, sim_serving_target(s), r);
        life_cut_off(s, r, s->now + sim_between(s, 5 * MS, 30 * MS));
        return;
    }
    if (s->behind && sim_chance(s, 70)) {
        fall_behind(s, r, -1);
        return;
    }
    if (s->splits && sim_serving_target(s) >= 0 && sim_chance(s, 40)) {
        if (sim_chance(s, 40))
            usurp(s, r);
        else
            split(s, r);
        return;
    }
    switch (some_kind(s)) {
    case 0:
    case 1:
        if (sim_chance(s, 30))
            stop_in_order(s, r);
        else if (may_crash(s, r))
            crash_and_restart(s, r, 80 * MS);
        break;
    case 2:
    case 3:
        if (s->target[t].p.up) {
            if (sim_chance(s, 20))
                repl_target_bye(s->target[t].core);
            target_crash(s, t);
            world_event(s, s->now + sim_between(s, MS, 40 * MS), EV_START_TARGET, t, 0, 0, NULL);
        }
        break;
    case 4:
        freeze(s, &s->replica[r].p, 150 * MS);
        sim_trace(s, "replica %d is frozen", r);
        break;
    case 5:
        freeze(s, &s->target[t].p, 120 * MS);
        sim_trace(s, "target %d is frozen", t);
        break;
    case 6:
    case 7:
        block(s);
        break;
    case 8:
        conn_break(s, t, r);
        break;
    case 9:
        s->replica[r].slow = !s->replica[r].slow;
        break;
    case 10:
        if (sim_chance(s, 60))
            split(s, r);
        world_event(s, s->now, EV_START_TARGET, 1, 0, 0, NULL);
        if (sim_chance(s, 50))
            life_crash_node(s, r, false);
        if (sim_chance(s, 50))
            block(s);
        break;
    case 16: /* a disk is lost, and its replica must not count in the election that follows */
        life_lose_disk(s, r);
        if (s->target[t].p.up) {
            target_crash(s, t);
            world_event(s, s->now + sim_between(s, MS, 40 * MS), EV_START_TARGET, t, 0, 0, NULL);
        }
        break;
    case 17:
        bury(s, r);
        break;
    case 11:
        admin(s, false);
        break;
    case 12:
        s->replica[r].erring = s->replica[r].erring ? 0 : s->safe ? 1 : 1 + (int)sim_below(s, 2);
        break;
    case 14:
    case 15:
        life_crash_node(s, r, true);
        if (sim_chance(s, 50))
            block(s);
        break;
    case 13:
        if (sim_chance(s, 40))
            life_lose_disk(s, r);
        else if (sim_chance(s, 40))
            for (int i = 0; i < REPLICAS; i++)
                stop_in_order(s, i);
        else if (!s->safe && sim_chance(s, 50))
            for (int i = 0; i < REPLICAS; i++)
                crash_and_restart(s, i, 60 * MS);
        break;
    }
}

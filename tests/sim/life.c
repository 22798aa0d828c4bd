/*
 * The plan of a seed.
 *
 *     RUN: clients, faults ──> HEAL: no more faults ──> SETTLE: no more requests; all healthy, all done
 *          ──> READ_ALL ──> SCRUB: one sector is damaged and must be mended ──> END: all bytes equal
 *
 * When a quorum loses its memory in RUN ("lossy"), faults pause, everything is flushed and read, what was flushed
 * must be there, and the model goes on from what was read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "repl/view.h"
#include "sim.h"

enum { STEPS_MAX = 300000 };

int64_t sim_between(struct sim *s, int64_t low, int64_t high)
{
    return low + (int64_t)sim_below(s, (uint64_t)(high - low));
}

/* How many replicas may be without memory while no acknowledged write can be lost. */
int sim_limit(const struct sim *s)
{
    return s->rf - s->cf;
}

/* Something that it had is not there. */
bool sim_impaired(const struct sim_replica *r)
{
    return r->weak || r->wiped || damage_rots(r) || pool_snapshots_rot(r);
}

int sim_without_memory(const struct sim *s)
{
    int n = 0;
    for (int i = 0; i < REPLICAS; i++)
        n += s->replica[i].used && sim_impaired(&s->replica[i]);
    return n;
}

int sim_wiped(const struct sim *s)
{
    int n = 0;
    for (int i = 0; i < REPLICAS; i++)
        n += s->replica[i].used && s->replica[i].wiped;
    return n;
}

int sim_serving_target(const struct sim *s)
{
    for (int i = 0; i < TARGETS; i++)
        if (s->target[i].p.up && s->target[i].serving)
            return i;
    return -1;
}

static struct client_io *free_io(struct sim *s, int target)
{
    for (int i = 0; i < s->depth; i++)
        if (!s->io[target * IOS + i].busy)
            return &s->io[target * IOS + i];
    return NULL;
}

bool sim_idle(const struct sim *s)
{
    for (int i = 0; i < IOS * TARGETS; i++)
        if (s->io[i].busy)
            return false;
    return true;
}

static void submit(struct sim *s, int target, struct client_io *c, enum repl_io_op op,
                   uint64_t sector, uint64_t n, bool all)
{
    *c = (struct client_io){.busy = true,
                            .all = all,
                            .target = target,
                            .initiator = (int)sim_below(s, (uint64_t)s->initiators),
                            .life = s->target[target].p.life * TARGETS + (uint32_t)target,
                            .started = s->now};
    c->io = (struct repl_io){.op = op,
                             .offset = sector * SECTOR,
                             .length = n * SECTOR,
                             .iov = &c->iov,
                             .iov_n = 1,
                             .client = (uint64_t)c->initiator + 1};
    c->owner = s->target[target].owner;
    c->must = s->target[target].acked;
    if (op == REPL_IO_FLUSH)
        c->io.offset = c->io.length = 0;
    c->iov = (struct iovec){c->data, n * SECTOR};
    if (op == REPL_IO_WRITE || op == REPL_IO_ZERO) {
        c->id = ++s->values;
        c->value = op == REPL_IO_ZERO ? 0 : c->id;
        c->io.flags = sim_chance(s, 15) ? REPL_FUA : 0;
        for (uint64_t i = 0; i < n * SECTOR; i += 8)
            memcpy(c->data + i, &c->value, 8);
        model_write(s->model, sector, n, c->value, c->id, s->now, c->initiator);
    }
    sim_trace(s, "client %d: %s sector %lu+%lu value %lu%s", target,
              op == REPL_IO_READ    ? "read"
              : op == REPL_IO_FLUSH ? "flush"
              : op == REPL_IO_ZERO  ? "zero"
                                    : "write",
              sector, n, c->value, c->io.flags & REPL_FUA ? " FUA" : "");
    repl_target_time(s->target[target].core, local_time(s, &s->target[target].p));
    repl_target_submit(s->target[target].core, &c->io);
}

/* A sector's value; all of its words must be the same. */
uint64_t sim_value(struct sim *s, const uint8_t *sector)
{
    uint64_t v;
    memcpy(&v, sector, 8);
    if (memcmp(sector, sector + 8, SECTOR - 8) != 0)
        sim_fail(s, "a sector with parts of several writes");
    return v;
}

static void read_done(struct sim *s, struct client_io *c)
{
    uint64_t first = c->io.offset / SECTOR;
    for (uint64_t i = 0; i < c->io.length / SECTOR; i++) {
        uint64_t v = sim_value(s, c->data + i * SECTOR);
        sim_trace(s, "    sector %lu is %lu", first + i, v);
        if (c->all)
            s->read_values[first + i] = v;
        if (!s->lossy && !s->doubt)
            model_read(s, first + i, v, c->started, s->now);
        else if (c->all && !model_may_remain(s->model, first + i, v))
            sim_fail(s,
                     "sector %lu: value %lu after a crash of a quorum, but a later one was flushed",
                     first + i, v);
    }
}

/*
 * An initiator that has lost something which was acknowledged learns it by its next flush, of whatever target: that one
 * fails.
 */
static void flush_done(struct sim *s, struct client_io *c, int status)
{
    unsigned me = 1u << c->initiator;
    if (status < 0) {
        if (!s->stats.losses && s->safe)
            sim_fail(s, "a flush failed, and nothing can be lost");
        model_flush_failed(s->model, c->initiator, s->now, c->life);
        s->untold &= ~me;
        return;
    }
    if (s->untold & me && c->started > s->reset_at)
        sim_fail(s, "initiator %d has lost writes, and its flush is good", c->initiator);
    model_flushed(s->model, c->started, c->initiator, !s->lossy && !s->doubt);
}

void life_complete(struct sim *s, int target, struct repl_io *io, int status)
{
    struct client_io *c = container_of(io, struct client_io, io);
    c->busy = false;
    sim_trace(s, "client %d: sector %lu done %d (value %lu)", target, io->offset / SECTOR, status,
              c->value);
    if (status == -ERANGE)
        sim_fail(s, "a request beyond the end: the volume has shrunk");
    if (io->op == REPL_IO_FLUSH)
        flush_done(s, c, status);
    if (status < 0) {
        if (c->all)
            s->read_next = -1;
        return;
    }
    claims_complete(s, target, c);
    switch (io->op) {
    case REPL_IO_READ:
        s->stats.reads++;
        read_done(s, c);
        break;
    case REPL_IO_FLUSH:
        s->stats.flushes++;
        if (c->all)
            s->read_next = 0;
        break;
    default:
        s->stats.writes++;
        model_written(s->model, c->id, s->now, io->flags & REPL_FUA && !s->lossy && !s->doubt,
                      c->life);
    }
}

/* Requests of a target that ended: they may happen or not. */
void life_target_gone(struct sim *s, int target)
{
    for (int i = 0; i < IOS; i++)
        s->io[target * IOS + i].busy = false;
    if (s->admin && s->admin_target == target)
        s->admin = REPL_ADMIN_NONE;
    if (s->back && s->admin_target == target)
        s->back = BACK_WAIT;
    s->read_next = -1;
}

void life_admin_done(struct sim *s, int target, enum repl_admin op, int status)
{
    sim_trace(s, "target %d: admin %d done %d", target, op, status);
    if (op == REPL_SCRUB) {
        s->scrubbed = true;
        return;
    }
    if (s->admin_target != target)
        return;
    s->admin = REPL_ADMIN_NONE;
    s->stats.admin += status == 0;
    if (op == REPL_BACK)
        snaps_back(s, target, status);
    if (status)
        return;
    if (op == REPL_GROW)
        s->size = s->admin_value;
    if (op == REPL_SNAPSHOT || op == REPL_SNAP_DELETE)
        snaps_done(s, target, op);
    if (op == REPL_SNAPSHOT)
        life_snapped(s, target);
    if ((op == REPL_ADD && s->admin_instead >= 0) || op == REPL_REMOVE)
        s->replica[op == REPL_ADD ? s->admin_instead : s->admin_replica].used = false;
}

/* Clients. */

static void client(struct sim *s, struct event *e)
{
    int t = e->a;
    world_event(s, s->now + sim_between(s, s->client_every / 10, s->client_every), EV_CLIENT, t, 0,
                0, NULL);
    if (!s->target[t].p.up || s->target[t].p.frozen_until > s->now || s->quiet)
        return;
    struct client_io *c = free_io(s, t);
    if (!c)
        return;
    uint64_t sectors = s->size / SECTOR, n = 1 + sim_below(s, 4);
    uint64_t first =
        sim_chance(s, s->hot_chance) ? sim_below(s, (uint64_t)s->hot) : sim_below(s, sectors);
    if (first + n > sectors)
        n = 1;
    /* Reads go on when writes are stuck. */
    int writes = 0;
    for (int i = 0; i < s->depth; i++)
        writes += s->io[t * IOS + i].busy && s->io[t * IOS + i].io.op != REPL_IO_READ;
    bool reads = writes > s->depth / 2 || s->now < s->reads_until ||
                 (s->now < s->split_until && t == s->split_reader);
    uint64_t what = reads ? 50 : sim_below(s, 100);
    if (what < s->zeroing || (what < 45 && s->now < s->zeros_until))
        submit(s, t, c, REPL_IO_ZERO, ZEROED, 4, false);
    else if (what < 45)
        submit(s, t, c, REPL_IO_WRITE, first, n, false);
    else if (what < 88)
        submit(s, t, c, REPL_IO_READ, first, n, false);
    else
        submit(s, t, c, REPL_IO_FLUSH, 0, 0, false);
    if (s->target[t].p.up)
        target_turn(s, t);
}

static bool is_member(const struct repl_status *st, const struct uuid *id)
{
    for (int m = 0; m < st->n; m++)
        if (uuid_eq(&st->replica[m].replica_id, id))
            return true;
    return false;
}

/*
 * Some time after the volume was made, replicas that were not needed go. Where nobody was named, so does a target that was told
 * that it may make the volume: from then on there may be blank replicas that are none of the first.
 */
static void put_away(struct sim *s, int by, const struct repl_status *st)
{
    s->put_away_at = 0;
    for (int i = 0; i < REPLICAS; i++) {
        if (s->replica[i].added || is_member(st, &s->replica[i].id))
            continue;
        s->replica[i].used = false;
        replica_crash(s, i);
        s->replica[i].weak = false;
    }
    for (int t = 0; t < TARGETS; t++) {
        if (t == by || !s->target[t].p.up || s->named)
            continue;
        target_crash(s, t);
        world_event(s, s->now + sim_between(s, MS, 30 * MS), EV_START_TARGET, t, 0, 0, NULL);
    }
}

/* Who is healthy again has its memory again; the volume's size is what the target says. */
static void look(struct sim *s)
{
    int t = sim_serving_target(s);
    if (t < 0)
        return;
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    if (!s->served) {
        s->served = true;
        s->put_away_at = s->now + sim_between(s, 1, 100 * MS);
    }
    if (s->put_away_at && s->now >= s->put_away_at)
        put_away(s, t, &st);
    if (st.size > s->size)
        s->size = st.size;
    if (s->buried >= 0 && !is_member(&st, &s->replica[s->buried].id))
        s->buried = -1; /* as the operator can see */
    for (int m = 0; m < st.n; m++)
        for (int i = 0; i < REPLICAS; i++) {
            struct sim_replica *r = &s->replica[i];
            struct repl_replica_status rs;
            if (!r->p.up || !uuid_eq(&r->id, &st.replica[m].replica_id) ||
                strcmp(st.replica[m].mode, "Healthy") != 0)
                continue;
            repl_replica_status(r->core, &rs);
            if (rs.complete && rs.super->promised == st.epoch)
                r->weak = r->wiped = r->damaged = false, r->gone = GONE_NO;
        }
}

/* What an operator does who knows that a replica never comes back. */
static void force_out(struct sim *s)
{
    if (s->buried < 0 || s->now < s->buried_at)
        return;
    for (int t = 0; t < TARGETS; t++) {
        struct sim_target *it = &s->target[t];
        if (!it->p.up || it->p.frozen_until > s->now ||
            repl_target_force_out(it->core, &s->replica[s->buried].id) < 0)
            continue;
        sim_trace(s, "replica %d is taken out by force at target %d", s->buried, t);
        target_turn(s, t);
    }
}

static void heal(struct sim *s)
{
    for (int i = 0; i < REPLICAS; i++) {
        struct sim_replica *r = &s->replica[i];
        r->slow = false;
        r->erring = 0;
        if (r->used && !r->p.up)
            world_event(s, s->now + MS, EV_START_REPLICA, i, 0, 0, NULL);
    }
    for (int t = 0; t < TARGETS; t++)
        for (int r = 0; r < REPLICAS; r++)
            for (int k = 0; k < 2; k++)
                if (s->conn[t][r].blocked[k] > s->now)
                    s->conn[t][r].blocked[k] = s->now;
}

/* At least one target should run. */
static void keep_target(struct sim *s)
{
    bool any = false;
    for (int t = 0; t < TARGETS; t++)
        any |= s->target[t].p.up || s->target[t].p.starting;
    if (!any) {
        s->target[0].p.starting = true;
        world_event(s, s->now + sim_between(s, MS, 30 * MS), EV_START_TARGET, 0, 0, 0, NULL);
    }
}

void life_event(struct sim *s, struct event *e)
{
    switch (e->kind) {
    case EV_CLIENT:
        client(s, e);
        look(s);
        force_out(s);
        keep_target(s);
        life_snaps(s, 4);
        break;
    case EV_FAULT:
        life_fault(s);
        break;
    case EV_CRASH:
        life_crash_node(s, e->a, e->b);
        break;
    case EV_CUT_OFF:
        life_cut_off(s, e->a, s->now + e->b * MS);
        break;
    case EV_CUT_FROM:
        life_cut_from(s, e->a, e->b);
        break;
    case EV_LOSE_DISK:
        life_lose_disk(s, e->a);
        break;
    case EV_HANDOVER:
        life_handover(s, e->a);
        break;
    case EV_SNAPS:
        if (e->a)
            snaps_go_back(s);
        else
            life_snaps(s, 100);
        break;
    case EV_START_REPLICA:
        replica_start(s, e->a);
        break;
    case EV_START_TARGET:
        if (!s->target[e->a].p.up && (s->stage == RUN || e->a == 0))
            target_start(s, e->a, s->named || !s->served);
        break;
    default:
        break;
    }
}

/* Reading everything: a flush, then all sectors; true at the end. */
static bool read_all(struct sim *s)
{
    int t = sim_serving_target(s);
    if (t < 0 || !sim_idle(s))
        return false;
    if (s->read_next >= (int)(s->size / SECTOR))
        return true;
    struct client_io *c = &s->io[t * IOS];
    if (s->read_next < 0) {
        submit(s, t, c, REPL_IO_FLUSH, 0, 0, true);
    } else {
        uint64_t left = s->size / SECTOR - (uint64_t)s->read_next, n = left < 4 ? left : 4;
        uint64_t at = (uint64_t)s->read_next;
        s->read_next += (int)n;
        submit(s, t, c, REPL_IO_READ, at, n, true);
    }
    target_turn(s, t);
    return false;
}

/* All are in sync, and the target does not only think so because it has not heard yet that one is gone. */
static bool all_healthy(struct sim *s)
{
    int t = sim_serving_target(s);
    if (t < 0)
        return false;
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    uint32_t owed = 0;
    bool there = true;
    for (int m = 0; m < st.n; m++) {
        int link = st.replica[m].link;
        owed += st.replica[m].inflight_write;
        there = there && link >= 0 && s->conn[t][link].up[1];
    }
    return there && strcmp(st.phase, "Healthy") == 0 && !s->admin && !owed && !s->back;
}

static void stage(struct sim *s, int next)
{
    s->stage = next;
    s->stage_at = s->now;
    s->read_next = -1;
    sim_trace(s, "stage %d", next);
}

static void damage(struct sim *s)
{
    int t = sim_serving_target(s);
    struct repl_status st;
    repl_target_status(s->target[t].core, &st);
    s->corrupt = -1;
    int healthy = 0, chosen = (int)sim_below(s, (uint64_t)st.n);
    for (int m = 0; m < st.n; m++)
        healthy += strcmp(st.replica[m].mode, "Healthy") == 0;
    if (healthy >= 3 && healthy == st.n) {
        int link = st.replica[chosen].link;
        damage_corrupt(s, link, sim_below(s, s->size / SECTOR));
        s->corrupt = link;
        sim_trace(s, "replica %d is damaged", link);
    }
    s->mismatches = 0;
    s->scrubbed = false;
    repl_target_scrub(s->target[t].core);
    target_turn(s, t);
}

/* Replicas that are healthy have the same bytes. */
static bool disks_equal(struct sim *s, bool fail)
{
    int t = sim_serving_target(s), first = -1;
    struct repl_status st;
    bool equal = true;
    repl_target_status(s->target[t].core, &st);
    for (int m = 0; m < st.n; m++) {
        int i = st.replica[m].link;
        if (i < 0 || strcmp(st.replica[m].mode, "Healthy") != 0)
            continue;
        for (uint64_t k = 0; first >= 0 && k < s->size / SECTOR; k++) {
            if (memcmp(s->replica[first].disk.data + k * SECTOR,
                       s->replica[i].disk.data + k * SECTOR, SECTOR) == 0 ||
                damage_rotten(&s->replica[first], k) || damage_rotten(&s->replica[i], k))
                continue;
            equal = false;
            if (fail)
                sim_fail(s, "replicas %d and %d differ in sector %lu", first, i, k);
        }
        first = i;
    }
    return equal;
}

/* A scrub has read everything of those that were in sync; one that has no vote yet may have come since. */
static void all_mended(struct sim *s)
{
    struct repl_status st;
    repl_target_status(s->target[sim_serving_target(s)].core, &st);
    for (int m = 0; m < st.n; m++)
        if (st.replica[m].link >= 0 && strcmp(st.replica[m].mode, "Healthy") == 0 &&
            damage_rots(&s->replica[st.replica[m].link]))
            sim_fail(s, "replica %d was not mended", st.replica[m].link);
}

static void why_not_healthy(struct sim *s)
{
    struct repl_status st = {0};
    int t = sim_serving_target(s);
    if (t >= 0)
        repl_target_status(s->target[t].core, &st);
    for (int m = 0; m < st.n; m++)
        sim_trace(s, "  %02x%02x: %s, link %d, voter %d, quorum %d, owed %u",
                  st.replica[m].replica_id.bytes[0], st.replica[m].replica_id.bytes[1],
                  st.replica[m].mode, st.replica[m].link, st.replica[m].voter, st.replica[m].quorum,
                  st.replica[m].inflight_write);
}

static void advance(struct sim *s)
{
    bool lost = !s->safe && sim_without_memory(s) > sim_limit(s);
    s->doubt |= s->back && lost;
    if (s->back && !s->lossy && snaps_turn(s) && s->now <= s->stage_at + 8000 * MS)
        return; /* what reads return is known again when it is done */
    if (s->lossy && s->stage == RUN) {
        if (!read_all(s))
            return;
        model_check(s);
        s->untold |= model_untold(s->model, s->read_values, s->size / SECTOR);
        model_reset(s, s->read_values);
        for (int i = 0; i < REPLICAS; i++)
            s->replica[i].weak = false;
        s->lossy = s->quiet = false;
        s->read_next = -1;
        sim_trace(s, "what was flushed is there; on");
        return;
    }
    if (s->stage == RUN && !s->back && (lost || s->doubt)) {
        sim_trace(s, "a quorum has lost its memory");
        model_check(s);
        s->stats.losses++;
        s->lossy = s->quiet = true;
        s->doubt = false;
        s->read_next = -1;
        heal(s);
        return;
    }
    switch (s->stage) {
    case RUN:
        if (s->now < s->stage_at || s->lossy)
            break;
        stage(s, HEAL);
        heal(s);
        target_crash(s, 1);
        break;
    case HEAL:
        if (s->now > s->stage_at + 60 * MS) {
            s->quiet = true;
            stage(s, SETTLE);
        }
        break;
    case SETTLE:
        if (s->now > s->stage_at + 4000 * MS && sim_serving_target(s) < 0)
            damage_relieve(s);
        if (sim_idle(s) && all_healthy(s))
            stage(s, READ_ALL);
        break;
    case READ_ALL:
        if (read_all(s) && all_healthy(s)) {
            stage(s, SCRUB);
            disks_equal(s, true);
            snaps_check(s);
            damage(s);
        }
        break;
    case SCRUB:
        if (sim_serving_target(s) < 0)
            break;
        if (s->scrubbed && !s->mismatches && s->corrupt >= 0 && !disks_equal(s, false)) {
            /* The replica was away when its turn came. */
            s->scrubbed = !repl_target_scrub(s->target[sim_serving_target(s)].core);
        } else if (s->scrubbed && s->now > s->stage_at + 200 * MS &&
                   (disks_equal(s, false) || s->now > s->stage_at + 2000 * MS)) {
            stage(s, END);
            disks_equal(s, true);
            all_mended(s);
            model_check(s);
        }
        break;
    case END:
        break;
    }
    if (s->now > s->stage_at + 8000 * MS) {
        why_not_healthy(s);
        sim_fail(s, "no end: stage %d, %s, requests %s, %s", s->stage,
                 sim_serving_target(s) >= 0 ? "serving" : "frozen",
                 sim_idle(s) ? "done" : "waiting", all_healthy(s) ? "healthy" : "not healthy");
    }
}

/*
 * What makes lives unlike one another: many have only some kinds of faults, which then come together more often; some are
 * short or long; most requests are for few sectors, or not; clients are eager or not; marks are made often.
 */
static void plan_swarm(struct sim *s)
{
    static const int hot[] = {1, 3, 8, 8}, chance[] = {20, 60, 60, 95};
    static const int64_t every[] = {MS, 2 * MS, 2 * MS, 5 * MS};
    static const int64_t checkpoints[] = {10 * MS, 50 * MS, 400 * MS};
    s->kinds = sim_chance(s, 40) ? UINT32_MAX : (uint32_t)(sim_random(s) | 1u << sim_below(s, 18));
    int length = (int)sim_below(s, 10);
    s->stage_at = length < 3   ? sim_between(s, 80 * MS, 250 * MS)
                  : length < 9 ? sim_between(s, 200 * MS, 600 * MS)
                               : sim_between(s, 600 * MS, 1200 * MS);
    s->hot = hot[sim_below(s, 4)];
    s->hot_chance = chance[sim_below(s, 4)];
    s->client_every = every[sim_below(s, 4)];
    s->checkpoint = checkpoints[sim_below(s, 3)];
    s->map_chunk = 1 + (uint32_t)sim_below(s, 3);
    s->mark_bytes = (uint64_t)SECTOR << sim_below(s, 3);
    s->snaps_fail = sim_chance(s, 40);
    s->zeroing = sim_chance(s, 20) ? 25 : 5;
    s->initiators = sim_chance(s, 70) ? INITIATORS : 1;
    s->damages = sim_chance(s, 40);
    s->rots =
        s->safe && sim_chance(s, 35); /* else a quorum may lose what only the rotten one had */
}

static void plan(struct sim *s)
{
    static const int factors[] = {1, 2, 3, 3, 3, 3, 3, 4, 5, 5};
    static const int64_t delays[] = {MS / 10, MS / 2, 3 * MS};
    s->rf = factors[sim_below(s, 10)];
    s->behind = sim_chance(s, 30);
    s->cf = (int)repl_cf(sim_chance(s, s->behind ? 25 : 10) ? (unsigned)s->rf : 0, (unsigned)s->rf);
    s->size = (24 + (sim_chance(s, 25) ? 0 : sim_below(s, 40))) * SECTOR;
    s->safe = sim_chance(s, 65);
    s->sync_io = sim_chance(s, 40);
    s->rebuilds = sim_chance(s, 50);
    s->handover = sim_chance(s, 40);
    s->splits = sim_chance(s, 30);
    s->snaps = sim_chance(s, 35);
    s->delay = delays[sim_below(s, 3)];
    s->disk_delay = delays[sim_below(s, 3)];
    s->meta_delay = delays[sim_below(s, 3)];
    s->region_shift = (uint8_t)(9 + sim_below(s, 4));
    /* A block is not larger than a region. */
    s->pool_sectors = s->region_shift > 9 && sim_chance(s, 50) ? 2 : 1;
    s->extent_shift = (uint8_t)(s->region_shift + sim_below(s, 3));
    s->fault_every = sim_between(s, 10 * MS, s->behind ? 50 * MS : 120 * MS);
    s->depth = s->splits ? IOS : 1 + (int)sim_below(s, IOS);
    plan_swarm(s);
    s->named = sim_chance(s, 70);
    s->buried = s->split_reader = -1;
    /* How many of a hundred are in a pool of ZFS. */
    static const int pools[] = {0, 50, 50, 100};
    int in_pools = pools[sim_below(s, 4)];
    /* Any RF of them have a member in common with any other RF. */
    int spare = s->named || sim_chance(s, 40) ? 0 : s->rf - 1;
    for (int i = 0; i < REPLICAS; i++) {
        struct sim_replica *r = &s->replica[i];
        r->s = s;
        r->i = i;
        r->id.bytes[0] = (uint8_t)(i + 1);
        r->p.rate = 0.92 + (double)sim_below(s, 17) / 100;
        r->used = i < s->rf + spare;
        r->pool = sim_chance(s, in_pools);
        s->first[i] = r->id;
        replica_wipe(s, i);
    }
    s->volume.bytes[3] = 7;
    sim_trace(s, "seed %lu: RF %d CF %d, %lu sectors, %s, store answers %s", s->seed, s->rf, s->cf,
              s->size / SECTOR, s->safe ? "no quorum is lost" : "quorums may be lost",
              s->sync_io ? "at once" : "later");
}

/* Everything starts. Where there are spare replicas, one target sees the first RF, another the last RF. */
static void begin(struct sim *s)
{
    bool spare = s->replica[s->rf].used;
    int64_t apart = spare ? sim_between(s, 20 * MS, 300 * MS) : 0;
    s->calm_until = apart;
    for (int i = 0; i < REPLICAS; i++) {
        int64_t late = i >= s->rf ? sim_between(s, 0, 120 * MS) : 0;
        world_event(s, late + sim_between(s, 0, 10 * MS), EV_START_REPLICA, i, 0, 0, NULL);
        struct conn *c = i >= s->rf ? &s->conn[0][i] : &s->conn[1][i];
        if (i != s->rf - 1)
            c->blocked[0] = c->blocked[1] = apart;
    }
    world_event(s, 0, EV_START_TARGET, 0, 0, 0, NULL);
    if (spare || sim_chance(s, 30))
        world_event(s, sim_between(s, 0, 20 * MS), EV_START_TARGET, 1, 0, 0, NULL);
}

bool sim_life(uint64_t seed, bool trace, struct sim *s)
{
    memset(s, 0, sizeof(*s));
    s->seed = s->rng = seed;
    s->trace = trace;
    s->model = model_new();
    s->history = history_new();
    s->corrupt = -1;
    s->read_next = -1;
    for (int i = 0; i < CONNS; i++)
        for (int k = 0; k < 2; k++)
            s->conn[i / REPLICAS][i % REPLICAS].held_end[k] =
                &s->conn[i / REPLICAS][i % REPLICAS].held[k];
    plan(s);
    begin(s);
    world_event(s, 10 * MS, EV_CLIENT, 0, 0, 0, NULL);
    world_event(s, 11 * MS, EV_CLIENT, 1, 0, 0, NULL);
    world_event(s, 60 * MS, EV_FAULT, 0, 0, 0, NULL);
    struct event e;
    while (s->stage != END && !s->failure.failed && world_step(s, &e)) {
        world_handle(s, &e);
        if (!s->failure.failed)
            advance(s);
        if (s->steps > STEPS_MAX)
            sim_fail(s, "no end after %d steps", STEPS_MAX);
    }
    world_done(s);
    return !s->failure.failed;
}

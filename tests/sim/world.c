/*
 * Time, processes, and what they do to disks. Everything random comes from the seed; events at one time keep their
 * order. A process that is frozen gets its events when it thaws; one that crashed never gets them (`life`).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "repl/meta.h"
#include "sim.h"

int64_t local_time(const struct sim *s, const struct process *p)
{
    return (int64_t)((double)(s->now + 1000 * MS) * p->rate);
}

/* When a process that asked for local time `at` is to be woken. */
static int64_t world_time(const struct sim *s, const struct process *p, int64_t at)
{
    if (at > 1000000 * MS)
        return s->now + 1000000 * MS;
    return (int64_t)((double)at / p->rate) - 1000 * MS + 1;
}

/* The target's actions; its links are numbers of replicas. */

static void target_send(void *ctx, int link, const struct repl_msg *m, const struct iovec *iov,
                        int n, struct repl_buf *owner)
{
    (void)owner;
    struct sim_target *t = ctx;
    size_t length = 0;
    for (int i = 0; i < n; i++)
        length += iov[i].iov_len;
    struct message *q = net_message(m, length);
    q->buf = (struct repl_buf){1, net_message_free};
    uint8_t *p = q->payload;
    for (int i = 0; i < n; p += iov[i].iov_len, i++)
        memcpy(p, iov[i].iov_base, iov[i].iov_len);
    claims_target(t->s, t->i, m, iov);
    net_post(t->s, t->i, link, 1, q);
    life_sent(t->s, t->i, link, m);
}

static void target_close(void *ctx, int link, const char *why)
{
    struct sim_target *t = ctx;
    sim_trace(t->s, "target %d drops replica %d: %s", t->i, link, why);
    claims_dropped(t->s, "target", t->i, why);
    net_end(t->s, t->i, link, 0);
}

static void target_complete(void *ctx, struct repl_io *io, int status)
{
    struct sim_target *t = ctx;
    life_complete(t->s, t->i, io, status);
}

static void target_admin_done(void *ctx, enum repl_admin op, int status)
{
    struct sim_target *t = ctx;
    life_admin_done(t->s, t->i, op, status);
}

static void target_event(void *ctx, enum repl_event what, uint64_t a, uint64_t b)
{
    static const char *const names[] = {"epoch",      "fenced",   "serving",   "dropped",
                                        "maybe lost", "mismatch", "undecided", "in sync",
                                        "forced",     "lost",     "unreadable"};
    struct sim_target *t = ctx;
    sim_trace(t->s, "target %d: %s %lu %lu", t->i, names[what], a, b);
    if (what == REPL_EV_SERVING) {
        t->serving = a;
        t->checked = false;
        t->s->stats.serving += a;
    }
    if (what == REPL_EV_EPOCH)
        t->s->stats.elections++;
    if (what == REPL_EV_FENCED)
        t->fenced = true;
    if (what == REPL_EV_MISMATCH)
        t->s->mismatches++;
}

static const struct repl_target_ops target_ops = {.send = target_send,
                                                  .close = target_close,
                                                  .complete = target_complete,
                                                  .admin_done = target_admin_done,
                                                  .event = target_event};

static void wake(struct sim *s, struct process *p, int kind, int i, int64_t at)
{
    if (at >= p->turn_at && p->turn_at > s->now)
        return;
    p->turn_at = at > s->now ? at : s->now;
    world_event(s, p->turn_at, kind, i, 0, p->life, NULL);
}

void target_turn(struct sim *s, int i)
{
    struct sim_target *t = &s->target[i];
    int64_t next = repl_target_turn(t->core, local_time(s, &t->p));
    const char *broken = repl_target_check(t->core);
    if (broken)
        sim_fail(s, "target %d: %s", i, broken);
    if (t->serving && !t->checked)
        claims_serves(s, i);
    t->checked = true;
    if (t->fenced) {
        target_crash(s, i);
        return;
    }
    wake(s, &t->p, EV_TURN_TARGET, i, world_time(s, &t->p, next));
}

void target_start(struct sim *s, int i, bool create)
{
    struct sim_target *t = &s->target[i];
    struct repl_target_config c = {
        .volume = s->volume,
        .owner_seed = sim_random(s),
        .create = create,
        .size = s->size,
        .rf = (uint8_t)s->rf,
        .cf = (uint8_t)s->cf,
        .region_shift = s->region_shift,
        .block_shift = 9,
        .place_shift = 9,
        .window = 32,
        .reads = 16,
        .lag_bytes = 64 * SECTOR,
        .lag_ns = 40 * MS,
        .lease_ns = LEASE,
        .dead_ns = 300 * MS,
        .grace_ns = s->safe ? -1 : 300 * MS,
        .mark_bytes = s->mark_bytes,
        .map_chunk = s->map_chunk,
        .ahead = s->mark_bytes == SECTOR ? 1 : 0,
    };
    if (s->named) {
        memcpy(c.first, s->first, sizeof(c.first));
        c.first_n = (uint8_t)s->rf;
    }
    uint32_t life = t->p.life + 1;
    *t = (struct sim_target){.s = s, .i = i};
    t->p =
        (struct process){.up = true, .life = life, .rate = 0.92 + (double)sim_below(s, 17) / 100};
    t->core = repl_target_new(&c, &target_ops, t);
    sim_trace(s, "target %d starts%s", i, create ? ", may create" : "");
    target_turn(s, i);
}

static void target_end(struct sim *s, int i, int lost)
{
    struct sim_target *t = &s->target[i];
    if (!t->p.up)
        return;
    sim_trace(s, "target %d ends", i);
    t->p.up = t->serving = false;
    t->p.life++;
    for (int r = 0; r < REPLICAS; r++) {
        if (s->conn[i][r].up[0])
            net_end(s, i, r, 0);
        if (sim_chance(s, lost))
            s->conn[i][r].clear_at[1] = NEVER; /* what was under way is lost, or not */
    }
    repl_target_free(t->core);
    t->core = NULL;
    life_target_gone(s, i);
}

void target_crash(struct sim *s, int i)
{
    target_end(s, i, 50);
}

void target_stop(struct sim *s, int i)
{
    if (s->target[i].p.up)
        repl_target_bye(s->target[i].core);
    target_end(s, i, 0);
}

static void replica_meta_write(void *ctx, uint64_t offset, const void *data, size_t size)
{
    struct sim_replica *r = ctx;
    store_check_meta(r, offset, size);
    if (r->s->failure.failed)
        return;
    if (r->pool && sim_chance(r->s, 2))
        pool_sync(r);
    memcpy(r->disk.meta + offset, data, size);
    store_meta_written(r, offset, data);
    disk_log_write(&r->disk.meta_end, offset, data, size, true);
}

static int replica_meta_sync(void *ctx)
{
    struct sim_replica *r = ctx;
    struct sim *s = r->s;
    disk_mark_flushing(r->disk.meta_log);
    store_meta_syncing(r);
    life_syncing(s, r->i);
    if (s->sync_io && !r->slow) {
        store_meta_synced(r);
        return 1;
    }
    int64_t delay = r->slow ? 20 * s->meta_delay : s->meta_delay;
    world_event(s, s->now + 1000 + (int64_t)sim_below(s, (uint64_t)delay), EV_SYNCED, r->i, 0,
                r->p.life, NULL);
    return 0;
}

/* The replica's actions; its links are numbers of targets. */

static struct repl_buf *replica_buffer(void *ctx, size_t size, void **ret_data)
{
    (void)ctx;
    struct message *q = mem_alloc(sizeof(*q) + size);
    q->buf = (struct repl_buf){1, net_message_free};
    *ret_data = q->payload;
    return &q->buf;
}

static void replica_send(void *ctx, int link, const struct repl_msg *m, const void *payload,
                         struct repl_buf *owner)
{
    (void)owner;
    struct sim_replica *r = ctx;
    struct message *q = net_message(m, m->length);
    q->buf = (struct repl_buf){1, net_message_free};
    if (m->length)
        memcpy(q->payload, payload, m->length);
    claims_replica(r->s, link, r->i, m);
    net_post(r->s, link, r->i, 0, q);
}

static void replica_close(void *ctx, int link, const char *why)
{
    struct sim_replica *r = ctx;
    sim_trace(r->s, "replica %d drops target %d: %s", r->i, link, why);
    claims_dropped(r->s, "replica", r->i, why);
    net_end(r->s, link, r->i, 1);
}

static const struct repl_replica_ops replica_ops = {.store = store_request,
                                                    .meta_write = replica_meta_write,
                                                    .meta_sync = replica_meta_sync,
                                                    .log_write = store_log_write,
                                                    .buffer = replica_buffer,
                                                    .send = replica_send,
                                                    .close = replica_close};

/* Its process is gone, and perhaps the power. */
static void replica_end(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    r->p.up = r->stopping = false;
    r->p.life++;
    for (int t = 0; t < TARGETS; t++)
        if (s->conn[t][i].up[1])
            net_end(s, t, i, 1);
    repl_replica_free(r->core);
    r->core = NULL;
    struct disk *d = &r->disk;
    d->sums_flush[0].of = d->sums_flush[1].of = NULL;
    if (r->pool) {
        pool_crash(r);
        for (int k = 0; k < SECTORS_MAX; k++)
            d->sums[k] = d->sums_sure[k] = repl_sum(d->data + (size_t)k * SECTOR, SECTOR);
        return;
    }
    disk_log_crash(s, &d->data_log, &d->data_end, d->data_sure, d->data, sizeof(d->data), SECTOR);
    disk_log_crash(s, &d->meta_log, &d->meta_end, d->meta_sure, d->meta, sizeof(d->meta),
                   META_GRAIN);
    for (int k = 0; k < SECTORS_MAX; k++)
        if (sim_chance(s, 50))
            d->sums[k] = d->sums_sure[k];
    memcpy(d->sums_sure, d->sums, sizeof(d->sums));
}

/* What it had in memory is on its disk, and it says so. */
static void replica_stopped(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    const struct repl_super *sure = &r->sure.super;
    struct repl_replica_status st;
    repl_replica_status(r->core, &st);
    if (st.complete && (!sure->clean || sure->pos != st.position))
        sim_fail(s, "replica %d stops in order at %lx, and is at %lx%s", i, st.position, sure->pos,
                 sure->clean ? "" : ", not clean");
    sim_trace(s, "replica %d has stopped%s", i, sure->clean ? ", clean" : "");
    if (!sure->clean)
        r->weak = r->crashed = true;
    s->stats.stops++;
    replica_end(s, i);
    world_event(s, s->now + sim_between(s, MS, 60 * MS), EV_START_REPLICA, i, 0, 0, NULL);
}

static void replica_turn(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    int64_t next = repl_replica_turn(r->core, local_time(s, &r->p));
    const char *broken = repl_replica_check(r->core);
    if (broken)
        sim_fail(s, "replica %d: %s", i, broken);
    if (r->stopping && repl_replica_stopped(r->core)) {
        replica_stopped(s, i);
        return;
    }
    wake(s, &r->p, EV_TURN_REPLICA, i, world_time(s, &r->p, next));
}

static void read_meta(void *ctx, uint64_t offset, void *data, size_t size)
{
    const struct sim_replica *r = ctx;
    memset(data, 0, size);
    if (offset < META_SIZE)
        memcpy(data, r->disk.meta + offset, size < META_SIZE - offset ? size : META_SIZE - offset);
}

/* An empty one. */
static void replica_new_store(struct sim *s, int i, uint64_t size)
{
    struct disk *d = &s->replica[i].disk;
    disk_free_snaps(d, 0);
    memset(d->data, 0, sizeof(d->data));
    memset(d->data_sure, 0, sizeof(d->data_sure));
    d->size = size;
    d->generation = 0;
    d->missing = false;
    for (int k = 0; k < SECTORS_MAX; k++)
        d->sums[k] = d->sums_sure[k] = repl_sum(d->data, SECTOR);
    for (int k = 0; k < 16; k++)
        d->store.bytes[k] = (uint8_t)sim_random(s);
    memset(s->replica[i].rotten, 0, sizeof(s->replica[i].rotten));
}

static void set_aside(struct sim *s, int i)
{
    enum { NEW_SIZE = 4096 };
    sim_trace(s, "replica %d sets its store aside", i);
    replica_new_store(s, i, NEW_SIZE);
}

/* As src/replio/replica_open.c: a store that the metadata does not speak of is set aside, and there is a new one. */
static void open_store(struct sim *s, int i, struct repl_replica_config *c)
{
    struct disk *d = &s->replica[i].disk;
    struct repl_super super;
    enum repl_found found =
        repl_super_choose(d->meta + repl_super_offset(0), d->meta + repl_super_offset(1), &super);
    bool known = found == REPL_FOUND_GOOD ? repl_super_knows(&super, &d->store, d->generation)
                                          : uuid_eq(&super.store, &d->store);
    c->lost |= super.generation ? d->missing || !known : found == REPL_FOUND_BAD || d->generation;
    c->store_new = c->lost || !super.generation;
    if (c->lost && !s->replica[i].damaged)
        sim_fail(s, "replica %d does not know its own store", i);
    if (c->lost)
        set_aside(s, i);
}

static void describe_store(const struct disk *d, struct repl_replica_config *c)
{
    c->store = d->store;
    c->store_generation = d->generation;
    c->store_size = d->size;
    c->held.n = 0;
    for (int k = 0; k < d->snaps; k++)
        c->held.id[c->held.n++] = d->snap[k].id;
}

static int load(struct sim *s, int i, const struct repl_replica_config *c)
{
    struct sim_replica *r = &s->replica[i];
    struct err e;
    r->core = repl_replica_new(c, &replica_ops, r);
    if (repl_replica_load(r->core, read_meta, &e) == 0)
        return 0;
    if (!r->damaged)
        sim_fail(s, "replica %d cannot start: %s", i, e.msg);
    repl_replica_free(r->core);
    r->core = NULL;
    damage_refused(s, i);
    return -1;
}

void replica_start(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (r->p.up || !r->used)
        return;
    struct repl_replica_config c = {.volume = s->volume,
                                    .replica = r->id,
                                    .lease_ns = LEASE,
                                    .checkpoint_ns = s->checkpoint,
                                    .idle_ns = 4 * s->checkpoint,
                                    .active_max = ACTIVE_MAX,
                                    .extent_shift = s->extent_shift,
                                    .checked = true,
                                    .sums_with_data = r->pool,
                                    .ops = 48};
    open_store(s, i, &c);
    describe_store(&r->disk, &c);
    if (load(s, i, &c) < 0)
        return;
    if (c.store_new)
        r->bad_page = false;
    damage_check_map(s, i);
    if (!c.store_new && damage_obvious(r)) {
        repl_replica_free(r->core);
        r->core = NULL;
        r->damaged = r->wiped = true;
        damage_forgot(r);
        set_aside(s, i);
        c.lost = c.store_new = true;
        describe_store(&r->disk, &c);
        if (load(s, i, &c) < 0)
            return;
    }
    r->p.up = true;
    r->p.life++;
    r->p.frozen_until = 0;
    r->p.turn_at = 0;
    store_meta_read(r);
    repl_replica_start(r->core, local_time(s, &r->p));
    sim_trace(s, "replica %d starts", i);
    if (s->now < s->zeros_until) { /* it finds nothing else, and is rebuilt before there is */
        s->zeros_until = s->now;
        s->reads_until = s->now + 20 * MS;
    }
    replica_turn(s, i);
    world_event(s, s->now + (int64_t)sim_below(s, (uint64_t)(5 * MS)), EV_DIAL, i, 0, r->p.life,
                NULL);
}

void replica_crash(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (!r->p.up)
        return;
    sim_trace(s, "replica %d crashes", i);
    r->weak = true;
    s->stats.crashes++;
    replica_end(s, i);
    struct repl_super left;
    const uint8_t *meta = r->disk.meta;
    repl_super_choose(meta + repl_super_offset(0), meta + repl_super_offset(1), &left);
    r->crashed |= !left.clean; /* else it was about to stop, or has not begun anything since */
}

void replica_stop(struct sim *s, int i)
{
    struct sim_replica *r = &s->replica[i];
    if (!r->p.up || r->stopping || r->p.frozen_until > s->now)
        return;
    sim_trace(s, "replica %d stops", i);
    r->stopping = true;
    repl_replica_stop(r->core);
    replica_turn(s, i);
}

void replica_wipe(struct sim *s, int i)
{
    struct disk *d = &s->replica[i].disk;
    disk_free_snaps(d, 0);
    memset(d, 0, sizeof(*d));
    d->data_end = &d->data_log;
    d->meta_end = &d->meta_log;
    replica_new_store(s, i, s->size);
    s->replica[i].sure = s->replica[i].said = (struct claim){0};
}

static struct process *process_of(struct sim *s, const struct event *e)
{
    switch (e->kind) {
    case EV_TURN_TARGET:
        return &s->target[e->a].p;
    case EV_TURN_REPLICA:
    case EV_STORED:
    case EV_SYNCED:
    case EV_LOGGED:
    case EV_DIAL:
        return &s->replica[e->a].p;
    case EV_MESSAGE:
    case EV_BROKEN:
        return e->b ? &s->replica[e->a % REPLICAS].p : &s->target[e->a / REPLICAS].p;
    default:
        return NULL;
    }
}

void world_handle(struct sim *s, struct event *e)
{
    struct process *p = process_of(s, e);
    bool conn = e->kind == EV_MESSAGE || e->kind == EV_BROKEN;
    if (p && p->up && p->frozen_until > s->now && (conn || e->life == p->life)) {
        world_put_off(s, e, p->frozen_until);
        return;
    }
    if (p && (!p->up || (!conn && e->life != p->life))) {
        if (e->kind == EV_MESSAGE)
            repl_buf_unref(&((struct message *)e->p)->buf);
        return;
    }
    switch (e->kind) {
    case EV_TURN_TARGET:
    case EV_TURN_REPLICA:
        break;
    case EV_MESSAGE:
        net_arrived(s, e);
        break;
    case EV_BROKEN:
        net_broken(s, e);
        break;
    case EV_STORED:
        store_done(s, e);
        break;
    case EV_SYNCED:
        store_meta_synced(&s->replica[e->a]);
        repl_replica_meta_synced(s->replica[e->a].core, 0);
        break;
    case EV_LOGGED:
        store_log_written(&s->replica[e->a]);
        repl_replica_logged(s->replica[e->a].core, 0);
        break;
    case EV_DIAL:
        net_dial(s, e->a);
        break;
    default:
        life_event(s, e);
        return;
    }
    /* Whoever got something takes a turn. */
    bool is_target = p == &s->target[0].p || p == &s->target[1].p;
    int i = is_target ? (int)((struct sim_target *)p - s->target)
                      : (int)((struct sim_replica *)p - s->replica);
    if (is_target) {
        target_turn(s, i);
    } else {
        replica_turn(s, i);
        if (s->replica[i].p.up)
            net_give_held(s, i);
    }
    for (int k = 0; e->kind == EV_DIAL && k < TARGETS; k++)
        if (s->target[k].p.up && s->target[k].p.frozen_until <= s->now)
            target_turn(s, k);
}

void world_done(struct sim *s)
{
    for (int t = 0; t < TARGETS; t++) {
        repl_target_free(s->target[t].core);
        for (int r = 0; r < REPLICAS; r++) {
            net_free_held(&s->conn[t][r], 0);
            net_free_held(&s->conn[t][r], 1);
        }
    }
    for (int i = 0; i < REPLICAS; i++) {
        struct sim_replica *r = &s->replica[i];
        repl_replica_free(r->core);
        free(r->image);
        disk_free_snaps(&r->disk, 0);
        disk_log_crash(s, &r->disk.data_log, &r->disk.data_end, r->disk.data_sure, r->disk.data, 0,
                       SECTOR);
        disk_log_crash(s, &r->disk.meta_log, &r->disk.meta_end, r->disk.meta_sure, r->disk.meta, 0,
                       SECTOR);
    }
    for (size_t i = 0; i < s->heap_n; i++)
        if (s->heap[i].kind == EV_MESSAGE)
            repl_buf_unref(&((struct message *)s->heap[i].p)->buf);
    free(s->heap);
    model_free(s->model);
    history_free(s->history);
}

/*
 * The replica's life: its links, the turn, its end. How it begins is replica_load.c, what it is told replica_input.c.
 */
#include "repl/replica.h"

#include "base/crc.h"
#include "base/mem.h"
#include "repl/replica_impl.h"

static const struct {
    int64_t lease_ns, checkpoint_ns, idle_ns;
    uint32_t active_max, ops;
} defaults = {600 * 1000000LL, 5000 * 1000000LL, 60000 * 1000000LL, 1024, 1024};

struct repl_replica *repl_replica_new(const struct repl_replica_config *c,
                                      const struct repl_replica_ops *ops, void *ctx)
{
    struct repl_replica *r = NEW(struct repl_replica);
    r->cfg = *c;
    r->cfg.lease_ns = c->lease_ns ? c->lease_ns : defaults.lease_ns;
    r->cfg.checkpoint_ns = c->checkpoint_ns ? c->checkpoint_ns : defaults.checkpoint_ns;
    r->cfg.idle_ns = c->idle_ns ? c->idle_ns : defaults.idle_ns;
    r->cfg.active_max = c->active_max ? c->active_max : defaults.active_max;
    r->cfg.active_room =
        c->active_room && c->active_room < REPL_ACTIVE ? c->active_room : REPL_ACTIVE;
    r->cfg.extent_shift = c->extent_shift ? c->extent_shift : REPL_EXTENT_SHIFT;
    r->cfg.ops = c->ops ? c->ops : defaults.ops;
    r->ops = ops;
    r->ctx = ctx;
    r->bound = r->later_link = -1;
    r->store_size = c->store_size;
    r->written_to = UINT64_MAX;
    list_init(&r->lru);
    list_init(&r->extents_free);
    list_init(&r->active);
    list_init(&r->free_ops);
    r->extents = mem_zalloc(r->cfg.active_room * sizeof(*r->extents));
    for (uint32_t i = 0; i < r->cfg.active_room; i++)
        list_push(&r->extents_free, &r->extents[i].link);
    r->ops_all = mem_zalloc(r->cfg.ops * sizeof(*r->ops_all));
    for (uint32_t i = 0; i < r->cfg.ops; i++)
        list_push(&r->free_ops, &r->ops_all[i].link);
    return r;
}

void repl_replica_free(struct repl_replica *r)
{
    if (!r)
        return;
    list_for_each(&r->active, o, struct op, link) {
        free(o->copy);
        free(o->view);
        repl_buf_unref(o->owner);
    }
    free(r->ops_all);
    free(r->extents);
    free(r->map);
    free(r->slot_of);
    free(r->dirty);
    free(r->stale);
    free(r);
}

void replica_send(struct repl_replica *r, int link, struct repl_msg *m, const void *payload,
                  struct repl_buf *owner)
{
    m->volume = r->cfg.volume;
    m->epoch = r->sb.promised;
    m->data_crc = m->length ? crc_32c(payload, m->length) : 0;
    r->ops->send(r->ctx, link, m, payload, owner);
}

/* The rebuild is over: a flush that is under way, or still to come, is no longer the end of it. */
void replica_forget_rebuild(struct repl_replica *r)
{
    r->done_owed = r->mark_owed = false;
    if (!GUARD(11, false))
        r->flush_done = r->flush_mark = false;
    pieces_forget(r);
    r->rebuilding = false;
}

void replica_unbind(struct repl_replica *r)
{
    ops_drop_waiting(r);
    r->bound = -1;
    r->joined = GUARD(56, false);
    r->promise_owed = r->ping_owed = false;
    replica_forget_rebuild(r);
}

void replica_drop(struct repl_replica *r, int link, const char *why)
{
    if (!r->peer[link].open)
        return;
    r->peer[link].open = false;
    if (r->bound == link)
        replica_unbind(r);
    if (r->later_link == link)
        r->later_link = -1;
    r->ops->close(r->ctx, link, why);
}

/* Memory is no longer worth anything: as after a crash. */
void replica_fault(struct repl_replica *r, const char *why)
{
    int link = r->bound;
    if (link >= 0)
        replica_drop(r, link, why);
    map_forget(r);
    r->session++;
    r->complete = r->intact = false;
    r->pos = r->sb.pos;
}

void repl_replica_open(struct repl_replica *r, int link)
{
    r->peer[link].open = r->peer[link].want_hello = true;
    r->peer[link].life++;
}

void repl_replica_close(struct repl_replica *r, int link)
{
    r->peer[link].open = false;
    if (r->bound == link)
        replica_unbind(r);
    if (r->later_link == link)
        r->later_link = -1;
}

static void send_state(struct repl_replica *r, int link, uint8_t type)
{
    uint8_t block[REPL_SUPER_SIZE];
    struct repl_super s = r->sb;
    repl_super_encode(&s, block);
    struct repl_msg m = {
        .type = type, .seq = r->pos, .offset = r->sb.boot, .length = sizeof(block)};
    if (!r->sb.view.version)
        m.flags |= REPL_BLANK;
    if (r->intact)
        m.flags |= REPL_INTACT;
    if (!GUARD(66, !r->sb.lost))
        m.flags |= REPL_LOST;
    replica_send(r, link, &m, block, NULL);
}

static void send_ack(struct repl_replica *r)
{
    /* Before its JOIN a target would take counts of the last one's writes for its own. */
    if (r->bound < 0 || !r->joined ||
        (r->applied == r->applied_told && r->durable == r->durable_told))
        return;
    r->applied_told = r->applied;
    r->durable_told = r->durable;
    struct repl_msg m = {
        .type = REPL_ACK, .seq = r->applied, .offset = r->durable, .count = r->join};
    replica_send(r, r->bound, &m, NULL, NULL);
}

/*
 * Only here, where it is known what time it is: a lease that began when the replica last did something would end too early.
 * If another waits for the end of the lease, the target's time is over.
 */
static void answer_ping(struct repl_replica *r)
{
    bool owed = r->ping_owed && r->later_link < 0;
    r->ping_owed = false;
    if (!owed)
        return;
    r->lease_until = r->now + r->cfg.lease_ns;
    struct repl_msg pong = {.type = REPL_PONG, .seq = r->ping};
    replica_send(r, r->bound, &pong, NULL, NULL);
}

/*
 * Nobody asked for it: an idle replica makes its position durable soon, one that is busy seldom. What a sync of the data
 * forces to the disk now, a client may be about to write again, and the kernel would have gathered.
 */
static void checkpoint(struct repl_replica *r)
{
    enum { BUSY = 6 };
    if (r->now < r->checkpoint_at)
        return;
    r->checkpoint_at = r->now + r->cfg.checkpoint_ns;
    bool idle = r->now - r->touched_at >= r->cfg.checkpoint_ns,
         late = r->now - r->flushed_at >= BUSY * r->cfg.checkpoint_ns;
    if (r->complete && r->pos > r->sb.pos && (idle || late))
        flush_request(r);
}

/* Extents that cannot retire, because their checksums are still to be made anew, stay in the log. */
static bool all_retired(const struct repl_replica *r)
{
    return r->retire_state == RETIRE_IDLE && !r->log_dirty && !r->log_running &&
           (!r->active_n || r->stale_n);
}

/* Once: one that misses something does not become clean by it, and has stopped all the same. */
static void stop_progress(struct repl_replica *r)
{
    if (r->stopping && !r->stopped && r->flush_state == FLUSH_IDLE &&
        r->flush_want <= r->flush_have && list_empty(&r->active) && r->seal_state == SEAL_NONE &&
        all_retired(r)) {
        r->stopped = true;
        seal_begin(r);
    }
}

int64_t repl_replica_turn(struct repl_replica *r, int64_t now)
{
    r->now = now;
    if (!r->started || r->failed)
        return INT64_MAX;
    if (r->later_link >= 0 && now >= r->lease_until) {
        int link = r->later_link;
        r->later_link = -1;
        replica_promise(r, link, &r->later);
    }
    checkpoint(r);
    stop_progress(r);
    for (bool again = true; again;) { /* one thing done at once may allow the next */
        uint64_t synced = r->synced, logged = r->logged;
        int flush = r->flush_state, retire = r->retire_state;
        seal_progress(r);
        flush_progress(r);
        map_retire(r);
        log_begin(r);
        meta_begin(r);
        ops_kick(r);
        again = synced != r->synced || logged != r->logged || flush != (int)r->flush_state ||
                retire != (int)r->retire_state;
    }
    ops_resum(r);
    if (!r->seals || r->failed) /* the new boot number is not durable yet */
        return r->checkpoint_at;
    for (int i = 0; i < REPL_LINKS; i++) {
        if (r->peer[i].open && r->peer[i].want_hello) {
            r->peer[i].want_hello = false;
            send_state(r, i, REPL_HELLO);
        }
    }
    if (r->promise_owed && GUARD(37, r->synced >= r->promise_sync) && list_empty(&r->active)) {
        r->promise_owed = false;
        send_state(r, r->bound, REPL_PROMISED);
    }
    if (r->view_sync && r->synced >= r->view_sync && r->bound >= 0) {
        r->view_sync = 0;
        struct repl_msg m = {.type = REPL_VIEW_OK, .seq = r->sb.view.version};
        replica_send(r, r->bound, &m, NULL, NULL);
        /* A target that waits with an old greeting would never learn of it. */
        for (int i = 0; i < REPL_LINKS; i++)
            if (r->peer[i].open && i != r->bound)
                send_state(r, i, REPL_HELLO);
    }
    send_ack(r);
    answer_ping(r);
    REPL_CHECK(repl_replica_check(r));
    if (r->stopping && !repl_replica_stopped(r))
        return now + 1000000; /* one step of it after the other */
    if (r->stale_n)
        return now + 1000000;
    if (r->later_link >= 0 && r->lease_until < r->checkpoint_at)
        return r->lease_until;
    return r->checkpoint_at;
}

void repl_replica_stop(struct repl_replica *r)
{
    /* Also those that wait for a promise: what is written from now on would not be flushed. */
    for (int i = 0; i < REPL_LINKS; i++)
        replica_drop(r, i, "the replica stops");
    r->stopping = true;
    flush_request(r);
}

bool repl_replica_stopped(const struct repl_replica *r)
{
    return r->failed || (r->stopped && r->seal_state == SEAL_NONE && !r->sync_running);
}

void repl_replica_status(const struct repl_replica *r, struct repl_replica_status *ret_status)
{
    *ret_status = (struct repl_replica_status){.super = &r->sb,
                                               .position = r->pos,
                                               .store_size = r->store_size,
                                               .complete = r->complete,
                                               .failed = r->failed,
                                               .active = r->active_n,
                                               .ops = r->ops_n,
                                               .stale = r->stale_n,
                                               .damaged = r->damaged,
                                               .bound = r->bound >= 0,
                                               .fresh = !r->complete && (r->sb.lost || !r->sb.pos),
                                               .rebuilding = !r->complete && r->rebuilding};
    uint64_t size = r->sb.view.size;
    if (ret_status->rebuilding && size)
        ret_status->percent =
            (uint32_t)(r->rebuilt_to < size ? r->rebuilt_to / (size / 100 + 1) : 100);
}

uint64_t repl_replica_region(const struct repl_replica *r, uint64_t region)
{
    return region < r->regions ? r->map[region] : 0;
}

/*
 * The replica's life: what it starts with, its links, the turn, its end. What it is told is replica_input.c.
 */
#include "repl/replica.h"

#include "base/crc.h"
#include "base/mem.h"
#include "repl/meta.h"
#include "repl/replica_impl.h"

static const struct {
    int64_t lease_ns, checkpoint_ns;
    uint32_t hot_max, ops;
} defaults = {600 * 1000000LL, 5000 * 1000000LL, 4096, 1024};

struct repl_replica *repl_replica_new(const struct repl_replica_config *c,
                                      const struct repl_replica_ops *ops, void *ctx)
{
    struct repl_replica *r = NEW(struct repl_replica);
    r->cfg = *c;
    r->cfg.lease_ns = c->lease_ns ? c->lease_ns : defaults.lease_ns;
    r->cfg.checkpoint_ns = c->checkpoint_ns ? c->checkpoint_ns : defaults.checkpoint_ns;
    r->cfg.hot_max = c->hot_max ? c->hot_max : defaults.hot_max;
    r->cfg.ops = c->ops ? c->ops : defaults.ops;
    if (r->cfg.hot_max > UINT16_MAX - 1)
        r->cfg.hot_max = UINT16_MAX - 1;
    r->ops = ops;
    r->ctx = ctx;
    r->bound = r->later_link = -1;
    r->store_size = c->store_size;
    list_init(&r->lru);
    list_init(&r->hot_free);
    list_init(&r->active);
    list_init(&r->free_ops);
    r->hot = mem_zalloc(r->cfg.hot_max * sizeof(*r->hot));
    for (uint32_t i = 0; i < r->cfg.hot_max; i++)
        list_push(&r->hot_free, &r->hot[i].link);
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
    free(r->hot);
    free(r->map);
    free(r->hot_of);
    free(r->dirty);
    free(r);
}

int repl_replica_load_super(struct repl_replica *r, const uint8_t a[REPL_SUPER_SIZE],
                            const uint8_t b[REPL_SUPER_SIZE], struct err *e)
{
    if (repl_super_choose(a, b, &r->sb, e) < 0)
        return -1;
    if (!r->sb.generation) {
        r->sb.volume = r->cfg.volume;
        r->sb.replica = r->cfg.replica;
    }
    if (!uuid_eq(&r->sb.volume, &r->cfg.volume) || !uuid_eq(&r->sb.replica, &r->cfg.replica))
        return err_set(
            e, ERR_FAILED_PRECONDITION, "OtherVolume",
            "this store belongs to another volume or replica; check which disk it is on");
    r->sb.held = r->cfg.held;
    if (r->sb.view.version)
        map_resize(r, r->store_size, r->sb.view.region_shift);
    return 0;
}

uint64_t repl_replica_pages(const struct repl_replica *r)
{
    return (r->regions + REPL_PAGE_ENTRIES - 1) / REPL_PAGE_ENTRIES;
}

void repl_replica_load_page(struct repl_replica *r, uint64_t page,
                            const uint8_t block[REPL_SUPER_SIZE])
{
    uint64_t entries[REPL_PAGE_ENTRIES];
    repl_page_decode(page, block, entries);
    for (uint64_t i = page * REPL_PAGE_ENTRIES;
         i < r->regions && i < (page + 1) * REPL_PAGE_ENTRIES; i++)
        r->map[i] = entries[i % REPL_PAGE_ENTRIES];
}

void repl_replica_start(struct repl_replica *r, int64_t now)
{
    r->now = now;
    r->pos = r->sb.pos;
    r->intact = r->sb.clean;
    r->sb.boot++;
    r->sb.clean = false;
    r->sb_dirty = true;
    r->checkpoint_at = now + r->cfg.checkpoint_ns;
    /* Pings that were answered before a crash are not remembered; who never promised answered none. */
    r->lease_until = GUARD(38, !r->sb.promised) ? now : now + r->cfg.lease_ns;
    r->started = true;
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

static void checkpoint(struct repl_replica *r)
{
    if (r->now < r->checkpoint_at)
        return;
    r->checkpoint_at = r->now + r->cfg.checkpoint_ns;
    if (r->complete && r->pos > r->sb.pos)
        flush_request(r);
    map_cool(r, r->now - 2 * r->cfg.checkpoint_ns);
}

/* Once: one that misses something does not become clean by it, and has stopped all the same. */
static void stop_progress(struct repl_replica *r)
{
    if (r->stopping && !r->stopped && r->flush_state == FLUSH_IDLE &&
        r->flush_want <= r->flush_have && list_empty(&r->active)) {
        map_cool(r, INT64_MAX);
        r->sb.clean = r->intact;
        r->sb_dirty = r->stopped = true;
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
        uint64_t synced = r->synced;
        int flush = r->flush_state;
        flush_progress(r);
        meta_begin(r);
        ops_kick(r);
        again = synced != r->synced || flush != (int)r->flush_state;
    }
    if (!r->synced) /* the new boot number is not durable yet */
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
    if (r->later_link >= 0 && r->lease_until < r->checkpoint_at)
        return r->lease_until;
    return r->checkpoint_at;
}

void repl_replica_stop(struct repl_replica *r)
{
    if (r->bound >= 0)
        replica_drop(r, r->bound, "the replica stops");
    r->stopping = true;
    flush_request(r);
}

bool repl_replica_stopped(const struct repl_replica *r)
{
    return r->failed || (r->stopped && !r->sync_running && !r->sb_dirty);
}

void repl_replica_status(const struct repl_replica *r, struct repl_replica_status *ret_status)
{
    *ret_status = (struct repl_replica_status){.super = &r->sb,
                                               .position = r->pos,
                                               .store_size = r->store_size,
                                               .complete = r->complete,
                                               .failed = r->failed,
                                               .hot = r->hot_n,
                                               .ops = r->ops_n};
}

uint64_t repl_replica_region(const struct repl_replica *r, uint64_t region)
{
    return region < r->regions ? r->map[region] : 0;
}

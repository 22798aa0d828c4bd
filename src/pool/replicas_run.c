/*
 * The thread with the loop: takes up wishes, opens and stops replicas, and shows what is so.
 *
 *                 OPEN job                 not wanted, detached, failed
 *      CLOSED ──────────────> RUNS ──────────────> STOPS ──in order, or too late──> FREED
 *        ^                                                                            │ nothing uses the stores
 *        └───────────────────────── zvols closed ─────────── CLOSES <─────────────────┘
 *
 * In CLOSED other jobs are done as replicas_plan.c says. One job of a replica is under way at a time, and its wish is
 * not changed meanwhile. What fails is tried again later, and later each time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "pool/replicas_impl.h"
#include "repl/view.h"

static const int64_t TICK_NS = CLOCK_SECOND / 2, LIST_NS = 5 * CLOCK_SECOND,
                     PATIENCE_NS = 8 * CLOCK_SECOND, RETRY_FIRST = CLOCK_SECOND / 5,
                     RETRY_MOST = 30 * CLOCK_SECOND;

static int64_t now(const struct replica *r)
{
    return io_loop_now(r->all->loop);
}

static void fail(struct replica *r)
{
    unsigned shift = r->failures < 8 ? r->failures : 8;
    int64_t wait = RETRY_FIRST << shift;
    r->failures++;
    r->retry_at = now(r) + (wait < RETRY_MOST ? wait : RETRY_MOST);
    log_warn("a replica cannot be served", LOG_S("replica", r->name), LOG_ERR(&r->why));
}

static void count_open(struct pool_replicas *all, int by)
{
    pthread_mutex_lock(&all->lock);
    all->open += (unsigned)by;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* Views. */

static void fill_space(const struct replica *r, struct pool_replica_view *v)
{
    if (!r->info.guid || r->info.guid != r->found.guid)
        return;
    v->used = r->info.used + r->meta_info.used;
    v->logical = r->info.logical;
    v->reserved = r->info.reserved;
    v->size = r->info.size;
    v->block_size = r->info.block_size;
    v->snapshots = r->n_snapshots;
    memcpy(v->snapshot, r->snapshots, sizeof(v->snapshot));
}

_Static_assert((int)POOL_REPLICA_NAME >= (int)REPL_SNAP_NAME &&
                   (int)POOL_REPLICA_SNAPSHOTS >= (int)REPL_HELD,
               "all names of snapshots fit");

/* Snapshots by the names that the volume has for them, and those of the volume that are not here yet. */
static void fill_names(const struct repl_super *super, struct pool_replica_view *v)
{
    const struct repl_snaps *snaps = &super->view.snaps;
    for (unsigned i = 0; i < v->snapshots; i++) {
        int at = repl_snap_find(snaps, v->snapshot[i].id);
        if (at >= 0)
            memcpy(v->snapshot[i].name, snaps->at[at].name, REPL_SNAP_NAME);
    }
    for (unsigned i = 0; i < snaps->n; i++) {
        bool held = false;
        for (unsigned j = 0; j < super->held.n; j++)
            held |= super->held.id[j] == snaps->at[i].id;
        if (!held)
            memcpy(v->pending_name[v->pending++], snaps->at[i].name, REPL_SNAP_NAME);
    }
}

static void fill_running(const struct replica *r, struct pool_replica_view *v)
{
    struct replio_replica_status s;
    struct pool_zvol_health data, meta;
    replio_replica_status(r->replica, &s);
    pool_zvol_health(r->data, &data);
    pool_zvol_health(r->meta, &meta);
    v->open = true;
    v->connected = s.connected && s.spoken;
    v->complete = s.core.complete;
    v->fresh = s.core.fresh;
    v->rebuilding = v->connected && s.core.rebuilding;
    v->percent = v->rebuilding ? s.core.percent : 0;
    fill_names(s.core.super, v);
    v->full = data.full || meta.full;
    v->size = s.core.store_size > v->size ? s.core.store_size : v->size;
    v->damaged = data.damaged;
    v->mended = data.mended;
    snprintf(v->last_end, sizeof(v->last_end), "%s", v->connected ? "" : s.last_end);
    snprintf(v->damage, sizeof(v->damage), "%s", s.damage ? s.damage : "");
    if (v->full)
        err_set(&v->why, ERR_RESOURCE_EXHAUSTED, "PoolFull",
                "the pool has no room, so writes wait: add devices, or delete volumes or "
                "snapshots; nothing is lost");
}

static void show(struct replica *r)
{
    struct pool_replicas *all = r->all;
    struct pool_replica_view v = {0};
    v.why = r->why;
    pthread_mutex_lock(&all->lock);
    v.known = all->pool && !r->news && r->looked;
    v.pool_guid = all->pool ? zpool_guid(all->pool) : 0;
    pthread_mutex_unlock(&all->lock);
    if (v.known) {
        replica_judge(&r->wish->w, &r->found, &v);
        fill_space(r, &v);
    }
    if (r->state == REPLICA_RUNS)
        fill_running(r, &v);
    pthread_mutex_lock(&all->lock);
    bool news = memcmp(&r->shown, &v, sizeof(v)) != 0;
    if (news)
        memcpy(&r->shown, &v, sizeof(v));
    void (*tell)(void *context, const char *name) = news && !r->forget ? all->tell : NULL;
    void *context = all->tell_context;
    pthread_mutex_unlock(&all->lock);
    if (tell)
        tell(context, r->name);
}

/* Jobs. */

static void step(struct replica *r);

static void no_pool(struct err *e)
{
    err_set(e, ERR_UNAVAILABLE, "NoPool", "the pool is not open");
}

static void run_job(struct replica_job *job)
{
    struct replica *r = container_of(job, struct replica, job);
    struct zpool *p = job->all->pool; /* this thread's to change */
    r->why = (struct err){0};
    if (!p)
        no_pool(&r->why);
    else if (r->doing == REPLICA_LOOK)
        replica_find(r, p);
    else if (r->doing == REPLICA_MAKE)
        replica_make(r, p, &r->why);
    else if (r->doing == REPLICA_DESTROY)
        replica_destroy(r, p, &r->why);
    else if (r->doing == REPLICA_OPEN)
        replica_open_zvols(r, p, &r->why);
}

static void close_zvols(struct replica_job *job)
{
    struct replica *r = container_of(job, struct replica, job);
    store_close(r->data);
    store_close(r->meta);
    r->data = r->meta = NULL;
}

static void zvols_closed(struct replica_job *job)
{
    struct replica *r = container_of(job, struct replica, job);
    r->state = REPLICA_CLOSED;
    r->looked = false;
    replio_key_free(r->key);
    r->key = NULL;
    replica_wish_free(r->running);
    r->running = NULL;
    count_open(r->all, -1);
    step(r);
}

static void begin_close(struct replica *r)
{
    r->state = REPLICA_CLOSES;
    r->job = (struct replica_job){.fn = close_zvols, .ended = zvols_closed};
    replicas_submit(r->all, &r->job);
}

/* A replica that runs. */

static void is_released(void *context)
{
    begin_close(context);
}

static void free_replica(struct replica *r)
{
    r->state = REPLICA_FREED;
    replio_replica_free(r->replica);
    r->replica = NULL;
}

static void has_stopped(void *context)
{
    struct replica *r = context;
    r->stop_at = 0; /* not from within its own call */
    replicas_kick(r->all);
}

static void has_failed(void *context, const char *why)
{
    struct replica *r = context;
    err_set(&r->why, ERR_DATA_LOSS, "ReplicaFailed", "%s", why);
    r->broken = true;
    replicas_kick(r->all);
}

static void begin_stop(struct replica *r)
{
    r->state = REPLICA_STOPS;
    r->stop_at = now(r) + PATIENCE_NS;
    replio_replica_stop(r->replica, has_stopped, r);
}

static int start_replica(struct replica *r)
{
    const struct pool_replica_wish *w = &r->running->w;
    struct store_mark mark;
    store_mark(r->data, &mark);
    const struct replio_stores stores = {.data = r->data,
                                         .meta = r->meta,
                                         .image = r->image,
                                         .image_size = r->image_size,
                                         .lost = r->lost[0] ? r->lost : NULL};
    if (replio_key_new(w->key, w->key_size, "the key of the volume", &r->key, &r->why) < 0)
        return -1;
    const struct replio_replica_options o = {.loop = r->all->loop,
                                             .target = w->target,
                                             .port = w->port,
                                             .volume = w->volume,
                                             .id = mark.id,
                                             .key = r->key,
                                             .failed = has_failed,
                                             .released = is_released,
                                             .context = r,
                                             .stores = &stores};
    r->replica = replio_replica_open(&o, &r->why);
    return r->replica ? 0 : -1;
}

static void take_open(struct replica *r)
{
    if (r->why.code) {
        fail(r);
        count_open(r->all, -1);
        replica_wish_free(r->running);
        r->running = NULL;
        r->looked = false;
        return;
    }
    int status = start_replica(r);
    free(r->image);
    r->image = NULL;
    if (status < 0) {
        fail(r);
        begin_close(r);
        return;
    }
    r->state = REPLICA_RUNS;
    r->broken = false;
    struct replio_replica_status s;
    char id[UUID_TEXT_MAX];
    replio_replica_status(r->replica, &s);
    log_info("replica serves", LOG_S("replica", r->name), LOG_S("zvol", r->running->zvol),
             LOG_S("id", uuid_format(&s.id, id)), LOG_S("target", r->running->target),
             LOG_U("port", r->running->w.port));
    if (s.damage)
        log_error("the replica has lost its data: it counts in no quorum until it is rebuilt",
                  LOG_S("replica", r->name), LOG_S("why", s.damage));
}

static void job_ended(struct replica_job *job)
{
    struct replica *r = container_of(job, struct replica, job);
    enum replica_step done = r->doing;
    r->doing = REPLICA_REST;
    if (done == REPLICA_OPEN)
        take_open(r);
    else if (r->why.code)
        fail(r);
    else
        r->looked = done == REPLICA_LOOK;
    if (!r->why.code && done != REPLICA_LOOK) {
        r->failures = done == REPLICA_OPEN ? r->failures : 0;
        r->all->list_at = 0;
    }
    step(r);
}

static void begin_job(struct replica *r, enum replica_step what)
{
    r->doing = what;
    if (what == REPLICA_OPEN) {
        r->running = replica_wish_copy(&r->wish->w);
        count_open(r->all, 1);
    }
    r->job = (struct replica_job){.fn = run_job, .ended = job_ended};
    replicas_submit(r->all, &r->job);
}

/* One step. */

static void remove_replica(struct replica *r)
{
    pthread_mutex_lock(&r->all->lock);
    list_unlink(&r->link);
    pthread_mutex_unlock(&r->all->lock);
    replica_wish_free(r->wish);
    replica_wish_free(r->news);
    free(r->name);
    free(r);
}

/* What it is to do: takes up a new wish, of which nothing is known yet. */
struct orders {
    bool attached, forget;
};

static struct orders take_orders(struct replica *r)
{
    struct pool_replicas *all = r->all;
    struct replica_wish *old = NULL;
    pthread_mutex_lock(&all->lock);
    struct orders o = {.attached = all->pool && !all->detaching, .forget = r->forget};
    if (r->news) {
        old = r->wish;
        r->wish = r->news;
        r->news = NULL;
        r->retry_at = 0;
        r->failures = 0;
        /* What another wish looked for may not be what this one wants to know. */
        r->looked &=
            old && str_eq(old->zvol, r->wish->zvol) && old->w.replicaid == r->wish->w.replicaid;
    }
    pthread_mutex_unlock(&all->lock);
    replica_wish_free(old);
    return o;
}

static void step_closed(struct replica *r, const struct orders *o)
{
    if (!o->attached) {
        r->looked = false;
        return;
    }
    enum replica_step next = replica_plan(&r->wish->w, r->looked ? &r->found : NULL);
    if (next == REPLICA_REST && !r->why.code)
        r->failures = 0;
    if (next == REPLICA_LOOK || (next != REPLICA_REST && r->retry_at <= now(r)))
        begin_job(r, next);
}

static void step(struct replica *r)
{
    if (r->doing != REPLICA_REST || r->state == REPLICA_CLOSES)
        return;
    struct orders o = take_orders(r);
    if (r->state == REPLICA_RUNS && r->broken) {
        fail(r);
        free_replica(r);
    } else if (r->state == REPLICA_RUNS &&
               (!o.attached || o.forget || !replica_may_stay(&r->running->w, &r->wish->w))) {
        begin_stop(r);
    } else if (r->state == REPLICA_STOPS && (now(r) >= r->stop_at || r->broken)) {
        free_replica(r);
    } else if (r->state == REPLICA_CLOSED && o.forget) {
        remove_replica(r);
        return;
    } else if (r->state == REPLICA_CLOSED) {
        step_closed(r, &o);
    }
    show(r);
}

/* The list. */

static void run_list(struct replica_job *job)
{
    struct pool_replicas *all = job->all;
    if (all->pool)
        replicas_list(all, all->pool);
}

static void take_infos(struct replica *r)
{
    struct pool_replicas *all = r->all;
    const char *zvol = r->wish->zvol;
    size_t length = strlen(zvol);
    _cleanup_free_ char *meta = mem_printf("%s" REPLICA_META, zvol);
    r->n_snapshots = 0;
    r->info = r->meta_info = (struct zpool_volume_info){0};
    for (size_t i = 0; i < all->n_infos; i++) {
        const struct zpool_volume_info *info = &all->infos[i];
        if (str_eq(info->name, zvol))
            r->info = *info;
        else if (str_eq(info->name, meta))
            r->meta_info = *info;
        else if (info->snapshot && strncmp(info->name, zvol, length) == 0 &&
                 str_starts_with(info->name + length, "@orlop-") &&
                 r->n_snapshots < POOL_REPLICA_SNAPSHOTS)
            r->snapshots[r->n_snapshots++] = (struct pool_replica_snapshot){
                .id = strtoull(info->name + length + strlen("@orlop-"), NULL, 10),
                .size = info->size,
                .used = info->used,
                .logical = info->logical};
    }
}

static void list_ended(struct replica_job *job)
{
    struct pool_replicas *all = job->all;
    all->listing = false;
    list_for_each(&all->replicas, r, struct replica, link) {
        if (!r->wish || r->doing != REPLICA_REST)
            continue;
        take_infos(r);
        if (r->state == REPLICA_CLOSED && r->info.guid != r->found.guid)
            r->looked = false; /* somebody else made or destroyed it */
    }
    free(all->infos);
    all->infos = NULL;
    all->n_infos = 0;
    pthread_mutex_lock(&all->lock);
    vec_done(&all->rows);
    memcpy(&all->rows, &all->listed, sizeof(all->rows));
    memset(&all->listed, 0, sizeof(all->listed));
    pthread_mutex_unlock(&all->lock);
    replicas_kick(all);
}

static void list_if_due(struct pool_replicas *all)
{
    pthread_mutex_lock(&all->lock);
    bool attached = all->pool && !all->detaching;
    pthread_mutex_unlock(&all->lock);
    if (!attached || all->listing || io_loop_now(all->loop) < all->list_at)
        return;
    all->listing = true;
    all->list_at = io_loop_now(all->loop) + LIST_NS;
    all->list_job = (struct replica_job){.fn = run_list, .ended = list_ended};
    replicas_submit(all, &all->list_job);
}

/* The thread. */

/* Only this thread takes replicas off the list; others add to its end. */
static void step_all(struct pool_replicas *all)
{
    pthread_mutex_lock(&all->lock);
    struct list_link *last = all->replicas.prev, *l = all->replicas.next;
    bool any = l != &all->replicas;
    pthread_mutex_unlock(&all->lock);
    for (bool more = any; more;) {
        pthread_mutex_lock(&all->lock);
        struct list_link *next = l->next;
        more = l != last;
        pthread_mutex_unlock(&all->lock);
        step(container_of(l, struct replica, link));
        l = next;
    }
    list_if_due(all);
}

static void kicked(struct io_message *message)
{
    struct pool_replicas *all = container_of(message, struct pool_replicas, kick);
    atomic_store(&all->kicked, false);
    if (atomic_load(&all->stop))
        io_loop_stop(all->loop);
    else
        step_all(all);
}

static void ticked(struct io_timer *timer)
{
    struct pool_replicas *all = container_of(timer, struct pool_replicas, tick);
    step_all(all);
    io_timer_start(all->loop, timer, io_loop_now(all->loop) + TICK_NS);
}

void *replicas_thread(void *context)
{
    struct pool_replicas *all = context;
    enum { TURNS = 4 };
    all->kick.fn = kicked;
    all->tick.fn = ticked;
    io_timer_start(all->loop, &all->tick, io_loop_now(all->loop));
    io_loop_run(all->loop);
    io_timer_stop(all->loop, &all->tick);
    list_for_each_safe(&all->replicas, r, struct replica, link)
        remove_replica(r);
    pool_zvols_free(all->zvols);
    for (int i = 0; i < TURNS; i++) /* for what the loop lets go of at the end of a turn */
        io_loop_turn(all->loop, 0);
    io_loop_free(all->loop);
    return NULL;
}

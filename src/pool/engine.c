/*
 * The engine's thread: the only one that touches the pool.
 *
 *     no pool ── pool_open() ──> pool ── status, plan, act ──> view
 *        ^                        │
 *        └── release, destroy ────┘
 *
 * It looks at the pool when the wish is another one and every so often, and hands out a view of what it
 * saw when that differs from the last. What failed is tried again with the next look but some.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "kube/event.h"
#include "pool/engine_impl.h"

static const int64_t TICK_NS = 2 * CLOCK_SECOND, PATIENCE_NS = 20 * CLOCK_SECOND;
enum { RETRY_TICKS = 5 };

void pool_engine_say(struct pool_engine *x, const char *doing)
{
    pthread_mutex_lock(&x->lock);
    x->view.doing = doing;
    x->view.seen_ns = clock_mono_ns(x->clock);
    pthread_mutex_unlock(&x->lock);
}

/* The new view; takes the report over. */
static void publish(struct pool_engine *x, const char *name, json_t *report, const struct err *why)
{
    pthread_mutex_lock(&x->lock);
    bool news = !x->view.report || !json_equal(x->view.report, report) || x->view.gone != x->gone ||
                !str_eq(x->view.why.msg, why->msg);
    json_decref(x->view.report);
    x->view.report = report;
    x->view.why = *why;
    x->view.gone = x->gone;
    x->view.damaged = x->damaged;
    x->view.host_id = x->host_id;
    x->view.doing = NULL;
    x->view.seen_at = clock_real_ns(x->clock) / CLOCK_SECOND;
    snprintf(x->view.name, sizeof(x->view.name), "%s", name);
    x->view.seen_ns = clock_mono_ns(x->clock);
    pthread_mutex_unlock(&x->lock);
    if (news)
        x->changed(x->context);
}

static bool is_due(const struct pool_engine *x)
{
    return x->fresh || x->turns >= x->retry;
}

/* A pool, if there can be one. */
static const char *open_pool(struct pool_engine *x, const struct pool_wish *w, struct err *why)
{
    struct pool_verdict v = {0};
    if (!is_due(x)) {
        *why = x->failed;
        return x->failed_phase;
    }
    pool_engine_say(x, "opening the pool");
    x->pool = pool_open(w, x->recorder, &v);
    x->host_id = v.host_id;
    if (x->pool) {
        x->failed = (struct err){0};
        pool_lend(x, x->pool);
        return NULL;
    }
    if (!str_eq(v.why.msg, x->failed.msg)) {
        log_warn("there is no pool", LOG_S("pool", w->name), LOG_ERR(&v.why));
        kube_event_warning(x->recorder, w->about, v.why.reason, "%s", v.why.msg);
    }
    x->retry = x->turns + RETRY_TICKS;
    x->failed = *why = v.why;
    x->failed_phase = v.phase;
    return v.phase;
}

static const char *destroy_pool(struct pool_engine *x, const struct pool_wish *w, struct err *why)
{
    if (x->gone || !is_due(x)) {
        *why = x->failed;
        return x->gone ? "OFFLINE" : x->failed_phase;
    }
    pool_engine_say(x, "destroying the pool");
    pool_lend(x, NULL);
    if (x->pool && !pool_replicas_busy(x->replicas)) /* else it has volumes, and is refused */
        pool_replicas_detach(x->replicas);
    if (pool_destroy(&x->pool, w, x->recorder, why) == 0) {
        x->gone = true;
        x->failed = (struct err){0};
        return "OFFLINE";
    }
    pool_lend(x, x->pool);
    if (!str_eq(why->msg, x->failed.msg))
        kube_event_warning(x->recorder, w->about, "DeletionFailed", "%s", why->msg);
    x->retry = x->turns + RETRY_TICKS;
    x->failed = *why;
    x->failed_phase = "DeletionFailed";
    return x->failed_phase;
}

/* Spares and caches that are not in the pool, may be used and are empty: for each device of the wish. */
static bool *find_empty(const struct pool_wish *w, const struct zpool_status *s)
{
    bool *empty = mem_zalloc(w->n_devices + 1);
    for (size_t i = 0; i < w->n_devices && !w->destroy; i++) {
        const struct pool_device *d = &w->devices[i];
        struct zpool_found f;
        if (!pool_is_aux(d) || d->announced || d->not_ready || !*d->path ||
            (s && pool_wish_row(w, d, s) >= 0))
            continue;
        zpool_scan(&d->path, 1, &f);
        empty[i] = f.label == ZPOOL_LABEL_NONE && !f.error;
    }
    return empty;
}

/* One look. */
static void turn(struct pool_engine *x, const struct pool_wish *w)
{
    struct err why = {0};
    struct zpool_status s = {0};
    const char *phase = NULL;
    pool_engine_say(x, "looking at the pool");
    x->again = false;
    if (w->destroy)
        phase = destroy_pool(x, w, &why);
    else if (!x->pool)
        phase = open_pool(x, w, &why);
    bool open = x->pool && (w->destroy ? zpool_status_read(x->pool, &s, &why) == 0
                                       : pool_keep(x, w, &s, &why) == 0);
    if (open && w->guid == zpool_guid(x->pool)) /* before that nothing is stored in it */
        pool_replicas_attach(x->replicas, x->pool);
    _cleanup_free_ bool *announce = find_empty(w, open ? &s : NULL);
    struct pool_facts facts = {
        .announce = announce,
        .wish = w,
        .status = open ? &s : NULL,
        .guid = x->pool ? zpool_guid(x->pool) : 0,
        .phase = open && !w->destroy ? NULL : phase,
        .read_only = x->read_only,
        .answered = {pool_answered(x, w, POOL_SCRUB), pool_answered(x, w, POOL_CLEAR)},
        .cleared = x->cleared ? x->cleared : w->cleared,
        .why = &why,
        .adding = &x->errors[POOL_STEP_ADD],
        .replacing = &x->errors[POOL_STEP_REPLACE],
    };
    x->damaged = s.errors;
    publish(x, x->pool ? zpool_name(x->pool) : w->name, pool_report(&facts), &why);
    zpool_status_done(&s);
    x->turns++;
    x->fresh &= x->again; /* what failed is not tried again with every step */
}

static void export(struct pool_engine *x)
{
    struct err e = {0};
    if (!x->pool)
        return;
    pool_engine_say(x, "stopping the replicas");
    pool_replicas_detach(x->replicas);
    pool_engine_say(x, "exporting the pool");
    pool_lend(x, NULL);
    if (zpool_export(x->pool, &e) < 0)
        log_warn("the pool could not be exported; nothing is lost", LOG_ERR(&e));
    else
        log_info("the pool was exported");
    x->pool = NULL;
    vec_done(&x->seen);
    x->scans = false;
}

/* Under lock, which is let go meanwhile. What the replicas want is done at once. */
static void wait_for_news(struct pool_engine *x, int64_t until)
{
    bool more = true;
    while (more && !x->stop && !x->news) {
        if (!x->jobs) {
            more = clock_wait(x->clock, &x->changed_wish, &x->lock, until);
            continue;
        }
        x->jobs = false;
        pthread_mutex_unlock(&x->lock);
        pool_engine_say(x, "serving replicas");
        pool_replicas_serve(x->replicas);
        pthread_mutex_lock(&x->lock);
        x->view.doing = NULL;
    }
}

static void have_jobs(void *context)
{
    struct pool_engine *x = context;
    pthread_mutex_lock(&x->lock);
    x->jobs = true;
    pthread_cond_broadcast(&x->changed_wish);
    pthread_mutex_unlock(&x->lock);
}

struct pool_replicas *pool_engine_replicas(struct pool_engine *x)
{
    return x->replicas;
}

static void *run(void *context)
{
    struct pool_engine *x = context;
    int64_t tick = x->options.tick_ns ? x->options.tick_ns : TICK_NS;
    pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        struct pool_wish *w = x->wish ? pool_wish_ref(x->wish) : NULL;
        bool release = x->release;
        x->fresh |= x->news;
        x->news = false;
        pthread_mutex_unlock(&x->lock);
        if (w && !release)
            turn(x, w);
        else if (release)
            export(x);
        pool_wish_unref(w);
        pthread_mutex_lock(&x->lock);
        x->view.doing = NULL;
        int64_t until = clock_mono_ns(x->clock) + (x->again ? 0 : tick);
        wait_for_news(x, until);
    }
    pthread_mutex_unlock(&x->lock);
    export(x);
    pthread_mutex_lock(&x->lock);
    x->ended = true;
    pthread_cond_broadcast(&x->changed_wish);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

struct pool_engine *pool_engine_start(const struct pool_options *o, struct kube_recorder *recorder,
                                      void (*changed)(void *context), void *context, struct err *e)
{
    struct pool_engine *x = NEW(struct pool_engine);
    x->options = *o;
    x->recorder = recorder;
    x->changed = changed;
    x->context = context;
    x->clock = clock_system();
    x->percent = UINT32_MAX;
    x->view.seen_ns = clock_mono_ns(x->clock);
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->changed_wish, &attr);
    pthread_condattr_destroy(&attr);
    const struct pool_replicas_options ro = {.wake = have_jobs, .context = x};
    x->replicas = pool_replicas_new(&ro, e);
    if (x->replicas && pool_revive_start(x, e) == 0 &&
        thread_start(&x->thread, "engine", run, x, e) == 0)
        return x;
    return NULL; /* the program ends */
}

void pool_engine_stop(struct pool_engine *x)
{
    int64_t until = clock_mono_ns(x->clock) + PATIENCE_NS;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_broadcast(&x->changed_wish);
    while (!x->ended && clock_wait(x->clock, &x->changed_wish, &x->lock, until))
        ;
    if (!x->ended) {
        /* A device does not answer. What was flushed is safe, and the next import goes on. */
        log_warn("ends without an export", LOG_S("while", x->view.doing ? x->view.doing : ""));
        _exit(1);
    }
    pthread_mutex_unlock(&x->lock);
    pthread_join(x->thread, NULL);
    pthread_join(x->reviver, NULL);
    pool_replicas_free(x->replicas);
    pthread_cond_destroy(&x->changed_wish);
    pthread_mutex_destroy(&x->lock);
    json_decref(x->view.report);
    vec_done(&x->seen); /* of a pool that was destroyed */
    pool_wish_unref(x->wish);
    free(x);
}

void pool_engine_wish(struct pool_engine *x, struct pool_wish *w)
{
    pthread_mutex_lock(&x->lock);
    bool same = x->wish && str_eq(str_get(&x->wish->text), str_get(&w->text)) &&
                x->wish->take_over == w->take_over;
    if (!same || x->release) { /* one that was let go is wanted again */
        pool_wish_unref(x->wish);
        x->wish = pool_wish_ref(w);
        x->news = true;
        x->release = false;
        pthread_cond_broadcast(&x->changed_wish);
    }
    pthread_mutex_unlock(&x->lock);
}

void pool_engine_release(struct pool_engine *x)
{
    pthread_mutex_lock(&x->lock);
    x->release = x->news = true;
    pthread_cond_broadcast(&x->changed_wish);
    pthread_mutex_unlock(&x->lock);
}

void pool_engine_view(struct pool_engine *x, struct pool_view *ret)
{
    pthread_mutex_lock(&x->lock);
    *ret = x->view;
    ret->report = json_deep_copy(x->view.report); /* no value is shared between threads */
    pthread_mutex_unlock(&x->lock);
}

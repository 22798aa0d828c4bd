/*
 * Watching over the engine's thread: a pool whose devices all fail is suspended, and then that thread may
 * be waiting in the middle of something, for as long as nobody tells the pool to go on. This thread does.
 *
 *     suspended ── zpool_clear() ──> goes on          the devices answer again
 *                        │    └────> still suspended  they do not: again with the next look
 *                        └─ InDoubt: the process ends, for the pool to be imported anew (zpool/doubt.c)
 *
 * The pool is lent to it (pool_lend()) and cannot be closed while it is at work.
 */
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "kube/event.h"
#include "pool/engine_impl.h"

static const int64_t LOOK_NS = CLOCK_SECOND;

void pool_lend(struct pool_engine *x, struct zpool *p)
{
    pthread_mutex_lock(&x->lock);
    x->lent = p;
    while (!p && x->reviving)
        pthread_cond_wait(&x->changed_wish, &x->lock);
    pthread_mutex_unlock(&x->lock);
}

static void set(json_t *conditions, const char *type, const char *status)
{
    json_object_set_new(conditions, type,
                        json_pack("{s:s, s:s, s:s}", "status", status, "reason", "PoolSuspended",
                                  "message", zpool_suspended_why()));
}

/* The engine's thread may be in no state to say so itself. Under lock; whether it is news. */
static bool say_suspended(struct pool_engine *x)
{
    const char *phase = json_str(x->view.report, "phase");
    if (!phase || str_eq(phase, "FAULTED"))
        return false;
    json_t *report = json_deep_copy(x->view.report);
    json_object_set_new(report, "phase", json_string("FAULTED"));
    set(json_object_get(report, "conditions"), "Available", "False");
    set(json_object_get(report, "conditions"), "PoolLost", "True");
    json_decref(x->view.report);
    x->view.report = report;
    return true;
}

static void end(struct pool_engine *x, const struct pool_wish *w, const struct err *why)
{
    log_error("the process ends, for the pool to be imported anew", LOG_ERR(why));
    if (w)
        kube_event_warning(x->recorder, w->about, why->reason, "%s", why->msg);
    _exit(1);
}

/* Under lock, which is let go meanwhile. */
static void revive(struct pool_engine *x)
{
    struct zpool *p = x->lent;
    struct pool_wish *w = x->wish ? pool_wish_ref(x->wish) : NULL;
    struct err why = {0};
    x->reviving = true;
    bool news = say_suspended(x);
    pthread_mutex_unlock(&x->lock);
    if (news)
        x->changed(x->context);
    if (zpool_clear(p, &why) < 0 && str_eq(why.reason, "InDoubt"))
        end(x, w, &why);
    pool_wish_unref(w);
    pthread_mutex_lock(&x->lock);
    x->reviving = false;
    pthread_cond_broadcast(&x->changed_wish);
}

static void *run(void *context)
{
    struct pool_engine *x = context;
    int64_t look = x->options.tick_ns ? x->options.tick_ns : LOOK_NS;
    pthread_mutex_lock(&x->lock);
    while (!x->ended) {
        pthread_mutex_unlock(&x->lock);
        pool_faults_read();
        pthread_mutex_lock(&x->lock);
        if (x->lent && zpool_is_suspended(x->lent))
            revive(x);
        int64_t until = clock_mono_ns(x->clock) + look;
        while (!x->ended && clock_wait(x->clock, &x->changed_wish, &x->lock, until))
            ;
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

int pool_revive_start(struct pool_engine *x, struct err *e)
{
    return thread_start(&x->reviver, "reviver", run, x, e);
}

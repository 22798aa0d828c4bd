/*
 * Threads: handlers run on informers' threads and only put keys into the queue; each worker is a
 * thread that takes keys out. The lock is for what the workers are at, which the watchdog reads.
 */
#include "kube/controller.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "kube/leader.h"
#include "metrics/metrics.h"

static const int64_t slow_ns = 60 * CLOCK_SECOND, look_ns = CLOCK_SECOND / 5;

struct source {
    struct kube_source source;
    struct kube_controller *controller;
};

struct worker {
    struct kube_controller *controller;
    pthread_t thread;
    const char *key; /* what it is at, with the lock; NULL: nothing */
    int64_t started;
    bool told; /* that it takes long */
};

enum outcome { SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER, OUTCOMES };

struct kube_controller {
    struct kube_controller_options o;
    char *name;
    const struct clock *clock;
    struct kube_workqueue *queue;
    VEC(struct source *) sources;
    pthread_mutex_t lock;
    struct worker *workers;
    unsigned n_workers, n_started;
    _Atomic bool stopping;
    /* NULL without metrics. */
    struct metrics_series *total[OUTCOMES], *errors, *terminal, *seconds, *active;
};

static void set_metrics(struct kube_controller *c, struct metrics *m)
{
    static const char *const outcomes[OUTCOMES] = {"success", "error", "requeue", "requeue_after"};
    static const double bounds[] = {.005, .01, .025, .05, .1, .15, .2, .25, .3,  .35,
                                    .4,   .5,  .6,   .7,  .8, .9,  1,  1.5, 2,   3,
                                    4,    5,   7,    10,  15, 20,  30, 60,  120, 300};
    const char *const *label = METRICS_LABELS("controller"), *const *value =
                                                                 METRICS_VALUES(c->name);
    struct metrics_family *total = metrics_counter(
        m, "controller_runtime_reconcile_total", "Total number of reconciliations per controller.",
        METRICS_LABELS("controller", "result"));
    for (size_t i = 0; i < OUTCOMES; i++)
        c->total[i] = metrics_at(total, METRICS_VALUES(c->name, outcomes[i]));
    c->errors =
        metrics_at(metrics_counter(m, "controller_runtime_reconcile_errors_total",
                                   "Total number of reconciliation errors per controller.", label),
                   value);
    c->terminal = metrics_at(
        metrics_counter(m, "controller_runtime_terminal_reconcile_errors_total",
                        "Total number of terminal reconciliation errors per controller.", label),
        value);
    c->seconds = metrics_at(metrics_histogram(m, "controller_runtime_reconcile_time_seconds",
                                              "Length of time per reconciliation per controller.",
                                              label, bounds, ARRAY_SIZE(bounds)),
                            value);
    c->active = metrics_at(metrics_gauge(m, "controller_runtime_active_workers",
                                         "Number of currently used workers per controller.", label),
                           value);
    metrics_set(
        metrics_at(metrics_gauge(m, "controller_runtime_max_concurrent_reconciles",
                                 "Maximum number of concurrent reconciles per controller.", label),
                   value),
        c->n_workers);
}

struct kube_controller *kube_controller_new(const struct kube_controller_options *o, struct err *e)
{
    struct kube_workqueue *queue = kube_workqueue_new(
        &(struct kube_workqueue_options){
            .name = o->name,
            .backoff_ns = o->backoff_ns,
            .backoff_max_ns = o->backoff_max_ns,
            .clock = o->clock,
            .metrics = o->metrics,
        },
        e);
    if (!queue)
        return NULL;
    struct kube_controller *c = NEW(struct kube_controller);
    c->o = *o;
    c->name = mem_strdup(o->name);
    c->clock = o->clock ? o->clock : clock_system();
    c->queue = queue;
    c->n_workers = o->workers ? o->workers : 1;
    c->workers = mem_zalloc(c->n_workers * sizeof(*c->workers));
    pthread_mutex_init(&c->lock, NULL);
    if (o->metrics)
        set_metrics(c, o->metrics);
    return c;
}

void kube_controller_free(struct kube_controller *c)
{
    kube_workqueue_free(c->queue);
    vec_for_each(&c->sources, s)
        free(*s);
    vec_done(&c->sources);
    pthread_mutex_destroy(&c->lock);
    free(c->workers);
    free(c->name);
    free(c);
}

/* Where keys come from. */

static void on_change(void *context, const struct kube_object *old, const struct kube_object *now)
{
    const struct source *s = context;
    const struct kube_source *source = &s->source;
    if (source->predicate && !source->predicate(old, now))
        return;
    if (!source->map) {
        kube_workqueue_add(s->controller->queue, (now ? now : old)->key);
        return;
    }
    if (old)
        source->map(s->controller, old, source->context);
    if (now)
        source->map(s->controller, now, source->context);
}

void kube_controller_watch(struct kube_controller *c, struct kube_source source)
{
    struct source *s = NEW(struct source);
    s->source = source;
    s->controller = c;
    vec_push(&c->sources, s);
    kube_informer_add_handler(source.informer, (struct kube_handler){on_change, s});
}

void kube_map_owner(struct kube_controller *c, const struct kube_object *object, const char *kind)
{
    if (strcmp(object->owner_kind, kind) == 0)
        kube_controller_add(c, object->ns, object->owner_name);
}

void kube_controller_add(struct kube_controller *c, const char *ns, const char *name)
{
    kube_controller_add_after(c, ns, name, 0);
}

void kube_controller_add_after(struct kube_controller *c, const char *ns, const char *name,
                               int64_t delay_ns)
{
    _cleanup_free_ char *key = ns && *ns ? mem_printf("%s/%s", ns, name) : mem_strdup(name);
    kube_workqueue_add_after(c->queue, key, delay_ns);
}

/* Work. */

static void count(struct kube_controller *c, enum outcome outcome)
{
    if (!c->seconds)
        return;
    metrics_add(c->total[outcome], 1);
    if (outcome == ERROR)
        metrics_add(c->errors, 1);
}

static void failed(struct kube_controller *c, const char *key, const struct kube_result *result,
                   const struct err *e)
{
    if (e->code == ERR_CANCELLED) {
        kube_workqueue_add_backoff(c->queue, key); /* for the case that nobody stops */
    } else if (e->code == ERR_ABORTED) {
        log_debug("somebody else wrote meanwhile", LOG_S("controller", c->name), LOG_S("key", key),
                  LOG_ERR(e));
        count(c, REQUEUE);
        kube_workqueue_add_backoff(c->queue, key);
    } else if (err_is_infeasible(e->code)) {
        log_warn("cannot reconcile until it changes", LOG_S("controller", c->name),
                 LOG_S("key", key), LOG_ERR(e));
        count(c, ERROR);
        if (c->terminal)
            metrics_add(c->terminal, 1);
        kube_workqueue_forget(c->queue, key);
        if (result->again_ns > 0)
            kube_workqueue_add_after(c->queue, key, result->again_ns);
    } else {
        log_error("cannot reconcile", LOG_S("controller", c->name), LOG_S("key", key), LOG_ERR(e));
        count(c, ERROR);
        kube_workqueue_add_backoff(c->queue, key);
    }
}

static void succeeded(struct kube_controller *c, const char *key, const struct kube_result *result)
{
    kube_workqueue_forget(c->queue, key);
    count(c, result->again_ns > 0 ? REQUEUE_AFTER : SUCCESS);
    if (result->again_ns > 0)
        kube_workqueue_add_after(c->queue, key, result->again_ns);
}

static void reconcile(struct kube_controller *c, const char *key)
{
    _cleanup_free_ char *buf = mem_alloc(strlen(key) + 1);
    const char *ns, *name;
    kube_key_split(key, buf, &ns, &name);
    struct kube_result result = {0};
    struct err e = {0};
    if (c->o.reconcile(c->o.context, ns, name, &result, &e) == 0)
        succeeded(c, key, &result);
    else
        failed(c, key, &result, &e);
}

/* What the worker is at now; NULL: nothing. */
static void set_busy(struct worker *w, const char *key)
{
    struct kube_controller *c = w->controller;
    int64_t now = clock_mono_ns(c->clock);
    pthread_mutex_lock(&c->lock);
    int64_t took = now - w->started;
    bool told = w->told;
    w->key = key;
    w->started = now;
    w->told = false;
    pthread_mutex_unlock(&c->lock);
    if (told)
        log_warn("a reconcile that took long has ended", LOG_S("controller", c->name),
                 LOG_I("seconds", took / CLOCK_SECOND));
    if (c->seconds && !key)
        metrics_observe(c->seconds, (double)took / (double)CLOCK_SECOND);
    if (c->seconds)
        metrics_add(c->active, key ? 1 : -1);
}

static bool wait_synced(struct kube_controller *c)
{
    vec_for_each(&c->sources, s) {
        while (kube_informer_wait((*s)->source.informer, look_ns, NULL) < 0) {
            if (atomic_load(&c->stopping))
                return false;
        }
    }
    return true;
}

static void *run(void *context)
{
    struct worker *w = context;
    struct kube_controller *c = w->controller;
    char *key;
    if (!wait_synced(c))
        return NULL;
    while ((key = kube_workqueue_get(c->queue))) {
        if (c->o.leader && !kube_leader_is(c->o.leader)) {
            kube_workqueue_add_backoff(c->queue, key);
        } else {
            set_busy(w, key);
            reconcile(c, key);
            set_busy(w, NULL);
        }
        kube_workqueue_done(c->queue, key);
        free(key);
    }
    return NULL;
}

int kube_controller_start(struct kube_controller *c, struct err *e)
{
    for (; c->n_started < c->n_workers; c->n_started++) {
        struct worker *w = &c->workers[c->n_started];
        w->controller = c;
        if (thread_start(&w->thread, c->name, run, w, e) < 0) {
            kube_controller_stop(c);
            return -1;
        }
    }
    return 0;
}

void kube_controller_quiesce(struct kube_controller *c)
{
    atomic_store(&c->stopping, true);
    kube_workqueue_stop(c->queue);
}

void kube_controller_stop(struct kube_controller *c)
{
    kube_controller_quiesce(c);
    while (c->n_started)
        pthread_join(c->workers[--c->n_started].thread, NULL);
}

void kube_controller_watchdog(struct kube_controller *c)
{
    int64_t now = clock_mono_ns(c->clock);
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < c->n_workers; i++) {
        struct worker *w = &c->workers[i];
        if (!w->key || w->told || now - w->started < slow_ns)
            continue;
        w->told = true;
        log_warn("a reconcile takes long", LOG_S("controller", c->name), LOG_S("key", w->key),
                 LOG_I("seconds", (now - w->started) / CLOCK_SECOND));
    }
    pthread_mutex_unlock(&c->lock);
}

/*
 * Each key has one item, found by the key in a map. What is pending of an item are two things that
 * do not depend on each other: that it is wanted now (it stands in the list, or is marked dirty while
 * it is worked on), and a time at which it will be (it stands in the heap). Both are kept, as each is
 * a promise to somebody. An item of which nothing is pending, which nobody works on and which has not
 * failed is freed, so memory follows the keys that matter.
 *
 * Time is looked at by those who wait for a key: the queue has no thread of its own.
 */
#include "kube/workqueue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "kube/backoff.h"
#include "metrics/metrics.h"

enum { DOUBLINGS_MAX = 40 }; /* beyond any cap, and no overflow */
static const int64_t backoff_default = CLOCK_SECOND / 200, backoff_max_default = 120 * CLOCK_SECOND;

struct item {
    struct list_link link; /* in ready or working, or in none */
    bool ready, working, dirty;
    unsigned failures;
    size_t place;                /* in the heap, from 1; 0: not there */
    int64_t due, since, started; /* of the heap; wanted since; worked on since */
    char key[];
};

struct kube_workqueue {
    const struct clock *clock;
    int64_t backoff, backoff_max;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a key is ready, an earlier time is due, or it is over */
    struct map items;
    struct list_link ready, working;
    VEC(struct item *) heap; /* the one that is due first is at the top */
    bool stopped;
    _Atomic size_t depth;
    struct metrics_series *adds, *retries, *queued, *worked, *waiting, *unfinished, *longest;
};

/* The heap. */

static void heap_put(struct kube_workqueue *q, size_t at, struct item *it)
{
    q->heap.p[at] = it;
    it->place = at + 1;
}

static void heap_rise(struct kube_workqueue *q, size_t at)
{
    struct item *it = q->heap.p[at];
    for (; at && q->heap.p[(at - 1) / 2]->due > it->due; at = (at - 1) / 2)
        heap_put(q, at, q->heap.p[(at - 1) / 2]);
    heap_put(q, at, it);
}

static void heap_sink(struct kube_workqueue *q, size_t at)
{
    struct item *it = q->heap.p[at];
    for (size_t child; (child = 2 * at + 1) < q->heap.len; at = child) {
        if (child + 1 < q->heap.len && q->heap.p[child + 1]->due < q->heap.p[child]->due)
            child++;
        if (q->heap.p[child]->due >= it->due)
            break;
        heap_put(q, at, q->heap.p[child]);
    }
    heap_put(q, at, it);
}

static struct item *heap_pop(struct kube_workqueue *q)
{
    struct item *first = q->heap.p[0], *last = vec_pop(&q->heap);
    if (first != last) {
        heap_put(q, 0, last);
        heap_sink(q, 0);
    }
    first->place = 0;
    return first;
}

/* Metrics; each is called with the lock of its family, so nothing here holds one for long. */

static double ask_depth(void *context)
{
    return (double)kube_workqueue_depth(context);
}

static double sum_or_longest(struct kube_workqueue *q, bool longest)
{
    pthread_mutex_lock(&q->lock);
    int64_t now = clock_mono_ns(q->clock), found = 0;
    list_for_each(&q->working, it, struct item, link) {
        int64_t took = now - it->started;
        found = !longest ? found + took : took > found ? took : found;
    }
    pthread_mutex_unlock(&q->lock);
    return (double)found / (double)CLOCK_SECOND;
}

static double ask_unfinished(void *context)
{
    return sum_or_longest(context, false);
}

static double ask_longest(void *context)
{
    return sum_or_longest(context, true);
}

static void set_metrics(struct kube_workqueue *q, struct metrics *m, const char *name)
{
    static const double bounds[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};
    const char *const *labels = METRICS_LABELS("name"), *const *values = METRICS_VALUES(name);
#define SERIES(type, metric, help) metrics_at(metrics_##type(m, metric, help, labels), values)
#define HISTOGRAM(metric, help)                                                                    \
    metrics_at(metrics_histogram(m, metric, help, labels, bounds, ARRAY_SIZE(bounds)), values)
    q->waiting = SERIES(gauge, "workqueue_depth", "Current depth of workqueue.");
    q->adds = SERIES(counter, "workqueue_adds_total", "Adds handled by workqueue.");
    q->queued = HISTOGRAM("workqueue_queue_duration_seconds",
                          "How long in seconds an item stays in workqueue before being requested.");
    q->worked = HISTOGRAM("workqueue_work_duration_seconds",
                          "How long in seconds processing an item from workqueue takes.");
    q->unfinished = SERIES(gauge, "workqueue_unfinished_work_seconds",
                           "How many seconds of work are in progress and not observed yet.");
    q->longest = SERIES(gauge, "workqueue_longest_running_processor_seconds",
                        "How many seconds the longest running processor has been running.");
    q->retries = SERIES(counter, "workqueue_retries_total", "Retries handled by workqueue.");
#undef SERIES
#undef HISTOGRAM
    metrics_ask(q->waiting, ask_depth, q);
    metrics_ask(q->unfinished, ask_unfinished, q);
    metrics_ask(q->longest, ask_longest, q);
}

/* Life. */

struct kube_workqueue *kube_workqueue_new(const struct kube_workqueue_options *o, struct err *e)
{
    int64_t base = o->backoff_ns ? o->backoff_ns : backoff_default;
    int64_t most = o->backoff_max_ns ? o->backoff_max_ns : backoff_max_default;
    if (base < 0 || most < base) {
        err_set(e, ERR_INVALID_ARGUMENT, "Backoff",
                "queue %s: the first delay must be positive and at most the longest", o->name);
        return NULL;
    }
    struct kube_workqueue *q = NEW(struct kube_workqueue);
    q->clock = o->clock ? o->clock : clock_system();
    q->backoff = base;
    q->backoff_max = most;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    list_init(&q->ready);
    list_init(&q->working);
    if (o->metrics)
        set_metrics(q, o->metrics, o->name);
    return q;
}

void kube_workqueue_free(struct kube_workqueue *q)
{
    if (q->waiting) {
        metrics_ask(q->waiting, NULL, NULL);
        metrics_ask(q->unfinished, NULL, NULL);
        metrics_ask(q->longest, NULL, NULL);
    }
    map_for_each(&q->items, entry)
        free(entry->value);
    map_done(&q->items);
    vec_done(&q->heap);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void kube_workqueue_stop(struct kube_workqueue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stopped = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

size_t kube_workqueue_depth(const struct kube_workqueue *q)
{
    return atomic_load_explicit(&q->depth, memory_order_relaxed);
}

/* Items; all with the lock. */

static struct item *item_get(struct kube_workqueue *q, const char *key)
{
    struct item *it = map_get(&q->items, key);
    if (it)
        return it;
    size_t size = strlen(key) + 1;
    it = mem_zalloc(sizeof(*it) + size);
    memcpy(it->key, key, size);
    list_init(&it->link);
    map_set(&q->items, key, it);
    return it;
}

static void item_release(struct kube_workqueue *q, struct item *it)
{
    if (it->ready || it->working || it->place || it->failures)
        return;
    map_remove(&q->items, it->key);
    free(it);
}

static void make_ready(struct kube_workqueue *q, struct item *it)
{
    it->ready = true;
    list_push(&q->ready, &it->link);
    atomic_fetch_add_explicit(&q->depth, 1, memory_order_relaxed);
    pthread_cond_signal(&q->changed);
}

/* It is wanted now, or as soon as whoever works on it is done. */
static void want(struct kube_workqueue *q, struct item *it)
{
    if (it->ready || it->dirty)
        return;
    if (q->adds)
        metrics_add(q->adds, 1);
    it->since = clock_mono_ns(q->clock);
    if (it->working)
        it->dirty = true;
    else
        make_ready(q, it);
}

static void want_at(struct kube_workqueue *q, struct item *it, int64_t due)
{
    if (it->place && it->due <= due)
        return;
    it->due = due;
    if (!it->place) {
        vec_push(&q->heap, it);
        it->place = q->heap.len;
    }
    heap_rise(q, it->place - 1);
    if (it->place == 1)
        pthread_cond_signal(&q->changed); /* somebody waits for a later time */
}

static void want_after(struct kube_workqueue *q, struct item *it, int64_t ns)
{
    int64_t now = clock_mono_ns(q->clock);
    if (ns <= 0)
        want(q, it);
    else
        want_at(q, it, ns < INT64_MAX - now ? now + ns : INT64_MAX - 1);
}

/* The queue. */

void kube_workqueue_add(struct kube_workqueue *q, const char *key)
{
    kube_workqueue_add_after(q, key, 0);
}

void kube_workqueue_add_after(struct kube_workqueue *q, const char *key, int64_t ns)
{
    pthread_mutex_lock(&q->lock);
    if (!q->stopped)
        want_after(q, item_get(q, key), ns);
    pthread_mutex_unlock(&q->lock);
}

/* Between half of the delay and all of it, so that what failed together does not come together. */
static int64_t jitter(int64_t delay)
{
    return delay - (int64_t)kube_random((uint64_t)delay / 2 + 1);
}

void kube_workqueue_add_backoff(struct kube_workqueue *q, const char *key)
{
    pthread_mutex_lock(&q->lock);
    if (!q->stopped) {
        struct item *it = item_get(q, key);
        int64_t delay = it->failures < DOUBLINGS_MAX && q->backoff <= q->backoff_max >> it->failures
                            ? q->backoff << it->failures
                            : q->backoff_max;
        if (it->failures < DOUBLINGS_MAX)
            it->failures++;
        if (q->retries)
            metrics_add(q->retries, 1);
        want_after(q, it, jitter(delay));
    }
    pthread_mutex_unlock(&q->lock);
}

void kube_workqueue_forget(struct kube_workqueue *q, const char *key)
{
    pthread_mutex_lock(&q->lock);
    struct item *it = map_get(&q->items, key);
    if (it) {
        it->failures = 0;
        item_release(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

/* Takes the first key that is ready; with the lock. */
static char *take(struct kube_workqueue *q)
{
    struct item *it = list_first(&q->ready, struct item, link);
    list_unlink(&it->link);
    atomic_fetch_sub_explicit(&q->depth, 1, memory_order_relaxed);
    it->ready = false;
    it->working = true;
    it->started = clock_mono_ns(q->clock);
    list_push(&q->working, &it->link);
    if (q->queued)
        metrics_observe(q->queued, (double)(it->started - it->since) / (double)CLOCK_SECOND);
    return mem_strdup(it->key);
}

char *kube_workqueue_get(struct kube_workqueue *q)
{
    char *key = NULL;
    pthread_mutex_lock(&q->lock);
    while (!q->stopped) {
        int64_t now = clock_mono_ns(q->clock);
        while (q->heap.len && q->heap.p[0]->due <= now)
            want(q, heap_pop(q));
        if (!list_empty(&q->ready)) {
            key = take(q);
            break;
        }
        clock_wait(q->clock, &q->changed, &q->lock, q->heap.len ? q->heap.p[0]->due : INT64_MAX);
    }
    /* The wake for the rest may have been given to this thread, or there was none: time came. */
    if (!list_empty(&q->ready) || q->heap.len)
        pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return key;
}

void kube_workqueue_done(struct kube_workqueue *q, const char *key)
{
    pthread_mutex_lock(&q->lock);
    struct item *it = map_get(&q->items, key);
    if (it && it->working) {
        if (q->worked)
            metrics_observe(q->worked,
                            (double)(clock_mono_ns(q->clock) - it->started) / (double)CLOCK_SECOND);
        list_unlink(&it->link);
        it->working = false;
        if (it->dirty && !q->stopped)
            make_ready(q, it);
        it->dirty = false;
        item_release(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

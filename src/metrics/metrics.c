/*
 * A family's series lie in an open hash table of pointers, which only ever gains entries: a reader
 * follows the probe sequence until it finds its series or an empty place, without a lock. Whoever
 * finds an empty place takes the family's lock, looks again, and adds.
 */
#include "metrics/metrics.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "metrics/metrics_impl.h"

enum { SLOTS = 2 * METRICS_SERIES }; /* a power of two, never more than half full */

struct metrics_series {
    struct metrics_family *family;
    uint64_t hash;
    const char *values[METRICS_LABELS_MAX]; /* behind the buckets */
    _Atomic int64_t value;                  /* of a histogram: how many */
    _Atomic double sum;
    double (*ask)(void *context); /* both with the family's lock */
    void *context;
    _Atomic uint64_t buckets[]; /* each by itself; they are added up when written */
};

struct metrics_family {
    const char *name, *help;
    enum metrics_type type;
    const char *labels[METRICS_LABELS_MAX + 1];
    size_t n_labels;
    double bounds[METRICS_BUCKETS_MAX];
    size_t n_buckets;
    pthread_mutex_t lock; /* for adding */
    VEC(struct metrics_series *) series;
    _Atomic(struct metrics_series *) other; /* when there are too many */
    _Atomic(struct metrics_series *) slots[SLOTS];
};

struct collector {
    void (*fn)(void *context, struct metrics_out *out);
    void *context;
};

struct metrics {
    pthread_mutex_t lock;
    VEC(struct metrics_family *) families;
    VEC(struct collector) collectors;
};

struct metrics *metrics_new(void)
{
    struct metrics *m = NEW(struct metrics);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void family_free(struct metrics_family *f)
{
    vec_for_each(&f->series, s)
        free(*s);
    vec_done(&f->series);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void metrics_free(struct metrics *m)
{
    vec_for_each(&m->families, f)
        family_free(*f);
    vec_done(&m->families);
    vec_done(&m->collectors);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* The family of that name, or NULL. The caller holds the lock. */
static struct metrics_family *family_find(const struct metrics *m, const char *name)
{
    vec_for_each(&m->families, f) {
        if (str_eq((*f)->name, name))
            return *f;
    }
    return NULL;
}

static struct metrics_family *family_new(struct metrics *m, enum metrics_type type,
                                         const char *name, const char *help,
                                         const char *const *labels, const double *buckets,
                                         size_t n_buckets)
{
    struct metrics_family *f = NEW(struct metrics_family);
    f->name = name;
    f->help = help;
    f->type = type;
    for (; labels && labels[f->n_labels]; f->n_labels++) {
        if (f->n_labels == METRICS_LABELS_MAX)
            abort();
        f->labels[f->n_labels] = labels[f->n_labels];
    }
    if (n_buckets > METRICS_BUCKETS_MAX)
        abort();
    for (size_t i = 0; i < n_buckets; i++)
        f->bounds[i] = buckets[i];
    f->n_buckets = n_buckets;
    pthread_mutex_init(&f->lock, NULL);

    pthread_mutex_lock(&m->lock);
    struct metrics_family *there = family_find(m, name);
    if (!there)
        vec_push(&m->families, f);
    pthread_mutex_unlock(&m->lock);
    if (!there)
        return f;
    if (there->type != type || there->n_labels != f->n_labels)
        abort(); /* one name for two things */
    family_free(f);
    return there;
}

struct metrics_family *metrics_counter(struct metrics *m, const char *name, const char *help,
                                       const char *const *labels)
{
    return family_new(m, METRICS_COUNTER, name, help, labels, NULL, 0);
}

struct metrics_family *metrics_gauge(struct metrics *m, const char *name, const char *help,
                                     const char *const *labels)
{
    return family_new(m, METRICS_GAUGE, name, help, labels, NULL, 0);
}

struct metrics_family *metrics_histogram(struct metrics *m, const char *name, const char *help,
                                         const char *const *labels, const double *buckets,
                                         size_t n_buckets)
{
    return family_new(m, METRICS_HISTOGRAM, name, help, labels, buckets, n_buckets);
}

/* Series. */

/* Eight bytes at a time; the length of each value counts, so that "a","bc" is not "ab","c". */
static uint64_t hash_values(const struct metrics_family *f, const char *const *values)
{
    static const uint64_t odd = 0x9e3779b97f4a7c15U;
    uint64_t hash = odd;
    for (size_t i = 0; i < f->n_labels; i++) {
        const char *s = values[i];
        size_t n = strlen(s);
        hash = (hash ^ n) * odd;
        for (; n; s += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
            uint64_t piece = 0;
            memcpy(&piece, s, n < 8 ? n : 8);
            hash = (hash ^ piece) * odd;
            hash ^= hash >> 32;
        }
    }
    return hash;
}

static bool same_values(const struct metrics_series *s, uint64_t hash, const char *const *values)
{
    if (s->hash != hash)
        return false;
    for (size_t i = 0; i < s->family->n_labels; i++) {
        if (!str_eq(s->values[i], values[i]))
            return false;
    }
    return true;
}

/* The series, or NULL and the empty place where it belongs. */
static struct metrics_series *find(struct metrics_family *f, uint64_t hash,
                                   const char *const *values, size_t *ret_at)
{
    for (size_t at = hash & (SLOTS - 1);; at = (at + 1) & (SLOTS - 1)) {
        struct metrics_series *s = atomic_load_explicit(&f->slots[at], memory_order_acquire);
        if (s && !same_values(s, hash, values))
            continue;
        *ret_at = at;
        return s;
    }
}

/* One allocation: the series, its buckets and its values. */
static struct metrics_series *series_new(struct metrics_family *f, uint64_t hash,
                                         const char *const *values)
{
    size_t size = sizeof(struct metrics_series);
    if (f->type == METRICS_HISTOGRAM)
        size += (f->n_buckets + 1) * sizeof(uint64_t);
    size_t text = size;
    for (size_t i = 0; i < f->n_labels; i++)
        size += strlen(values[i]) + 1;
    struct metrics_series *s = mem_zalloc(size);
    s->family = f;
    s->hash = hash;
    char *next = (char *)s + text;
    for (size_t i = 0; i < f->n_labels; i++) {
        s->values[i] = next;
        next = stpcpy(next, values[i]) + 1;
    }
    vec_push(&f->series, s);
    return s;
}

/* The series that stands for all that are too many; with the lock. */
static struct metrics_series *series_other(struct metrics_family *f)
{
    if (!f->other) {
        const char *values[METRICS_LABELS_MAX];
        for (size_t i = 0; i < f->n_labels; i++)
            values[i] = "other";
        size_t at;
        uint64_t hash = hash_values(f, values);
        struct metrics_series *s = find(f, hash, values, &at);
        if (!s) {
            s = series_new(f, hash, values);
            atomic_store_explicit(&f->slots[at], s, memory_order_release);
        }
        atomic_store_explicit(&f->other, s, memory_order_release);
    }
    return f->other;
}

struct metrics_series *metrics_at(struct metrics_family *f, const char *const *values)
{
    uint64_t hash = hash_values(f, values);
    size_t at;
    struct metrics_series *s = find(f, hash, values, &at);
    if (s)
        return s;
    s = atomic_load_explicit(&f->other, memory_order_acquire);
    if (s)
        return s;
    pthread_mutex_lock(&f->lock);
    s = find(f, hash, values, &at);
    if (!s && f->series.len >= METRICS_SERIES - 1) {
        s = series_other(f);
    } else if (!s) {
        s = series_new(f, hash, values);
        atomic_store_explicit(&f->slots[at], s, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    return s;
}

void metrics_add(struct metrics_series *s, int64_t n)
{
    atomic_fetch_add_explicit(&s->value, n, memory_order_relaxed);
}

void metrics_set(struct metrics_series *s, int64_t value)
{
    atomic_store_explicit(&s->value, value, memory_order_relaxed);
}

void metrics_ask(struct metrics_series *s, double (*fn)(void *context), void *context)
{
    pthread_mutex_lock(&s->family->lock);
    s->ask = fn;
    s->context = context;
    pthread_mutex_unlock(&s->family->lock);
}

void metrics_observe(struct metrics_series *s, double value)
{
    const struct metrics_family *f = s->family;
    size_t i = 0;
    while (i < f->n_buckets && value > f->bounds[i])
        i++;
    atomic_fetch_add_explicit(&s->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->value, 1, memory_order_relaxed);
    double sum = atomic_load_explicit(&s->sum, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&s->sum, &sum, sum + value, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

int64_t metrics_value(const struct metrics_series *s)
{
    return atomic_load_explicit(&s->value, memory_order_relaxed);
}

void metrics_collect(struct metrics *m, void (*fn)(void *context, struct metrics_out *out),
                     void *context)
{
    pthread_mutex_lock(&m->lock);
    vec_push(&m->collectors, (struct collector){fn, context});
    pthread_mutex_unlock(&m->lock);
}

/* Text. */

/* What a scrape sees of a histogram adds up, even if it is changed meanwhile. */
static void format_histogram(struct metrics_out *out, const struct metrics_series *s)
{
    const struct metrics_family *f = s->family;
    uint64_t total = 0;
    for (size_t i = 0; i <= f->n_buckets; i++) {
        total += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        out_bucket(out, f->labels, s->values, i < f->n_buckets ? &f->bounds[i] : NULL, total);
    }
    out_suffixed(out, "_sum", f->labels, s->values,
                 atomic_load_explicit(&s->sum, memory_order_relaxed));
    out_suffixed(out, "_count", f->labels, s->values, (double)total);
}

static void format_family(struct metrics_family *f, struct metrics_out *out)
{
    pthread_mutex_lock(&f->lock);
    if (f->series.len)
        metrics_out_family(out, f->name, f->help, f->type);
    vec_for_each(&f->series, s) {
        if (f->type == METRICS_HISTOGRAM)
            format_histogram(out, *s);
        else
            metrics_out_value(out, f->labels, (*s)->values,
                              (*s)->ask ? (*s)->ask((*s)->context) : (double)metrics_value(*s));
    }
    pthread_mutex_unlock(&f->lock);
}

void metrics_format(struct metrics *m, struct str *text)
{
    struct metrics_out out = {.text = text};
    pthread_mutex_lock(&m->lock);
    vec_for_each(&m->families, f)
        format_family(*f, &out);
    vec_for_each(&m->collectors, c)
        c->fn(c->context, &out);
    pthread_mutex_unlock(&m->lock);
}

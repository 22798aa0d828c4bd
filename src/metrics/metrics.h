/*
 * Metrics: numbers that a program keeps of itself, in the text format of Prometheus.
 *
 *     struct metrics_family *f = metrics_counter(m, "requests_total", "Requests.", METRICS_LABELS("code"));
 *     metrics_add(metrics_at(f, METRICS_VALUES("200")), 1);
 *
 *     # HELP requests_total Requests.
 *     # TYPE requests_total counter
 *     requests_total{code="200"} 1
 *
 * A family has a name, a help text, label names, and one series for each set of label values that
 * was ever asked for. Families are made at the start, in the order in which they are written.
 *
 * Any thread may look series up and change them. Both are free of locks and of allocation, except
 * the first time that a set of values is seen. A family keeps at most METRICS_SERIES series; what
 * comes after counts in one whose labels all say "other", so no client can fill the memory. Series
 * live as long as the registry: who uses one often keeps the pointer.
 *
 * What is cheaper to look up than to keep up to date (the size of a file, the number of objects) is
 * collected by a function when somebody asks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

enum { METRICS_SERIES = 2048, METRICS_LABELS_MAX = 10, METRICS_BUCKETS_MAX = 32 };

struct metrics;
struct metrics_family;
struct metrics_series;
struct metrics_out;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
DEFINE_CLEANUP(struct metrics *, metrics_free)

#define METRICS_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define METRICS_VALUES(...) ((const char *const[]){__VA_ARGS__})

/*
 * Names are literals; labels end with NULL, or are NULL for a family of one series. Who asks again
 * for a name gets the family that is there: several of a kind (queues, informers) count in one.
 */
struct metrics_family *metrics_counter(struct metrics *m, const char *name, const char *help,
                                       const char *const *labels);
struct metrics_family *metrics_gauge(struct metrics *m, const char *name, const char *help,
                                     const char *const *labels);
/* buckets are the upper bounds, rising; +Inf is added. */
struct metrics_family *metrics_histogram(struct metrics *m, const char *name, const char *help,
                                         const char *const *labels, const double *buckets,
                                         size_t n_buckets);

/* The series with these values, one for each label; NULL values for a family without labels. */
struct metrics_series *metrics_at(struct metrics_family *f, const char *const *values);

/* Counters only grow. */
void metrics_add(struct metrics_series *s, int64_t n);
/* Of a gauge. */
void metrics_set(struct metrics_series *s, int64_t value);
/* Of a gauge: it is asked when somebody asks. fn NULL: no more, once this has returned. */
void metrics_ask(struct metrics_series *s, double (*fn)(void *context), void *context);
/* Of a histogram. */
void metrics_observe(struct metrics_series *s, double value);
/* What a counter or gauge stands at, or how often a histogram was given a value. */
int64_t metrics_value(const struct metrics_series *s);

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

/* Called when somebody asks; it writes any number of families. */
void metrics_collect(struct metrics *m, void (*fn)(void *context, struct metrics_out *out),
                     void *context);
/* For such a function: the beginning of a family, then its values. */
void metrics_out_family(struct metrics_out *out, const char *name, const char *help,
                        enum metrics_type type);
void metrics_out_value(struct metrics_out *out, const char *const *labels,
                       const char *const *values, double value);

/* process_*: processor time, memory, open files, start. */
void metrics_process(struct metrics *m);

/* All of it, appended. */
void metrics_format(struct metrics *m, struct str *out);
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/*
 * What a run has shown, as a table for people and as one JSON object for programs.
 */
#include <stdio.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "json/json.h"

static const char *const op_names[BENCH_OPS] = {"read", "write", "flush"};
static const struct {
    const char *name;
    double share;
} shares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

static uint64_t transfers(const struct bench_result *r)
{
    return r->latency[BENCH_READ].count + r->latency[BENCH_WRITE].count;
}

static double rate(const struct bench_result *r, uint64_t count)
{
    return r->seconds > 0 ? (double)count / r->seconds : 0;
}

/* ---- for people ---- */

void bench_report_text(const struct bench_options *o, const struct bench_result *r)
{
    uint64_t n = transfers(r);
    printf("%s: %llu I/Os of %u bytes in %.2f s, %u session%s of depth %u\n", r->url,
           (unsigned long long)n, o->block_size, r->seconds, o->sessions,
           o->sessions == 1 ? "" : "s", o->depth);
    printf("%.0f IOPS, %.1f MB/s\n\n", rate(r, n), rate(r, n) * o->block_size / 1e6);
    printf("%-7s %12s", "us", "count");
    for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
        printf(" %10s", shares[i].name);
    putchar('\n');
    for (unsigned op = 0; op < BENCH_OPS; op++) {
        const struct bench_histogram *h = &r->latency[op];
        if (!h->count)
            continue;
        printf("%-7s %12llu", op_names[op], (unsigned long long)h->count);
        for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
            printf(" %10.1f", (double)bench_histogram_at(h, shares[i].share) / 1e3);
        putchar('\n');
    }
    if (o->verify) {
        printf("\n%llu blocks checked:", (unsigned long long)r->checked);
        for (unsigned f = 0; f < BENCH_FINDINGS; f++)
            printf(" %llu %s%s", (unsigned long long)r->findings[f], bench_finding_names[f],
                   f + 1 < BENCH_FINDINGS ? "," : "\n");
    }
    if (r->errors || r->reconnects || r->unfinished)
        printf("\n%llu errors, %u reconnects, %llu I/Os not finished\n",
               (unsigned long long)r->errors, r->reconnects, (unsigned long long)r->unfinished);
}

/* ---- for programs ---- */

static void set_number(json_t *o, const char *key, uint64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void set_real(json_t *o, const char *key, double n)
{
    json_object_set_new(o, key, json_real(n));
}

static json_t *latency_json(const struct bench_histogram *h)
{
    json_t *o = json_object();
    set_number(o, "count", h->count);
    for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
        set_real(o, shares[i].name, (double)bench_histogram_at(h, shares[i].share) / 1e3);
    return o;
}

void bench_report_json(const struct bench_options *o, const struct bench_result *r)
{
    static struct bench_histogram all;
    json_auto_t *j = json_object();
    _cleanup_(str_done) struct str text = {0};
    uint64_t n = transfers(r);
    json_object_set_new(j, "url", json_string(r->url));
    json_object_set_new(j, "pattern",
                        json_string(o->pattern == BENCH_RANDOM ? "random" : "sequential"));
    set_number(j, "readPercent", o->read_percent);
    set_number(j, "blockSize", o->block_size);
    set_number(j, "depth", o->depth);
    set_number(j, "sessions", o->sessions);
    set_real(j, "seconds", r->seconds);
    set_real(j, "cpuSeconds", r->cpu_seconds);
    set_number(j, "ios", n);
    set_real(j, "iops", rate(r, n));
    set_real(j, "bytesPerSecond", rate(r, n) * o->block_size);
    json_t *latency = json_object();
    for (unsigned op = 0; op < BENCH_OPS; op++) {
        bench_histogram_merge(&all, &r->latency[op]);
        json_object_set_new(latency, op_names[op], latency_json(&r->latency[op]));
    }
    json_object_set_new(latency, "all", latency_json(&all));
    json_object_set_new(j, "latencyMicroseconds", latency);
    set_number(j, "errors", r->errors);
    set_number(j, "reconnects", r->reconnects);
    set_number(j, "unfinished", r->unfinished);
    if (o->verify) {
        json_t *v = json_object();
        set_number(v, "checked", r->checked);
        for (unsigned f = 1; f < BENCH_FINDINGS; f++)
            set_number(v, bench_finding_names[f], r->findings[f]);
        json_object_set_new(j, "verify", v);
    }
    json_format_pretty(j, &text);
    puts(text.p);
}

/*
 * A run of `orlop bench iscsi`: what is asked for, and what was seen.
 */
#pragma once

#include "bench/histogram.h"
#include "bench/map.h"
#include "bench/session.h"

enum bench_pattern { BENCH_RANDOM, BENCH_SEQUENTIAL };
/* Over and over until the time or the count is up; or everything once. */
enum bench_work { BENCH_MIX, BENCH_FILL, BENCH_CHECK };

struct bench_options {
    const char *url, *initiator;
    enum bench_work work;
    enum bench_pattern pattern;
    unsigned sessions, depth, read_percent, flush_every;
    uint32_t block_size;
    uint64_t count, span, seed;  /* count 0: no limit; span 0: the whole volume */
    int64_t time_ns, warm_up_ns; /* time 0: no limit */
    int64_t reconnect_ns; /* how long a target may be away; 0: a lost connection is the end */
    bool verify, fua, header_digest, keep_going, progress;
    bool expect_flushed; /* for CHECK: what was acknowledged and not flushed may be gone */
    const char *save_map, *load_map;
};

struct bench_result {
    char url[512]; /* without credentials */
    double seconds, cpu_seconds;
    uint64_t size; /* of the volume */
    uint32_t device_block;
    struct bench_histogram latency[BENCH_OPS]; /* in nanoseconds */
    uint64_t errors, unfinished;
    unsigned reconnects;
    uint64_t checked, findings[BENCH_FINDINGS];
    char first_error[256], first_finding[256];
};

/* False findings and I/O errors are in the result; failing is not being able to run. */
int bench_run(const struct bench_options *o, struct bench_result *r, struct err *e);
/* What was seen, for people or for programs. */
void bench_report_text(const struct bench_options *o, const struct bench_result *r);
void bench_report_json(const struct bench_options *o, const struct bench_result *r);

/*
 * Latencies, counted in buckets: 64 to each power of two, so a value that is read back is at most
 * 1/64 too small; the greatest is kept exactly.
 */
#pragma once

#include <stdint.h>

enum { BENCH_BUCKETS_PER_OCTAVE = 64, BENCH_BUCKETS = 64 * BENCH_BUCKETS_PER_OCTAVE };

struct bench_histogram {
    uint64_t count, max;
    uint64_t buckets[BENCH_BUCKETS];
};

void bench_histogram_add(struct bench_histogram *h, uint64_t value);
void bench_histogram_merge(struct bench_histogram *h, const struct bench_histogram *other);
/* The value that this share (0 to 1) of all is not above; 0 of none. */
uint64_t bench_histogram_at(const struct bench_histogram *h, double share);

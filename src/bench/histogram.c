#include "bench/histogram.h"

enum { SHIFT = 6 }; /* 64 == 1 << 6 */

static unsigned bucket_of(uint64_t value)
{
    if (value < BENCH_BUCKETS_PER_OCTAVE)
        return (unsigned)value;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value);
    return (octave - SHIFT + 1) * BENCH_BUCKETS_PER_OCTAVE +
           (unsigned)(value >> (octave - SHIFT) & (BENCH_BUCKETS_PER_OCTAVE - 1));
}

static uint64_t value_of(unsigned bucket)
{
    if (bucket < BENCH_BUCKETS_PER_OCTAVE)
        return bucket;
    unsigned octave = bucket / BENCH_BUCKETS_PER_OCTAVE + SHIFT - 1;
    return ((uint64_t)1 << octave) +
           ((uint64_t)(bucket % BENCH_BUCKETS_PER_OCTAVE) << (octave - SHIFT));
}

void bench_histogram_add(struct bench_histogram *h, uint64_t value)
{
    h->buckets[bucket_of(value)]++;
    h->count++;
    h->max = value > h->max ? value : h->max;
}

void bench_histogram_merge(struct bench_histogram *h, const struct bench_histogram *other)
{
    for (unsigned i = 0; i < BENCH_BUCKETS; i++)
        h->buckets[i] += other->buckets[i];
    h->count += other->count;
    h->max = other->max > h->max ? other->max : h->max;
}

uint64_t bench_histogram_at(const struct bench_histogram *h, double share)
{
    uint64_t below = 0, wanted = (uint64_t)((double)h->count * share);
    if (wanted >= h->count)
        return h->max;
    for (unsigned i = 0; i < BENCH_BUCKETS; i++) {
        below += h->buckets[i];
        if (below > wanted)
            return value_of(i) < h->max ? value_of(i) : h->max;
    }
    return h->max;
}

/*
 * What was done, and how long it took. Written by the node's thread, read by any: each number is
 * atomic by itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum iscsi_class { ISCSI_READS, ISCSI_WRITES, ISCSI_FLUSHES, ISCSI_OTHERS, ISCSI_CLASSES };

/* Latencies in powers of two: bucket i has those below 2^i microseconds, the last the rest. */
enum { ISCSI_BUCKETS = 28 };

struct iscsi_class_stats {
    _Atomic uint64_t count, bytes, errors, ns;
    _Atomic uint64_t buckets[ISCSI_BUCKETS];
};

struct iscsi_stats {
    struct iscsi_class_stats classes[ISCSI_CLASSES];
    _Atomic uint64_t logins, login_failures, rejects, digest_errors, aborts;
    _Atomic uint64_t sessions, commands; /* of a node: now */
    _Atomic uint64_t deepest;            /* most commands under way at a time */
};

static inline void iscsi_count(_Atomic uint64_t *n, uint64_t more)
{
    /* One writer: no locked instruction is needed. */
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static inline void iscsi_stats_add(struct iscsi_class_stats *s, uint64_t bytes, int64_t ns,
                                   int failed)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned bucket = us ? 64u - (unsigned)__builtin_clzll(us) : 0;
    iscsi_count(&s->count, 1);
    iscsi_count(&s->bytes, bytes);
    iscsi_count(&s->ns, ns > 0 ? (uint64_t)ns : 0);
    iscsi_count(&s->buckets[bucket < ISCSI_BUCKETS ? bucket : ISCSI_BUCKETS - 1], 1);
    if (failed)
        iscsi_count(&s->errors, 1);
}

/* The latency in microseconds below which so many of a thousand are. */
uint64_t iscsi_stats_quantile(const struct iscsi_class_stats *s, unsigned permille);

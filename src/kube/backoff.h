/*
 * Delays between attempts: they double from `least` to `most`, each between half and all of its
 * length at random, so that those who failed together do not come back together.
 */
#pragma once

#include <stdint.h>

struct kube_backoff {
    int64_t least_ns, most_ns;
    int64_t next_ns; /* 0: least_ns */
};

/* How long to wait now; the next time it will be longer. */
int64_t kube_backoff_next(struct kube_backoff *b);

static inline void kube_backoff_reset(struct kube_backoff *b)
{
    b->next_ns = 0;
}

/* A number below n, n > 0, that clients do not share. */
uint64_t kube_random(uint64_t n);

#include "kube/backoff.h"

#include <stdlib.h>
#include <unistd.h>

uint64_t kube_random(uint64_t n)
{
    uint64_t random;
    if (getentropy(&random, sizeof(random)) < 0)
        abort();
    return random % n;
}

int64_t kube_backoff_next(struct kube_backoff *b)
{
    int64_t whole = b->next_ns ? b->next_ns : b->least_ns;
    b->next_ns = whole > b->most_ns / 2 ? b->most_ns : whole * 2;
    int64_t half = whole / 2;
    return whole - half + (int64_t)kube_random((uint64_t)half + 1);
}

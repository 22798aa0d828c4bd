/*
 * The arithmetic of a roll-out: how many pods each ReplicaSet of a Deployment should have next.
 * Numbers in, numbers out.
 *
 *     at most   wanted + surge         pods at any time
 *     at least  wanted - unavailable   of them available
 */
#pragma once

#include "json/json.h"

struct rollout_set {
    int64_t replicas;  /* that it should have; what the functions change */
    int64_t available; /* of those that it has */
    int64_t present;   /* that it has, also such as it no longer should have */
    int64_t most;      /* wanted + surge when it was last scaled; 0: not known */
    bool is_new;
};

struct rollout {
    int64_t wanted, surge, unavailable;
    bool recreate;
};

/* What the Deployment says; one of surge and unavailable is always more than 0. */
struct rollout rollout_of(const json_t *deployment);

/* The sum over sets. */
int64_t rollout_total(const struct rollout_set *sets, size_t n);
/* How many the new set should have now. */
int64_t rollout_new_replicas(const struct rollout *r, const struct rollout_set *sets, size_t n);
/*
 * How many the old sets may be left with now: first those that are not available go, of the oldest
 * set first, then as many others as are not needed. Sets are sorted, the oldest first.
 */
void rollout_scale_down(const struct rollout *r, struct rollout_set *sets, size_t n);
/* Another number is wanted in the middle of a roll-out: all sets grow or shrink in proportion. */
void rollout_scale(const struct rollout *r, struct rollout_set *sets, size_t n);

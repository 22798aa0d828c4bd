/*
 * How old something is that has a stamp: of another machine's clock, or of ours before somebody set it.
 *
 * The wall clock is asked once, when a stamp is seen first; then it is as old as that says, and not
 * younger than new. From then on its age grows with time that only passes. So a clock that is set forward
 * makes nothing old that was seen before, and one that is set back keeps nothing young.
 *
 * Stamps are told apart by a key, such as an object's uid and what of it is meant; a key has one stamp at a
 * time. What nobody asked for in an hour is forgotten when there is much. Any thread may ask.
 */
#pragma once

#include "base/clock.h"

struct kube_ages;

struct kube_ages *kube_ages_new(const struct clock *clock);
void kube_ages_free(struct kube_ages *a);
/* What to compare the stamp with, both since 1970: the stamp and its age. */
int64_t kube_ages_now(struct kube_ages *a, const char *key, int64_t stamp_ns);
/* How long the key has had this stamp, as far as was seen here: whatever the stamp says, 0 at first. */
int64_t kube_ages_seen(struct kube_ages *a, const char *key, int64_t stamp_ns);

/*
 * A queue of keys to work on.
 *
 *     add ------------------------.                      .--> done: free again, or once more
 *     add_after -> [ waiting ] ---+--> [ ready ] -> get -'
 *     add_backoff -'                       a key that is added while it is worked on waits for done
 *
 * Invariants: a key is in the queue at most once; a key is worked on by at most one worker at a time;
 * what is added is worked on after that, at least once. Ready keys come out in the order in which
 * they became so, those of other keys first (a key that is always added cannot starve the rest).
 * Delays of a key that fails double from the base to the cap, with jitter, until it is forgotten; an
 * earlier time replaces a later one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

struct kube_workqueue;
struct metrics;

struct kube_workqueue_options {
    const char *name;                   /* label of the metrics */
    int64_t backoff_ns, backoff_max_ns; /* 0: 5 ms and 2 minutes */
    const struct clock *clock;
    struct metrics *metrics; /* workqueue_* */
};

struct kube_workqueue *kube_workqueue_new(const struct kube_workqueue_options *o, struct err *e);
void kube_workqueue_free(struct kube_workqueue *q);
DEFINE_CLEANUP(struct kube_workqueue *, kube_workqueue_free)

void kube_workqueue_add(struct kube_workqueue *q, const char *key);
void kube_workqueue_add_after(struct kube_workqueue *q, const char *key, int64_t ns);
void kube_workqueue_add_backoff(struct kube_workqueue *q, const char *key);
void kube_workqueue_forget(struct kube_workqueue *q, const char *key);
/* Waits for a key, which is the caller's to free; NULL after the stop. */
char *kube_workqueue_get(struct kube_workqueue *q);
void kube_workqueue_done(struct kube_workqueue *q, const char *key);
/* Nothing comes out any more. */
void kube_workqueue_stop(struct kube_workqueue *q);
size_t kube_workqueue_depth(const struct kube_workqueue *q);

/*
 * A controller: what informers see becomes keys, and workers reconcile them.
 *
 * reconcile() reads the world, computes the difference and takes one step. It is told a name and
 * nothing of what changed: it may be called again at any time, by another process too, and must come
 * to the same. What it returns decides what is next:
 *
 *     0                      done; again after ret->again_ns if that is set
 *     ABORTED                somebody else wrote: soon again, nobody is told
 *     infeasible codes       it said so in the object's status: not again until the object changes
 *                            (or after again_ns)
 *     CANCELLED              the process is stopping
 *     everything else        logged with the key; again with a delay that doubles
 *
 * Workers start when all informers of the controller are synced. A reconcile begins only while the
 * process leads; one that is under way when it stops to is ended by kube_client_stop().
 */
#pragma once

#include "kube/informer.h"
#include "kube/workqueue.h"

struct kube_controller;
struct kube_leader;

struct kube_result {
    int64_t again_ns; /* 0: when something changes */
};

struct kube_controller_options {
    const char *name;
    unsigned workers; /* 0: 1 */
    /* ns is "" for what has none. The object may be gone: that is a state like any other. */
    int (*reconcile)(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e);
    void *context;
    int64_t backoff_ns, backoff_max_ns; /* 0: the queue's */
    const struct kube_leader *leader;   /* acts only while it leads; NULL: always */
    const struct clock *clock;
    struct metrics *metrics; /* controller_runtime_* */
};

struct kube_controller *kube_controller_new(const struct kube_controller_options *o, struct err *e);
void kube_controller_free(struct kube_controller *c); /* stopped */
DEFINE_CLEANUP(struct kube_controller *, kube_controller_free)

/* Where keys come from. */
struct kube_source {
    struct kube_informer *informer;
    /* Whether a change matters; one of the two may be NULL. NULL: each does. */
    bool (*predicate)(const struct kube_object *old, const struct kube_object *now);
    /*
     * Which keys it is about: kube_controller_add() for each. NULL: the object's own. Called for what
     * it was and for what it is, as it may be about others now.
     */
    void (*map)(struct kube_controller *c, const struct kube_object *object, void *context);
    void *context;
};

/* Before the start, and before the informer's. */
void kube_controller_watch(struct kube_controller *c, struct kube_source source);
/* For maps: adds the owner that controls the object, if it is of that kind. */
void kube_map_owner(struct kube_controller *c, const struct kube_object *object, const char *kind);

/* From any thread: work on this one. ns may be NULL or "". */
void kube_controller_add(struct kube_controller *c, const char *ns, const char *name);
void kube_controller_add_after(struct kube_controller *c, const char *ns, const char *name,
                               int64_t delay_ns);
int kube_controller_start(struct kube_controller *c, struct err *e);
/* Logs, once, each reconcile that has taken more than a minute. To be called now and then. */
void kube_controller_watchdog(struct kube_controller *c);
/* Begins no more work; does not wait. */
void kube_controller_quiesce(struct kube_controller *c);
/* The same, and waits for what is under way. */
void kube_controller_stop(struct kube_controller *c);

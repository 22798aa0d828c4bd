/*
 * What the files of the Deployment controller share.
 */
#pragma once

#include "k8s/controllers/pods.h"
#include "k8s/controllers/rollout.h"
#include "kube/condition.h"
#include "kube/controller.h"
#include "kube/event.h"

#define REVISION "deployment.kubernetes.io/revision"
#define HISTORY  "deployment.kubernetes.io/revision-history"
#define DESIRED  "deployment.kubernetes.io/desired-replicas"
#define MOST     "deployment.kubernetes.io/max-replicas"
#define HASH     "pod-template-hash"

struct deployments {
    const struct clock *clock;
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_resource deployments_r, sets_r;
    struct kube_informer *deployments, *sets, *pods;
};

/* One Deployment while it is looked at. What is written replaces what was read. */
struct deploying {
    struct deployments *d;
    json_t *deployment;
    json_t *sets;       /* all, the oldest first */
    size_t new;         /* place of the one with the present template; SIZE_MAX: there is none */
    json_t *progress;   /* a condition that is news: reason and message; NULL: none */
    int64_t collisions; /* collisionCount, as it should be */
};

static inline json_t *deploying_new(const struct deploying *g)
{
    return g->new == SIZE_MAX ? NULL : json_array_get(g->sets, g->new);
}

/* deployment_sets.c */
/* Finds the new set among all. */
void deploying_find_new(struct deploying *g);
/*
 * The new set exists and has the revision that it should; `create`: it is made where there is none,
 * with so many replicas.
 */
int deploying_ensure_new(struct deploying *g, bool create, int64_t replicas, struct err *e);
/* Sets replicas of a set, and what was wanted when they were. Nothing is written for nothing. */
int deploying_scale(struct deploying *g, size_t i, int64_t replicas, struct err *e);
/* Removes old sets that nobody will go back to. */
int deploying_clean_up(struct deploying *g, struct err *e);

/* deployment_status.c */
/* Whether everything is as it should be, by the counts of the sets. */
bool deploying_is_complete(const struct deploying *g);
int deploying_write_status(struct deploying *g, struct kube_result *ret, struct err *e);

/*
 * The claims of a pod, as the scheduler needs them.
 *
 *     bound              the pod runs where the volume can be reached
 *     not yet, at once   somebody else is to bind it; the pod waits
 *     not yet, waiting   (WaitForFirstConsumer) the node is chosen first and written on the claim; the
 *                        pod is bound when the claim is
 */
#pragma once

#include "kube/manager.h"

struct scheduler_claims {
    struct kube_client *client;
    struct kube_resource claims_r;
    struct kube_informer *claims, *volumes, *classes, *drivers, *capacities;
};

void scheduler_claims_init(struct scheduler_claims *c, struct kube_manager *m);
/*
 * An array of {claim, volume, class, capacities}, for schedule_pick(); NULL with why the pod cannot
 * be placed anywhere, appended to ret_why.
 */
json_t *scheduler_claims_of(struct scheduler_claims *c, const json_t *pod, struct str *ret_why);
/* Writes the node on claims that wait for one. 1: all are bound; 0: some are not yet; -1. */
int scheduler_claims_select(struct scheduler_claims *c, const json_t *claims, const char *node,
                            struct err *e);

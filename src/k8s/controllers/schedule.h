/*
 * Where a pod should run: a function of the pod, the nodes, and the pods on them.
 *
 * Nodes that cannot have it are ruled out, each with a reason; of the others the best is taken:
 * where fewest of its kind are, as it prefers, where most room is left. The words of the reasons are
 * kube-scheduler's.
 */
#pragma once

#include "json/json.h"

struct schedule_node {
    const json_t *node;
    const json_t *pods; /* an array: those bound to it that have not ended */
};

/* Whether the pod is to be scheduled here at all: it is bound nowhere, waits for nobody, is ours. */
bool schedule_concerns(const json_t *pod);

/* Why a node cannot have the pod, appended, one reason each; nothing when it can. */
struct schedule_reasons {
    char text[8][96];
    size_t n;
};

/*
 * The place of the node that should have it, or n with why none can, appended to ret_why. `claims`: an array of
 * {claim, volume, class, capacities} (scheduler_claims.h); NULL: none.
 */
size_t schedule_pick(const json_t *pod, const json_t *claims, const struct schedule_node *nodes,
                     size_t n, struct str *ret_why);

/* Whether a list of tolerations tolerates a taint; *ret_seconds: for how long, < 0: for ever. */
bool schedule_tolerates(const json_t *tolerations, const json_t *taint, int64_t *ret_seconds);
/* Whether the pod's nodeSelector and required node affinity select the node. */
bool schedule_selects(const json_t *pod, const json_t *node);
/* Whether a NodeSelector ({nodeSelectorTerms}) selects the node. */
bool schedule_selector_matches(const json_t *selector, const json_t *node);

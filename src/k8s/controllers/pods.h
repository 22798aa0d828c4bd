/*
 * What controllers ask of pods and of those that own them.
 */
#pragma once

#include "kube/ages.h"
#include "kube/controller.h"

/* It runs or will: it has not ended and is not being deleted. */
bool pods_is_active(const json_t *pod);
bool pods_is_ready(const json_t *pod);
/*
 * Whether it has been ready for that many seconds at `now` (ns since 1970). *ret_wait_ns, if given:
 * after which time it will, if nothing happens; 0: not by waiting.
 */
bool pods_is_available(const json_t *pod, int64_t min_ready_seconds, struct kube_ages *ages,
                       int64_t *ret_wait_ns);
/* How long it may stay on its node (NULL: has no taints); INT64_MAX: for ever. evictor.c */
int64_t pods_stay_ns(const json_t *pod, const json_t *node, struct kube_ages *ages);
/* The node that it is bound to; "". */
const char *pods_node(const json_t *pod);

/*
 * Puts pods (an array) in the order in which one would rather do without them: not on a node first,
 * then pending, not ready, cheap by their annotation pod-deletion-cost, with many others of them on their node, ready for a short time, restarted
 * often, young.
 */
void pods_sort_for_deletion(json_t *pods);

/*
 * A pod of a template: its labels, annotations and finalizers, owned by `owner`.
 */
json_t *pods_from_template(const json_t *owner, const json_t *template, const char *name);

/* Whether `selector` (a LabelSelector) selects these labels. A wrong one selects nothing. */
bool pods_selected(const json_t *selector, const json_t *labels);

/* The integer at a path of the object; that if there is none. */
int64_t pods_integer(const json_t *object, const char *part, const char *key, int64_t otherwise);

/* "3" or 3, or "25%" of n, rounded up or down. */
int64_t pods_int_or_percent(const json_t *value, int64_t n, bool up, int64_t otherwise);

/*
 * Indexes of the informer of pods that several controllers use: "bound" (name of the node) and
 * "owner" (uid of the controller, or "orphan/NAMESPACE"). Adds those that are not there.
 */
void pods_add_indexes(struct kube_informer *pods);
/* "owner" alone, for what pods are owned by. */
void pods_add_owner_index(struct kube_informer *objects);
/*
 * What an owner has, from the cache, as an array: those it controls and, if it has a selector and is
 * not being deleted, those that nobody controls and it selects.
 */
json_t *pods_of(struct kube_informer *objects, const json_t *owner);
/* The same as the server has it now; the owner has a selector. */
json_t *pods_read(struct kube_client *client, const struct kube_resource *resource,
                  const json_t *owner, struct err *e);
/* Whether what its status says was looked at with its present spec in mind. */
bool pods_is_observed(const json_t *owner);

/*
 * Takes what is selected and nobody's, and lets go what is no longer selected. Changes the array to
 * what the owner has then. ABORTED when somebody else was faster.
 */
int pods_claim(struct kube_client *client, const struct kube_resource *resource,
               const json_t *owner, json_t *objects, struct err *e);

/*
 * Conditions of a status, and finalizers.
 */
#pragma once

#include "base/clock.h"
#include "kube/client.h"
#include "kube/object.h"

struct kube_condition {
    const char *type;
    const char *status; /* "True", "False", "Unknown" */
    const char *reason; /* CamelCase */
    const char *message;
    int64_t generation; /* observedGeneration; 0: not said */
};

/*
 * Sets it in the array, which is changed in place; lastTransitionTime moves only with the status.
 * True when anything but a time is different now.
 */
bool kube_condition_set(json_t *conditions, const struct kube_condition *condition,
                        const struct clock *clock);
/* Takes it out of the array; true when it was there. */
bool kube_condition_remove(json_t *conditions, const char *type);
/* Borrowed; NULL. */
const json_t *kube_condition_get(const json_t *object, const char *type);
bool kube_condition_is_true(const json_t *object, const char *type);

bool kube_finalizer_has(const json_t *object, const char *finalizer);
/*
 * Patches with the object's resourceVersion as the precondition, so ABORTED when it is stale.
 * *object becomes what the server has now. Nothing is sent when there is nothing to do.
 */
int kube_finalizer_add(struct kube_client *c, const struct kube_resource *r, json_t **object,
                       const char *finalizer, struct err *e);
int kube_finalizer_remove(struct kube_client *c, const struct kube_resource *r, json_t **object,
                          const char *finalizer, struct err *e);
/* A copy of the object's status to change; {} when it has none. */
json_t *kube_status_copy(const json_t *object);
/*
 * Writes status where it differs from the object's, as a merge patch of /status that carries the
 * resourceVersion. *object becomes what the server has now.
 */
int kube_status_write(struct kube_client *c, const struct kube_resource *r, json_t **object,
                      const json_t *status, struct err *e);
/* The same for one condition: 1 when it was written, 0 when there was nothing to write, -1. */
int kube_condition_write(struct kube_client *c, const struct kube_resource *r, json_t **object,
                         const struct kube_condition *condition, const struct clock *clock,
                         struct err *e);

/*
 * A device as its BlockDevice.
 */
#pragma once

#include "base/clock.h"
#include "json/json.h"
#include "node/device.h"

struct node_name {
    const char *ns, *node,
        *host; /* of the objects; of the Node; its label kubernetes.io/hostname */
};

/* A BlockDevice that nobody has, to be created. */
json_t *node_object_new(const struct node_device *d, const struct node_name *n,
                        const struct clock *clock);
/*
 * The object as it should be now: what it is, where it is and how it is follow the device, while
 * the claim, and labels and annotations of others, stay.
 */
json_t *node_object_update(const json_t *object, const struct node_device *d,
                           const struct node_name *n, const struct clock *clock);
/* The object of a device that is not there. */
json_t *node_object_gone(const json_t *object, const struct clock *clock);
/* One that people made by hand: it is there unless they said otherwise, and is given to claims. */
json_t *node_object_manual(const json_t *object);
/* Whether the object stands for a device that is known by our label. */
bool node_object_is_labelled(const json_t *object);
#define NODE_SCHEME_ANNOTATION "internal.openebs.io/uuid-scheme"
#define NODE_FSUUID_ANNOTATION "internal.openebs.io/fsuuid"

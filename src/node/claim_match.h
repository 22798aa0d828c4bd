/*
 * Which BlockDevice a BlockDeviceClaim gets. Pure functions of what the API says, so that every node
 * comes to the same: the node of the device that is chosen is the one that acts.
 *
 * A claim that names its device gets that one or waits. Any other gets the smallest that fits, and of
 * equal ones the first by name. Sparse files, partitions and devices with a tag are for those who ask
 * for such, as NDM's users know it.
 */
#pragma once

#include <stdbool.h>

#include "json/json.h"
#include "kinds/pool_names.h"

#define NODE_DEVICE_TAG "openebs.io/block-device-tag"
#define NODE_CLAIMABLE  "Claimable" /* condition of a BlockDevice */

struct node_match {
    const json_t *device; /* borrowed from the list; NULL: none fits */
    const char *reason;   /* why not: a literal */
    char message[400];
};

/* Chooses from all BlockDevices of the claim's namespace. */
void node_claim_match(const json_t *claim, const json_t *const *devices, size_t n,
                      struct node_match *ret);
/* The node that looks after a claim which no device fits; NULL: nobody has devices. Borrowed. */
const char *node_claim_keeper(const json_t *claim, const json_t *const *devices, size_t n);
/* Whether the device is somebody's; this claim's. */
bool node_device_has_claim(const json_t *device);
bool node_device_is_claimed_by(const json_t *device, const char *claim_uid);
/*
 * Whether people made it by hand for a device that the agent does not find or must not touch
 * (ndm.io/managed: "false"): it is given to claims and nothing else is done with it.
 */
bool node_device_is_manual(const json_t *device);

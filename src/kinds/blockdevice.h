/*
 * BlockDevices and BlockDeviceClaims as structs. Texts live as long as the JSON; of NULL, all is absent.
 */
#pragma once

#include <stdint.h>

#include "api/shared.h"
#include "json/json.h"

struct block_device {
    const json_t *json; /* borrowed */
    struct {
        const char *node_name, *path, *device_type, *fs_type, *mount_point, *partitioned;
        const char *drive_type, *vendor, *model, *firmware, *serial;
        int64_t size;
        struct api_reference claim; /* whoever has it */
        const json_t *devlinks;     /* a list: device_links_of() */
    } spec;
    struct {
        const char *claim_state, *state;
    } status;
};
struct block_device block_device_of(const json_t *json);

struct device_links {
    const char *kind;
    const json_t *links; /* of paths */
};
struct device_links device_links_of(const json_t *links);

struct block_device_claim {
    const json_t *json; /* borrowed */
    struct {
        const char *device; /* that is wanted, or was given */
        const char *device_type, *node_name, *host_name;
        const char *old_host_name; /* where older manifests have it */
        bool allow_partition;
        const json_t *requests;
    } spec;
    struct {
        const char *phase;
    } status;
};
struct block_device_claim block_device_claim_of(const json_t *json);
bool block_device_claim_is_bound(const json_t *json);

/*
 * The tables of Orlop's own kinds.
 */
#pragma once

#include "api/shared.h"
#include "base/map.h"

/* Kubernetes' own that rules look up: their names, and no more. */
extern const struct api_kind api_kubernetes_node, api_kubernetes_pod;

extern const struct api_kind api_cstor_pool_cluster, api_cstor_pool_instance;
extern const struct api_kind api_block_device, api_block_device_claim;
extern const struct api_kind api_cstor_volume, api_cstor_volume_replica;
extern const struct api_kind api_cstor_volume_config, api_cstor_volume_policy;
extern const struct api_kind api_jiva_volume, api_jiva_volume_resize;
extern const struct api_kind api_logical_volume;

/* Pools: what CStorPoolCluster and CStorPoolInstance have in common (kinds/pool.c). */
extern const struct api_field api_raid_group[], api_pool_config[];
void api_pool_normalize(json_t *pool, const struct api_path *at, struct api_report *report);
/* `devices` has the devices of the pools that were validated before, and gets those of this one. */
void api_pool_validate(const json_t *pool, const struct api_path *at, struct map *devices,
                       struct api_report *report);
void api_pool_publish(json_t *pool, const struct api_path *at, struct api_report *report);
/* The layout of a group: its own type, or the pool's default; NULL where neither is given. */
const char *api_raid_type(const json_t *pool, const json_t *group);
enum api_raid_role { API_RAID_DATA, API_RAID_WRITE_CACHE, API_RAID_READ_CACHE, API_RAID_SPARE };
enum api_raid_role api_raid_role_of(const json_t *group);
const char *api_raid_role_text(enum api_raid_role role);
/* Rules for a pool that was `old` and becomes `pool` (kinds/pool_update.c). */
void api_pool_validate_update(const json_t *old, const json_t *pool, const struct api_path *at,
                              struct api_report *report);
const char *api_raid_device(const json_t *device); /* its name; "" */
bool api_raid_group_has(const json_t *group, const char *device);
bool api_pool_has(const json_t *pool, const char *device);
/* The devices that only one of two groups has. */
struct api_raid_difference {
    size_t removed, added;
    const json_t *lost, *gained; /* the last of each; NULL */
    size_t gained_index;
};
struct api_raid_difference api_raid_compare(const json_t *old, const json_t *group);
/* The claim by which a cluster has a device (kinds/pool_claim.c); predecessor or NULL. */
json_t *api_pool_claim(const json_t *cluster, const json_t *bd, const char *predecessor);
/* What they are among other objects (kinds/cspc_among.c). */
int api_cstor_pool_cluster_among(const struct api_among *a, struct err *e);
int api_cstor_pool_instance_among(const struct api_among *a, struct err *e);

/*
 * The tables of all kinds, and the parts that several of them share.
 */
#pragma once

#include "api/format.h"
#include "api/kind.h"

/* Ours. */
extern const struct api_kind api_cstor_pool_cluster, api_cstor_pool_instance;
extern const struct api_kind api_block_device, api_block_device_claim;
extern const struct api_kind api_cstor_volume, api_cstor_volume_replica;
extern const struct api_kind api_jiva_volume, api_jiva_volume_resize;
extern const struct api_kind api_logical_volume;

/* Shared tables. */
extern const struct api_field api_conditions[]; /* Kubernetes' usual condition */
extern const struct api_field api_resources[];  /* limits and requests of a container */
extern const struct api_field api_toleration[];
extern const struct api_field api_version_details[];
extern const struct api_field api_label_selector[];
extern const struct api_field api_object_reference[];

/* Pools: what CStorPoolCluster and CStorPoolInstance have in common (kinds/pool.c). */
extern const struct api_field api_raid_group[], api_pool_config[];
void api_pool_normalize(json_t *pool, const struct api_path *at, struct api_report *report);
void api_pool_validate(const json_t *pool, const struct api_path *at, struct api_report *report);
void api_pool_publish(json_t *pool, const struct api_path *at, struct api_report *report);
/* The layout of a group: its own type, or the pool's default; NULL where neither is given. */
const char *api_raid_type(const json_t *pool, const json_t *group);
enum api_raid_role { API_RAID_DATA, API_RAID_WRITE_CACHE, API_RAID_READ_CACHE, API_RAID_SPARE };
enum api_raid_role api_raid_role_of(const json_t *group);
const char *api_raid_role_text(enum api_raid_role role);
/* Rules for a pool that was `old` and becomes `pool` (kinds/pool_update.c). */
void api_pool_validate_update(const json_t *old, const json_t *pool, const struct api_path *at,
                              struct api_report *report);

/*
 * CStorPoolInstances and CStorPoolClusters as structs, the parts that they share, and a walk over the
 * devices of a pool. All of them are read from the normal form. Texts live as long as the JSON; of NULL, all
 * is absent.
 */
#pragma once

#include "api/decode.h"
#include "kinds/kinds.h"

struct raid_device {
    const char *name; /* of the BlockDevice */
    int64_t capacity;
};

struct raid_group {
    const char *type; /* "": that of the pool */
    const char *name; /* for people; "" */
    bool is_write_cache, is_read_cache, is_spare;
    API_ITEMS(struct raid_device) devices;
};

struct pool_config {
    const char *default_type;
    const char *compression;
    bool over_provisioning; /* volumes may be promised more than there is */
    int64_t read_only_percent;
};

enum api_raid_role raid_group_role(const struct raid_group *group);
/* Its own, or the pool's default; NULL where neither is given. */
const char *raid_group_type(const struct raid_group *group, const struct pool_config *config);

/* A device as the status of an instance has it. */
struct pool_device_status {
    const char *name, *guid, *state;
    int64_t read_errors, write_errors, checksum_errors;
};

/* A pool of a cluster; the spec of an instance has the same. */
struct pool_spec {
    const json_t *node_selector;
    struct pool_config config;
    API_ITEMS(struct raid_group) groups;
};
struct pool_spec pool_spec_of(const json_t *json, struct arena *arena);

enum { POOL_NOT_SAID = -1 };
struct pool_instance {
    const json_t *json; /* borrowed */
    struct {
        const char *host_name;
        const json_t *node_selector;
        struct pool_config config;
        API_ITEMS(struct raid_group) groups;
    } spec;
    struct {
        const char *phase, *guid;
        struct {
            const json_t *total, *used; /* quantities, or words of ZFS */
        } capacity;
        bool read_only;
        int64_t provisioned_replicas;
        API_ITEMS(struct pool_device_status) devices;
        API_ITEMS(const char *) adding;
        struct {
            int64_t percent;      /* POOL_NOT_SAID: there is none */
            int64_t seconds_left; /* POOL_NOT_SAID: not known */
            const char *device;   /* that is being filled; "" */
        } resilver;
        struct {
            int64_t percent, errors;
            const char *start_time, *end_time, *request;
            const json_t *repaired; /* as the capacity */
        } scrub;
        struct {
            const char *time, *request;
        } clear;
    } status;
};
/* Its lists are in the arena; without one they cannot be read (api_decode()). */
struct pool_instance pool_instance_of(const json_t *json, struct arena *arena);

/* What a cluster knows of an instance also when that is gone; has raidGroups as a pool has. */
struct pool_record {
    const char *name, *guid;
};
struct pool_record pool_record_of(const json_t *json);

struct pool_cluster {
    const json_t *pools;   /* a list: with nodeSelector and raidGroups */
    const json_t *records; /* a list: pool_record_of() */
};
struct pool_cluster pool_cluster_of(const json_t *json);

/*
 * The devices of whatever has raidGroups: a pool of a cluster, the spec of an instance, a record.
 *
 *     pool_each_device(spec, it)
 *         use(it.name);
 */
struct pool_walk {
    const json_t *pool;
    size_t group, device;            /* where it is: indexes */
    const json_t *raid_group, *json; /* the group and the device; borrowed */
    const char *name;                /* of the BlockDevice */
};
bool pool_walk_next(struct pool_walk *w);
bool raid_walk_next(struct pool_walk *w);
#define pool_each_device(of, it) for (struct pool_walk it = {.pool = (of)}; pool_walk_next(&it);)
/* The devices of one group. */
#define raid_each_device(of, it)                                                                   \
    for (struct pool_walk it = {.raid_group = (of)}; raid_walk_next(&it);)

/*
 * CStorVolumeReplica as a struct. Texts live as long as the JSON; of NULL, all is absent. Labels, annotations and
 * the finalizer are in kinds/cstorvolume.h, with those of the volume.
 */
#pragma once

#include "api/decode.h"
#include "kinds/kinds.h"

/*
 * On a replica whose data set is gone from a pool that is the same: another value than the one that was answered last
 * (status.recreate) says that the data is to be had from the other replicas, into a new data set.
 */
#define API_CVR_RECREATE "orlop.io/recreate"

struct volume_replica {
    const json_t *json; /* borrowed */
    struct {
        const char *target_ip, *workers, *replicaid, *compression;
        int64_t capacity, block_size;
        bool thick;
    } spec;
    struct {
        const char *phase, *message;
        const char *zvol_guid, *pool_guid; /* decimal; "": none is known */
        const char *recreate;
    } status;
};
struct volume_replica volume_replica_of(const json_t *json);
/*
 * The replica's number, by which its target knows it: what spec.replicaid says, or of other words, and of none (then
 * of the object's uid), a number that follows from them. Never 0.
 */
uint64_t volume_replica_id(const struct volume_replica *r);

/*
 * CStorVolumeReplica: one copy of a volume's data, in one pool.
 */
#include "kinds/kinds.h"

enum { BLOCK_MIN = 512, BLOCK_MAX = 128 * 1024 };

static const struct api_field spec[] = {
    {"targetIP", API_STRING, .format = &api_ip,
     .doc = "Address of the volume's target, to which the replica connects."},
    {"capacity", API_QUANTITY, .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY,
     .doc = "Size of the volume."},
    {"zvolWorkers", API_STRING, .format = &api_count,
     .doc = "How many threads work on the volume's reads and writes."},
    {"replicaid", API_STRING, .flags = API_IMMUTABLE, .format = &api_replica_id,
     .aliases = API_ALIASES("replicaID"), .doc = "Identity of the replica."},
    {"compression", API_BOOL_OR_STRING, .format = &api_compression,
     .synonyms = (const struct api_synonym[]){{"lz", "lz4"}, {0}},
     .doc = "Compression of the replica's data: off, on, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, "
            "zstd. The pool's when not given."},
    {"blockSize", API_INT, .flags = API_IMMUTABLE, .def = "4096", .min = 0, .max = BLOCK_MAX,
     .doc = "Block size in bytes: a power of two from 512 to 131072, or 0 for the default. Cannot "
            "be changed once the volume has been written."},
    {0},
};

static const struct api_field capacity[] = {
    {"total", API_INT_OR_STRING, .aliases = API_ALIASES("totalAllocated"),
     .doc = "Space that the replica and its snapshots take in the pool. A quantity; older writers "
            "have ZFS's own words, such as 6K."},
    {"used", API_INT_OR_STRING,
     .doc = "Space that its data would take uncompressed: closer to what applications see."},
    {0},
};

static const struct api_field snapshot[] = {
    {"logicalReferenced", API_INT, .min = 0, .max = INT64_MAX,
     .doc = "Bytes that the snapshot refers to, uncompressed."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING,
     .words = API_WORDS("", "Healthy", "Offline", "Degraded", "NewReplicaDegraded", "Rebuilding",
                        "ReconstructingNewReplica", "Error", "DeletionFailed", "Invalid", "Init",
                        "Recreate"),
     .doc = "Healthy: has all data. Offline: not connected to the target. Degraded: connected, "
            "misses data. Rebuilding: is given what it missed. NewReplicaDegraded and "
            "ReconstructingNewReplica: the same for a replica that has nothing yet and counts in "
            "no quorum. Init, Recreate: its data set is being made."},
    {"capacity", API_OBJECT, .fields = capacity, .doc = "Space, read from the pool."},
    {"lastTransitionTime", API_TIME, .doc = "When the phase last changed."},
    {"lastUpdateTime", API_TIME, .doc = "When the status was last confirmed."},
    {"message", API_STRING, .doc = "Why the replica is in this phase."},
    {"snapshots", API_OBJECT, API_MAP, .fields = snapshot, .doc = "Snapshots that are there."},
    {"pendingSnapshots", API_OBJECT, API_MAP, .fields = snapshot,
     .doc = "Snapshots that other replicas have and this one must get."},
    {"rebuildPercent", API_INT, .min = 0, .max = 100, .doc = "How much of a rebuild is done."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec,
     .doc = "The replica that is wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, .fields = status, .doc = "The replica that is there."},
    {0},
};

static const struct api_column columns[] = {
    {"Allocated", "string", ".status.capacity.total", "Space that it takes in the pool"},
    {"Used", "string", ".status.capacity.used", "Space that its data would take uncompressed"},
    {"Status", "string", ".status.phase", "State of the replica"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

/* Go's clients write a number that nobody set as 0. */
static void normalize(json_t *object, struct api_report *report)
{
    (void)report;
    json_t *replica = json_object_get(object, "spec");
    const json_t *size = json_object_get(replica, "blockSize");
    if (json_is_integer(size) && json_integer_value(size) == 0)
        json_object_del(replica, "blockSize");
}

static void validate(const json_t *object, struct api_report *report)
{
    const json_t *value = json_at(object, "spec", "blockSize");
    json_int_t size = json_integer_value(value);
    if (size < BLOCK_MIN || size & (size - 1)) {
        json_int_t below = BLOCK_MIN;
        while (below * 2 < size)
            below *= 2;
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "blockSize"), API_INVALID, value,
                    "must be a power of two from %d to %d, for example %lld", BLOCK_MIN, BLOCK_MAX,
                    (long long)below);
    }
}

const struct api_kind api_cstor_volume_replica = {
    .kind = "CStorVolumeReplica",
    .plural = "cstorvolumereplicas",
    .singular = "cstorvolumereplica",
    .short_names = API_WORDS("cvr"),
    .versions = (const struct api_group_version[]){{"cstor.openebs.io", "v1"},
                                                   {"openebs.io", "v1alpha1"},
                                                   {0}},
    .flags = API_STATUS,
    .fields = fields,
    .columns = columns,
    .normalize = normalize,
    .validate = validate,
    .doc = "One copy of a CStorVolume's data, in one pool.",
};

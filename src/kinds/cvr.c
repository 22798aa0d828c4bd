/*
 * CStorVolumeReplica: one copy of a volume's data, in one pool.
 */
#include "kinds/cvr.h"

#include <errno.h>
#include <stdlib.h>

#include "base/be.h"
#include "base/str.h"
#include "base/uuid.h"

#define CVR struct volume_replica

enum { BLOCK_MIN = 512, BLOCK_MAX = 128 * 1024 };

static const struct api_field spec[] = {
    {"targetIP", API_STRING, API_TEXT(CVR, spec.target_ip), .format = &api_ip,
     .doc = "Address of the volume's target, to which the replica connects."},
    {"capacity", API_QUANTITY, API_NUMBER_AT(CVR, spec.capacity),
     .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY, .doc = "Size of the volume."},
    {"zvolWorkers", API_STRING, API_TEXT(CVR, spec.workers), .format = &api_count,
     .doc = "How many threads work on the volume's reads and writes."},
    {"replicaid", API_STRING, API_TEXT(CVR, spec.replicaid), .flags = API_IMMUTABLE,
     .format = &api_replica_id, .aliases = API_ALIASES("replicaID"),
     .doc = "Identity of the replica."},
    {"compression", API_BOOL_OR_STRING, API_TEXT(CVR, spec.compression), .format = &api_compression,
     .synonyms = (const struct api_synonym[]){{"lz", "lz4"}, {0}},
     .doc = "Compression of the replica's data: off, on, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, "
            "zstd. The pool's when not given."},
    {"blockSize", API_INT, API_NUMBER_AT(CVR, spec.block_size), .flags = API_IMMUTABLE,
     .def = "4096", .min = 0, .max = BLOCK_MAX,
     .doc = "Block size in bytes: a power of two from 512 to 131072, or 0 for the default. Cannot "
            "be changed once the volume has been written."},
    {"thick", API_BOOL, API_TRUTH(CVR, spec.thick), .flags = API_IMMUTABLE,
     .doc = "Whether space for all of the volume is set aside in the pool. Without it the replica "
            "takes space as it is written."},
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
    {"phase", API_STRING, API_TEXT(CVR, status.phase),
     .words = API_WORDS("", "Healthy", "Offline", "Degraded", "NewReplicaDegraded", "Rebuilding",
                        "ReconstructingNewReplica", "Error", "DeletionFailed", "Invalid", "Init",
                        "Recreate"),
     .doc =
         "Healthy: has all data. Offline: not connected to the target. Degraded: connected, "
         "misses data. Rebuilding: is given what it missed. NewReplicaDegraded and "
         "ReconstructingNewReplica: the same for a replica that has nothing yet and counts in "
         "no quorum. Init, Recreate: its data set is being made. Error: the data set is not what "
         "it must be. DeletionFailed: it could not be destroyed, and is tried again. Invalid: "
         "the object says what no replica can be."},
    {"capacity", API_OBJECT, .fields = capacity, .doc = "Space, read from the pool."},
    {"lastTransitionTime", API_TIME, .doc = "When the phase last changed."},
    {"lastUpdateTime", API_TIME, .doc = "When the status was last confirmed."},
    {"message", API_STRING, API_TEXT(CVR, status.message),
     .doc = "Why the replica is in this phase."},
    {"snapshots", API_OBJECT, API_MAP, .fields = snapshot, .doc = "Snapshots that are there."},
    {"pendingSnapshots", API_OBJECT, API_MAP, .fields = snapshot,
     .doc = "Snapshots that other replicas have and this one must get."},
    {"rebuildPercent", API_INT, .min = 0, .max = 100, .doc = "How much of a rebuild is done."},
    {"zvolGuid", API_STRING, API_TEXT(CVR, status.zvol_guid), .format = &api_sequence,
     .doc = "Identity of its data set as written in the pool. It is here before anything is stored "
            "in the data set: one that is missing later is never made anew in silence."},
    {"poolGuid", API_STRING, API_TEXT(CVR, status.pool_guid), .format = &api_sequence,
     .doc = "Identity of the pool that the data set is in."},
    {"recreate", API_STRING, API_TEXT(CVR, status.recreate),
     .doc = "The value of the annotation orlop.io/recreate that was answered last."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The replica that is wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The replica that is there."},
    {0},
};

struct volume_replica volume_replica_of(const json_t *json)
{
    struct volume_replica r = {.json = json};
    api_decode(fields, json, &r, NULL);
    return r;
}

uint64_t volume_replica_id(const struct volume_replica *r)
{
    const char *text = r->spec.replicaid;
    char *end;
    errno = 0;
    uint64_t id = strtoull(text, &end, 10);
    if (*text && !*end && !errno && id)
        return id;
    if (!*text) {
        const char *uid = json_str(json_object_get(r->json, "metadata"), "uid");
        text = uid ? uid : "";
    }
    const struct uuid hash = uuid_of_name(text);
    id = be_get64(hash.bytes);
    return id ? id : 1;
}

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

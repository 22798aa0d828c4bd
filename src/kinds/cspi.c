/*
 * CStorPoolInstance: one ZFS pool on one node.
 */
#include "kinds/pool.h"
#include "kinds/pool_names.h"

#define CSPI struct pool_instance

static const struct api_field spec[] = {
    {"hostName", API_STRING, API_TEXT(CSPI, spec.host_name),
     .doc = "Node that has the pool. Changes when the pool migrates."},
    {"nodeSelector", API_STRING, API_MAP, API_REQUIRED, API_JSON(CSPI, spec.node_selector),
     .keys = &api_qualified_name, .format = &api_label_value,
     .doc = "Labels of that node, as its CStorPoolCluster gives them."},
    {"poolConfig", API_OBJECT, API_STRUCT(CSPI, spec.config), .def = "{}",
     .fields = api_pool_config, .doc = "Settings of the pool."},
    {"raidGroups", API_OBJECT, API_LIST, API_REQUIRED, API_ARRAY(CSPI, spec.groups),
     .fields = api_raid_group, .aliases = API_ALIASES("raidGroup", "dataRaidGroups"),
     .doc = "The groups of devices that make up the pool."},
    {"writeCacheRaidGroups", API_OBJECT, API_LIST, API_FOLDED, .fields = api_raid_group,
     .doc = "Published form only: groups with isWriteCache."},
    {0},
};

/* Sizes are quantities; older writers have ZFS's own words, such as 68.5K. */
static const struct api_field zfs_capacity[] = {
    {"logicalUsed", API_INT_OR_STRING, .doc = "What the data would take uncompressed."},
    {0},
};

static const struct api_field capacity[] = {
    {"total", API_INT_OR_STRING, API_JSON(CSPI, status.capacity.total), .doc = "Size of the pool."},
    {"free", API_INT_OR_STRING, .doc = "Space that is free."},
    {"used", API_INT_OR_STRING, API_JSON(CSPI, status.capacity.used), .doc = "Space that is used."},
    {"zfs", API_OBJECT, .fields = zfs_capacity, .doc = "What ZFS says beside."},
    {0},
};

static const struct api_field device_status[] = {
    {"blockDeviceName", API_STRING, API_TEXT(struct pool_device_status, name),
     .flags = API_REQUIRED, .doc = "Name of the BlockDevice."},
    {"state", API_STRING, API_TEXT(struct pool_device_status, state),
     .words = API_WORDS("ONLINE", "OFFLINE", "DEGRADED", "FAULTED", "REMOVED", "UNAVAIL", "SPARE"),
     .doc = "What ZFS says of the device."},
    {"guid", API_STRING, API_TEXT(struct pool_device_status, guid), .format = &api_sequence,
     .doc = "Identity of the device as written on it."},
    {"message", API_STRING, .doc = "Why it is not online."},
    {"readErrors", API_INT, API_NUMBER_AT(struct pool_device_status, read_errors), .min = 0,
     .max = INT64_MAX, .doc = "Reads that failed."},
    {"writeErrors", API_INT, API_NUMBER_AT(struct pool_device_status, write_errors), .min = 0,
     .max = INT64_MAX, .doc = "Writes that failed."},
    {"checksumErrors", API_INT, API_NUMBER_AT(struct pool_device_status, checksum_errors), .min = 0,
     .max = INT64_MAX, .doc = "Blocks read damaged."},
    {0},
};

#define NOT_SAID "-1"

static const struct api_field resilver[] = {
    {"percent", API_INT, API_NUMBER_AT(CSPI, status.resilver.percent), .absent = NOT_SAID, .min = 0,
     .max = 100, .doc = "How much of it is done."},
    {"remainingSeconds", API_INT, API_NUMBER_AT(CSPI, status.resilver.seconds_left),
     .absent = NOT_SAID, .min = 0, .max = INT64_MAX,
     .doc = "How long it will take at the present pace."},
    {"blockDeviceName", API_STRING, API_TEXT(CSPI, status.resilver.device),
     .doc = "The device that is being filled."},
    {0},
};

static const struct api_field scrub[] = {
    {"percent", API_INT, API_NUMBER_AT(CSPI, status.scrub.percent), .min = 0, .max = 100,
     .doc = "How much of it is done."},
    {"startTime", API_TIME, API_TEXT(CSPI, status.scrub.start_time), .doc = "When it began."},
    {"endTime", API_TIME, API_TEXT(CSPI, status.scrub.end_time),
     .doc = "When it was over; absent while it runs."},
    {"request", API_STRING, API_TEXT(CSPI, status.scrub.request),
     .doc = "The annotation that it answers, if somebody asked for it."},
    {"errors", API_INT, API_NUMBER_AT(CSPI, status.scrub.errors), .min = 0, .max = INT64_MAX,
     .doc = "Blocks that are damaged and have no other copy."},
    {"repaired", API_INT_OR_STRING, API_JSON(CSPI, status.scrub.repaired),
     .doc = "What was mended from other copies."},
    {0},
};

static const struct api_field clear[] = {
    {"request", API_STRING, API_TEXT(CSPI, status.clear.request),
     .doc = "The annotation that it answers."},
    {"time", API_TIME, API_TEXT(CSPI, status.clear.time), .doc = "When it was done."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING, API_TEXT(CSPI, status.phase),
     .words = API_WORDS("", "ONLINE", "OFFLINE", "DEGRADED", "FAULTED", "REMOVED", "UNAVAIL",
                        "Error", "DeletionFailed", "Invalid", "ErrorDuplicate", "Pending", "Init",
                        "PoolCreationFailed"),
     .doc = "State of the pool; the words in capitals are what ZFS says."},
    {"capacity", API_OBJECT, API_INLINE, .fields = capacity, .doc = "Space, read from the pool."},
    {"readOnly", API_BOOL, API_TRUTH(CSPI, status.read_only),
     .doc = "Whether it stopped taking writes because it is nearly full."},
    {"provisionedReplicas", API_INT, API_NUMBER_AT(CSPI, status.provisioned_replicas), .min = 0,
     .max = INT32_MAX, .doc = "Volume replicas on the pool."},
    {"healthyReplicas", API_INT, .min = 0, .max = INT32_MAX, .doc = "Those that are healthy."},
    {"guid", API_STRING, API_TEXT(CSPI, status.guid), .format = &api_sequence,
     .doc = "Identity of the pool as written on its devices."},
    {"devices", API_OBJECT, API_LIST, API_ARRAY(CSPI, status.devices), .fields = device_status,
     .merge_key = "blockDeviceName", .doc = "State of each device."},
    {"adding", API_STRING, API_LIST, API_ARRAY(CSPI, status.adding),
     .doc =
         "Spares and caches that are about to be added. Their labels do not say whose they are, so "
         "this does: they were empty when it was written."},
    {"resilver", API_OBJECT, API_INLINE, .fields = resilver,
     .doc = "Progress of a device replacement."},
    {"scrub", API_OBJECT, API_INLINE, .fields = scrub,
     .doc = "The last check of all data, or the present one."},
    {"clear", API_OBJECT, API_INLINE, .fields = clear,
     .doc = "When somebody last had the errors of the devices forgotten."},
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",
     .doc = "What is under way or wrong: Available, PoolExpansion, DiskReplacement, "
            "DiskUnavailable, PoolLost, ReadOnly."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The pool that is wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The pool that is there."},
    {0},
};

struct pool_instance pool_instance_of(const json_t *json, struct arena *arena)
{
    struct pool_instance instance = {.json = json};
    api_decode(fields, json, &instance, arena);
    return instance;
}

static const struct api_column columns[] = {
    {"HostName", "string", ".spec.hostName", "Node that has the pool"},
    {"Free", "string", ".status.capacity.free", "Space that is free"},
    {"Capacity", "string", ".status.capacity.total", "Size of the pool"},
    {"ReadOnly", "boolean", ".status.readOnly", "Stopped taking writes"},
    {"ProvisionedReplicas", "integer", ".status.provisionedReplicas", "Replicas on the pool"},
    {"HealthyReplicas", "integer", ".status.healthyReplicas", "Replicas that are healthy"},
    {"Status", "string", ".status.phase", "State of the pool"},
    {"Allocated", "string", ".status.capacity.used", "Space that is used", 1},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

static void normalize(json_t *object, struct api_report *report)
{
    json_t *pool = json_object_get(object, "spec");
    if (json_is_object(pool))
        api_pool_normalize(pool, API_KEY(NULL, "spec"), report);
}

static void validate(const json_t *object, struct api_report *report)
{
    struct map devices = {0};
    api_pool_validate(json_object_get(object, "spec"), API_KEY(NULL, "spec"), &devices, report);
    map_done(&devices);
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    api_pool_validate_update(json_object_get(old, "spec"), json_object_get(object, "spec"),
                             API_KEY(NULL, "spec"), report);
}

static void publish(json_t *object, struct api_report *report)
{
    api_pool_publish(json_object_get(object, "spec"), API_KEY(NULL, "spec"), report);
}

static const struct api_note notes[] = {
    {API_POOL_EXISTING, &api_zpool_name},
    {API_POOL_GUID, &api_sequence, .fixed = true},
    {0},
};

const struct api_kind api_cstor_pool_instance = {
    .kind = "CStorPoolInstance",
    .plural = "cstorpoolinstances",
    .singular = "cstorpoolinstance",
    .short_names = API_WORDS("cspi"),
    .versions = (const struct api_group_version[]){{"openebs.io", "v1alpha1"},
                                                   {"cstor.openebs.io", "v1"},
                                                   {0}},
    .published = 1,
    .flags = API_STATUS,
    .fields = fields,
    .columns = columns,
    .notes = notes,
    .normalize = normalize,
    .validate = validate,
    .validate_update = validate_update,
    .among = api_cstor_pool_instance_among,
    .publish = publish,
    .doc = "One ZFS pool on one node, made by the CStorPoolCluster that owns it.",
};

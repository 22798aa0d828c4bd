/*
 * The group snapshot.storage.k8s.io: snapshots of volumes. In a cluster these kinds come with the
 * snapshot controller's CRDs.
 */
#include "k8s/kinds/kinds.h"

static const struct api_field snapshot_source[] = {
    {"persistentVolumeClaimName", API_STRING, .doc = "The claim to take a snapshot of."},
    {"volumeSnapshotContentName", API_STRING, .doc = "A snapshot that is there already."},
    {0},
};

static const struct api_field snapshot_spec[] = {
    {"source", API_OBJECT, .flags = API_REQUIRED, .fields = snapshot_source,
     .doc = "Where the snapshot comes from."},
    {"volumeSnapshotClassName", API_STRING,
     .doc = "The VolumeSnapshotClass; the driver's default one when not given."},
    {0},
};

static const struct api_field snapshot_error[] = {
    {"time", API_TIME, .doc = "When it happened."},
    {"message", API_STRING, .doc = "What happened."},
    {0},
};

static const struct api_field snapshot_status[] = {
    {"boundVolumeSnapshotContentName", API_STRING, .doc = "The VolumeSnapshotContent."},
    {"creationTime", API_TIME, .doc = "The moment that the snapshot shows."},
    {"readyToUse", API_BOOL, .doc = "Whether volumes can be made from it."},
    {"restoreSize", API_QUANTITY, .doc = "The least size of a volume made from it."},
    {"volumeGroupSnapshotName", API_STRING, .doc = "The group snapshot it belongs to."},
    {"error", API_OBJECT, .fields = snapshot_error, .doc = "What failed last."},
    {0},
};

static const struct api_field snapshot_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = snapshot_spec,
     .doc = "The snapshot that is wanted."},
    {"status", API_OBJECT, .fields = snapshot_status, .doc = "The snapshot that is there."},
    {0},
};

static const struct api_column snapshot_columns[] = {
    {"ReadyToUse", "boolean", ".status.readyToUse", "Whether volumes can be made from it"},
    {"SourcePVC", "string", ".spec.source.persistentVolumeClaimName", "The claim it is of"},
    {"SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName",
     "The snapshot that was there already"},
    {"RestoreSize", "string", ".status.restoreSize", "Least size of a volume made from it"},
    {"SnapshotClass", "string", ".spec.volumeSnapshotClassName", "Its class"},
    {"SnapshotContent", "string", ".status.boundVolumeSnapshotContentName", "Its content"},
    {"CreationTime", "date", ".status.creationTime", "Time since the moment it shows"},
    API_AGE,
    {0},
};

static const struct api_field content_source[] = {
    {"volumeHandle", API_STRING, .doc = "The driver's id of the volume to take a snapshot of."},
    {"snapshotHandle", API_STRING, .doc = "The driver's id of a snapshot that is there already."},
    {0},
};

static const struct api_field content_spec[] = {
    {"deletionPolicy", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("Delete", "Retain"),
     .doc = "What becomes of the snapshot when its VolumeSnapshot is gone."},
    {"driver", API_STRING, .flags = API_REQUIRED, .doc = "The CSI driver."},
    {"source", API_OBJECT, .flags = API_REQUIRED, .fields = content_source,
     .doc = "Where the snapshot comes from."},
    {"sourceVolumeMode", API_STRING, .doc = "Filesystem or Block."},
    {"volumeSnapshotClassName", API_STRING, .doc = "The VolumeSnapshotClass."},
    {"volumeSnapshotRef", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED,
     .fields = api_object_reference, .doc = "The VolumeSnapshot that has it."},
    {0},
};

static const struct api_field content_status[] = {
    {"snapshotHandle", API_STRING, .doc = "The driver's id of the snapshot."},
    {"creationTime", API_INT, .doc = "The moment that it shows, in nanoseconds since 1970."},
    {"readyToUse", API_BOOL, .doc = "Whether volumes can be made from it."},
    {"restoreSize", API_INT, .min = 0, .max = INT64_MAX,
     .doc = "Least size of a volume, in bytes."},
    {"volumeGroupSnapshotHandle", API_STRING, .doc = "The group snapshot it belongs to."},
    {"error", API_OBJECT, .fields = snapshot_error, .doc = "What failed last."},
    {0},
};

static const struct api_field content_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = content_spec,
     .doc = "The snapshot and whose it is."},
    {"status", API_OBJECT, .fields = content_status, .doc = "The snapshot that is there."},
    {0},
};

static const struct api_column content_columns[] = {
    {"ReadyToUse", "boolean", ".status.readyToUse", "Whether volumes can be made from it"},
    {"RestoreSize", "integer", ".status.restoreSize", "Least size of a volume, in bytes"},
    {"DeletionPolicy", "string", ".spec.deletionPolicy", "What becomes of it"},
    {"Driver", "string", ".spec.driver", "The driver"},
    {"VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName", "Its class"},
    {"VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name", "The snapshot that has it"},
    {"VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace", "Namespace of that"},
    API_AGE,
    {0},
};

static const struct api_field class_fields[] = {
    API_TYPE_AND_META,
    {"driver", API_STRING, .flags = API_REQUIRED, .doc = "The CSI driver."},
    {"deletionPolicy", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("Delete", "Retain"),
     .doc = "What becomes of snapshots whose VolumeSnapshot is gone."},
    {"parameters", API_STRING, API_MAP, .doc = "Settings for the driver; quote every value."},
    {0},
};

static const struct api_column class_columns[] = {
    {"Driver", "string", ".driver", "The driver"},
    {"DeletionPolicy", "string", ".deletionPolicy", "What becomes of snapshots"},
    API_AGE,
    {0},
};

/* Of two ways to name a source, exactly one. */
static void check_source(const json_t *object, const char *one, const char *other,
                         struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "spec"), "source");
    const json_t *source = json_at(object, "spec", "source");
    bool has_one = json_string_length(json_object_get(source, one)) > 0;
    bool has_other = json_string_length(json_object_get(source, other)) > 0;
    if (!has_one && !has_other)
        api_problem(report, API_KEY(at, one), API_MISSING, NULL, "give either %s or %s", one,
                    other);
    else if (has_one && has_other)
        api_problem(report, API_KEY(at, other), API_FORBIDDEN, NULL,
                    "%s is given as well; keep one of them", one);
}

static void validate_snapshot(const json_t *object, struct api_report *report)
{
    check_source(object, "persistentVolumeClaimName", "volumeSnapshotContentName", report);
}

static void validate_content(const json_t *object, struct api_report *report)
{
    check_source(object, "volumeHandle", "snapshotHandle", report);
}

const struct api_kind api_volume_snapshot = {
    .kind = "VolumeSnapshot",
    .plural = "volumesnapshots",
    .singular = "volumesnapshot",
    .short_names = API_WORDS("vs"),
    .versions = API_VERSION("snapshot.storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = snapshot_fields,
    .columns = snapshot_columns,
    .validate = validate_snapshot,
    .doc = "A user's wish for a snapshot of a claim.",
};

const struct api_kind api_volume_snapshot_content = {
    .kind = "VolumeSnapshotContent",
    .plural = "volumesnapshotcontents",
    .singular = "volumesnapshotcontent",
    .short_names = API_WORDS("vsc", "vscs"),
    .versions = API_VERSION("snapshot.storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = content_fields,
    .columns = content_columns,
    .validate = validate_content,
    .doc = "A snapshot of the cluster, and the VolumeSnapshot that has it.",
};

const struct api_kind api_volume_snapshot_class = {
    .kind = "VolumeSnapshotClass",
    .plural = "volumesnapshotclasses",
    .singular = "volumesnapshotclass",
    .short_names = API_WORDS("vsclass", "vsclasses"),
    .versions = API_VERSION("snapshot.storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = class_fields,
    .columns = class_columns,
    .doc = "A way in which snapshots are made.",
};

/*
 * JivaVolume: a replicated block volume on directories of the nodes.
 *
 * Its size is not edited: a JivaVolumeResize is created, takes the volume's lock (the annotation
 * resize.jiva.openebs.io/name) and only while it holds it may spec.capacity change, and only to what
 * the volume has already: status.capacity, which is read back from the target.
 */
#include "kinds/jiva.h"

#include "api/update.h"
#include "base/quantity.h"
#include "kinds/kinds.h"

#define JV struct jiva_volume

static const struct api_field iscsi[] = {
    {"iqn", API_STRING, API_TEXT(JV, iscsi.iqn), .flags = API_IMMUTABLE, .format = &api_iqn,
     .doc = "iSCSI name of the target."},
    {"targetPortal", API_STRING, API_TEXT(JV, iscsi.portal), .format = &api_portal,
     .doc = "Address and port of the target."},
    {0},
};

static const struct api_field iscsi_spec[] = {
    {"targetIP", API_STRING, API_TEXT(JV, spec.iscsi.ip), .format = &api_ip,
     .doc = "Address of the target."},
    {"targetPort", API_INT, API_NUMBER_AT(JV, spec.iscsi.port), .min = 1, .max = 65535,
     .doc = "Port of the target."},
    {"iqn", API_STRING, API_TEXT(JV, spec.iscsi.iqn), .flags = API_IMMUTABLE, .format = &api_iqn,
     .doc = "iSCSI name of the target."},
    {0},
};

static const struct api_field mount_info[] = {
    {"stagingPath", API_STRING, .doc = "Where it is staged on the node."},
    {"targetPath", API_STRING, .doc = "Where the pod sees it."},
    {"fsType", API_STRING, .doc = "File system on the volume."},
    {"devicePath", API_STRING, .doc = "Device on the node."},
    {0},
};

#define PART struct jiva_part

static const struct api_field policy_target[] = {
    {"authentication", API_STRING, API_TEXT(PART, authentication), .absent = "CHAP",
     .words = API_WORDS("CHAP", "None"),
     .doc = "CHAP, also without it: initiators log in with what the Secret NAME-chap has. None: "
            "whoever reaches the portal reads and writes the volume; for initiators without CHAP."},
    {"disableMonitor", API_BOOL, API_TRUTH(PART, unmonitored),
     .doc = "true: no metrics. Without it the target serves them on port 9500."},
    {"replicationFactor", API_INT, API_NUMBER_AT(PART, factor), .absent = "3", .min = 1,
     .max = API_JIVA_REPLICAS, .doc = "How many replicas it has."},
    {"resources", API_OBJECT, API_JSON(PART, resources), .fields = api_resources,
     .doc = "Of the target's container."},
    {"auxResources", API_OBJECT, API_JSON(PART, side_resources), .fields = api_resources,
     .doc = "Of its side-car containers."},
    {"tolerations", API_OBJECT, API_LIST, API_JSON(PART, tolerations), .fields = api_toleration,
     .doc = "Of the target's pod."},
    {"affinity", API_OBJECT, API_JSON(PART, affinity), .flags = API_KEEP,
     .doc = "Of the target's pod, as Kubernetes has it."},
    {"nodeSelector", API_STRING, API_MAP, API_JSON(PART, node_selector),
     .doc = "Nodes on which the target may run."},
    {"priorityClassName", API_STRING, API_TEXT(PART, priority_class),
     .doc = "Priority class of the target's pod."},
    {0},
};

static const struct api_field policy_replica[] = {
    {"resources", API_OBJECT, API_JSON(PART, resources), .fields = api_resources,
     .doc = "Of the replica's container."},
    {"tolerations", API_OBJECT, API_LIST, API_JSON(PART, tolerations), .fields = api_toleration,
     .doc = "Of the replica's pod."},
    {"affinity", API_OBJECT, API_JSON(PART, affinity), .flags = API_KEEP,
     .doc = "Of the replica's pod, as Kubernetes has it."},
    {"nodeSelector", API_STRING, API_MAP, API_JSON(PART, node_selector),
     .doc = "Nodes on which replicas may run."},
    {"priorityClassName", API_STRING, API_TEXT(PART, priority_class),
     .doc = "Priority class of the replica's pod."},
    {0},
};

static const struct api_field policy[] = {
    {"replicaSC", API_STRING, API_TEXT(JV, spec.policy.replica_class),
     .doc = "Storage class of the replicas' own volumes in the published form. It has no effect: "
            "replicas keep their data in folders of the nodes. A warning says so."},
    {"serviceAccountName", API_STRING, API_TEXT(JV, spec.policy.service_account),
     .doc = "Account that replicas run as; the target has its own."},
    {"priorityClassName", API_STRING, API_TEXT(JV, spec.policy.priority_class),
     .doc = "Priority class where target or replica says none."},
    {"enableBufio", API_BOOL, API_TRUTH(JV, spec.policy.buffered), .absent = "true",
     .doc = "Whether replicas use the page cache, as they do without it. false: their data goes "
            "past it, where the node's file system can."},
    {"autoScaling", API_BOOL, API_TRUTH(JV, spec.policy.rehomes), .absent = "true",
     .doc = "false: a replica whose node is lost waits for it, and is not made anew elsewhere."},
    {"target", API_OBJECT, API_STRUCT(JV, spec.policy.target), .fields = policy_target,
     .doc = "Settings of the target."},
    {"replica", API_OBJECT, API_STRUCT(JV, spec.policy.replica), .fields = policy_replica,
     .doc = "Settings of the replicas."},
    {0},
};

static const struct api_field resize_order[] = {
    {"name", API_STRING, API_TEXT(JV, spec.resize.name), .flags = API_REQUIRED,
     .format = &api_dns_subdomain,
     .doc = "The JivaVolumeResize that orders it; it counts while that holds the lock."},
    {"capacity", API_QUANTITY, API_AMOUNT(JV, spec.resize.capacity),
     .flags = API_REQUIRED | API_POSITIVE, .doc = "The size that the target is to have."},
    {0},
};

static const struct api_field snapshot_order[] = {
    {"generation", API_INT, API_NUMBER_AT(JV, spec.snapshot.generation), .flags = API_REQUIRED,
     .min = 1, .max = INT64_MAX, .doc = "Which order it is: greater than that of the one before."},
    {"command", API_STRING, API_TEXT(JV, spec.snapshot.command), .flags = API_REQUIRED,
     .words = API_WORDS("create", "delete", "revert"),
     .doc = "What is to be done with the snapshot."},
    {"name", API_STRING, API_TEXT(JV, spec.snapshot.name), .flags = API_REQUIRED,
     .doc = "The snapshot's name."},
    {0},
};

static const struct api_field spec[] = {
    {"capacity", API_QUANTITY, API_AMOUNT(JV, spec.capacity),
     .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY,
     .doc = "Size of the volume. A bare number counts GiB. To change it, create a "
            "JivaVolumeResize."},
    {"lun", API_INT, API_NUMBER_AT(JV, spec.lun), .def = "0", .min = 0, .max = 255,
     .doc = "Number of the logical unit."},
    {"pv", API_STRING, API_TEXT(JV, spec.pv), .doc = "Name of the PersistentVolume."},
    {"accessType", API_STRING, .words = API_WORDS("", "mount", "block"), .doc = "How it is used."},
    {"iscsiSpec", API_OBJECT, API_INLINE, .fields = iscsi_spec,
     .doc = "Published form of iscsi, and the same. Filled in by the system."},
    {"mountInfo", API_OBJECT, .fields = mount_info, .doc = "Where it is mounted."},
    {"policy", API_OBJECT, API_INLINE, .fields = policy, .doc = "Settings of target and replicas."},
    {"desiredReplicationFactor", API_INT, API_NUMBER_AT(JV, spec.desired_factor), .min = 1,
     .max = API_JIVA_REPLICAS,
     .doc = "How many replicas are wanted; 3 when the policy says nothing either."},
    {"resizeOrder", API_OBJECT, API_INLINE, .fields = resize_order,
     .doc = "That the target is to grow. Written by the system; status.resize acknowledges it."},
    {"snapshotOrder", API_OBJECT, API_INLINE, .fields = snapshot_order,
     .doc = "What is asked about snapshots, last; status.snapshotOrder acknowledges it."},
    {0},
};

static const struct api_field reference[] = {
    {"name", API_STRING, .format = &api_dns_subdomain, .doc = "Name of the object."},
    {"namespace", API_STRING, .format = &api_dns_label, .doc = "Namespace of the object."},
    {0},
};

#define NOT_SAID "-1"

static const struct api_field replica_status[] = {
    {"address", API_STRING, API_TEXT(struct jiva_replica, address), .doc = "Where the replica is."},
    {"mode", API_STRING, API_TEXT(struct jiva_replica, mode),
     .doc = "RW: has all data. WO: is being rebuilt. ERR: failed."},
    {"rebuildPercent", API_INT, API_NUMBER_AT(struct jiva_replica, percent), .absent = NOT_SAID,
     .min = 0, .max = 100, .doc = "How much of a rebuild is done."},
    {"replicaId", API_STRING, API_TEXT(struct jiva_replica, id),
     .doc = "Who it is: a UUID, which is in its folder."},
    {"state", API_STRING, API_TEXT(struct jiva_replica, state),
     .doc = "Healthy, Rebuilding, Degraded, Offline; NewReplicaDegraded and "
            "ReconstructingNewReplica of one that never had all data."},
    {"secondsLeft", API_INT, API_NUMBER_AT(struct jiva_replica, seconds_left), .absent = NOT_SAID,
     .min = 0, .max = INT32_MAX, .doc = "Of a rebuild, as it looks now."},
    {"lag", API_INT, API_NUMBER_AT(struct jiva_replica, lag), .absent = NOT_SAID, .min = 0,
     .max = INT64_MAX,
     .doc = "Writes that were sent to it and are not answered, while it is not healthy."},
    {0},
};

static const struct api_field initiator[] = {
    {"name", API_STRING, API_TEXT(struct jiva_initiator, name), .doc = "Its iSCSI name."},
    {"address", API_STRING, API_TEXT(struct jiva_initiator, address), .doc = "Where it is."},
    {0},
};

static const struct api_field snapshot[] = {
    {"name", API_STRING, API_TEXT(struct jiva_snapshot, name), .doc = "Its name."},
    {"created", API_TIME, API_TEXT(struct jiva_snapshot, created), .doc = "When it was taken."},
    {0},
};

static const struct api_field snapshot_answer[] = {
    {"generation", API_INT, API_NUMBER_AT(JV, status.snapshot.generation), .min = 0,
     .max = INT64_MAX, .doc = "Which order it is about."},
    {"phase", API_STRING, API_TEXT(JV, status.snapshot.phase),
     .words = API_WORDS("", "Running", "Done", "Failed"), .doc = "How far it is."},
    {"message", API_STRING, API_TEXT(JV, status.snapshot.message), .doc = "Why it has failed."},
    {0},
};

static const struct api_field growth[] = {
    {"name", API_STRING, API_TEXT(JV, status.resize.name),
     .doc = "The JivaVolumeResize on whose order it grows."},
    {"capacity", API_QUANTITY, .doc = "The size that it is to have."},
    {"message", API_STRING, API_TEXT(JV, status.resize.message),
     .doc = "Why it has failed; empty while it is under way."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING, API_TEXT(JV, status.phase),
     .words = API_WORDS("", "Pending", "Syncing", "Failed", "Unknown", "Ready", "Deleting"),
     .doc = "State of the volume."},
    {"status", API_STRING, API_TEXT(JV, status.status),
     .words = API_WORDS("", "RW", "RO", "Unknown", "Offline"),
     .doc = "Whether the target takes writes."},
    {"replicaCount", API_INT, API_NUMBER_AT(JV, status.replica_count), .min = 0, .max = 1024,
     .doc = "Replicas that are connected."},
    {"replicaStatus", API_OBJECT, API_LIST, API_ATOMIC, API_ARRAY(JV, status.replicas),
     .fields = replica_status, .doc = "The replicas as the target sees them."},
    {"capacity", API_QUANTITY, API_AMOUNT(JV, status.capacity),
     .doc = "The size that the volume has."},
    {"initiators", API_OBJECT, API_LIST, API_ATOMIC, API_ARRAY(JV, status.initiators),
     .fields = initiator, .doc = "Who is logged in."},
    {"snapshots", API_OBJECT, API_LIST, API_ATOMIC, API_ARRAY(JV, status.snapshots),
     .fields = snapshot, .doc = "Its snapshots, the oldest first."},
    {"snapshotOrder", API_OBJECT, API_INLINE, .fields = snapshot_answer,
     .doc = "What became of the last thing that was asked about snapshots."},
    {"operation", API_STRING, API_TEXT(JV, status.operation),
     .words = API_WORDS("", "Growth", "ReplicaAddition", "ReplicaRemoval", "Scrub", "Snapshot",
                        "SnapshotDeletion", "Revert"),
     .doc = "What the target is at beside I/O; empty: nothing."},
    {"resize", API_OBJECT, API_INLINE, .fields = growth,
     .doc = "The growth that the target was told of."},
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",
     .doc = "What is under way or wrong."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The volume that is wanted."},
    {"iscsi", API_OBJECT, API_INLINE, .fields = iscsi,
     .doc = "How to reach it. Filled in by the system."},
    {"service", API_OBJECT, .fields = reference,
     .doc = "The target's Service. Filled in by the system."},
    {"targetDeployment", API_OBJECT, .fields = reference,
     .doc = "The target's Deployment. Filled in by the system."},
    {"replicaDeployment", API_OBJECT, .fields = reference,
     .doc = "The replicas' Deployment. Filled in by the system."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The volume that is there."},
    {0},
};

struct jiva_volume jiva_volume_of(const json_t *json, struct arena *arena)
{
    struct jiva_volume volume = {.json = json};
    api_decode(fields, json, &volume, arena);
    return volume;
}

json_t *jiva_replica_json(const struct jiva_replica *replica)
{
    return api_encode(replica_status, replica);
}

unsigned jiva_volume_factor(const struct jiva_volume *volume)
{
    int64_t desired = volume->spec.desired_factor;
    return (unsigned)(desired > 0 ? desired : volume->spec.policy.target.factor);
}

bool jiva_volume_is_authenticated(const struct jiva_volume *volume)
{
    return !str_eq(volume->spec.policy.target.authentication, "None");
}

static const struct api_column columns[] = {
    {"ReplicaCount", "integer", ".status.replicaCount", "Replicas that are connected"},
    {"Phase", "string", ".status.phase", "State of the volume"},
    {"Status", "string", ".status.status", "Whether it takes writes"},
    {"Capacity", "string", ".spec.capacity", "Size of the volume"},
    {"Portal", "string", ".iscsi.targetPortal", "Where its target is", 1},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

/* These name folders on nodes, and are arguments of programs. */
static const struct api_note notes[] = {
    {API_JIVA_ID, &api_volume_id, .fixed = true},
    {API_JIVA_NODES, &api_dns_subdomain, .list = true},
    {API_JIVA_STALE, &api_dns_subdomain, .list = true},
    {0},
};

static const struct api_path *const spec_at = API_KEY(NULL, "spec");

void api_jiva_capacity(json_t *object, struct api_report *report)
{
    json_t *volume = json_object_get(object, "spec");
    const json_t *capacity = json_object_get(volume, "capacity");
    if (!json_is_integer(capacity) || json_integer_value(capacity) <= 0)
        return;
    long long gib = json_integer_value(capacity);
    api_warn(report, API_KEY(spec_at, "capacity"), "%lld is taken for %lldGi; write \"%lldGi\"",
             gib, gib, gib);
    json_object_set_new(volume, "capacity", json_sprintf("%lldGi", gib));
}

/* Names of its Service and of its pods' labels begin with it. */
static void check_name(const json_t *object, struct api_report *report)
{
    const json_t *name = json_at(object, "metadata", "name");
    const char *text = json_string_value(name);
    if (text && (strlen(text) > API_JIVA_NAME_MAX || strchr(text, '.')))
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID, name,
                    "a Service and Deployments are named after it: write at most %d lower case "
                    "letters, digits and '-'",
                    API_JIVA_NAME_MAX);
}

/* Where the volume is the system knows; its name is what people may choose, once. */
static void check_iqn(const struct jiva_volume *volume, struct api_report *report)
{
    const char *iqn = volume->iscsi.iqn, *published = volume->spec.iscsi.iqn;
    if (*iqn && *published && !str_eq(iqn, published))
        api_problem(report, API_KEY(API_KEY(spec_at, "iscsiSpec"), "iqn"), API_FORBIDDEN, NULL,
                    "contradicts iscsi.iqn (%s); keep one of them", iqn);
}

static void validate(const json_t *object, struct api_report *report)
{
    const struct jiva_volume volume = jiva_volume_of(object, NULL);
    check_name(object, report);
    check_iqn(&volume, report);
    if (*volume.spec.policy.replica_class)
        api_warn(report, API_KEY(API_KEY(spec_at, "policy"), "replicaSC"),
                 "has no effect: replicas keep their data in folders of the nodes");
    if (!jiva_volume_is_authenticated(&volume))
        api_warn(report, API_KEY(API_KEY(API_KEY(spec_at, "policy"), "target"), "authentication"),
                 "whoever reaches the volume's portal can read and write it");
    const struct api_path *at = API_KEY(API_KEY(NULL, "metadata"), "annotations");
    const json_t *enabled = json_at(object, "metadata", "annotations", API_JIVA_RESIZE_ENABLED);
    const char *text = json_string_value(enabled);
    if (text && !str_eq(text, "true") && !str_eq(text, "false"))
        api_problem(report, API_KEY(at, API_JIVA_RESIZE_ENABLED), API_UNSUPPORTED, enabled,
                    "supported values: \"true\", \"false\"");
}

/* The lock is free, or it is waited for: no resize takes it from another. */
static void check_lock(const json_t *old, const json_t *object, struct api_report *report)
{
    const char *was = json_str(json_at(old, "metadata", "annotations"), API_JIVA_RESIZE_LOCK);
    const json_t *lock = json_at(object, "metadata", "annotations", API_JIVA_RESIZE_LOCK);
    const char *is = json_string_value(lock);
    const struct api_path *at = API_KEY(API_KEY(NULL, "metadata"), "annotations");
    if (was && *was && is && *is && !str_eq(was, is))
        api_problem(report, API_KEY(at, API_JIVA_RESIZE_LOCK), API_FORBIDDEN, lock,
                    "the volume is being resized by \"%s\"; wait until that has removed its name",
                    was);
}

/* An order is followed once, by its generation: another one has another, which is greater. */
static void check_order(const json_t *old, const json_t *object, struct api_report *report)
{
    const json_t *was = json_at(old, "spec", "snapshotOrder"),
                 *is = json_at(object, "spec", "snapshotOrder");
    int64_t before = jiva_volume_of(old, NULL).spec.snapshot.generation;
    if (was && is && !json_equal(was, is) &&
        jiva_volume_of(object, NULL).spec.snapshot.generation <= before)
        api_problem(report, API_KEY(API_KEY(spec_at, "snapshotOrder"), "generation"), API_INVALID,
                    json_object_get(is, "generation"),
                    "another order needs a greater one: write %lld", (long long)before + 1);
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    check_lock(old, object, report);
    check_order(old, object, report);
    const json_t *was = json_at(old, "spec", "capacity"), *is = json_at(object, "spec", "capacity");
    if (api_quantity_cmp(is, was) <= 0)
        return; /* the same, or smaller: the table refuses that */
    const char *lock = json_str(json_at(old, "metadata", "annotations"), API_JIVA_RESIZE_LOCK);
    const json_t *has = json_at(old, "status", "capacity");
    if (lock && *lock && has && api_quantity_cmp(is, has) <= 0)
        return; /* the resize is through: the object may say so */
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    _cleanup_(str_done) struct str wanted = {0};
    json_format(is, &wanted);
    api_problem(report, API_KEY(spec_at, "capacity"), API_FORBIDDEN, NULL,
                "the size of a JivaVolume changes through a JivaVolumeResize; create one with "
                "{\"apiVersion\":\"openebs.io/v1alpha1\",\"kind\":\"JivaVolumeResize\","
                "\"metadata\":{\"name\":\"resize-%s\",\"labels\":{\"" API_JIVA_NAME
                "\":\"%s\"}},\"spec\":{\"capacity\":%s}}",
                name ? name : "", name ? name : "", str_get(&wanted));
}

const struct api_kind api_jiva_volume = {
    .kind = "JivaVolume",
    .plural = "jivavolumes",
    .singular = "jivavolume",
    .short_names = API_WORDS("jv"),
    .versions =
        (const struct api_group_version[]){{"openebs.io", "v1alpha1"}, {"openebs.io", "v1"}, {0}},
    .published = 1,
    .flags = API_STATUS,
    .notes = notes,
    .fields = fields,
    .columns = columns,
    .normalize = api_jiva_capacity,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "A block volume that is kept in files on several nodes and served over iSCSI.",
};

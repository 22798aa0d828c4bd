/*
 * PersistentVolume and PersistentVolumeClaim.
 */
#include "api/update.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

#define ACCESS_MODES API_WORDS("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")

static const struct api_field data_source[] = {
    {"apiGroup", API_STRING, .doc = "API group of the source; empty for a claim."},
    {"kind", API_STRING, .flags = API_REQUIRED,
     .doc = "VolumeSnapshot, PersistentVolumeClaim or a kind that a populator knows."},
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the source."},
    {"namespace", API_STRING, .doc = "Its namespace, for dataSourceRef."},
    {0},
};

static const struct api_field claim_resources[] = {
    {"requests", API_QUANTITY, API_MAP, .doc = "What is asked for; storage is the size."},
    {"limits", API_QUANTITY, API_MAP, .doc = "The most that would do."},
    {0},
};

const struct api_field api_claim_spec[] = {
    {"accessModes", API_STRING, API_LIST, .words = ACCESS_MODES,
     .doc = "Who may use the volume at the same time; at least one."},
    {"selector", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Which volumes may be bound to the claim."},
    {"resources", API_OBJECT, .fields = claim_resources,
     .doc = "The size that is wanted. Raise it to grow the volume."},
    {"volumeName", API_STRING, .doc = "The volume that is bound to the claim."},
    {"storageClassName", API_STRING,
     .doc = "The StorageClass; the default one when not given, none when empty."},
    {"volumeMode", API_STRING, .words = API_WORDS("Filesystem", "Block"), .def = "\"Filesystem\"",
     .doc = "Whether pods see a file system or a device."},
    {"dataSource", API_OBJECT, .flags = API_ATOMIC, .fields = data_source,
     .doc = "What the volume is a copy of."},
    {"dataSourceRef", API_OBJECT, .fields = data_source,
     .doc = "The same, for sources of any kind and namespace."},
    {"volumeAttributesClassName", API_STRING, .doc = "The VolumeAttributesClass."},
    {0},
};

static const struct api_field modify_status[] = {
    {"targetVolumeAttributesClassName", API_STRING, .doc = "The class that is being applied."},
    {"status", API_STRING, .doc = "Pending, InProgress or Infeasible."},
    {0},
};

static const struct api_field claim_status[] = {
    {"phase", API_STRING, .doc = "Pending, Bound or Lost."},
    {"accessModes", API_STRING, API_LIST, .doc = "Access modes that the volume has."},
    {"capacity", API_QUANTITY, API_MAP, .doc = "The size that the volume has."},
    API_CONDITIONS,
    {"allocatedResources", API_QUANTITY, API_MAP,
     .doc = "The size that was last asked of the driver."},
    {"allocatedResourceStatuses", API_STRING, API_MAP, .doc = "How far growing is."},
    {"currentVolumeAttributesClassName", API_STRING, .doc = "The class that is in force."},
    {"modifyVolumeStatus", API_OBJECT, .fields = modify_status,
     .doc = "How far a change of class is."},
    {0},
};

static const struct api_field claim_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_claim_spec,
     .doc = "The volume that is wanted."},
    {"status", API_OBJECT, .fields = claim_status, .doc = "The volume that is there."},
    {0},
};

static const struct api_column claim_columns[] = {
    {"Status", "string", NULL, "Pending, Bound, Lost or Terminating", 0, api_cell_claim_status},
    {"Volume", "string", ".spec.volumeName", "The volume that is bound to it"},
    {"Capacity", "string", NULL, "Size of the volume", 0, api_cell_claim_capacity},
    {"Access Modes", "string", NULL, "How it can be mounted", 0, api_cell_claim_modes},
    {"StorageClass", "string", ".spec.storageClassName", "Its storage class"},
    {"VolumeAttributesClass", "string", NULL, "Its attributes class", 0, api_cell_attributes_class},
    API_AGE,
    {"VolumeMode", "string", NULL, "Filesystem or Block", 1, api_cell_volume_mode},
    {0},
};

static const struct api_field csi_source[] = {
    {"driver", API_STRING, .flags = API_REQUIRED, .doc = "Name of the CSI driver."},
    {"volumeHandle", API_STRING, .flags = API_REQUIRED, .doc = "The volume's id with the driver."},
    {"readOnly", API_BOOL, .doc = "Whether it can only be read."},
    {"fsType", API_STRING, .doc = "File system, such as ext4."},
    {"volumeAttributes", API_STRING, API_MAP, .doc = "What the driver noted about the volume."},
    {"controllerPublishSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "Secret for attaching and detaching."},
    {"nodeStageSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "Secret for preparing it on a node."},
    {"nodePublishSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "Secret for mounting it."},
    {"controllerExpandSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "Secret for growing it."},
    {"nodeExpandSecretRef", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "Secret for growing it on a node."},
    {0},
};

static const struct api_field local_source[] = {
    {"path", API_STRING, .flags = API_REQUIRED, .doc = "The directory or device on the node."},
    {"fsType", API_STRING, .doc = "File system, such as ext4."},
    {0},
};

static const struct api_field volume_node_affinity[] = {
    {"required", API_OBJECT, .flags = API_ATOMIC, .fields = api_node_selector, .doc = "The nodes."},
    {0},
};

static const struct api_field volume_spec[] = {
    {"capacity", API_QUANTITY, API_MAP, .doc = "Its size, as storage."},
    {"accessModes", API_STRING, API_LIST, .words = ACCESS_MODES,
     .doc = "Who may use it at the same time; at least one."},
    {"claimRef", API_OBJECT, .fields = api_object_reference, .doc = "The claim that has it."},
    {"persistentVolumeReclaimPolicy", API_STRING, .def = "\"Retain\"",
     .words = API_WORDS("Retain", "Delete", "Recycle"),
     .doc = "What becomes of it when its claim is gone."},
    {"storageClassName", API_STRING, .doc = "The StorageClass it belongs to."},
    {"mountOptions", API_STRING, API_LIST, .doc = "Options for mounting it."},
    {"volumeMode", API_STRING, .words = API_WORDS("Filesystem", "Block"), .def = "\"Filesystem\"",
     .doc = "Whether pods see a file system or a device."},
    {"nodeAffinity", API_OBJECT, .fields = volume_node_affinity,
     .doc = "Nodes from which it can be reached."},
    {"volumeAttributesClassName", API_STRING, .doc = "The VolumeAttributesClass."},
    {"csi", API_OBJECT, .fields = csi_source, .doc = "A volume of a CSI driver."},
    {"local", API_OBJECT, .fields = local_source, .doc = "A directory or device of one node."},
    {"hostPath", API_OBJECT, .flags = API_KEEP, .doc = "A path of whichever node uses it."},
    {"nfs", API_OBJECT, .flags = API_KEEP, .doc = "A directory of an NFS server."},
    {"iscsi", API_OBJECT, .flags = API_KEEP, .doc = "A disk of an iSCSI target."},
    {0},
};

static const struct api_field volume_status[] = {
    {"phase", API_STRING, .doc = "Pending, Available, Bound, Released or Failed."},
    {"message", API_STRING, .doc = "Why, for people."},
    {"reason", API_STRING, .doc = "One CamelCase word for why it failed."},
    {"lastPhaseTransitionTime", API_TIME, .doc = "When the phase last changed."},
    {0},
};

static const struct api_field volume_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = volume_spec,
     .doc = "The volume and who may use it."},
    {"status", API_OBJECT, .fields = volume_status, .doc = "Whether it is in use."},
    {0},
};

static const struct api_column volume_columns[] = {
    {"Capacity", "string", ".spec.capacity.storage", "Its size"},
    {"Access Modes", "string", NULL, "How it can be mounted", 0, api_cell_volume_modes},
    {"Reclaim Policy", "string", ".spec.persistentVolumeReclaimPolicy",
     "What becomes of it when its claim is gone"},
    {"Status", "string", NULL, "Available, Bound, Released, Failed or Terminating", 0,
     api_cell_claim_status},
    {"Claim", "string", NULL, "The claim that has it", 0, api_cell_volume_claim},
    {"StorageClass", "string", ".spec.storageClassName", "Its storage class"},
    {"VolumeAttributesClass", "string", NULL, "Its attributes class", 0, api_cell_attributes_class},
    {"Reason", "string", ".status.reason", "Why it failed"},
    API_AGE,
    {"VolumeMode", "string", NULL, "Filesystem or Block", 1, api_cell_volume_mode},
    {0},
};

static void check_access_modes(const json_t *modes, const struct api_path *at,
                               struct api_report *report)
{
    bool alone = false;
    size_t i;
    json_t *mode;
    json_array_foreach(modes, i, mode)
        alone = alone || str_eq(json_string_value(mode), "ReadWriteOncePod");
    if (json_array_size(modes) == 0)
        api_problem(report, at, API_MISSING, NULL,
                    "at least 1 access mode is required, for example \"- ReadWriteOnce\"");
    else if (alone && json_array_size(modes) > 1)
        api_problem(report, at, API_FORBIDDEN, modes,
                    "ReadWriteOncePod cannot be combined with other access modes");
}

static void check_size(const json_t *sizes, const struct api_path *at, struct api_report *report)
{
    const json_t *size = json_object_get(sizes, "storage");
    json_auto_t *zero = json_integer(0);
    if (!size)
        api_problem(report, API_KEY(at, "storage"), API_MISSING, NULL,
                    "say how large the volume is, for example \"storage: 10Gi\"");
    else if (api_quantity_cmp(size, zero) <= 0)
        api_problem(report, API_KEY(at, "storage"), API_INVALID, size, "must be more than zero");
}

void api_claim_spec_validate(const json_t *spec, const struct api_path *at,
                             struct api_report *report)
{
    check_access_modes(json_object_get(spec, "accessModes"), API_KEY(at, "accessModes"), report);
    check_size(json_at(spec, "resources", "requests"),
               API_KEY(API_KEY(at, "resources"), "requests"), report);
}

static void validate_claim(const json_t *object, struct api_report *report)
{
    api_claim_spec_validate(json_object_get(object, "spec"), API_KEY(NULL, "spec"), report);
}

static void drop_size(json_t *spec)
{
    json_object_del(json_object_get(json_object_get(spec, "resources"), "requests"), "storage");
}

/* A member that may be set once, if it is not. */
static void allow_once(json_t *before, json_t *after, const char *key)
{
    const char *was = json_str(before, key);
    if (was && *was)
        return;
    json_object_del(before, key);
    json_object_del(after, key);
}

/* Whether anything but what may change differs: the size is looked at elsewhere. */
static bool claim_differs(const json_t *before, const json_t *after, bool bound, bool same_size)
{
    json_auto_t *was = json_deep_copy(before), *is = json_deep_copy(after);
    if (bound || same_size) {
        drop_size(was);
        drop_size(is);
    }
    if (bound) {
        json_object_del(was, "volumeAttributesClassName");
        json_object_del(is, "volumeAttributesClassName");
    }
    allow_once(was, is, "volumeName");
    if (!json_object_get(was, "storageClassName")) /* the default class came later */
        json_object_del(is, "storageClassName");
    return !json_equal(was, is);
}

static void validate_claim_update(const json_t *old, const json_t *object,
                                  struct api_report *report)
{
    const char *phase = json_str(json_object_get(object, "status"), "phase");
    const json_t *before = json_object_get(old, "spec"), *after = json_object_get(object, "spec");
    const json_t *was = json_at(before, "resources", "requests", "storage");
    const json_t *is = json_at(after, "resources", "requests", "storage");
    const json_t *capacity = json_at(old, "status", "capacity", "storage");
    int grows = was && is ? api_quantity_cmp(is, was) : 0;
    if (claim_differs(before, after, phase && str_eq(phase, "Bound"), grows == 0))
        api_problem(report, API_KEY(NULL, "spec"), API_FORBIDDEN, NULL,
                    "spec is immutable after creation except resources.requests and "
                    "volumeAttributesClassName for bound claims");
    /* Asking for less takes back a growth that failed; a volume never becomes smaller. */
    if (grows < 0 && capacity && api_quantity_cmp(is, capacity) <= 0)
        api_problem(
            report,
            API_KEY(API_KEY(API_KEY(API_KEY(NULL, "spec"), "resources"), "requests"), "storage"),
            API_FORBIDDEN, NULL, "field can not be less than status.capacity");
}

/* A volume is one thing: exactly one source. */
static void check_source(const json_t *spec, const struct api_path *at, struct api_report *report)
{
    static const char *const sources[] = {"csi",
                                          "local",
                                          "hostPath",
                                          "nfs",
                                          "iscsi",
                                          "fc",
                                          "rbd",
                                          "cephfs",
                                          "cinder",
                                          "glusterfs",
                                          "azureDisk",
                                          "azureFile",
                                          "awsElasticBlockStore",
                                          "gcePersistentDisk",
                                          "flexVolume",
                                          "flocker",
                                          "photonPersistentDisk",
                                          "portworxVolume",
                                          "quobyte",
                                          "scaleIO",
                                          "storageos",
                                          "vsphereVolume",
                                          NULL};
    const char *first = NULL;
    for (const char *const *name = sources; *name; name++) {
        if (!json_object_get(spec, *name))
            continue;
        if (first)
            api_problem(report, API_KEY(at, *name), API_FORBIDDEN, NULL,
                        "the volume has the source %s already; it may have one", first);
        else
            first = *name;
    }
    if (!first)
        api_problem(report, at, API_MISSING, NULL,
                    "must specify a volume type: say where the volume comes from, for example "
                    "\"csi:\" with driver and volumeHandle");
}

static void validate_volume(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(NULL, "spec");
    const json_t *spec = json_object_get(object, "spec");
    check_access_modes(json_object_get(spec, "accessModes"), API_KEY(at, "accessModes"), report);
    check_size(json_object_get(spec, "capacity"), API_KEY(at, "capacity"), report);
    check_source(spec, at, report);
    if (json_object_get(spec, "local") && !json_object_get(spec, "nodeAffinity"))
        api_problem(report, API_KEY(at, "nodeAffinity"), API_MISSING, NULL,
                    "a local volume must say which node it is on");
}

const struct api_kind api_persistent_volume = {
    .kind = "PersistentVolume",
    .plural = "persistentvolumes",
    .singular = "persistentvolume",
    .short_names = API_WORDS("pv"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = volume_fields,
    .columns = volume_columns,
    .validate = validate_volume,
    .doc = "A volume of the cluster, free or claimed.",
};

const struct api_kind api_persistent_volume_claim = {
    .kind = "PersistentVolumeClaim",
    .plural = "persistentvolumeclaims",
    .singular = "persistentvolumeclaim",
    .short_names = API_WORDS("pvc"),
    .versions = API_VERSION("", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = claim_fields,
    .columns = claim_columns,
    .validate = validate_claim,
    .validate_update = validate_claim_update,
    .doc = "A user's wish for a volume, and the volume that answers it.",
};

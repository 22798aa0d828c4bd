/*
 * The group storage.k8s.io: classes of storage, and what is known of CSI drivers.
 */
#include <ctype.h>

#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field topology_requirement[] = {
    {"key", API_STRING, .flags = API_REQUIRED, .doc = "Label of nodes."},
    {"values", API_STRING, API_LIST, API_REQUIRED, .doc = "Values that it may have."},
    {0},
};

static const struct api_field topology_term[] = {
    {"matchLabelExpressions", API_OBJECT, API_LIST, .fields = topology_requirement,
     .doc = "What nodes must have."},
    {0},
};

static const struct api_field storage_class_fields[] = {
    API_TYPE_AND_META,
    {"provisioner", API_STRING, .flags = API_REQUIRED, .doc = "The CSI driver that makes volumes."},
    {"parameters", API_STRING, API_MAP, .doc = "Settings for the driver; quote every value."},
    {"reclaimPolicy", API_STRING, .words = API_WORDS("Delete", "Retain"), .def = "\"Delete\"",
     .doc = "What becomes of volumes whose claim is gone."},
    {"mountOptions", API_STRING, API_LIST, .doc = "Options for mounting the volumes."},
    {"allowVolumeExpansion", API_BOOL, .doc = "Whether claims may grow."},
    {"volumeBindingMode", API_STRING, .words = API_WORDS("Immediate", "WaitForFirstConsumer"),
     .def = "\"Immediate\"", .doc = "Make volumes at once, or when a pod shows where."},
    {"allowedTopologies", API_OBJECT, API_LIST, .fields = topology_term,
     .doc = "Where volumes may be made."},
    {0},
};

static const struct api_column storage_class_columns[] = {
    {"Name", "string", NULL, "Its name, and whether it is the default", 0, api_cell_class_name},
    {"Provisioner", "string", ".provisioner", "The driver that makes volumes"},
    {"ReclaimPolicy", "string", ".reclaimPolicy", "What becomes of volumes without a claim"},
    {"VolumeBindingMode", "string", ".volumeBindingMode", "When volumes are made"},
    {"AllowVolumeExpansion", "boolean", ".allowVolumeExpansion", "Whether claims may grow"},
    API_AGE,
    {0},
};

static void validate_storage_class(const json_t *object, struct api_report *report)
{
    const json_t *provisioner = json_object_get(object, "provisioner");
    _cleanup_free_ char *lower = mem_strdup(json_string_value(provisioner));
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c); /* in its prefix capitals are allowed here */
    const char *why = api_qualified_name.check(lower);
    if (why)
        api_problem(report, API_KEY(NULL, "provisioner"), API_INVALID, provisioner, "%s", why);

    enum { PARAMETERS_MAX = 512, PARAMETERS_BYTES = 256 * 1024 };
    const struct api_path *at = API_KEY(NULL, "parameters");
    const json_t *parameters = json_object_get(object, "parameters");
    size_t total = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)parameters, key, value) {
        if (!*key)
            api_problem(report, at, API_INVALID, NULL, "a parameter must have a name");
        total += strlen(key) + json_string_length(value);
    }
    if (json_object_size(parameters) > PARAMETERS_MAX || total > PARAMETERS_BYTES)
        api_problem(report, at, API_TOO_LONG, NULL,
                    "may not be more than %d parameters of %d bytes together", PARAMETERS_MAX,
                    PARAMETERS_BYTES);
}

static void validate_storage_class_update(const json_t *old, const json_t *object,
                                          struct api_report *report)
{
    static const char *const forbidden[] = {"parameters", "provisioner", "reclaimPolicy", NULL};
    for (const char *const *key = forbidden; *key; key++) {
        const json_t *was = json_object_get(old, *key), *is = json_object_get(object, *key);
        bool empty =
            json_object_size(was) == 0 && json_object_size(is) == 0 && str_eq(*key, "parameters");
        if (!empty && !json_equal(was, is))
            api_problem(report, API_KEY(NULL, *key), API_FORBIDDEN, NULL,
                        "updates to %s are forbidden.", *key);
    }
    const json_t *mode = json_object_get(object, "volumeBindingMode");
    if (!json_equal(json_object_get(old, "volumeBindingMode"), mode))
        api_problem(report, API_KEY(NULL, "volumeBindingMode"), API_INVALID, mode,
                    "field is immutable");
}

static const struct api_field token_request[] = {
    {"audience", API_STRING, .doc = "Whom the token is for."},
    {"expirationSeconds", API_INT, .min = 600, .max = UINT32_MAX, .doc = "How long it is valid."},
    {0},
};

static const struct api_field csi_driver_spec[] = {
    {"attachRequired", API_BOOL, .def = "true", .doc = "Whether volumes are attached to nodes."},
    {"podInfoOnMount", API_BOOL, .def = "false", .doc = "Whether the driver is told of the pod."},
    {"volumeLifecycleModes", API_STRING, API_LIST, .def = "[\"Persistent\"]",
     .words = API_WORDS("Persistent", "Ephemeral"), .doc = "Kinds of volumes that it makes."},
    {"storageCapacity", API_BOOL, .def = "false",
     .doc = "Whether pods are placed by the capacity that the driver reports."},
    {"fsGroupPolicy", API_STRING, .def = "\"ReadWriteOnceWithFSType\"",
     .words = API_WORDS("ReadWriteOnceWithFSType", "File", "None"),
     .doc = "Whether the group of files is changed when a volume is mounted."},
    {"tokenRequests", API_OBJECT, API_LIST, .fields = token_request,
     .doc = "Tokens of the pod that the driver gets."},
    {"requiresRepublish", API_BOOL, .def = "false", .doc = "Whether mounting is repeated."},
    {"seLinuxMount", API_BOOL, .def = "false", .doc = "Whether it takes the SELinux mount option."},
    {"nodeAllocatableUpdatePeriodSeconds", API_INT, .min = 10, .max = INT64_MAX,
     .doc = "How often the limit of volumes per node is asked."},
    {0},
};

static const struct api_field csi_driver_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = csi_driver_spec,
     .doc = "What the driver can do and needs."},
    {0},
};

static const struct api_column csi_driver_columns[] = {
    {"AttachRequired", "boolean", ".spec.attachRequired", "Whether volumes are attached"},
    {"PodInfoOnMount", "boolean", ".spec.podInfoOnMount", "Whether it is told of the pod"},
    {"StorageCapacity", "boolean", ".spec.storageCapacity", "Whether its capacity counts"},
    {"TokenRequests", "string", NULL, "Tokens that it is given", 0, api_cell_token_requests},
    {"RequiresRepublish", "boolean", ".spec.requiresRepublish", "Whether mounting is repeated"},
    {"Modes", "string", NULL, "How long its volumes live", 0, api_cell_lifecycle_modes},
    API_AGE,
    {0},
};

static const struct api_field node_resources[] = {
    {"count", API_INT, API_UINT31, .doc = "How many volumes the node can have."},
    {0},
};

static const struct api_field node_driver[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the driver."},
    {"nodeID", API_STRING, .flags = API_REQUIRED, .doc = "The node's id with the driver."},
    {"topologyKeys", API_STRING, API_LIST, .doc = "Labels that say where the node is."},
    {"allocatable", API_OBJECT, .fields = node_resources, .doc = "What the node can have."},
    {0},
};

static const struct api_field csi_node_spec[] = {
    {"drivers", API_OBJECT, API_LIST, .fields = node_driver, .merge_key = "name",
     .doc = "The drivers on the node."},
    {0},
};

static const struct api_field csi_node_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = csi_node_spec,
     .doc = "What the node's drivers said."},
    {0},
};

static const struct api_column csi_node_columns[] = {
    {"Drivers", "integer", NULL, "How many drivers it has", 0, api_cell_drivers},
    API_AGE,
    {0},
};

static const struct api_field attachment_source[] = {
    {"persistentVolumeName", API_STRING, .doc = "The PersistentVolume."},
    {"inlineVolumeSpec", API_OBJECT, .flags = API_KEEP, .doc = "A volume that is none of those."},
    {0},
};

static const struct api_field attachment_spec[] = {
    {"attacher", API_STRING, .flags = API_REQUIRED, .doc = "The CSI driver."},
    {"nodeName", API_STRING, .flags = API_REQUIRED, .doc = "The node."},
    {"source", API_OBJECT, .flags = API_REQUIRED, .fields = attachment_source,
     .doc = "The volume."},
    {0},
};

static const struct api_field volume_error[] = {
    {"time", API_TIME, .doc = "When it happened."},
    {"message", API_STRING, .doc = "What happened."},
    {"errorCode", API_INT, .doc = "gRPC code of the driver's answer."},
    {0},
};

static const struct api_field attachment_status[] = {
    {"attached", API_BOOL, .doc = "Whether the volume is attached."},
    {"attachmentMetadata", API_STRING, API_MAP, .doc = "What the driver said of it."},
    {"attachError", API_OBJECT, .fields = volume_error, .doc = "Why it could not be attached."},
    {"detachError", API_OBJECT, .fields = volume_error, .doc = "Why it could not be detached."},
    {0},
};

static const struct api_field attachment_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = attachment_spec,
     .doc = "What is to be attached where."},
    {"status", API_OBJECT, .fields = attachment_status, .doc = "How far that is."},
    {0},
};

static const struct api_column attachment_columns[] = {
    {"Attacher", "string", ".spec.attacher", "The driver"},
    {"PV", "string", ".spec.source.persistentVolumeName", "The volume"},
    {"Node", "string", ".spec.nodeName", "The node"},
    {"Attached", "boolean", ".status.attached", "Whether it is attached"},
    API_AGE,
    {0},
};

static const struct api_field capacity_fields[] = {
    API_TYPE_AND_META,
    {"nodeTopology", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Nodes that can reach the storage; all when empty."},
    {"storageClassName", API_STRING, .flags = API_REQUIRED, .doc = "The StorageClass."},
    {"capacity", API_QUANTITY, .doc = "Space that is free."},
    {"maximumVolumeSize", API_QUANTITY, .doc = "The largest volume that can be made."},
    {0},
};

static const struct api_column capacity_columns[] = {
    {"StorageClassName", "string", ".storageClassName", "The storage class"},
    {"Capacity", "string", ".capacity", "Space that is free"},
    {0},
};

static const struct api_field attributes_class_fields[] = {
    API_TYPE_AND_META,
    {"driverName", API_STRING, .flags = API_REQUIRED, .doc = "The CSI driver."},
    {"parameters", API_STRING, API_MAP, .doc = "Attributes for the driver; quote every value."},
    {0},
};

static const struct api_column attributes_class_columns[] = {
    {"DriverName", "string", ".driverName", "The driver"},
    API_AGE,
    {0},
};

const struct api_kind api_storage_class = {
    .kind = "StorageClass",
    .plural = "storageclasses",
    .singular = "storageclass",
    .short_names = API_WORDS("sc"),
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = storage_class_fields,
    .columns = storage_class_columns,
    .validate = validate_storage_class,
    .validate_update = validate_storage_class_update,
    .doc = "A way in which volumes are made: by which driver, with which settings.",
};

const struct api_kind api_csi_driver = {
    .kind = "CSIDriver",
    .plural = "csidrivers",
    .singular = "csidriver",
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = csi_driver_fields,
    .columns = csi_driver_columns,
    .doc = "What a CSI driver can do and needs.",
};

const struct api_kind api_csi_node = {
    .kind = "CSINode",
    .plural = "csinodes",
    .singular = "csinode",
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = csi_node_fields,
    .columns = csi_node_columns,
    .doc = "The CSI drivers of a node.",
};

const struct api_kind api_volume_attachment = {
    .kind = "VolumeAttachment",
    .plural = "volumeattachments",
    .singular = "volumeattachment",
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = attachment_fields,
    .columns = attachment_columns,
    .doc = "The wish to have a volume attached to a node.",
};

const struct api_kind api_csi_storage_capacity = {
    .kind = "CSIStorageCapacity",
    .plural = "csistoragecapacities",
    .singular = "csistoragecapacity",
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN,
    .fields = capacity_fields,
    .columns = capacity_columns,
    .doc = "How much room there is for volumes of a class at one place.",
};

const struct api_kind api_volume_attributes_class = {
    .kind = "VolumeAttributesClass",
    .plural = "volumeattributesclasses",
    .singular = "volumeattributesclass",
    .short_names = API_WORDS("vac"),
    .versions = API_VERSION("storage.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = attributes_class_fields,
    .columns = attributes_class_columns,
    .doc = "Attributes of volumes that can be changed while they are used.",
};

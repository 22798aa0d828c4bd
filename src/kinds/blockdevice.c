/*
 * BlockDevice and BlockDeviceClaim: the disks of the nodes, and who has them.
 */
#include "kinds/kinds.h"

static const struct api_field node_attributes[] = {
    {"nodeName", API_STRING, .doc = "Node that has the device."},
    {0},
};

static const struct api_field capacity[] = {
    {"storage", API_QUANTITY, .flags = API_REQUIRED, .doc = "Size in bytes."},
    {"physicalSectorSize", API_INT, .min = 0, .max = INT32_MAX, .doc = "In bytes."},
    {"logicalSectorSize", API_INT, .min = 0, .max = INT32_MAX, .doc = "In bytes."},
    {0},
};

static const struct api_field details[] = {
    {"deviceType", API_STRING,
     .words = API_WORDS("", "disk", "partition", "sparse", "loop", "lvm", "crypt", "dm", "mpath"),
     .doc = "What kind of device it is."},
    {"driveType", API_STRING, .words = API_WORDS("", "HDD", "SSD", "Unknown"),
     .doc = "Whether it rotates."},
    {"logicalBlockSize", API_INT, .doc = "In bytes."},
    {"physicalBlockSize", API_INT, .doc = "In bytes."},
    {"hardwareSectorSize", API_INT, .doc = "In bytes."},
    {"model", API_STRING, .doc = "As the device says."},
    {"compliance", API_STRING, .doc = "Standard it follows, as the device says."},
    {"serial", API_STRING, .doc = "As the device says."},
    {"vendor", API_STRING, .doc = "As the device says."},
    {"firmwareRevision", API_STRING, .doc = "As the device says."},
    {0},
};

static const struct api_field devlink[] = {
    {"kind", API_STRING, .words = API_WORDS("by-id", "by-path", "by-uuid", "by-partuuid"),
     .doc = "What the links are made from."},
    {"links", API_STRING, API_LIST, .doc = "Paths that lead to the device."},
    {0},
};

static const struct api_field filesystem[] = {
    {"fsType", API_STRING, .doc = "File system found on the device."},
    {"mountPoint", API_STRING, .doc = "Where it is mounted."},
    {0},
};

static const struct api_field bd_spec[] = {
    {"nodeAttributes", API_OBJECT, .fields = node_attributes, .doc = "Where the device is."},
    {"path", API_STRING, .doc = "Path at the moment; only a hint, it may change at a restart."},
    {"capacity", API_OBJECT, .flags = API_REQUIRED, .fields = capacity,
     .doc = "Size of the device."},
    {"details", API_OBJECT, .fields = details, .doc = "What the device says of itself."},
    {"claimRef", API_OBJECT, .fields = api_object_reference,
     .doc = "The BlockDeviceClaim that has the device."},
    {"devlinks", API_OBJECT, API_LIST, .fields = devlink, .doc = "Stable paths."},
    {"filesystem", API_OBJECT, .fields = filesystem, .doc = "What was found on the device."},
    {"partitioned", API_STRING, .words = API_WORDS("Yes", "No"),
     .synonyms = (const struct api_synonym[]){{"NO", "No"}, {"YES", "Yes"}, {0}},
     .doc = "Whether it has partitions."},
    {"parentDevice", API_STRING, .doc = "Path of the disk that a partition belongs to."},
    {"aggregateDevice", API_STRING, .doc = "Obsolete; kept."},
    {0},
};

static const struct api_field bd_status[] = {
    {"claimState", API_STRING, .words = API_WORDS("Claimed", "Unclaimed", "Released"),
     .doc = "Whether somebody has it; Released waits to be cleaned."},
    {"state", API_STRING, .words = API_WORDS("Active", "Inactive", "Unknown"),
     .doc = "Whether the device is there."},
    API_CONDITIONS,
    {0},
};

static const struct api_field bd_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = bd_spec, .doc = "The device."},
    {"status", API_OBJECT, .fields = bd_status, .doc = "Its state."},
    {0},
};

static const struct api_column bd_columns[] = {
    {"NodeName", "string", ".spec.nodeAttributes.nodeName", "Node that has the device"},
    {"Path", "string", ".spec.path", "Path at the moment", 1},
    {"FSType", "string", ".spec.filesystem.fsType", "File system on the device", 1},
    {"Size", "string", ".spec.capacity.storage", "Size in bytes"},
    {"ClaimState", "string", ".status.claimState", "Whether somebody has it"},
    {"Status", "string", ".status.state", "Whether it is there"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was found"},
    {0},
};

static const struct api_field claim_details[] = {
    {"blockVolumeMode", API_STRING, .words = API_WORDS("", "Block", "FileSystem"),
     .doc = "How the device will be used."},
    {"formatType", API_STRING, .doc = "File system that is wanted."},
    {"allowPartition", API_BOOL, .doc = "Whether a partition will do."},
    {0},
};

static const struct api_field claim_node[] = {
    {"nodeName", API_STRING, .doc = "Node whose devices are considered."},
    {"hostName", API_STRING, .doc = "Host name of that node."},
    {0},
};

static const struct api_field claim_resources[] = {
    {"requests", API_QUANTITY, API_MAP, .doc = "The least size, as storage."},
    {0},
};

static const struct api_field bdc_spec[] = {
    {"selector", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Labels the device must have."},
    {"resources", API_OBJECT, .fields = claim_resources, .doc = "What the device must have."},
    {"deviceType", API_STRING, .doc = "Type the device must have."},
    {"hostName", API_STRING, .doc = "Obsolete: use blockDeviceNodeAttributes.hostName."},
    {"deviceClaimDetails", API_OBJECT, .fields = claim_details, .doc = "How it will be used."},
    {"blockDeviceName", API_STRING, .format = &api_dns_subdomain,
     .doc = "The device that is wanted, or the one that was given."},
    {"blockDeviceNodeAttributes", API_OBJECT, .fields = claim_node, .doc = "Where it must be."},
    {0},
};

static const struct api_field bdc_status[] = {
    {"phase", API_STRING, .words = API_WORDS("", "Pending", "Invalid Capacity Request", "Bound"),
     .doc = "Whether a device was found."},
    API_CONDITIONS,
    {0},
};

static const struct api_field bdc_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = bdc_spec, .doc = "What is wanted."},
    {"status", API_OBJECT, .fields = bdc_status, .doc = "What was given."},
    {0},
};

static const struct api_column bdc_columns[] = {
    {"BlockDeviceName", "string", ".spec.blockDeviceName", "Device that it has"},
    {"Phase", "string", ".status.phase", "Whether a device was found"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

/* A claim that has its device keeps it: giving it another is a new claim. */
static void bdc_validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const char *phase = json_str(json_object_get(old, "status"), "phase");
    const json_t *was = json_at(old, "spec", "blockDeviceName");
    const json_t *is = json_at(object, "spec", "blockDeviceName");
    if (phase && str_eq(phase, "Bound") && was && (!is || !json_equal(was, is)))
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "blockDeviceName"), API_FORBIDDEN, is,
                    "the claim is bound to \"%s\"; delete it and make another",
                    json_string_value(was));
}

static const struct api_group_version versions[] = {{"openebs.io", "v1alpha1"}, {0}};

const struct api_kind api_block_device = {
    .kind = "BlockDevice",
    .plural = "blockdevices",
    .singular = "blockdevice",
    .short_names = API_WORDS("bd"),
    .versions = versions,
    .flags = API_STATUS,
    .fields = bd_fields,
    .columns = bd_columns,
    .doc = "A disk, partition or sparse file of a node, found by the node's agent.",
};

const struct api_kind api_block_device_claim = {
    .kind = "BlockDeviceClaim",
    .plural = "blockdeviceclaims",
    .singular = "blockdeviceclaim",
    .short_names = API_WORDS("bdc"),
    .versions = versions,
    .flags = API_STATUS,
    .fields = bdc_fields,
    .columns = bdc_columns,
    .validate_update = bdc_validate_update,
    .doc = "A request for a block device; while it is bound nobody else can have that device.",
};

/*
 * BlockDevice and BlockDeviceClaim: the disks of the nodes, and who has them.
 */
#include "kinds/blockdevice.h"

#include "api/decode.h"
#include "kinds/kinds.h"

#define BD  struct block_device
#define BDC struct block_device_claim

static const struct api_field node_attributes[] = {
    {"nodeName", API_STRING, API_TEXT(BD, spec.node_name), .doc = "Node that has the device."},
    {0},
};

static const struct api_field capacity[] = {
    {"storage", API_QUANTITY, API_NUMBER_AT(BD, spec.size), .flags = API_REQUIRED,
     .doc = "Size in bytes."},
    {"physicalSectorSize", API_INT, .min = 0, .max = INT32_MAX, .doc = "In bytes."},
    {"logicalSectorSize", API_INT, .min = 0, .max = INT32_MAX, .doc = "In bytes."},
    {0},
};

static const struct api_field details[] = {
    {"deviceType", API_STRING, API_TEXT(BD, spec.device_type),
     .words = API_WORDS("", "disk", "partition", "sparse", "loop", "lvm", "crypt", "dm", "mpath"),
     .doc = "What kind of device it is."},
    {"driveType", API_STRING, API_TEXT(BD, spec.drive_type),
     .words = API_WORDS("", "HDD", "SSD", "Unknown"), .doc = "Whether it rotates."},
    {"logicalBlockSize", API_INT, .doc = "In bytes."},
    {"physicalBlockSize", API_INT, .doc = "In bytes."},
    {"hardwareSectorSize", API_INT, .doc = "In bytes."},
    {"model", API_STRING, API_TEXT(BD, spec.model), .doc = "As the device says."},
    {"compliance", API_STRING, .doc = "Standard it follows, as the device says."},
    {"serial", API_STRING, API_TEXT(BD, spec.serial), .doc = "As the device says."},
    {"vendor", API_STRING, API_TEXT(BD, spec.vendor), .doc = "As the device says."},
    {"firmwareRevision", API_STRING, API_TEXT(BD, spec.firmware), .doc = "As the device says."},
    {0},
};

static const struct api_field devlink[] = {
    {"kind", API_STRING, API_TEXT(struct device_links, kind),
     .words = API_WORDS("by-id", "by-path", "by-uuid", "by-partuuid"),
     .doc = "What the links are made from."},
    {"links", API_STRING, API_LIST, API_JSON(struct device_links, links),
     .doc = "Paths that lead to the device."},
    {0},
};

static const struct api_field filesystem[] = {
    {"fsType", API_STRING, API_TEXT(BD, spec.fs_type), .doc = "File system found on the device."},
    {"mountPoint", API_STRING, API_TEXT(BD, spec.mount_point), .doc = "Where it is mounted."},
    {0},
};

static const struct api_field bd_spec[] = {
    {"nodeAttributes", API_OBJECT, API_INLINE, .fields = node_attributes,
     .doc = "Where the device is."},
    {"path", API_STRING, API_TEXT(BD, spec.path),
     .doc = "Path at the moment; only a hint, it may change at a restart."},
    {"capacity", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = capacity,
     .doc = "Size of the device."},
    {"details", API_OBJECT, API_INLINE, .fields = details,
     .doc = "What the device says of itself."},
    {"claimRef", API_OBJECT, API_STRUCT(BD, spec.claim), .fields = api_object_reference,
     .doc = "The BlockDeviceClaim that has the device."},
    {"devlinks", API_OBJECT, API_LIST, API_JSON(BD, spec.devlinks), .fields = devlink,
     .doc = "Stable paths."},
    {"filesystem", API_OBJECT, API_INLINE, .fields = filesystem,
     .doc = "What was found on the device."},
    {"partitioned", API_STRING, API_TEXT(BD, spec.partitioned), .words = API_WORDS("Yes", "No"),
     .synonyms = (const struct api_synonym[]){{"NO", "No"}, {"YES", "Yes"}, {0}},
     .doc = "Whether it has partitions."},
    {"parentDevice", API_STRING, .doc = "Path of the disk that a partition belongs to."},
    {"aggregateDevice", API_STRING, .doc = "Obsolete; kept."},
    {0},
};

static const struct api_field bd_status[] = {
    {"claimState", API_STRING, API_TEXT(BD, status.claim_state),
     .words = API_WORDS("Claimed", "Unclaimed", "Released"),
     .doc = "Whether somebody has it; Released waits to be cleaned."},
    {"state", API_STRING, API_TEXT(BD, status.state),
     .words = API_WORDS("Active", "Inactive", "Unknown"), .doc = "Whether the device is there."},
    API_CONDITIONS,
    {0},
};

static const struct api_field bd_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = bd_spec,
     .doc = "The device."},
    {"status", API_OBJECT, API_INLINE, .fields = bd_status, .doc = "Its state."},
    {0},
};

struct block_device block_device_of(const json_t *json)
{
    struct block_device bd = {.json = json};
    api_decode(bd_fields, json, &bd, NULL);
    return bd;
}

struct device_links device_links_of(const json_t *links)
{
    struct device_links its;
    api_decode(devlink, links, &its, NULL);
    return its;
}

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
    {"allowPartition", API_BOOL, API_TRUTH(BDC, spec.allow_partition),
     .doc = "Whether a partition will do."},
    {0},
};

static const struct api_field claim_node[] = {
    {"nodeName", API_STRING, API_TEXT(BDC, spec.node_name),
     .doc = "Node whose devices are considered."},
    {"hostName", API_STRING, API_TEXT(BDC, spec.host_name), .doc = "Host name of that node."},
    {0},
};

static const struct api_field claim_resources[] = {
    {"requests", API_QUANTITY, API_MAP, API_JSON(BDC, spec.requests),
     .doc = "The least size, as storage."},
    {0},
};

static const struct api_field bdc_spec[] = {
    {"selector", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Labels the device must have."},
    {"resources", API_OBJECT, API_INLINE, .fields = claim_resources,
     .doc = "What the device must have."},
    {"deviceType", API_STRING, API_TEXT(BDC, spec.device_type),
     .doc = "Type the device must have."},
    {"hostName", API_STRING, API_TEXT(BDC, spec.old_host_name),
     .doc = "Obsolete: use blockDeviceNodeAttributes.hostName."},
    {"deviceClaimDetails", API_OBJECT, API_INLINE, .fields = claim_details,
     .doc = "How it will be used."},
    {"blockDeviceName", API_STRING, API_TEXT(BDC, spec.device), .format = &api_dns_subdomain,
     .doc = "The device that is wanted, or the one that was given."},
    {"blockDeviceNodeAttributes", API_OBJECT, API_INLINE, .fields = claim_node,
     .doc = "Where it must be."},
    {0},
};

static const struct api_field bdc_status[] = {
    {"phase", API_STRING, API_TEXT(BDC, status.phase),
     .words = API_WORDS("", "Pending", "Invalid Capacity Request", "Bound"),
     .doc = "Whether a device was found."},
    API_CONDITIONS,
    {0},
};

static const struct api_field bdc_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = bdc_spec,
     .doc = "What is wanted."},
    {"status", API_OBJECT, API_INLINE, .fields = bdc_status, .doc = "What was given."},
    {0},
};

struct block_device_claim block_device_claim_of(const json_t *json)
{
    struct block_device_claim claim = {.json = json};
    api_decode(bdc_fields, json, &claim, NULL);
    return claim;
}

bool block_device_claim_is_bound(const json_t *json)
{
    return str_eq(block_device_claim_of(json).status.phase, "Bound");
}

static const struct api_column bdc_columns[] = {
    {"BlockDeviceName", "string", ".spec.blockDeviceName", "Device that it has"},
    {"Phase", "string", ".status.phase", "Whether a device was found"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

/* A claim that has its device keeps it: giving it another is a new claim. */
static void bdc_validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const char *was = block_device_claim_of(old).spec.device;
    if (block_device_claim_is_bound(old) && *was &&
        !str_eq(was, block_device_claim_of(object).spec.device))
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "blockDeviceName"), API_FORBIDDEN,
                    json_at(object, "spec", "blockDeviceName"),
                    "the claim is bound to \"%s\"; delete it and make another", was);
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

/*
 * LogicalVolume: an LVM volume on one node.
 */
#include "kinds/logicalvolume.h"

#include "api/decode.h"
#include "api/update.h"
#include "kinds/kinds.h"

#define LV struct logical_volume

static const struct api_field spec[] = {
    {"name", API_STRING, API_TEXT(LV, spec.name), .flags = API_REQUIRED | API_IMMUTABLE,
     .doc = "Suggested name of the volume, as a rule that of its PersistentVolume."},
    {"nodeName", API_STRING, API_TEXT(LV, spec.node_name), .flags = API_REQUIRED | API_IMMUTABLE,
     .format = &api_dns_subdomain, .doc = "Node on which the volume is created."},
    {"size", API_QUANTITY, API_NUMBER_AT(LV, spec.size), .flags = API_REQUIRED | API_POSITIVE,
     .doc =
         "The size that is wanted. Raise it to grow the volume; lower it, not below the size that "
         "the volume has, to take back a growth that failed."},
    {"vgName", API_STRING, API_TEXT(LV, spec.class_name), .flags = API_IMMUTABLE,
     .aliases = API_ALIASES("deviceClass"), .format = &api_lvm_name,
     .doc = "Volume group (or the device class that stands for one) that the volume belongs to. "
            "The node's default when not given."},
    {"lvcreateOptionClass", API_STRING, API_TEXT(LV, spec.option_class), .flags = API_IMMUTABLE,
     .doc = "Named set of lvcreate options, kept on the node."},
    {"source", API_STRING, API_TEXT(LV, spec.source), .flags = API_IMMUTABLE,
     .doc = "LogicalVolume to take a snapshot or clone of; thin volumes only."},
    {"accessType", API_STRING, API_TEXT(LV, spec.access_type), .flags = API_IMMUTABLE,
     .words = API_WORDS("", "ro", "rw"), .doc = "With source: ro makes a snapshot, rw a clone."},
    {0},
};

static const struct api_field status[] = {
    {"volumeID", API_STRING, API_TEXT(LV, status.volume_id), .flags = API_IMMUTABLE,
     .doc = "Name of the volume in its volume group, and its id for CSI. Empty until it is there."},
    {"code", API_INT, API_NUMBER_AT(LV, status.code), .min = 0, .max = UINT32_MAX,
     .doc = "gRPC code of what last failed; 0 when nothing did."},
    {"message", API_STRING, API_TEXT(LV, status.message), .doc = "What last failed, for people."},
    {"currentSize", API_QUANTITY, API_NUMBER_AT(LV, status.current_size),
     .doc = "The size that the volume has, read from LVM."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The volume that is wanted."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The volume that is there."},
    {0},
};

struct logical_volume logical_volume_of(const json_t *json)
{
    struct logical_volume lv = {.json = json};
    api_decode(fields, json, &lv, NULL);
    return lv;
}

json_t *logical_volume_status(const struct logical_volume *lv)
{
    return api_encode(status, lv);
}

static const struct api_column columns[] = {
    {"Node", "string", ".spec.nodeName", "Node that has the volume"},
    {"Class", "string", ".spec.vgName", "Device class or volume group"},
    {"Size", "string", ".spec.size", "Size that is wanted"},
    {"Current", "string", ".status.currentSize", "Size that it has"},
    {"Message", "string", ".status.message", "What last failed"},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

static void validate(const json_t *object, struct api_report *report)
{
    const json_t *volume = json_object_get(object, "spec");
    const char *source = json_str(volume, "source"), *access = json_str(volume, "accessType");
    bool has_source = source && *source, has_access = access && *access;
    const struct api_path *at = API_KEY(NULL, "spec");
    if (has_source && !has_access)
        api_problem(report, API_KEY(at, "accessType"), API_MISSING, NULL,
                    "say whether the source becomes a snapshot (ro) or a clone (rw)");
    if (!has_source && has_access)
        api_problem(report, API_KEY(at, "source"), API_MISSING, NULL,
                    "accessType needs the volume that it is about");
}

/* A growth can be taken back; what a volume has it keeps. */
static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const json_t *was = json_at(old, "spec", "size"), *is = json_at(object, "spec", "size");
    const json_t *has = json_at(old, "status", "currentSize");
    if (!was || !is || api_quantity_cmp(is, was) >= 0)
        return;
    const json_t *least = has ? has : was;
    _cleanup_(str_done) struct str text = {0};
    if (json_is_string(least))
        str_append(&text, json_string_value(least));
    else
        json_format(least, &text);
    if (api_quantity_cmp(is, least) < 0)
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "size"), API_FORBIDDEN, is,
                    "a volume cannot shrink; it has %s, ask for that or more", str_get(&text));
}

static void publish(json_t *object, struct api_report *report)
{
    (void)report;
    json_t *volume = json_object_get(object, "spec"), *name = json_object_get(volume, "vgName");
    if (name) {
        json_object_set(volume, "deviceClass", name);
        json_object_del(volume, "vgName");
    }
}

const struct api_kind api_logical_volume = {
    .kind = "LogicalVolume",
    .plural = "logicalvolumes",
    .singular = "logicalvolume",
    .short_names = API_WORDS("lv"),
    .versions =
        (const struct api_group_version[]){{"topolvm.cybozu.com", "v1"}, {"topolvm.io", "v1"}, {0}},
    .published = 1,
    .flags = API_CLUSTER_SCOPED | API_STATUS | API_GROUP_KEYS,
    .fields = fields,
    .columns = columns,
    .validate = validate,
    .validate_update = validate_update,
    .publish = publish,
    .doc = "A volume of a node's LVM volume group.",
};

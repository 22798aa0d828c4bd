/*
 * Pool specs: the part that CStorPoolCluster (spec.pools[]) and CStorPoolInstance (spec) share.
 *
 * The normal form has one list of raid groups, each with its own type and role. The published form
 * has two lists (dataRaidGroups, writeCacheRaidGroups) with one type per list in poolConfig, and
 * provisioning in the opposite sense; api_pool_normalize() folds it into the normal form and
 * api_pool_publish() writes it back.
 *
 * ZFS decides which shapes are possible, not convention: any mirror of two or more, raidz of two
 * or more, raidz2 of three or more; log devices may be striped or mirrored; cache and spare devices
 * have no layout.
 */
#include "kinds/pool.h"

#include "kinds/kinds.h"

/* ZFS takes no wider group than this. */
enum { GROUP_MAX = 255 };

static const struct api_field block_device_ref[] = {
    {"blockDeviceName", API_STRING, API_TEXT(struct raid_device, name), .flags = API_REQUIRED,
     .format = &api_dns_subdomain, .doc = "Name of the BlockDevice object."},
    {"capacity", API_QUANTITY, API_NUMBER_AT(struct raid_device, capacity),
     .doc = "Size of the device. Filled in by the system."},
    {"devLink", API_STRING,
     .doc = "Stable path of the device on its node. Filled in by the system."},
    {0},
};

const struct api_field api_raid_group[] = {
    {"type", API_STRING, API_TEXT(struct raid_group, type),
     .words = API_WORDS("", "stripe", "mirror", "raidz", "raidz2"),
     .synonyms = (const struct api_synonym[]){{"striped", "stripe"}, {"mirrored", "mirror"}, {0}},
     .doc = "Layout of the group. stripe: data is spread, any device lost loses the pool; mirror: "
            "every device has all data; raidz and raidz2: one or two devices may be lost. "
            "poolConfig.defaultRaidGroupType when not given."},
    {"name", API_STRING, API_TEXT(struct raid_group, name),
     .doc = "A name for people; has no effect."},
    {"isWriteCache", API_BOOL, API_TRUTH(struct raid_group, is_write_cache),
     .doc = "The group holds the pool's intent log and makes synchronous writes fast."},
    {"isSpare", API_BOOL, API_TRUTH(struct raid_group, is_spare),
     .doc = "The devices stand by and take over when another one fails."},
    {"isReadCache", API_BOOL, API_TRUTH(struct raid_group, is_read_cache),
     .doc = "The group caches reads."},
    {"blockDevices", API_OBJECT, API_LIST, API_REQUIRED, API_ARRAY(struct raid_group, devices),
     .fields = block_device_ref, .aliases = API_ALIASES("cspiBlockDevices"),
     .merge_key = "blockDeviceName", .doc = "The devices of the group, all on the pool's node."},
    {0},
};

const struct api_field api_pool_config[] = {
    {"cacheFile", API_STRING, .format = &api_host_path,
     .doc = "Accepted for compatibility and not used: pools are imported by their identity from "
            "their own devices."},
    {"defaultRaidGroupType", API_STRING, API_TEXT(struct pool_config, default_type),
     .words = API_WORDS("", "stripe", "mirror", "raidz", "raidz2"),
     .synonyms = (const struct api_synonym[]){{"striped", "stripe"}, {"mirrored", "mirror"}, {0}},
     .aliases = API_ALIASES("dataRaidGroupType"),
     .doc = "Layout of the groups that do not say their own."},
    {"writeCacheGroupType", API_STRING, .flags = API_FOLDED,
     .words = API_WORDS("", "stripe", "mirror"),
     .synonyms = (const struct api_synonym[]){{"striped", "stripe"}, {"mirrored", "mirror"}, {0}},
     .doc = "Published form only: layout of writeCacheRaidGroups."},
    {"overProvisioning", API_BOOL, API_TRUTH(struct pool_config, over_provisioning),
     .doc = "Whether the volumes on the pool may promise more than it can hold; false when not "
            "given."},
    {"thickProvision", API_BOOL, .flags = API_FOLDED,
     .doc = "Published form of the opposite of overProvisioning; when given, it decides."},
    {"compression", API_BOOL_OR_STRING, API_TEXT(struct pool_config, compression), .def = "\"off\"",
     .format = &api_compression,
     .synonyms = (const struct api_synonym[]){{"lz", "lz4"}, {"", "off"}, {0}},
     .doc = "Compression of new data: off, on, lz4 (also written lz), lzjb, zle, gzip, gzip-1 to "
            "gzip-9, zstd."},
    {"roThresholdLimit", API_INT, API_NUMBER_AT(struct pool_config, read_only_percent), .def = "85",
     .min = 0, .max = 100,
     .doc = "Percentage of used space at which the pool stops taking writes; 0 and 100 switch it "
            "off."},
    {"resources", API_OBJECT, .fields = api_resources, .doc = "Of the pool's container."},
    {"auxResources", API_OBJECT, .fields = api_resources, .doc = "Of its side-car containers."},
    {"tolerations", API_OBJECT, API_LIST, .fields = api_toleration,
     .doc = "Taints of nodes that the pool's pod tolerates."},
    {"priorityClassName", API_STRING, .doc = "Priority class of the pool's pod."},
    {0},
};

static struct raid_group group_of(const json_t *json)
{
    struct raid_group group = {0};
    api_decode(api_raid_group, json, &group, NULL);
    return group;
}

enum api_raid_role raid_group_role(const struct raid_group *group)
{
    return group->is_write_cache  ? API_RAID_WRITE_CACHE
           : group->is_read_cache ? API_RAID_READ_CACHE
           : group->is_spare      ? API_RAID_SPARE
                                  : API_RAID_DATA;
}

enum api_raid_role api_raid_role_of(const json_t *group)
{
    const struct raid_group g = group_of(group);
    return raid_group_role(&g);
}

const char *api_raid_role_text(enum api_raid_role role)
{
    static const char *const names[] = {"data", "write cache", "read cache", "spare"};
    return names[role];
}

const char *raid_group_type(const struct raid_group *group, const struct pool_config *config)
{
    enum api_raid_role role = raid_group_role(group);
    if (*group->type)
        return group->type;
    if (role == API_RAID_READ_CACHE || role == API_RAID_SPARE)
        return "stripe"; /* ZFS knows no other layout for them, so a default does not apply */
    return *config->default_type ? config->default_type : NULL;
}

const char *api_raid_type(const json_t *pool, const json_t *group)
{
    const struct raid_group g = group_of(group);
    struct pool_config config = {0};
    api_decode(api_pool_config, json_object_get(pool, "poolConfig"), &config, NULL);
    return raid_group_type(&g, &config);
}

bool raid_walk_next(struct pool_walk *w)
{
    w->device += w->json != NULL;
    w->json = json_array_get(json_object_get(w->raid_group, "blockDevices"), w->device);
    w->name = api_raid_device(w->json);
    return w->json;
}

bool pool_walk_next(struct pool_walk *w)
{
    const json_t *groups = json_object_get(w->pool, "raidGroups");
    for (; w->group < json_array_size(groups); w->group++, w->device = 0) {
        w->raid_group = json_array_get(groups, w->group);
        if (raid_walk_next(w))
            return true;
    }
    return false;
}

/* Go's clients write a string that nobody set as "". */
static bool is_given(const json_t *value)
{
    return value && !(json_is_string(value) && json_string_length(value) == 0);
}

/*
 * writeCacheRaidGroups[i] becomes a write-cache group at the end of raidGroups. What has not the
 * expected type stays where it is, for the check of structure to find it there.
 */
static void fold_write_cache(json_t *pool, const struct api_path *at, struct api_report *report)
{
    json_auto_t *caches = json_incref(json_object_get(pool, "writeCacheRaidGroups"));
    json_t *groups = json_object_get(pool, "raidGroups");
    json_t *config = json_object_get(pool, "poolConfig");
    const json_t *type = json_object_get(config, "writeCacheGroupType");
    if (!json_is_array(caches) || (groups && !json_is_array(groups)) ||
        (type && !json_is_string(type)))
        return;
    if (!groups) {
        groups = json_array();
        json_object_set_new(pool, "raidGroups", groups);
    }
    json_object_del(pool, "writeCacheRaidGroups");

    bool used = false;
    size_t i;
    json_t *group;
    json_array_foreach(caches, i, group) {
        const struct api_path *to = API_AT(API_KEY(at, "raidGroups"), json_array_size(groups));
        api_report_renamed(report, to, API_AT(API_KEY(at, "writeCacheRaidGroups"), i));
        if (json_is_object(group))
            json_object_set_new(group, "isWriteCache", json_true());
        if (json_is_object(group) && is_given(type) && !is_given(json_object_get(group, "type"))) {
            used = true;
            json_object_set(group, "type", (json_t *)type);
            api_report_renamed(report, API_KEY(to, "type"),
                               API_KEY(API_KEY(at, "poolConfig"), "writeCacheGroupType"));
        }
        json_array_append(groups, group);
    }
    if (used)
        json_object_del(config, "writeCacheGroupType");
}

void api_pool_normalize(json_t *pool, const struct api_path *at, struct api_report *report)
{
    fold_write_cache(pool, at, report);
    json_t *config = json_object_get(pool, "poolConfig");
    const json_t *thick = json_object_get(config, "thickProvision");
    if (!json_is_boolean(thick))
        return;
    const json_t *over = json_object_get(config, "overProvisioning");
    const struct api_path *config_at = API_KEY(at, "poolConfig");
    if (over && !json_is_boolean(over))
        return;
    if (over && json_is_true(over) == json_is_true(thick))
        api_warn(report, API_KEY(config_at, "overProvisioning"),
                 "contradicts thickProvision: %s, which decides",
                 json_is_true(thick) ? "true" : "false");
    else if (!over)
        api_report_renamed(report, API_KEY(config_at, "overProvisioning"),
                           API_KEY(config_at, "thickProvision"));
    json_object_set_new(config, "overProvisioning", json_boolean(!json_is_true(thick)));
    json_object_del(config, "thickProvision");
}

/* One type for all data groups and one for the write caches, no other roles; else NULL. */
static bool is_publishable(const json_t *pool, const char *ret_types[2])
{
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        enum api_raid_role role = api_raid_role_of(group);
        const char *type = api_raid_type(pool, group), **common = &ret_types[role];
        if (role > API_RAID_WRITE_CACHE || !type || (*common && !str_eq(*common, type)))
            return false;
        *common = type;
    }
    return true;
}

static void publish_groups(json_t *pool, json_t *config, const char *const types[2],
                           const struct api_path *at, struct api_report *report)
{
    json_auto_t *data = json_array(), *cache = json_array();
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        json_t *published = json_object();
        if (is_given(json_object_get(group, "name")))
            api_warn(report, API_KEY(API_AT(API_KEY(at, "raidGroups"), i), "name"),
                     "left out: groups have no names in the published form");
        json_object_set(published, "blockDevices", json_object_get(group, "blockDevices"));
        json_array_append_new(api_raid_role_of(group) == API_RAID_DATA ? data : cache, published);
    }
    json_object_set_new(config, "dataRaidGroupType", json_string(types[API_RAID_DATA]));
    if (types[API_RAID_WRITE_CACHE])
        json_object_set_new(config, "writeCacheGroupType",
                            json_string(types[API_RAID_WRITE_CACHE]));
    json_object_del(config, "defaultRaidGroupType");
    json_object_set(pool, "dataRaidGroups", data);
    if (json_array_size(cache))
        json_object_set(pool, "writeCacheRaidGroups", cache);
    json_object_del(pool, "raidGroups");
}

void api_pool_publish(json_t *pool, const struct api_path *at, struct api_report *report)
{
    if (!json_object_get(pool, "poolConfig"))
        json_object_set_new(pool, "poolConfig", json_object());
    json_t *config = json_object_get(pool, "poolConfig");
    const char *types[2] = {NULL, NULL};
    if (is_publishable(pool, types))
        publish_groups(pool, config, types, at, report);
    else
        api_warn(
            report, API_KEY(at, "raidGroups"),
            "kept as it is: the published form knows neither spares, read caches nor groups of "
            "different types in one pool");
    bool over = json_is_true(json_object_get(config, "overProvisioning"));
    json_object_set_new(config, "thickProvision", json_boolean(!over));
    json_object_del(config, "overProvisioning");
    if (is_given(json_object_get(config, "cacheFile")))
        api_warn(report, API_KEY(API_KEY(at, "poolConfig"), "cacheFile"),
                 "left out: the published form has none");
    json_object_del(config, "cacheFile");
}

/* Which layouts each role may have, and how many devices a layout needs. */
static const struct {
    const char *type;
    unsigned least;
    const char *why;
} layouts[] = {
    {"stripe", 1, ""},
    {"mirror", 2, "a mirror keeps the same data on each of them"},
    {"raidz", 2, "one of them holds parity"},
    {"raidz2", 3, "two of them hold parity"},
};

static void check_layout(const json_t *pool, const json_t *group, const struct api_path *at,
                         struct api_report *report)
{
    const char *type = api_raid_type(pool, group);
    enum api_raid_role role = api_raid_role_of(group);
    if (!type) {
        api_problem(report, API_KEY(at, "type"), API_MISSING, NULL,
                    "give the group a type, or the pool a poolConfig.defaultRaidGroupType");
        return;
    }
    const json_t *shown = json_object_get(group, "type");
    if (role == API_RAID_WRITE_CACHE && str_starts_with(type, "raidz")) {
        api_problem(report, API_KEY(at, "type"), API_UNSUPPORTED, shown,
                    "a write cache can be \"stripe\" or \"mirror\"");
    } else if (role >= API_RAID_READ_CACHE && !str_eq(type, "stripe")) {
        api_problem(report, API_KEY(at, "type"), API_UNSUPPORTED, shown,
                    "a %s has no redundancy of its own; write \"stripe\" or leave the type out",
                    api_raid_role_text(role));
    }
    size_t have = json_array_size(json_object_get(group, "blockDevices"));
    if (have > GROUP_MAX)
        api_problem(report, API_KEY(at, "blockDevices"), API_TOO_LONG, NULL,
                    "a group has at most %d devices, not %zu; make several groups", GROUP_MAX,
                    have);
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        if (str_eq(layouts[i].type, type) && have < layouts[i].least)
            api_problem(report, API_KEY(at, "blockDevices"), API_INVALID, NULL,
                        "a %s group needs at least %u devices but has %zu: %s", type,
                        layouts[i].least, have, layouts[i].why);
    }
}

static void check_group(const json_t *pool, const json_t *group, const struct api_path *at,
                        struct api_report *report)
{
    static const char *const roles[] = {"isWriteCache", "isReadCache", "isSpare", NULL};
    const char *first = NULL;
    for (const char *const *role = roles; *role; role++) {
        if (!json_is_true(json_object_get(group, *role)))
            continue;
        if (first) {
            api_problem(report, API_KEY(at, *role), API_FORBIDDEN, NULL,
                        "a group has one purpose, and %s is true as well", first);
            return;
        }
        first = *role;
    }
    check_layout(pool, group, at, report);
}

/* A label that no node has, though it looks like the one that every node has. */
static void check_node_selector(const json_t *pool, const struct api_path *at,
                                struct api_report *report)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(pool, "nodeSelector"), key, value) {
        if (strcasecmp(key, "kubernetes.io/hostname") == 0 &&
            !str_eq(key, "kubernetes.io/hostname")) {
            json_auto_t *shown = json_string(key);
            api_problem(report, API_KEY(API_KEY(at, "nodeSelector"), key), API_BAD_KEY, shown,
                        "no node has this label; write kubernetes.io/hostname, all lower case");
        }
    }
}

/* A device belongs to one group of one pool; that a group lists it once is in the table. */
static void check_devices(const json_t *group, const struct api_path *at, struct map *devices,
                          struct api_report *report)
{
    raid_each_device(group, it) {
        if (!map_set(devices, it.name, devices))
            continue;
        const struct api_path *device_at = API_AT(API_KEY(at, "blockDevices"), it.device);
        api_problem(report, API_KEY(device_at, "blockDeviceName"), API_DUPLICATE,
                    json_object_get(it.json, "blockDeviceName"),
                    "another group has this device already; a device belongs to one group "
                    "[device-one-group]");
    }
}

void api_pool_validate(const json_t *pool, const struct api_path *at, struct map *devices,
                       struct api_report *report)
{
    const struct api_path *groups_at = API_KEY(at, "raidGroups");
    bool has_data = false;
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        check_group(pool, group, API_AT(groups_at, i), report);
        check_devices(group, API_AT(groups_at, i), devices, report);
        has_data |= api_raid_role_of(group) == API_RAID_DATA;
    }
    if (!has_data)
        api_problem(report, groups_at, API_INVALID, NULL,
                    "a pool needs at least one group that holds data; all of these are caches or "
                    "spares");
    check_node_selector(pool, at, report);
}

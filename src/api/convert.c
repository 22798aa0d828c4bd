#include "api/convert.h"

#include "api/normalize.h"
#include "base/map.h"
#include "base/mem.h"

/* "GROUP/rest" of another group of the kind, as "OWN/rest"; NULL: it is no such key. */
static char *own_key(const struct api_kind *kind, const char *own, const char *key)
{
    const char *slash = strchr(key, '/');
    for (const struct api_group_version *gv = kind->versions; slash && gv->group; gv++) {
        size_t n = strlen(gv->group);
        if (!str_eq(gv->group, own) && key + n == slash && strncmp(key, gv->group, n) == 0)
            return mem_printf("%s%s", own, slash);
    }
    return NULL;
}

static void rename_annotations(const struct api_kind *kind, const char *own, json_t *annotations,
                               struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "metadata"), "annotations");
    json_auto_t *before = json_copy(annotations);
    const char *key;
    json_t *value;
    json_object_foreach(before, key, value) {
        _cleanup_free_ char *renamed = own_key(kind, own, key);
        if (!renamed)
            continue;
        if (json_object_get(before, renamed))
            api_warn(report, API_KEY(at, key), "left out: %s is there as well", renamed);
        else
            json_object_set(annotations, renamed, value);
        json_object_del(annotations, key);
    }
}

static void rename_finalizers(const struct api_kind *kind, const char *own, json_t *finalizers)
{
    struct map there = {0};
    size_t i;
    json_t *name;
    json_array_foreach(finalizers, i, name)
        map_set(&there, json_string_value(name), finalizers);
    for (i = json_array_size(finalizers); i-- > 0;) {
        const char *text = json_string_value(json_array_get(finalizers, i));
        _cleanup_free_ char *renamed = own_key(kind, own, text);
        if (renamed && map_has(&there, renamed))
            json_array_remove(finalizers, i);
        else if (renamed)
            json_array_set_new(finalizers, i, json_string(renamed));
    }
    map_done(&there);
}

json_t *api_convert(const struct api_kind *kind, const json_t *object, enum api_form form,
                    struct api_report *report)
{
    json_t *converted = json_deep_copy(object);
    api_normalize(kind, converted, report);
    unsigned place = 0;
    if (form == API_FORM_PUBLISHED) {
        place = kind->published;
        if (kind->publish)
            kind->publish(converted, report);
    }
    if (kind->flags & API_GROUP_KEYS) { /* whoever serves a group looks under its own name */
        const char *own = kind->versions[place].group;
        json_t *metadata = json_object_get(converted, "metadata");
        rename_annotations(kind, own, json_object_get(metadata, "annotations"), report);
        rename_finalizers(kind, own, json_object_get(metadata, "finalizers"));
    }
    char text[128];
    json_object_set_new(converted, "apiVersion",
                        json_string(api_version_text(&kind->versions[place], text)));
    return converted;
}

/* How many devices the old operator put into a group of each type; 0: all of a node in one. */
static const struct spc_type {
    const char *name, *type;
    size_t per_group;
} spc_types[] = {
    {"striped", "stripe", 0},
    {"mirrored", "mirror", 2},
    {"raidz", "raidz", 3},
    {"raidz2", "raidz2", 6},
    {NULL},
};

bool api_is_spc(const json_t *object)
{
    const char *kind = json_str(object, "kind"), *version = json_str(object, "apiVersion");
    return kind && version && str_eq(kind, "StoragePoolClaim") &&
           str_eq(version, "openebs.io/v1alpha1");
}

static const struct spc_type *spc_type_of(const json_t *spc, struct api_report *report)
{
    const json_t *value = json_at(spc, "spec", "poolSpec", "poolType");
    const char *name = json_string_value(value);
    for (const struct spc_type *t = spc_types; t->name; t++) {
        if (name && str_eq(t->name, name))
            return t;
    }
    const struct api_path *at = API_KEY(API_KEY(API_KEY(NULL, "spec"), "poolSpec"), "poolType");
    api_problem(report, at, value ? API_UNSUPPORTED : API_MISSING, value,
                "supported values: \"striped\", \"mirrored\", \"raidz\", \"raidz2\"");
    return NULL;
}

/* The pool of that node, made when it is new. Borrowed. */
static json_t *pool_of_node(json_t *pools, struct map *by_node, const char *node,
                            const struct spc_type *type)
{
    json_t *pool = map_get(by_node, node);
    if (pool)
        return pool;
    pool = json_pack("{s:{s:s},s:[],s:{s:s}}", "nodeSelector", "kubernetes.io/hostname", node,
                     "raidGroups", "poolConfig", "defaultRaidGroupType", type->type);
    json_array_append_new(pools, pool);
    map_set(by_node, node, pool);
    return pool;
}

/* Adds a device to the node's last group, or to a new one when that is full. */
static void add_device(json_t *pool, const struct spc_type *type, const char *name)
{
    json_t *groups = json_object_get(pool, "raidGroups");
    json_t *last = json_array_get(groups, json_array_size(groups) - 1);
    json_t *devices = json_object_get(last, "blockDevices");
    if (!last || (type->per_group && json_array_size(devices) == type->per_group)) {
        last = json_pack("{s:s,s:[]}", "type", type->type, "blockDevices");
        json_array_append_new(groups, last);
        devices = json_object_get(last, "blockDevices");
    }
    json_array_append_new(devices, json_pack("{s:s}", "blockDeviceName", name));
}

static const char *node_of(const json_t *object)
{
    const char *host = json_str(json_at(object, "metadata", "labels"), "kubernetes.io/hostname");
    return host ? host : json_str(json_at(object, "spec", "nodeAttributes"), "nodeName");
}

/* CStorPool objects of the claim: they say exactly which groups there are. */
static bool pools_from_csps(json_t *pools, const json_t *spc, const json_t *context,
                            const struct spc_type *type)
{
    const char *claim = json_str(json_object_get(spc, "metadata"), "name");
    struct map by_node = {0};
    size_t i, j, k;
    json_t *object, *group, *device;
    json_array_foreach(context, i, object) {
        const char *kind = json_str(object, "kind"), *node = node_of(object);
        const char *owner =
            json_str(json_at(object, "metadata", "labels"), "openebs.io/storage-pool-claim");
        if (!kind || !str_eq(kind, "CStorPool") || !owner || !claim || !str_eq(owner, claim) ||
            !node)
            continue;
        json_t *pool = pool_of_node(pools, &by_node, node, type);
        json_array_foreach(json_at(object, "spec", "group"), j, group) {
            json_t *devices = json_array();
            json_array_foreach(json_object_get(group, "blockDevice"), k, device) {
                const char *name = json_str(device, "name");
                if (name)
                    json_array_append_new(devices, json_pack("{s:s}", "blockDeviceName", name));
            }
            json_array_append_new(
                json_object_get(pool, "raidGroups"),
                json_pack("{s:s,s:o}", "type", type->type, "blockDevices", devices));
        }
    }
    map_done(&by_node);
    return json_array_size(pools) > 0;
}

/* The claim's own list of devices, each put on the node that its BlockDevice object names. */
static void pools_from_devices(json_t *pools, const json_t *spc, const json_t *context,
                               const struct spc_type *type, struct api_report *report)
{
    struct map nodes = {0}, by_node = {0};
    size_t i;
    json_t *object, *name;
    json_array_foreach(context, i, object) {
        const char *kind = json_str(object, "kind"), *node = node_of(object);
        const char *own = json_str(json_object_get(object, "metadata"), "name");
        if (kind && own && node && str_eq(kind, "BlockDevice"))
            map_set(&nodes, own, (void *)node);
    }
    const struct api_path *at =
        API_KEY(API_KEY(API_KEY(NULL, "spec"), "blockDevices"), "blockDeviceList");
    const json_t *list = json_at(spc, "spec", "blockDevices", "blockDeviceList");
    json_array_foreach(list, i, name) {
        const char *text = json_string_value(name), *node = text ? map_get(&nodes, text) : NULL;
        if (node)
            add_device(pool_of_node(pools, &by_node, node, type), type, text);
        else
            api_problem(report, API_AT(at, i), API_INVALID, name,
                        "nothing says which node has this device; give its BlockDevice as well "
                        "(kubectl get bd -o yaml)");
    }
    if (!json_array_size(list))
        api_problem(report, at, API_MISSING, NULL,
                    "a claim that chose its devices itself needs its pools as well (kubectl get "
                    "csp -o yaml)");
    map_done(&nodes);
    map_done(&by_node);
}

json_t *api_convert_spc(const json_t *spc, const json_t *context, struct api_report *report)
{
    const struct spc_type *type = spc_type_of(spc, report);
    if (!type)
        return NULL;
    json_auto_t *pools = json_array();
    if (!pools_from_csps(pools, spc, context, type))
        pools_from_devices(pools, spc, context, type, report);
    if (report->errors)
        return NULL;

    static const char *const kept[] = {"cacheFile", "overProvisioning", "roThresholdLimit", NULL};
    size_t i;
    json_t *pool;
    json_array_foreach(pools, i, pool) {
        for (const char *const *key = kept; *key; key++) {
            json_t *value = (json_t *)json_at(spc, "spec", "poolSpec", *key);
            if (value && !(json_is_string(value) && !json_string_length(value)))
                json_object_set(json_object_get(pool, "poolConfig"), *key, value);
        }
    }
    const char *name = json_str(json_object_get(spc, "metadata"), "name");
    return json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:O}}", "apiVersion", "openebs.io/v1alpha1", "kind",
                     "CStorPoolCluster", "metadata", "name", name ? name : "", "namespace",
                     "openebs", "spec", "pools", pools);
}

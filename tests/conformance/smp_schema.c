/*
 * Only members that matter are here: lists that merge, and the objects on the way to them. Whatever
 * is not named merges by key or, if it is a list, is replaced; that is the rule for unknown members.
 */
#include "smp_schema.h"

#include "base/mem.h"

struct member {
    const char *name;
    const char *merge_key;
    const struct member *node;
    enum json_list_kind list;
    bool retain_keys;
};

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define OBJECT(n, m)                                                                               \
    {                                                                                              \
        .name = (n), .node = (m)                                                                   \
    }
#define RETAIN(n, m)                                                                               \
    {                                                                                              \
        .name = (n), .node = (m), .retain_keys = true                                              \
    }
#define MAP(n, key, m)                                                                             \
    {                                                                                              \
        .name = (n), .list = JSON_LIST_MAP, .merge_key = (key), .node = (m)                        \
    }
#define MAP_RETAIN(n, key, m)                                                                      \
    {                                                                                              \
        .name = (n), .list = JSON_LIST_MAP, .merge_key = (key), .node = (m), .retain_keys = true   \
    }
#define SET(n)                                                                                     \
    {                                                                                              \
        .name = (n), .list = JSON_LIST_SET                                                         \
    }

static const struct member metadata[] = {
    SET("finalizers"),
    MAP("ownerReferences", "uid", NULL),
    END,
};

static const struct member container[] = {
    MAP("ports", "containerPort", NULL),
    MAP("env", "name", NULL),
    MAP("volumeMounts", "mountPath", NULL),
    MAP("volumeDevices", "devicePath", NULL),
    END,
};

static const struct member claim_template[] = {
    OBJECT("metadata", metadata),
    END,
};

static const struct member ephemeral[] = {
    OBJECT("volumeClaimTemplate", claim_template),
    END,
};

static const struct member volume[] = {
    OBJECT("ephemeral", ephemeral),
    END,
};

static const struct member pod_spec[] = {
    MAP_RETAIN("volumes", "name", volume),
    MAP("initContainers", "name", container),
    MAP("containers", "name", container),
    MAP("ephemeralContainers", "name", container),
    MAP("imagePullSecrets", "name", NULL),
    MAP("hostAliases", "ip", NULL),
    MAP("topologySpreadConstraints", "topologyKey", NULL),
    MAP("schedulingGates", "name", NULL),
    MAP_RETAIN("resourceClaims", "name", NULL),
    END,
};

static const struct member pod_status[] = {
    MAP("conditions", "type", NULL),
    MAP("podIPs", "ip", NULL),
    MAP("hostIPs", "ip", NULL),
    MAP_RETAIN("resourceClaimStatuses", "name", NULL),
    END,
};

static const struct member pod[] = {
    OBJECT("metadata", metadata),
    OBJECT("spec", pod_spec),
    OBJECT("status", pod_status),
    END,
};

static const struct member conditions[] = {
    MAP("conditions", "type", NULL),
    END,
};

static const struct member pod_template[] = {
    OBJECT("metadata", metadata),
    OBJECT("spec", pod_spec),
    END,
};

static const struct member deployment_spec[] = {
    OBJECT("template", pod_template),
    RETAIN("strategy", NULL),
    END,
};

static const struct member deployment[] = {
    OBJECT("metadata", metadata),
    OBJECT("spec", deployment_spec),
    OBJECT("status", conditions),
    END,
};

static const struct member statefulset_spec[] = {
    OBJECT("template", pod_template),
    END,
};

static const struct member statefulset[] = {
    OBJECT("metadata", metadata),
    OBJECT("spec", statefulset_spec),
    OBJECT("status", conditions),
    END,
};

static const struct member service_spec[] = {
    MAP("ports", "port", NULL),
    END,
};

static const struct member service[] = {
    OBJECT("metadata", metadata),
    OBJECT("spec", service_spec),
    OBJECT("status", conditions),
    END,
};

static const struct member claim[] = {
    OBJECT("metadata", metadata),
    OBJECT("status", conditions),
    END,
};

static const struct member service_account[] = {
    OBJECT("metadata", metadata),
    MAP("secrets", "name", NULL),
    END,
};

static const struct {
    const char *api_version, *kind;
    const struct member *root;
} kinds[] = {
    {"v1", "Pod", pod},
    {"apps/v1", "Deployment", deployment},
    {"apps/v1", "StatefulSet", statefulset},
    {"v1", "Service", service},
    {"v1", "PersistentVolumeClaim", claim},
    {"v1", "ServiceAccount", service_account},
};

static bool field(const void *node, const char *name, struct json_smp_field *ret)
{
    for (const struct member *m = node; m->name; m++) {
        if (!str_eq(m->name, name))
            continue;
        *ret = (struct json_smp_field){.node = m->node,
                                       .list = m->list,
                                       .merge_key = m->merge_key,
                                       .retain_keys = m->retain_keys};
        return true;
    }
    return false;
}

bool smp_schema_find(const char *apiVersion, const char *kind, struct json_smp_schema *ret,
                     const void **ret_root)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!str_eq(kinds[i].api_version, apiVersion) || !str_eq(kinds[i].kind, kind))
            continue;
        ret->field = field;
        *ret_root = kinds[i].root;
        return true;
    }
    return false;
}

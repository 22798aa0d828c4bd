#include "k8s/kinds/cells.h"

static bool is_deleted(const json_t *object)
{
    return json_at(object, "metadata", "deletionTimestamp");
}

json_t *api_cell_claim_status(const json_t *object, int64_t now)
{
    (void)now;
    if (is_deleted(object))
        return json_string("Terminating");
    return api_cell_text(json_string_value(json_at(object, "status", "phase")), "");
}

/* What a claim has, once it has something. */
static const json_t *bound(const json_t *object)
{
    const char *volume = json_string_value(json_at(object, "spec", "volumeName"));
    return volume && *volume ? json_object_get(object, "status") : NULL;
}

json_t *api_cell_claim_capacity(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_text(json_string_value(json_at(bound(object), "capacity", "storage")), "");
}

static json_t *modes(const json_t *list)
{
    static const char *const names[][2] = {
        {"ReadWriteOnce", "RWO"},
        {"ReadOnlyMany", "ROX"},
        {"ReadWriteMany", "RWX"},
        {"ReadWriteOncePod", "RWOP"},
    };
    _cleanup_(str_done) struct str text = {0};
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        size_t i;
        json_t *mode;
        json_array_foreach((json_t *)list, i, mode) {
            if (json_is_string(mode) && str_eq(json_string_value(mode), names[n][0])) {
                str_appendf(&text, "%s%s", text.len ? "," : "", names[n][1]);
                break;
            }
        }
    }
    return json_string(str_get(&text));
}

json_t *api_cell_claim_modes(const json_t *object, int64_t now)
{
    (void)now;
    return modes(json_object_get(bound(object), "accessModes"));
}

json_t *api_cell_volume_modes(const json_t *object, int64_t now)
{
    (void)now;
    return modes(json_at(object, "spec", "accessModes"));
}

json_t *api_cell_volume_claim(const json_t *object, int64_t now)
{
    (void)now;
    const json_t *claim = json_at(object, "spec", "claimRef");
    const char *namespace = json_str(claim, "namespace"), *name = json_str(claim, "name");
    return claim ? json_sprintf("%s/%s", namespace ? namespace : "", name ? name : "")
                 : json_string("");
}

json_t *api_cell_attributes_class(const json_t *object, int64_t now)
{
    (void)now;
    const char *name = json_string_value(json_at(object, "spec", "volumeAttributesClassName"));
    return json_string(name ? name : "<unset>");
}

json_t *api_cell_volume_mode(const json_t *object, int64_t now)
{
    (void)now;
    const char *mode = json_string_value(json_at(object, "spec", "volumeMode"));
    return json_string(mode ? mode : "<unset>");
}

json_t *api_cell_class_name(const json_t *object, int64_t now)
{
    (void)now;
    static const char *const keys[] = {"storageclass.kubernetes.io/is-default-class",
                                       "storageclass.beta.kubernetes.io/is-default-class", NULL};
    const char *name = json_string_value(json_at(object, "metadata", "name"));
    for (const char *const *key = keys; *key; key++) {
        if (str_eq(json_text(object, "metadata", "annotations", *key), "true"))
            return json_sprintf("%s (default)", name ? name : "");
    }
    return api_cell_text(name, "");
}

json_t *api_cell_drivers(const json_t *object, int64_t now)
{
    (void)now;
    return json_integer((json_int_t)json_array_size(json_at(object, "spec", "drivers")));
}

json_t *api_cell_token_requests(const json_t *object, int64_t now)
{
    (void)now;
    json_auto_t *audiences = json_array();
    size_t i;
    json_t *request;
    json_array_foreach(json_at(object, "spec", "tokenRequests"), i, request)
        json_array_append_new(audiences, api_cell_text(json_str(request, "audience"), ""));
    return api_cell_list(audiences, ",", "<unset>");
}

json_t *api_cell_lifecycle_modes(const json_t *object, int64_t now)
{
    (void)now;
    return api_cell_list(json_at(object, "spec", "volumeLifecycleModes"), ",", "<none>");
}

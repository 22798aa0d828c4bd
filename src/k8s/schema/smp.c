#include "k8s/schema/smp.h"

static enum json_list_kind list_kind(const struct api_field *field)
{
    if (field->shape != API_LIST)
        return JSON_LIST_ATOMIC;
    if (field->merge_key)
        return JSON_LIST_MAP;
    return field->flags & API_SET ? JSON_LIST_SET : JSON_LIST_ATOMIC;
}

static bool find(const void *node, const char *name, struct json_smp_field *ret_field)
{
    const struct api_field *field = api_field_find(node, name);
    if (!field)
        return false;
    /* The members of a map have names of their own, which must not be looked up in its table. */
    bool members = field->type == API_OBJECT && field->shape != API_MAP;
    *ret_field = (struct json_smp_field){
        .node = members ? field->fields : NULL,
        .list = list_kind(field),
        .merge_key = field->shape == API_LIST ? field->merge_key : NULL,
        .replace = field->flags & API_REPLACE,
        .retain_keys = field->flags & API_RETAIN_KEYS,
    };
    return true;
}

const struct json_smp_schema api_smp_schema = {.field = find};

const void *api_smp_root(const struct api_kind *kind)
{
    return kind->fields;
}

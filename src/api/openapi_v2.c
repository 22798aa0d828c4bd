/*
 * Schemas as OpenAPI v2 has them. What is left out, and when what remains is no longer an object or a
 * list but anything at all, is as Kubernetes' own server has it: kubectl of any age refuses objects by
 * these schemas, so they must never say more than is true.
 */
#include "api/openapi.h"

/* What v2 has of a schema; extensions stay as well. */
static const char *const words[] = {
    "$ref",
    "additionalProperties",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "format",
    "exclusiveMinimum",
    "externalDocs",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "minProperties",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    NULL,
};

static bool has(const json_t *schema, const char *flag)
{
    return json_is_true(json_object_get(schema, flag));
}

/* Members that may be null are not required either: kubectl takes null for missing. */
static void drop_required(json_t *schema, const char *name)
{
    json_t *required = json_object_get(schema, "required"), *one;
    size_t i;
    json_array_foreach(required, i, one) {
        if (str_eq(json_string_value(one), name)) {
            json_array_remove(required, i);
            break;
        }
    }
    if (required && !json_array_size(required))
        json_object_del(schema, "required");
}

static void drop_nullable(json_t *schema)
{
    const char *key;
    json_t *property;
    json_object_foreach(json_object_get(schema, "properties"), key, property) {
        if (has(property, "nullable"))
            drop_required(schema, key);
    }
    if (has(json_object_get(schema, "additionalProperties"), "nullable"))
        json_object_del(schema, "required");
}

/* The type, where it would claim too much. */
static void loosen(json_t *schema)
{
    const char *type = json_str(schema, "type");
    bool any = has(schema, "nullable"), keep = has(schema, "x-kubernetes-preserve-unknown-fields");
    if (any || keep) {
        json_object_del(schema, "items");
        json_object_del(schema, "properties");
    }
    if (type && (any || (keep && str_eq(type, "object")) ||
                 (str_eq(type, "array") && !json_object_get(schema, "items"))))
        json_object_del(schema, "type");
}

/* An object inside an object has a type and a name, which go without saying. */
static void add_embedded(json_t *schema)
{
    static const char *const names[] = {"kind", "apiVersion"};
    if (!has(schema, "x-kubernetes-embedded-resource") ||
        has(schema, "x-kubernetes-preserve-unknown-fields"))
        return;
    json_t *properties = json_object_get(schema, "properties");
    if (!properties)
        json_object_set_new(schema, "properties", properties = json_object());
    json_object_set_new(properties, "metadata",
                        json_pack("{s:s}", "$ref",
                                  "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
    json_t *required = json_object_get(schema, "required");
    if (!required)
        json_object_set_new(schema, "required", required = json_array());
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        json_object_set_new(properties, names[i], json_pack("{s:s}", "type", "string"));
        bool there = false;
        for (size_t j = 0; j < json_array_size(required); j++)
            there = there || str_eq(json_string_value(json_array_get(required, j)), names[i]);
        if (!there)
            json_array_append_new(required, json_string(names[i]));
    }
}

/* As deep as a schema is, which the JSON parser limits. */
void api_openapi_to_v2(json_t *schema)
{
    const char *key;
    json_t *value;
    void *next;
    if (!json_is_object(schema))
        return;
    drop_nullable(schema);
    loosen(schema);
    json_object_foreach_safe(schema, next, key, value) {
        if (!str_in(key, words) && !str_starts_with(key, "x-"))
            json_object_del(schema, key);
    }
    json_object_foreach(json_object_get(schema, "properties"), key, value)
        api_openapi_to_v2(value);
    api_openapi_to_v2(json_object_get(schema, "items"));
    api_openapi_to_v2(json_object_get(schema, "additionalProperties"));
    add_embedded(schema);
}

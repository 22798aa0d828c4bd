#include "k8s/apiserver/openapi_v2.h"

#include "api/openapi.h"
#include "base/mem.h"
#include "k8s/apiserver/discovery.h"
#include "k8s/apiserver/openapi_doc.h"

static const char v3_place[] = "#/components/schemas/";

/* The two parts of a document while they grow. */
struct parts {
    bool protobuf;
    struct str definitions, paths;
};

/* Of a schema that is a reference, or has one for its items. */
static void refer_to_definitions(json_t *schema)
{
    const char *ref = json_str(schema, "$ref");
    if (ref && str_starts_with(ref, v3_place))
        json_object_set_new(schema, "$ref",
                            json_sprintf("#/definitions/%s", ref + sizeof(v3_place) - 1));
    json_t *items = json_object_get(json_at(schema, "properties", "items"), "items");
    if (items)
        refer_to_definitions(items);
}

/* {"schema": {"type": t}} is in v2 {"type": t} */
static void flatten_parameters(json_t *parameters)
{
    size_t i;
    json_t *p;
    json_array_foreach(parameters, i, p) {
        json_object_set(p, "type", json_object_get(json_object_get(p, "schema"), "type"));
        json_object_set_new(p, "uniqueItems", json_true());
        json_object_del(p, "schema");
    }
}

/* Types of content, and the schema that they have. */
static json_t *take_content(json_t *holder, json_t **ret_types)
{
    json_t *schema = NULL, *types = json_array(), *value;
    const char *type;
    json_object_foreach(json_object_get(holder, "content"), type, value) {
        json_array_append_new(types, json_string(type));
        schema = json_object_get(value, "schema");
    }
    refer_to_definitions(schema);
    *ret_types = types;
    return json_incref(schema);
}

static void operation_to_v2(json_t *op)
{
    json_t *types, *parameters = json_object_get(op, "parameters");
    json_t *body = json_object_get(op, "requestBody");
    json_t *response = json_object_get(json_object_get(op, "responses"), "200");
    flatten_parameters(parameters);
    if (body) {
        json_t *schema = take_content(body, &types);
        json_object_set_new(op, "consumes", types);
        json_array_append_new(parameters, json_pack("{s:s,s:s,s:b,s:o}", "name", "body", "in",
                                                    "body", "required", 1, "schema", schema));
        json_object_del(op, "requestBody");
    }
    json_object_set_new(response, "schema", take_content(response, &types));
    json_object_set_new(op, "produces", types);
    json_object_del(response, "content");
}

static void path_to_v2(json_t *item)
{
    const char *method;
    json_t *op;
    json_object_foreach(item, method, op) {
        if (str_eq(method, "parameters"))
            flatten_parameters(op);
        else
            operation_to_v2(op);
    }
}

static void add(struct parts *parts, struct str *out, const char *name,
                const struct openapi_message *message, unsigned number, const json_t *value)
{
    if (parts->protobuf) {
        openapi_write_named(out, number, name, message, value);
        return;
    }
    json_auto_t *key = json_string(name);
    str_append(out, out->len ? "," : "");
    json_format(key, out);
    str_append_c(out, ':');
    json_format(value, out);
}

static void add_definition(struct parts *parts, const char *name, const json_t *schema)
{
    add(parts, &parts->definitions, name, &openapi_schema, 1, schema);
}

static void add_kind(struct parts *parts, const struct api_kind *kind,
                     const struct api_group_version *gv)
{
    json_auto_t *schemas = json_object(), *paths = json_object();
    const char *name;
    json_t *value;
    apiserver_openapi_kind(kind, gv, api_openapi_schema_v2(kind), schemas, paths);
    json_object_foreach(schemas, name, value) {
        refer_to_definitions(value);
        add_definition(parts, name, value);
    }
    json_object_foreach(paths, name, value) {
        path_to_v2(value);
        add(parts, &parts->paths, name, &openapi_path_item, 2, value);
    }
}

static void finish(const struct parts *parts, struct str *out)
{
    json_auto_t *info = json_pack("{s:s,s:s}", "title", "Orlop", "version", ORLOP_VERSION);
    if (parts->protobuf) {
        openapi_write_bytes(out, 1, "2.0", 3);
        openapi_write_message(out, 2, &openapi_info, info);
        openapi_write_bytes(out, 8, str_get(&parts->paths), parts->paths.len);
        openapi_write_bytes(out, 9, str_get(&parts->definitions), parts->definitions.len);
        return;
    }
    str_append(out, "{\"swagger\":\"2.0\",\"info\":");
    json_format(info, out);
    str_appendf(out, ",\"paths\":{%s},\"definitions\":{%s}}", str_get(&parts->paths),
                str_get(&parts->definitions));
}

void apiserver_openapi_v2(const struct api_kind *const *kinds, bool protobuf, struct str *out)
{
    struct parts parts = {.protobuf = protobuf};
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    for (const struct api_openapi_shared *s = api_openapi_shared(); s->name; s++) {
        json_auto_t *schema = api_openapi_shared_schema(s);
        add_definition(&parts, s->name, schema);
    }
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        for (const struct api_kind *const *k = kinds; *k; k++) {
            if (apiserver_kind_in(*k, gv->group, gv->version))
                add_kind(&parts, *k, gv);
        }
    }
    finish(&parts, out);
    str_done(&parts.definitions);
    str_done(&parts.paths);
}

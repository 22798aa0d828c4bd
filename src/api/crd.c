#include "api/openapi.h"

/* The API server knows metadata itself and forbids schemas for most of it. */
static json_t *crd_schema(const struct api_kind *kind)
{
    json_t *schema = api_openapi_schema(kind);
    json_t *properties = json_object_get(schema, "properties");
    json_object_set_new(properties, "metadata", json_pack("{s:s}", "type", "object"));
    json_array_clear(json_object_get(schema, "required"));
    for (const struct api_field *f = kind->fields; f->name; f++) {
        if (f->flags & API_REQUIRED && str_eq(f->name, "spec"))
            json_array_append_new(json_object_get(schema, "required"), json_string(f->name));
    }
    return schema;
}

static json_t *printer_columns(const struct api_kind *kind)
{
    json_t *columns = json_array();
    for (const struct api_column *c = kind->columns; c && c->name; c++) {
        json_t *column = json_pack("{s:s,s:s,s:s,s:s}", "name", c->name, "type", c->type,
                                   "description", c->doc, "jsonPath", c->path);
        if (c->priority)
            json_object_set_new(column, "priority", json_integer(c->priority));
        json_array_append_new(columns, column);
    }
    return columns;
}

static json_t *crd_version(const struct api_kind *kind, const char *version, bool storage)
{
    json_t *v = json_pack("{s:s,s:b,s:b,s:{s:o}}", "name", version, "served", 1, "storage", storage,
                          "schema", "openAPIV3Schema", crd_schema(kind));
    if (kind->flags & API_STATUS)
        json_object_set_new(v, "subresources", json_pack("{s:{}}", "status"));
    json_object_set_new(v, "additionalPrinterColumns", printer_columns(kind));
    return v;
}

static json_t *crd_names(const struct api_kind *kind)
{
    json_t *names = json_pack("{s:s,s:o,s:s,s:s}", "kind", kind->kind, "listKind",
                              json_sprintf("%sList", kind->kind), "plural", kind->plural,
                              "singular", kind->singular);
    json_t *short_names = json_array();
    for (const char *const *s = kind->short_names; s && *s; s++)
        json_array_append_new(short_names, json_string(*s));
    json_object_set_new(names, "shortNames", short_names);
    json_object_set_new(names, "categories", json_pack("[s]", "orlop"));
    return names;
}

json_t *api_crd(const struct api_kind *kind, const char *group)
{
    json_t *versions = json_array();
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        if (str_eq(gv->group, group))
            json_array_append_new(versions,
                                  crd_version(kind, gv->version, json_array_size(versions) == 0));
    }
    if (!json_array_size(versions)) {
        json_decref(versions);
        return NULL;
    }
    return json_pack(
        "{s:s,s:s,s:{s:o,s:{s:s}},s:{s:s,s:o,s:s,s:o}}", "apiVersion", "apiextensions.k8s.io/v1",
        "kind", "CustomResourceDefinition", "metadata", "name",
        json_sprintf("%s.%s", kind->plural, group), "labels", "app.kubernetes.io/part-of", "orlop",
        "spec", "group", group, "names", crd_names(kind), "scope",
        kind->flags & API_CLUSTER_SCOPED ? "Cluster" : "Namespaced", "versions", versions);
}

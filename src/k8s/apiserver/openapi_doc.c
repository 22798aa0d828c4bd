#include "k8s/apiserver/openapi_doc.h"

#include <stdio.h>

#include "api/openapi.h"
#include "base/mem.h"
#include "k8s/apiserver/discovery.h"
#include "k8s/apiserver/path.h"

/* What a document is made of while it grows. */
struct document {
    const struct api_group_version *gv;
    json_t *schemas, *paths; /* borrowed from the document */
};

/* FNV-1a with 128 bits. */
const char *apiserver_content_hash(const void *bytes, size_t size, char buf[APISERVER_HASH_MAX])
{
    const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
    unsigned __int128 h = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    for (const unsigned char *p = bytes, *end = p + size; p < end; p++)
        h = (h ^ *p) * prime;
    snprintf(buf, APISERVER_HASH_MAX, "%016llX%016llX", (unsigned long long)(h >> 64),
             (unsigned long long)h);
    return buf;
}

static json_t *gvk(const char *group, const char *version, const char *kind)
{
    return json_pack("{s:s,s:s,s:s}", "group", group, "version", version, "kind", kind);
}

/*
 * The name of a schema: the group's labels from behind, "io.openebs.cstor.v1.CStorVolume"; for
 * Kubernetes' own as it names them, "io.k8s.api.apps.v1.Deployment".
 */
static void schema_name(const struct document *d, const struct api_kind *kind, const char *suffix,
                        struct str *ret_name)
{
    const char *group = d->gv->group;
    size_t end = strlen(group);
    if (kind->flags & API_BUILTIN) {
        str_append(ret_name, "io.k8s.api.");
        group = *group ? group : "core";
        str_append_n(ret_name, group, strcspn(group, "."));
        end = 0;
    }
    while (end > 0) {
        size_t start = end;
        while (start > 0 && group[start - 1] != '.')
            start--;
        str_append(ret_name, ret_name->len ? "." : "");
        str_append_n(ret_name, group + start, end - start);
        end = start ? start - 1 : 0;
    }
    str_appendf(ret_name, ".%s.%s%s", d->gv->version, kind->kind, suffix);
}

static json_t *reference(const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", name));
}

static json_t *list_schema(const struct document *d, const struct api_kind *kind, const char *item)
{
    _cleanup_free_ char *name =
        kind->list_kind ? mem_strdup(kind->list_kind) : mem_printf("%sList", kind->kind);
    return json_pack(
        "{s:o,s:s,s:[s],s:{s:{s:s,s:s},s:{s:s,s:o,s:s},s:{s:s,s:s},s:{s:s,s:s}},s:[o]}",
        "description", json_sprintf("A list of %s.", kind->plural), "type", "object", "required",
        "items", "properties", "apiVersion", "type", "string", "description",
        "Group and version of the list.", "items", "type", "array", "items", reference(item),
        "description", "The objects.", "kind", "type", "string", "description",
        "The kind of the list.", "metadata", "type", "object", "description",
        "The revision of the list, and how to go on with it.", "x-kubernetes-group-version-kind",
        gvk(d->gv->group, d->gv->version, name));
}

static json_t *parameter(const char *place, const char *name, const char *type, const char *doc)
{
    json_t *p = json_pack("{s:s,s:s,s:s,s:{s:s}}", "name", name, "in", place, "description", doc,
                          "schema", "type", type);
    if (str_eq(place, "path"))
        json_object_set_new(p, "required", json_true());
    return p;
}

static void add_parameters(json_t *list, enum apiserver_verb verb)
{
    enum { READS = 1, WRITES = 2, DELETES = 4, PATCHES = 8 };
    static const struct {
        unsigned when;
        const char *name, *type, *doc;
    } known[] = {
        {READS, "labelSelector", "string", "Only objects with these labels."},
        {READS, "fieldSelector", "string", "Only objects with these fields."},
        {READS, "limit", "integer", "At most that many objects in one reply."},
        {READS, "continue", "string", "Go on where an earlier reply stopped."},
        {READS, "resourceVersion", "string", "As of this revision."},
        {READS, "watch", "boolean", "Changes as they happen, in place of a list."},
        {WRITES | DELETES, "dryRun", "string", "All: decide everything and change nothing."},
        {WRITES, "fieldManager", "string", "Who makes the change."},
        {WRITES, "fieldValidation", "string",
         "What to do about unknown fields: Ignore, Warn or Strict."},
        {PATCHES, "force", "boolean", "Take over fields that others manage."},
        {DELETES, "gracePeriodSeconds", "integer", "How long the object has to end."},
        {DELETES, "propagationPolicy", "string", "Orphan, Background or Foreground."},
    };
    static const unsigned is[] = {
        [APISERVER_LIST] = READS,
        [APISERVER_WATCH] = READS,
        [APISERVER_CREATE] = WRITES,
        [APISERVER_UPDATE] = WRITES,
        [APISERVER_PATCH] = WRITES | PATCHES,
        [APISERVER_DELETE] = DELETES,
        [APISERVER_DELETE_COLLECTION] = DELETES,
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (known[i].when & is[verb])
            json_array_append_new(list,
                                  parameter("query", known[i].name, known[i].type, known[i].doc));
    }
}

/* {"application/json": {"schema": {"$ref": ...}}} */
static json_t *content(const char *schema)
{
    json_t *value = schema ? reference(schema) : json_pack("{s:s}", "type", "object");
    return json_pack("{s:{s:o}}", "application/json", "schema", value);
}

static json_t *patch_content(const struct api_kind *kind)
{
    static const char *const types[] = {
        "application/json-patch+json", "application/merge-patch+json",
        "application/apply-patch+yaml", "application/strategic-merge-patch+json"};
    /* Strategic merge is for Kubernetes' own kinds, as on any cluster. */
    size_t n = kind->flags & API_BUILTIN ? ARRAY_SIZE(types) : ARRAY_SIZE(types) - 1;
    json_t *value = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(value, types[i], json_pack("{s:{}}", "schema"));
    return value;
}

/* A path of a kind and what can be done there. */
struct place {
    const struct api_kind *kind;
    enum apiserver_subresource subresource;
    bool named, all_namespaces;
    const char *schema, *list_schema; /* names */
};

static json_t *operation(const struct document *d, const struct place *p, enum apiserver_verb verb)
{
    static const char *const actions[] = {
        [APISERVER_GET] = "get",       [APISERVER_LIST] = "list",
        [APISERVER_WATCH] = "watch",   [APISERVER_CREATE] = "post",
        [APISERVER_UPDATE] = "put",    [APISERVER_PATCH] = "patch",
        [APISERVER_DELETE] = "delete", [APISERVER_DELETE_COLLECTION] = "deletecollection",
    };
    bool scale = p->subresource == APISERVER_SCALE, token = p->subresource == APISERVER_TOKEN;
    bool binding = p->subresource == APISERVER_BINDING;
    bool other = scale || token || binding; /* an object of another kind than the path's */
    bool deletes = verb == APISERVER_DELETE || verb == APISERVER_DELETE_COLLECTION;
    const char *schema = verb == APISERVER_LIST ? p->list_schema : p->schema;
    json_t *parameters = json_array();
    add_parameters(parameters, verb);
    json_t *op =
        json_pack("{s:s,s:o,s:o,s:{s:{s:s,s:o}}}", "x-kubernetes-action", actions[verb],
                  "x-kubernetes-group-version-kind",
                  scale   ? gvk("autoscaling", "v1", "Scale")
                  : token ? gvk("authentication.k8s.io", "v1", "TokenRequest")
                          : gvk(d->gv->group, d->gv->version, binding ? "Binding" : p->kind->kind),
                  "parameters", parameters, "responses", "200", "description", "OK", "content",
                  content(deletes || other ? NULL : schema));
    if (verb == APISERVER_PATCH)
        json_object_set_new(op, "requestBody",
                            json_pack("{s:o}", "content", patch_content(p->kind)));
    else if (verb == APISERVER_CREATE || verb == APISERVER_UPDATE)
        json_object_set_new(op, "requestBody",
                            json_pack("{s:o}", "content", content(other ? NULL : schema)));
    return op;
}

static void add_path(const struct document *d, const struct place *p)
{
    static const struct {
        const char *method;
        bool named;
        enum apiserver_verb verb;
    } methods[] = {
        {"get", false, APISERVER_LIST},     {"post", false, APISERVER_CREATE},
        {"get", true, APISERVER_GET},       {"put", true, APISERVER_UPDATE},
        {"patch", true, APISERVER_PATCH},   {"delete", false, APISERVER_DELETE_COLLECTION},
        {"delete", true, APISERVER_DELETE},
    };
    bool namespaced = !(p->kind->flags & API_CLUSTER_SCOPED) && !p->all_namespaces;
    json_t *item = json_object(), *parameters = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (methods[i].named == p->named &&
            apiserver_allows(p->kind, p->subresource, methods[i].verb) &&
            (!p->all_namespaces || methods[i].verb == APISERVER_LIST))
            json_object_set_new(item, methods[i].method, operation(d, p, methods[i].verb));
    }
    if (p->named)
        json_array_append_new(parameters,
                              parameter("path", "name", "string", "Name of the object."));
    if (namespaced)
        json_array_append_new(parameters,
                              parameter("path", "namespace", "string", "Namespace of the object."));
    json_object_set_new(item, "parameters", parameters);

    char version[128];
    _cleanup_free_ char *path = mem_printf(
        "/%s/%s/%s%s%s%s%s", *d->gv->group ? "apis" : "api", api_version_text(d->gv, version),
        namespaced ? "namespaces/{namespace}/" : "", p->kind->plural, p->named ? "/{name}" : "",
        p->subresource != APISERVER_MAIN ? "/" : "", apiserver_subresource_text(p->subresource));
    json_object_set_new(d->paths, path, item);
}

static void add_paths(const struct document *d, const struct api_kind *kind, const char *name,
                      const char *list_name)
{
    struct place p = {.kind = kind, .schema = name, .list_schema = list_name};
    add_path(d, &p);
    if (!(kind->flags & API_CLUSTER_SCOPED)) {
        p.all_namespaces = true;
        add_path(d, &p);
        p.all_namespaces = false;
    }
    p.named = true;
    for (p.subresource = APISERVER_MAIN; p.subresource < APISERVER_SUBRESOURCES; p.subresource++) {
        if (apiserver_has_subresource(kind, p.subresource))
            add_path(d, &p);
    }
}

void apiserver_openapi_kind(const struct api_kind *kind, const struct api_group_version *gv,
                            json_t *schema, json_t *schemas, json_t *paths)
{
    const struct document d = {.gv = gv, .schemas = schemas, .paths = paths};
    _cleanup_(str_done) struct str name = {0}, list_name = {0};
    schema_name(&d, kind, "", &name);
    schema_name(&d, kind, "List", &list_name);
    json_object_set_new(schema, "x-kubernetes-group-version-kind",
                        json_pack("[o]", gvk(gv->group, gv->version, kind->kind)));
    json_object_set_new(schemas, str_get(&name), schema);
    json_object_set_new(schemas, str_get(&list_name), list_schema(&d, kind, str_get(&name)));
    add_paths(&d, kind, str_get(&name), str_get(&list_name));
}

json_t *apiserver_openapi_document(const struct api_kind *const *kinds, const char *group,
                                   const char *version)
{
    const struct api_group_version gv = {group, version};
    json_t *schemas = json_object(), *paths = json_object();
    json_auto_t *document =
        json_pack("{s:s,s:{s:s,s:s},s:o,s:{s:o}}", "openapi", "3.0.0", "info", "title", "Orlop",
                  "version", ORLOP_VERSION, "paths", paths, "components", "schemas", schemas);
    for (const struct api_kind *const *k = kinds; *k; k++) {
        if (apiserver_kind_in(*k, group, version))
            apiserver_openapi_kind(*k, &gv, api_openapi_schema(*k), schemas, paths);
    }
    return json_object_size(schemas) ? json_incref(document) : NULL;
}

json_t *apiserver_openapi_index(const struct api_kind *const *kinds)
{
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    json_t *paths = json_object();
    for (const struct api_group_version *gv = all; gv->group; gv++) {
        char version[128], hash[APISERVER_HASH_MAX];
        json_auto_t *document = apiserver_openapi_document(kinds, gv->group, gv->version);
        _cleanup_(str_done) struct str text = {0};
        json_format(document, &text);
        _cleanup_free_ char *place =
            mem_printf("%s/%s", *gv->group ? "apis" : "api", api_version_text(gv, version));
        json_t *url = json_sprintf("/openapi/v3/%s?hash=%s", place,
                                   apiserver_content_hash(text.p, text.len, hash));
        json_object_set_new(paths, place, json_pack("{s:o}", "serverRelativeURL", url));
    }
    return json_pack("{s:o}", "paths", paths);
}

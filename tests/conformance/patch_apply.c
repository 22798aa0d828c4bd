/*
 * Applies patches, for the scripts that compare the results with another implementation's.
 *
 *   in:   [{"type": "json" | "merge" | "strategic", "doc": ..., "patch": ...}, ...]
 *   out:  [{"result": ...} or {"error": "...", "code": "NOT_FOUND"}, ...]
 *
 * A request {"type": "tables"} is answered with the tables of Kubernetes' own kinds, as far as they
 * matter for strategic merge:
 *
 *   [{"apiVersion": ..., "kind": ..., "members": {name: {"shape": "one" | "list" | "map",
 *                                                        "object": true, "members": {...}}}}, ...]
 */
#include <stdio.h>

#include "base/mem.h"
#include "k8s/schema/smp.h"

static json_t *apply_strategic(const json_t *doc, const json_t *patch, struct err *e)
{
    const char *api_version = json_str(doc, "apiVersion"), *name = json_str(doc, "kind");
    const struct api_kind *kind =
        api_version && name ? api_kind_find(api_version, name, NULL) : NULL;
    if (!kind) {
        err_set(e, ERR_INVALID_ARGUMENT, "UnknownKind", "strategic merge knows no such kind");
        return NULL;
    }
    return json_smp_apply(doc, patch, &api_smp_schema, api_smp_root(kind), e);
}

/* The tables are not recursive. */
static json_t *members_of(const struct api_field *fields)
{
    static const char *const shapes[] = {[API_ONE] = "one", [API_LIST] = "list", [API_MAP] = "map"};
    json_t *members = json_object();
    for (const struct api_field *f = fields; f && f->name; f++) {
        json_t *member =
            json_pack("{sssb}", "shape", shapes[f->shape], "object", (int)(f->type == API_OBJECT));
        if (f->fields)
            json_object_set_new(member, "members", members_of(f->fields));
        if (f->merge_key)
            json_object_set_new(member, "key", json_string(f->merge_key));
        json_object_set_new(members, f->name, member);
    }
    return members;
}

static json_t *tables(void)
{
    json_t *kinds = json_array();
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        char version[128];
        if ((*k)->flags & API_BUILTIN)
            json_array_append_new(
                kinds, json_pack("{ssssso}", "apiVersion",
                                 api_version_text(api_kind_canonical(*k), version), "kind",
                                 (*k)->kind, "members", members_of((*k)->fields)));
    }
    return kinds;
}

static json_t *apply(const json_t *request)
{
    struct err e = {0};
    const char *type = json_str(request, "type");
    const json_t *doc = json_object_get(request, "doc");
    const json_t *patch = json_object_get(request, "patch");
    json_t *result = NULL;
    if (type && str_eq(type, "tables"))
        result = tables();
    else if (!type || !doc || !patch)
        err_set(&e, ERR_INVALID_ARGUMENT, "InvalidRequest", "type, doc and patch are due");
    else if (str_eq(type, "json"))
        result = json_patch_apply(doc, patch, &e);
    else if (str_eq(type, "merge"))
        result = json_merge_patch(doc, patch, &e);
    else
        result = apply_strategic(doc, patch, &e);
    if (result)
        return json_pack("{so}", "result", result);
    return json_pack("{ssss}", "error", e.msg, "code", err_code_name(e.code));
}

int main(void)
{
    _cleanup_(str_done) struct str text = {0};
    char buffer[65536];
    size_t n;
    while ((n = fread(buffer, 1, sizeof(buffer), stdin)) > 0)
        str_append_n(&text, buffer, n);

    struct err e = {0};
    json_auto_t *requests = json_parse(str_get(&text), text.len, NULL, &e);
    if (!json_is_array(requests)) {
        fprintf(stderr, "%s\n", requests ? "not a list" : e.msg);
        return 2;
    }
    json_auto_t *results = json_array();
    for (size_t i = 0; i < json_array_size(requests); i++)
        json_array_append_new(results, apply(json_array_get(requests, i)));
    _cleanup_(str_done) struct str out = {0};
    json_format(results, &out);
    puts(str_get(&out));
    return 0;
}

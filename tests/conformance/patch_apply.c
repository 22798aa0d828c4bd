/*
 * Applies patches, for the scripts that compare the results with another implementation's.
 *
 *   in:   [{"type": "json" | "merge" | "strategic", "doc": ..., "patch": ...}, ...]
 *   out:  [{"result": ...} or {"error": "...", "code": "NOT_FOUND"}, ...]
 */
#include <stdio.h>

#include "api/smp.h"
#include "base/mem.h"

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

static json_t *apply(const json_t *request)
{
    struct err e = {0};
    const char *type = json_str(request, "type");
    const json_t *doc = json_object_get(request, "doc");
    const json_t *patch = json_object_get(request, "patch");
    json_t *result = NULL;
    if (!type || !doc || !patch)
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

/*
 * All three patch formats on one input: a document, then a newline or NUL, then a patch. Whatever
 * they are, nothing crashes, neither changes, results stay within the limits, messages are UTF-8, and
 * the merge patch between two documents leads from one to the other.
 */
#include "fuzz.h"
#include "json/patch.h"

/* A schema that gives every kind of list to some one-letter name, at every depth. */
static bool field(const void *node, const char *name, struct json_smp_field *ret)
{
    *ret = (struct json_smp_field){.node = node};
    switch (name[0]) {
    case 'm':
        ret->list = JSON_LIST_MAP;
        ret->merge_key = "k";
        return true;
    case 's':
        ret->list = JSON_LIST_SET;
        return true;
    case 'r':
        ret->replace = true;
        return true;
    default:
        return name[0] == 'o';
    }
}

/* A merge patch cannot set null, so it cannot lead to a document that has one outside a list. */
static bool has_null_member(const json_t *value)
{
    void *it = json_object_iter((json_t *)value);
    for (; it; it = json_object_iter_next((json_t *)value, it)) {
        const json_t *member = json_object_iter_value(it);
        if (json_is_null(member) || has_null_member(member))
            return true;
    }
    return false;
}

/* Takes over the result. */
static void check_result(json_t *result, const struct err *e)
{
    if (result) {
        CHECK(json_depth(result) <= JSON_MAX_DEPTH);
    } else {
        json_auto_t *message = json_string(e->msg);
        CHECK(message && e->code != ERR_OK && e->reason);
    }
    json_decref(result);
}

static void try_all(const json_t *doc, const json_t *patch)
{
    static const struct json_smp_schema schema = {field};
    struct err e = {0};
    check_result(json_patch_apply(doc, patch, &e), &e);
    e = (struct err){0};
    check_result(json_merge_patch(doc, patch, &e), &e);
    e = (struct err){0};
    check_result(json_smp_apply(doc, patch, &schema, &schema, &e), &e);
}

static void try_diff(const json_t *from, const json_t *to)
{
    json_auto_t *patch = json_merge_diff(from, to);
    json_auto_t *result = json_merge_patch(from, patch, NULL);
    if (!has_null_member(to))
        CHECK(json_equal(result, to));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t cut = 0;
    while (cut < size && text[cut] != '\n' && text[cut] != '\0')
        cut++;
    if (cut == size)
        return 0;
    json_auto_t *doc = json_parse(text, cut, NULL, NULL);
    json_auto_t *patch = json_parse(text + cut + 1, size - cut - 1, NULL, NULL);
    if (!doc || !patch)
        return 0;
    json_auto_t *doc_before = json_deep_copy(doc), *patch_before = json_deep_copy(patch);
    try_all(doc, patch);
    try_diff(doc, patch);
    try_diff(patch, doc);
    CHECK(json_equal(doc, doc_before) && json_equal(patch, patch_before));
    return 0;
}

/*
 * Server-side apply: documents as FieldsV1, as lists of managers, and in pairs as an object and a
 * configuration for it. Nothing crashes; a set is what it was after it was written and read; what
 * was applied is there, and applying it again changes nothing.
 */
#include "api/admit.h"
#include "api/normalize.h"
#include "fuzz.h"
#include "json/doc.h"
#include "k8s/apiserver/managed.h"

static void check_text(struct arena *a, const struct fieldset *set)
{
    struct str text = {0};
    fieldset_encode(set, &text);
    json_t *fields = json_parse(text.p, text.len, NULL, NULL);
    const struct fieldset *again = NULL;
    CHECK(fields && fieldset_decode(a, fields, &again, NULL) == 0);
    CHECK(fieldset_equal(set, again));
    const char *at = text.p;
    if (fieldset_read(a, &at, &again) == 0)
        CHECK(!*at && fieldset_equal(set, again));
    str_done(&text);
    json_decref(fields);
}

static void check_fields(const json_t *value)
{
    struct arena a = {0};
    const struct fieldset *set;
    struct err e;
    if (fieldset_decode(&a, value, &set, &e) == 0) {
        check_text(&a, set);
        CHECK(!fieldset_difference(&a, set, set));
        CHECK(fieldset_equal(fieldset_union(&a, set, set), set));
        CHECK(fieldset_equal(fieldset_intersection(&a, set, set), set));
    }
    arena_done(&a);
}

static void check_list(const json_t *value)
{
    struct arena a = {0};
    struct managed m, again;
    struct err e;
    struct str text = {0};
    if (managed_decode(&a, value, &m, &e) == 0) {
        if (managed_encode(&m, &text, &e) == 0) {
            managed_read(&a, text.p, &again);
            CHECK(again.entries.len == m.entries.len);
            managed_done(&again);
        }
        managed_done(&m);
    }
    str_done(&text);
    arena_done(&a);
}

/* An object in the form that sets are made of; NULL when it is no object of a kind. */
static json_t *normal(const json_t *value, const struct api_kind **ret_kind)
{
    struct api_report report = {0};
    const struct api_kind *kind = api_kind_of(value, &report);
    json_t *object = NULL;
    if (kind) {
        object = json_deep_copy(value);
        api_normalize(kind, object, &report);
    }
    api_report_done(&report);
    *ret_kind = kind;
    return object;
}

static void check_object(const struct api_kind *kind, const json_t *object)
{
    struct arena a = {0};
    const struct fieldset *set = typed_set(&a, kind, object);
    check_text(&a, set);
    CHECK(fieldset_contains(typed_named(&a, kind, set), set));
    struct typed_changes c = typed_compare(&a, kind, object, object);
    CHECK(!c.added && !c.modified && !c.removed);
    json_auto_t *rest = typed_remove(&a, kind, object, set);
    CHECK(!fieldset_intersection(&a, typed_set(&a, kind, rest), set));
    arena_done(&a);
}

static void check_pair(const json_t *before, const json_t *after)
{
    const struct api_kind *kind, *other;
    json_auto_t *live = normal(before, &kind), *config = normal(after, &other);
    struct arena a = {0};
    struct err e;
    if (live && kind == other) {
        bool clear = typed_check(&a, kind, live, &e) == 0 && typed_check(&a, kind, config, &e) == 0;
        json_auto_t *merged = typed_merge(&a, kind, live, config);
        json_auto_t *again = typed_merge(&a, kind, merged, config);
        struct typed_changes c = typed_compare(&a, kind, live, merged);
        CHECK(!fieldset_intersection(&a, c.added, c.removed));
        if (clear) {
            CHECK(json_equal(merged, again));
            /* an empty object owns itself, also where others own what is in it */
            const struct fieldset *all = typed_named(&a, kind, typed_set(&a, kind, merged));
            CHECK(fieldset_contains(all, typed_set(&a, kind, config)));
        }
        check_object(kind, merged);
    }
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_stream *stream = json_stream_new_text((const char *)data, size);
    struct json_doc doc = {0};
    json_t *before = NULL;
    int found;
    while ((found = json_stream_next(stream, &doc, NULL)) != 0) {
        if (found < 0)
            continue;
        const struct api_kind *kind;
        check_fields(doc.value);
        check_list(doc.value);
        json_auto_t *object = normal(doc.value, &kind);
        if (object)
            check_object(kind, object);
        if (before)
            check_pair(before, doc.value);
        json_decref(before);
        before = json_incref(doc.value);
    }
    json_decref(before);
    json_doc_done(&doc);
    json_stream_free(stream);
    return 0;
}

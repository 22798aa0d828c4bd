/*
 * Schemas of definitions: the first document is a schema, those behind it are specs of its objects.
 * Compiling ends without a crash whatever the schema says, and says the same as admission of a
 * definition with it. Objects are pruned and defaulted once and for all, and whatever is wrong with
 * one, it is a valid update of itself.
 */
#include "api/admit.h"
#include "fuzz.h"
#include "json/doc.h"
#include "k8s/kinds/kinds.h"
#include "k8s/schema/schema.h"

static json_t *definition_with(json_t *schema)
{
    return json_pack("{s:s,s:s,s:{s:s},s:{s:s,s:s,s:{s:s,s:s},s:[{s:s,s:b,s:b,s:{s:O}}]}}",
                     "apiVersion", "apiextensions.k8s.io/v1", "kind", "CustomResourceDefinition",
                     "metadata", "name", "as.b.test", "spec", "group", "b.test", "scope",
                     "Namespaced", "names", "plural", "as", "kind", "A", "versions", "name", "v1",
                     "served", 1, "storage", 1, "schema", "openAPIV3Schema", schema);
}

static bool is_admitted(json_t *schema)
{
    struct api_report report = {0};
    json_auto_t *definition = definition_with(schema);
    bool admitted =
        api_admit(&api_custom_resource_definition, definition, NULL, API_UNKNOWN_WARN, &report);
    api_report_done(&report);
    return admitted;
}

static void check_object(const struct api_schema *s, json_t *spec)
{
    struct api_report report = {0};
    json_auto_t *object = json_pack("{s:s,s:s,s:{s:s},s:o}", "apiVersion", "b.test/v1", "kind", "A",
                                    "metadata", "name", "x", "spec", json_deep_copy(spec));
    api_schema_prune(s, object, API_UNKNOWN_WARN, &report);
    CHECK(!report.errors);
    api_schema_default(s, object);
    json_auto_t *before = json_deep_copy(object);
    unsigned warnings = report.warnings;
    api_schema_prune(s, object, API_UNKNOWN_WARN, &report);
    CHECK(report.warnings == warnings);
    api_schema_default(s, object);
    CHECK(json_equal(before, object));
    api_schema_validate(s, object, NULL, &report);
    api_report_clear(&report);
    api_schema_validate(s, object, object, &report);
    CHECK(!report.errors);
    api_report_done(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_stream *stream = json_stream_new_text((const char *)data, size);
    struct json_doc doc = {0};
    struct api_schema_set *set = api_schema_set_new();
    struct api_report report = {0};
    const struct api_schema *s = NULL;
    if (json_stream_next(stream, &doc, NULL) > 0) {
        s = api_schema_compile(set, doc.value, NULL, &report);
        CHECK(!s == (report.errors > 0));
        if (json_is_object(doc.value))
            CHECK(is_admitted(doc.value) == (s != NULL));
    }
    int found;
    while (s && (found = json_stream_next(stream, &doc, NULL)) != 0) {
        if (found > 0)
            check_object(s, doc.value);
    }
    if (s)
        api_schema_fields(set, s);
    api_report_done(&report);
    api_schema_set_free(set);
    json_doc_done(&doc);
    json_stream_free(stream);
    return 0;
}

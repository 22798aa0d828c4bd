/*
 * Manifests: admission ends without a crash whatever they say, every problem has a place, an
 * admitted object is admitted again unchanged and is a valid update of itself, and its published
 * form is understood.
 */
#include "api/admit.h"
#include "api/convert.h"
#include "fuzz.h"
#include "json/doc.h"

static void check_report(const struct json_doc *doc, struct api_report *report)
{
    vec_for_each(&report->problems, p) {
        struct json_pos pos = {0, 0};
        CHECK(p->message[0] && p->path && p->pointer);
        CHECK(json_doc_locate(doc, p->pointer, p->at_key ? JSON_DOC_KEY : JSON_DOC_MARK, &pos));
        CHECK(pos.line > 0 && pos.column > 0);
    }
}

static void check_admitted(const struct api_kind *kind, const json_t *source, const json_t *object)
{
    struct api_report report = {0};
    json_auto_t *again = json_deep_copy(object);
    CHECK(api_admit(kind, again, object, API_UNKNOWN_ERROR, &report));
    CHECK(json_equal(again, object));
    api_report_clear(&report);
    json_auto_t *published = api_convert(kind, source, API_FORM_PUBLISHED, &report);
    CHECK(api_kind_of(published, &report) == kind);
    CHECK(api_admit(kind, published, NULL, API_UNKNOWN_ERROR, &report));
    api_report_done(&report);
}

static void check_document(const struct json_doc *doc)
{
    struct api_report report = {0};
    const struct api_kind *kind = api_kind_of(doc->value, &report);
    if (kind) {
        json_auto_t *object = json_deep_copy(doc->value);
        bool admitted = api_admit(kind, object, NULL, API_UNKNOWN_ERROR, &report);
        CHECK(admitted == !report.errors);
        if (admitted)
            check_admitted(kind, doc->value, object);
    }
    check_report(doc, &report);
    api_report_done(&report);
}

/* Two documents in a row: the second as an update of the first. */
static void check_update(const json_t *before, const json_t *after)
{
    struct api_report report = {0};
    const struct api_kind *kind = api_kind_of(after, &report);
    if (kind && before && api_kind_of(before, &report) == kind) {
        json_auto_t *object = json_deep_copy(after);
        api_admit(kind, object, before, API_UNKNOWN_WARN, &report);
    }
    api_report_done(&report);
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
        check_document(&doc);
        check_update(before, doc.value);
        json_decref(before);
        before = json_incref(doc.value);
    }
    json_decref(before);
    json_doc_done(&doc);
    json_stream_free(stream);
    return 0;
}

/*
 * A stream of documents: reading ends, is the same from memory and from a file, with new memory for
 * each document and with the same for all, and what it gives has the properties of values.h.
 */
#include "base/str.h"
#include "fuzz.h"
#include "values.h"

static void check_same(const struct json_doc *a, const struct err *ea, const struct json_doc *b,
                       const struct err *eb)
{
    CHECK(a->start.line == b->start.line && a->start.column == b->start.column);
    CHECK(!a->value == !b->value);
    if (a->value)
        CHECK(json_equal(a->value, b->value));
    else
        CHECK(str_eq(ea->msg, eb->msg));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    FILE *f = fmemopen((void *)(uintptr_t)data, size, "r");
    CHECK(f);
    struct json_stream *a = json_stream_new_text((const char *)data, size);
    struct json_stream *b = json_stream_new(f);

    struct json_doc from_file = {0};
    for (size_t documents = 0;; documents++) {
        struct json_doc from_text = {0};
        struct err et = {0}, ef = {0};
        int r = json_stream_next(a, &from_text, &et);
        CHECK(json_stream_next(b, &from_file, &ef) == r);
        CHECK(documents <= size);
        if (r == 0)
            break;
        check_same(&from_text, &et, &from_file, &ef);
        CHECK(from_text.start.line > 0 && from_text.start.column > 0);
        if (r == 1) {
            check_document(&from_text);
            check_document(&from_file);
            check_value(from_text.value);
        } else {
            CHECK(et.code == ERR_INVALID_ARGUMENT && et.msg[0] && !from_text.value);
            check_message(&et);
        }
        json_doc_done(&from_text);
    }
    json_doc_done(&from_file);
    json_stream_free(a);
    json_stream_free(b);
    fclose(f);
    return 0;
}

#include "values.h"

#include "base/str.h"
#include "fuzz.h"
#include "json/pointer.h"
#include "json/yaml.h"

static void check_reads_back(const json_t *value, const struct str *text)
{
    struct err e = {0};
    struct json_doc doc;
    struct json_stream *s = json_stream_new_text(str_get(text), text->len);
    int r = json_stream_next(s, &doc, &e);
    if (r < 0)
        fprintf(stderr, "%s\nline %u, column %u: %s\n", str_get(text), doc.start.line,
                doc.start.column, e.msg);
    if (json_is_null(value)) {
        CHECK(r == 0);
    } else {
        CHECK(r == 1);
        CHECK(json_equal(doc.value, (json_t *)value));
        json_doc_done(&doc);
        CHECK(json_stream_next(s, &doc, &e) == 0);
    }
    json_stream_free(s);
}

void check_value(const json_t *value)
{
    _cleanup_(str_done) struct str text = {0}, again = {0};
    struct err e = {0};

    json_format(value, &text);
    if (text.len <= JSON_MAX_BYTES) {
        json_auto_t *same = json_parse(text.p, text.len, NULL, &e);
        CHECK(same && json_equal(same, (json_t *)value));
        json_format(same, &again);
        CHECK(again.len == text.len && memcmp(again.p, text.p, text.len) == 0);
    }
    str_clear(&text);
    json_format_pretty(value, &text);
    /* A stream takes for JSON what starts with a bracket. */
    if ((json_is_object(value) || json_is_array(value)) && text.len <= JSON_MAX_BYTES)
        check_reads_back(value, &text);
    str_clear(&text);
    json_yaml_format(value, &text);
    if (text.len <= JSON_MAX_BYTES)
        check_reads_back(value, &text);
}

enum { PLACES = 500 }; /* of one document: each costs a walk through its text */

static void check_place(const struct json_doc *doc, const char *pointer)
{
    struct json_pos key = {0, 0}, value = {0, 0};
    size_t len = 0;
    CHECK(json_pointer_get(doc->value, pointer, NULL));
    CHECK(json_doc_locate(doc, pointer, JSON_DOC_KEY, &key));
    CHECK(json_doc_locate(doc, pointer, JSON_DOC_VALUE, &value));
    CHECK(key.line > 0 && key.column > 0 && value.line > 0 && value.column > 0);
    json_doc_line(doc, value.line, &len);
}

static void check_below(const struct json_doc *doc, json_t *value, struct str *pointer,
                        unsigned *left)
{
    const char *key;
    json_t *child;
    size_t i, len = pointer->len;

    if (!*left)
        return;
    --*left;
    check_place(doc, str_get(pointer));
    json_object_foreach (value, key, child) {
        json_pointer_append(pointer, key);
        check_below(doc, child, pointer, left);
        str_truncate(pointer, len);
    }
    json_array_foreach (value, i, child) {
        json_pointer_append_index(pointer, i);
        check_below(doc, child, pointer, left);
        str_truncate(pointer, len);
    }
}

void check_document(const struct json_doc *doc)
{
    _cleanup_(str_done) struct str pointer = {0};
    unsigned left = PLACES;
    check_below(doc, doc->value, &pointer, &left);

    static const char *const nowhere[] = {"/nowhere/0", "/0/x", "x", "/~", "/-"};
    for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
        struct json_pos pos;
        CHECK(json_doc_locate(doc, nowhere[i], JSON_DOC_VALUE, &pos));
    }
}

void check_places(const char *text, size_t len)
{
    struct err e = {0};
    struct json_doc doc;
    struct json_stream *s = json_stream_new_text(text, len);
    if (json_stream_next(s, &doc, &e) == 1)
        check_document(&doc);
    json_doc_done(&doc);
    json_stream_free(s);
}

void check_message(const struct err *e)
{
    for (const char *p = e->msg; *p; p++)
        CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
    json_auto_t *message = json_string(e->msg);
    CHECK(message);
}

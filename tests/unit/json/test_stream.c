#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "json/doc.h"
#include "unit.h"

/* All documents of a text, one per line as JSON, or as "!L:C reason"; all in the same memory. */
static char *read_stream(struct json_stream *s)
{
    struct str out = {0};
    struct json_doc doc = {0};
    for (;;) {
        struct err e = {0};
        int r = json_stream_next(s, &doc, &e);
        if (r == 0)
            break;
        if (out.len)
            str_append_c(&out, '\n');
        if (r > 0) {
            assert_non_null(doc.value);
            str_appendf(&out, "%u:%u ", doc.start.line, doc.start.column);
            json_format(doc.value, &out);
        } else {
            assert_null(doc.value);
            assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
            str_appendf(&out, "!%u:%u %s", doc.start.line, doc.start.column, e.reason);
        }
    }
    assert_null(doc.value);
    assert_null(doc.impl);
    assert_int_equal(json_stream_next(s, &doc, NULL), 0); /* stays at the end */
    json_stream_free(s);
    return str_take(&out);
}

static const struct {
    const char *name, *in, *want;
} streams[] = {
    {"nothing", "", ""},
    {"blanks", "\n \n", ""},
    {"comments", "# a\n  # b\n", ""},
    {"one", "a: 1\n", "1:1 {\"a\":1}"},
    {"two", "a: 1\n---\nb: 2\n", "1:1 {\"a\":1}\n3:1 {\"b\":2}"},
    {"marker first", "---\na: 1\n", "2:1 {\"a\":1}"},
    {"marker last", "a: 1\n---", "1:1 {\"a\":1}"},
    {"empty ones", "---\n---\n\n---\na: 1\n---\n~\n---\nnull\n---\n", "5:1 {\"a\":1}"},
    {"comment on the marker", "--- # a\na: 1\n---\t# b\nb: 2\n", "2:1 {\"a\":1}\n4:1 {\"b\":2}"},
    {"content on the marker", "--- {a: b}\n--- x\n--- |\n  y\n",
     "1:5 {\"a\":\"b\"}\n2:5 \"x\"\n3:5 \"y\\n\""},
    {"json on the marker", "--- {\"a\": 1}\n", "1:5 {\"a\":1}"},
    {"no marker", "a: |\n  ---\n  x\n---b: 1\n", "1:1 {\"a\":\"---\\nx\\n\",\"---b\":1}"},
    {"end", "a: 1\n...\nb: 2\n...\n...\n---\nc: 3\n",
     "1:1 {\"a\":1}\n3:1 {\"b\":2}\n7:1 {\"c\":3}"},
    {"CRLF", "a: 1\r\n---\r\nb: x\r\n...\r\nc: 1\r\n",
     "1:1 {\"a\":1}\n3:1 {\"b\":\"x\"}\n5:1 {\"c\":1}"},
    {"byte order marks",
     "\xef\xbb\xbf"
     "a: 1\n---\n"
     "b: 2\n",
     "1:1 {\"a\":1}\n3:1 {\"b\":2}"},
    {"mark and json", "\xef\xbb\xbf{\"a\": 1}", "1:1 {\"a\":1}"},
    {"directives", "# a\n%YAML 1.1\n%TAG !x! tag:x,2000:\n---\na: 1\n---\nb: 1\n",
     "5:1 {\"a\":1}\n7:1 {\"b\":1}"},
    {"directive after end", "a: 1\n...\n%YAML 1.1\n---\nb: 1\n", "1:1 {\"a\":1}\n5:1 {\"b\":1}"},
    {"directive without a document", "a: 1\n...\n%YAML 1.1\n", "1:1 {\"a\":1}\n!3:1 InvalidYAML"},
    {"directive of an empty one", "%YAML 1.1\n---\n---\na: 1\n", "4:1 {\"a\":1}"},
    {"directive that a lone CR ends", "%YAML 1.1\r---\ra: 1\r", "3:1 {\"a\":1}"},
    {"json", " \n{\"a\": [1,\n 2]}\n", "2:1 {\"a\":[1,2]}"},
    {"json values", "{\"a\":1}{\"b\":2} [3]\n\n{\"c\":4}\n",
     "1:1 {\"a\":1}\n1:8 {\"b\":2}\n1:16 [3]\n3:1 {\"c\":4}"},
    {"brackets in strings", "{\"a\":\"}]\\\"}\"}{\"b\":1}",
     "1:1 {\"a\":\"}]\\\"}\"}\n1:14 {\"b\":1}"},
    {"json and yaml", "{\"a\":1}\n---\nb: 2\n---\n[3] # c\n--- # d\nd: 4\n",
     "1:1 {\"a\":1}\n3:1 {\"b\":2}\n5:1 [3]\n7:1 {\"d\":4}"},
    {"flow style", "{a: 1, b: [x]}\n---\n[y, z]\n",
     "1:1 {\"a\":1,\"b\":[\"x\"]}\n3:1 [true,\"z\"]"},
    {"json that is only yaml", "{\"a\": yes, # c\n 'b': 1,}\n", "1:1 {\"a\":true,\"b\":1}"},
    {"text after json", "{\"a\":1} x\ny: 1\n---\nb: 1\n",
     "1:1 {\"a\":1}\n!1:9 InvalidJSON\n4:1 {\"b\":1}"},
    {"key after json", "{\"a\":1}\nb: 1\n", "1:1 {\"a\":1}\n!2:1 InvalidJSON"},
    {"broken in the middle", "a: 1\n---\nb: [\n---\nc: 1\n",
     "1:1 {\"a\":1}\n!3:4 InvalidYAML\n5:1 {\"c\":1}"},
    {"broken json", "{\"a\": 1,\n \"b\" 2}\n---\nc: 1\n", "!2:6 InvalidJSON\n4:1 {\"c\":1}"},
    {"unclosed json", "{\"a\": \"x\n---\nc: 1\n", "!1:7 InvalidJSON\n3:1 {\"c\":1}"},
    {"duplicate keys", "a: 1\nb: 1\na: 2\n---\n{\"a\":1,\n\"a\":2}\n",
     "!3:1 DuplicateKey\n!6:1 DuplicateKey"},
    {"UTF-16",
     "\xff\xfe"
     "a",
     "!1:1 InvalidYAML"},
    {"characters in columns", "ä: \"ö\" x\n", "!1:8 InvalidYAML"},
};

static void test_streams(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
        size_t len = strlen(streams[i].in);
        _cleanup_free_ char *got = read_stream(json_stream_new_text(streams[i].in, len));
        if (!str_eq(got, streams[i].want))
            fail_msg("%s: got\n%s\nwant\n%s", streams[i].name, got, streams[i].want);
        if (!len)
            continue;
        FILE *f = fmemopen((char *)(uintptr_t)streams[i].in, len, "r");
        assert_non_null(f);
        _cleanup_free_ char *again = read_stream(json_stream_new(f));
        fclose(f);
        if (!str_eq(again, streams[i].want))
            fail_msg("%s, from a file: got\n%s\nwant\n%s", streams[i].name, again, streams[i].want);
    }
}

/* Documents that straddle every place where the buffer is refilled. */
static void test_many_documents(void **state)
{
    enum { N = 20000 };
    _cleanup_(str_done) struct str text = {0};
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        if (i % 3 == 0)
            str_appendf(&text, "---\nid: %u\ntext: |\n  %0*u\n", i, (int)(i % 60) + 1, 7);
        else
            str_appendf(&text, "%s{\"id\": %u}%s", i % 3 == 1 ? "---\n" : "", i,
                        i % 2 ? "\n" : "\n\n");
    }
    FILE *f = fmemopen(text.p, text.len, "r");
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new(f);
    unsigned line = 0;
    for (unsigned i = 0; i < N; i++) {
        struct json_doc doc = {0};
        struct err e = {0};
        if (json_stream_next(s, &doc, &e) != 1)
            fail_msg("%u: %s", i, e.msg);
        assert_int_equal(json_integer_value(json_object_get(doc.value, "id")), i);
        assert_true(doc.start.line > line);
        line = doc.start.line;
        json_doc_done(&doc);
    }
    struct json_doc doc = {0};
    assert_int_equal(json_stream_next(s, &doc, NULL), 0);
    fclose(f);
}

/* A document may outlive the next ones and the stream. */
static void test_documents_stay(void **state)
{
    static const char text[] = "a: 1\n---\nb: {c: 2}\n---\n{\"d\": 3}\n";
    struct json_doc docs[3] = {0};
    struct json_pos pos;
    size_t len;
    (void)state;
    struct json_stream *s = json_stream_new_text(text, strlen(text));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(json_stream_next(s, &docs[i], NULL), 1);
    json_stream_free(s);
    assert_true(json_doc_locate(&docs[1], "/b/c", JSON_DOC_VALUE, &pos));
    assert_int_equal(pos.line, 3);
    assert_int_equal(pos.column, 8);
    assert_memory_equal(json_doc_line(&docs[2], 5, &len), "{\"d\": 3}", 8);
    for (unsigned i = 0; i < 3; i++)
        json_doc_done(&docs[i]);
    json_doc_done(&docs[0]); /* once more is harmless */
}

static void test_too_long_ends_the_stream(void **state)
{
    (void)state;
    static const char *const starts[] = {"a: '", "{\"a\": \"", "# ", "--- x"};
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        _cleanup_(str_done) struct str text = {0};
        str_append(&text, starts[i]);
        while (text.len < JSON_MAX_BYTES)
            str_append(&text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        str_append(&text, "x\n---\nb: 1\n");
        _cleanup_free_ char *got = read_stream(json_stream_new_text(text.p, text.len));
        assert_string_equal(got, "!1:1 TooLarge");
        FILE *f = fmemopen(text.p, text.len, "r");
        _cleanup_free_ char *again = read_stream(json_stream_new(f));
        fclose(f);
        assert_string_equal(again, "!1:1 TooLarge");
    }
}

enum { ENDLESS = 3 * JSON_MAX_BYTES };

static ssize_t endless_read(void *cookie, char *buf, size_t size)
{
    size_t *given = cookie;
    if (*given >= ENDLESS)
        return 0;
    *given += size;
    memset(buf, ' ', size);
    return (ssize_t)size;
}

/* Blanks in front of a document are its bytes, too: they are not read without end. */
static void test_endless_blanks(void **state)
{
    size_t given = 0;
    (void)state;
    FILE *f = fopencookie(&given, "r", (cookie_io_functions_t){.read = endless_read});
    _cleanup_free_ char *got = read_stream(json_stream_new(f));
    fclose(f);
    assert_string_equal(got, "!1:1 TooLarge");
    assert_true(given < ENDLESS);
}

static void test_position(void **state)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a: 1\n---\nb: 2\n";
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, strlen(text));
    struct json_doc doc = {0};
    (void)state;
    assert_int_equal(json_stream_position(s), 0);
    assert_int_equal(json_stream_next(s, &doc, NULL), 1);
    assert_int_equal(json_stream_position(s), 8);
    assert_int_equal(json_stream_next(s, &doc, NULL), 1);
    assert_int_equal(json_stream_position(s), strlen(text));
    json_doc_done(&doc);
}

/* JSON values in a row may be more than one document's bytes. */
static void test_long_line_of_values(void **state)
{
    _cleanup_(str_done) struct str text = {0};
    unsigned n = 0;
    (void)state;
    while (text.len <= JSON_MAX_BYTES)
        str_appendf(&text, "{\"n\":%u,\"text\":\"%01000u\"}", n++, 0);
    FILE *f = fmemopen(text.p, text.len, "r");
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new(f);
    for (unsigned i = 0; i < n; i++) {
        struct json_doc doc = {0};
        assert_int_equal(json_stream_next(s, &doc, NULL), 1);
        json_doc_done(&doc);
    }
    struct json_doc doc = {0};
    assert_int_equal(json_stream_next(s, &doc, NULL), 0);
    fclose(f);
}

static ssize_t failing_read(void *cookie, char *buf, size_t size)
{
    int *calls = cookie;
    if ((*calls)++) {
        errno = EIO;
        return -1;
    }
    size_t n = size < 12 ? size : 12;
    memcpy(buf, "a: 1\n---\nb: ", n);
    return (ssize_t)n;
}

static void test_read_error(void **state)
{
    int calls = 0;
    struct json_doc doc = {0};
    struct err e = {0};
    (void)state;
    FILE *f = fopencookie(&calls, "r", (cookie_io_functions_t){.read = failing_read});
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new(f);
    assert_int_equal(json_stream_next(s, &doc, &e), 1);
    json_doc_done(&doc);
    assert_int_equal(json_stream_next(s, &doc, &e), -1); /* half a document is none */
    assert_null(doc.value);
    assert_int_equal(e.code, ERR_DATA_LOSS);
    json_doc_done(&doc);
    assert_int_equal(json_stream_next(s, &doc, &e), 0);
    fclose(f);
}

/* What messages quote is safe to print and to put into JSON. */
static void test_messages_are_clean(void **state)
{
    static const char *const cases[] = {
        "a: \"x\" \x1b[31mred\n",         "a: \"x\" \xff\xc3(\xed\xa0\x80\xf5\x80\n",
        "\"\\e[2J\": 1\n\"\\e[2J\": 2\n", "{\"a\" \x1b}\n",
        "a: 1\n\xc2\x9bx y\nb: 1\n",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(json_stream_freep) struct json_stream *s =
            json_stream_new_text(cases[i], strlen(cases[i]));
        struct json_doc doc = {0};
        struct err e = {0};
        assert_int_equal(json_stream_next(s, &doc, &e), -1);
        json_doc_done(&doc);
        for (const char *p = e.msg; *p; p++)
            assert_true((unsigned char)*p >= 0x20);
        assert_null(strstr(e.msg, "\xc2\x9b"));
        json_auto_t *message = json_string(e.msg);
        assert_non_null(message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_many_documents),
        cmocka_unit_test(test_documents_stay),
        cmocka_unit_test(test_too_long_ends_the_stream),
        cmocka_unit_test(test_endless_blanks),
        cmocka_unit_test(test_position),
        cmocka_unit_test(test_long_line_of_values),
        cmocka_unit_test(test_read_error),
        cmocka_unit_test(test_messages_are_clean),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}

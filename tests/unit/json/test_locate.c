#include <stdio.h>

#include "json/doc.h"
#include "unit.h"

struct place {
    const char *pointer;
    unsigned key_line, key_column, line, column;
};

static void check(const char *text, const struct place *places, size_t n)
{
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, strlen(text));
    struct json_doc doc = {0};
    struct err e = {0};
    /* the last document of the stream */
    if (json_stream_next(s, &doc, &e) != 1)
        fail_msg("%s", e.msg);
    struct json_doc next = {0};
    while (json_stream_next(s, &next, &e) == 1) {
        json_doc_done(&doc);
        doc = next;
        next = (struct json_doc){0};
    }
    for (size_t i = 0; i < n; i++) {
        struct json_pos key, value;
        assert_true(json_doc_locate(&doc, places[i].pointer, JSON_DOC_KEY, &key));
        assert_true(json_doc_locate(&doc, places[i].pointer, JSON_DOC_VALUE, &value));
        if (key.line != places[i].key_line || key.column != places[i].key_column ||
            value.line != places[i].line || value.column != places[i].column)
            fail_msg("%s: key %u:%u, value %u:%u", places[i].pointer, key.line, key.column,
                     value.line, value.column);
    }
    json_doc_done(&doc);
}

static void test_yaml(void **state)
{
    static const char text[] = "x: 1\n"
                               "---\n"
                               "spec:\n"
                               "  ä: 1\n"
                               "  yes: two\n"
                               "  pools:\n"
                               "  - name: a\n"
                               "    size:\n"
                               "      - 1\n"
                               "  - {name: b, äöü: [c, d]}\n"
                               "  a/b~c: |\n"
                               "    text\n"
                               "  empty:\n";
    static const struct place places[] = {
        {"", 3, 1, 3, 1},
        {"/spec", 3, 1, 4, 3},
        {"/spec/ä", 4, 3, 4, 6},
        {"/spec/true", 5, 3, 5, 8},
        {"/spec/pools", 6, 3, 7, 3},
        {"/spec/pools/0", 7, 5, 7, 5},
        {"/spec/pools/0/name", 7, 5, 7, 11},
        {"/spec/pools/0/size/0", 9, 9, 9, 9},
        {"/spec/pools/1", 10, 5, 10, 5},
        {"/spec/pools/1/name", 10, 6, 10, 12},
        {"/spec/pools/1/äöü/1", 10, 24, 10, 24},
        {"/spec/a~1b~0c", 11, 3, 11, 10},
        {"/spec/empty", 13, 3, 13, 9},
        /* nowhere: the nearest that is there */
        {"/none", 3, 1, 3, 1},
        {"/spec/none/x", 3, 1, 4, 3},
        {"/spec/pools/7/name", 6, 3, 7, 3},
        {"/spec/pools/-", 6, 3, 7, 3},
        {"/spec/pools/00", 6, 3, 7, 3},
        {"/spec/ä/x", 4, 3, 4, 6},
        {"spec", 3, 1, 3, 1},
        {"/spec/~", 3, 1, 4, 3},
    };
    (void)state;
    check(text, places, ARRAY_SIZE(places));
}

static void test_aliases(void **state)
{
    static const char text[] = "base: &b {x: 1, y2: 2}\n"
                               "more: &m {z: 3, <<: *b}\n"
                               "use: *b\n"
                               "all: {<<: [*m, {w: 4}], x: 9}\n";
    static const struct place places[] = {
        {"/use", 3, 1, 3, 6},     {"/use/x", 1, 11, 1, 14}, /* where it is written */
        {"/all/x", 4, 25, 4, 28}, {"/all/z", 2, 11, 2, 14},  {"/all/y2", 1, 17, 1, 21},
        {"/all/w", 4, 17, 4, 20}, {"/all/none", 4, 1, 4, 6}, {"/all/<<", 4, 1, 4, 6},
    };
    (void)state;
    check(text, places, ARRAY_SIZE(places));
}

static void test_json(void **state)
{
    static const char text[] = "{\"first\": 1} {\n"
                               "  \"a\": [1, \"x,]}\\\"\", {\"b\" : null}, []],\n"
                               "  \"ä\": {\"\": true}, \"\\u00e4\\/\" :-1.5e3,\n"
                               "  \"c\": \"ö\", \"d\": 2\n"
                               "}\n";
    static const struct place places[] = {
        {"", 1, 14, 1, 14},     {"/a", 2, 3, 2, 8},       {"/a/0", 2, 9, 2, 9},
        {"/a/1", 2, 12, 2, 12}, {"/a/2", 2, 22, 2, 22},   {"/a/2/b", 2, 23, 2, 29},
        {"/a/3", 2, 36, 2, 36}, {"/ä", 3, 3, 3, 8},       {"/ä/", 3, 9, 3, 13},
        {"/ä~1", 3, 20, 3, 32}, {"/d", 4, 13, 4, 18},     {"/none", 1, 14, 1, 14},
        {"/a/4", 2, 3, 2, 8},   {"/a/3/0", 2, 36, 2, 36}, {"/d/x", 4, 13, 4, 18},
    };
    (void)state;
    check(text, places, ARRAY_SIZE(places));
}

static void test_lines(void **state)
{
    static const char text[] = "a: 1\n---\r\nb: 2\r\n\nc: 3";
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, strlen(text));
    struct json_doc doc = {0};
    size_t len = 99;
    (void)state;
    assert_int_equal(json_stream_next(s, &doc, NULL), 1);
    assert_memory_equal(json_doc_line(&doc, 1, &len), "a: 1", 4);
    assert_int_equal(len, 4);
    assert_null(json_doc_line(&doc, 0, &len));
    assert_null(json_doc_line(&doc, 2, &len));
    json_doc_done(&doc);
    assert_int_equal(json_stream_next(s, &doc, NULL), 1);
    assert_null(json_doc_line(&doc, 1, &len));
    assert_memory_equal(json_doc_line(&doc, 3, &len), "b: 2", 4);
    assert_int_equal(len, 4);
    assert_non_null(json_doc_line(&doc, 4, &len));
    assert_int_equal(len, 0);
    assert_memory_equal(json_doc_line(&doc, 5, &len), "c: 3", 4);
    assert_null(json_doc_line(&doc, 6, &len));
    json_doc_done(&doc);
}

/* Values that share a line with others: columns and the line's text fit together. */
static void test_shared_line(void **state)
{
    static const char text[] = "{\"a\":1} {\"ä\":2} {\"c\":\n3}\n";
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, strlen(text));
    static const struct {
        const char *pointer, *line, *rest;
    } cases[] = {
        {"/a", "{\"a\":1}", NULL},
        {"/ä", "        {\"ä\":2}", NULL},
        {"/c", "                {\"c\":", "3}"},
    };
    struct json_doc doc = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_pos pos;
        size_t len = 0;
        assert_int_equal(json_stream_next(s, &doc, NULL), 1);
        assert_true(json_doc_locate(&doc, cases[i].pointer, JSON_DOC_KEY, &pos));
        assert_int_equal(pos.line, 1);
        assert_int_equal(pos.column, 8 * i + 2);
        const char *line = json_doc_line(&doc, 1, &len);
        assert_int_equal(len, strlen(cases[i].line));
        assert_memory_equal(line, cases[i].line, len);
        line = json_doc_line(&doc, 2, &len);
        assert_int_equal(line != NULL, cases[i].rest != NULL);
        if (line)
            assert_memory_equal(line, cases[i].rest, len);
    }
    json_doc_done(&doc);
}

/* Far to the right there is no line to show; a document costs no more for where it stands. */
static void test_far_right(void **state)
{
    _cleanup_(str_done) struct str text = {0};
    (void)state;
    for (unsigned i = 0; i < 200; i++)
        str_append(&text, "{\"a\":1}");
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text.p, text.len);
    struct json_doc doc = {0};
    size_t len, shown = 0;
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(json_stream_next(s, &doc, NULL), 1);
        if (json_doc_line(&doc, 1, &len)) {
            assert_int_equal(shown++, i);
            assert_int_equal(len, 7 * (i + 1));
        }
    }
    assert_in_range(shown, 20, 50);
    json_doc_done(&doc);
}

/* A document that does not parse has its lines, to show them, and no places. */
static void test_broken(void **state)
{
    static const char text[] = "a: 1\n---\nb: [\n";
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, strlen(text));
    struct json_doc doc = {0};
    struct json_pos pos;
    size_t len;
    (void)state;
    assert_int_equal(json_stream_next(s, &doc, NULL), 1);
    json_doc_done(&doc);
    assert_int_equal(json_stream_next(s, &doc, NULL), -1);
    assert_false(json_doc_locate(&doc, "", JSON_DOC_VALUE, &pos));
    assert_memory_equal(json_doc_line(&doc, doc.start.line, &len), "b: [", 4);
    json_doc_done(&doc);
    assert_false(json_doc_locate(&doc, "", JSON_DOC_VALUE, &pos));
    assert_null(json_doc_line(&doc, 1, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml),      cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_json),      cmocka_unit_test(test_lines),
        cmocka_unit_test(test_broken),    cmocka_unit_test(test_shared_line),
        cmocka_unit_test(test_far_right),
    };
    return cmocka_run_group_tests_name("locate", tests, NULL, NULL);
}

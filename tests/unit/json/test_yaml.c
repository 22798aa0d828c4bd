#include <stdio.h>

#include "json/doc.h"
#include "json/node.h"
#include "json/yaml.h"
#include "unit.h"

static int read_one(const char *text, size_t len, struct json_doc *ret_doc, struct err *e)
{
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text, len);
    return json_stream_next(s, ret_doc, e);
}

static void test_scalars(void **state)
{
    static const char *const cases[][2] = {
        {"yes", "true"},
        {"On", "true"},
        {"y", "true"},
        {"NO", "false"},
        {"yEs", "\"yEs\""},
        {"~", "null"},
        {"Null", "null"},
        {"0x1F", "31"},
        {"0o17", "15"},
        {"010", "8"},
        {"08", "8.0"},
        {"0b11", "3"},
        {"-0x1f", "-31"},
        {"1_000", "1000"},
        {"_1", "\"_1\""},
        {"1:30", "\"1:30\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"1e3", "1000.0"},
        {"1e400", "\"1e400\""},
        {"1.", "1.0"},
        {".5", "0.5"},
        {".5_0", "0.5"},
        {"._5", "\"._5\""},
        {".", "\".\""},
        {"-", "\"-\""},
        {"+", "\"+\""},
        {"0x", "\"0x\""},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9.223372036854776e+18"},
        {"+0xffffffffffffffff", "\"+0xffffffffffffffff\""},
        {"10.0.0.1", "\"10.0.0.1\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[128];
        snprintf(text, sizeof(text), "[\"%s\", !!str %s, %s]", cases[i][0], cases[i][0],
                 cases[i][0]);
        if (str_eq(cases[i][0], "-"))
            strcpy(text, "[\"-\", \"-\", \"-\"]");
        struct json_doc doc = {0};
        struct err e = {0};
        if (read_one(text, strlen(text), &doc, &e) != 1)
            fail_msg("%s: %s", text, e.msg);
        _cleanup_(str_done) struct str out = {0};
        json_format(json_array_get(doc.value, 2), &out);
        assert_string_equal(str_get(&out), cases[i][1]);
        for (size_t quoted = 0; quoted < 2; quoted++)
            assert_string_equal(json_string_value(json_array_get(doc.value, quoted)), cases[i][0]);
        json_doc_done(&doc);
    }
}

static void test_structures(void **state)
{
    static const char *const cases[][2] = {
        {"a: &a {x: 1}\nb: *a\nc: [*a, *a]\n",
         "{\"a\":{\"x\":1},\"b\":{\"x\":1},\"c\":[{\"x\":1},{\"x\":1}]}"},
        {"a: &a 1\nb: &a 2\nc: *a\n", "{\"a\":1,\"b\":2,\"c\":2}"},
        {"? &k key\n: 1\nb: *k\n*k : {}\n", NULL}, /* the alias is the same key */
        {"a: &a y\n? *a\n: 1\n", "{\"a\":true,\"true\":1}"},
        {"a: &a {x: 1, z: 3}\nb: {<<: *a, x: 2}\n",
         "{\"a\":{\"x\":1,\"z\":3},\"b\":{\"x\":2,\"z\":3}}"},
        {"a: &a {x: 1}\nb: {x: 2, <<: *a}\n", "{\"a\":{\"x\":1},\"b\":{\"x\":2}}"},
        {"<<: [{a: 1, b: 1}, {b: 2, c: 2}]\n", "{\"a\":1,\"b\":1,\"c\":2}"},
        {"<<: {a: 1}\n<<: {a: 2}\n", "{\"a\":2}"},
        {"'<<': 1\n", "{\"<<\":1}"},
        {"yes: 1\n0x10: 2\n1.50: 3\n1e3: 4\n1e30: 5\n-.inf: 6\n",
         "{\"true\":1,\"16\":2,\"1.5\":3,\"1000\":4,\"1e+30\":5,\"-.inf\":6}"},
        {"!!str yes: !!int '7'\n", "{\"yes\":7}"},
        {"a: |+\n  x\n\nb: >-\n  y\n  z\n", "{\"a\":\"x\\n\\n\",\"b\":\"y z\"}"},
        {"a: !!seq []\nb: !!map {}\nc: ! 1\n", "{\"a\":[],\"b\":{},\"c\":\"1\"}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_doc doc = {0};
        struct err e = {0};
        int r = read_one(cases[i][0], strlen(cases[i][0]), &doc, &e);
        if (!cases[i][1]) {
            assert_int_equal(r, -1);
            assert_string_equal(e.reason, "DuplicateKey");
        } else {
            if (r != 1)
                fail_msg("%s: %s", cases[i][0], e.msg);
            _cleanup_(str_done) struct str out = {0};
            json_format(doc.value, &out);
            assert_string_equal(str_get(&out), cases[i][1]);
        }
        json_doc_done(&doc);
    }
}

static void test_refuses(void **state)
{
    static const struct {
        const char *in;
        unsigned line, column;
        const char *says;
    } cases[] = {
        {"a: 1\nb: 1\na: 2\n", 3, 1, "\"a\" is here twice, first at line 1, column 1"},
        {"---\n---\nyes: 1\non: 2\n", 4, 1, "\"true\" is here twice, first at line 3, column 1"},
        {"a: .inf\n", 1, 4, "finite number"},
        {"a: -.INF\n", 1, 4, "finite number"},
        {"a: .nan\n", 1, 4, "finite number"},
        {"a: !foo 1\n", 1, 4, "\"!foo\" has no meaning"},
        {"a: !!binary aGk=\n", 1, 4, "\"!!binary\" has no meaning"},
        {"a: !!seq {}\n", 1, 4, "\"!!seq\" has no meaning"},
        {"a: !!int x\n", 1, 4, "not what its tag !!int says"},
        {"a: !!null x\n", 1, 4, "not what its tag !!null says"},
        {"a: \"\\0\"\n", 1, 4, "cannot contain"},
        {"\"\\0\": 1\n", 1, 1, "cannot contain"},
        {"~: 1\n", 1, 1, "write \"~\" in quotes"},
        {": 1\n", 1, 1, "no key in front of"},
        {"?\n: 1\n", 1, 2, "no key in front of"},
        {"[a]: 1\n", 1, 1, "a key must be a single value"},
        {"a: {{ .x }}\n", 1, 5, "template"},
        {"a: &a [b]\n*a : 1\n", 2, 1, "a key must be a single value"},
        {"a: *b\n", 1, 4, "\"&b\""},
        {"a: &a [*a]\n", 1, 8, "inside the value it names"},
        {"a: {<<: 1}\n", 1, 9, "merges a map"},
        {"a: {<<: [{}, 1]}\n", 1, 9, "merges a map"},
        {"a: {<<: {b: .inf}}\n", 1, 13, "finite number"},
        {"a: {<<: [{b: .inf}]}\n", 1, 14, "finite number"},
        {"a\r--- b\n", 2, 1, "second document"},
        {"%YAML 3.0\n---\na\n", 1, 1, "incompatible"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_doc doc = {0};
        struct err e = {0};
        if (read_one(cases[i].in, strlen(cases[i].in), &doc, &e) != -1)
            fail_msg("%s is taken", cases[i].in);
        if (!strstr(e.msg, cases[i].says) || doc.start.line != cases[i].line ||
            doc.start.column != cases[i].column)
            fail_msg("%s: %u:%u %s", cases[i].in, doc.start.line, doc.start.column, e.msg);
        json_doc_done(&doc);
        assert_int_equal(read_one(cases[i].in, strlen(cases[i].in), &doc, NULL), -1);
        json_doc_done(&doc);
    }
}

static void repeat(struct str *out, const char *text, unsigned n)
{
    while (n--)
        str_append(out, text);
}

static void refuses(const struct str *text, const char *says)
{
    struct json_doc doc = {0};
    struct err e = {0};
    assert_int_equal(read_one(text->p, text->len, &doc, &e), -1);
    if (!strstr(e.msg, says))
        fail_msg("%s", e.msg);
    json_doc_done(&doc);
}

static void test_limits(void **state)
{
    _cleanup_(str_done) struct str text = {0};
    struct json_doc doc = {0};
    struct err e = {0};
    (void)state;

    repeat(&text, "- ", JSON_MAX_DEPTH);
    str_append(&text, "a\n");
    assert_int_equal(read_one(text.p, text.len, &doc, &e), 1);
    assert_int_equal(json_depth(doc.value), JSON_MAX_DEPTH);
    json_doc_done(&doc);
    str_clear(&text);
    repeat(&text, "- ", JSON_MAX_DEPTH + 1);
    str_append(&text, "a\n");
    refuses(&text, "nested too deeply");
    str_clear(&text);
    repeat(&text, "[", 100000);
    refuses(&text, "nested too deeply");

    /* an alias that only becomes too deep where it stands */
    str_clear(&text);
    str_append(&text, "a: &a ");
    repeat(&text, "[", 200);
    repeat(&text, "]", 200);
    str_append(&text, "\nb: ");
    repeat(&text, "[", 100);
    str_append(&text, "*a");
    repeat(&text, "]", 100);
    refuses(&text, "aliases expanded");

    str_clear(&text);
    str_append(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (unsigned i = 1; i < 10; i++) {
        str_appendf(&text, "a%u: &a%u [", i, i);
        for (unsigned j = 0; j < 10; j++)
            str_appendf(&text, "*a%u,", i - 1);
        str_append(&text, "]\n");
    }
    refuses(&text, "with the aliases expanded");

    /* few nodes, much text */
    str_clear(&text);
    str_append(&text, "a: &a ");
    repeat(&text, "0123456789", 100000);
    str_append(&text, "\nb: [");
    repeat(&text, "*a,", 1000);
    str_append(&text, "]\n");
    refuses(&text, "bytes of text");

    str_clear(&text);
    str_append(&text, "[");
    repeat(&text, "a,", JSON_MAX_NODES);
    str_append(&text, "]");
    refuses(&text, "more than 1000000 values");
}

/* libyaml's time for directives grows with the square of their number. */
static void test_directives(void **state)
{
    static const char *const breaks[] = {"\n", "\r\n", "\r", "\xc2\x85", "\xe2\x80\xa8"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(breaks); i++) {
        _cleanup_(str_done) struct str text = {0};
        struct json_doc doc = {0};
        struct err e = {0};
        for (unsigned n = 0; n < 64; n++)
            str_appendf(&text, "%%TAG !%u! x%s", n, breaks[i]);
        size_t directives = text.len;
        str_appendf(&text, "---%sa: |%s  %%TAG%s", breaks[i], breaks[i], breaks[i]);
        if (read_one(text.p, text.len, &doc, &e) != 1)
            fail_msg("%zu: %s", i, e.msg);
        json_doc_done(&doc);

        str_truncate(&text, directives);
        for (unsigned n = 64; n < 100000; n++)
            str_appendf(&text, "%%TAG !%u! x%s", n, breaks[i]);
        str_append(&text, "---\na: 1\n");
        refuses(&text, "more than 64 \"%TAG\" directives");
    }
}

/* Large maps are read in time that grows with their size only. */
static void test_large_map(void **state)
{
    enum { N = 200000 };
    _cleanup_(str_done) struct str text = {0};
    struct json_doc doc = {0};
    struct err e = {0};
    (void)state;
    for (unsigned i = 0; i < N; i++)
        str_appendf(&text, "key%u: %u\n", i, i);
    assert_int_equal(read_one(text.p, text.len, &doc, &e), 1);
    assert_int_equal(json_object_size(doc.value), N);
    json_doc_done(&doc);
    str_append(&text, "key7: again\n");
    refuses(&text, "first at line 8, column 1");
}

static void test_writes(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "{}\n"},
        {"[]", "[]\n"},
        {"\"\"", "\"\"\n"},
        {"{\"b\":1,\"a\":[1,{\"c\":null,\"d\":[]},[2,[3]],\"x\"],\"e\":{\"f\":{}}}",
         "b: 1\na:\n- 1\n- c: null\n  d: []\n- - 2\n  - - 3\n- x\ne:\n  f: {}\n"},
        {"{\"a\":\"x\\ny\\n\",\"b\":[\"x\\ny\",\"z\"]}",
         "a: |\n  x\n  y\nb:\n- |-\n  x\n  y\n- z\n"},
        {"[[\"x\\n\\n\",{\"a\":\" x\\ny\\n\"}]]",
         "- - |+\n    x\n\n  - a: |2\n       x\n      y\n"},
        {"\"a\\n\\n  b\\n\"", "|\n  a\n\n    b\n"},
        {"\"\\n\"", "\"\\n\"\n"},
        {"\"a\\r\\nb\"", "\"a\\r\\nb\"\n"},
        {"[1.0,1e30,0.1,-5,true]", "- 1.0\n- 1.0e+30\n- 0.1\n- -5\n- true\n"},
        {"\"\\u0007\\u001b\\u0001\\u007f\\u0085\\u2028\\ufeff\\uffff\\\"\\\\\"",
         "\"\\a\\e\\x01\\x7f\\x85\\u2028\\ufeff\\uffff\\\"\\\\\"\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = json_parse(cases[i][0], strlen(cases[i][0]), NULL, NULL);
        assert_non_null(value);
        _cleanup_(str_done) struct str out = {0};
        json_yaml_format(value, &out);
        assert_string_equal(str_get(&out), cases[i][1]);
        struct json_doc doc = {0};
        assert_int_equal(read_one(out.p, out.len, &doc, NULL), 1);
        assert_true(json_equal(doc.value, value));
        json_doc_done(&doc);
    }
}

static void test_quotes_what_needs_it(void **state)
{
    static const char *const quoted[] = {
        "",
        "y",
        "On",
        "no",
        "~",
        "null",
        "1",
        "-1",
        "1e3",
        "1E+3",
        "0x1",
        "0o17",
        "0b1",
        "1_000",
        "1.",
        ".5",
        "1e400",
        ".inf",
        ".NaN",
        "1:30",
        "12:30:45",
        "2001-01-01",
        "2001-01-01T00:00:00Z",
        "=",
        "<<",
        " x",
        "x ",
        "- a",
        "-",
        "---",
        "--- a",
        "...",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "? a",
        "?",
        ":",
        ": a",
        ",a",
        "[a",
        "]a",
        "{a",
        "}a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "\"a",
        "'a",
        "a\tb",
        "-,",
        "+1",
        "1_",
        "+.inf",
        "08",
    };
    static const char *const plain[] = {
        "a",
        "a b",
        "-a",
        "a:b",
        "a#b",
        "10.0.0.1",
        "1.2.3",
        "v1",
        "1Gi",
        "100m",
        "http://x:80/y?z=1#a",
        "a/b",
        "a,b",
        "a]b",
        "yEs",
        "nope",
        "x=1",
        "ä",
        "日本",
        "+a",
        "a'b",
        "a\"b",
        "5%",
        "/dev/sd",
        "0.0.0.0/0",
        "1-2",
        "$x",
        "(a)",
        "<a>",
        "a\\b",
        "::1",
        "?a",
        ":a",
        "no way",
        "😀",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(quoted) + ARRAY_SIZE(plain); i++) {
        bool quotes = i < ARRAY_SIZE(quoted);
        const char *text = quotes ? quoted[i] : plain[i - ARRAY_SIZE(quoted)];
        json_auto_t *value = json_pack("{s:s,s:[s]}", text, text, "list", text);
        _cleanup_(str_done) struct str out = {0};
        json_yaml_format(value, &out);
        if ((out.p[0] == '"') != quotes)
            fail_msg("%s: %s", text, out.p);
        struct json_doc doc = {0};
        struct err e = {0};
        if (read_one(out.p, out.len, &doc, &e) != 1)
            fail_msg("%s: %s", out.p, e.msg);
        assert_true(json_equal(doc.value, value));
        json_doc_done(&doc);
    }
}

static void test_long_keys(void **state)
{
    (void)state;
    for (size_t len = 900; len < 1200; len += 20) {
        _cleanup_free_ char *key = mem_zalloc(len + 1);
        memset(key, 'k', len);
        for (unsigned kind = 0; kind < 3; kind++) {
            json_auto_t *value = kind == 0   ? json_pack("{s:i}", key, 1)
                                 : kind == 1 ? json_pack("[{s:[i]}]", key, 1)
                                             : json_pack("{s:{s:s}}", "a", key, "x\ny");
            _cleanup_(str_done) struct str out = {0};
            json_yaml_format(value, &out);
            struct json_doc doc = {0};
            assert_int_equal(read_one(out.p, out.len, &doc, NULL), 1);
            assert_true(json_equal(doc.value, value));
            json_doc_done(&doc);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),    cmocka_unit_test(test_structures),
        cmocka_unit_test(test_refuses),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_directives), cmocka_unit_test(test_large_map),
        cmocka_unit_test(test_writes),     cmocka_unit_test(test_quotes_what_needs_it),
        cmocka_unit_test(test_long_keys),
    };
    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}

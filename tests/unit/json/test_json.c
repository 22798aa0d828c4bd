#include <stdio.h>

#include "base/mem.h"
#include "json/json.h"
#include "jsontest.h"

static void test_parses_and_formats(void **state)
{
    static const struct {
        const char *in, *compact;
    } cases[] = {
        {"{}", "{}"},
        {" [ ] ", "[]"},
        {"null", "null"},
        {"true", "true"},
        {"\"x\"", "\"x\""},
        {"-0", "0"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"0.1", "0.1"},
        {"1.0", "1.0"},
        {"1e3", "1000.0"},
        {"1e30", "1.0e+30"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "4.94065645841247e-324"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"{\"b\": 1, \"a\": [1, {\"c\": null}, []]}", "{\"b\":1,\"a\":[1,{\"c\":null},[]]}"},
        {"\"\\u00e4\\ud83d\\ude00\\/\"", "\"ä😀/\""},
        {"\"\\b\\f\\n\\r\\t\\\"\\\\\\u0001\\u001f\\u007f\"",
         "\"\\b\\f\\n\\r\\t\\\"\\\\\\u0001\\u001f\x7f\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = parse_json(cases[i].in);
        _cleanup_(str_done) struct str out = {0};
        json_format(value, &out);
        assert_string_equal(str_get(&out), cases[i].compact);
        json_auto_t *again = parse_json(str_get(&out));
        assert_true(json_equal(value, again));
    }
}

static void add_path(void *context, const char *path)
{
    str_appendf(context, "%s;", path);
}

static void test_members_twice(void **state)
{
    static const struct {
        const char *in, *out, *paths; /* out NULL: it is refused */
    } cases[] = {
        {"{'a': 1}", "{\"a\":1}", ""},
        {"{'a': 1, 'a': 2}", "{\"a\":2}", "a;"},
        {"{'a': 1, 'a': 2, 'a': [3]}", "{\"a\":[3]}", "a;a;"},
        {" { 'a' : { 'b' : [ 1 , { 'c' : 1 , 'c' : '}' } ] } } ",
         "{\"a\":{\"b\":[1,{\"c\":\"}\"}]}}", "a.b[1].c;"},
        {"{'x\\u0079': 1, 'xy': 2, 'z': '\\\\', 'z': true}", "{\"xy\":2,\"z\":true}", "xy;z;"},
        {"[{'a': 1}, {'a': 1}]", "[{\"a\":1},{\"a\":1}]", ""},
        {"[[], {}, {'a': {}, 'a': []}]", "[[],{},{\"a\":[]}]", "[2].a;"},
        {"{'a': 1, 'a': 2", NULL, ""},
        {"{'a': 1, 'a': }", NULL, ""},
        {"", NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(str_done) struct str text = {0}, paths = {0}, out = {0};
        for (const char *c = cases[i].in; *c; c++)
            str_append_c(&text, *c == '\'' ? '"' : *c);
        struct err e = {0};
        json_auto_t *value = json_parse_last(str_get(&text), text.len, add_path, &paths, &e);
        assert_string_equal(str_get(&paths), cases[i].paths);
        assert_int_equal(value != NULL, cases[i].out != NULL);
        assert_int_equal(e.code == ERR_OK, value != NULL);
        if (value)
            json_format(value, &out);
        assert_string_equal(str_get(&out), cases[i].out ? cases[i].out : "");
    }
    char deep[JSON_MAX_DEPTH + 10];
    memset(deep, '[', sizeof(deep));
    struct err e = {0};
    assert_null(json_parse_last(deep, sizeof(deep), add_path, NULL, &e));
    assert_string_equal(e.reason, "TooDeep");
}

static void test_pretty(void **state)
{
    json_auto_t *value = parse_json("{\"a\":[1,{\"b\":{}}],\"c\":[]}");
    _cleanup_(str_done) struct str out = {0};
    (void)state;
    json_format_pretty(value, &out);
    assert_string_equal(str_get(&out), "{\n"
                                       "  \"a\": [\n"
                                       "    1,\n"
                                       "    {\n"
                                       "      \"b\": {}\n"
                                       "    }\n"
                                       "  ],\n"
                                       "  \"c\": []\n"
                                       "}");
}

static void test_refuses(void **state)
{
    static const struct {
        const char *in;
        unsigned line, column;
        const char *says;
    } cases[] = {
        {"", 1, 1, "there is no JSON value"},
        {" \n ", 2, 2, "there is no JSON value"},
        {"{\"a\": 1,}", 1, 9, "remove the comma"},
        {"[1, 2,\n]", 2, 1, "remove the comma"},
        {"{'a': 1}", 1, 2, "double quotes"},
        {"{\"a\": 'b'}", 1, 7, "double quotes"},
        {"{\n  \"ä\": 1 // why\n}", 2, 10, "JSON has no comments"},
        {"/* x */ {}", 1, 1, "JSON has no comments"},
        {"# x\n{}", 1, 1, "JSON has no comments"},
        {"{\"a\" 1}", 1, 6, "write \":\" between the key and 1"},
        {"{\"a\"}", 1, 5, "write \":\" between"},
        {"{\"a\": 1 \"b\": 2}", 1, 9, "write a comma in front of \"b\""},
        {"[1 2]", 1, 4, "write a comma in front of 2"},
        {"{a: 1}", 1, 2, "keys are strings in double quotes"},
        {"{\"a\": True}", 1, 7, "write true, false or null"},
        {"{\"a\": undefined}", 1, 7, "write true, false or null"},
        {"[NaN]", 1, 2, "JSON has no such number"},
        {"[nul]", 1, 2, "nul has no place here"},
        {"[01]", 1, 2, "leading zeros"},
        {"[0x1f]", 1, 2, "decimal"},
        {"[+1]", 1, 2, "starts with a digit"},
        {"[-]", 1, 2, "a value is expected"},
        {"[1.]", 1, 2, "a value is expected"},
        {"{\"a\": }", 1, 7, "a value is expected"},
        {"[“x”]", 1, 2, "typographic quote"},
        {"[1, 2", 1, 1, "never closed; write its \"]\""},
        {"{\"a\": [1],\n \"b\": {", 2, 7, "never closed; write its \"}\""},
        {"[\"abc", 1, 2, "has no end"},
        {"{\"a\": \"b\n\"}", 1, 7, "does not end on its line"},
        {"{\"a\": \"b\tc\"}", 1, 9, "control character"},
        {"[\"\\x\"]", 1, 3, "no such escape"},
        {"[\"ab\\u12g4\"]", 1, 5, "no such escape"},
        {"[\"\\u0000\"]", 1, 2, "cannot contain \\u0000"},
        {"{\"a\\u0000\": 1}", 1, 2, "cannot contain \\u0000"},
        {"[\"\\ud800\"]", 1, 2, "half a character"},
        {"[\"ä\xff\"]", 1, 4, "not UTF-8"},
        {"{\"ä\": 1,\n   \"ä\": 2}", 2, 4, "the key \"ä\" is here twice"},
        {"[12345678901234567890]", 1, 2, "too large"},
        {"[1e999]", 1, 2, "too large"},
        {"{} x", 1, 4, "after the end"},
        {"{} {}", 1, 4, "after the end"},
        {"]", 1, 1, "a value is expected"},
        {"\xef\xbb\xbf{}", 1, 1, "no place here"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        struct json_pos pos = {0, 0};
        if (json_parse(cases[i].in, strlen(cases[i].in), &pos, &e))
            fail_msg("%s parses", cases[i].in);
        char prefix[64];
        snprintf(prefix, sizeof(prefix), "line %u, column %u: ", cases[i].line, cases[i].column);
        if (!str_starts_with(e.msg, prefix) || !strstr(e.msg, cases[i].says) ||
            pos.line != cases[i].line || pos.column != cases[i].column)
            fail_msg("%s: %s", cases[i].in, e.msg);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_null(json_parse(cases[i].in, strlen(cases[i].in), NULL, NULL));
    }
}

static void test_text_need_not_end_with_nul(void **state)
{
    (void)state;
    json_auto_t *value = json_parse("[1]]", 3, NULL, NULL);
    assert_non_null(value);
    assert_null(json_parse("[\0]", 3, NULL, NULL));
}

static char *nested(unsigned depth)
{
    struct str s = {0};
    for (unsigned i = 0; i < depth; i++)
        str_append_c(&s, '[');
    for (unsigned i = 0; i < depth; i++)
        str_append_c(&s, ']');
    return str_take(&s);
}

static void test_limits(void **state)
{
    struct err e = {0};
    struct json_pos pos;
    (void)state;

    _cleanup_free_ char *deep = nested(JSON_MAX_DEPTH);
    json_auto_t *value = parse_json(deep);
    assert_int_equal(json_depth(value), JSON_MAX_DEPTH);

    _cleanup_free_ char *deeper = nested(JSON_MAX_DEPTH + 1);
    assert_null(json_parse(deeper, strlen(deeper), &pos, &e));
    assert_string_equal(e.reason, "TooDeep");
    assert_int_equal(pos.column, JSON_MAX_DEPTH + 1);

    _cleanup_(str_done) struct str many = {0};
    str_append(&many, "[0");
    for (unsigned i = 0; i < JSON_MAX_NODES; i++)
        str_append(&many, ",0");
    str_append(&many, "]");
    assert_null(json_parse(many.p, many.len, &pos, &e));
    assert_string_equal(e.reason, "TooLarge");

    size_t large = (size_t)JSON_MAX_BYTES + 1;
    _cleanup_free_ char *blanks = mem_alloc(large);
    memset(blanks, ' ', large);
    blanks[0] = '1';
    assert_null(json_parse(blanks, large, &pos, &e));
    assert_string_equal(e.reason, "TooLarge");
    json_auto_t *one = json_parse(blanks, large - 1, &pos, &e);
    assert_non_null(one);
}

static void test_walks(void **state)
{
    json_auto_t *value = parse_json("{\"spec\":{\"pools\":[1],\"name\":\"x\",\"n\":1}}");
    (void)state;
    assert_true(json_is_array(json_at(value, "spec", "pools")));
    assert_null(json_at(value, "spec", "none", "pools"));
    assert_null(json_at(value, "spec", "pools", "name"));
    assert_null(json_at(NULL, "spec"));
    const json_t *spec = json_at(value, "spec");
    assert_string_equal(json_str(spec, "name"), "x");
    assert_null(json_str(spec, "n"));
    assert_null(json_str(spec, "none"));
    assert_null(json_str(NULL, "none"));
}

static void test_type_names(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "object"},  {"[]", "array"},     {"\"\"", "string"},   {"1", "integer"},
        {"1.5", "number"}, {"true", "boolean"}, {"false", "boolean"}, {"null", "null"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = parse_json(cases[i][0]);
        assert_string_equal(json_type_name(value), cases[i][1]);
    }
}

static void test_depth(void **state)
{
    static const struct {
        const char *in;
        unsigned depth;
    } cases[] = {
        {"1", 0}, {"[]", 1}, {"{}", 1}, {"[1,[2],{\"a\":[[3]]},4]", 4}, {"[[],[]]", 2},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *value = parse_json(cases[i].in);
        assert_int_equal(json_depth(value), cases[i].depth);
    }
}

static void test_members(void **state)
{
    (void)state;
    json_auto_t *o = parse_json("{\"a\":{\"b\":\"x\",\"n\":1},\"l\":[1]}");
    assert_string_equal(json_text(o, "a", "b"), "x");
    assert_string_equal(json_text(o, "a", "n"), "");
    assert_string_equal(json_text(o, "l", "b"), "");
    assert_string_equal(json_text(NULL, "a"), "");
    assert_int_equal(json_array_size(json_array_at(o, "l")), 1);
    json_object_set_new(json_object_at(o, "made"), "k", json_true());
    json_array_append_new(json_array_at(json_object_at(o, "made"), "list"), json_null());
    assert_true(json_is_array(json_object_at(o, "l"))); /* of another type: it stays */
    json_auto_t *wanted = parse_json("{\"a\":{\"b\":\"x\",\"n\":1},\"l\":[1],"
                                     "\"made\":{\"k\":true,\"list\":[null]}}");
    assert_json(o, wanted, "members");
    json_auto_t *list = parse_json("[1,{\"n\":\"x\"},{\"n\":\"y\",\"v\":2}]");
    assert_ptr_equal(json_find(list, "n", "y"), json_array_get(list, 2));
    assert_null(json_find(list, "n", "z"));
    assert_null(json_find(NULL, "n", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),       cmocka_unit_test(test_parses_and_formats),
        cmocka_unit_test(test_members_twice), cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_refuses),       cmocka_unit_test(test_text_need_not_end_with_nul),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_type_names),    cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}

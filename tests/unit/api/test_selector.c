#include <stdio.h>

#include "api/selector.h"
#include "jsontest.h"

static void test_formats_what_it_reads(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {" \t\r\n ", ""},
        {"a", "a"},
        {"!a", "!a"},
        {"! a", "!a"},
        {"a=b", "a=b"},
        {"a==b", "a==b"},
        {"a!=b", "a!=b"},
        {"a = b", "a=b"},
        {"  a\t!=\nb , c ", "a!=b,c"},
        {"a=", "a="},
        {"a!=", "a!="},
        {"a=,b", "a=,b"},
        {"z,y=1,x in (c,b,a,b)", "x in (a,b,c),y=1,z"},
        {"a in (b)", "a in (b)"},
        {"a in(b)", "a in (b)"},
        {"a notin (b,c)", "a notin (b,c)"},
        {"a in ()", "a in ()"},
        {"a in (,)", "a in ()"},
        {"a in (b,)", "a in (,b)"},
        {"a in (,,b,,)", "a in (,b)"},
        {"a>1", "a>1"},
        {"a<007", "a<007"},
        {"a > 9223372036854775807", "a>9223372036854775807"},
        {"in", "in"},
        {"in in (in,notin)", "in in (in,notin)"},
        {"notin notin (in)", "notin notin (in)"},
        {"in=notin", "in=notin"},
        {"!in,!notin", "!in,!notin"},
        {"example.com/a=b,A.b_c-9", "A.b_c-9,example.com/a=b"},
        {"a=1,a=2,a!=3,a", "a=1,a=2,a!=3,a"},
        {"a=B.c_D-1", "a=B.c_D-1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_selector s;
        struct err e = {0};
        _cleanup_(str_done) struct str out = {0};
        if (api_selector_parse(cases[i][0], &s, &e) < 0)
            fail_msg("%s: %s", cases[i][0], e.msg);
        api_selector_format(&s, &out);
        assert_string_equal(str_get(&out), cases[i][1]);
        api_selector_done(&s);
    }
}

static void test_refuses(void **state)
{
    static const char *const cases[][2] = {
        {",", "character 1: found ',', expected a label key or '!'"},
        {"a,", "character 3: found the end, expected a label key or '!'"},
        {"a,,b", "character 3: found ',', expected a label key or '!'"},
        {"a=b,)", "character 5: found ')', expected a label key"},
        {"=b", "character 1: found '='"},
        {"!", "character 2: found the end, expected a label key"},
        {"!!a", "character 2: found '!', expected a label key"},
        {"!a=b", "character 3: found '=', expected ',' or the end"},
        {"a b", "character 3: found 'b', expected one of = == != in notin < >"},
        {"a=b c", "character 5: found 'c', expected ',' or the end"},
        {"a===b", "character 4: found '=', expected a value"},
        {"a=!b", "character 3: found '!', expected a value"},
        {"a=<b", "character 3: found '<'"},
        {"a=(b)", "character 3: found '(', expected a value"},
        {"a in", "character 5: found the end, expected '(' and a list of values"},
        {"a in b", "character 6: found 'b', expected '('"},
        {"a in (", "character 7: found the end, expected a value, ',' or ')'"},
        {"a in (b", "character 8: found the end, expected ',' or ')'"},
        {"a in (b c)", "character 9: found 'c', expected ',' or ')'"},
        {"a in (b=c)", "character 8: found '=', expected ',' or ')'"},
        {"a in (=)", "character 7: found '=', expected a value"},
        {"a in ((b))", "character 7: found '('"},
        {"a in (b))", "character 9: found ')', expected ',' or the end"},
        {"a in (b) c", "character 10: found 'c', expected ',' or the end"},
        {"a IN (b)", "character 3: found 'IN', expected one of"},
        {"\"a\"", "character 1: \"\"a\"\" is no label key: must consist of"},
        {"-a", "character 1: \"-a\" is no label key"},
        {"x,a/b/c", "character 3: \"a/b/c\" is no label key"},
        {"/a", "\"/a\" is no label key: the part before '/' must be a DNS name"},
        {"A/a", "\"A/a\" is no label key: the part before '/' must be a DNS name"},
        {"a=-b", "character 1: \"-b\" is no value for the label a: must be empty or"},
        {"a=b/c", "\"b/c\" is no value for the label a"},
        {"a in (b,c.)", "\"c.\" is no value for the label a"},
        {"a>b", "\"b\" is no value for the label a: must be a whole number"},
        {"a>", "\"\" is no value for the label a: must be a whole number"},
        {"a>-1", "\"-1\" is no value for the label a: must be empty or consist"},
        {"a>1.5", "must be a whole number"},
        {"a<9223372036854775808", "must be a whole number"},
        {"ä=ö,ü", "character 1: \"ä\" is no label key"},
        {"a=\033[31m", "\"?[31m\" is no value for the label a"},
        {"a=\xff\xfe", "\"??\" is no value for the label a"},
        {"a=b,é", "character 5: \"é\" is no label key"},
        {"0123456789012345678901234567890123456789012345678901234567890123", "is no label key"},
        {"a=0123456789012345678901234567890123456789012345678901234567890123", "is no value"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_selector s;
        struct err e = {0};
        if (api_selector_parse(cases[i][0], &s, &e) == 0)
            fail_msg("%s: not refused", cases[i][0]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], e.msg);
        assert_int_equal(s.requirements.len, 0);
        assert_int_equal(api_selector_parse(cases[i][0], &s, NULL), -1);
    }
}

static bool matches(const char *selector, const char *labels)
{
    struct api_selector s;
    struct err e = {0};
    json_auto_t *object = labels ? parse_json(labels) : NULL;
    if (api_selector_parse(selector, &s, &e) < 0)
        fail_msg("%s: %s", selector, e.msg);
    bool r = api_selector_matches(&s, object);
    api_selector_done(&s);
    return r;
}

static void test_matches(void **state)
{
    static const struct {
        const char *selector, *labels;
        bool match;
    } cases[] = {
        {"", NULL, true},
        {"", "{}", true},
        {"a", NULL, false},
        {"!a", NULL, true},
        {"a", "{\"a\": \"\"}", true},
        {"!a", "{\"a\": \"\"}", false},
        {"a=b", "{\"a\": \"b\"}", true},
        {"a==b", "{\"a\": \"b\"}", true},
        {"a=b", "{\"a\": \"B\"}", false},
        {"a=", "{\"a\": \"\"}", true},
        {"a=", "{}", false},
        {"a!=b", "{}", true},
        {"a!=b", "{\"a\": \"b\"}", false},
        {"a!=b", "{\"a\": \"c\"}", true},
        {"a!=", "{\"a\": \"\"}", false},
        {"a in (x,b,y)", "{\"a\": \"b\"}", true},
        {"a in (x,y)", "{\"a\": \"b\"}", false},
        {"a in (x,y)", "{}", false},
        {"a in (,y)", "{\"a\": \"\"}", true},
        {"a notin (x,y)", "{}", true},
        {"a notin (x,y)", "{\"a\": \"y\"}", false},
        {"a notin (x,y)", "{\"a\": \"z\"}", true},
        {"a>1", "{\"a\": \"2\"}", true},
        {"a>1", "{\"a\": \"1\"}", false},
        {"a<10", "{\"a\": \"9\"}", true},
        {"a<10", "{\"a\": \"010\"}", false},
        {"a>1", "{\"a\": \"x\"}", false},
        {"a>1", "{\"a\": \"\"}", false},
        {"a>1", "{}", false},
        {"a<1", "{\"a\": \"-5\"}", true},
        {"a>1", "{\"a\": \" 5\"}", false},
        {"a>1", "{\"a\": \"99999999999999999999\"}", false},
        {"a=b,c=d", "{\"a\": \"b\", \"c\": \"d\", \"e\": \"f\"}", true},
        {"a=b,c=d", "{\"a\": \"b\"}", false},
        {"a,a!=b", "{\"a\": \"b\"}", false},
        {"x/a=b", "{\"x/a\": \"b\"}", true},
        {"a", "{\"a\": 5}", false},
        {"a", "[\"a\"]", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (matches(cases[i].selector, cases[i].labels) != cases[i].match)
            fail_msg("%s on %s", cases[i].selector, cases[i].labels);
    }
}

static void test_reads_json(void **state)
{
    static const char *const cases[][2] = {
        {"{}", ""},
        {"{\"matchLabels\": null, \"matchExpressions\": null}", ""},
        {"{\"matchLabels\": {\"b\": \"2\", \"a\": \"1\"}}", "a=1,b=2"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": [\"z\", "
         "\"b\"]}]}",
         "a in (b,z)"},
        {"{\"matchExpressions\": [{\"key\": \"b\", \"operator\": \"Exists\"}, {\"key\": \"a\", "
         "\"operator\": \"DoesNotExist\", \"values\": []}]}",
         "!a,b"},
        {"{\"matchLabels\": {\"a\": \"1\"}, \"matchExpressions\": [{\"key\": \"a\", "
         "\"operator\": \"NotIn\", \"values\": [\"2\", \"2\"]}]}",
         "a=1,a notin (2,2)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_selector s;
        struct err e = {0};
        _cleanup_(str_done) struct str out = {0};
        json_auto_t *object = parse_json(cases[i][0]);
        if (api_selector_from_json(object, &s, &e) < 0)
            fail_msg("%s: %s", cases[i][0], e.msg);
        api_selector_format(&s, &out);
        assert_string_equal(str_get(&out), cases[i][1]);
        assert_true(s.requirements.len || api_selector_matches(&s, NULL));
        api_selector_done(&s);
    }
    struct api_selector nothing;
    assert_int_equal(api_selector_from_json(NULL, &nothing, NULL), 0);
    assert_false(api_selector_matches(&nothing, NULL));
    api_selector_done(&nothing);
}

static void test_refuses_json(void **state)
{
    static const char *const cases[][2] = {
        {"[]", "must be an object"},
        {"\"a=b\"", "must be an object"},
        {"{\"matchLabels\": []}", "matchLabels must be a map"},
        {"{\"matchLabels\": {\"a\": 1}}", "matchLabels: the value of a must be a string"},
        {"{\"matchLabels\": {\"a b\": \"1\"}}", "matchLabels: \"a b\" is no label key"},
        {"{\"matchLabels\": {\"a\": \"b c\"}}", "matchLabels: \"b c\" is no value for the label a"},
        {"{\"matchExpressions\": {}}", "matchExpressions must be a list"},
        {"{\"matchExpressions\": [{\"operator\": \"In\"}]}",
         "matchExpressions[0]: an expression must have key and operator"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"Gt\", \"values\": [\"1\"]}]}",
         "\"Gt\" is no operator; write In, NotIn, Exists or DoesNotExist"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": []}]}",
         "the label a must have at least one value"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"NotIn\"}]}",
         "the label a must have at least one value"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"Exists\", \"values\": [\"\"]}]}",
         "the label a must have no values"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": \"b\"}]}",
         "values must be a list"},
        {"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": [true]}]}",
         "values[0] must be a string"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_selector s;
        struct err e = {0};
        json_auto_t *object = parse_json(cases[i][0]);
        if (api_selector_from_json(object, &s, &e) == 0)
            fail_msg("%s: not refused", cases[i][0]);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], e.msg);
    }
}

static void test_has_limits(void **state)
{
    (void)state;
    struct api_selector s;
    struct err e = {0};
    _cleanup_(str_done) struct str text = {0};
    for (int i = 0; i < API_SELECTOR_MAX_TERMS; i++)
        str_appendf(&text, "%sk%d", i ? "," : "", i * 7919 % API_SELECTOR_MAX_TERMS);
    assert_int_equal(api_selector_parse(str_get(&text), &s, &e), 0);
    for (size_t i = 1; i < s.requirements.len; i++)
        assert_true(strcmp(s.requirements.p[i - 1].key, s.requirements.p[i].key) < 0);
    api_selector_done(&s);
    str_append(&text, ",k");
    assert_int_equal(api_selector_parse(str_get(&text), &s, &e), -1);
    assert_non_null(strstr(e.msg, "may have 1000 requirements"));

    str_clear(&text);
    str_append(&text, "k in (");
    for (int i = 0; i < API_SELECTOR_MAX_VALUES; i++)
        str_appendf(&text, "%d,", i);
    str_append(&text, ")");
    assert_int_equal(api_selector_parse(str_get(&text), &s, &e), -1);
    assert_non_null(strstr(e.msg, "values together"));

    str_clear(&text);
    str_append(&text, "k in (");
    while (text.len < API_SELECTOR_MAX_BYTES)
        str_append_c(&text, ',');
    assert_int_equal(api_selector_parse(str_get(&text), &s, &e), -1);
    assert_non_null(strstr(e.msg, "there are too many"));
    str_append_c(&text, ',');
    assert_int_equal(api_selector_parse(str_get(&text), &s, &e), -1);
    assert_non_null(strstr(e.msg, "may have 65536 bytes"));
}

static void test_field_selectors(void **state)
{
    static const struct {
        const char *text, *canonical;
        bool match;
    } cases[] = {
        {"", "", true},
        {",,", "", true},
        {"metadata.name=x", "metadata.name=x", true},
        {"metadata.name==x", "metadata.name=x", true},
        {"metadata.name!=x", "metadata.name!=x", false},
        {"status.phase!=y,metadata.name=x", "metadata.name=x,status.phase!=y", true},
        {"status.phase=", "status.phase=", true},
        {"status.phase!=", "status.phase!=", false},
        {"spec=", "spec=", true},
        {"spec.replicas=3", "spec.replicas=3", true},
        {"spec.replicas=03", "spec.replicas=03", false},
        {"spec.paused=true", "spec.paused=true", true},
        {"spec.paused!=false,", "spec.paused!=false", true},
        {"spec.list=x", "spec.list=x", false},
        {"spec.odd=a\\,b\\=c\\\\d", "spec.odd=a\\,b\\=c\\\\d", true},
        {"spec.odd=a", "spec.odd=a", false},
        {"spec.replicas.x=", "spec.replicas.x=", true},
        {"a=2,a=1,a!=3", "a!=3,a=1,a=2", false},
        {"metadata.name= x", "metadata.name= x", false},
    };
    (void)state;
    json_auto_t *object =
        parse_json("{\"metadata\": {\"name\": \"x\"}, \"spec\": {\"replicas\": 3, \"paused\": true,"
                   "\"list\": [\"x\"], \"odd\": \"a,b=c\\\\d\"}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_field_selector s;
        struct err e = {0};
        _cleanup_(str_done) struct str out = {0};
        if (api_field_selector_parse(cases[i].text, &s, &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.msg);
        api_field_selector_format(&s, &out);
        assert_string_equal(str_get(&out), cases[i].canonical);
        if (api_field_selector_matches(&s, object) != cases[i].match)
            fail_msg("%s", cases[i].text);
        api_field_selector_done(&s);
    }
}

static void test_refuses_field_selectors(void **state)
{
    static const char *const cases[][2] = {
        {"metadata.name", "byte 1: expected field=value, field==value or field!=value"},
        {"a=b,c", "byte 5: expected field=value"},
        {"=x", "byte 1: expected the path of a field"},
        {".a=x", "expected the path of a field"},
        {"a.=x", "expected the path of a field"},
        {"a..b=x", "expected the path of a field"},
        {"a=b=c", "byte 4: a '=' in a value is written '\\='"},
        {"a===b", "byte 4: a '='"},
        {"a=b\\", "byte 4: after '\\'"},
        {"a=\\x", "byte 3: after '\\'"},
        {"a!b", "byte 1: expected field=value"},
        {"a!", "byte 1: expected field=value"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_field_selector s;
        struct err e = {0};
        if (api_field_selector_parse(cases[i][0], &s, &e) == 0)
            fail_msg("%s: not refused", cases[i][0]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (!strstr(e.msg, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], e.msg);
        assert_int_equal(s.terms.len, 0);
    }
    struct api_field_selector s;
    _cleanup_(str_done) struct str text = {0};
    for (int i = 0; i <= API_SELECTOR_MAX_TERMS; i++)
        str_append(&text, "a=b,");
    assert_int_equal(api_field_selector_parse(str_get(&text), &s, NULL), -1);
    while (text.len <= API_SELECTOR_MAX_BYTES)
        str_append_c(&text, ',');
    assert_int_equal(api_field_selector_parse(str_get(&text), &s, NULL), -1);
}

static void test_exact_field(void **state)
{
    (void)state;
    struct api_field_selector s;
    assert_int_equal(api_field_selector_parse("status.phase!=y,metadata.name=x", &s, NULL), 0);
    assert_string_equal(api_field_selector_exact(&s, "metadata.name"), "x");
    assert_null(api_field_selector_exact(&s, "status.phase"));
    assert_null(api_field_selector_exact(&s, "metadata.namespace"));
    api_field_selector_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_what_it_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_reads_json),
        cmocka_unit_test(test_refuses_json),
        cmocka_unit_test(test_has_limits),
        cmocka_unit_test(test_field_selectors),
        cmocka_unit_test(test_refuses_field_selectors),
        cmocka_unit_test(test_exact_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

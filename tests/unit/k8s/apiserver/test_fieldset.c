#include "jsontest.h"
#include "k8s/apiserver/fieldset.h"

/* The step to an element by its name, as a member of FieldsV1. */
#define NAMED(name) "'k:{\\\"name\\\":\\\"" name "\\\"}'"

static const struct fieldset *decode(struct arena *a, json_t *fields)
{
    struct err e = {0};
    const struct fieldset *set = NULL;
    if (fieldset_decode(a, fields, &set, &e) < 0)
        fail_msg("%s", e.msg);
    return set;
}

static void assert_set(const struct fieldset *set, const char *expected)
{
    _cleanup_(str_done) struct str text = {0};
    fieldset_encode(set, &text);
    json_auto_t *got = parse_json(str_get(&text)), *wanted = parse_quoted(expected);
    assert_json(got, wanted, "set");
}

static void test_operations(void **state)
{
    (void)state;
    static const struct {
        const char *x, *y, *both, *x_only, *shared;
    } cases[] = {
        {"{}", "{}", "{}", "{}", "{}"},
        {"{'f:a': {}}", "{}", "{'f:a': {}}", "{'f:a': {}}", "{}"},
        {"{'f:a': {}}", "{'f:a': {}}", "{'f:a': {}}", "{}", "{'f:a': {}}"},
        {"{'f:a': {}}", "{'f:b': {}}", "{'f:a': {}, 'f:b': {}}", "{'f:a': {}}", "{}"},
        /* a field is not those below it */
        {"{'f:a': {}}", "{'f:a': {'f:b': {}}}", "{'f:a': {'.': {}, 'f:b': {}}}", "{'f:a': {}}",
         "{}"},
        {"{'f:a': {'.': {}, 'f:b': {}}}", "{'f:a': {}}", "{'f:a': {'.': {}, 'f:b': {}}}",
         "{'f:a': {'f:b': {}}}", "{'f:a': {}}"},
        {"{'f:a': {'f:b': {'f:c': {}, 'f:d': {}}}, 'f:e': {}}",
         "{'f:a': {'f:b': {'f:d': {}, 'f:x': {}}}}",
         "{'f:a': {'f:b': {'f:c': {}, 'f:d': {}, 'f:x': {}}}, 'f:e': {}}",
         "{'f:a': {'f:b': {'f:c': {}}}, 'f:e': {}}", "{'f:a': {'f:b': {'f:d': {}}}}"},
        {"{'f:l': {" NAMED("b") ": {'.': {}, 'f:x': {}}, " NAMED("a") ": {}, 'v:1': {}}}",
         "{'f:l': {" NAMED("a") ": {'f:x': {}}, 'i:1': {}, 'v:1': {}}}",
         "{'f:l': {" NAMED("a") ": {'.': {}, 'f:x': {}}, " NAMED("b") ": {'.': {}, 'f:x': {}}, "
                                                                      "'v:1': {}, 'i:1': {}}}",
         "{'f:l': {" NAMED("a") ": {}, " NAMED("b") ": {'.': {}, 'f:x': {}}}}",
         "{'f:l': {'v:1': {}}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *x_json = parse_quoted(cases[i].x), *y_json = parse_quoted(cases[i].y);
        const struct fieldset *x = decode(&a, x_json), *y = decode(&a, y_json);
        const struct fieldset *both = fieldset_union(&a, x, y);
        const struct fieldset *x_only = fieldset_difference(&a, x, y);
        const struct fieldset *y_only = fieldset_difference(&a, y, x);
        const struct fieldset *shared = fieldset_intersection(&a, x, y);
        assert_set(both, cases[i].both);
        assert_set(fieldset_union(&a, y, x), cases[i].both);
        assert_set(x_only, cases[i].x_only);
        assert_set(shared, cases[i].shared);
        assert_set(fieldset_intersection(&a, y, x), cases[i].shared);
        assert_true(fieldset_contains(both, x) && fieldset_contains(both, y));
        assert_true(fieldset_contains(x, shared) && fieldset_contains(y, shared));
        assert_true(!x_only || !fieldset_contains(y, x_only));
        assert_true(fieldset_equal(fieldset_union(&a, x_only, shared), x));
        assert_true(fieldset_equal(x, x) && fieldset_equal(x, y) == (!x_only && !y_only));
        arena_done(&a);
    }
}

/* However it was written, it is the same set, and is written the same. */
static void test_normal(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *text;
    } cases[] = {
        {"{}", "{}"},
        {"{'.': {}}", "{}"},
        {"{'f:b': {}, 'f:a': {}}", "{'f:a':{},'f:b':{}}"},
        {"{'f:a': {'.': {}}}", "{'f:a':{}}"},
        {"{'k:{ \\\"b\\\": 2.0, \\\"a\\\":1}': {}, 'k:{\\\"a\\\":1,\\\"b\\\":2.0}': {'f:x': {}}}",
         "{'k:{\\\"a\\\":1,\\\"b\\\":2.0}':{'.':{},'f:x':{}}}"},
        {"{'v: \\\"x\\\"': {}}", "{'v:\\\"x\\\"':{}}"},
        {"{'i:007': {}}", "{'i:7':{}}"},
        {"{'f:a\\\\b\\u0001': {}}", "{'f:a\\\\b\\u0001':{}}"},
        {"{'f:': {}}", "{'f:':{}}"},
        {"{'x:later': {}, 'f:a': {}}", "{'f:a':{}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *fields = parse_quoted(cases[i].fields);
        const struct fieldset *set = decode(&a, fields), *again = NULL;
        _cleanup_(str_done) struct str text = {0};
        fieldset_encode(set, &text);
        _cleanup_free_ char *wanted = mem_strdup(cases[i].text);
        for (char *c = wanted; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        assert_string_equal(str_get(&text), wanted);
        const char *at = str_get(&text);
        if (strstr(wanted, "\\u")) { /* which the fast reader leaves to the other */
            assert_int_equal(fieldset_read(&a, &at, &again), -1);
        } else {
            assert_int_equal(fieldset_read(&a, &at, &again), 0);
            assert_true(fieldset_equal(set, again) && !*at);
        }
        arena_done(&a);
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "[]",
        "'f:a'",
        "{'': {}}",
        "{'f': {}}",
        "{'fa': {}}",
        "{'f:a': 1}",
        "{'f:a': null}",
        "{'.': 1}",
        "{'k:': {}}",
        "{'k:{': {}}",
        "{'k:{}': {}}",
        "{'k:[]': {}}",
        "{'k:{\\\"a\\\":{}}': {}}",
        "{'k:{\\\"a\\\":1}x': {}}",
        "{'v:': {}}",
        "{'v:x': {}}",
        "{'i:': {}}",
        "{'i:x': {}}",
        "{'i:1x': {}}",
        "{'i:99999999999999999999': {}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        struct err e = {0};
        const struct fieldset *set;
        json_auto_t *fields = parse_quoted(cases[i]);
        if (fieldset_decode(&a, fields, &set, &e) == 0)
            fail_msg("%s is no set", cases[i]);
        assert_string_equal(e.reason, "BadRequest");
        arena_done(&a);
    }
    static const char *const texts[] = {"",           "{",         "{\"f:a\"",    "{\"f:a\":{}",
                                        "[]",         "{\"f:a\":", "{\"f:a\":1}", "{\"f:a\":{},}",
                                        "{\"a\":{}}", "{\"f:\\",   "{ }",         "{\"x:a\":{}}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct arena a = {0};
        const struct fieldset *set;
        const char *at = texts[i];
        assert_int_equal(fieldset_read(&a, &at, &set), -1);
        arena_done(&a);
    }
}

static void test_depth(void **state)
{
    (void)state;
    for (unsigned depth = FIELDSET_MAX_DEPTH - 1; depth <= FIELDSET_MAX_DEPTH + 1; depth++) {
        struct arena a = {0};
        const struct fieldset *set;
        json_t *fields = json_object();
        for (unsigned i = 0; i < depth; i++)
            fields = json_pack("{s:o}", "f:a", fields);
        _cleanup_(str_done) struct str text = {0};
        json_format(fields, &text);
        const char *at = str_get(&text);
        int expected = depth <= FIELDSET_MAX_DEPTH ? 0 : -1;
        assert_int_equal(fieldset_decode(&a, fields, &set, NULL), expected);
        assert_int_equal(fieldset_read(&a, &at, &set), expected);
        json_decref(fields);
        arena_done(&a);
    }
}

/* What comes in the worst order is still sorted, quickly. */
static void test_many(void **state)
{
    (void)state;
    struct arena a = {0};
    json_auto_t *fields = json_object();
    for (int i = 100000; i > 0; i--) {
        char name[16];
        snprintf(name, sizeof(name), "f:%06d", i);
        json_object_set_new(fields, name, json_object());
    }
    const struct fieldset *set = decode(&a, fields);
    size_t n = 0;
    for (const struct fieldset *s = set; s; s = s->next, n++)
        assert_true(!s->next || strcmp(s->name, s->next->name) < 0);
    assert_int_equal(n, 100000);
    assert_null(fieldset_difference(&a, set, set));
    arena_done(&a);
}

static void add_path(void *context, const char *path)
{
    str_appendf(context, "%s ", path);
}

static void test_paths(void **state)
{
    (void)state;
    struct arena a = {0};
    json_auto_t *fields = parse_quoted(
        "{'f:spec': {'f:z': {}, 'f:ports': {'k:{\\\"protocol\\\":\\\"TCP\\\",\\\"port\\\":80}': "
        "{'.': {}, 'f:name': {}}}, 'f:set': {'v:\\\"a\\\"': {}, 'v:1': {}}, 'f:list': {'i:3': "
        "{}}}, "
        "'f:kind': {}}");
    _cleanup_(str_done) struct str paths = {0};
    fieldset_paths(decode(&a, fields), add_path, &paths);
    assert_string_equal(str_get(&paths),
                        ".kind .spec.z .spec.list[3] .spec.ports[port=80,protocol=\"TCP\"] "
                        ".spec.ports[port=80,protocol=\"TCP\"].name .spec.set[=\"a\"] "
                        ".spec.set[=1] ");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations), cmocka_unit_test(test_normal),
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_many),       cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests_name("fieldset", tests, NULL, NULL);
}

#include <stdio.h>

#include "base/mem.h"
#include "json/patch.h"
#include "jsontest.h"

/* Applies and checks on the way that neither input has changed. */
static json_t *apply(const json_t *doc, const json_t *ops, struct err *e)
{
    json_auto_t *doc_before = json_deep_copy(doc), *ops_before = json_deep_copy(ops);
    json_t *result = json_patch_apply(doc, ops, e);
    assert_true(json_equal(doc, doc_before));
    assert_true(json_equal(ops, ops_before));
    return result;
}

struct good {
    const char *doc, *ops, *result;
};

static void check_good(const struct good *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_auto_t *doc = parse_json(cases[i].doc), *ops = parse_json(cases[i].ops);
        json_auto_t *expected = parse_json(cases[i].result);
        struct err e = {0};
        json_auto_t *result = apply(doc, ops, &e);
        if (!result)
            fail_msg("%s: %s", cases[i].ops, e.msg);
        assert_json(result, expected, cases[i].ops);
    }
}

/* The situations of RFC 6902, appendix A, in its order. */
static void test_rfc_examples(void **state)
{
    static const struct good cases[] = {
        /* A.1, A.2: adding a member, an element */
        {"{\"rope\":1}", "[{\"op\":\"add\",\"path\":\"/knot\",\"value\":\"reef\"}]",
         "{\"rope\":1,\"knot\":\"reef\"}"},
        {"{\"l\":[\"a\",\"c\"]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":\"b\"}]",
         "{\"l\":[\"a\",\"b\",\"c\"]}"},
        /* A.3, A.4: removing */
        {"{\"rope\":1,\"knot\":2}", "[{\"op\":\"remove\",\"path\":\"/knot\"}]", "{\"rope\":1}"},
        {"{\"l\":[\"a\",\"b\",\"c\"]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]",
         "{\"l\":[\"a\",\"c\"]}"},
        /* A.5: replacing */
        {"{\"rope\":1,\"knot\":2}", "[{\"op\":\"replace\",\"path\":\"/knot\",\"value\":\"x\"}]",
         "{\"rope\":1,\"knot\":\"x\"}"},
        /* A.6, A.7: moving a value, an element */
        {"{\"a\":{\"x\":1,\"y\":2},\"b\":{\"z\":3}}",
         "[{\"op\":\"move\",\"from\":\"/a/y\",\"path\":\"/b/w\"}]",
         "{\"a\":{\"x\":1},\"b\":{\"z\":3,\"w\":2}}"},
        {"{\"l\":[1,2,3,4]}", "[{\"op\":\"move\",\"from\":\"/l/1\",\"path\":\"/l/3\"}]",
         "{\"l\":[1,3,4,2]}"},
        /* A.8: tests that hold */
        {"{\"k\":\"v\",\"l\":[\"a\",2,\"c\"]}",
         "[{\"op\":\"test\",\"path\":\"/k\",\"value\":\"v\"},"
         "{\"op\":\"test\",\"path\":\"/l/1\",\"value\":2}]",
         "{\"k\":\"v\",\"l\":[\"a\",2,\"c\"]}"},
        /* A.10: a nested object */
        {"{\"rope\":1}", "[{\"op\":\"add\",\"path\":\"/sub\",\"value\":{\"deep\":{}}}]",
         "{\"rope\":1,\"sub\":{\"deep\":{}}}"},
        /* A.11: unknown members are ignored */
        {"{\"rope\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2,\"xyz\":3}]",
         "{\"rope\":1,\"b\":2}"},
        /* A.14: ~ escapes, once */
        {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
         "{\"/\":9,\"~1\":10}"},
        /* A.16: a list as an element */
        {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":[2,3]}]",
         "{\"l\":[1,[2,3]]}"},
    };
    (void)state;
    check_good(cases, ARRAY_SIZE(cases));
}

static void test_more_that_applies(void **state)
{
    static const struct good cases[] = {
        {"{\"a\":1}", "[]", "{\"a\":1}"},
        {"[]", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":1}]", "[1]"},
        {"{}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]", "{\"\":1}"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}"},
        /* the whole document */
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[1]}]", "[1]"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":\"x\"}]", "\"x\""},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]", "{\"b\":1}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a/b\",\"path\":\"\"}]", "1"},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"\"}]", "{\"a\":1}"},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]",
         "{\"a\":1,\"b\":{\"a\":1}}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}"},
        /* a copy and its original go their own ways */
        {"{\"a\":{\"l\":[1]}}",
         "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
         "{\"op\":\"add\",\"path\":\"/b/l/-\",\"value\":2},"
         "{\"op\":\"remove\",\"path\":\"/a/l/0\"}]",
         "{\"a\":{\"l\":[]},\"b\":{\"l\":[1,2]}}"},
        /* a value of the patch is added twice, then one of the two is changed */
        {"{}",
         "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"l\":[]}},"
         "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
         "{\"op\":\"add\",\"path\":\"/a/l/0\",\"value\":1}]",
         "{\"a\":{\"l\":[1]},\"b\":{\"l\":[]}}"},
        /* numbers are equal by value */
        {"{\"i\":1,\"r\":2.0}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"r\":2,\"i\":1.0}}]",
         "{\"i\":1,\"r\":2.0}"},
        /* as Kubernetes: replace adds, null is like absent, indexes count from the end too */
        {"{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}"},
        {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}"},
        {"[1,2]", "[{\"op\":\"replace\",\"path\":\"/-1\",\"value\":3}]", "[1,3]"},
        {"[1,2]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":3}]", "[1,2,3]"},
        {"[1,2]", "[{\"op\":\"remove\",\"path\":\"/-2\"}]", "[2]"},
    };
    (void)state;
    check_good(cases, ARRAY_SIZE(cases));
}

static void test_errors(void **state)
{
    static const char doc_text[] = "{\"a\":{\"b\":[1,2]},\"s\":\"x\",\"n\":null,\"big\":1e300}";
    static const struct {
        const char *ops;
        enum err_code code;
        const char *says;
    } cases[] = {
        {"{}", ERR_INVALID_ARGUMENT, "a list of operations"},
        {"[1]", ERR_INVALID_ARGUMENT, "operation 1 of 1: write an object"},
        {"[{\"op\":\"add\"}]", ERR_INVALID_ARGUMENT, "\"op\" and \"path\""},
        {"[{\"op\":\"add\",\"path\":7,\"value\":1}]", ERR_INVALID_ARGUMENT, "the strings"},
        {"[{\"op\":\"put\",\"path\":\"/a\"}]", ERR_INVALID_ARGUMENT,
         "operation 1 of 1 (put /a): the operations are add"},
        {"[{\"op\":\"add\",\"path\":\"/x\"}]", ERR_INVALID_ARGUMENT, "\"value\" is missing"},
        {"[{\"op\":\"test\",\"path\":\"/x\"}]", ERR_INVALID_ARGUMENT, "\"value\" is missing"},
        {"[{\"op\":\"copy\",\"path\":\"/x\"}]", ERR_INVALID_ARGUMENT, "\"from\" is missing"},
        {"[{\"op\":\"add\",\"path\":\"x\",\"value\":1}]", ERR_INVALID_ARGUMENT, "start with \"/\""},
        {"[{\"op\":\"move\",\"from\":\"/~\",\"path\":\"/x\"}]", ERR_INVALID_ARGUMENT,
         "(move /~ to /x): from: "},
        /* appendix A.9, A.12, A.15 */
        {"[{\"op\":\"test\",\"path\":\"/s\",\"value\":\"y\"}]", ERR_FAILED_PRECONDITION,
         "operation 1 of 1 (test /s): the value is \"x\", not \"y\""},
        {"[{\"op\":\"add\",\"path\":\"/none/x\",\"value\":1}]", ERR_NOT_FOUND,
         "there is no \"none\" in the top of the document"},
        {"[{\"op\":\"test\",\"path\":\"/a/b/0\",\"value\":\"1\"}]", ERR_FAILED_PRECONDITION,
         "the value is 1, not \"1\""},
        {"[{\"op\":\"test\",\"path\":\"/big\",\"value\":1}]", ERR_FAILED_PRECONDITION, "not 1"},
        {"[{\"op\":\"test\",\"path\":\"/a/b/0\",\"value\":1.5}]", ERR_FAILED_PRECONDITION, "1.5"},
        {"[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"c\":[1,2]}}]", ERR_FAILED_PRECONDITION,
         "not {\"c\""},
        {"[{\"op\":\"test\",\"path\":\"/none\",\"value\":1}]", ERR_NOT_FOUND, "no \"none\""},
        {"[{\"op\":\"test\",\"path\":\"/none/x\",\"value\":null}]", ERR_NOT_FOUND, "no \"none\""},
        {"[{\"op\":\"remove\",\"path\":\"/a/x\"}]", ERR_NOT_FOUND, "there is no \"x\" in /a"},
        {"[{\"op\":\"remove\",\"path\":\"\"}]", ERR_INVALID_ARGUMENT, "cannot be removed"},
        {"[{\"op\":\"replace\",\"path\":\"/a/b/2\",\"value\":1}]", ERR_NOT_FOUND,
         "\"2\" is no index into /a/b, a list of 2"},
        {"[{\"op\":\"add\",\"path\":\"/a/b/3\",\"value\":1}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"add\",\"path\":\"/a/b/01\",\"value\":1}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"add\",\"path\":\"/a/b/-0\",\"value\":1}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"add\",\"path\":\"/a/b/-4\",\"value\":1}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"remove\",\"path\":\"/a/b/-3\"}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"add\",\"path\":\"/a/b/99999999999999999999\",\"value\":1}]", ERR_NOT_FOUND,
         "no index"},
        {"[{\"op\":\"remove\",\"path\":\"/a/b/-\"}]", ERR_NOT_FOUND, "no index"},
        {"[{\"op\":\"add\",\"path\":\"/s/x\",\"value\":1}]", ERR_NOT_FOUND,
         "/s is of type string, so there is no \"x\" in it"},
        {"[{\"op\":\"add\",\"path\":\"/n/x/y\",\"value\":1}]", ERR_NOT_FOUND, "of type null"},
        {"[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/c\"}]", ERR_INVALID_ARGUMENT,
         "/a cannot move into itself"},
        {"[{\"op\":\"move\",\"from\":\"\",\"path\":\"/c\"}]", ERR_INVALID_ARGUMENT,
         "the whole document cannot move into itself"},
        {"[{\"op\":\"move\",\"from\":\"/none\",\"path\":\"/none\"}]", ERR_NOT_FOUND, "no \"none\""},
        {"[{\"op\":\"copy\",\"from\":\"/none\",\"path\":\"/x\"}]", ERR_NOT_FOUND, "no \"none\""},
        /* all or nothing: what the first ones did is gone with the last one */
        {"[{\"op\":\"add\",\"path\":\"/a/b/0\",\"value\":0},{\"op\":\"remove\",\"path\":\"/s\"},"
         "{\"op\":\"remove\",\"path\":\"/s\"}]",
         ERR_NOT_FOUND, "operation 3 of 3 (remove /s): there is no \"s\""},
    };
    (void)state;
    json_auto_t *doc = parse_json(doc_text);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *ops = parse_json(cases[i].ops);
        struct err e = {0};
        if (apply(doc, ops, &e))
            fail_msg("%s applies", cases[i].ops);
        if (e.code != cases[i].code || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %s: %s", cases[i].ops, err_code_name(e.code), e.msg);
        assert_null(json_patch_apply(doc, ops, NULL)); /* nobody has to ask why */
    }
}

/* A message that quotes the patch can go to a terminal and into JSON, wherever it is cut. */
static void test_messages_are_clean(void **state)
{
    (void)state;
    for (size_t n = 290; n < 300; n++) {
        _cleanup_(str_done) struct str path = {0};
        for (size_t i = 0; i < n; i++)
            str_append_c(&path, '/');
        str_append(&path, "\x1b[2J\u00e4\u00e4\u00e4\u00e4");
        json_auto_t *doc = json_object();
        json_auto_t *ops = json_pack("[{ss ss}]", "op", "remove", "path", str_get(&path));
        struct err e = {0};
        assert_null(apply(doc, ops, &e));
        assert_null(strchr(e.msg, '\x1b'));
        json_auto_t *message = json_string(e.msg);
        assert_non_null(message);
    }
}

static void test_shares_what_did_not_change(void **state)
{
    json_auto_t *doc = parse_json("{\"same\":{\"x\":[1]},\"other\":{\"l\":[{\"y\":1},{\"z\":2}]}}");
    json_auto_t *ops = parse_json("[{\"op\":\"add\",\"path\":\"/other/l/0/w\",\"value\":1}]");
    (void)state;
    json_auto_t *result = apply(doc, ops, NULL);
    assert_non_null(result);
    assert_ptr_equal(json_at(result, "same"), json_at(doc, "same"));
    const json_t *before = json_at(doc, "other", "l"), *after = json_at(result, "other", "l");
    assert_ptr_not_equal(before, after);
    assert_ptr_not_equal(json_array_get(before, 0), json_array_get(after, 0));
    assert_ptr_equal(json_array_get(before, 1), json_array_get(after, 1));
}

static json_t *repeat(const char *op, size_t n)
{
    json_t *ops = json_array();
    json_auto_t *one = parse_json(op);
    for (size_t i = 0; i < n; i++)
        json_array_append(ops, one);
    return ops;
}

static void test_number_of_operations(void **state)
{
    json_auto_t *doc = parse_json("{\"l\":[]}");
    const char *op = "{\"op\":\"add\",\"path\":\"/l/0\",\"value\":1}";
    json_auto_t *most = repeat(op, JSON_PATCH_MAX_OPS), *more = repeat(op, JSON_PATCH_MAX_OPS + 1);
    (void)state;
    json_auto_t *result = apply(doc, most, NULL);
    assert_int_equal(json_array_size(json_at(result, "l")), JSON_PATCH_MAX_OPS);
    struct err e = {0};
    assert_null(apply(doc, more, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(e.msg, "send it in parts"));
}

/* A document that doubles with each operation must not get far. */
static void test_growth_is_bounded(void **state)
{
    static const struct {
        const char *doc, *op;
        size_t n;
    } cases[] = {
        {"{\"l\":[1]}", "{\"op\":\"copy\",\"from\":\"/l\",\"path\":\"/l/-\"}", 200},
        {"{}", "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}", 512},
        {"{\"l\":[1],\"m\":[]}", "{\"op\":\"copy\",\"from\":\"/l\",\"path\":\"/m/-\"}", 200},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *doc = parse_json(cases[i].doc), *ops = repeat(cases[i].op, cases[i].n);
        struct err e = {0};
        json_auto_t *result = json_patch_apply(doc, ops, &e);
        if (i == 2) {
            assert_int_equal(json_array_size(json_at(result, "m")), cases[i].n);
            continue;
        }
        assert_null(result);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.reason, "TooLarge");
    }

    /* the same in one long text instead of many values */
    json_auto_t *doc = json_object();
    const size_t mib = 1 << 20;
    char *text = mem_alloc(mib);
    memset(text, 'x', mib);
    json_object_set_new(doc, "s", json_stringn(text, mib));
    json_object_set_new(doc, "l", json_array());
    free(text);
    json_auto_t *ops = repeat("{\"op\":\"copy\",\"from\":\"/s\",\"path\":\"/l/-\"}", 100);
    struct err e = {0};
    assert_null(json_patch_apply(doc, ops, &e));
    assert_non_null(strstr(e.msg, "operation 16 of 100 (copy /s to /l/-): the patch copies more"));
}

/* "[[[...]]]" n deep, or the path "/0/0..." into it. */
static char *nested(size_t n)
{
    struct str s = {0};
    for (size_t i = 0; i < n; i++)
        str_append_c(&s, '[');
    for (size_t i = 0; i < n; i++)
        str_append_c(&s, ']');
    return str_take(&s);
}

static char *path_into(size_t n)
{
    struct str s = {0};
    for (size_t i = 0; i < n; i++)
        str_append(&s, "/0");
    return str_take(&s);
}

static void test_depth_is_bounded(void **state)
{
    /* a document of depth d, into which at path p (steps) a value of depth v is put */
    static const struct {
        size_t d, p, v;
        bool fits;
    } cases[] = {
        {100, 100, 100, true}, {100, 100, 156, true}, {100, 100, 157, false},
        {256, 255, 1, true},   {256, 256, 1, false},  {1, 1, 255, true},
        {1, 1, 256, false},    {256, 256, 0, true},   {256, 257, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *outer = nested(cases[i].d);
        _cleanup_free_ char *inner = cases[i].v ? nested(cases[i].v) : mem_strdup("1");
        _cleanup_free_ char *path = path_into(cases[i].p);
        json_auto_t *value = parse_json(inner);
        json_auto_t *list = parse_json(outer);
        json_auto_t *doc = json_pack("{sOsO}", "at", list, "value", value);
        json_auto_t *alone = json_incref(list);
        json_auto_t *add = json_pack("[{ss ss sO}]", "op", "add", "path", path, "value", value);
        struct err e = {0};
        json_auto_t *result = json_patch_apply(alone, add, &e);
        assert_int_equal(result != NULL, cases[i].fits);
        if (result)
            assert_true(json_depth(result) <= JSON_MAX_DEPTH);
        else
            assert_string_equal(e.reason, "TooLarge");

        /* moved or copied there: one step more, so one level less */
        static const char *const ops[] = {"move", "copy"};
        for (size_t j = 0; j < ARRAY_SIZE(ops); j++) {
            _cleanup_free_ char *to = mem_printf("/at%s", path);
            json_auto_t *op = json_pack("[{ss ss ss}]", "op", ops[j], "from", "/value", "path", to);
            json_auto_t *moved = json_patch_apply(doc, op, &e);
            bool fits = cases[i].fits && cases[i].p + 1 + cases[i].v <= JSON_MAX_DEPTH;
            assert_int_equal(moved != NULL, fits);
        }
    }
}

static void test_moves_back_and_forth(void **state)
{
    json_auto_t *doc = parse_json("{\"a\":{\"v\":{\"x\":[1]}},\"b\":{\"c\":{}}}");
    json_auto_t *there = parse_json("{\"op\":\"move\",\"from\":\"/a/v\",\"path\":\"/b/c/v\"}");
    json_auto_t *back = parse_json("{\"op\":\"move\",\"from\":\"/b/c/v\",\"path\":\"/a/v\"}");
    json_auto_t *ops = json_array();
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        json_array_append(ops, there);
        json_array_append(ops, back);
    }
    json_auto_t *result = apply(doc, ops, NULL);
    assert_true(json_equal(doc, result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_examples),
        cmocka_unit_test(test_more_that_applies),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_messages_are_clean),
        cmocka_unit_test(test_shares_what_did_not_change),
        cmocka_unit_test(test_number_of_operations),
        cmocka_unit_test(test_growth_is_bounded),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_moves_back_and_forth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

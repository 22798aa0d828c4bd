#include <stdio.h>

#include "base/mem.h"
#include "json/patch.h"
#include "jsontest.h"

/* The first fifteen are the situations of RFC 7386, appendix A, in its order. */
static const char *const merges[][3] = {
    {"{\"k\":\"v\"}", "{\"k\":\"w\"}", "{\"k\":\"w\"}"},
    {"{\"k\":\"v\"}", "{\"l\":\"w\"}", "{\"k\":\"v\",\"l\":\"w\"}"},
    {"{\"k\":\"v\"}", "{\"k\":null}", "{}"},
    {"{\"k\":\"v\",\"l\":\"w\"}", "{\"k\":null}", "{\"l\":\"w\"}"},
    {"{\"k\":[\"v\"]}", "{\"k\":\"w\"}", "{\"k\":\"w\"}"},
    {"{\"k\":\"w\"}", "{\"k\":[\"v\"]}", "{\"k\":[\"v\"]}"},
    {"{\"k\":{\"l\":\"w\"}}", "{\"k\":{\"l\":\"x\",\"m\":null}}", "{\"k\":{\"l\":\"x\"}}"},
    {"{\"k\":[{\"l\":\"w\"}]}", "{\"k\":[1]}", "{\"k\":[1]}"},
    {"[\"v\",\"w\"]", "[\"x\",\"y\"]", "[\"x\",\"y\"]"},
    {"{\"k\":\"v\"}", "[\"x\"]", "[\"x\"]"},
    {"{\"k\":\"s\"}", "null", "null"},
    {"{\"k\":\"s\"}", "\"t\"", "\"t\""},
    {"{\"n\":null}", "{\"k\":1}", "{\"n\":null,\"k\":1}"},
    {"[1,2]", "{\"k\":\"v\",\"l\":null}", "{\"k\":\"v\"}"},
    {"{}", "{\"k\":{\"ll\":{\"mmm\":null}}}", "{\"k\":{\"ll\":{}}}"},

    {"{\"k\":1}", "{}", "{\"k\":1}"},
    {"1", "{}", "{}"},
    {"{\"k\":1}", "{\"none\":null}", "{\"k\":1}"},
    {"{\"k\":1}", "{\"k\":{\"l\":{\"m\":null,\"n\":2}}}", "{\"k\":{\"l\":{\"n\":2}}}"},
    {"{\"k\":{\"l\":1}}", "{\"k\":{}}", "{\"k\":{\"l\":1}}"},
    {"{\"k\":{\"l\":1}}", "{\"k\":[null,{\"m\":null}]}", "{\"k\":[null,{\"m\":null}]}"},
    {"{\"k\":null}", "{\"k\":{\"l\":1}}", "{\"k\":{\"l\":1}}"},
};

static void test_merges(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(merges); i++) {
        json_auto_t *doc = parse_json(merges[i][0]), *patch = parse_json(merges[i][1]);
        json_auto_t *doc_before = json_deep_copy(doc), *patch_before = json_deep_copy(patch);
        json_auto_t *expected = parse_json(merges[i][2]);
        struct err e = {0};
        json_auto_t *result = json_merge_patch(doc, patch, &e);
        if (!result)
            fail_msg("%s: %s", merges[i][1], e.msg);
        if (!json_equal(result, expected))
            fail_msg("%s + %s is not %s", merges[i][0], merges[i][1], merges[i][2]);
        assert_true(json_equal(doc, doc_before));
        assert_true(json_equal(patch, patch_before));
    }
}

static void test_shares(void **state)
{
    json_auto_t *doc = parse_json("{\"same\":{\"x\":1},\"k\":{\"l\":{},\"m\":1}}");
    json_auto_t *patch = parse_json("{\"k\":{\"m\":2},\"new\":[{}]}");
    (void)state;
    json_auto_t *result = json_merge_patch(doc, patch, NULL);
    assert_ptr_equal(json_at(result, "same"), json_at(doc, "same"));
    assert_ptr_equal(json_at(result, "k", "l"), json_at(doc, "k", "l"));
    assert_ptr_equal(json_at(result, "new"), json_at(patch, "new"));
    assert_ptr_not_equal(json_at(result, "k"), json_at(doc, "k"));
}

static void test_depth_is_bounded(void **state)
{
    json_auto_t *doc = json_object();
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        json_auto_t *patch = json_integer(1);
        for (unsigned depth = 1; depth <= JSON_MAX_DEPTH + 1; depth++) {
            json_t *outer = kind ? json_pack("{so}", "k", patch) : json_pack("[o]", patch);
            patch = outer;
            struct err e = {0};
            json_auto_t *result = json_merge_patch(doc, patch, &e);
            if (depth <= JSON_MAX_DEPTH)
                assert_true(json_equal(result, patch));
            else
                assert_string_equal(e.reason, "TooLarge");
            assert_int_equal(result != NULL, depth <= JSON_MAX_DEPTH);
        }
    }
}

/* from, to, and the smallest patch between them */
static void test_diffs(void **state)
{
    static const char *const cases[][3] = {
        {"{}", "{}", "{}"},
        {"{\"k\":1}", "{\"k\":1}", "{}"},
        {"{\"k\":1}", "{\"k\":2}", "{\"k\":2}"},
        {"{\"k\":1}", "{\"k\":1.0}", "{\"k\":1.0}"},
        {"{\"k\":1}", "{}", "{\"k\":null}"},
        {"{}", "{\"k\":{\"l\":[]}}", "{\"k\":{\"l\":[]}}"},
        {"{\"k\":1,\"l\":2}", "{\"l\":3,\"m\":4}", "{\"k\":null,\"l\":3,\"m\":4}"},
        {"{\"k\":{\"a\":1,\"b\":{\"c\":2}}}", "{\"k\":{\"a\":1,\"b\":{\"d\":2}}}",
         "{\"k\":{\"b\":{\"c\":null,\"d\":2}}}"},
        {"{\"k\":{\"a\":1}}", "{\"k\":{}}", "{\"k\":{\"a\":null}}"},
        {"{\"k\":[1,2]}", "{\"k\":[1]}", "{\"k\":[1]}"},
        {"{\"k\":[1,{}]}", "{\"k\":[1,{}]}", "{}"},
        {"{\"k\":{\"a\":1}}", "{\"k\":[1]}", "{\"k\":[1]}"},
        {"{\"k\":\"s\"}", "{\"k\":{\"a\":1}}", "{\"k\":{\"a\":1}}"},
        {"{\"k\":null}", "{}", "{\"k\":null}"},
        {"{\"k\":1}", "[1]", "[1]"},
        {"[1]", "[1]", "[1]"},
        {"[1]", "{\"k\":1}", "{\"k\":1}"},
        {"[1]", "{}", "{}"},
        {"\"s\"", "\"s\"", "\"s\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *from = parse_json(cases[i][0]), *to = parse_json(cases[i][1]);
        json_auto_t *expected = parse_json(cases[i][2]);
        json_auto_t *from_before = json_deep_copy(from), *to_before = json_deep_copy(to);
        json_auto_t *patch = json_merge_diff(from, to);
        if (!json_equal(patch, expected))
            fail_msg("%s to %s is not %s", cases[i][0], cases[i][1], cases[i][2]);
        json_auto_t *result = json_merge_patch(from, patch, NULL);
        assert_true(json_equal(result, to));
        assert_true(json_equal(from, from_before));
        assert_true(json_equal(to, to_before));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_diffs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

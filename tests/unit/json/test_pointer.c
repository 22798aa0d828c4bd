#include <stdio.h>

#include "base/mem.h"
#include "json/pointer.h"
#include "unit.h"

static const char document[] =
    "{\"foo\":[\"bar\",\"baz\",[7]],\"\":0,\"a/b\":1,\"c%d\":2,\"m~n\":8,"
    "\"~1\":9,\"01\":10,\"spec\":{\"kubernetes.io/hostname\":\"x\"}}";

static void test_gets(void **state)
{
    static const char *const cases[][2] = {
        {"/foo/0", "\"bar\""}, {"/foo/2/0", "7"}, {"/", "0"},
        {"/a~1b", "1"},        {"/c%d", "2"},     {"/m~0n", "8"},
        {"/~01", "9"},         {"/01", "10"},     {"/spec/kubernetes.io~1hostname", "\"x\""},
    };
    (void)state;
    json_auto_t *root = json_parse(document, strlen(document), NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        _cleanup_(str_done) struct str out = {0};
        const json_t *value = json_pointer_get(root, cases[i][0], &e);
        if (!value)
            fail_msg("%s: %s", cases[i][0], e.msg);
        json_format(value, &out);
        assert_string_equal(str_get(&out), cases[i][1]);
    }
    assert_ptr_equal(json_pointer_get(root, "", NULL), root);
}

static void test_misses(void **state)
{
    static const struct {
        const char *pointer;
        enum err_code code;
        const char *says;
    } cases[] = {
        {"foo", ERR_INVALID_ARGUMENT, "start with \"/\""},
        {"/m~n", ERR_INVALID_ARGUMENT, "as \"~0\""},
        {"/m~", ERR_INVALID_ARGUMENT, "as \"~0\""},
        {"/m~2", ERR_INVALID_ARGUMENT, "as \"~0\""},
        {"/none", ERR_NOT_FOUND, "the document has no member \"none\""},
        {"/foo/3", ERR_NOT_FOUND, "/foo has no element \"3\": it has 3 elements"},
        {"/foo/00", ERR_NOT_FOUND, "no element"},
        {"/foo/-", ERR_NOT_FOUND, "no element"},
        {"/foo/-1", ERR_NOT_FOUND, "no element"},
        {"/foo/", ERR_NOT_FOUND, "no element"},
        {"/foo/1e0", ERR_NOT_FOUND, "no element"},
        {"/foo/18446744073709551616", ERR_NOT_FOUND, "no element"},
        {"/foo/0/x", ERR_NOT_FOUND, "/foo/0 has no member \"x\": its type is string"},
    };
    (void)state;
    json_auto_t *root = json_parse(document, strlen(document), NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        assert_null(json_pointer_get(root, cases[i].pointer, &e));
        assert_int_equal(e.code, cases[i].code);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].pointer, e.msg);
        assert_null(json_pointer_get(root, cases[i].pointer, NULL));
    }
}

static void test_appends_what_it_reads(void **state)
{
    static const char *const keys[] = {"a", "", "a/b", "m~n", "~1", "/", "~", "ä"};
    _cleanup_(str_done) struct str pointer = {0}, token = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        json_pointer_append(&pointer, keys[i]);
    json_pointer_append_index(&pointer, 17);
    assert_string_equal(str_get(&pointer), "/a//a~1b/m~0n/~01/~1/~0/ä/17");

    const char *rest = str_get(&pointer);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        assert_int_equal(json_pointer_next(&rest, &token, NULL), 1);
        assert_string_equal(str_get(&token), keys[i]);
    }
    assert_int_equal(json_pointer_next(&rest, &token, NULL), 1);
    assert_string_equal(str_get(&token), "17");
    assert_int_equal(json_pointer_next(&rest, &token, NULL), 0);
    assert_int_equal(json_pointer_next(&rest, &token, NULL), 0);
}

static void test_index(void **state)
{
    size_t index = 99;
    (void)state;
    assert_true(json_pointer_index("0", 1, &index));
    assert_int_equal(index, 0);
    assert_true(json_pointer_index("10", 11, &index));
    assert_int_equal(index, 10);
    assert_false(json_pointer_index("10", 10, &index));
    assert_false(json_pointer_index("", 10, &index));
    assert_false(json_pointer_index("-", 10, &index));
    assert_false(json_pointer_index("01", 10, &index));
    assert_false(json_pointer_index("1 ", 10, &index));
    assert_false(json_pointer_index("99999999999999999999999", SIZE_MAX, &index));
    assert_int_equal(index, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gets),
        cmocka_unit_test(test_misses),
        cmocka_unit_test(test_appends_what_it_reads),
        cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests_name("pointer", tests, NULL, NULL);
}

#include "base/mem.h"
#include "base/str.h"
#include "http/target.h"
#include "unit.h"

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path, *segments; /* joined with '|', one behind each */
    } table[] = {
        {"/", "/", ""},
        {"*", "*", ""},
        {"/api", "/api", "api|"},
        {"/api/", "/api/", "api||"},
        {"//", "//", "||"},
        {"/a//b", "/a//b", "a||b|"},
        {"/a%2Fb/c", "/a%2Fb/c", "a/b|c|"},
        {"/a%252Fb", "/a%252Fb", "a%2Fb|"},
        {"/%c3%BC+%3f", "/%c3%BC+%3f", "\xc3\xbc+?|"},
        {"/../%2e%2e", "/../%2e%2e", "..|..|"},
        {"/a?b/c", "/a", "a|"},
        {"/?", "/", ""},
        {"http://host:80/a/b?c", "/a/b", "a|b|"},
        {"HTTPS://host", "/", ""},
        {"http://host?x=/y", "/", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(arena_done) struct arena a = {0};
        _cleanup_(str_done) struct str joined = {0};
        struct http_target t;
        struct err e = {0};
        assert_int_equal(http_target_parse(&a, table[i].text, &t, &e), 0);
        for (size_t k = 0; k < t.n_segments; k++)
            str_appendf(&joined, "%s|", t.segments[k]);
        assert_string_equal(t.path, table[i].path);
        assert_string_equal(str_get(&joined), table[i].segments);
    }
}

static void test_queries(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *value;
    } table[] = {
        {"/", "a", NULL},
        {"/?a", "a", ""},
        {"/?a=", "a", ""},
        {"/?a=b=c", "a", "b=c"},
        {"/?a=1&a=2", "a", "1"},
        {"/?&&b=1&&a=2&", "a", "2"},
        {"/?labelSelector=x%3Dy%2Cz%21%3D1&watch=true", "labelSelector", "x=y,z!=1"},
        {"/?labelSelector=x%3Dy%2Cz%21%3D1&watch=true", "watch", "true"},
        {"/?a%26b=c%26d", "a&b", "c&d"},
        {"/?a=x+y%2Bz", "a", "x y+z"},
        {"/?a=?", "a", "?"},
        {"/?A=1", "a", NULL},
        {"/?=1", "", "1"},
        {"/?aa=1", "a", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(arena_done) struct arena a = {0};
        struct http_target t;
        assert_int_equal(http_target_parse(&a, table[i].text, &t, NULL), 0);
        const char *value = http_target_param(&t, table[i].name);
        if (table[i].value) {
            assert_non_null(value);
            assert_string_equal(value, table[i].value);
        } else {
            assert_null(value);
        }
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",        "a",      "host:80", "?a",      "**",       "/%",         "/%4",    "/%g0",
        "/%0g",    "/a%00b", "/%ff",    "/%c3",    "/%c3/%bc", "/?a=%",      "/?a=%4", "/?%zz=1",
        "/?a=%00", "/?%00",  "/?a=%fe", "/a%/41b", "/?a%&41",  "/%ed%a0%80", "/\xff",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(arena_done) struct arena a = {0};
        struct http_target t;
        struct err e = {0};
        assert_int_equal(http_target_parse(&a, table[i], &t, &e), -1);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

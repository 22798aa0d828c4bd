#include "base/str.h"
#include "controllers/controllers.h"
#include "unit.h"

static void test_asked(void **state)
{
    (void)state;
    static const struct {
        const char *list, *name;
        bool asked;
    } cases[] = {
        {"*", "a", true},     {"a", "a", true},    {"a", "b", false},      {"", "a", false},
        {"-a", "a", false},   {"-a", "b", false},  {"*,-a", "a", false},   {"*,-a", "b", true},
        {"-a,*", "a", false}, {"b,a", "a", true},  {" b , a ", "a", true}, {"ab", "a", false},
        {"-ab,*", "a", true}, {"a,-a", "a", true}, {"-a,a", "a", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(controllers_asked(cases[i].list, cases[i].name), cases[i].asked);
}

static void test_runs(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool is_embedded, beside, runs;
    } cases[] = {
        {"*", false, false, true},   {"*", true, true, true},    {"*", true, false, false},
        {"a", true, false, true},    {"*,a", true, false, true}, {"*,-a", true, true, false},
        {"-a,a", true, true, false}, {"b", false, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct controller it = {.name = "a", .embedded = cases[i].is_embedded};
        assert_int_equal(controllers_runs(cases[i].list, &it, cases[i].beside), cases[i].runs);
    }
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *list, *message; /* NULL: it is good */
    } cases[] = {
        {"*", NULL},
        {"", NULL},
        {"node-lifecycle", NULL},
        {"*,-node-lifecycle", NULL},
        {"-*", "there is no controller \"*\""},
        {"*,-node-lifecycl",
         "there is no controller \"node-lifecycl\"; did you mean \"node-lifecycle\"?"},
        {"something-else-entirely", "there is no controller \"something-else-entirely\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        assert_int_equal(controllers_check(cases[i].list, &e), cases[i].message ? -1 : 0);
        assert_string_equal(e.msg, cases[i].message ? cases[i].message : "");
    }
}

static void test_table(void **state)
{
    (void)state;
    for (const struct controller *it = controllers; it->name; it++) {
        assert_non_null(it->setup);
        assert_non_null(it->doc);
        if (it > controllers)
            assert_true(strcmp(it[-1].name, it->name) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

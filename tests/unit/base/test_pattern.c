#include <string.h>

#include "base/pattern.h"
#include "unit.h"

static void test_matches(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        enum pattern_match expected;
    } cases[] = {
        {"^[a-z]+$", "abc", PATTERN_YES},
        {"^[a-z]+$", "abc\n", PATTERN_NO}, /* $ is the very end */
        {"b", "abc", PATTERN_YES},
        {"^b", "abc", PATTERN_NO},
        {"^a{2,3}$", "aa", PATTERN_YES},
        {"^a{2,3}$", "aaaa", PATTERN_NO},
        {"a{,3}", "a{,3}", PATTERN_YES}, /* no repetition but text */
        {"^(?i)ABC$", "abc", PATTERN_YES},
        {"^(?P<x>a|b)+?$", "abab", PATTERN_YES},
        {"^(?:a|b)$", "b", PATTERN_YES},
        {"^\\pL+$", "äö", PATTERN_YES},
        {"^.$", "ä", PATTERN_YES},
        {"^\\d+\\.\\d+$", "1.5", PATTERN_YES},
        {"^[[:alpha:]]+$", "ab", PATTERN_YES},
        {"^[]a]+$", "]a", PATTERN_YES},
        {"^[^]a]+$", "b", PATTERN_YES},
        {"^\\Qa+b\\E$", "a+b", PATTERN_YES},
        {"^$|^x$", "", PATTERN_YES},
        {"", "anything", PATTERN_YES},
        {"^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", PATTERN_TOO_HARD},
        {"^[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$",
         "10Gi", PATTERN_YES},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        _cleanup_(pattern_freep) struct pattern *p = pattern_new(cases[i].pattern, &e);
        if (!p)
            fail_msg("%s: %s", cases[i].pattern, e.msg);
        enum pattern_match got = pattern_match(p, cases[i].text, strlen(cases[i].text));
        if (got != cases[i].expected)
            fail_msg("%s on %s: %d", cases[i].pattern, cases[i].text, (int)got);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "(",      ")",      "[a",      "a**",     "*a",    "a++",    "a{2}{3}+",
        "(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)", "(a)\\1", "(?P<n>a)(?P=n)",
        "\\K",    "\\",     "(*UTF)a", "\\C",     "\\G",   "(?x)a",  "(?R)",
        "\\k<n>", "[b-a]",  "(?#c)",   "a{2,1}",  "\\R",   "((((((", "\\g{1}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        struct pattern *p = pattern_new(cases[i], &e);
        if (p)
            fail_msg("%s: is taken", cases[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.reason, "InvalidPattern");
    }
    char *text = mem_alloc(PATTERN_MAX + 2);
    memset(text, 'a', PATTERN_MAX + 1);
    text[PATTERN_MAX + 1] = '\0';
    assert_null(pattern_new(text, NULL));
    free(text);
    assert_null(pattern_new("((((a{1000}){1000}){1000}){1000})", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}

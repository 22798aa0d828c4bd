#include <string.h>

#include "api/pattern.h"
#include "unit.h"

static void test_matches(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        enum api_match expected;
    } cases[] = {
        {"^[a-z]+$", "abc", API_MATCH_YES},
        {"^[a-z]+$", "abc\n", API_MATCH_NO}, /* $ is the very end */
        {"b", "abc", API_MATCH_YES},
        {"^b", "abc", API_MATCH_NO},
        {"^a{2,3}$", "aa", API_MATCH_YES},
        {"^a{2,3}$", "aaaa", API_MATCH_NO},
        {"a{,3}", "a{,3}", API_MATCH_YES}, /* no repetition but text */
        {"^(?i)ABC$", "abc", API_MATCH_YES},
        {"^(?P<x>a|b)+?$", "abab", API_MATCH_YES},
        {"^(?:a|b)$", "b", API_MATCH_YES},
        {"^\\pL+$", "äö", API_MATCH_YES},
        {"^.$", "ä", API_MATCH_YES},
        {"^\\d+\\.\\d+$", "1.5", API_MATCH_YES},
        {"^[[:alpha:]]+$", "ab", API_MATCH_YES},
        {"^[]a]+$", "]a", API_MATCH_YES},
        {"^[^]a]+$", "b", API_MATCH_YES},
        {"^\\Qa+b\\E$", "a+b", API_MATCH_YES},
        {"^$|^x$", "", API_MATCH_YES},
        {"", "anything", API_MATCH_YES},
        {"^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", API_MATCH_TOO_HARD},
        {"^[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$",
         "10Gi", API_MATCH_YES},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        _cleanup_(api_pattern_freep) struct api_pattern *p = api_pattern_new(cases[i].pattern, &e);
        if (!p)
            fail_msg("%s: %s", cases[i].pattern, e.msg);
        enum api_match got = api_pattern_match(p, cases[i].text, strlen(cases[i].text));
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
        struct api_pattern *p = api_pattern_new(cases[i], &e);
        if (p)
            fail_msg("%s: is taken", cases[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.reason, "InvalidPattern");
    }
    char *text = mem_alloc(API_PATTERN_MAX + 2);
    memset(text, 'a', API_PATTERN_MAX + 1);
    text[API_PATTERN_MAX + 1] = '\0';
    assert_null(api_pattern_new(text, NULL));
    free(text);
    assert_null(api_pattern_new("((((a{1000}){1000}){1000}){1000})", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}

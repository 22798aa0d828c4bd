#include "k8s/apiserver/notes.h"
#include "unit.h"

static void test_warnings(void **state)
{
    (void)state;
    struct apiserver_notes n = {0};
    apiserver_notes_warn(NULL, "nobody listens");
    apiserver_notes_warn(&n, "%s", "a");
    apiserver_notes_warn(&n, "%s", "b");
    apiserver_notes_warn(&n, "%s", "a"); /* once is enough */
    apiserver_notes_warn(&n, "%s", "");
    assert_int_equal(n.warnings.len, 2);
    apiserver_notes_done(&n);
    assert_int_equal(n.warnings.len, 0);
}

static void test_bounds(void **state)
{
    (void)state;
    struct apiserver_notes n = {0};
    _cleanup_(str_done) struct str text = {0};
    for (size_t i = 0; i < APISERVER_WARNING_BYTES; i++)
        str_append(&text, "\xc3\xa4"); /* is never cut in half */
    apiserver_notes_warn(&n, "x%s", text.p);
    assert_int_equal(strlen(n.warnings.p[0]), APISERVER_WARNING_BYTES - 1);
    apiserver_notes_warn(&n, "1");
    apiserver_notes_warn(&n, "2"); /* there is no room left */
    assert_int_equal(n.warnings.len, 2);
    apiserver_notes_done(&n);
    for (int i = 0; i < 2 * APISERVER_WARNINGS; i++)
        apiserver_notes_warn(&n, "%d", i);
    assert_int_equal(n.warnings.len, APISERVER_WARNINGS);
    apiserver_notes_done(&n);
}

static void test_header(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"plain", "299 - \"plain\""},
        {"a \"b\" \\c", "299 - \"a \\\"b\\\" \\\\c\""},
        {"a\r\nX-Evil: 1", "299 - \"a  X-Evil: 1\""},
        {"\x7f\xc3\xa4", "299 - \" \xc3\xa4\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(str_done) struct str out = {0};
        apiserver_notes_header(table[i][0], &out);
        assert_string_equal(str_get(&out), table[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

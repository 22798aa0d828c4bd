#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit.h"

static void test_append(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str s = {0};
    assert_string_equal(str_get(&s), "");
    str_clear(&s);
    str_truncate(&s, 5);
    str_append(&s, "");
    assert_string_equal(s.p, "");
    str_append(&s, "one");
    str_append_c(&s, ' ');
    str_append_n(&s, "twoxxx", 3);
    str_append_n(&s, NULL, 0);
    str_appendf(&s, " %d%%", 3);
    str_appendf(&s, "%s", "");
    assert_string_equal(str_get(&s), "one two 3%");
    assert_int_equal(s.len, 10);

    str_truncate(&s, 100);
    assert_int_equal(s.len, 10);
    str_truncate(&s, 3);
    assert_string_equal(str_get(&s), "one");
    size_t cap = s.cap;
    str_clear(&s);
    assert_string_equal(str_get(&s), "");
    assert_int_equal(s.cap, cap);

    str_append_n(&s, "a\0b", 3);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.p, "a\0b", 4);
}

/* Every length around where the memory grows; the terminator is always there. */
static void test_growth(void **state)
{
    (void)state;
    for (size_t n = 60; n < 70; n++) {
        _cleanup_(str_done) struct str s = {0};
        _cleanup_(str_done) struct str f = {0};
        for (size_t i = 0; i < n; i++)
            str_append_c(&s, 'x');
        assert_int_equal(strlen(s.p), n);
        str_appendf(&f, "%s", s.p);
        str_appendf(&f, "%s", s.p);
        assert_int_equal(strlen(f.p), 2 * n);
    }
    _cleanup_(str_done) struct str s = {0};
    for (int i = 0; i < 10000; i++)
        str_appendf(&s, "%d,", i);
    assert_int_equal(s.len, strlen(s.p));
    assert_true(str_starts_with(s.p, "0,1,2,"));
    assert_true(str_ends_with(s.p, ",9998,9999,"));
}

static void test_take(void **state)
{
    (void)state;
    struct str s = {0};
    _cleanup_free_ char *empty = str_take(&s);
    assert_string_equal(empty, "");
    str_append(&s, "text");
    _cleanup_free_ char *text = str_take(&s);
    assert_string_equal(text, "text");
    assert_null(s.p);
    assert_int_equal(s.len, 0);
    str_append(&s, "again");
    assert_string_equal(str_get(&s), "again");
    str_done(&s);
    str_done(&s);
}

static void test_questions(void **state)
{
    (void)state;
    assert_true(str_eq("", ""));
    assert_false(str_eq("a", "A"));
    assert_true(str_starts_with("abc", ""));
    assert_true(str_starts_with("abc", "abc"));
    assert_false(str_starts_with("ab", "abc"));
    assert_false(str_starts_with("xabc", "abc"));
    assert_true(str_ends_with("abc", ""));
    assert_true(str_ends_with("abc", "abc"));
    assert_true(str_ends_with("abc", "c"));
    assert_false(str_ends_with("bc", "abc"));
    assert_false(str_ends_with("abcx", "abc"));
    static const char *const words[] = {"one", "two", NULL};
    assert_true(str_in("two", words));
    assert_false(str_in("tw", words));
    assert_false(str_in("", words));
    assert_false(str_in("x", words + 2));
}

static void test_cut(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t most, want;
    } table[] = {
        {"", 0, 0},
        {"", 5, 0},
        {"abc", 5, 3},
        {"abc", 3, 3},
        {"abc", 2, 2},
        {"abc", 0, 0},
        {"a\xc3\xa9", 3, 3},
        {"a\xc3\xa9", 2, 1},
        {"\xc3\xa9\xc3\xa9", 3, 2},
        {"\xe2\x82\xac", 2, 0},
        {"a\xe2\x82\xac", 3, 1},
        {"\xf0\x9f\x98\x80", 3, 0},
        {"a\xf0\x9f\x98\x80", 4, 1},
        {"a\xf0\x9f\x98\x80", 2, 1},
        {"\x80\x80\x80\x80\x80\x80", 5, 5}, /* no UTF-8 at all */
        {"abc", SIZE_MAX - 1, 3},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t got = str_cut(table[i].s, table[i].most);
        if (got != table[i].want)
            fail_msg("%zu: got %zu, want %zu", i, got, table[i].want);
    }
}

/* All characters that there are, encoded here, and all that is near them but is none. */
static void test_utf8(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= 0x10ffff; c += c < 0x11000 ? 1 : 101) {
        char s[5] = {0};
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n == 1) {
            s[0] = (char)c;
        } else {
            for (size_t i = n - 1, rest = c; i > 0; i--, rest >>= 6)
                s[i] = (char)(0x80 | (rest & 0x3f));
            s[0] = (char)(0xf00 >> n | c >> 6 * (n - 1));
        }
        uint32_t got = 0;
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        assert_int_equal(str_utf8(s, n, &got), surrogate ? 0 : n);
        if (!surrogate)
            assert_int_equal(got, c);
        for (size_t part = 0; part < n; part++)
            assert_int_equal(str_utf8(s, part, &got), 0);
    }
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf", /* longer than needed */
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", /* past the end */
        "\xff",
        "\xfe",
        "\xc3(",
        "\xe2\x82(", /* no continuation */
        "\xf0\x9f\x98(",
        "\xe2(\xac",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint32_t c;
        assert_int_equal(str_utf8(bad[i], strlen(bad[i]), &c), 0);
    }
}

static void test_distance(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned want;
    } table[] = {
        {"", "", 0},
        {"a", "", 1},
        {"kitten", "sitting", 3},
        {"flaw", "lawn", 2},
        {"Size", "size", 0},
        {"replicas", "replcias", 2},
        {"abc", "xyz", 3},
        {"abcdefgh", "zzzzzzzz", 6}, /* more than counted */
        {"abc", "abcdefghijklm", 6},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(str_distance(table[i].a, table[i].b, 5), table[i].want);
        assert_int_equal(str_distance(table[i].b, table[i].a, 5), table[i].want);
    }
    char big[70] = {0};
    memset(big, 'x', 64);
    assert_int_equal(str_distance(big, big, 5), 0);
    big[64] = 'x';
    assert_int_equal(str_distance(big, big, 5), 6); /* longer than anybody misspells */
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"capacity", "replicas", "replicaCount", "size", NULL};
    static const struct {
        const char *s, *want;
    } table[] = {
        {"capacty", "capacity"},
        {"Replicas", "replicas"},
        {"replicaCont", "replicaCount"},
        {"replica", "replicas"},
        {"siez", NULL}, /* two edits of four letters are too many */
        {"sise", "size"},
        {"si", NULL},
        {"", NULL},
        {"somethingElse", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const char *got = str_nearest(table[i].s, words);
        if (!table[i].want)
            assert_null(got);
        else
            assert_string_equal(got, table[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),   cmocka_unit_test(test_growth),
        cmocka_unit_test(test_take),     cmocka_unit_test(test_questions),
        cmocka_unit_test(test_cut),      cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_distance), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

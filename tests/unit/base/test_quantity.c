#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "unit.h"

static const char *canonical(const char *text)
{
    static char buf[QUANTITY_TEXT_MAX];
    struct quantity q;
    struct err e = {0};
    if (quantity_parse(text, &q, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return quantity_format(&q, buf);
}

static void test_canonical_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } table[] = {
        /* zero has one text */
        {"0", "0"},
        {"-0", "0"},
        {"+0", "0"},
        {"00.00", "0"},
        {"0Ki", "0"},
        {"0e5", "0"},
        {"0e-5", "0"},
        {"0.", "0"},
        {".0", "0"},
        {"0n", "0"},
        {"0e999999999999999999999999", "0"},
        /* the family of the suffix stays */
        {"1", "1"},
        {"+1", "1"},
        {"-1", "-1"},
        {".5", "500m"},
        {"5.", "5"},
        {"5.Gi", "5Gi"},
        {"007", "7"},
        {"1000", "1k"},
        {"1000m", "1"},
        {"1500m", "1500m"},
        {"1.5", "1500m"},
        {"1.5k", "1500"},
        {"1k", "1k"},
        {"1M", "1M"},
        {"1G", "1G"},
        {"1T", "1T"},
        {"1P", "1P"},
        {"1E", "1E"},
        {"1n", "1n"},
        {"1u", "1u"},
        {"1000u", "1m"},
        {"1000000000n", "1"},
        {"123456789n", "123456789n"},
        {"1.5Gi", "1536Mi"},
        {"1024Ki", "1Mi"},
        {"1Ki", "1Ki"},
        {"-1Ki", "-1Ki"},
        {"1Ei", "1Ei"},
        {"1025Mi", "1025Mi"},
        {"0.5Ei", "512Pi"},
        /* small or fractional binary becomes decimal */
        {"0.5Ki", "512"},
        {"-0.5Ki", "-512"},
        {"0.9990234375Ki", "1023"},
        {"0.9765625Ki", "1k"},
        {"1.0001Ki", "1024102400u"},
        {"0.0001Ki", "102400u"},
        {"1.0009765625Ki", "1025"},
        /* exponents, in threes */
        {"1e3", "1e3"},
        {"1E3", "1e3"},
        {"1e+3", "1e3"},
        {"1e0", "1"},
        {"1e-3", "1e-3"},
        {"1e1", "10"},
        {"1e2", "100"},
        {"1e4", "10e3"},
        {"1e5", "100e3"},
        {"1e-1", "100e-3"},
        {"1e-2", "10e-3"},
        {"1.5e3", "1500"},
        {"1e18", "1e18"},
        {"1e-9", "1e-9"},
        {"123e003", "123e3"},
        {"0.000001e6", "1"},
        /* finer than nano goes up, away from zero */
        {"0.1n", "1n"},
        {"-0.1n", "-1n"},
        {"1.1n", "2n"},
        {"-1.1n", "-2n"},
        {"1e-10", "1e-9"},
        {"1e-999999999999999999999999", "1e-9"},
        {"-1e-400", "-1e-9"},
        {"0.0000000001", "1n"},
        {"0.00000000000000000000000001Ki", "1n"},
        {"0.999999999999999999999999999999999", "1"},
        {"9.00000000000000000000000000000000001", "9000000001n"},
        /* the carry out of the digits behind nano: 2^-30 Gi is exactly one */
        {"0.000000000931322574615478515625Gi", "1"},
        {"0.000000000931322574615478515624Gi", "1"},
        {"0.000000000931322574615478515626Gi", "1000000001n"},
        /* the limits */
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775807", "-9223372036854775807"},
        {"9223372036854775806.999999999", "9223372036854775806999999999n"},
        {"9223372036854775806.9999999999", "9223372036854775807"},
        {"7.999999999999999999Ei", "9223372036854775806847078496n"},
        {"9.223372036854775807E", "9223372036854775807"},
        {"9.223372036854775807e18", "9223372036854775807"},
        {"9223372036854775807000000000n", "9223372036854775807"},
        {"0.00000000000000000000000000000000000001e38", "1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const char *got = canonical(table[i].text);
        if (!str_eq(got, table[i].want))
            fail_msg("%s: got %s, want %s", table[i].text, got, table[i].want);
    }
}

/* What is printed is read back as the same number, and printed the same again. */
static void test_canonical_is_stable(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"n",  "u",  "m",  "",    "k",  "M",  "G",
                                           "T",  "P",  "E",  "Ki",  "Mi", "Gi", "Ti",
                                           "Pi", "Ei", "e3", "e-3", "E5"};
    static const char *const numbers[] = {"1",   "-1",     "3",       "0.1", "1.25",
                                          "999", "1.0009", "-7.0625", "5"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(numbers); j++) {
            char text[64], once[QUANTITY_TEXT_MAX], twice[QUANTITY_TEXT_MAX];
            snprintf(text, sizeof(text), "%s%s", numbers[j], suffixes[i]);
            struct quantity a, b;
            struct err e = {0};
            if (quantity_parse(text, &a, &e) < 0) {
                assert_int_equal(e.code, ERR_OUT_OF_RANGE);
                continue;
            }
            quantity_format(&a, once);
            assert_int_equal(quantity_parse(once, &b, NULL), 0);
            assert_int_equal(quantity_cmp(&a, &b), 0);
            assert_string_equal(quantity_format(&b, twice), once);
        }
    }
}

static void test_bad_syntax(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",     " ",    "+",      "-",       ".",     "-.",     "Ki",           "m",
        "e3",   "Gi",   "1.2.3",  "1..2",    "--1",   "+-1",    "1-",           "1+",
        "1K",   "1ki",  "1KI",    "1i",      "1g",    "1t",     "1mi",          "1kB",
        "1GB",  "1GiB", "1Gi ",   " 1Gi",    "1 Gi",  "1Gi\n",  "1e",           "1e+",
        "1e-",  "1ee3", "1e3k",   "1e3Ki",   "1e1.5", "1e 3",   "0x10",         "1_000",
        "1,5",  "inf",  "nan",    "one",     "1.1.M", "1+1.0M", "0.1mi",        "0.1am",
        "aoeu", ".5i",  "-3.01i", "-3.01e-", "1m1",   "1Ki3",   "\xef\xbc\x91", "1\xc2\xa0",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct quantity q = {.nano = 77};
        struct err e = {0};
        if (quantity_parse(table[i], &q, &e) == 0)
            fail_msg("\"%s\" was taken", table[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.reason, "Invalid");
        assert_non_null(strstr(e.msg, table[i]));
        assert_non_null(strstr(e.msg, "such as 100Gi"));
        assert_true(q.nano == 77);
        assert_int_equal(quantity_parse(table[i], &q, NULL), -1);
    }
}

static void test_out_of_range(void **state)
{
    (void)state;
    static const char *const table[] = {
        "9223372036854775808",
        "-9223372036854775808",
        "9223372036854775807.0000000001",
        "9223372036854775807.000000001",
        "8Ei",
        "-8Ei",
        "7.9999999999999999999Ei",
        "10E",
        "1e19",
        "1e400",
        "-1e400",
        "1e2147483648",
        "1e4294967296",
        "1e9223372036854775807",
        "1e9223372036854775808",
        "1e99999999999999999999999999999999",
        "99999999999999999999999999999999999999999999999999",
        "340282366920938463463374607431768211456",
        "0.0000000000000000000000000000000000000000000001e80",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct quantity q = {.nano = 77};
        struct err e = {0};
        if (quantity_parse(table[i], &q, &e) == 0)
            fail_msg("%s was taken", table[i]);
        assert_int_equal(e.code, ERR_OUT_OF_RANGE);
        assert_string_equal(e.reason, "OutOfRange");
        assert_true(q.nano == 77);
    }
}

/* A megabyte of digits: exact, and no slower than reading it. */
static void test_long_texts(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    _cleanup_(str_done) struct str s = {0};
    struct quantity q;
    struct err e = {0};

    str_append(&s, "1.");
    for (int i = 0; i < N; i++)
        str_append_c(&s, '0');
    str_append_c(&s, '1');
    assert_int_equal(quantity_parse(str_get(&s), &q, &e), 0);
    assert_true(q.nano == 1000000001);
    str_append(&s, "Ei");
    assert_int_equal(quantity_parse(str_get(&s), &q, &e), 0);
    assert_true(q.nano == ((__int128)1 << 60) * 1000000000 + 1);

    /* 1 with N zeros, moved back by N places */
    str_clear(&s);
    str_append_c(&s, '1');
    for (int i = 0; i < N; i++)
        str_append_c(&s, '0');
    assert_int_equal(quantity_parse(str_get(&s), &q, &e), -1);
    assert_int_equal(e.code, ERR_OUT_OF_RANGE);
    str_appendf(&s, "e-%d", N);
    assert_int_equal(quantity_parse(str_get(&s), &q, &e), 0);
    assert_true(q.nano == 1000000000);

    /* the message shows the beginning only, and no half character */
    str_clear(&s);
    str_append_c(&s, 'x');
    for (int i = 0; i < 500; i++)
        str_append(&s, "\xc3\xa9");
    assert_int_equal(quantity_parse(str_get(&s), &q, &e), -1);
    assert_true(str_starts_with(e.msg, "\"x\xc3\xa9"));
    assert_non_null(strstr(e.msg, "\xa9...\" is not a quantity"));
    assert_true(strlen(e.msg) < 300);
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
        bool whole;
    } table[] = {
        {"0", 0, true},
        {"1", 1, true},
        {"1n", 1, false},
        {"-1n", -1, false},
        {"1.5", 2, false},
        {"-1.5", -2, false},
        {"1000m", 1, true},
        {"999m", 1, false},
        {"2Ki", 2048, true},
        {"-2Ki", -2048, true},
        {"1e-3", 1, false},
        {"9223372036854775807", INT64_MAX, true},
        {"9223372036854775806.5", INT64_MAX, false},
        {"-9223372036854775807", -INT64_MAX, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct quantity q;
        assert_int_equal(quantity_parse(table[i].text, &q, NULL), 0);
        if (quantity_to_int(&q) != table[i].want || quantity_is_whole(&q) != table[i].whole)
            fail_msg("%s: got %lld", table[i].text, (long long)quantity_to_int(&q));
    }

    char buf[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int(1 << 20, QUANTITY_BINARY_SI);
    assert_string_equal(quantity_format(&q, buf), "1Mi");
    q = quantity_from_int(-5000, QUANTITY_DECIMAL_SI);
    assert_string_equal(quantity_format(&q, buf), "-5k");
    q = quantity_from_int(5000, QUANTITY_DECIMAL_EXP);
    assert_string_equal(quantity_format(&q, buf), "5e3");
    q = quantity_from_int(INT64_MIN, QUANTITY_BINARY_SI);
    assert_string_equal(quantity_format(&q, buf), "-8Ei");
    assert_true(quantity_to_int(&q) == INT64_MIN);
}

static void test_order(void **state)
{
    (void)state;
    static const char *const ascending[] = {"-8E", "-1Gi", "-1",  "-1n", "0",   "1n", "1u", "1m",
                                            "1",   "1k",   "1Ki", "1M",  "1Mi", "1E", "1Ei"};
    for (size_t i = 0; i < ARRAY_SIZE(ascending); i++) {
        struct quantity a;
        assert_int_equal(quantity_parse(ascending[i], &a, NULL), 0);
        assert_int_equal(quantity_sign(&a), i < 4 ? -1 : i > 4);
        for (size_t j = 0; j < ARRAY_SIZE(ascending); j++) {
            struct quantity b;
            assert_int_equal(quantity_parse(ascending[j], &b, NULL), 0);
            assert_int_equal(quantity_cmp(&a, &b), i < j ? -1 : i > j);
        }
    }
}

static void test_sums(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *sum, *difference; /* NULL is out of range */
    } table[] = {
        {"1Gi", "1Gi", "2Gi", "0"},
        {"1Gi", "1M", "1074741824", "1072741824"},
        {"1", "1m", "1001m", "999m"},
        {"0", "1Ki", "1024", "-1024"},
        {"1e3", "1k", "2e3", "0"},
        {"1n", "-2n", "-1n", "3n"},
        {"9223372036854775807", "1n", NULL, "9223372036854775806999999999n"},
        {"-9223372036854775807", "1n", "-9223372036854775806999999999n", NULL},
        {"9223372036854775807", "-9223372036854775807", "0", NULL},
        {"5E", "5E", NULL, "0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct quantity a, b;
        char buf[QUANTITY_TEXT_MAX];
        assert_int_equal(quantity_parse(table[i].a, &a, NULL), 0);
        assert_int_equal(quantity_parse(table[i].b, &b, NULL), 0);
        for (int subtract = 0; subtract < 2; subtract++) {
            const char *want = subtract ? table[i].difference : table[i].sum;
            struct quantity q = {.nano = 77};
            struct err e = {0};
            int r = (subtract ? quantity_sub : quantity_add)(&a, &b, &q, &e);
            if (!want) {
                assert_int_equal(r, -1);
                assert_int_equal(e.code, ERR_OUT_OF_RANGE);
                assert_string_equal(e.reason, "OutOfRange");
                assert_true(q.nano == 77);
                continue;
            }
            assert_int_equal(r, 0);
            assert_int_equal(q.format, a.format);
            assert_string_equal(quantity_format(&q, buf), want);
        }
    }

    /* in place */
    struct quantity a = quantity_from_int(3, QUANTITY_DECIMAL_SI);
    assert_int_equal(quantity_add(&a, &a, &a, NULL), 0);
    assert_int_equal(quantity_to_int(&a), 6);
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        uint64_t want;
    } table[] = {
        {"0", ERR_OK, 0},
        {"1.5Gi", ERR_OK, 1610612736},
        {"1000m", ERR_OK, 1},
        {"9223372036854775807", ERR_OK, INT64_MAX},
        {"-1", ERR_INVALID_ARGUMENT, 0},
        {"-1n", ERR_INVALID_ARGUMENT, 0},
        {"1m", ERR_INVALID_ARGUMENT, 0},
        {"1.0001Ki", ERR_INVALID_ARGUMENT, 0},
        {"10GB", ERR_INVALID_ARGUMENT, 0},
        {"8Ei", ERR_OUT_OF_RANGE, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        uint64_t bytes = 77;
        struct err e = {0};
        int r = quantity_parse_bytes(table[i].text, &bytes, &e);
        assert_int_equal(r, table[i].code == ERR_OK ? 0 : -1);
        assert_int_equal(e.code, table[i].code);
        assert_true(bytes == (r == 0 ? table[i].want : 77));
        if (r < 0)
            assert_non_null(strstr(e.msg, table[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_text), cmocka_unit_test(test_canonical_is_stable),
        cmocka_unit_test(test_bad_syntax),     cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_long_texts),     cmocka_unit_test(test_integers),
        cmocka_unit_test(test_order),          cmocka_unit_test(test_sums),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

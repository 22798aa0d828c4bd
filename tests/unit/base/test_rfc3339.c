#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "unit.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t sec;
        long ns;
    } table[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1970-01-01T00:00:01Z", 1, 0},
        {"1969-12-31T23:59:59Z", -1, 0},
        {"1969-12-31T23:59:59.25Z", -1, 250000000},
        {"2026-01-02T03:04:05Z", 1767323045, 0},
        {"2026-01-02T03:04:05.678901Z", 1767323045, 678901000},
        {"2026-01-02T03:04:05.000000001Z", 1767323045, 1},
        {"2026-01-02T03:04:05.1Z", 1767323045, 100000000},
        {"2026-01-02T03:04:05+00:00", 1767323045, 0},
        {"2026-01-02T03:04:05-00:00", 1767323045, 0},
        {"2026-01-02T05:04:05+02:00", 1767323045, 0},
        {"2026-01-01T21:34:05-05:30", 1767323045, 0},
        {"2026-01-03T03:03:05+23:59", 1767323045, 0},
        {"2000-02-29T00:00:00Z", 951782400, 0},
        {"2024-02-29T12:00:00Z", 1709208000, 0},
        {"2024-12-31T23:59:59Z", 1735689599, 0},
        {"2038-01-19T03:14:08Z", 2147483648, 0},
        {"0000-01-01T00:00:00Z", -62167219200, 0},
        {"0000-02-29T00:00:00Z", -62162121600, 0},
        {"0001-01-01T00:00:00Z", -62135596800, 0},
        {"9999-12-31T23:59:59.999999999Z", 253402300799, 999999999},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct timespec t = {0};
        struct err e = {0};
        if (rfc3339_parse(table[i].text, &t, &e) < 0)
            fail_msg("%s: %s", table[i].text, e.msg);
        if (t.tv_sec != table[i].sec || t.tv_nsec != table[i].ns)
            fail_msg("%s: got %lld.%09ld", table[i].text, (long long)t.tv_sec, t.tv_nsec);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",
        "2026",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04Z",
        "2026-01-02 03:04:05Z",
        "2026-01-02t03:04:05Z",
        "2026-01-02T03:04:05z",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:05Z ",
        " 2026-01-02T03:04:05Z",
        "2026-1-02T03:04:05Z",
        "2026-01-2T03:04:05Z",
        "2026-01-02T3:04:05Z",
        "02026-01-02T03:04:05Z",
        "-026-01-02T03:04:05Z",
        "+026-01-02T03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-04-31T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "2100-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2024-02-30T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:61Z",
        "2016-12-31T23:59:60Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05,5Z",
        "2026-01-02T03:04:05.1234567890Z",
        "2026-01-02T03:04:05.5",
        "2026-01-02T03:04:05.-5Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05+0100",
        "2026-01-02T03:04:05+01",
        "2026-01-02T03:04:05+1:00",
        "2026-01-02T03:04:05+01:00Z",
        "2026-01-02T03:04:05 01:00",
        "2026-01-02T03:04:05+",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-01-02T03:04:\xef\xbc\x90\xef\xbc\x90Z",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct timespec t = {.tv_sec = 77};
        struct err e = {0};
        if (rfc3339_parse(table[i], &t, &e) == 0)
            fail_msg("\"%s\" was taken", table[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.msg, table[i]));
        assert_int_equal(t.tv_sec, 77);
    }
}

/* Every prefix of a good time is refused, and nothing reads past its end. */
static void test_prefixes(void **state)
{
    (void)state;
    const char *whole = "2026-01-02T03:04:05.678901+02:00";
    for (size_t n = 0; n < strlen(whole); n++) {
        _cleanup_free_ char *part = mem_strndup(whole, n);
        struct timespec t;
        assert_int_equal(rfc3339_parse(part, &t, NULL), -1);
    }
}

static void test_format(void **state)
{
    (void)state;
    static const struct {
        int64_t sec;
        long ns;
        enum rfc3339_digits digits;
        const char *want;
    } table[] = {
        {0, 0, RFC3339_SECONDS, "1970-01-01T00:00:00Z"},
        {0, 999999999, RFC3339_SECONDS, "1970-01-01T00:00:00Z"},
        {0, 0, RFC3339_MICRO, "1970-01-01T00:00:00.000000Z"},
        {1767323045, 678901234, RFC3339_MICRO, "2026-01-02T03:04:05.678901Z"},
        {1767323045, 678901234, RFC3339_MILLI, "2026-01-02T03:04:05.678Z"},
        {1767323045, 678901234, RFC3339_NANO, "2026-01-02T03:04:05.678901234Z"},
        {-1, 5000, RFC3339_MICRO, "1969-12-31T23:59:59.000005Z"},
        {-62167219200, 0, RFC3339_SECONDS, "0000-01-01T00:00:00Z"},
        {-62167219201, 5, RFC3339_NANO, "0000-01-01T00:00:00.000000000Z"},
        {INT64_MIN, 0, RFC3339_SECONDS, "0000-01-01T00:00:00Z"},
        {253402300799, 0, RFC3339_SECONDS, "9999-12-31T23:59:59Z"},
        {253402300800, 0, RFC3339_SECONDS, "9999-12-31T23:59:59Z"},
        {INT64_MAX, 0, RFC3339_SECONDS, "9999-12-31T23:59:59Z"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char buf[RFC3339_MAX];
        struct timespec t = {.tv_sec = table[i].sec, .tv_nsec = table[i].ns};
        assert_string_equal(rfc3339_format(t, table[i].digits, buf), table[i].want);
    }
}

/* Each day of ten thousand years, counted here without the formulas under test. */
static void test_every_day(void **state)
{
    (void)state;
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t sec = -62167219200 + 45296; /* 12:34:56 */
    for (int year = 0; year < 10000; year++) {
        for (int month = 1; month <= 12; month++) {
            int days = lengths[month - 1];
            if (month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0))
                days++;
            for (int day = 1; day <= days; day++, sec += 86400) {
                if (day > 1 && day < 28) /* the ends of months are where mistakes are */
                    continue;
                char want[64], got[RFC3339_MAX];
                snprintf(want, sizeof(want), "%04d-%02d-%02dT12:34:56Z", year, month, day);
                struct timespec t = {.tv_sec = sec};
                if (!str_eq(rfc3339_format(t, RFC3339_SECONDS, got), want))
                    fail_msg("%lld: got %s, want %s", (long long)sec, got, want);
                if (rfc3339_parse(want, &t, NULL) < 0 || t.tv_sec != sec)
                    fail_msg("%s: got %lld", want, (long long)t.tv_sec);
            }
        }
    }
}

static void test_nanoseconds(void **state)
{
    (void)state;
    static const int64_t table[] = {0,  1,           999999999,   1000000000, 1767323045678901234,
                                    -1, -1000000000, -1000000001, INT64_MAX,  INT64_MIN};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct timespec t = rfc3339_from_ns(table[i]);
        assert_true(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
        assert_true(rfc3339_to_ns(t) == table[i]);
    }
    assert_int_equal(rfc3339_from_ns(-1).tv_sec, -1);
    assert_int_equal(rfc3339_from_ns(-1).tv_nsec, 999999999);

    struct timespec t;
    assert_int_equal(rfc3339_parse("9999-12-31T23:59:59Z", &t, NULL), 0);
    assert_true(rfc3339_to_ns(t) == INT64_MAX);
    assert_int_equal(rfc3339_parse("0000-01-01T00:00:00Z", &t, NULL), 0);
    assert_true(rfc3339_to_ns(t) == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prefixes),  cmocka_unit_test(test_format),
        cmocka_unit_test(test_every_day), cmocka_unit_test(test_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

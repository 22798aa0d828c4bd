#include "base/age.h"
#include "base/clock.h"
#include "base/mem.h"
#include "unit.h"

static void test_ages(void **state)
{
    (void)state;
    enum { M = 60, H = 3600, D = 86400 };
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-2, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {1, "1s"},
        {119, "119s"},
        {120, "2m"},
        {121, "2m1s"},
        {10 * M - 1, "9m59s"},
        {10 * M, "10m"},
        {10 * M + 59, "10m"},
        {3 * H - 1, "179m"},
        {3 * H, "3h"},
        {3 * H + M, "3h1m"},
        {8 * H - 1, "7h59m"},
        {8 * H, "8h"},
        {2 * D - 1, "47h"},
        {2 * D, "2d"},
        {2 * D + H, "2d1h"},
        {8 * D - 1, "7d23h"},
        {8 * D, "8d"},
        {730 * D - 1, "729d"},
        {730 * (int64_t)D, "2y"},
        {731 * (int64_t)D, "2y1d"},
        {8 * 365 * (int64_t)D - 1, "7y364d"},
        {8 * 365 * (int64_t)D + 5 * D, "8y"},
        {INT64_MAX / CLOCK_SECOND, "292y"},
        {INT64_MIN / CLOCK_SECOND, "<invalid>"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buf[AGE_MAX];
        assert_string_equal(age_format(cases[i].seconds * CLOCK_SECOND, buf), cases[i].text);
    }
}

static void test_since(void **state)
{
    (void)state;
    static const struct {
        const char *time, *text;
    } cases[] = {
        {"1970-01-01T00:00:00Z", "60s"},
        {"1970-01-01T00:00:58.5Z", "1s"},
        {"1970-01-01T00:01:01Z", "0s"},
        {"1970-01-01T01:00:00Z", "<invalid>"},
        {"", "<unknown>"},
        {"null", "<unknown>"},
        {"0001-01-01T00:00:00Z", "<unknown>"},
        {"yesterday", "<invalid>"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buf[AGE_MAX];
        assert_string_equal(age_since(cases[i].time, 60 * CLOCK_SECOND, buf), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The quick answer to "may it overlap?" never says no when it does. */
#include "repl/busy.h"
#include "unit.h"

static void never_wrong(void **state)
{
    (void)state;
    static const uint64_t ranges[][2] = {
        {0, 512},           {65024, 1024},     {65536, 65536},           {1 << 20, 64 << 20},
        {1ull << 40, 4096}, {(64 << 20), 512}, {(64 << 20) - 512, 1024}, {0, INT64_MAX},
    };
    size_t n = sizeof(ranges) / sizeof(ranges[0]);
    for (size_t i = 0; i < n; i++) {
        struct repl_busy b = {0};
        repl_busy_count(&b, ranges[i][0], ranges[i][1], 1);
        for (size_t k = 0; k < n; k++)
            if (repl_overlap(ranges[i][0], ranges[i][1], ranges[k][0], ranges[k][1]))
                assert_true(repl_busy_maybe(&b, ranges[k][0], ranges[k][1]));
        repl_busy_count(&b, ranges[i][0], ranges[i][1], -1);
        assert_false(repl_busy_maybe(&b, 0, INT64_MAX));
        for (size_t k = 0; k < REPL_GRANULES; k++)
            assert_int_equal(b.n[k], 0);
    }
}

static void apart(void **state)
{
    (void)state;
    struct repl_busy b = {0};
    repl_busy_count(&b, 0, 4096, 1);
    assert_false(repl_busy_maybe(&b, 1 << 20, 4096));
    assert_false(repl_overlap(0, 512, 512, 512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(never_wrong), cmocka_unit_test(apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

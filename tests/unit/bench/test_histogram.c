#include "base/mem.h"
#include "bench/histogram.h"
#include "unit.h"

static void test_percentiles(void **state)
{
    (void)state;
    struct bench_histogram *h = NEW(struct bench_histogram), *other = NEW(struct bench_histogram);
    assert_int_equal(bench_histogram_at(h, 0.5), 0);
    for (uint64_t i = 1; i <= 100000; i++)
        bench_histogram_add(i % 2 ? h : other, i);
    bench_histogram_merge(h, other);
    assert_int_equal(h->count, 100000);
    const double shares[] = {0.001, 0.5, 0.9, 0.99, 0.999};
    for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
        double exact = 100000 * shares[i], got = (double)bench_histogram_at(h, shares[i]);
        assert_true(got <= exact + 1 && got >= exact * (1 - 1.0 / 64) - 1);
    }
    assert_int_equal(bench_histogram_at(h, 1), 100000);
    bench_histogram_add(h, UINT64_MAX); /* nothing is too large */
    assert_true(bench_histogram_at(h, 1) == UINT64_MAX);
    free(h);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_percentiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

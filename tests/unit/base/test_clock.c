#include <time.h>

#include "base/clock.h"
#include "unit.h"

static void test_system(void **state)
{
    (void)state;
    const struct clock *c = clock_system();
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    int64_t real = clock_real_ns(c);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_true(real >= before.tv_sec * CLOCK_SECOND + before.tv_nsec);
    assert_true(real <= after.tv_sec * CLOCK_SECOND + after.tv_nsec);

    clock_gettime(CLOCK_MONOTONIC, &before);
    int64_t mono = clock_mono_ns(c);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(mono >= before.tv_sec * CLOCK_SECOND + before.tv_nsec);
    assert_true(mono <= after.tv_sec * CLOCK_SECOND + after.tv_nsec);
}

static void test_manual(void **state)
{
    (void)state;
    struct clock_manual m;
    clock_manual_init(&m, 5 * CLOCK_SECOND);
    const struct clock *c = &m.clock;
    assert_int_equal(clock_real_ns(c), 5000000000);
    assert_int_equal(clock_mono_ns(c), 0);
    assert_int_equal(clock_real_ns(c), 5000000000);

    clock_manual_advance(&m, 7);
    assert_int_equal(clock_real_ns(c), 5000000007);
    assert_int_equal(clock_mono_ns(c), 7);

    clock_manual_set_real(&m, 1);
    assert_int_equal(clock_real_ns(c), 1);
    assert_int_equal(clock_mono_ns(c), 7);
    clock_manual_advance(&m, 3);
    assert_int_equal(clock_real_ns(c), 4);
    assert_int_equal(clock_mono_ns(c), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

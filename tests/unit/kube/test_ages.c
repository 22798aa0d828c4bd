/* Ages of stamps while somebody sets the clock. */
#include <stdio.h>

#include "kube/ages.h"
#include "unit.h"

static const int64_t START = 1800000000 * CLOCK_SECOND, HOUR = 3600 * CLOCK_SECOND,
                     DAY = 24 * 3600 * CLOCK_SECOND;

static struct clock_manual watch;
static struct kube_ages *ages;

static int setup(void **state)
{
    (void)state;
    clock_manual_init(&watch, START);
    clock_manual_advance(&watch, 2 * DAY); /* the machine runs since a while */
    ages = kube_ages_new(&watch.clock);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kube_ages_free(ages);
    return 0;
}

static int64_t real(void)
{
    return clock_real_ns(&watch.clock);
}

static int64_t age(const char *key, int64_t stamp)
{
    return kube_ages_now(ages, key, stamp) - stamp;
}

static void test_first_sight(void **state)
{
    (void)state;
    assert_int_equal(age("old", real() - HOUR), HOUR);
    assert_int_equal(age("new", real()), 0);
    assert_int_equal(age("future", real() + DAY), 0); /* of a clock that is wrong */
    clock_manual_advance(&watch, 7);
    assert_int_equal(age("future", real() - 7 + DAY), 7);
}

static void test_jumps(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t by;
    } jumps[] = {{"forward an hour", HOUR},
                 {"forward a day", DAY},
                 {"back an hour", -HOUR},
                 {"back a day", -DAY}};
    for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        int64_t stamp = real();
        assert_int_equal(age(jumps[i].name, stamp), 0);
        clock_manual_advance(&watch, 10 * CLOCK_SECOND);
        clock_manual_set_real(&watch, real() + jumps[i].by);
        if (age(jumps[i].name, stamp) != 10 * CLOCK_SECOND)
            fail_msg("%s: %ld s", jumps[i].name, (long)(age(jumps[i].name, stamp) / CLOCK_SECOND));
        clock_manual_advance(&watch, 20 * CLOCK_SECOND);
        assert_int_equal(age(jumps[i].name, stamp), 30 * CLOCK_SECOND);
        assert_int_equal(age(jumps[i].name, real()), 0); /* another stamp begins anew */
    }
}

static void test_seen(void **state)
{
    (void)state;
    int64_t stamp = real() - DAY;
    assert_int_equal(kube_ages_seen(ages, "lease", stamp), 0); /* whatever it says */
    clock_manual_set_real(&watch, real() + DAY);
    assert_int_equal(kube_ages_seen(ages, "lease", stamp), 0);
    clock_manual_advance(&watch, HOUR);
    assert_int_equal(kube_ages_seen(ages, "lease", stamp), HOUR);
    assert_int_equal(kube_ages_seen(ages, "lease", stamp + 1), 0); /* renewed */
}

static void test_forgets(void **state)
{
    (void)state;
    char key[32];
    int64_t stamp = real();
    age("asked", stamp);
    for (int i = 0; i < 1022; i++) {
        snprintf(key, sizeof(key), "old %d", i);
        age(key, stamp);
    }
    clock_manual_advance(&watch, 2 * HOUR);
    clock_manual_set_real(&watch, real() - DAY);
    assert_int_equal(age("asked", stamp), 2 * HOUR);
    age("one", stamp);
    age("more", stamp); /* the 1,025th: those that nobody asked for go */
    assert_int_equal(age("asked", stamp), 2 * HOUR);
    assert_int_equal(age("old 5", stamp), 0); /* forgotten: by the wall clock it is of the future */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_sight, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jumps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forgets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

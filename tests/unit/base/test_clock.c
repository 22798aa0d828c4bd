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

struct waiter {
    const struct clock *clock;
    int64_t until;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
};

static void *wait_for_it(void *context)
{
    struct waiter *w = context;
    bool early = true;
    pthread_mutex_lock(&w->lock);
    while (!w->woken && early)
        early = clock_wait(w->clock, &w->changed, &w->lock, w->until);
    pthread_mutex_unlock(&w->lock);
    return early ? w : NULL;
}

/* Somebody wakes the waiter, or time comes: of each clock. */
static void test_wait(void **state)
{
    (void)state;
    struct clock_manual manual;
    clock_manual_init(&manual, 0);
    const struct clock *machine = clock_system();
    assert_true(clock_boot_ns(machine) >= clock_mono_ns(machine) - CLOCK_SECOND);
    const struct {
        const struct clock *clock;
        int64_t until;
        bool wake;
    } cases[] = {
        {machine, INT64_MAX, true},
        {machine, clock_mono_ns(machine) + 1000 * CLOCK_SECOND, true},
        {machine, clock_mono_ns(machine) + CLOCK_SECOND / 100, false},
        {machine, -5, false},
        {&manual.clock, INT64_MAX, true},
        {&manual.clock, 1000 * CLOCK_SECOND, true},
        {&manual.clock, 50, false},
        {&manual.clock, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct waiter w = {cases[i].clock, cases[i].until, PTHREAD_MUTEX_INITIALIZER,
                           PTHREAD_COND_INITIALIZER, false};
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_it, &w);
        if (cases[i].wake) {
            pthread_mutex_lock(&w.lock);
            w.woken = true;
            pthread_cond_signal(&w.changed);
            pthread_mutex_unlock(&w.lock);
        } else {
            clock_manual_advance(&manual, 50);
        }
        void *woken;
        pthread_join(thread, &woken);
        assert_int_equal(woken != NULL, cases[i].wake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

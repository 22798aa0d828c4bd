#include <pthread.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "unit.h"

/* What a fiber waits for, and what its owner is told. */
struct stage {
    struct park park;
    int step;
    _Atomic int wakes;
    sem_t told;
};

static void wake(void *context)
{
    struct stage *s = context;
    s->wakes++;
    sem_post(&s->told);
}

static void two_waits(void *context)
{
    struct stage *s = context;
    for (int i = 0; i < 2; i++) {
        park_init(&s->park);
        s->step++;
        park_wait(&s->park);
    }
    s->step++;
}

static void runs_until_it_waits_and_then_on(void **state)
{
    (void)state;
    struct stage s = {0};
    sem_init(&s.told, 0, 0);
    struct fiber *f = fiber_new(two_waits, &s, wake, &s);
    assert_false(fiber_run(f));
    assert_int_equal(s.step, 1);
    assert_true(fiber_park(f));
    park_wake(&s.park);
    assert_int_equal(s.wakes, 1);
    assert_false(fiber_run(f));
    assert_int_equal(s.step, 2);
    park_wake(&s.park); /* before it is parked: nobody is told */
    assert_false(fiber_park(f));
    assert_int_equal(s.wakes, 1);
    assert_true(fiber_run(f));
    assert_int_equal(s.step, 3);
    sem_destroy(&s.told);
}

static void *wake_later(void *context)
{
    struct stage *s = context;
    park_wake(&s->park);
    return NULL;
}

static void a_thread_waits_too(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct stage s = {0};
        pthread_t thread;
        park_init(&s.park);
        pthread_create(&thread, NULL, wake_later, &s);
        park_wait(&s.park);
        pthread_join(thread, NULL);
    }
}

/* However a wake from another thread falls, each wait ends once. */
static void wakes_race_with_parking(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct stage s = {0};
        sem_init(&s.told, 0, 0);
        struct fiber *f = fiber_new(two_waits, &s, wake, &s);
        bool over = false;
        while (!over) {
            over = fiber_run(f);
            if (over)
                break;
            pthread_t thread;
            pthread_create(&thread, NULL, wake_later, &s);
            if (fiber_park(f))
                while (sem_wait(&s.told) < 0)
                    ;
            pthread_join(thread, NULL);
        }
        assert_int_equal(s.step, 3);
        sem_destroy(&s.told);
    }
}

/* One within another, as a handler that is called by a function on a fiber could have it. */
static void inner(void *context)
{
    struct stage *s = context;
    park_init(&s->park);
    park_wait(&s->park);
    s->step++;
}

static void outer(void *context)
{
    struct stage *s = context;
    struct fiber *f = fiber_new(inner, s, wake, s);
    assert_false(fiber_run(f));
    park_wake(&s->park);
    assert_true(fiber_run(f));
    two_waits(s);
}

static void fibers_can_own_fibers(void **state)
{
    (void)state;
    struct stage s = {0};
    sem_init(&s.told, 0, 0);
    struct fiber *f = fiber_new(outer, &s, wake, &s);
    assert_false(fiber_run(f));
    assert_int_equal(s.step, 2);
    park_wake(&s.park);
    assert_false(fiber_run(f));
    park_wake(&s.park);
    assert_true(fiber_run(f));
    assert_int_equal(s.step, 4);
    sem_destroy(&s.told);
}

enum { MANY = 40 };

/* More than are kept: each has a stack of its own meanwhile. */
static void many_wait_at_once(void **state)
{
    (void)state;
    struct stage stages[MANY] = {0};
    struct fiber *fibers[MANY];
    for (int i = 0; i < MANY; i++) {
        fibers[i] = fiber_new(inner, &stages[i], wake, &stages[i]);
        assert_false(fiber_run(fibers[i]));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        assert_int_equal(stages[i].step, 0);
        park_wake(&stages[i].park);
        assert_true(fiber_run(fibers[i]));
        assert_int_equal(stages[i].step, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_until_it_waits_and_then_on),
        cmocka_unit_test(a_thread_waits_too),
        cmocka_unit_test(wakes_race_with_parking),
        cmocka_unit_test(fibers_can_own_fibers),
        cmocka_unit_test(many_wait_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

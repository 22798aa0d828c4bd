#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "k8s/apiserver/limit.h"
#include "unit.h"

static struct clock_manual now;

static struct apiserver_limits *limits(unsigned per_second, unsigned burst, unsigned in_flight)
{
    clock_manual_init(&now, 0);
    return apiserver_limits_new(&(struct apiserver_limit_options){per_second, burst, in_flight},
                                &now.clock);
}

/* How many of n requests of a client are let in, one after the other. */
static unsigned let_in(struct apiserver_limits *l, const char *client, unsigned n)
{
    unsigned count = 0;
    for (; n; n--) {
        struct err e = {0};
        if (apiserver_limit_begin(l, client, &e) == 0) {
            count++;
            apiserver_limit_end(l);
        } else {
            assert_string_equal(e.reason, "TooManyRequests");
        }
    }
    return count;
}

static void test_burst_and_rate(void **state)
{
    (void)state;
    struct apiserver_limits *l = limits(10, 20, 0);
    assert_int_equal(let_in(l, "a", 100), 20);
    assert_int_equal(let_in(l, "b", 100), 20); /* each has its own */
    clock_manual_advance(&now, CLOCK_SECOND / 2);
    assert_int_equal(let_in(l, "a", 100), 5);
    clock_manual_advance(&now, 3600 * CLOCK_SECOND);
    assert_int_equal(let_in(l, "a", 100), 20); /* it does not save up more */
    assert_int_equal(let_in(l, NULL, 1000), 1000);
    apiserver_limits_free(l);
}

static void test_no_limit(void **state)
{
    (void)state;
    struct apiserver_limits *l = limits(0, 0, 0);
    assert_int_equal(let_in(l, "a", 50000), 50000);
    apiserver_limits_free(l);
}

static void test_in_flight(void **state)
{
    (void)state;
    struct apiserver_limits *l = limits(0, 0, 2);
    struct err e = {0};
    assert_int_equal(apiserver_limit_begin(l, "a", &e), 0);
    assert_int_equal(apiserver_limit_begin(l, NULL, &e), 0);
    assert_int_equal(apiserver_limit_begin(l, "b", &e), -1);
    assert_string_equal(e.reason, "TooManyRequests");
    apiserver_limit_end(l);
    assert_int_equal(apiserver_limit_begin(l, "b", &e), 0);
    assert_int_equal(apiserver_limit_begin(l, "b", &e), -1);
    apiserver_limits_free(l);
}

/* Many clients do not make it grow without end, and cost nobody what they have left. */
static void test_many_clients(void **state)
{
    (void)state;
    struct apiserver_limits *l = limits(1, 1, 0);
    assert_int_equal(let_in(l, "busy", 5), 1);
    for (unsigned i = 0; i < 30000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "client-%u", i);
        assert_int_equal(let_in(l, name, 1), 1);
        if (i % 1000 == 0)
            assert_int_equal(let_in(l, "busy", 5), 0); /* who keeps asking is remembered */
    }
    assert_int_equal(let_in(l, "client-0", 5), 1); /* who does not is forgotten */
    apiserver_limits_free(l);
}

static void *ask(void *context)
{
    uintptr_t count = 0;
    for (int i = 0; i < 5000; i++) {
        if (apiserver_limit_begin(context, "shared", NULL) == 0) {
            count++;
            apiserver_limit_end(context);
        }
    }
    return (void *)count;
}

static void test_threads(void **state)
{
    (void)state;
    struct apiserver_limits *l = limits(1, 1234, 0);
    pthread_t threads[4];
    uintptr_t total = 0;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, l), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        void *count;
        pthread_join(threads[i], &count);
        total += (uintptr_t)count;
    }
    assert_int_equal(total, 1234);
    apiserver_limits_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_and_rate), cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_in_flight),      cmocka_unit_test(test_many_clients),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

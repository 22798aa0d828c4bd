#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/str.h"
#include "kube/workqueue.h"
#include "metrics/metrics.h"
#include "unit.h"

enum { MS = 1000000 };

struct fixture {
    struct clock_manual clock;
    struct kube_workqueue *queue;
};

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    clock_manual_init(&f->clock, 0);
    f->queue = kube_workqueue_new(&(struct kube_workqueue_options){.name = "test",
                                                                   .backoff_ns = 8 * MS,
                                                                   .backoff_max_ns = 1000 * MS,
                                                                   .clock = &f->clock.clock},
                                  NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_free(f->queue);
    free(f);
    return 0;
}

static void expect(struct fixture *f, const char *expected)
{
    _cleanup_free_ char *key = kube_workqueue_get(f->queue);
    assert_string_equal(key, expected);
}

static void expect_done(struct fixture *f, const char *expected)
{
    expect(f, expected);
    kube_workqueue_done(f->queue, expected);
}

/* Whether the key is among those that are ready now; all of them are worked on. */
static bool comes(struct fixture *f, const char *expected)
{
    bool found = false;
    kube_workqueue_add(f->queue, "probe"); /* so that nobody waits */
    do {
        _cleanup_free_ char *key = kube_workqueue_get(f->queue);
        found |= str_eq(key, expected);
        kube_workqueue_done(f->queue, key);
    } while (kube_workqueue_depth(f->queue));
    return found;
}

static void expect_none(struct fixture *f)
{
    kube_workqueue_add(f->queue, "probe");
    expect(f, "probe");
    assert_int_equal(kube_workqueue_depth(f->queue), 0);
    kube_workqueue_done(f->queue, "probe");
}

static void test_order_and_once(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_add(f->queue, "a");
    kube_workqueue_add(f->queue, "b");
    kube_workqueue_add(f->queue, "a");
    assert_int_equal(kube_workqueue_depth(f->queue), 2);
    expect_done(f, "a");
    expect_done(f, "b");
    assert_int_equal(kube_workqueue_depth(f->queue), 0);
    expect_none(f);
}

static void test_added_while_worked_on(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_add(f->queue, "a");
    expect(f, "a");
    kube_workqueue_add(f->queue, "a"); /* nobody else gets it meanwhile */
    kube_workqueue_add(f->queue, "a");
    expect_none(f);
    kube_workqueue_add(f->queue, "b");
    kube_workqueue_done(f->queue, "a");
    expect_done(f, "b"); /* others first */
    expect_done(f, "a");
    expect_none(f); /* once is enough */
}

static void test_always_added_does_not_starve(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_add(f->queue, "greedy");
    kube_workqueue_add(f->queue, "modest");
    expect(f, "greedy");
    kube_workqueue_add(f->queue, "greedy");
    kube_workqueue_done(f->queue, "greedy");
    expect_done(f, "modest");
    expect_done(f, "greedy");
}

static void test_delays(void **state)
{
    struct fixture *f = *state;
    static const int delays[] = {50, 10, 90, 30, 70, 20, 60, 100, 40, 80};
    char key[8];
    for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
        snprintf(key, sizeof(key), "%d", delays[i]);
        kube_workqueue_add_after(f->queue, key, (int64_t)delays[i] * MS);
    }
    for (int at = 10; at <= 100; at += 10) {
        clock_manual_advance(&f->clock, 10 * MS - 1);
        expect_none(f);
        clock_manual_advance(&f->clock, 1);
        snprintf(key, sizeof(key), "%d", at);
        expect_done(f, key);
    }
}

static void test_earlier_replaces_later(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_add_after(f->queue, "a", 100 * MS);
    kube_workqueue_add_after(f->queue, "b", 50 * MS);
    kube_workqueue_add_after(f->queue, "a", 10 * MS);
    kube_workqueue_add_after(f->queue, "a", 200 * MS);
    clock_manual_advance(&f->clock, 10 * MS);
    expect_done(f, "a");
    clock_manual_advance(&f->clock, 40 * MS);
    expect_done(f, "b");
    clock_manual_advance(&f->clock, 1000 * MS);
    expect_none(f);
}

/* Wanted now and wanted later are two promises. */
static void test_now_and_later(void **state)
{
    struct fixture *f = *state;
    kube_workqueue_add_after(f->queue, "a", 100 * MS);
    kube_workqueue_add(f->queue, "a");
    expect_done(f, "a");
    clock_manual_advance(&f->clock, 100 * MS);
    expect_done(f, "a");
    kube_workqueue_add_after(f->queue, "a", INT64_MAX); /* no overflow, no spin */
    kube_workqueue_add_after(f->queue, "b", -5);
    expect_done(f, "b");
}

static void test_backoff(void **state)
{
    struct fixture *f = *state;
    for (int i = 0, most = 8; i < 100; i++, most = most * 2 < 1000 ? most * 2 : 1000) {
        int took = 0;
        kube_workqueue_add_backoff(f->queue, "a");
        while (!comes(f, "a")) {
            clock_manual_advance(&f->clock, MS);
            took++;
        }
        assert_in_range(took, most / 2, most);
    }
    kube_workqueue_forget(f->queue, "a");
    kube_workqueue_forget(f->queue, "never heard of");
    kube_workqueue_add_backoff(f->queue, "a");
    clock_manual_advance(&f->clock, 8 * MS);
    assert_true(comes(f, "a"));
    clock_manual_advance(&f->clock, 8000 * (int64_t)MS);
    assert_false(comes(f, "a"));
}

static void test_bad_backoff(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(kube_workqueue_new(
        &(struct kube_workqueue_options){.name = "q", .backoff_ns = 10, .backoff_max_ns = 5}, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

static void *getter(void *context)
{
    return kube_workqueue_get(context);
}

/* Those who wait hear of a key, of an earlier time, and of time itself. */
static void test_waiters_wake(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        kube_workqueue_add_after(f->queue, "late", 1000000 * (int64_t)MS);
        pthread_create(&thread, NULL, getter, f->queue);
        if (i == 0)
            kube_workqueue_add(f->queue, "key");
        if (i == 1)
            kube_workqueue_add_after(f->queue, "key", 5 * MS);
        if (i == 2)
            kube_workqueue_add_after(f->queue, "key", 10000 * (int64_t)MS);
        clock_manual_advance(&f->clock, i == 2 ? 10000 * (int64_t)MS : 5 * MS);
        char *key;
        pthread_join(thread, (void **)&key);
        assert_string_equal(key, "key");
        kube_workqueue_done(f->queue, key);
        free(key);
    }
    pthread_create(&thread, NULL, getter, f->queue);
    kube_workqueue_stop(f->queue);
    char *key;
    pthread_join(thread, (void **)&key);
    assert_null(key);
    kube_workqueue_add(f->queue, "too late");
    assert_null(kube_workqueue_get(f->queue));
}

static void test_metrics(void **state)
{
    (void)state;
    struct clock_manual clock;
    clock_manual_init(&clock, 0);
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct kube_workqueue_options o = {.name = "one", .clock = &clock.clock, .metrics = m};
    struct kube_workqueue *one = kube_workqueue_new(&o, NULL);
    o.name = "two";
    struct kube_workqueue *two = kube_workqueue_new(&o, NULL);
    kube_workqueue_add(one, "a");
    kube_workqueue_add(one, "b");
    kube_workqueue_add(one, "b");
    kube_workqueue_add_backoff(two, "c");
    clock_manual_advance(&clock, 2000 * (int64_t)MS);
    free(kube_workqueue_get(one));
    clock_manual_advance(&clock, 500 * MS);
    free(kube_workqueue_get(one));
    clock_manual_advance(&clock, 1000 * MS);
    static const char *const expected[] = {
        "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"one\"} 0\n",
        "workqueue_depth{name=\"two\"} 0\n",
        "workqueue_adds_total{name=\"one\"} 2\n",
        "workqueue_retries_total{name=\"two\"} 1\n",
        "workqueue_queue_duration_seconds_sum{name=\"one\"} 4.5\n",
        "workqueue_unfinished_work_seconds{name=\"one\"} 2.5\n",
        "workqueue_longest_running_processor_seconds{name=\"one\"} 1.5\n",
    };
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        if (!strstr(str_get(&text), expected[i]))
            fail_msg("no %s in %s", expected[i], str_get(&text));
    }
    kube_workqueue_done(one, "a");
    kube_workqueue_free(one);
    kube_workqueue_free(two);
    str_clear(&text);
    metrics_format(m, &text); /* asks nobody who is gone */
    assert_non_null(
        strstr(str_get(&text), "workqueue_work_duration_seconds_sum{name=\"one\"} 1.5\n"));
}

/* Many at once: no key is with two workers, and each is worked on after it was last added. */

enum { WORKERS = 4, ADDERS = 3, KEYS = 20, ADDS = 3000 };

struct crowd {
    struct kube_workqueue *queue;
    _Atomic int working[KEYS], wanted[KEYS], seen[KEYS];
    _Atomic int bad;
};

static void *crowd_worker(void *context)
{
    struct crowd *c = context;
    char *key;
    while ((key = kube_workqueue_get(c->queue))) {
        int k = atoi(key);
        c->bad += atomic_fetch_add(&c->working[k], 1) != 0;
        c->seen[k] = c->wanted[k];
        if (k % 3 == 0)
            kube_workqueue_forget(c->queue, key);
        atomic_fetch_sub(&c->working[k], 1);
        kube_workqueue_done(c->queue, key);
        free(key);
    }
    return NULL;
}

static void *crowd_adder(void *context)
{
    struct crowd *c = context;
    for (int i = 0; i < ADDS; i++) {
        int k = (i * 7) % KEYS;
        char key[8];
        snprintf(key, sizeof(key), "%d", k);
        atomic_fetch_add(&c->wanted[k], 1);
        if (i % 5 == 0)
            kube_workqueue_add_after(c->queue, key, i % 3 * 1000);
        else if (i % 5 == 1)
            kube_workqueue_add_backoff(c->queue, key);
        kube_workqueue_add(c->queue, key);
    }
    return NULL;
}

static void test_crowd(void **state)
{
    (void)state;
    struct crowd c = {0};
    c.queue = kube_workqueue_new(&(struct kube_workqueue_options){.name = "crowd"}, NULL);
    pthread_t workers[WORKERS], adders[ADDERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, crowd_worker, &c);
    for (int i = 0; i < ADDERS; i++)
        pthread_create(&adders[i], NULL, crowd_adder, &c);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    for (int k = 0; k < KEYS; k++) {
        while (c.seen[k] != ADDERS * ADDS / KEYS)
            sched_yield();
    }
    kube_workqueue_stop(c.queue);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert_int_equal(c.bad, 0);
    kube_workqueue_free(c.queue);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_order_and_once),
        CASE(test_added_while_worked_on),
        CASE(test_always_added_does_not_starve),
        CASE(test_delays),
        CASE(test_earlier_replaces_later),
        CASE(test_now_and_later),
        CASE(test_backoff),
        CASE(test_waiters_wake),
        cmocka_unit_test(test_bad_backoff),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

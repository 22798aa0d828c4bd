#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ring.h"
#include "unit.h"

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_order_and_limit(void **state)
{
    (void)state;
    static const struct {
        size_t capacity, cells;
    } table[] = {{1, 2}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {100, 128}};
    int items[129];
    for (size_t t = 0; t < ARRAY_SIZE(table); t++) {
        _cleanup_(ring_freep) struct ring *r = ring_new(table[t].capacity, NULL);
        assert_non_null(r);
        assert_null(ring_pop(r));
        size_t n = table[t].cells;
        /* several times round, a different number left in each time */
        for (int round = 0; round < 5; round++) {
            for (size_t i = 0; i < n; i++)
                assert_true(ring_push(r, &items[i]));
            assert_false(ring_push(r, &items[n]));
            assert_ptr_equal(ring_pop(r), &items[0]);
            assert_true(ring_push(r, &items[n]));
            assert_false(ring_push(r, &items[n]));
            for (size_t i = 1; i <= n; i++)
                assert_ptr_equal(ring_pop(r), &items[i]);
            assert_null(ring_pop(r));
            assert_true(ring_push(r, &items[0]));
            assert_ptr_equal(ring_pop(r), &items[0]);
        }
    }
}

static void test_wakes_only_sleepers(void **state)
{
    (void)state;
    int item;
    _cleanup_(ring_freep) struct ring *r = ring_new(8, NULL);
    int fd = ring_fd(r);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);

    /* awake: no system call, nothing to read */
    assert_true(ring_push(r, &item));
    assert_false(readable(fd));

    /* something is there: no sleep, and the next push does not wake either */
    assert_false(ring_arm(r));
    assert_true(ring_push(r, &item));
    assert_false(readable(fd));
    assert_non_null(ring_pop(r));
    assert_non_null(ring_pop(r));

    /* asleep: the first push wakes */
    assert_true(ring_arm(r));
    assert_false(readable(fd));
    assert_true(ring_push(r, &item));
    assert_true(readable(fd));
    assert_true(ring_push(r, &item));
    uint64_t wakes;
    assert_int_equal(read(fd, &wakes, sizeof(wakes)), sizeof(wakes));
    assert_int_equal(wakes, 1);

    /* after a sleep the descriptor is quiet, whoever woke the consumer */
    ring_disarm(r);
    assert_non_null(ring_pop(r));
    assert_non_null(ring_pop(r));
    assert_true(ring_arm(r));
    ring_disarm(r);
    assert_true(ring_push(r, &item));
    assert_false(readable(fd));
    ring_pop(r);
    assert_true(ring_arm(r));
    assert_true(ring_push(r, &item));
    ring_disarm(r);
    assert_false(readable(fd));
}

static void test_failures(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(ring_new(0, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_null(ring_new(SIZE_MAX, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    ring_free(NULL);

    struct rlimit was, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    now.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    struct ring *r = ring_new(8, &e);
    setrlimit(RLIMIT_NOFILE, &was);
    assert_null(r);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
}

enum { PRODUCERS = 4, ITEMS = 20000 };

struct item {
    int producer, n;
};

struct producer {
    struct ring *ring;
    struct item *items;
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct producer *p = arg;
    for (int i = 0; i < ITEMS; i++) {
        while (!ring_push(p->ring, &p->items[i]))
            sched_yield();
    }
    return NULL;
}

/* Several producers and a consumer that sleeps whenever it can: all arrive, each in its order. */
static void run_threads(size_t capacity)
{
    _cleanup_(ring_freep) struct ring *r = ring_new(capacity, NULL);
    struct producer producers[PRODUCERS];
    for (int p = 0; p < PRODUCERS; p++) {
        producers[p] = (struct producer){.ring = r};
        producers[p].items = mem_realloc_array(NULL, ITEMS, sizeof(struct item));
        for (int i = 0; i < ITEMS; i++)
            producers[p].items[i] = (struct item){p, i};
        assert_int_equal(pthread_create(&producers[p].thread, NULL, produce, &producers[p]), 0);
    }

    int next[PRODUCERS] = {0};
    for (int received = 0; received < PRODUCERS * ITEMS;) {
        const struct item *item;
        while ((item = ring_pop(r))) {
            assert_int_equal(item->n, next[item->producer]++);
            received++;
        }
        if (received == PRODUCERS * ITEMS || !ring_arm(r))
            continue;
        struct pollfd p = {.fd = ring_fd(r), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 60000), 1); /* a push that woke nobody would end here */
        ring_disarm(r);
    }
    assert_null(ring_pop(r));
    for (int p = 0; p < PRODUCERS; p++) {
        pthread_join(producers[p].thread, NULL);
        assert_int_equal(next[p], ITEMS);
        free(producers[p].items);
    }
}

static void test_threads_small_ring(void **state)
{
    (void)state;
    run_threads(2);
}

static void test_threads_large_ring(void **state)
{
    (void)state;
    run_threads(1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_limit),    cmocka_unit_test(test_wakes_only_sleepers),
        cmocka_unit_test(test_failures),           cmocka_unit_test(test_threads_small_ring),
        cmocka_unit_test(test_threads_large_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

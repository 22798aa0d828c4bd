#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends.h"
#include "base/clock.h"
#include "base/thread.h"

enum { MS = 1000000 };

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

/* Timers. */

struct alarm_clock {
    struct io_timer timer;
    struct io_loop *loop;
    int64_t wanted;
    unsigned rings, again;
};

static unsigned rung;
static int64_t last;

static void ring_bell(struct io_timer *timer)
{
    struct alarm_clock *a = container_of(timer, struct alarm_clock, timer);
    a->rings++;
    rung++;
    assert_true(io_loop_now(a->loop) >= a->wanted);
    assert_true(a->wanted >= last); /* in order */
    last = a->wanted;
    if (a->again) {
        a->again--;
        a->wanted += MS;
        io_timer_start(a->loop, timer, a->wanted);
    }
}

static void timers(struct io_loop *loop)
{
    struct alarm_clock alarms[100] = {0};
    int64_t base = now();
    unsigned expected = 0;
    rung = 0;
    last = 0;
    for (unsigned i = 0; i < 100; i++) {
        alarms[i] = (struct alarm_clock){.timer.fn = ring_bell, .loop = loop};
        alarms[i].wanted = base + (int64_t)(i * 37 % 100) * MS / 5;
        io_timer_start(loop, &alarms[i].timer, base + 3600 * CLOCK_SECOND);
        io_timer_start(loop, &alarms[i].timer, alarms[i].wanted); /* moved */
        if (i % 3 == 0)
            io_timer_stop(loop, &alarms[i].timer);
        else
            expected++;
        io_timer_stop(loop, &alarms[i].timer);
        if (i % 3)
            io_timer_start(loop, &alarms[i].timer, alarms[i].wanted);
    }
    alarms[1].wanted = base;
    io_timer_start(loop, &alarms[1].timer, base);
    while (rung < expected)
        io_loop_turn(loop, -1);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(alarms[i].rings, i % 3 != 0);
    /* one that starts itself again */
    struct alarm_clock repeat = {.timer.fn = ring_bell, .loop = loop, .again = 3};
    repeat.wanted = now();
    io_timer_start(loop, &repeat.timer, repeat.wanted);
    while (repeat.rings < 4)
        io_loop_turn(loop, -1);
    /* nothing to wait for: a turn ends in time */
    int64_t before = now();
    io_loop_turn(loop, 5 * MS);
    assert_true(now() - before >= 4 * MS);
}

static void test_timers(void **state)
{
    (void)state;
    each_backend(timers);
}

/* Messages from other threads. */

enum { THREADS = 4, EACH = 5000 };

struct sender {
    struct io_loop *loop;
    struct io_message messages[EACH];
};

static unsigned arrived;

static struct io_loop *running;

static void take_and_stop(struct io_message *m)
{
    (void)m;
    if (++arrived == THREADS * EACH)
        io_loop_stop(running);
}

static void *send_all(void *context)
{
    struct sender *s = context;
    for (unsigned i = 0; i < EACH; i++) {
        s->messages[i].fn = take_and_stop;
        while (!io_loop_post(s->loop, &s->messages[i]))
            sched_yield();
    }
    return NULL;
}

static void messages(struct io_loop *loop)
{
    struct sender *senders = mem_zalloc(THREADS * sizeof(*senders));
    pthread_t threads[THREADS];
    arrived = 0;
    running = loop;
    for (int i = 0; i < THREADS; i++) {
        senders[i].loop = loop;
        assert_int_equal(thread_start(&threads[i], "sender", send_all, &senders[i], NULL), 0);
    }
    io_loop_run(loop);
    assert_int_equal(arrived, THREADS * EACH);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    free(senders);
}

static void test_messages(void **state)
{
    (void)state;
    each_backend(messages);
}

/* Watches and deferred functions. */

struct bell {
    struct io_watch watch;
    struct io_deferred later;
    unsigned seen, deferred;
    bool removed;
};

static void bell_deferred(struct io_deferred *d)
{
    container_of(d, struct bell, later)->deferred++;
}

static void bell_readable(struct io_watch *w)
{
    struct bell *b = container_of(w, struct bell, watch);
    uint64_t n;
    assert_int_equal(read(w->fd, &n, sizeof(n)), sizeof(n));
    b->seen++;
    io_loop_defer(w->loop, &b->later);
    io_loop_defer(w->loop, &b->later); /* once is enough */
}

static void bell_removed(struct io_watch *w)
{
    container_of(w, struct bell, watch)->removed = true;
}

static void watches(struct io_loop *loop)
{
    struct bell b = {.watch = {.readable = bell_readable, .removed = bell_removed},
                     .later.fn = bell_deferred};
    uint64_t one = 1;
    list_init(&b.later.link);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    io_watch_add(loop, &b.watch, fd);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
        while (b.seen < i)
            io_loop_turn(loop, -1);
        assert_int_equal(b.deferred, i); /* in the same turn */
    }
    io_watch_remove(&b.watch);
    while (!b.removed)
        io_loop_turn(loop, 10 * MS);
    assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
    io_loop_turn(loop, 0);
    assert_int_equal(b.seen, 3);
    close(fd);
}

static void test_watches(void **state)
{
    (void)state;
    each_backend(watches);
}

/* Work on files. */

struct job {
    struct io_request request;
    bool done;
    int64_t result;
};

static void job_done(struct io_request *r, int64_t result)
{
    struct job *j = container_of(r, struct job, request);
    assert_false(j->done);
    j->done = true;
    j->result = result;
}

static int64_t run_job(struct io_loop *loop, struct job *j)
{
    j->request.done = job_done;
    j->done = false;
    io_submit(loop, &j->request);
    assert_false(j->done); /* never from within the call */
    while (!j->done)
        io_loop_turn(loop, -1);
    return j->result;
}

static void files(struct io_loop *loop)
{
    char path[] = "/tmp/orlop-io-XXXXXX", data[8192], back[8192];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    memset(data, 'x', sizeof(data));
    struct iovec iov[2] = {{data, 4096}, {data + 4096, 4096}}, in = {back, sizeof(back)};
    struct job j = {.request = {.op = IO_WRITE, .fd = fd, .offset = 4096, .iov = iov, .iovs = 2}};
    assert_int_equal(run_job(loop, &j), 8192);
    j.request = (struct io_request){.op = IO_SYNC, .fd = fd};
    assert_int_equal(run_job(loop, &j), 0);
    j.request = (struct io_request){.op = IO_READ, .fd = fd, .offset = 4096, .iov = &in, .iovs = 1};
    assert_int_equal(run_job(loop, &j), 8192);
    assert_memory_equal(back, data, sizeof(data));
    j.request = (struct io_request){.op = IO_PUNCH, .fd = fd, .offset = 4096, .length = 4096};
    assert_int_equal(run_job(loop, &j), 0);
    j.request = (struct io_request){.op = IO_READ, .fd = fd, .offset = 4096, .iov = &in, .iovs = 1};
    assert_int_equal(run_job(loop, &j), 8192);
    assert_int_equal(back[0], 0);
    assert_int_equal(back[4096], 'x');
    j.request = (struct io_request){.op = IO_READ, .fd = -1, .iov = &in, .iovs = 1};
    assert_int_equal(run_job(loop, &j), -EBADF);
    /* many at a time */
    struct job *jobs = mem_zalloc(500 * sizeof(*jobs));
    for (unsigned i = 0; i < 500; i++) {
        jobs[i].request = (struct io_request){
            .op = IO_WRITE, .fd = fd, .offset = i * 8192u, .iov = iov, .iovs = 2, .done = job_done};
        io_submit(loop, &jobs[i].request);
    }
    for (unsigned i = 0; i < 500; i++) {
        while (!jobs[i].done)
            io_loop_turn(loop, -1);
        assert_int_equal(jobs[i].result, 8192);
    }
    free(jobs);
    close(fd);
    unlink(path);
}

static void test_files(void **state)
{
    (void)state;
    each_backend(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_watches),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) < 0)
        abort(); /* only an id that does not exist can fail */
    return (int64_t)t.tv_sec * CLOCK_SECOND + t.tv_nsec;
}

static int64_t system_real(const struct clock *c)
{
    (void)c;
    return read_ns(CLOCK_REALTIME);
}

static int64_t system_mono(const struct clock *c)
{
    (void)c;
    return read_ns(CLOCK_MONOTONIC);
}

static int64_t system_boot(const struct clock *c)
{
    (void)c;
    return read_ns(CLOCK_BOOTTIME);
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / CLOCK_SECOND, .tv_nsec = ns % CLOCK_SECOND};
}

static bool system_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                        int64_t until_ns)
{
    (void)c;
    if (until_ns == INT64_MAX)
        return pthread_cond_wait(changed, lock) == 0;
    struct timespec until = to_timespec(until_ns > 0 ? until_ns : 0);
    return pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &until) == 0;
}

const struct clock *clock_system(void)
{
    static const struct clock clock = {.real_ns = system_real,
                                       .mono_ns = system_mono,
                                       .boot_ns = system_boot,
                                       .wait = system_wait};
    return &clock;
}

static int64_t manual_real(const struct clock *c)
{
    return atomic_load(&container_of(c, struct clock_manual, clock)->real);
}

static int64_t manual_mono(const struct clock *c)
{
    return atomic_load(&container_of(c, struct clock_manual, clock)->mono);
}

/*
 * Whoever moves the clock knows nothing of who waits for it, and needs none of their locks: a waiter
 * looks at it every millisecond.
 */
static bool manual_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                        int64_t until_ns)
{
    if (manual_mono(c) >= until_ns)
        return false;
    struct timespec look = to_timespec(read_ns(CLOCK_MONOTONIC) + CLOCK_SECOND / 1000);
    pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &look);
    return true;
}

void clock_manual_init(struct clock_manual *m, int64_t real_ns)
{
    m->clock = (struct clock){.real_ns = manual_real,
                              .mono_ns = manual_mono,
                              .boot_ns = manual_mono,
                              .wait = manual_wait};
    atomic_init(&m->real, real_ns);
    atomic_init(&m->mono, 0);
}

void clock_manual_advance(struct clock_manual *m, int64_t ns)
{
    assert(ns >= 0);
    atomic_fetch_add(&m->real, ns);
    atomic_fetch_add(&m->mono, ns);
}

void clock_manual_set_real(struct clock_manual *m, int64_t real_ns)
{
    atomic_store(&m->real, real_ns);
}

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

const struct clock *clock_system(void)
{
    static const struct clock clock = {.real_ns = system_real, .mono_ns = system_mono};
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

void clock_manual_init(struct clock_manual *m, int64_t real_ns)
{
    m->clock = (struct clock){.real_ns = manual_real, .mono_ns = manual_mono};
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

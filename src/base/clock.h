/*
 * The clock seam. Whatever waits, expires or stamps asks a `struct clock` for the time, so that a
 * test can hold time still, move it on, or let the wall clock jump.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SECOND ((int64_t)1000000000) /* in nanoseconds */

struct clock {
    int64_t (*real_ns)(const struct clock *c);
    int64_t (*mono_ns)(const struct clock *c);
    int64_t (*boot_ns)(const struct clock *c);
    bool (*wait)(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                 int64_t until_ns);
};

/* The machine's clocks. Never freed. */
const struct clock *clock_system(void);

/* Nanoseconds since 1970 UTC: for stamps. It jumps when somebody sets the clock. */
static inline int64_t clock_real_ns(const struct clock *c)
{
    return c->real_ns(c);
}

/* Nanoseconds since some fixed point: for time-outs. It never goes back. */
static inline int64_t clock_mono_ns(const struct clock *c)
{
    return c->mono_ns(c);
}

/* The same, and it goes on while the machine sleeps: for promises to others, who did not sleep. */
static inline int64_t clock_boot_ns(const struct clock *c)
{
    return c->boot_ns(c);
}

/*
 * pthread_cond_wait() until a monotonic time at most; INT64_MAX is for ever. False when that time has
 * come. May return early without a reason, as all such waits.
 */
static inline bool clock_wait(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                              int64_t until_ns)
{
    return c->wait(c, changed, lock, until_ns);
}

/* A clock that moves only when told. Pass &m->clock; any thread may read, move, or wait for it. */
struct clock_manual {
    struct clock clock;
    _Atomic int64_t real, mono;
};

void clock_manual_init(struct clock_manual *m, int64_t real_ns);
/* Time passes on both clocks; ns >= 0. */
void clock_manual_advance(struct clock_manual *m, int64_t ns);
/* Somebody sets the wall clock, forward or back; monotonic time stays. */
void clock_manual_set_real(struct clock_manual *m, int64_t real_ns);

/*
 * Fibers: functions on stacks of their own, which can wait without keeping a thread.
 *
 *     fiber_new() ──> fiber_run() ──┬──> true: the function has returned, the fiber is gone
 *                        ^          └──> false: it waits; do something else
 *                        └───────── wake(), once fiber_park() said that it will be called
 *
 * Whoever owns a fiber runs it, always on the same thread, until it waits or is over. Between, after
 * having arranged to be told, the owner parks it: from then on the first park_wake() calls wake(), on
 * whichever thread, and the owner runs it again. If it was woken before it could be parked, nobody is
 * told and it can be run at once.
 *
 * What a function on a fiber may not do: wait in another way, for the threads of others stand still;
 * take a lock before a wait that others, on the same thread, would wait for.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct fiber;

struct fiber *fiber_new(void (*fn)(void *context), void *context, void (*wake)(void *wake_context),
                        void *wake_context);
bool fiber_run(struct fiber *f);
/* Of one that waits: false when it was woken already, and is to be run. */
bool fiber_park(struct fiber *f);

/*
 * A place to wait once, for a fiber or for a plain thread: whichever it is initialised on.
 */
struct park {
    struct fiber *fiber; /* NULL: a thread */
    sem_t thread;
};

void park_init(struct park *p);
/* Returns after park_wake(), which may come first. p can be used no more. */
void park_wait(struct park *p);
/* From any thread, once. From here on p may be gone. */
void park_wake(struct park *p);

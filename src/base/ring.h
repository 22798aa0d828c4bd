/*
 * A bounded queue of pointers from many threads to one event loop, without locks.
 *
 * Any thread pushes; one thread, the consumer, pops and sleeps on the descriptor. What a thread
 * pushes comes out in the order it pushed. A full ring says so: the producer slows down or answers
 * "busy", nothing grows. A push costs a system call only when the consumer may be asleep:
 *
 *     for (;;) {
 *         while ((item = ring_pop(ring)))
 *             handle(item);
 *         if (!ring_arm(ring))
 *             continue;                  something came meanwhile
 *         poll(ring_fd(ring));           with the loop's other descriptors
 *         ring_disarm(ring);
 *     }
 *
 * The ring owns no item: whoever frees it pops what is left first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct ring;

/* capacity is rounded up to a power of two. */
struct ring *ring_new(size_t capacity, struct err *e);
/* When no thread uses it any more. */
void ring_free(struct ring *r);
DEFINE_CLEANUP(struct ring *, ring_free)

/* From any thread; item is not NULL. False when full. */
bool ring_push(struct ring *r, void *item);

/* From the consumer only: */
/* The oldest item, or NULL. */
void *ring_pop(struct ring *r);
/* Readable after a push since ring_arm(). */
int ring_fd(const struct ring *r);
/* Before sleeping. False when there is something to pop: do not sleep. */
bool ring_arm(struct ring *r);
/* After sleeping, whatever woke the consumer. */
void ring_disarm(struct ring *r);
/* In its place when ring_fd() was not readable: no system call. */
void ring_disarm_quietly(struct ring *r);

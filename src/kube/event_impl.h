/*
 * What is known of the events that were written, and what that makes of the next one. Bounded: what
 * was not heard of for the longest time is forgotten, and begins anew when it comes again. Not for
 * several threads.
 *
 *     an event --> like many others but for the message? then in their name, "(combined ...)"
 *              --> the same as one before? then that one's count rises, else a new one
 *              --> too many about this object? then nothing is sent; it has been counted
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"

enum {
    EVENT_ENTRIES = 512,        /* that are remembered, of all sorts */
    EVENT_MESSAGES = 10,        /* that differ, before they are combined */
    EVENT_WINDOW_SECONDS = 600, /* in which they do; after so long a silence they start again */
    EVENT_BURST = 25,           /* events about one object, */
    EVENT_REFILL_SECONDS = 300  /* and one more each so many seconds */
};

struct event_entry {
    struct list_link link;
    char *key;
    int64_t at; /* when it was heard of last */
    /* Of an object. */
    double tokens;
    /* Of events that are alike but for the message. */
    uint64_t messages[EVENT_MESSAGES]; /* hashes of those there were */
    unsigned n_messages;
    /* Of an event. */
    char *name; /* in the API; NULL: there is none yet */
    unsigned count;
    int64_t first;
};

struct event_memory {
    struct map entries;
    struct list_link order; /* the one to forget first is first */
};

void event_memory_init(struct event_memory *m);
void event_memory_done(struct event_memory *m);

/*
 * About which object, what of it (type and reason), and what exactly; at: real time. Returns the
 * entry of the event, which is valid until the next call; NULL when nothing is to be sent.
 * *ret_combined: it stands for several messages.
 */
struct event_entry *event_memory_see(struct event_memory *m, const char *object, const char *what,
                                     const char *message, int64_t at, bool *ret_combined);

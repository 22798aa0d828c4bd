/*
 * Connections whose peers have not shown yet that they may be here: a login, a proof of a key.
 *
 *     accept ──> stranger ── proof ──> io_strangers_leave(): the owner's business from here on
 *                   └── too slow, or one of too many ──> dismiss()
 *
 * Invariants:
 *   - There are never more of them than `most`, nor more than `most_per_address` from one address, and none stays
 *     longer than `patience`. Who holds connections open without a word takes nothing from those who are in.
 *   - When there are too many, chance decides who goes, so that a crowd cannot keep out somebody who tries again.
 */
#pragma once

#include <netinet/in.h>

#include "io/loop.h"

struct io_stranger {
    struct list_link link; /* linked while it is one */
    int64_t since;
    char address[INET6_ADDRSTRLEN]; /* of the peer; stays when it is no stranger any more */
};

struct io_strangers {
    /* The owner's, for io_strangers_init(): */
    struct io_loop *loop;
    unsigned most, most_per_address;
    int64_t patience;
    /* The connection is to be closed; it is no stranger any more. */
    void (*dismiss)(struct io_stranger *s, const char *why);

    struct list_link all; /* oldest first */
    struct io_timer timer;
};

void io_strangers_init(struct io_strangers *of);
/* With none left, or none that will be heard of again. */
void io_strangers_done(struct io_strangers *of);
/* A new one; others may be dismissed for it. */
void io_strangers_add(struct io_strangers *of, struct io_stranger *s, const struct sockaddr *peer);
/* It has shown who it is, or is gone. One that has left already may leave again. */
void io_strangers_leave(struct io_stranger *s);

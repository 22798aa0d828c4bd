/*
 * A replica on an event loop: its data in a store, its metadata in a file or in another store, a connection to its
 * target. One loop may have many.
 *
 *     target <──dials── connection ── frames ──> repl_replica ──┬── data: a store
 *                                                               └── meta: two superblocks and a map
 *
 * The folder of a replica that was not given stores:
 *
 *     id         who it is: a UUID, made once, or given
 *     data       what it stores, unless another store was named; data.sums its checksums; with snapshots also other data.*
 *                (src/store/chain.h)
 *     meta       docs/replication.md §3
 *     damaged-N  data that could not be used any more; for people to look at and to remove
 *
 * It dials its target again whenever the connection ends, sooner at first and then every two seconds; a
 * target that is silent for longer than `silence` is given up, so that a frozen one, or a machine that is
 * gone, does not keep the replica from its successor.
 *
 * What its disk says:
 *
 *     read fails, or does not match  the target reads elsewhere, and mends it
 *     its checksum
 *     write, growth fails: disk full the connection ends, since what follows cannot be executed; it dials again after
 *                                    a while, longer each time, up to 30 s
 *     flush, metadata fails          failed(): what is in memory may not be on the disk, and only a new start knows
 */
#pragma once

#include "io/loop.h"
#include "repl/replica.h"
#include "replio/tls.h"

struct replio_replica;
struct replio_stores;

struct replio_replica_options {
    struct io_loop *loop;
    const char *dir;
    const char *store;  /* its name for store_open(); NULL: file:DIR/data */
    bool direct;        /* that past the page cache */
    const char *target; /* numeric address */
    const char *source; /* numeric address to dial from, by which the target shows it; NULL: any */
    uint16_t port;
    struct uuid volume;
    struct uuid id; /* of a new one; zeros: at random. Of one that exists it must be this */
    const struct replio_key *key; /* the target must know it. Outlives the replica */
    /* Once, from the loop: it can do nothing any more but be freed, as after a crash. */
    void (*failed)(void *context, const char *why);
    void *context;
    const struct replio_stores *stores; /* in place of dir, store and direct; NULL: those */
    /* Of one on stores: after replio_replica_free(), when nothing of it is left and nothing uses the stores. */
    void (*released)(void *context);
};

/*
 * Stores that were opened for a replica, which stay the caller's. `id` must be given: it is new when the data is.
 * `meta` is read through an image, from its beginning on, which is the caller's until replio_replica_open() returns:
 * what is behind it reads as zeros, and what could not be read is filled with something that is no metadata. Data that
 * has a generation is never a new replica's.
 */
struct replio_stores {
    struct store *data, *meta;
    const void *image;
    size_t image_size;
    const char *lost; /* why what they hold cannot be believed; NULL: it can */
};
/* How long an image must be for data of this size; `head` are its first REPLIO_META_HEAD bytes. */
enum { REPLIO_META_HEAD = 40960 };
size_t replio_meta_size(const void *head, uint64_t data_size);

struct replio_replica *replio_replica_open(const struct replio_replica_options *o, struct err *e);
/* Stops in order: what is under way ends, everything is flushed and noted; then done() from the loop. */
void replio_replica_stop(struct replio_replica *r, void (*done)(void *context), void *context);
/* After done(), or in place of a stop in order, as a crash would. What is under way in its stores comes to its end. */
void replio_replica_free(struct replio_replica *r);

struct replio_replica_status {
    struct repl_replica_status core;
    struct uuid id;
    bool connected;        /* or on the way to be */
    bool spoken;           /* the target has said something on this connection */
    char last_end[200];    /* why the last connection ended; "" */
    uint64_t used;         /* bytes of the store */
    const char *damage;    /* why it began as a lost replica; NULL: it did not */
    const char *set_aside; /* the folder where the data is that could not be used; NULL: none */
};
void replio_replica_status(const struct replio_replica *r,
                           struct replio_replica_status *ret_status);

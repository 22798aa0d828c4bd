/*
 * A volume of the pool as a store: what a replica's data lies in.
 *
 *     replica ── store_submit() ──> zvol ──> worker threads ──> zpool_io_run() ──> the pool
 *                    done() <──────── loop <──────┘
 *
 * I/O goes to a few threads that all volumes of a loop share. What changes the pool itself (growth,
 * snapshots) is done by `run`, which must be the engine's thread where there is one: the pool takes such
 * calls from one thread at a time.
 *
 * A snapshot with the number N is VOLUME@orlop-N.
 */
#pragma once

#include <stdatomic.h>

#include "io/loop.h"
#include "store/store.h"
#include "zpool/volume.h"

/* The threads, for one loop. */
struct pool_zvols;
struct pool_zvols *pool_zvols_new(struct io_loop *loop, unsigned threads, struct err *e);
/* With no store left; from the loop's thread. done() when the loop has let go of it, and it is freed. */
void pool_zvols_free(struct pool_zvols *z);

struct pool_zvol_options {
    struct pool_zvols *zvols;
    struct zpool *pool;
    const char *name;               /* of the volume */
    struct zpool_volume_spec spec;  /* of a new one; one that is there grows to the size */
    uint32_t block_size;            /* of the store: 512 or 4096 */
    const atomic_bool *nearly_full; /* writes are answered ENOSPC while it is set; NULL: never */
    /* Runs fn(context) where the pool may be changed, and returns what it returned; it may wait. */
    int (*run)(void *engine, int (*fn)(void *context), void *context);
    void *engine;
};

/* Blocks: not on a loop's thread while that serves others. */
struct store *pool_zvol_open(const struct pool_zvol_options *o, struct err *e);

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
 * A snapshot with the number N is VOLUME@orlop-N. The generation that the owner of a store stamps on it is the volume's
 * mark, which goes back with the data when somebody rolls the volume back by hand; a revert that was asked for here keeps
 * it.
 *
 * Room (zvol_room.c): where the pool has none a patient store keeps writes until there is some, and answers ENOSPC only
 * when it is about to be closed. Damage (zvol_damage.c): what cannot be read is EIO, counted, and counted as mended when
 * it was written again and can be read.
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
    const char *name; /* of the volume */
    struct zpool_volume_spec
        spec;             /* of a new one; one that is there grows to the size; size 0: only
                                       one that is there is opened, as it is */
    uint32_t block_size;  /* of the store: 512 or 4096 */
    struct uuid identity; /* of the store */
    unsigned most;        /* requests under way; 0: as many as come */
    const atomic_bool *nearly_full; /* there is no room for writes while it is set; NULL: never */
    bool patient;                   /* writes wait for room; else they are answered ENOSPC */
    /* Runs fn(context) where the pool may be changed, and returns what it returned; it may wait. */
    int (*run)(void *engine, int (*fn)(void *context), void *context);
    void *engine;
};

/* Blocks: not on a loop's thread while that serves others. */
struct store *pool_zvol_open(const struct pool_zvol_options *o, struct err *e);

struct pool_zvol_health {
    bool full;                /* writes wait for room */
    uint64_t damaged, mended; /* pieces of 128 KiB since it was opened */
};
/* On the loop's thread. */
void pool_zvol_health(struct store *s, struct pool_zvol_health *ret);
/* At once, on a thread that may wait, before the loop has the store: 0 or an errno value. */
int pool_zvol_read(struct store *s, uint64_t offset, void *data, size_t length);

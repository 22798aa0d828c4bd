/*
 * A volume as a store, for zvol.c and zvol_change.c.
 */
#pragma once

#include "base/vec.h"
#include "pool/zvol.h"

struct pool_zvols {
    struct io_loop *loop;
    struct zpool_workers *workers; /* owned */
    struct io_watch watch;
};

struct snapshot {
    uint64_t id;
    struct zpool_volume *volume; /* owned; open for reading */
};

struct zvol {
    struct store store;
    struct pool_zvols *zvols;
    struct zpool *pool;
    struct zpool_volume *volume; /* owned; NULL after a revert that failed */
    char *name;                  /* owned */
    const atomic_bool *nearly_full;
    int (*run)(void *engine, int (*fn)(void *context), void *context);
    void *engine;
    VEC(struct snapshot) snapshots; /* oldest first */
};

static inline uint64_t pool_zvol_round(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* zvol_change.c: of the store. */
void pool_zvol_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                    void *context);
void pool_zvol_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                        void *context);
void pool_zvol_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                             void *context);
void pool_zvol_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                      void *context);
unsigned pool_zvol_snapshots(struct store *s, struct store_snapshot *out, unsigned most);
/* Those that are there already. */
int pool_zvol_open_snapshots(struct zvol *z, struct err *e);

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
    struct uuid identity;
    uint64_t mark;

    unsigned most, under_way;
    struct list_link waiting; /* store_ios behind the most that may be under way */

    /* zvol_room.c */
    bool patient, closing;
    struct list_link held;    /* store_ios that found no room */
    struct store_io *attempt; /* one of them that is tried again; NULL: none is */
    struct io_timer retry;
    void (*paused)(void *context); /* to be called when it does nothing by itself any more; NULL */
    void *pause_context;

    /* zvol_damage.c */
    struct list_link damage;
    unsigned damage_n, rereads;
    uint64_t damaged, mended;
};

/* zvol.c: to the threads, or behind those under way. */
void pool_zvol_start(struct zvol *z, struct store_io *io);

/* zvol_room.c */
/* True: the write has to wait, and will be started later. */
bool pool_zvol_hold(struct zvol *z, struct store_io *io);
/* What a request came to; true: it was kept, to be tried again. */
bool pool_zvol_keep(struct zvol *z, struct store_io *io, int error);
void pool_zvol_room_init(struct zvol *z);
void pool_zvol_pause(struct store *s, void (*done)(void *context), void *context);

/* Tells who waits for the end of what the store does by itself, if that has come. */
void pool_zvol_quiet(struct zvol *z);

/* zvol_damage.c: a request that ended. */
void pool_zvol_note(struct zvol *z, const struct store_io *io, int error);
void pool_zvol_damage_done(struct zvol *z);

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
void pool_zvol_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                     void *context);
/* A revert that a crash has cut short is done; the volume is not open. */
int pool_zvol_finish_revert(struct zpool *p, const char *name, struct err *e);
/* Those that are there already. */
int pool_zvol_open_snapshots(struct zvol *z, struct err *e);

/*
 * The replicas of a pool: many volumes' data in one process.
 *
 *     wish ──> replicas ──┬── replio_replica ── zvol NAME, zvol NAME.orlop ──> worker threads ──> the pool
 *     view <──    │       └── ...
 *                 └── changes of the pool (make, grow, snapshot, destroy) ──> the engine's thread
 *
 * One thread has a loop with all replicas. A wish says everything that is wanted of one replica, and a view
 * everything that is so; both are handed over, and nobody waits.
 *
 * Invariants:
 *   - A zvol is made only by a wish that says CREATE, and only where there is none of that name. It is opened to
 *     its target only by a wish that says KEEP and names its GUID: so the object remembers which zvol it is before
 *     anything is stored in it, and a zvol that is missing later is never replaced in silence.
 *   - A zvol that has another GUID than the wish, or belongs to another replica, is left alone (`foreign`).
 *   - The metadata, which is what a replica promised, is in a zvol of its own. It is made with the data, and goes
 *     after it. Data without metadata is a replica that lost its data, never an intact one.
 *   - The pool is exported, destroyed or left by the process only after all replicas have stopped in order and their
 *     zvols are closed.
 *   - All functions may be called from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

enum { POOL_REPLICA_SNAPSHOTS = 36, POOL_REPLICA_NAME = 48 };

enum pool_replica_want {
    POOL_REPLICA_KEEP, /* a zvol that is there is opened, if it has the GUID of the wish */
    POOL_REPLICA_CREATE, /* one is made where there is none; its GUID is in the view, it is not opened */
    POOL_REPLICA_DESTROY, /* it stops; its snapshots, zvol and metadata are destroyed */
};

/* Everything that is wanted of one replica. Texts and the key are copied. */
struct pool_replica_wish {
    enum pool_replica_want want;
    const char *name;        /* of the CStorVolumeReplica; no two wishes have the same */
    const char *zvol;        /* of the data; no two wishes have the same */
    const char *volume_name; /* the volume's identity as text, noted beside the zvol; "" */
    struct uuid volume;      /* the volume's identity */
    uint64_t replicaid;
    uint64_t guid;           /* of the zvol, as the object remembers it; 0: none was ever made */
    uint64_t size;           /* of a new one; one that is there is grown by its target */
    uint32_t block_size;     /* of a new one: 512 to 131072, a power of two; 0: 4096 */
    const char *compression; /* "": as the pool has it */
    bool thick;              /* space for all of it is set aside */
    unsigned workers;   /* requests of this replica under way at most; 0: as many as there are */
    const char *target; /* a numeric address; "": not to be dialled yet */
    uint16_t port;
    const uint8_t *key; /* NULL: not to be opened yet */
    size_t key_size;
};

struct pool_replica_snapshot {
    uint64_t id, size, used, logical;
    char name
        [POOL_REPLICA_NAME]; /* as the volume calls it; "": not known, or the volume has it no more */
};

/* What is so. Each fact is as of when it was last looked at, which is at most a few seconds ago. */
struct pool_replica_view {
    bool known;          /* the wish was taken up with the pool open: all below is so */
    bool missing;        /* there is no such zvol */
    bool foreign;        /* there is one that has another GUID or belongs to another replica */
    bool gone;           /* DESTROY: nothing is left */
    uint64_t guid;       /* of the zvol that is there; 0: none */
    uint64_t pool_guid;  /* 0: the pool is not open */
    bool open;           /* the replica runs */
    bool connected;      /* it has a connection to its target, which speaks to it */
    bool complete;       /* it has all data, as far as it knows */
    bool fresh;          /* it never had all data: new, or lost */
    bool rebuilding;     /* pieces are being written to it */
    unsigned percent;    /* of a rebuild */
    bool full;           /* the pool has no room, and so it takes no writes */
    uint64_t used;       /* bytes in the pool by it, its snapshots and its metadata */
    uint64_t logical;    /* bytes that its data refers to, before compression */
    uint64_t reserved;   /* bytes set aside for it; 0: thin */
    uint64_t size;       /* of the zvol */
    uint32_t block_size; /* of the zvol */
    char last_end[200];  /* why there is no connection; "" */
    char damage[200];    /* what was wrong with what was on disk: its data is rebuilt; "" */
    struct err why;      /* what failed last, and is tried again; code 0: nothing */
    uint64_t damaged;    /* reads that ZFS could not do for damage, since the replica was opened */
    uint64_t mended;     /* ranges that were written back from another replica since */
    unsigned snapshots;
    struct pool_replica_snapshot snapshot[POOL_REPLICA_SNAPSHOTS];
    unsigned pending; /* snapshots that the volume has, and this replica has yet to get */
    char pending_name[POOL_REPLICA_SNAPSHOTS][POOL_REPLICA_NAME];
};

struct pool_replicas;

/* The wish replaces the one before of the same name; one that says the same is no news. */
void pool_replicas_wish(struct pool_replicas *r, const struct pool_replica_wish *w);
/* The object is gone, or not of this pool any more: it stops, and its data stays. */
void pool_replicas_forget(struct pool_replicas *r, const char *name);
/* False, and *ret is zeros, if there was no wish of that name. */
bool pool_replicas_view(struct pool_replicas *r, const char *name, struct pool_replica_view *ret);
/* Who is told, from any thread, when a view differs from before. It must not call back. */
void pool_replicas_watch(struct pool_replicas *r, void (*changed)(void *context, const char *name),
                         void *context);

/* How many replicas there were wishes for, and of those how many are complete and connected. */
struct pool_replica_counts {
    unsigned wished, healthy;
};
void pool_replicas_count(struct pool_replicas *r, struct pool_replica_counts *ret);

/* A zvol of the pool that is, or may be, the data of a replica: for adoption, and to find what nobody wants. */
struct pool_replica_row {
    char zvol[256];
    char name[256];      /* of the CStorVolumeReplica, as the zvol says; "" */
    char volume_id[128]; /* as the zvol says; "" */
    uint64_t replicaid;  /* as the zvol says; 0 */
    uint64_t guid, size, used;
    uint32_t block_size;
    bool wished; /* there is a wish for it */
};
/* All of them as of the last look; *ret_rows is for free(). How many. */
size_t pool_replicas_list(struct pool_replicas *r, struct pool_replica_row **ret_rows);

/*
 * For who has the pool. `wake` is called, from any thread, when pool_replicas_serve() has something to do, which must be
 * called by the thread that changes the pool, and only by it.
 */
struct pool_replicas_options {
    void (*wake)(void *context);
    void *context;
    unsigned threads; /* for I/O; 0: four */
};
struct zpool;
struct pool_replicas *pool_replicas_new(const struct pool_replicas_options *o, struct err *e);
/* Detached. */
void pool_replicas_free(struct pool_replicas *r);
void pool_replicas_serve(struct pool_replicas *r);
/* The pool is open, and the object knows which one it is. One that is attached already is no news. */
void pool_replicas_attach(struct pool_replicas *r, struct zpool *pool);
/* When it returns all replicas have stopped, in order unless that takes too long, and no zvol is open. */
void pool_replicas_detach(struct pool_replicas *r);
/* Whether a zvol is open: while one is the pool cannot be destroyed. */
bool pool_replicas_busy(struct pool_replicas *r);
/* Writes wait while the pool is nearly full. */
void pool_replicas_full(struct pool_replicas *r, bool full);

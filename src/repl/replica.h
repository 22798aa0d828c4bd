/*
 * The replica's side of replication, without I/O: messages, completions and the time go in, actions come
 * out through `struct repl_replica_ops`. docs/replication.md is the protocol.
 *
 *                 input()   stored()   meta_synced() logged()   open() close()
 *                    │          │            │             │
 *                    v          v            v             v
 *               ┌──────────────────────────────────────────────┐
 *               │                repl_replica                  │── turn(now): acknowledgements,
 *               └──────────────────────────────────────────────┘   metadata, flushes of the whole batch
 *                    │          │            │             │
 *                 send()     store()   meta_write() sync, log_write()  close()
 *
 * Rules for the caller:
 *  - one thread; actions must not call back into the replica;
 *  - after a batch of inputs, and at the time that turn() asked for, call turn();
 *  - frames of one connection come in their order, checked by repl_frame_decode(); after close() of a link
 *    none of its frames may come;
 *  - store(), meta_sync(), log_write() return 1 when done at once, 0 when stored(), meta_synced() or logged() will be
 *    called, and a negative errno;
 *  - a read whose data does not match its checksums at rest fails, unless it is `unverified`; a read that fails, for whatever
 *    reason, costs nothing but its answer: the target reads elsewhere, and writes it back;
 *  - a write to a part of a block that cannot be read may fail; a block of the store is not larger than a region, so that
 *    a rebuild writes whole ones;
 *  - a new store reads as zeros.
 */
#pragma once

#include "repl/repl.h"

struct repl_replica;

enum repl_store {
    REPL_STORE_READ,
    REPL_STORE_WRITE,
    REPL_STORE_ZERO,      /* may unmap, if `unmap`; reads as zeros afterwards */
    REPL_STORE_FLUSH,     /* everything written before is durable; with `sums` its checksums too */
    REPL_STORE_RESIZE,    /* to length; what is new reads as zeros */
    REPL_STORE_SNAPSHOT,  /* by the number in offset; durable with everything written before */
    REPL_STORE_SNAP_DROP, /* fine if there is none */
    REPL_STORE_REVERT,    /* as it was then, but for the size; later snapshots are gone; durable */
    REPL_STORE_RESUM,     /* checksums at rest are made anew from what is there */
    REPL_STORE_STAMP,     /* the store's generation becomes `length`, durably */
};

struct repl_req {
    enum repl_store kind;
    bool unmap;
    bool unverified; /* READ, WRITE: checksums at rest may be older than the data */
    bool sums;       /* FLUSH */
    uint64_t offset, length;
    uint64_t snap; /* READ: of this snapshot; beyond its end are zeros; 0: as it is now */
    /* Read into, or written from: `length` bytes that come `skip` bytes behind the beginning. */
    const struct iovec *iov;
    int iov_n;
    uint64_t skip;
};

struct repl_replica_ops {
    int (*store)(void *ctx, struct repl_req *req);
    /* Metadata: writes in any order, then a sync; the data is only there during the call. */
    void (*meta_write)(void *ctx, uint64_t offset, const void *data, size_t size);
    int (*meta_sync)(void *ctx);
    /* One write of metadata, durable when it is done, whatever else was written; one at a time. */
    int (*log_write)(void *ctx, uint64_t offset, const void *data, size_t size);
    /* Memory for a read and its answer; one reference, the replica's. */
    struct repl_buf *(*buffer)(void *ctx, size_t size, void **ret_data);
    /* owner NULL: the payload is only there during the call. */
    void (*send)(void *ctx, int link, const struct repl_msg *m, const void *payload,
                 struct repl_buf *owner);
    /* Ends a connection; close() is not called back. */
    void (*close)(void *ctx, int link, const char *why);
};

struct repl_replica_config {
    struct uuid volume, replica;
    uint64_t store_size;
    int64_t lease_ns;      /* default 600 ms */
    int64_t checkpoint_ns; /* default 5 s */
    int64_t idle_ns;       /* without a write for so long, no extent stays active; default 60 s */
    uint32_t active_max;   /* active extents; default 1024 */
    uint32_t active_room;  /* and at most, while some retire; default REPL_ACTIVE */
    uint8_t extent_shift;  /* default 22; at least a region */
    uint32_t ops;          /* requests under way at most; default 1024 */
    struct repl_held held; /* snapshots in the store */

    /* The store: what it says of itself, and whether it compares what it reads with checksums at rest. */
    struct uuid store;
    uint64_t store_generation;
    bool checked;
    bool
        sums_with_data; /* these are durable with the data, never later: a crash leaves none stale */
    /* The store was made just now: it reads as zeros. If there is metadata, that speaks of another one. */
    bool store_new;
    bool lost; /* what was here before cannot be used any more */
};

struct repl_replica *repl_replica_new(const struct repl_replica_config *c,
                                      const struct repl_replica_ops *ops, void *ctx);
void repl_replica_free(struct repl_replica *r);

/*
 * Start: the whole of the metadata, as repl/meta.h has it, then start. What is shorter than it should be counts as
 * zeros, and so as damaged. Fails if it belongs to another volume or replica; whatever else is wrong with it makes the
 * replica a *lost* one, which counts in nothing until it was rebuilt.
 */
typedef void repl_meta_read(void *ctx, uint64_t offset, void *data, size_t size);
int repl_replica_load(struct repl_replica *r, repl_meta_read *read, struct err *e);
/* Whether a crash may have left checksums at rest in a range that are older than the data. */
bool repl_replica_stale(const struct repl_replica *r, uint64_t offset, uint64_t length);
void repl_replica_start(struct repl_replica *r, int64_t now);

void repl_replica_open(struct repl_replica *r, int link);
void repl_replica_close(struct repl_replica *r, int link);
/*
 * A frame whose payload was checked; it is in one piece where repl_frame_in_pieces() does not say otherwise. False
 * when there is no room: give it again after a completion. owner is referenced when the payload is needed longer, and
 * then has the vector, too; NULL: the payload is copied where that is so.
 */
bool repl_replica_input(struct repl_replica *r, int link, const struct repl_msg *m,
                        const struct iovec *iov, int n, struct repl_buf *owner);
void repl_replica_stored(struct repl_replica *r, struct repl_req *req, int status);
void repl_replica_meta_synced(struct repl_replica *r, int status);
void repl_replica_logged(struct repl_replica *r, int status);
/* Everything that is decided once per batch. Returns when it wants to be called again at the latest. */
int64_t repl_replica_turn(struct repl_replica *r, int64_t now);

/* A stop in order: flushes, and notes that nothing is missing. Done when repl_replica_stopped(). */
void repl_replica_stop(struct repl_replica *r);
bool repl_replica_stopped(const struct repl_replica *r);

struct repl_replica_status {
    const struct repl_super *super; /* as it is to be on disk */
    uint64_t position;              /* in memory */
    uint64_t store_size;
    bool complete; /* in sync, as far as it knows */
    bool failed;   /* the metadata could not be written; nothing works any more */
    uint32_t active, ops;
    uint32_t stale;      /* regions whose checksums at rest are still to be made anew */
    const char *damaged; /* why it started as a lost one; NULL: it did not */
    bool bound;          /* a target has its promise, and may write */
    bool fresh;          /* it never had all data: it is new, or lost what it had */
    bool rebuilding;     /* its target compares its data, or copies to it */
    uint32_t percent;    /* of the volume, of a rebuild, or of a snapshot's */
};
void repl_replica_status(const struct repl_replica *r, struct repl_replica_status *ret_status);
/* The sentence of replica_check.c that does not hold; NULL: all do. */
const char *repl_replica_check(const struct repl_replica *r);
/* The region map in memory; for tests and tools. */
uint64_t repl_replica_region(const struct repl_replica *r, uint64_t region);

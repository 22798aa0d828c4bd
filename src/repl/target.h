/*
 * The target's side of replication, without I/O. docs/replication.md is the protocol.
 *
 *       submit()    input()  open() close()     grow() snapshot() add() remove() scrub()
 *          │           │          │                           │
 *          v           v          v                           v
 *     ┌───────────────────────────────────────────────────────────┐
 *     │                       repl_target                         │── turn(now): elections, views,
 *     └───────────────────────────────────────────────────────────┘   rebuilds, what waits
 *          │           │          │                           │
 *      complete()   send()     close()              admin_done(), event()
 *
 * Rules for the caller:
 *  - one thread; actions must not call back into the target;
 *  - after a batch of inputs, and at the time that turn() asked for, call turn();
 *  - frames of one connection come in their order, checked by repl_frame_decode(); after close() of a link
 *    none of its frames may come, and what was to be sent on it is dropped;
 *  - everything sent to a link in one turn should leave in one system call.
 */
#pragma once

#include "base/list.h"
#include "repl/repl.h"

struct repl_target;

enum repl_io_op { REPL_IO_READ, REPL_IO_WRITE, REPL_IO_ZERO, REPL_IO_FLUSH, REPL_IO_REVERT };

/*
 * A client's request. The caller owns it and lends it from submit() until complete(). `iov` must stay until
 * then; memory of a write stays as long as `buf` is referenced, by the target or by what is still to be sent.
 */
struct repl_io {
    enum repl_io_op op;
    uint16_t flags; /* REPL_FUA, REPL_UNMAP */
    uint64_t offset, length;
    const struct iovec *iov;
    int iov_n;
    struct repl_buf *buf; /* of a write's data; NULL: send() must copy */
    uint64_t client;      /* the initiator; 0: none that outlives this process */

    /* The target's: */
    struct list_link link;
    uint64_t point; /* write: count; flush: everything up to it; read: tag */
    uint32_t crc;
    int peer;       /* a read's */
    uint16_t tried; /* links that could not answer it */
    int64_t since;
};

enum repl_admin {
    REPL_ADMIN_NONE,
    REPL_GROW,
    REPL_SNAPSHOT,
    REPL_ADD,
    REPL_REMOVE,
    REPL_SCRUB,
    REPL_SNAP_DELETE,
    REPL_BACK,
};

enum repl_event {
    REPL_EV_EPOCH,      /* took epoch a */
    REPL_EV_FENCED,     /* epoch a is another's: end this process */
    REPL_EV_SERVING,    /* a: 1 I/O flows, 0 frozen */
    REPL_EV_DROPPED,    /* link a fell behind, or was silent */
    REPL_EV_MAYBE_LOST, /* replicas lost memory: writes that were not flushed may be gone */
    REPL_EV_MISMATCH,   /* scrub: link a differs at offset b; it is mended */
    REPL_EV_UNDECIDED,  /* scrub: replicas differ at offset b, and no checksum says who is right */
    REPL_EV_INSYNC,     /* link a has everything */
    REPL_EV_FORCED,     /* a voter was taken out; a: 1 what was acknowledged may be lost with it */
    REPL_EV_LOST,       /* link a has lost its data and is to be rebuilt */
    REPL_EV_UNREADABLE, /* link a cannot read what others need, and is to be rebuilt from them */
};

struct repl_target_ops {
    /*
     * owner NULL: the payload is only there during the call. Otherwise it is as long as owner is referenced.
     */
    void (*send)(void *ctx, int link, const struct repl_msg *m, const struct iovec *iov, int iov_n,
                 struct repl_buf *owner);
    /* Ends a connection; close() is not called back. */
    void (*close)(void *ctx, int link, const char *why);
    /* status 0, or a negative errno: -EIO after the time to fail, -ERANGE beyond the end. */
    void (*complete)(void *ctx, struct repl_io *io, int status);
    void (*admin_done)(void *ctx, enum repl_admin op, int status);
    void (*event)(void *ctx, enum repl_event what, uint64_t a, uint64_t b);
};

struct repl_target_config {
    struct uuid volume;
    uint64_t owner_seed; /* random; from it each attempt makes its number */
    /*
     * Blank replicas may form the volume. With `first`, the ids of those that may, RF of them and always the same,
     * this can be said for ever: a volume that was formed is not formed again. Without, it must be true that the volume
     * was never served, until this target has found or formed a view: a blank replica that another target has
     * since taken as a new member cannot be told from one of the first.
     */
    bool create;
    struct uuid first[REPL_MEMBERS];
    uint8_t first_n; /* 0, or RF */
    /* What `create` makes; otherwise the replicas know. */
    uint64_t size;
    uint8_t rf, cf;
    uint8_t region_shift; /* default by size: at most about a million regions */
    uint8_t block_shift;  /* default 12 */

    uint32_t window;     /* writes under way at most, a power of two up to 16384; default that */
    uint32_t reads;      /* reads under way at most; default 1024 */
    uint64_t lag_bytes;  /* default 32 MiB */
    int64_t lag_ns;      /* default 400 ms */
    int64_t lease_ns;    /* the replicas'; default 600 ms */
    int64_t dead_ns;     /* silence that ends a link; default 5 s */
    int64_t grace_ns;    /* for replicas with intact memory, at start; default 30 s; -1: for ever */
    int64_t fail_ns;     /* frozen for so long: fail I/O; 0: never */
    uint64_t mark_bytes; /* between rebuild marks; default 256 MiB */
    int64_t
        scrub_ns; /* the slow scrub reads everything in so long, or as fast as it may; 0: there is none */
    uint64_t rebuild_rate; /* bytes a second; 0: no limit */
    uint8_t place_shift;   /* reads within so many bytes go to one replica; default 22 */
    uint32_t map_chunk;    /* regions looked at together in a rebuild; default and most 507 */
    /*
     * Pieces that it begins before it asks for them; default 1, at most 256. More is faster and not safe yet: a write that
     * comes between the two leaves a region whose entry is older than its data (seed 6727 of the simulator, with 256).
     */
    uint32_t ahead;
};

struct repl_target *repl_target_new(const struct repl_target_config *c,
                                    const struct repl_target_ops *ops, void *ctx);
void repl_target_free(struct repl_target *t);

void repl_target_open(struct repl_target *t, int link);
void repl_target_close(struct repl_target *t, int link);
/* A frame whose payload was checked. Pieces and owner as for a replica. */
void repl_target_input(struct repl_target *t, int link, const struct repl_msg *m,
                       const struct iovec *iov, int n, struct repl_buf *owner);
void repl_target_submit(struct repl_target *t, struct repl_io *io);
/* An initiator has logged out, or is back: one that has nothing to flush and is gone need not be remembered. */
void repl_target_client(struct repl_target *t, uint64_t client, bool gone);
int64_t repl_target_turn(struct repl_target *t, int64_t now);
/* The time before a batch of inputs or requests, so that neither latencies nor leases are counted from the last turn. */
void repl_target_time(struct repl_target *t, int64_t now);

/*
 * One at a time; -EBUSY or false while another is under way. The end is told by admin_done().
 * grow: 0 when it has begun; -EINVAL: no size, or a smaller one; -EFBIG: more regions than there may be.
 */
int repl_target_grow(struct repl_target *t, uint64_t size);
/* A new member is rebuilt and then votes; done when it does. `instead` loses its vote then; may be NULL. */
bool repl_target_add(struct repl_target *t, const struct uuid *id, const struct uuid *instead);
bool repl_target_remove(struct repl_target *t, const struct uuid *id);
/*
 * Takes a voter out that is gone for ever, without which there is no quorum; at once, and durable when the volume serves
 * again. docs/replication.md §8 says what that may cost. 0; -ENOENT: no such member is known; -EALREADY: the volume
 * serves; -EBUSY: that one answers; -EHOSTUNREACH: no other voter with data is here.
 */
int repl_target_force_out(struct repl_target *t, const struct uuid *id);
bool repl_target_scrub(struct repl_target *t);
/* Makes the volume of the next rf blank replicas, as `create` would have; nothing if there is a volume. */
void repl_target_create(struct repl_target *t, uint64_t size, uint8_t rf, uint8_t cf);

/*
 * Snapshots. 0 when it has begun; -EBUSY while something else is under way, or nothing is served; -EINVAL for a name that
 * is none.
 *   snapshot  keeps the volume as it is at one point of the order. -EEXIST: the name is taken; -ENOSPC: there are
 *             as many as there may be. Done when it is on all replicas in sync, and durable.
 *   delete    -ENOENT. Done when no replica can bring it back; space is given back later.
 *   revert    makes the volume as it was then; its size stays, and what lies beyond the snapshot's is zeros. -ENOENT;
 *             -ENOTEMPTY: there are later ones, which must be deleted first. Requests wait meanwhile. After a failure
 *             it may have happened: ask again.
 */
int repl_target_snapshot(struct repl_target *t, const char *name, uint64_t created);
int repl_target_snap_delete(struct repl_target *t, const char *name);
int repl_target_revert(struct repl_target *t, const char *name);
const struct repl_snaps *repl_target_snaps(const struct repl_target *t);
void repl_target_set_rate(struct repl_target *t, uint64_t bytes_per_second);
/* Before an end in order: replicas need not wait for the lease. */
void repl_target_bye(struct repl_target *t);

/* A replica's status; the first eight as CStorVolume has them. */
struct repl_status_replica {
    struct uuid replica_id;
    const char *mode;
    uint64_t checkpointed_io_seq;
    uint32_t inflight_read, inflight_write, inflight_sync;
    uint32_t up_time; /* seconds */
    bool quorum;

    int link; /* -1: not connected */
    bool voter;
    uint32_t rebuild_percent; /* while it is being rebuilt */
    uint64_t rebuild_bytes;   /* compared by it or by the last one, and copied */
    uint64_t rebuild_copied;
    uint32_t rebuild_eta; /* seconds; 0: not known */
    uint64_t scrub_errors;
    unsigned snapshots_missing; /* of the volume's: being rebuilt, or known when it is back */
    struct repl_held held;
};

/* Somebody who has said hello and is no member: a blank replica before the volume is made, or a new one. */
struct repl_status_guest {
    struct uuid replica_id;
    int link;
    bool blank;
};

struct repl_status {
    const char *phase; /* Init, Offline (no quorum), Degraded, Healthy, Fenced */
    bool serving;
    uint32_t epoch;
    uint64_t size;
    uint64_t version; /* of the view */
    uint8_t rf, cf;
    int n;
    struct repl_status_replica replica[REPL_MEMBERS];
    int guests;
    struct repl_status_guest guest[REPL_LINKS];
};
/* The sentence of target_check.c that does not hold; NULL: all do. */
const char *repl_target_check(const struct repl_target *t);
void repl_target_status(const struct repl_target *t, struct repl_status *ret_status);
/* Who greeted on a link, also when it has just been let go; zeros: nobody. */
struct uuid repl_target_peer(const struct repl_target *t, int link);

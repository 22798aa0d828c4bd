/*
 * Inside of the replica: replica.c has its life and the turn, replica_input.c messages, replica_ops.c executes requests in
 * order, replica_flush.c commits them, replica_map.c is the region map, active extents and metadata; replica_load.c is how it
 * begins, and how it knows its store again.
 */
#pragma once

#include "base/list.h"
#include "repl/busy.h"
#include "repl/meta.h"
#include "repl/replica.h"

enum { WINDOW = 1 << 14 }; /* writes received and not applied, at most */

/* A request: from its arrival until it is executed it is on `active`, which is in order of arrival. */
struct op {
    struct repl_req req; /* first, so that a req is an op */
    struct list_link link;
    bool running;
    bool pinned;  /* its extents stay active until it ends */
    uint8_t type; /* of the message; OP_RESUM: none */
    uint16_t flags;
    int peer;
    uint32_t peer_life; /* the link's, when it came */
    uint32_t session;
    uint64_t seq, arrival;
    uint64_t need;     /* the metadata sync that must come first */
    uint64_t need_log; /* and the write of the log */
    uint64_t snap;     /* READ, SUMS: of this snapshot */
    struct repl_buf *owner;
    const struct iovec *iov; /* the payload: owner's, or `one` */
    int iov_n;
    struct iovec one;
    void *copy;                                 /* of a payload without an owner */
    uint64_t offset, length;                    /* of all; req has the part under way */
    uint8_t skip[REPL_PIECE / REPL_SECTOR / 8]; /* DATA: sectors written since BEGIN */
    struct repl_view *view;                     /* VIEW; owned */
};

enum { OP_RESUM = 0 }; /* the type of an op of the replica's own */

/* An active extent: the log on disk has it, or will after write number `since`. */
struct extent {
    uint32_t number;
    uint32_t pins; /* requests under way in it */
    bool retiring;
    uint64_t since;
    struct list_link link; /* lru, last touched at the end; or free */
};

/* A piece that is being rebuilt; length 0: none. */
struct piece {
    uint64_t offset, length;
    uint64_t need; /* the metadata sync after which its stamp is on disk; 0: it has none */
    uint8_t written[REPL_PIECE / REPL_SECTOR / 8]; /* sectors, since BEGIN */
};

struct peer {
    bool open, want_hello;
    uint32_t life;
};

struct repl_replica {
    struct repl_replica_config cfg;
    const struct repl_replica_ops *ops;
    void *ctx;
    int64_t now;
    bool started, failed, stopping, stopped;
    bool complete; /* holds everything up to pos and goes on from there */
    bool intact;   /* lost nothing from memory since it was complete */
    bool sb_dirty, sync_running, promise_owed;
    bool flush_done, done_owed; /* with DONE */
    bool flush_mark, mark_owed; /* with a mark */
    uint32_t mark_region, flush_region;
    uint64_t mark_snap, flush_snap; /* of a snapshot's rebuild; 0: of the volume's */
    uint64_t forget_sync; /* after which no mark of a snapshot is on disk that is none any more */

    struct repl_super sb;
    uint64_t pos; /* in memory; follows `applied` while complete */
    uint64_t store_size;
    struct repl_view view_in; /* the last that came */
    uint64_t view_sync;       /* after which it is to be confirmed; 0: is */

    /* replica_map.c */
    uint64_t *map;
    uint16_t *slot_of; /* extent -> index into extents + 1 */
    struct extent *extents;
    uint32_t regions, active_n;
    struct list_link lru, extents_free;
    uint64_t *dirty;                           /* bits: pages */
    uint64_t syncs, synced;                    /* begun, done */
    uint64_t sure_generation, sync_generation; /* of the superblock on disk, and being written */
    uint64_t written_to;                       /* where the last write ended */
    int64_t touched_at;
    /* The log: generation on disk, being written; writes begun, done. */
    uint64_t log_generation, log_writing, logs, logged;
    bool log_dirty, log_running, log_missing;
    enum { RETIRE_IDLE, RETIRE_SUMS, RETIRE_PAGES } retire_state;
    uint64_t retire_sync;
    struct op retire_op;
    /* Regions whose checksums at rest may be older than the data; of them, those in no active extent. */
    uint8_t *stale; /* bits */
    uint32_t stale_n, stale_cold, stale_next;
    uint32_t resums;     /* under way */
    int64_t resummed_at; /* when one was last begun */
    int64_t compared_at; /* when sums were last asked for; also the start */

    /* replica_load.c */
    enum { SEAL_NONE, SEAL_NOTE, SEAL_STAMP, SEAL_DONE } seal_state;
    uint64_t seal_sync;
    uint32_t seals; /* ended */
    struct op stamp_op;
    const char *damaged;

    /* links */
    struct peer peer[REPL_LINKS];
    int bound;      /* the link that may write, or -1 */
    int later_link; /* with a PROMISE that waits for the lease; -1 */
    uint64_t promise_sync;
    int64_t lease_until;
    bool ping_owed; /* an answer to the ping that came last */
    uint64_t ping;
    struct repl_msg later;

    /* replica_ops.c */
    struct op *ops_all;
    struct list_link active, free_ops;
    uint32_t ops_n, waiting;
    struct repl_busy busy;
    uint32_t session;
    bool joined;   /* by the target that may write */
    uint64_t join; /* its number, as the target has it */
    uint64_t arrivals;
    uint64_t received, applied, durable; /* counts in this session */
    uint64_t applied_told, durable_told;
    uint64_t done_bits[WINDOW / 64];

    struct piece pieces[REPL_PIECES];
    uint32_t places;     /* of them that may be in use: those below */
    bool rebuilding;     /* its target compares or copies, since it is bound */
    uint64_t rebuilt_to; /* the end of what was compared or copied last */

    /* flushes */
    enum { FLUSH_IDLE, FLUSH_STORE, FLUSH_PAGES, FLUSH_META } flush_state;
    struct op flush_op;
    uint64_t flush_want, flush_have, flush_arrival; /* arrivals */
    uint64_t flush_applied, flush_pos, flush_sync;
    uint32_t flush_session;
    struct repl_lineage done_lineage;
    int64_t checkpoint_at, flushed_at;
};

/* replica_map.c */
void map_resize(struct repl_replica *r, uint64_t size, uint8_t region_shift);
void map_dirty(struct repl_replica *r, uint32_t region);
void map_clean(struct repl_replica *r); /* all pages are on disk as they are here */
uint32_t map_extent(const struct repl_replica *r, uint64_t offset);
/* Whether all extents of a range can be active. */
bool map_room(const struct repl_replica *r, uint64_t offset, uint64_t length);
/* The write of the log after which writes to this range may be executed. They stay active until map_release(). */
uint64_t map_touch(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t pos);
void map_release(struct repl_replica *r, uint64_t offset, uint64_t length);
/* The number of the sync after which the stamp is on disk, or the entry is higher anyway. */
uint64_t map_stamp(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t stamp);
/* The same for all regions whose entry is above a position. */
uint64_t map_stamp_above(struct repl_replica *r, uint64_t above, uint64_t stamp);
/* A write failed: nobody knows what is there, so its checksums are worth nothing. */
void map_spoil(struct repl_replica *r, uint64_t offset, uint64_t length);
void map_forget(struct repl_replica *r); /* regions in active extents are unknown from now on */
void map_settle(struct repl_replica *r, uint64_t pos);
bool map_stale(const struct repl_replica *r, uint64_t offset, uint64_t length);
void map_fresh(struct repl_replica *r, uint32_t region, bool read);
/* The next stale region from *region on, those in no active extent first; false: there is none. */
bool map_next_stale(const struct repl_replica *r, uint32_t *region);
void map_load_log(struct repl_replica *r, const struct repl_log *log);
void map_loaded(struct repl_replica *r);
void map_retire(struct repl_replica *r); /* extents leave the set, if some should */
void retire_stored(struct repl_replica *r, int status);
void log_make(struct repl_replica *r); /* both slots, with the metadata that is written next */
void log_begin(struct repl_replica *r);
/* What changes now is durable when this sync is done. */
static inline uint64_t meta_next(const struct repl_replica *r)
{
    return r->syncs + 1;
}
bool meta_pages_dirty(const struct repl_replica *r);
void meta_begin(struct repl_replica *r);

/* replica_ops.c */
bool op_take(struct repl_replica *r, int link, const struct repl_msg *m, const struct iovec *iov,
             int n, struct repl_buf *owner);
bool op_conflicts(const struct repl_replica *r, const struct op *o); /* with one before it */
void ops_kick(struct repl_replica *r);
void ops_drop_waiting(struct repl_replica *r);
void ops_resum(struct repl_replica *r); /* checksums of stale regions, a few at a time */
void pieces_forget(struct repl_replica *r);

/* replica_flush.c */
bool flush_awaits_sums(const struct repl_replica *r);
void flush_request(struct repl_replica *r);
void flush_progress(struct repl_replica *r);
void flush_stored(struct repl_replica *r, int status);

/* replica_input.c */
void replica_promise(struct repl_replica *r, int link, const struct repl_msg *m);

/* replica_load.c */
void seal_begin(struct repl_replica *r);
void seal_progress(struct repl_replica *r);
void seal_stored(struct repl_replica *r, int status);

/* replica.c */
void replica_unbind(struct repl_replica *r);
void replica_forget_rebuild(struct repl_replica *r);
void replica_drop(struct repl_replica *r, int link, const char *why);
void replica_send(struct repl_replica *r, int link, struct repl_msg *m, const void *payload,
                  struct repl_buf *owner);
void replica_fault(struct repl_replica *r, const char *why);

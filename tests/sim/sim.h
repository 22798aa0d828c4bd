/*
 * A deterministic world for the replication core: processes with clocks of their own, disks that lose and tear
 * what was not synced, connections that delay, block and break. One seed is one life of one volume.
 *
 *     client ─> target (src/repl) <══ connections ══> replica (src/repl) ─> disk
 *        │                                                              │
 *        └── model: every read, every acknowledged write ───────────────┘ bytes at the end
 *
 * world.c owns time and processes, net.c connections, disk.c disks, pool.c those in a pool of ZFS, storage.c what is asked of them; model.c knows what
 * reads may return, history.c what replicas must have, claims.c whether what is said is true, snaps.c what is in
 * snapshots; life.c is the plan of a seed: clients, healing, the end; faults.c what goes wrong meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "repl/frame.h"
#include "repl/meta.h"
#include "repl/replica.h"
#include "repl/target.h"

enum {
    REPLICAS = 8,
    TARGETS = 2,
    CONNS = REPLICAS * TARGETS,
    SECTOR = 512,
    SECTORS_MAX = 96,
    META_SIZE = REPL_META_HEAD + REPL_SUPER_SIZE,
    META_GRAIN = 512, /* a sector is written whole or not at all */
    IOS = 12,         /* of a client, at once */
    ACTIVE_MAX = 3,   /* extents */
    INITIATORS = 2,   /* of a volume */
    SNAPS_MAX = 4,    /* of a volume, as administrators here want it */
    DISK_SNAPS = 12,  /* of a disk: also such as nobody has taken away yet */
    ZEROED = 20,      /* the first of four sectors that are zeroed now and then, all at once */
};

#define MS    ((int64_t)1000000)
#define LEASE (60 * MS)

struct event {
    int64_t at;
    uint64_t order;
    enum {
        EV_TURN_TARGET,
        EV_TURN_REPLICA,
        EV_MESSAGE,
        EV_STORED,
        EV_SYNCED,
        EV_LOGGED,
        EV_DIAL,
        EV_BROKEN,
        EV_CLIENT,
        EV_FAULT,
        EV_START_REPLICA,
        EV_START_TARGET,
        EV_CRASH,
        EV_CUT_OFF,
        EV_CUT_FROM,
        EV_LOSE_DISK,
        EV_HANDOVER,
        EV_SNAPS,
    } kind;
    int a, b;
    uint32_t life;
    void *p;
};

/* Bytes that did not reach the disk for sure. */
struct unsynced {
    struct unsynced *next;
    uint64_t offset, length;
    bool done, flushing;
    bool alone; /* durable by itself, not by a sync of everything */
    uint8_t data[];
};

struct disk {
    uint8_t data[SECTORS_MAX * SECTOR], data_sure[SECTORS_MAX * SECTOR];
    uint8_t meta[META_SIZE], meta_sure[META_SIZE];
    struct unsynced *data_log, **data_end, *meta_log, **meta_end;
    uint64_t size;
    /* Checksums at rest, as the process sees them and as they are on disk for sure; a crash may leave either. */
    uint64_t sums[SECTORS_MAX], sums_sure[SECTORS_MAX];
    struct {
        const void *of; /* the flush; NULL: none */
        uint64_t order; /* when it began */
        uint64_t sums[SECTORS_MAX];
    } sums_flush[2];
    uint64_t sums_orders, sums_order; /* the last order given out; that of sums_sure */
    struct uuid store;
    uint64_t generation; /* that it was stamped with */
    bool missing;        /* it cannot be opened */
    struct {
        uint64_t id;
        uint8_t *data;
        uint64_t rotten[SECTORS_MAX / 64 + 1]; /* in a pool: sectors that cannot be read */
    } snap[DISK_SNAPS];                        /* oldest first */
    int snaps;
};

struct process {
    bool up, starting;
    uint32_t life;
    int64_t frozen_until;
    double rate; /* of its clock */
    int64_t turn_at;
};

struct sim_replica {
    struct process p; /* first */
    struct sim *s;
    int i;
    bool weak;     /* lost its memory, and was not healthy since */
    bool crashed;  /* the same, and no rebuild ended since */
    bool stopping; /* in order */
    bool wiped;    /* lost its disk, and was not healthy since */
    struct repl_replica *core;
    bool pool; /* its disk is in a pool of ZFS: pool.c */
    struct disk disk;
    struct image {
        uint8_t data[SECTORS_MAX * SECTOR], meta[META_SIZE];
        uint64_t sums[SECTORS_MAX], generation;
        uint64_t knows; /* the highest generation that its metadata knows */
        struct uuid store;
    } * image;    /* an older copy */
    bool damaged; /* its store or metadata is not what it was, and it was not healthy since */
    uint64_t rotten[SECTORS_MAX / 64 + 1]; /* sectors, bits: data is not what it should be */
    uint64_t was[SECTORS_MAX];             /* of these: what it should be */
    bool used;                             /* was ever meant to be a member */
    bool added; /* to a volume that there was: it may become one at any time */
    bool slow;
    int erring; /* 1: reads, 2: everything */
    bool erred; /* ever: some reads failed, and it was mended */
    struct uuid id;
    struct claim {
        bool known;     /* else it is to be read from the disk */
        uint64_t order; /* how many writes have made it */
        struct repl_super super;
        uint64_t entries[SECTORS_MAX]; /* of the region map */
        bool active[SECTORS_MAX];      /* regions: in the activity log */
    } said, sure;         /* what its metadata says as it was written, and as it is synced */
    struct claim logging; /* as it was written when the log's write began that is under way */
    struct {
        uint64_t owner;
        int64_t at;
    } pong;              /* the last, to whom */
    uint64_t view_ok[2]; /* the last views that it confirmed: at all, and with its disk whole */
    enum {
        GONE_NO,
        GONE_DISK,
        GONE_REBUILT
    } gone;        /* what it had; rebuilt: it counts in the next epoch */
    bool bad_page; /* of its map */
    bool forgot;   /* something that it had, and its rebuild did not end since */
    bool rejoined; /* and not rebuilt since */
    bool ever;     /* it had a write that a client was told of: something to lose */
    struct had {
        uint64_t owner, applied, durable;
    } had[24]; /* what it has acknowledged, complete, to the last targets */
};

struct sim_target {
    struct process p; /* first */
    struct sim *s;
    int i;
    struct repl_target *core;
    bool serving, fenced, checked; /* checked: that it may serve */
    uint64_t owner;                /* of its last attempt */
    uint64_t acked;                /* its last write that a client was told of */
    uint64_t snap_seen;
    struct repl_view proposed;
};

struct message {
    struct message *next;
    uint8_t header[REPL_HEADER];
    uint32_t length;
    struct repl_buf buf;
    struct iovec iov[2]; /* the payload, as it was given */
    uint8_t payload[];
};

/* One connection; side 0 is the target. */
struct conn {
    bool up[2];
    uint32_t life;
    uint64_t promised;   /* the owner that side 1 has promised to, on this connection */
    int64_t clear_at[2]; /* messages to side i arrive not before */
    int64_t blocked[2];
    struct message *held[2]; /* could not be taken yet */
    struct message **held_end[2];
};

/* Why it failed. */
struct sim_failure {
    bool failed;
    char why[300];
};

struct client_io {
    struct repl_io io;
    struct iovec iov;
    bool busy, all; /* all: part of reading everything */
    int target, initiator;
    uint32_t life; /* of the target */
    int64_t started;
    uint64_t value, id;
    uint64_t owner, must; /* flush: everything up to here that this one had acknowledged */
    uint8_t data[4 * SECTOR];
};

struct sim {
    uint64_t seed, rng;
    bool trace;
    int64_t now;
    uint64_t orders, steps;
    struct event *heap;
    size_t heap_n, heap_size;
    struct sim_failure failure;

    struct sim_target target[TARGETS];
    struct sim_replica replica[REPLICAS];
    struct conn conn[TARGETS][REPLICAS];
    struct uuid volume;
    int rf, cf;
    uint64_t size; /* as committed, at most */

    /* the plan */
    bool safe;    /* never more replicas without memory than a quorum can miss */
    bool sync_io; /* the store answers at once */
    /* What goes wrong more often than elsewhere: */
    bool behind;                     /* some miss the last writes before a node is lost */
    bool rebuilds;                   /* rebuilds are interrupted */
    bool handover;                   /* targets end while a rebuild does */
    bool splits;                     /* a target is replaced while it goes on */
    bool snaps;                      /* snapshots are taken, deleted and gone back to */
    bool snaps_fail;                 /* not all stores can take one */
    bool damages;                    /* stores and metadata are damaged, swapped or old */
    bool rots;                       /* data changes by itself */
    int64_t split_until, calm_until; /* no other faults until then */
    int64_t reads_until;             /* until then clients only read */
    int64_t zeros_until;             /* until then they write only zeros, and all to one place */
    int split_reader;                /* until then the client of this target only reads; -1: none */
    bool named; /* targets know of whom the volume is made, and may always make it */
    struct uuid first[REPLICAS];
    int64_t
        put_away_at; /* replicas and targets that were only there to make the volume; 0: they are gone */
    int buried;      /* replica that is gone for ever and has to be taken out by force; -1 */
    int64_t buried_at;
    int64_t delay, disk_delay, meta_delay, fault_every, client_every, checkpoint;
    uint32_t kinds;      /* of faults, bits: others do not happen in this life */
    int hot, hot_chance; /* sectors that most requests are for, and how many of a hundred are */
    uint64_t zeroing;    /* of a hundred requests */
    uint32_t map_chunk;
    uint64_t mark_bytes;
    bool served; /* at least once */
    bool lossy;  /* a quorum lost its memory: find out what is left */
    bool doubt;  /* the same, on the way back to a snapshot: known when it is there */
    bool quiet;  /* clients submit nothing */
    enum { RUN, HEAL, SETTLE, READ_ALL, SCRUB, END } stage;
    int64_t stage_at;
    int depth;
    uint8_t region_shift, extent_shift;
    uint64_t pool_sectors; /* of a block, in pools */
    int read_next;         /* of reading everything: sector, -1 before the flush */
    uint64_t read_values[SECTORS_MAX];
    int initiators;
    unsigned untold; /* initiators that must be told by a flush that something is gone; bits */
    enum repl_admin admin;
    int admin_target;
    uint64_t admin_value;
    char admin_name[REPL_SNAP_NAME];
    int admin_replica, admin_instead;
    int64_t admin_started, reset_at; /* reset: of the model */
    bool scrubbed;
    int corrupt; /* replica, or -1 */
    uint64_t mismatches;
    uint64_t values;
    uint64_t snap_names;
    struct {
        char name[REPL_SNAP_NAME];
        uint64_t values[SECTORS_MAX];
    } snap[SNAPS_MAX]; /* whose content is known; "": none */
    enum {
        BACK_NO,
        BACK_WAIT,
        BACK_ASKED
    } back; /* the way back to a snapshot: to be asked for again until it is done */

    struct client_io io[IOS * TARGETS];
    struct model *model;
    struct history *history;
    struct {
        uint64_t reads, writes, flushes, crashes, stops, elections, admin, losses, serving;
    } stats;
};

/* sim.rng */
uint64_t sim_random(struct sim *s);
uint64_t sim_below(struct sim *s, uint64_t n);
bool sim_chance(struct sim *s, int percent);
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* world.c */
void world_event(struct sim *s, int64_t at, int kind, int a, int b, uint32_t life, void *p);
void world_put_off(struct sim *s, const struct event *e, int64_t at);
bool world_step(struct sim *s, struct event *ret_e); /* false: nothing left */
void world_handle(struct sim *s, struct event *e);
void world_done(struct sim *s);
void target_start(struct sim *s, int i, bool create);
void target_crash(struct sim *s, int i);
void target_stop(struct sim *s, int i); /* in order: what it said arrives */
void target_turn(struct sim *s, int i);
void replica_start(struct sim *s, int i);
void replica_crash(struct sim *s, int i);
void replica_stop(struct sim *s, int i); /* in order; it starts again some time later */
void replica_wipe(struct sim *s, int i);
int64_t local_time(const struct sim *s, const struct process *p);

/* net.c */
/* In clear_at: nothing arrives any more, also of what is sent later. A connection has no gaps. */
#define NEVER (INT64_MAX / 2)
struct message *net_message(const struct repl_msg *m, size_t length);
void net_message_free(struct repl_buf *b);
void net_post(struct sim *s, int t, int r, int to, struct message *q);
void net_end(struct sim *s, int t, int r, int side); /* one end is gone */
void conn_break(struct sim *s, int t, int r);
void net_free_held(struct conn *c, int side);
void net_dial(struct sim *s, int r);
void net_give_held(struct sim *s, int r); /* what found no room is given again */
void net_arrived(struct sim *s, struct event *e);
void net_broken(struct sim *s, struct event *e);

/* disk.c */
void disk_log_write(struct unsynced ***end, uint64_t offset, const void *data, uint64_t length,
                    bool done);
void disk_log_sync(struct unsynced **log, struct unsynced ***end, uint8_t *sure);
void disk_log_crash(struct sim *s, struct unsynced **log, struct unsynced ***end, uint8_t *sure,
                    uint8_t *now, size_t size, uint64_t grain);
void disk_mark_flushing(struct unsynced *u);
int disk_find(const struct disk *d, uint64_t id); /* -1: none */
bool disk_snapshot(struct disk *d, uint64_t id);
void disk_drop(struct disk *d, uint64_t id);
void disk_revert(struct disk *d, uint64_t id);
void disk_free_snaps(struct disk *d, int from);

/* pool.c */
void pool_crash(struct sim_replica *r);
void pool_sync(struct sim_replica *r); /* a group ends */
uint64_t pool_block(const struct sim *s, uint64_t sector, uint64_t *ret_first);
bool pool_can_read(const struct sim_replica *r, const struct repl_req *q);
bool pool_can_write(const struct sim_replica *r, uint64_t offset, uint64_t length);
void pool_snapshot_taken(struct sim_replica *r);
void pool_reverted(struct sim_replica *r, uint64_t id);
bool pool_snapshots_rot(const struct sim_replica *r);

/* model.c */
struct model *model_new(void);
void model_free(struct model *m);
void model_write(struct model *m, uint64_t first, uint64_t n, uint64_t value, uint64_t id,
                 int64_t now, int by);
void model_written(struct model *m, uint64_t id, int64_t now, bool durable, uint32_t life);
/* others: what other initiators wrote is flushed, too. */
void model_flushed(struct model *m, int64_t started, int by, bool others);
void model_flush_failed(struct model *m, int by, int64_t now, uint32_t life);
unsigned model_untold(const struct model *m, const uint64_t *values, uint64_t sectors);
void model_read(struct sim *s, uint64_t sector, uint64_t value, int64_t started, int64_t now);
/* After a loss: what may be there, and from now on is. */
bool model_may_remain(struct model *m, uint64_t sector, uint64_t value);
/* In a snapshot that was begun at a time. */
bool model_in_snapshot(struct model *m, uint64_t sector, uint64_t value, int64_t started);
void model_reset(struct sim *s, const uint64_t *values);
/* All operations of every sector can be put in an order. */
void model_check(struct sim *s);

/* history.c */
struct history *history_new(void);
void history_free(struct history *h);
void history_serves(struct sim *s, int t, uint32_t epoch);
void history_sent(struct sim *s, int t, const struct repl_msg *m, const struct iovec *iov);
void history_check_disk(struct sim *s, int replica);    /* what a crash would leave */
void history_check_durable(struct sim *s, int replica); /* its position on disk has just risen */
/* What it says of itself; all: nothing that it was sent is still to be executed, or never will. */
void history_check_memory(struct sim *s, int replica, bool all);
void history_check_write(struct sim *s, int replica, uint64_t offset, const uint8_t *data,
                         uint64_t length);
void history_snapshot(struct sim *s, int replica, uint64_t id);

/* claims.c */
void claims_dropped(struct sim *s, const char *who, int i, const char *why);
void claims_replica(struct sim *s, int t, int i, const struct repl_msg *m);
void claims_given(struct sim *s, int i, const struct repl_msg *m);
void claims_target(struct sim *s, int t, const struct repl_msg *m, const struct iovec *iov);
void claims_answered(struct sim *s, int t, uint64_t before); /* the view that counted before */
void claims_serves(struct sim *s, int t);
void claims_complete(struct sim *s, int t, const struct client_io *c);

/* storage.c */
void store_check_meta(struct sim_replica *r, uint64_t offset, size_t size);
void store_meta_written(struct sim_replica *r, uint64_t offset, const void *data);
void store_meta_syncing(struct sim_replica *r);
void store_meta_synced(struct sim_replica *r);
void store_meta_sure(struct sim_replica *r, const struct claim *c); /* this is on disk now */
void store_meta_read(struct sim_replica *r);                        /* after a crash */
int store_request(void *ctx, struct repl_req *q);                   /* ctx: a sim_replica */
int store_log_write(void *ctx, uint64_t offset, const void *data, size_t size);
void store_log_written(struct sim_replica *r);
/* What a region's entry would be after a crash. */
uint64_t store_entry(const struct sim_replica *r, uint64_t region);
void store_done(struct sim *s, struct event *e);

/* damage.c */
void damage_keep(struct sim *s, int i); /* a copy, to be put back later */
void damage_store(struct sim *s, int i);
void damage_forgot(struct sim_replica *r);
void damage_refused(struct sim *s, int i);
void damage_rot(struct sim *s, int i);
void damage_relieve(struct sim *s);
bool damage_rotten(const struct sim_replica *r, uint64_t sector);
bool damage_rots(const struct sim_replica *r); /* any sector */
void damage_corrupt(struct sim *s, int i, uint64_t sector);
uint64_t damage_value(const struct sim_replica *r, uint64_t sector);
void damage_mend_snapshot(struct sim_replica *r, uint64_t sector); /* the newest */
void damage_check_map(struct sim *s, int i);      /* when it has loaded its metadata */
bool damage_obvious(const struct sim_replica *r); /* at its start */
void damage_mended(struct sim_replica *r, uint64_t offset, uint64_t length);

/* snaps.c */
void snaps_admin(struct sim *s, int t,
                 enum repl_admin *ret_op); /* something with snapshots is asked for */
void snaps_done(struct sim *s, int target, enum repl_admin op);
void snaps_back(struct sim *s, int target, int status);
void snaps_go_back(struct sim *s); /* to the last one */
bool snaps_turn(struct sim *s);    /* the way back; false: there is none under way */
void snaps_check(struct sim *s);
bool sim_idle(const struct sim *s);
uint64_t sim_value(struct sim *s, const uint8_t *sector);

/* life.c */
bool sim_life(uint64_t seed, bool trace, struct sim *ret_s);
void life_event(struct sim *s, struct event *e);
void life_complete(struct sim *s, int target, struct repl_io *io, int status);
void life_admin_done(struct sim *s, int target, enum repl_admin op, int status);
void life_target_gone(struct sim *s, int target);
void life_syncing(struct sim *s, int replica); /* its metadata: a good moment to crash */
void life_given(struct sim *s, int t, int r, uint8_t type); /* a replica gets a message */
void life_sent(struct sim *s, int t, int r, const struct repl_msg *m); /* a target says something */
void life_snapped(struct sim *s, int t);
void life_fault(struct sim *s);
void life_snaps(struct sim *s, int chance);
void life_crash_node(struct sim *s, int r, bool target);
void life_cut_off(struct sim *s, int r, int64_t until);
void life_cut_from(struct sim *s, int r, int t);
void life_lose_disk(struct sim *s, int r);
bool life_new_disk(struct sim *s, int r, bool blank); /* false: not now */
void life_handover(struct sim *s, int t);
int64_t sim_between(struct sim *s, int64_t low, int64_t high);
int sim_limit(const struct sim *s);
int sim_wiped(const struct sim *s);
int sim_serving_target(const struct sim *s);
int sim_without_memory(const struct sim *s);
bool sim_impaired(const struct sim_replica *r);

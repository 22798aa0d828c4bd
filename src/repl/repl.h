/*
 * What both sides of replication share: names of writes, views, lineages, messages, buffers. The
 * protocol and its arguments are in docs/replication.md; the words here are the words there.
 *
 * A position names a write: the epoch in the top 24 bits, a count from 1 below. Positions are never
 * used twice, and are compared as numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/uuid.h"

/*
 * Faults that are planted to see whether the simulator notices them. GUARD: a check that an argument in
 * docs/replication.md relies on; it is taken as passed. MUTANT: an expression; a wrong one takes its place. Only a
 * build with -DREPL_MUTATE has them, one at a time: number repl_mutant, none for 0.
 */
#ifdef REPL_MUTATE
extern int repl_mutant;
#define GUARD(n, condition)  ((n) == repl_mutant || (condition))
#define MUTANT(n, good, bad) ((n) == repl_mutant ? (bad) : (good))
#else
#define GUARD(n, condition)  (condition)
#define MUTANT(n, good, bad) (good)
#endif

/* What is always true is looked at after every turn in debug and sanitizer builds: target_check.c, replica_check.c. */
#ifdef REPL_CHECKS
#define REPL_CHECK(broken) repl_check(broken)
#else
#define REPL_CHECK(broken) ((void)0)
#endif
void repl_check(const char *broken); /* NULL: nothing is */

enum {
    REPL_MEMBERS = 8,         /* at most in a view */
    REPL_LINKS = 16,          /* connections that a target or a replica has at most */
    REPL_EPOCHS = 32,         /* kept in a lineage */
    REPL_SUPER_SIZE = 4096,   /* a superblock as it is sent; also of a map page */
    REPL_PAGE_ENTRIES = 507,  /* regions in a map page */
    REPL_SECTOR = 512,        /* offsets and lengths are multiples of it */
    REPL_PIECE = 128 * 1024,  /* compared and copied at a time in a rebuild */
    REPL_PIECES = 256,        /* of a rebuild begun at most; BEGIN and DATA say which */
    REPL_FLYING = 32,         /* of them asked for at most, and not yet written */
    REPL_MAX_DATA = 4 << 20,  /* payload of a frame */
    REPL_MAX_ZERO = 64 << 20, /* zeroed by one request */
    REPL_COUNT_BITS = 40,
    REPL_EPOCH_LAST = (1 << 24) - 1,
    REPL_REGIONS = 1 << 26, /* of a volume: 64 times as many as one is made with */
    REPL_SNAPS = 32,        /* of a volume */
    REPL_HELD = 36,         /* of a replica: also some that nobody has taken away yet */
    REPL_SNAP_NAME = 48,    /* with the byte that ends it */
    REPL_CLIENTS = 12,      /* initiators that a view remembers */
    REPL_ACTIVE = 2000,     /* extents that an activity log has room for */
    REPL_EXTENT_SHIFT = 22, /* an extent is 4 MiB, or a region where that is larger */
};

/* In the tag of a request that is the target's own, not a client's. */
#define REPL_TAG_OWN ((uint64_t)1 << 63)
#define REPL_UNKNOWN UINT64_MAX /* in a region map: higher than any position */

static inline uint64_t repl_pos(uint32_t epoch, uint64_t count)
{
    return (uint64_t)epoch << REPL_COUNT_BITS | count;
}
static inline uint32_t repl_pos_epoch(uint64_t pos)
{
    return (uint32_t)(pos >> REPL_COUNT_BITS);
}
static inline uint64_t repl_pos_count(uint64_t pos)
{
    return pos & (((uint64_t)1 << REPL_COUNT_BITS) - 1);
}

enum { REPL_VOTER = 1, REPL_OLD = 2, REPL_INSYNC = 4, REPL_LEARNER = 8 }; /* of members */
enum { REPL_FORMED = 1 };                                                 /* of views */

struct repl_member {
    struct uuid id;
    uint8_t flags;
    uint64_t floor; /* it once was durable up to here */
};

/* A snapshot: the volume as it was at a position. Oldest first; names and ids are used once. */
struct repl_snap {
    uint64_t id;      /* epoch << 32 | number */
    uint64_t pos;     /* of the last write in it */
    uint64_t size;    /* the volume's, then */
    uint64_t created; /* seconds since 1970 */
    char name[REPL_SNAP_NAME];
};

struct repl_snaps {
    uint8_t n;
    struct repl_snap at[REPL_SNAPS];
};

/* Snapshots that a replica has, oldest first. */
struct repl_held {
    uint8_t n;
    uint64_t id[REPL_HELD];
};

/*
 * Initiators that wrote and may have something that is not flushed. `owed`: something that was acknowledged to it may
 * be gone, and no flush of it has failed since.
 */
struct repl_clients {
    uint8_t n;
    struct {
        uint64_t id; /* of the initiator; never 0 */
        bool owed;
    } at[REPL_CLIENTS];
};

struct repl_view {
    uint64_t version; /* epoch << 32 | number */
    uint64_t size;    /* of the volume, in bytes */
    uint8_t rf, cf;   /* as configured */
    uint8_t flags;
    uint8_t region_shift, block_shift;
    uint8_t n;
    struct repl_member member[REPL_MEMBERS];
    struct repl_snaps snaps;
    struct repl_clients clients;
};

struct repl_lineage {
    uint32_t n;
    struct {
        uint32_t epoch;
        uint64_t owner;
        uint64_t end; /* position; of the last entry it is open */
    } at[REPL_EPOCHS];
};

/* What a replica has on disk beside data and map, and sends in HELLO and PROMISED. */
struct repl_super {
    uint64_t generation; /* 0: there is none */
    struct uuid volume, replica;
    uint32_t boot;
    uint32_t promised; /* epoch */
    uint64_t owner;
    uint64_t pos;
    uint64_t mark_pos; /* rebuilt up to mark_region as of here */
    uint32_t mark_region;
    uint64_t
        snap_mark; /* below snap_region the data is that of this snapshot, which is being rebuilt; 0: none */
    uint32_t snap_region;
    bool clean; /* stopped in order */
    bool lost;  /* its data or metadata was damaged, and it was not rebuilt since */
    /* The store that this metadata is about, and how often it was opened or closed in order. */
    struct uuid store;
    uint64_t store_generation;
    uint8_t stamping;        /* not 0: the store has this generation, or the one so much higher */
    uint64_t log_generation; /* of the activity log: at least this */
    struct repl_view view;
    struct repl_lineage lineage;
    struct repl_held held; /* as the store has them */
};

enum repl_type {
    REPL_HELLO = 1,
    REPL_PROMISE,
    REPL_PROMISED,
    REPL_REFUSE,
    REPL_JOIN,
    REPL_DONE,
    REPL_DONE_OK,
    REPL_VIEW,
    REPL_VIEW_OK,
    REPL_WRITE,
    REPL_ZERO,
    REPL_ACK,
    REPL_FLUSH,
    REPL_READ,
    REPL_READ_OK,
    REPL_MAP,
    REPL_MAP_OK,
    REPL_SUMS,
    REPL_SUMS_OK,
    REPL_BEGIN,
    REPL_DATA,
    REPL_SNAP,
    REPL_SNAP_DROP,
    REPL_SNAP_OK,
    REPL_PREPARE,
    REPL_PREPARE_OK,
    REPL_PING,
    REPL_PONG,
    REPL_BYE,
    REPL_REVERT,
    REPL_TYPES,
};

enum {
    REPL_FUA = 1,       /* WRITE, ZERO: durable before it counts */
    REPL_UNMAP = 2,     /* ZERO: give the space back */
    REPL_MARK = 4,      /* FLUSH: with a rebuild mark */
    REPL_FAILED = 8,    /* READ_OK, SUMS_OK, SNAP_OK, PREPARE_OK: the store said no */
    REPL_BLANK = 16,    /* HELLO, PROMISED: never was in a volume */
    REPL_INTACT = 32,   /* HELLO, PROMISED: lost nothing from memory since it was in sync */
    REPL_LOST = 64,     /* HELLO, PROMISED: lost its data, or may have forgotten a promise */
    REPL_VOUCHED = 128, /* SUMS_OK: what was read matched its checksums at rest */
};

struct repl_msg {
    uint8_t type; /* enum repl_type */
    uint16_t flags;
    uint32_t epoch;
    uint32_t length; /* of the payload */
    uint32_t data_crc;
    struct uuid volume;
    uint64_t seq, offset, count;
};

/*
 * A payload's memory, owned outside and counted. Who keeps a pointer into it after a call returns
 * takes a reference. Not atomic: a volume lives on one thread.
 */
struct repl_buf {
    uint32_t refs;
    void (*free)(struct repl_buf *b);
};

static inline struct repl_buf *repl_buf_ref(struct repl_buf *b)
{
    if (b)
        b->refs++;
    return b;
}
static inline void repl_buf_unref(struct repl_buf *b)
{
    if (b && --b->refs == 0)
        b->free(b);
}

const char *repl_type_name(uint8_t type);

/*
 * Volumes of a pool: zvols, with the layout of a kernel's, so that a machine with the ZFS module sees
 * ordinary ones.
 *
 *     pool ──┬── volume ──┬── @snapshot ── clone, a volume that begins as the snapshot
 *            │            └── intent log: what was flushed and is not yet in the pool's tree
 *            └── ...
 *
 * Invariants:
 *   - A write is seen by reads as soon as it is done, and is durable when a flush, begun after that,
 *     is done; or when it itself is done, with fua. So is an unmap.
 *   - A write of at most a block that lies in one block is there wholly or not at all after a crash.
 *   - Errors are errno values: EIO (damage without a copy, device failures, a suspended pool), ENOSPC,
 *     EROFS. None of them ends the process.
 *   - A volume has one handle at a time; it takes I/O from any number of threads.
 *
 * Names of volumes are one component; "vol@snap" names a snapshot where one may stand.
 */
#pragma once

#include <sys/uio.h>

#include "base/list.h"
#include "zpool/zpool.h"

struct zpool_volume;

/* What is noted on a volume, as a user property of ZFS: "io.orlop:word". */
struct zpool_note {
    const char *key, *value;
};

struct zpool_volume_spec {
    uint64_t size;           /* a multiple of block_size */
    uint32_t block_size;     /* 512 to 131072, a power of two; 0: 16384 */
    const char *compression; /* "off", "lz4", "zstd", "gzip", ...; NULL: as the pool has it */
    bool thick;              /* space for all of it is set aside */
    uint64_t reserve;        /* bytes that are set aside for one that is not thick */
    const struct zpool_note *notes; /* of a new one: it is never there without them */
    size_t n_notes;
};

int zpool_volume_create(struct zpool *p, const char *name, const struct zpool_volume_spec *spec,
                        struct err *e);
/*
 * Makes compression and thick of a volume as spec says; the rest of it is not looked at. After a crash in
 * the middle of zpool_volume_create(), which then says ALREADY_EXISTS, this makes the volume whole.
 */
int zpool_volume_set(struct zpool *p, const char *name, const struct zpool_volume_spec *spec,
                     struct err *e);
/* A volume that is not open and has no snapshot, or "vol@snap" that has no clone. */
int zpool_volume_destroy(struct zpool *p, const char *name, struct err *e);

struct zpool_volume_info {
    char name[256], origin[256]; /* origin: of a clone, "vol@snap" */
    bool snapshot;
    uint64_t guid, size;
    uint32_t block_size;
    uint64_t used;       /* by it and what depends on it: snapshots, reservation */
    uint64_t referenced; /* that its own data takes now */
    uint64_t logical;    /* that data before compression */
    uint64_t reserved;   /* set aside for it; 0: thin */
    uint64_t available;  /* that it could still take */
    int64_t created;     /* Unix time */
    uint64_t txg;        /* the same in the pool's count, in which no two snapshots are equal */
    char compression[16];
};

int zpool_volume_read_info(struct zpool *p, const char *name, struct zpool_volume_info *ret_info,
                           struct err *e);
/*
 * Notes something on a volume that is there, or with "" takes it off; durable when it returns. Snapshots, rollbacks
 * and what is written to the volume leave it alone.
 */
int zpool_volume_note(struct zpool *p, const char *name, const char *key, const char *value,
                      struct err *e);
/* What is noted, or "": it is not, or does not fit. */
void zpool_volume_read_note(struct zpool *p, const char *name, const char *key, char *ret_value,
                            size_t size);
/* All volumes, and each one's snapshots behind it, oldest first; *ret_list is for free(). */
int zpool_volume_list(struct zpool *p, struct zpool_volume_info **ret_list, size_t *ret_n,
                      struct err *e);

/* A snapshot of a volume that may be open: everything whose write was done before is in it. */
int zpool_snapshot(struct zpool *p, const char *volume, const char *name, struct err *e);
int zpool_clone(struct zpool *p, const char *snapshot, const char *volume, struct err *e);
/* The clone gets the snapshots up to its origin, and what it was made from depends on it. */
int zpool_promote(struct zpool *p, const char *clone, struct err *e);
/* To the newest snapshot of a volume that is not open. */
int zpool_rollback(struct zpool *p, const char *snapshot, struct err *e);
/* The snapshot, or what changed since an earlier one of the volume (a name without "vol@"), to fd. */
int zpool_send(struct zpool *p, const char *snapshot, const char *since, int fd, struct err *e);
/* From fd, as volume@snap; a change needs the volume as it was then. */
int zpool_receive(struct zpool *p, const char *snapshot, int fd, struct err *e);

/*
 * Opening plays the intent log. DATA_LOSS: part of the log could not be played; the volume is as of
 * before that, and a second open takes it so. A snapshot is open for reading alone.
 */
struct zpool_volume *zpool_volume_open(struct zpool *p, const char *name, bool read_only,
                                       struct err *e);
/* With no I/O under way; what was written is durable. Waits while the pool is suspended. */
void zpool_volume_close(struct zpool_volume *v);
DEFINE_CLEANUP(struct zpool_volume *, zpool_volume_close)
uint64_t zpool_volume_size(const struct zpool_volume *v);
uint32_t zpool_volume_block_size(const struct zpool_volume *v);
uint64_t zpool_volume_guid(const struct zpool_volume *v);
/*
 * A number that lies beside the volume's size: with the data it is in snapshots, goes back with a rollback and along
 * with a clone. 0: it was never set. Durable when it returns. DATA_LOSS from opening makes it far higher than it was,
 * so that one who knows the number finds out even if he ends before he is told.
 */
uint64_t zpool_volume_mark(struct zpool_volume *v);
int zpool_volume_set_mark(struct zpool_volume *v, uint64_t mark, struct err *e);
/* Durable when it returns. The same size is success; a smaller one is refused. */
int zpool_volume_grow(struct zpool_volume *v, uint64_t size, struct err *e);

enum zpool_op {
    ZPOOL_READ,
    ZPOOL_WRITE,
    ZPOOL_FLUSH,
    ZPOOL_UNMAP, /* reads as zeroes from then on; of a thin volume the space is given back */
};

/* One I/O: in the caller's memory, nothing is allocated for it here. */
struct zpool_io {
    /* The caller's: */
    struct zpool_volume *volume;
    enum zpool_op op;
    bool fua; /* WRITE, UNMAP: durable when done */
    uint64_t offset, length;
    const struct iovec *iov; /* READ, WRITE: length bytes in all; kept until done */
    unsigned iovs;
    void (*done)(struct zpool_io *io); /* of submitted ones */

    /* The engine's from submit to done: */
    int error; /* in done(): 0 or an errno value */
    struct list_link link;
};

/* At once, on this thread: 0 or an errno value. */
int zpool_io_run(const struct zpool_io *io);
/* A read, if all of it lies in memory and nobody is writing to it: it then waits for nothing. */
bool zpool_io_try_read(const struct zpool_io *io);

/*
 * Threads for an event loop that must not block. Submit and reap are the loop's thread's:
 *
 *     submit ──> queue ──> worker: zpool_io_run() ──> ring ──> loop: fd readable ──> reap ──> done()
 *       └─ waits here while `depth` are under way <──────────────────────────────────┘
 *
 * I/Os that are under way together have no order.
 */
struct zpool_workers;

/* A handful is best: four do twice the work of one, sixteen do less than four. */
struct zpool_workers *zpool_workers_new(unsigned threads, unsigned depth, struct err *e);
/* With nothing under way. */
void zpool_workers_free(struct zpool_workers *w);
DEFINE_CLEANUP(struct zpool_workers *, zpool_workers_free)
void zpool_workers_submit(struct zpool_workers *w, struct zpool_io *io);
/* Readable when something may be done since zpool_workers_reap() returned. */
int zpool_workers_fd(const struct zpool_workers *w);
/* Calls done() of what is done; how many. done() may submit again. */
unsigned zpool_workers_reap(struct zpool_workers *w);

/*
 * A store: bytes at offsets, kept somewhere. What a volume's data lies in.
 *
 *     scsi ──┐                       ┌── file   a sparse file, through the page cache or O_DIRECT, with snapshots
 *            ├──> store_submit() ────┼── mem    memory, for tests and benchmarks
 *   replica ─┘                       ├── fault  another store, with errors, delays and losses by script
 *                                    └── ...    (replicated volumes and zvols are stores too)
 *
 * Invariants:
 *   - Everything of one store happens on one thread, that of its loop. No store waits: what cannot be
 *     done at once is done later, and done() is called from the loop.
 *   - done() is called exactly once for each submitted I/O, possibly before store_submit() returns.
 *     An I/O belongs to the store from submit to done; in done() it is the caller's again and may be
 *     submitted anew.
 *   - I/Os that overlap in time have no order. A read that is submitted after a write's done() sees it.
 *   - What was done before a FLUSH was submitted is durable when that FLUSH is done; a write with fua
 *     is durable when it is done.
 *   - Offsets and lengths are multiples of block_size and within size: store_submit() checks.
 *   - Nothing is allocated for an I/O: it carries what a store needs (`state`).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/list.h"
#include "base/uuid.h"

struct store;
struct io_buf;

enum store_op {
    STORE_READ,
    STORE_WRITE,
    STORE_FLUSH,
    STORE_UNMAP, /* reads as zeroes from then on; the space is given back where that is possible */
    STORE_ZERO,  /* reads as zeroes from then on; the space is kept */
    /*
     * The checksums of a range are made anew from what is there now, for who knows that a crash may have left them
     * stale. Offset and length are of whole granules (STORE_GRANULE), or reach to the end. What only a snapshot has
     * is left alone. Stores that keep no checksums have nothing to do.
     */
    STORE_RESUM,
};

enum { STORE_GRANULE = 4096 }; /* what one checksum is of */

struct store_io {
    /* The caller's: */
    enum store_op op;
    bool fua; /* WRITE, UNMAP, ZERO: durable when done */
    bool
        unverified; /* READ: without a comparison with the checksums; else EBADMSG where they differ. WRITE, UNMAP,
                        ZERO of a part of a granule: the same for the rest of it */
    bool sums;       /* FLUSH: the checksums of all that was written before are durable too */
    uint64_t client; /* the initiator, for a store that must tell each of them; 0: none */
    uint64_t offset, length;
    uint64_t
        snapshot; /* READ: of this one; 0: as it is now. What lies beyond its end reads as zeroes */
    struct iovec *iov; /* READ, WRITE: length bytes in all; not changed, kept until done */
    unsigned iovs;
    /* WRITE: the buffer that each vector lies in, for a store that needs the bytes after done() and takes
     * references; NULL: it has to copy. */
    struct io_buf *const *bufs;
    void (*done)(struct store_io *io, int error); /* 0 or an errno value */

    /* The store's, from submit to done: */
    struct store *store;
    struct list_link link;
    uint64_t state[20];
};

/* What a range is, for GET LBA STATUS. */
enum store_extent { STORE_MAPPED, STORE_UNMAPPED };

struct store_snapshot {
    uint64_t id;
    uint64_t size; /* of the store, when it was taken */
    uint64_t used; /* bytes that would not be there without it, about */
};

/* Which store this is, and what its owner wrote on it last. */
struct store_mark {
    struct uuid id;
    uint64_t generation;
};

struct store_ops {
    const char *name;
    void (*submit)(struct store *s, struct store_io *io);
    /* To a larger size; durable when done. done may be called before it returns. */
    void (*grow)(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context);
    /*
     * Snapshots, by numbers above 0. With no I/O under way but flushes. All are durable when done, a snapshot with
     * everything before it; NULL: there are none here.
     *   snapshot       keeps what is there now.
     *   snapshot_drop  forgets one; 0 where there is none. The space comes back later.
     *   revert         makes everything as it was then; later snapshots are gone. The size stays: what lies beyond
     *                  the snapshot's reads as zeroes.
     *   snapshots      those that there are, oldest first; how many.
     */
    void (*snapshot)(struct store *s, uint64_t id, void (*done)(void *context, int error),
                     void *context);
    void (*snapshot_drop)(struct store *s, uint64_t id, void (*done)(void *context, int error),
                          void *context);
    void (*revert)(struct store *s, uint64_t id, void (*done)(void *context, int error),
                   void *context);
    unsigned (*snapshots)(struct store *s, struct store_snapshot *out, unsigned most);
    /* How far from offset on the range is of one kind; NULL: everything is mapped. */
    enum store_extent (*extent)(struct store *s, uint64_t offset, uint64_t *ret_length);
    /* Bytes that the data takes; NULL: its size. */
    uint64_t (*used)(struct store *s);
    /* Its identity, and a new generation, durable when done; NULL: it has none. */
    bool (*mark)(struct store *s, struct store_mark *ret_mark);
    void (*stamp)(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                  void *context);
    int (*inspect)(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                   void *context, struct err *e);
    /* An initiator has come, or is gone; NULL: it does not matter. */
    void (*client)(struct store *s, uint64_t client, bool gone);
    /* Ends what it does in the background; done() when that has ended. NULL: nothing. */
    void (*pause)(struct store *s, void (*done)(void *context), void *context);
    void (*close)(struct store *s); /* with no I/O under way */
};

struct store {
    const struct store_ops *ops;
    uint64_t size;       /* in bytes; grows only */
    uint32_t block_size; /* the unit of offsets and lengths: 512 or 4096 */
    bool read_only;      /* writes are answered EROFS */
    bool volatile_cache; /* writes may be lost in a crash until a FLUSH is done */
    bool checked;        /* reads are compared with checksums */
    bool sums_with_data; /* these are durable with the data, never later */
    uint32_t
        atomic; /* bytes: a write of so many is there whole or not at all, even after a crash */
};

void store_submit(struct store *s, struct store_io *io);
/* Bytes that the data takes; all of them where that is not known. */
uint64_t store_used(struct store *s);

/*
 * Opens a store by its name:
 *
 *     file:PATH[?direct=1]   a sparse file, made where there is none; direct: past the page cache
 *     mem:                   memory; gone when it is closed
 *     fault:RULES;NAME       another store, with faults; see fault.c
 *     volatile:NAME          another store, behind a cache that a kill empties; see volatile.c
 */
struct io_loop;

struct store_options {
    struct io_loop *loop;
    uint64_t size;       /* of a new one; one that exists grows to it; 0: as it is */
    uint32_t block_size; /* 512 or 4096 */
    bool read_only;
    /*
     * Checksums at rest and an identity, for replicas (sums.h). A file has them from when it is made; where there is none yet,
     * it is made with this identity and generation 0.
     *   existing  opens only what is there: nothing is made or extended, and size is not looked at.
     * A file that is missing, too short, damaged, older than the others or of another store is ERR_DATA_LOSS
     * "DamagedStore". Without `existing` a store is made where there is no data file.
     */
    bool sums, existing;
    struct uuid identity;
    uint32_t
        sums_cache; /* pages of checksums (4 MiB of data each) that are kept in memory; 0: 2048 */
};

struct store *store_open(const char *name, const struct store_options *o, struct err *e);
/*
 * What it does in the background, such as giving back the space of snapshots, comes to an end; it goes on when it is
 * opened again. To be called before store_close() by those who close it from the loop's callbacks.
 */
void store_pause(struct store *s, void (*done)(void *context), void *context);
/* With no I/O under way. */
void store_close(struct store *s);
void store_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                void *context);
void store_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                    void *context);
void store_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                         void *context);
void store_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                  void *context);
unsigned store_snapshots(struct store *s, struct store_snapshot *out, unsigned most);
/* An initiator has logged in, or has no session any more. */
void store_client(struct store *s, uint64_t client, bool gone);
/* False: it has no identity, as memory has none. */
bool store_mark(struct store *s, struct store_mark *ret_mark);
/* Makes a generation durable beside the identity; 0 at once where there is none. */
void store_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                 void *context);
/*
 * Whether the data is what the checksums are of: a file of data has nothing that says whose it is. Looks at up to 64
 * blocks of each file, and is ERR_DATA_LOSS "DamagedStore" where more than a quarter of them differ. stale() says
 * of a range that a crash may have left its checksums behind: those are not looked at. It waits for the disk; to be called
 * before the first I/O.
 */
int store_inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                  void *context, struct err *e);
/* Removes all files of a store that nobody has open, and those that are left of it; others than files have none. */
int store_remove(const char *name, struct err *e);

/*
 * Checksums at rest: a file beside each file of data, with one checksum for each granule (4 KiB). Private to the store.
 *
 *     PATH.sums, PATH.layerN.sums
 *
 *     0             4096          8192                 12288
 *     ├── header ───┼── header ───┼── page 0 ──────────┼── page 1 ────── ...
 *                                  1,024 checksums, of 4 MiB of data
 *
 *     header   magic, version, crc-32c, layer, sequence, identity, generation, size, revision, map
 *
 * Invariants:
 *   - A checksum is crc_32c(granule) ^ crc_32c(zeroes), so that of zeroes is 0: a hole in the data and a hole here agree.
 *     The last granule of a file counts as filled up with zeroes.
 *   - The header is written to the slots in turn, each synced, then to the other: the one that is whole and has the
 *     higher sequence counts, and one that rots is replaced by the other. It is durable before what it says is relied upon: size before the store is called larger, revision (of the manifest)
 *     before a change of snapshots is done, map (the version of the layer's map) when a flush with checksums is done.
 *     So a file that is missing, cut off, of another store or older than that is found when the store is opened.
 *   - Checksums on disk follow the data in no order, but for a flush that asks for them. After a crash those of what was being
 *     written may be stale; the owner knows where that is, and has them made anew (STORE_RESUM).
 *   - All of a cache, and the pages of its files, belong to the loop's thread. Headers are written by any thread,
 *     under the file's lock.
 *   - A page in memory is loading, or it is what counts. It is written as a whole: by a flush, from a copy, or when it is
 *     evicted; not both at once.
 */
#pragma once

#include <pthread.h>

#include "io/loop.h"
#include "store/impl.h"

enum {
    SUMS_PAGE = 4096,
    SUMS_PER_PAGE = SUMS_PAGE / 4,
    SUMS_START = 2 * SUMS_PAGE,
    SUMS_CACHE = 2048, /* pages, where nothing else is said */
};

struct sums_header {
    struct uuid identity;
    uint32_t layer;
    uint64_t sequence;
    uint64_t generation; /* the owner's; of the bottom */
    uint64_t size;       /* of the data file */
    uint64_t revision;   /* of the manifest; of the bottom */
    uint64_t map;        /* version of the layer's map */
};

struct sums_file {
    struct sums_cache *cache;
    char *path;
    int fd;
    pthread_mutex_t lock; /* of the header */
    struct sums_header header;
    struct sums_page *recent;
    struct list_link pages, dirty;
    bool unsynced; /* something was written since the last sync */
    int broken;    /* a page could not be written */
    /* A flush: */
    struct sums_copy *copies;
    size_t copies_n;
    struct io_request write;
    void (*flushed)(void *context, int error);
    void *context;
};

struct sums_page {
    struct sums_page *next; /* of its bucket */
    struct list_link clock, of_file, dirty_link, waiting;
    struct sums_file *file;
    uint64_t number;
    bool loading, used, writing;
    int error; /* of its loading */
    struct io_request read;
    struct iovec iov;
    uint32_t sums[SUMS_PER_PAGE]; /* little-endian */
};

struct sums_wait {
    struct list_link link;
    void (*ready)(struct sums_wait *wait);
};

/* Of a granule of which there are n bytes. */
uint32_t sums_of(const uint8_t *granule, size_t n);
/* The same from the crc-32c of its n bytes. */
uint32_t sums_from_crc(uint32_t crc, size_t n);

/* Headers and files: sums.c. Errors are negative errno values. */
void sums_header_encode(const struct sums_header *h, uint8_t out[SUMS_PAGE]);
/* Of two slots; -1: neither is one. */
int sums_header_choose(const uint8_t slots[SUMS_START], struct sums_header *ret_h);
int sums_make(const char *path, const struct sums_header *h); /* durable, but for its name */
struct sums_file *sums_open(struct sums_cache *cache, const char *path, bool read_only,
                            struct err *e);
void sums_close(struct sums_file *f); /* changed pages are written */
int sums_grow(struct sums_file *f, uint64_t size);
int sums_set_generation(struct sums_file *f, uint64_t generation);
int sums_set_revision(struct sums_file *f, uint64_t revision);
int sums_set_map(struct sums_file *f, uint64_t version);
struct sums_header sums_header(struct sums_file *f);
/* Checksums that were set so far are durable when done, which may be called before it returns. One at a time. */
void sums_flush(struct sums_file *f, void (*done)(void *context, int error), void *context);

/* Pages: sums_cache.c. */
struct sums_cache *sums_cache_new(struct io_loop *loop, uint32_t pages);
void sums_cache_free(struct sums_cache *c); /* with no file left */
/*
 * A page; it stays until the loop turns or another is asked for. NULL: *ret_error says why, or it is 0 and wait->ready
 * will be called: ask again then. wait NULL: it is only loaded.
 */
struct sums_page *sums_get(struct sums_file *f, uint64_t number, struct sums_wait *wait,
                           int *ret_error);
struct io_loop *sums_loop(const struct sums_file *f);
bool sums_cached(const struct sums_file *f, uint64_t number);
void sums_changed(struct sums_page *p);
/* Zeroes, for pages that are not cached. */
int sums_clear(struct sums_file *f, uint64_t number, uint64_t n);
int sums_write_page(struct sums_file *f, uint64_t number, const uint32_t *sums);
void sums_forget(struct sums_file *f); /* all of its pages, written if changed */

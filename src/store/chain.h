/*
 * A file with snapshots: a chain of sparse files. Private to chain*.c.
 *
 *     reads ──> head ──absent──> layer ──absent──> ... ──absent──> bottom: PATH, which has everything
 *                 ^                ^ snapshot 2          ^ snapshot 1
 *     writes ─────┘
 *
 *     PATH             the bottom; without snapshots the only file, and nothing is looked up
 *     PATH.layerN      what was written since the snapshot below it was taken
 *     PATH.layerN.map  which granules (4 KiB) that is, a bit each
 *     PATH.chain       which layers there are (manifest.h); none: only the bottom
 *     PATH.sums, PATH.layerN.sums   checksums of each file's granules, and whose they are, where they are kept (sums.h)
 *
 * A bit that is set means: look no further, this file says what is there, a hole says zeroes. So an unmap in the head
 * hides what lies below.
 *
 * Why a crash cannot hurt:
 *   - Bits of the head are set in memory when the data is written, and go to the map's file only after a sync of the
 *     data: a flush copies the pages of the map that changed, syncs the data, then writes the copies and syncs them.
 *     So a bit on disk always has its data on disk. Bits only rise, and each is true alone: a map of which some
 *     pages were written is a true map of an earlier moment. A page is there twice, so that one is whole (page.h).
 *   - What was written and not flushed is lost when its bit is: the granule reads as it was before. What the head's file
 *     has there means nothing, since a granule is always written whole before its bit is set (a write of a
 *     part first copies the granule up from below).
 *   - Every change of the chain is one replacement of the manifest. Files that it names are durable before; files that
 *     it no longer names go afterwards, or when the chain is opened again.
 *   - A layer is merged into the one below by copying. Who reads finds the granule in the upper one until the manifest
 *     leaves it out, so it does not matter how much of the copy is there, or how often it is begun.
 *
 * Checksums belong to a file's granules (checked.h). A copy carries them along as they are, with the data as it is, so
 * what has rotted in a layer is found wherever it goes. All that a manifest names has its checksums on disk: each change
 * of the chain begins with a flush of them. What is being copied down may have stale ones, where nobody looks.
 *
 * A merge of the head goes on under writes: each write to the head is followed by a copy of its granules down, and
 * flushes reach both files; when everything was copied, either is the head.
 *
 *     chain_open.c  its files                    chain.c         growing, dispatch
 *     chain_io.c  reads, writes, copies          chain_change.c  snapshot, revert, drop: one at a time
 *     chain_map.c  bits, and flushes             chain_merge.c   what runs in the background
 *     chain_mark.c  whose store it is
 */
#pragma once

#include "io/loop.h"
#include "store/checked.h"
#include "store/impl.h"
#include "store/manifest.h"
#include "store/page.h"

enum {
    GRANULE = STORE_GRANULE,
    MAP_SPAN = PAGE_ROOM * 8, /* granules that a page of a map tells of */
};

struct layer {
    uint32_t number;
    uint64_t snapshot; /* 0: none */
    uint64_t size;     /* of the snapshot */
    uint64_t merged;
    struct store *file;    /* with checksums, where the chain keeps them */
    int map_fd;            /* -1: the bottom, which has everything */
    struct uuid identity;  /* the store's */
    uint8_t *bits, *dirty; /* dirty: a byte for each page of the map */
    uint64_t *sequence;    /* of each page; 0: not on disk */
    uint64_t pages;
    struct page_header map;
    uint64_t map_sequence; /* of the header */
    bool map_stale;        /* it is to be written with the next flush */
};

struct chain;

/* An I/O under way in a chain, or a copy of the merge's. */
struct chain_op {
    struct chain *chain;
    struct list_link link; /* active, waiting, or free */
    struct store_io *of;   /* NULL: a copy */
    int step, error;
    bool exclusive;       /* of its granules: they are copied up or down */
    uint64_t first, last; /* granules that it changes */
    uint64_t at, end;     /* how far it is: of a read, of a copy */
    uint64_t up[2];       /* granules to be copied up before the write */
    unsigned ups;
    unsigned top;  /* a read's: the layer at which it begins */
    bool resuming; /* checksums are made anew, from this granule on: */
    uint64_t resum;
    struct sums_wait wait;
    uint32_t sums[IO_LARGE / STORE_GRANULE]; /* of what is being copied */
    struct store_io sub;
    bool submitting, ended;
    struct io_buf *buf;
    struct iovec one, *iov;
    unsigned iov_cap;
};

/* Something that changes the chain: waits for its turn, and for all I/O to be done. */
struct chain_change {
    struct list_link link;
    enum {
        CHANGE_SNAPSHOT,
        CHANGE_REVERT,
        CHANGE_DROP,
        CHANGE_GROW,   /* which only waits for the others */
        CHANGE_MERGED, /* from here on: the merge's own */
        CHANGE_MARK,
    } kind;
    struct chain *chain;
    uint64_t id; /* GROW: the size */
    void (*done)(void *context, int error);
    void *context;
    struct manifest next;
    uint32_t create;                  /* number of a head to be made; 0: none */
    uint32_t remove[MANIFEST_LAYERS]; /* numbers of layers that go */
    unsigned removes;
    struct store_io flush;
    struct io_request request;
};

/* A page of the map as it is to be on disk. */
struct chain_page {
    int fd;
    uint64_t index, sequence;
    uint8_t bytes[PAGE_SIZE];
};

struct chain {
    struct store store;
    struct io_loop *loop;
    char *path;
    struct layer *layers[MANIFEST_LAYERS];
    unsigned n;
    uint32_t next;
    uint64_t revision; /* of the manifest */
    struct uuid identity;
    struct sums_cache *cache; /* NULL: no checksums are kept */
    struct list_link stamps;  /* chain_mark.c */
    bool stamping;
    int broken; /* what is on disk is not known: nothing can be called durable any more */

    struct list_link active, waiting, held, free_ops;
    unsigned inflight, exclusives;

    /* chain_map.c */
    struct list_link flush_waiting, flush_served;
    struct store_io sync[2];
    struct layer *sync_layer[2];
    unsigned syncs;
    int sync_error;
    bool sync_sums;
    struct chain_page *staged;
    size_t staged_n, staged_cap;
    bool staged_new; /* the headers are to be durable too */
    struct io_request map_write;

    /* chain_change.c */
    struct list_link changes;
    struct chain_change *change; /* under way: I/O is held */

    /* chain_merge.c */
    struct {
        struct layer *lower, *upper; /* NULL: none */
        uint64_t from, at;           /* bytes: the run that is being copied; copied up to here */
        int64_t began;
        uint64_t since_mark;
        bool copying; /* a copy is under way, or a flush or change of the merge's */
        bool flushed; /* flushes reach the lower layer too */
        struct io_timer timer;
        struct store_io flush;
        struct chain_change change;
        uint64_t seen; /* clients' I/Os at the last chunk */
    } merge;
    uint64_t ios; /* of clients */
    void (*paused)(void *context);
    void *paused_context;
    bool direct, flushing;
    bool changing; /* the turn of `change` has come: nothing is under way */
    bool closing;  /* the merge begins nothing any more */
};

static inline struct chain *chain_of(struct store *s)
{
    return container_of(s, struct chain, store);
}

static inline struct layer *chain_head(const struct chain *c)
{
    return c->layers[c->n - 1];
}

/* The head is being merged: what is written is copied down at once. */
static inline bool chain_mirrors(const struct chain *c)
{
    return c->merge.upper && c->merge.upper == chain_head(c);
}

/* Offsets beyond a layer's own end are absent. */
static inline bool layer_has(const struct layer *l, uint64_t granule)
{
    return l->map_fd < 0 ||
           (granule < l->pages * MAP_SPAN && l->bits[granule / 8] >> granule % 8 & 1);
}

/* chain_open.c */
struct layer *chain_layer_open(const struct chain *c, const struct manifest_layer *m, uint64_t size,
                               bool existing, struct err *e);
void chain_layer_close(struct layer *l);
int chain_open_layers(struct chain *c, const struct store_options *o, struct err *e);
int chain_remove(const char *path, struct err *e); /* all of its files */
char *chain_layer_path(const char *path, uint32_t number, const char *suffix);
/* chain.c */
int chain_grow_now(struct chain *c, uint64_t size);
struct layer *chain_find(const struct chain *c, uint64_t snapshot, unsigned *ret_index);

/* chain_io.c */
void chain_submit(struct chain *c, struct store_io *io);
/* The layer that has what is at offset, from `top` downwards, and how far that is so. */
unsigned chain_run(const struct chain *c, unsigned top, uint64_t offset, uint64_t end,
                   uint64_t *ret_length);
/* Copies a range from the upper layer of the merge to the lower one. */
void chain_copy(struct chain *c, uint64_t from, uint64_t to);
void chain_release(struct chain *c); /* what was held goes on */

/* chain_map.c */
int layer_map_resize(struct layer *l, uint64_t size);
int layer_map_load(struct layer *l, const struct uuid *identity, const char *path, struct err *e);
int layer_map_make(int fd, const struct uuid *identity, uint32_t number); /* 0 or -errno */
void layer_map_set(struct layer *l, uint64_t first, uint64_t last);
void chain_flush(struct chain *c, struct store_io *io);

/* chain_change.c */
void chain_change_add(struct chain *c, struct chain_change *change);
void chain_change_go(struct chain *c); /* something ended: perhaps it can begin now */
void chain_change_ask(struct store *s, int kind, uint64_t id,
                      void (*done)(void *context, int error), void *context);
void chain_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                    void *context);
void chain_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                         void *context);
void chain_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                  void *context);
unsigned chain_snapshots(struct store *s, struct store_snapshot *out, unsigned most);

/* chain_mark.c */
bool chain_mark(struct store *s, struct store_mark *ret_mark);
void chain_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                 void *context);
int chain_inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                  void *context, struct err *e);

/* chain_merge.c */
void chain_merge_init(struct chain *c);
void chain_merge_kick(struct chain *c);
void chain_merge_copied(struct chain *c, int error);
void chain_merge_check(struct chain *c); /* the chain has changed */
void chain_merge_pause(struct store *s, void (*done)(void *context), void *context);

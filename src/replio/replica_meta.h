/*
 * Where a replica's metadata lies: a file of its folder, or a store. The core writes it (repl/replica.h); what is
 * written in a call is copied.
 *
 *     write ──┐
 *     write ──┼── sync: all writes before it are durable
 *     log_write: durable when it is done, beside all others
 *
 * Writes that overlap are done in the order of their calls.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

struct replio_replica;
struct replica_meta;

struct replica_meta_ops {
    /* While the replica is loaded. What is not there reads as zeros, what cannot be read as damage. */
    void (*read)(struct replica_meta *m, uint64_t offset, void *data, size_t size);
    void (*write)(struct replica_meta *m, uint64_t offset, const void *data, size_t size);
    int (*sync)(struct replica_meta *m);
    int (*log_write)(struct replica_meta *m, uint64_t offset, const void *data, size_t size);
    /* Nothing is read any more. */
    void (*loaded)(struct replica_meta *m);
    void (*close)(struct replica_meta *m); /* with nothing under way */
};

struct replica_meta {
    const struct replica_meta_ops *ops;
    struct replio_replica *replica;
    int error; /* it is of no use any more */
    unsigned under_way;
    bool synced, logged; /* ended, and the core is to be told with the next turn */
};

/* replica_meta_file.c: DIR/meta, locked. */
struct replica_meta *replica_meta_file(struct replio_replica *r, const char *dir, struct err *e);
/* replica_meta_store.c: the store stays the caller's, and the image until loaded(). */
struct replica_meta *replica_meta_store(struct replio_replica *r, struct store *store,
                                        const void *image, size_t image_size);

/* The ends of a sync and of a log_write, which may come before those return; error: 0 or an errno value. */
void replica_meta_synced(struct replica_meta *m, int error);
void replica_meta_logged(struct replica_meta *m, int error);
/* Tells the core what has ended. */
void replica_meta_tell(struct replica_meta *m);

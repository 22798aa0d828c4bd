/*
 * What the files of a replica share: replica.c has its life and its connection, replica_store.c requests to its
 * store, replica_meta*.c its metadata, replica_open.c what is found in its folder, or in stores.
 */
#pragma once

#include "repl/meta.h"
#include "replio/conn.h"
#include "replio/replica.h"
#include "replio/replica_meta.h"
#include "store/store.h"

struct job;

struct replio_replica {
    struct io_loop *loop;
    struct repl_replica *core;
    struct store *store;
    struct uuid id;
    struct job *free_jobs;

    struct replica_meta *meta; /* owned */
    unsigned under_way;        /* jobs */
    int store_error;           /* of a request that changes the store; of this turn */
    int flush_error;           /* the store is of no use any more */
    bool lent;                 /* the stores are the caller's */
    struct store *meta_store;  /* of one that has lent ones */
    unsigned pausing;          /* stores */

    char damage[sizeof(((struct err *)0)->msg)]; /* why its data could not be used; "" */
    char set_aside[4096];                        /* where that is now; "" */

    struct replio_payloads payloads;
    const struct replio_key *key;
    char *target, *source;
    uint16_t port;
    struct replio_conn conn;
    bool connected, spoken, gone; /* gone: nothing of the connection is in use */
    int64_t heard;
    char last_end[200];
    int64_t dial_after;
    int64_t ill_at,
        ill_after; /* when the store last ended a connection, and how long it then waits */
    void (*failed)(void *context, const char *why);
    void (*released)(void *context);
    void *owner;
    struct io_timer dial, wake, silence;
    struct io_deferred turn;

    bool stopping, quiet, freed; /* quiet: the store does nothing by itself any more */
    void (*done)(void *context);
    void *context;
};

static inline void turn_soon(struct replio_replica *r)
{
    io_loop_defer(r->loop, &r->turn);
}

/* replica_store.c: actions of the core, and the end. */
int replica_store(void *context, struct repl_req *req);
void replica_meta_write(void *context, uint64_t offset, const void *data, size_t size);
int replica_meta_sync(void *context);
int replica_log_write(void *context, uint64_t offset, const void *data, size_t size);
void replica_free_jobs(struct replio_replica *r);

/* replica_open.c: id, store, metadata and core; what was opened is closed by who frees the replica. */
int replica_open_all(struct replio_replica *r, const struct replio_replica_options *o,
                     const struct repl_replica_ops *ops, struct err *e);

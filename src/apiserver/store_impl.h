/*
 * What the files of the store share.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "apiserver/store.h"
#include "base/map.h"

enum { HISTORY = 20000 };

/* The current objects of one collection, sorted by key. */
struct collection {
    char *name;
    VEC(struct apiserver_object *) objects;
};

struct write_op; /* a writer that waits, store_commit.c */

struct apiserver_store {
    sqlite3 *db;
    int lock_fd; /* held locked while the store is open */
    struct {
        sqlite3_stmt *put, *drop, *log, *prune;
    } sql; /* used by the leader only */

    /* Memory; readers share the lock, the leader takes it alone for the moment of publishing. */
    pthread_rwlock_t memory;
    struct map collections; /* name -> struct collection */
    uint64_t revision;
    struct apiserver_event *history; /* a ring, oldest at `first` */
    size_t capacity, first, count;
    uint64_t pruned; /* changes up to this revision are gone from disk */

    /* The queue of writers. */
    pthread_mutex_t queue;
    pthread_cond_t turn;
    struct write_op *waiting, **waiting_end;
    bool leading; /* somebody is committing */
    void (*on_change)(void *, uint64_t);
    void *on_change_context;
    void (*on_commit)(void *, size_t, int64_t, const struct err *);
    void *on_commit_context;
};

/* store.c */

/* One process has a store: a locked descriptor, or -1. The lock goes with the process. */
int store_lock(const char *path, struct err *e);
int store_sql_error(const struct apiserver_store *s, const char *what, struct err *e);
/* store_memory.c: all with the lock held, for writing where something changes. */
struct collection *store_collection(struct apiserver_store *s, const char *name, bool create);
/* Where the key is, or would be; true when it is there. */
bool store_find(const struct collection *c, const char *key, size_t *ret_at);
/* Makes a change visible; takes over the reference to the event's object. */
void store_publish(struct apiserver_store *s, enum apiserver_change change,
                   struct apiserver_object *object);
/* The same for a change that is only history: at start, oldest first. */
void store_remember(struct apiserver_store *s, struct apiserver_event event);
void store_memory_done(struct apiserver_store *s);

/*
 * What the files of the store share.
 */
#pragma once

#include <pthread.h>
#include <sqlite3.h>

#include "base/map.h"
#include "k8s/apiserver/store.h"

enum { HISTORY = 20000, HISTORY_BYTES = 16 << 20 };

/* The current objects of one collection, sorted by key. */
struct collection {
    char *name;
    VEC(struct apiserver_object *) objects;
    _Atomic uint64_t last_change; /* a revision; 0: none since the store was opened */
};

struct apiserver_keys;
struct str;
struct write_op;   /* a change that is waiting, store_commit.c */
struct write_wait; /* a writer that waits for a key */
struct
    store_journal; /* store_commit.c: from the start on changes can be written; the stop waits for all of them. */
int store_commit_start(struct apiserver_store *s, struct err *e);
void store_commit_stop(struct apiserver_store *s);

/* store_journal.c */

struct apiserver_store {
    sqlite3 *db;
    int lock_fd; /* held locked while the store is open */
    struct {
        sqlite3_stmt *begin, *commit, *log, *forget, *horizon;
    } sql; /* used by the committer only */
    struct store_journal *journal;

    /* Memory; readers share the lock, the committer takes it alone for the moment of publishing. */
    pthread_rwlock_t memory;
    struct map collections; /* name -> struct collection */
    uint64_t revision;
    struct apiserver_event *history; /* a ring, oldest at `first` */
    size_t capacity, first, count;
    size_t bytes, most_bytes; /* of objects that only the history has */
    VEC(uint64_t) obsolete;   /* rows on disk that nothing needs any more; the committer's */

    /* Encryption; without keys there is none. */
    struct apiserver_keys *keys;
    char *key_file;
    const char *const *sealed; /* collections */
    bool stale;                /* something is not sealed with the first key */

    pthread_mutex_t database; /* the connection; innermost but for memory */

    /* The queue of writers, store_commit.c. */
    pthread_mutex_t queue;
    pthread_cond_t work; /* for the committer, which is idle */
    pthread_t committer;
    bool started, idle, stopping;
    struct write_op *waiting, **waiting_end;
    struct write_wait *blocked; /* writers that wait until a key is free */
    struct map pending;         /* "collection key" -> the change of it that is under way */
    uint64_t assigned;          /* the last revision that was given out */
    void (*on_change)(void *, struct apiserver_object *const *objects, size_t n);
    void *on_change_context;
    void (*on_commit)(void *, size_t, int64_t, const struct err *);
    void *on_commit_context;
};

/* store.c */

/* One process has a store: a locked descriptor, or -1. The lock goes with the process. */
int store_lock(const char *path, struct err *e);
int store_sql_error(const struct apiserver_store *s, const char *what, struct err *e);
/* One allocation: the object, its key and its bytes, which the caller fills in. */
struct apiserver_object *store_object_alloc(const char *collection, const char *key,
                                            uint64_t revision, size_t size, char **ret_bytes);

/* store_journal.c */

int store_journal_start(struct apiserver_store *s, struct err *e);
void store_journal_stop(struct apiserver_store *s);

/* store_load.c: everything that is on disk into memory. */
int store_load(struct apiserver_store *s, struct err *e);

/* store_memory.c: all with the lock held, for writing where something changes. */

struct collection *store_collection(struct apiserver_store *s, const char *name, bool create);
/* Where the key is, or would be; true when it is there. */
bool store_find(const struct collection *c, const char *key, size_t *ret_at);
/* Makes a change visible; takes over the reference to the event's object. */
void store_publish(struct apiserver_store *s, enum apiserver_change change,
                   struct apiserver_object *object);
/* The same for a change that is only history: at start, oldest first. */
void store_remember(struct apiserver_store *s, struct apiserver_event event);
/* The revision behind which the history has every change. */
uint64_t store_horizon(const struct apiserver_store *s);
void store_memory_done(struct apiserver_store *s);

/* store_seal.c */

struct store_bytes {
    const void *p;
    size_t size;
};

/* Reads the keys, before anything is loaded. */
int store_seal_load(struct apiserver_store *s, const struct apiserver_store_options *options,
                    struct err *e);
/* Makes a key if there is none, and seals anew what must be; when everything is loaded. */
int store_seal_begin(struct apiserver_store *s, struct err *e);
void store_seal_done(struct apiserver_store *s);
/* The bytes of an object as they are kept on disk: its own, or sealed in the buffer. */
int store_seal(struct apiserver_store *s, const struct apiserver_object *o, struct str *buffer,
               struct store_bytes *ret_bytes, struct err *e);
size_t store_plain_size(struct store_bytes stored);
/* The other way: store_plain_size() bytes. */
int store_unseal(struct apiserver_store *s, const char *collection, const char *key,
                 uint64_t revision, struct store_bytes stored, char *out, struct err *e);

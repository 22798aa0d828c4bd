/*
 * The store of API objects: every current object in memory as encoded bytes, every change durable
 * in SQLite before anybody hears of it.
 *
 *     writers ──queue──> one transaction, one sync ──> memory ──> readers, watchers
 *
 * Invariants:
 *
 *  1. Revisions count changes: each change has a revision of its own, one more than the change
 *     before it, also after a crash. An object's revision is that of its last change.
 *  2. Acknowledged means durable: apiserver_store_write() returns 0 only after the transaction that
 *     holds the change is on disk. A change that failed, for whatever reason, left no trace and its
 *     revision is used again.
 *  3. Nothing is visible before it is durable: readers and watchers see a change only after 2, and
 *     in the order of revisions.
 *  4. Reads never wait for the disk, and bytes are never encoded again: an object is immutable and
 *     reference counted, a list is a list of references.
 *  5. History: the last changes are kept, in memory and on disk, up to a number and a size, so that a watcher can go on where
 *     it stopped, and a list be continued as of its first page, also after a restart. What is older
 *     has expired.
 *
 * Writers that come while a transaction is under way wait together and go into the next one, so the
 * cost of an fsync is shared (group commit).
 *
 * An object's bytes contain its revision, which nobody knows before it is committed. The writer
 * hands them over in two parts and the store puts the digits in between.
 *
 * Collections are named by the caller ("apps/deployments"), keys within them are
 * "namespace/name", or "name" for kinds of the whole cluster. Thread-safe throughout.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

struct apiserver_store;

struct apiserver_object {
    uint64_t revision;
    const char *collection; /* lives as long as the store */
    const char *key;
    const char *bytes; /* JSON, terminated */
    size_t size;
    unsigned refs; /* atomic */
};

/* An object of its own, as a dry run answers: bytes are head, the revision's digits, tail. */
struct apiserver_object *apiserver_object_new(const char *collection, const char *key,
                                              uint64_t revision, const char *head, size_t head_size,
                                              const char *tail, size_t tail_size);
struct apiserver_object *apiserver_object_ref(struct apiserver_object *o);
void apiserver_object_unref(struct apiserver_object *o); /* NULL is fine */
DEFINE_CLEANUP(struct apiserver_object *, apiserver_object_unref)

struct apiserver_store_options {
    size_t history;       /* how many changes to keep; 0: a sensible number */
    size_t history_bytes; /* of objects that are no longer current; 0: a sensible number */
    /*
     * Encryption at rest (seal.h): of the collections in `sealed`, which ends with NULL and lives as
     * long as the store, with the keys in this file, which is made if it is not there. NULL: none.
     */
    const char *key_file;
    const char *const *sealed;
};

/*
 * Opens or creates the store at path. DATA_LOSS when the file is damaged, with what to do;
 * FAILED_PRECONDITION when another process has it open, or when a key is missing with which
 * something in it is encrypted.
 */
int apiserver_store_open(const char *path, const struct apiserver_store_options *options,
                         struct apiserver_store **ret_store, struct err *e);
/* No call may be under way. */
void apiserver_store_close(struct apiserver_store *s);
DEFINE_CLEANUP(struct apiserver_store *, apiserver_store_close)

/* The revision of the last change. */
uint64_t apiserver_store_revision(struct apiserver_store *s);
/*
 * The revision at which a collection changed last since the store was opened, or 0: to see without a
 * lock whether what was made of its objects is still good. It lives as long as the store and is set
 * when a change became visible, before its writer knows. Not to be called while somebody writes.
 */
const _Atomic uint64_t *apiserver_store_last_change(struct apiserver_store *s,
                                                    const char *collection);

enum apiserver_change { APISERVER_CREATED, APISERVER_UPDATED, APISERVER_DELETED };

struct apiserver_write {
    enum apiserver_change change;
    const char *collection, *key;
    /* For an update or deletion: the revision it must still have; 0: any. */
    uint64_t expected;
    /*
     * The bytes: head, the revision's digits, tail. Of a deletion: the object's last state, which
     * watchers get; its revision is that of the deletion.
     */
    const char *head, *tail;
    size_t head_size, tail_size;
};

/*
 * Makes one change, durably. ALREADY_EXISTS, NOT_FOUND, ABORTED ("Conflict": somebody was faster),
 * RESOURCE_EXHAUSTED ("NoSpace") or UNAVAILABLE when the disk cannot take it now; nothing has
 * changed then. *ret_object, if given, is a new reference to what was stored, or deleted.
 */
int apiserver_store_write(struct apiserver_store *s, const struct apiserver_write *w,
                          struct apiserver_object **ret_object, struct err *e);

/*
 * For the first objects of a store, which are many and can be made again: from relax to settle a
 * change that is acknowledged may still be lost with the machine. After settle all of them are
 * durable. Nobody else may write meanwhile, or know of what is written.
 */
int apiserver_store_relax(struct apiserver_store *s, struct err *e);
int apiserver_store_settle(struct apiserver_store *s, struct err *e);
/* The object, a new reference; NULL when there is none. */
struct apiserver_object *apiserver_store_get(struct apiserver_store *s, const char *collection,
                                             const char *key);

struct apiserver_list {
    VEC(struct apiserver_object *) objects; /* references, in the order of keys */
    uint64_t revision;                      /* as of which the list is complete */
    bool more;                              /* there are objects after the last */
    size_t remaining;                       /* how many */
};

struct apiserver_list_options {
    const char *prefix; /* only keys that start with it; NULL: all */
    const char *after;  /* only keys behind it; NULL: from the start */
    uint64_t revision;  /* as it was then; 0: as it is now */
    size_t limit;       /* at most that many; 0: all */
};

/* OUT_OF_RANGE ("Expired") when the revision is older than the history. */
int apiserver_store_list(struct apiserver_store *s, const char *collection,
                         const struct apiserver_list_options *options,
                         struct apiserver_list *ret_list, struct err *e);
void apiserver_list_done(struct apiserver_list *l);

struct apiserver_event {
    enum apiserver_change change;
    struct apiserver_object *object;   /* as it is now, or was last */
    struct apiserver_object *previous; /* before the change; NULL: created, or no longer known */
};

struct apiserver_events {
    VEC(struct apiserver_event) events; /* with references, in the order of revisions */
    uint64_t revision;                  /* everything up to here is in it */
};

/*
 * The changes of a collection, or with NULL of all, after a revision, at most `limit` (0: all). OUT_OF_RANGE ("Expired")
 * when the history does not reach back that far.
 */
int apiserver_store_events(struct apiserver_store *s, const char *collection, uint64_t after,
                           size_t limit, struct apiserver_events *ret_events, struct err *e);
void apiserver_events_done(struct apiserver_events *l);

/*
 * Calls fn after changes became visible, with what they made, in the order of revisions. It is
 * called on one thread; it must be quick and must not call the store.
 */
void apiserver_store_on_change(struct apiserver_store *s,
                               void (*fn)(void *, struct apiserver_object *const *objects,
                                          size_t n),
                               void *context);

/*
 * Calls fn after each transaction with the changes in it and how long it took; `error` is NULL when
 * it is on disk. By the writer that led, like the one above. Set before the first write.
 */
void apiserver_store_on_commit(struct apiserver_store *s,
                               void (*fn)(void *, size_t changes, int64_t ns,
                                          const struct err *error),
                               void *context);

struct apiserver_collection_count {
    const char *name; /* lives as long as the store */
    size_t objects;
};

struct apiserver_store_counts {
    VEC(struct apiserver_collection_count) collections;
    uint64_t revision;
};

/* How much there is; vec_done(&ret_counts->collections) is due. */
void apiserver_store_count(struct apiserver_store *s, struct apiserver_store_counts *ret_counts);
/*
 * Whether the disk takes writes now, by making one that means nothing. UNAVAILABLE ("ReadOnly") or
 * RESOURCE_EXHAUSTED ("NoSpace"), as a write would say.
 */
int apiserver_store_probe(struct apiserver_store *s, struct err *e);

/*
 * A copy of the store as of now, made while it is in use; replaces the file at path whole. What is
 * encrypted stays so.
 */
int apiserver_store_backup(struct apiserver_store *s, const char *path, struct err *e);
/*
 * How far a backup is, in pages; may be NULL. false gives up.
 */
typedef bool apiserver_store_progress(void *context, int done, int total);
/* The same with progress: CANCELLED when it says so. */
int apiserver_store_copy(struct apiserver_store *s, const char *path, apiserver_store_progress *fn,
                         void *context, struct err *e);

/* After a restore revisions go on at least so far beyond all that anybody can have seen. */
#define APISERVER_RESTORE_STEP ((uint64_t)1000000000)

/*
 * Puts a backup in place of a store that nobody has open, after checking that it is sound and can be
 * opened with these options, which are those of the store. What was there is kept beside it; *ret_aside, if given and there was one, is its path, to be freed.
 *
 * Clients that knew the store remember revisions, perhaps higher ones than the backup's. So that
 * none of them waits for changes that will never come, or takes an old revision for a new one, the
 * restored store goes on at the higher of both stores' revisions and a step beyond; its history is
 * empty, so that every watch from before is told to list again.
 */
int apiserver_store_restore(const char *backup, const char *path,
                            const struct apiserver_store_options *options, char **ret_aside,
                            struct err *e);

/*
 * A shared informer: a cache that follows a collection, and tells of every change.
 *
 *     list in pages --> replace ----> cache ---> handlers, in order, on the informer's thread
 *     watch ---------> one change ---'   '----> lookups, from any thread
 *       '-- resumes at the last version seen; lists again when told that this is too old
 *
 * Invariants:
 * - What the cache holds of an object never goes back in time, and after any disturbance it comes to
 *   equal the server's. A list that was cut off, a watch that broke in the middle of an object, JSON
 *   that is none, an object of another kind: nothing of it gets in.
 * - A handler sees for each object a chain: appeared (old NULL), changed, gone (new NULL), even over
 *   a new list; it may miss intermediate states and never an end state.
 * - Memory is bounded by the collection: pages of lists, and one event of a watch, up to a limit.
 * - A watch that is silent for longer than bookmarks would allow is taken for dead, and begun again.
 */
#pragma once

#include "kube/client.h"
#include "kube/object.h"

struct kube_informer;
struct kube_index_values;

struct kube_index {
    const char *name;
    /* Says under which values the object is found: kube_index_add() for each. */
    void (*values)(const json_t *object, struct kube_index_values *out);
};
void kube_index_add(struct kube_index_values *out, const char *value);

struct kube_informer_options {
    struct kube_client *client;
    struct kube_resource resource;
    const char *ns;              /* NULL: all */
    const char *labels, *fields; /* selectors; NULL */
    const struct kube_index
        *indexes;              /* ends with one without a name; NULL: none. Must outlive it. */
    unsigned page;             /* 0: 500 */
    int64_t stall_ns;          /* silence that is too long; 0: 3 minutes */
    int64_t backoff_max_ns;    /* the longest delay between attempts; 0: 30 s */
    const struct clock *clock; /* NULL: the client's */
    struct metrics *metrics;
};

/* On the informer's thread: quickly, and without calls to the server. */
struct kube_handler {
    void (*changed)(void *context, const struct kube_object *old, const struct kube_object *now);
    void *context;
};

struct kube_informer *kube_informer_new(const struct kube_informer_options *o, struct err *e);
/* Before the start. */
void kube_informer_add_handler(struct kube_informer *i, struct kube_handler h);
int kube_informer_add_index(struct kube_informer *i, const struct kube_index *index);
int kube_informer_start(struct kube_informer *i, struct err *e);
/* Ends its thread. The cache can still be read. */
void kube_informer_stop(struct kube_informer *i);
void kube_informer_free(struct kube_informer *i); /* stopped */
DEFINE_CLEANUP(struct kube_informer *, kube_informer_free)

/* Whether a first list is all in the cache and was told to the handlers. */
bool kube_informer_synced(const struct kube_informer *i);
/* Whether the server was seen to have the kind. */
bool kube_informer_served(const struct kube_informer *i);
/* Waits for that; DEADLINE_EXCEEDED with what was wrong last, or CANCELLED. */
int kube_informer_wait(struct kube_informer *i, int64_t timeout_ns, struct err *e);

/* A reference, or NULL. */
struct kube_object *kube_informer_get(struct kube_informer *i, const char *ns, const char *name);
struct kube_object *kube_informer_get_key(struct kube_informer *i, const char *key);
/* All; ns not NULL: those in it. Appends references. */
void kube_informer_list(struct kube_informer *i, const char *ns, struct kube_objects *ret_list);
void kube_informer_find(struct kube_informer *i, const char *index, const char *value,
                        struct kube_objects *ret_list);
/* The tree of one, or NULL with NOT_FOUND. */
json_t *kube_informer_json(struct kube_informer *i, const char *ns, const char *name,
                           struct err *e);

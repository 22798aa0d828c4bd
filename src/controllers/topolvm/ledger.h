/*
 * What was promised of the nodes' room, by whoever promises it: one lock, one arithmetic.
 *
 *     room(node, class) = free as the node says  - pending of its volumes in the cache
 *                                                - pending of what was written and is not yet there
 *
 * Invariants:
 * - A promise is a LogicalVolume in the API, nothing else: a process that starts knows all of them.
 * - Under the lock, what was written a moment ago counts, though the cache lags behind: it is kept in
 *   mind until the cache has it too.
 * - The cache of volumes is read before the node is asked (live). What a node says of its room may be
 *   from before it made a volume; so of a class that is not thin, no more is promised than its volume
 *   group has in all, less all volumes in it. Counted twice a volume may be, for a moment: a claim waits
 *   then, and is looked at again with the next change.
 * - The last word is the node's: what it refuses is not promised again until it says other figures.
 */
#pragma once

#include <pthread.h>

#include "controllers/topolvm/capacity.h"
#include "kube/groups.h"

struct topolvm_ledger {
    const struct clock *clock;
    struct kube_client *client;
    struct kube_resource nodes_r;
    struct kube_informer *nodes;
    struct kube_groups lvs; /* indexes: node, pending (node), name, id */
    pthread_mutex_t lock;
    json_t *
        refused; /* "NODE/CLASS" -> {free, size, version}: what a node refused though it said it was free */
    json_t
        *recent; /* name of a LogicalVolume -> {lv, before, until}: written, not yet in the cache */
};

/* The manager's: it frees it. */
struct topolvm_ledger *topolvm_ledger_new(struct kube_manager *m);

/* Around: ask for room, write the LogicalVolume, note what was written. */
void topolvm_ledger_lock(struct topolvm_ledger *l);
void topolvm_ledger_unlock(struct topolvm_ledger *l);
/*
 * How much can yet be promised of a class; false when the node has no such class. `node` is what the
 * cache says of it, or NULL: the server is asked (an error is "no such class").
 */
bool topolvm_ledger_room(struct topolvm_ledger *l, const char *name, const json_t *node,
                         const char *class, int64_t *ret_bytes);
/* The same with less work, from the cache: for an order among nodes. May be below 0, or too much. */
bool topolvm_ledger_estimate(struct topolvm_ledger *l, const json_t *node, const char *class,
                             int64_t *ret_bytes);
/* `before`: the resourceVersion that was changed, "" for what is new. */
void topolvm_ledger_wrote(struct topolvm_ledger *l, const json_t *lv, const char *before);
/* The node had no room for it, whatever it said: so much is not promised again until it says other. */
void topolvm_ledger_refused(struct topolvm_ledger *l, const struct logical_volume *lv);
/* How much the volumes of a node will yet take, for a metric: from the cache, without the lock. */
int64_t topolvm_ledger_pending(struct topolvm_ledger *l, const json_t *node, const char *class);

/* The LogicalVolume of a PersistentVolume, from the cache: by its handle, else by its name; NULL. */
json_t *topolvm_ledger_volume(struct topolvm_ledger *l, const json_t *pv);
/* Puts the annotation that asks the node to try into the metadata of a patch. */
void topolvm_ledger_stamp(struct topolvm_ledger *l, const json_t *lv, json_t *metadata);
/* Asks the node to try again what failed, at most every half minute; *ret_again_ns: when, if not now. */
int topolvm_ledger_retry(struct topolvm_ledger *l, const json_t *lv, int64_t *ret_again_ns,
                         struct err *e);

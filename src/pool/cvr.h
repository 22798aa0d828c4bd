/*
 * The CStorVolumeReplicas of the pool: objects become wishes (replicas.h), views become their status.
 *
 *     CStorVolumeReplica ──> judge ──> status ──> wish ──> replicas
 *     Secret VOLUME-key  ──>   ^                              │
 *                              └──────────── view ────────────┘
 *
 * What is wanted of a replica follows from its object alone:
 *
 *     deleting                        its data set goes, then the finalizer
 *     status.zvolGuid is not there    a data set is made, and its GUID written into the status
 *     status.zvolGuid is there        that data set is opened, and no other
 *
 * Invariants:
 *   - The GUIDs of the data set and of its pool are in the object before the replica has anything in it.
 *   - A data set that is missing is made anew only when the status forgets its GUID, with the phase Recreate: because
 *     the pool is another one than the status remembers, or because somebody asked for it (API_CVR_RECREATE). The
 *     target takes it for a new replica, since its identity has the GUID in it.
 *   - A finalizer is taken off only when nothing of the data set is left.
 *   - A key is in memory only, while its object is there; no log, event or status has it.
 *   - The status is written before what follows from it is wished for: each write can be the last before kill -9.
 */
#pragma once

#include "kinds/cvr.h"
#include "pool/impl.h"
#include "pool/replicas.h"

/* cvr_judge.c: what is so, in the words of the status. */

enum { POOL_CVR_MESSAGE = 600 };

struct pool_cvr_facts {
    struct volume_replica object;
    bool deleting;
    bool destroying;     /* the wish that the view answers says so, too */
    const char *request; /* API_CVR_RECREATE; "" */
    const struct err *
        wrong; /* with the object: INVALID_ARGUMENT can never be, else something is missing; code 0 */
    const struct err *pool;               /* why the pool is not open; code 0: it is */
    const struct err *key;                /* why the key could not be had; code 0 */
    const struct pool_replica_view *view; /* of the wish before; zeros: there was none */
};

struct pool_cvr_verdict {
    const char *phase; /* a literal, or the object's */
    char message[POOL_CVR_MESSAGE];
    uint64_t zvol_guid, pool_guid; /* that the status remembers; 0: none */
    const char *recreate;          /* the request that was answered last; "" */
    bool gone;                     /* nothing is left: the object may go */
    const char *reason;            /* of an event about this; NULL: none */
    bool warning;
};
void pool_cvr_judge(const struct pool_cvr_facts *f, struct pool_cvr_verdict *ret);
/* What is wanted, by the object as it is stored. */
enum pool_replica_want pool_cvr_want(const struct volume_replica *object, bool deleting);

/* cvr_status.c: the status as it should be; borrowed parts of the old one stay. A new reference. */
json_t *pool_cvr_status(const struct volume_replica *object, const struct pool_cvr_verdict *v,
                        const struct pool_replica_view *view, const struct clock *clock);
/* Whether they differ in more than numbers, or in more than numbers and the message. */
enum pool_cvr_difference { POOL_CVR_SAME, POOL_CVR_NUMBERS, POOL_CVR_WORDS, POOL_CVR_STATE };
enum pool_cvr_difference pool_cvr_compare(const json_t *was, const json_t *is);

/* cvrs.c */
struct pool_cvrs;
/* After the engine's start. */
struct pool_cvrs *pool_cvrs_setup(struct kube_manager *m, const struct pool_options *o,
                                  struct kube_recorder *recorder, struct pool_engine *engine,
                                  struct err *e);
/* The pool is open, or is not any more: look at all of them. */
void pool_cvrs_look(struct pool_cvrs *c);
/* Objects that name the pool, and those of them that are Healthy. */
void pool_cvrs_count(struct pool_cvrs *c, unsigned *ret_all, unsigned *ret_healthy);
/* Calls the pool's own controller when one of them changes. */
void pool_cvrs_watch(struct pool_cvrs *c, struct kube_controller *of, struct kube_source source);
/* While the pool is another process's: nothing is wished for, and nothing said. */
void pool_cvrs_rest(struct pool_cvrs *c, bool rests);

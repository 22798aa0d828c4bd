/*
 * The replicas' reconciler: what its parts share.
 */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "kube/event.h"
#include "kube/groups.h"
#include "pool/cvr.h"

/* What this process knows of one object beside the object. Nothing of it matters after a restart. */
struct pool_cvr {
    char *uid;
    char *zvol; /* of its data */
    /* The key, and which Secret it is from; none: `key.len` is 0. */
    struct str key;
    char *secret_uid, *secret_version;
    int64_t key_again; /* monotonic: when it may be read again */
    int64_t key_delay;
    bool wished;                 /* there was a wish */
    enum pool_replica_want want; /* which said that */
    bool listed;              /* it was looked whether the data set is there, before one is made */
    bool was_there;           /* it was */
    bool seen;                /* the data set that the object remembers was seen to be there */
    uint64_t damaged, mended; /* as last told */
    int64_t written_at;       /* monotonic; 0: never */
    const char *reason;       /* of the last event; NULL */
    char message[POOL_CVR_MESSAGE];
};

struct pool_cvrs {
    char *ns, *pool; /* of the CStorPoolInstance */
    struct kube_client *client;
    struct kube_recorder *recorder;
    const struct clock *clock;
    struct kube_groups groups;
    struct kube_controller *controller;
    struct pool_engine *engine;
    struct pool_replicas *replicas; /* the engine's */
    int64_t write_ns;
    atomic_bool rests;
    pthread_mutex_t lock;
    struct map
        known; /* name -> struct pool_cvr; under the lock. One is used by one worker at a time. */
};

/* One reconcile. */
struct pool_cvr_run {
    struct pool_cvrs *c;
    struct pool_cvr *it;
    json_t *json; /* owned; in normal form */
    struct volume_replica object;
    const struct kube_resource *resource;
    struct pool_replica_view view;
    struct err wrong, pool, key;
    struct kube_result *result;
};

/* Again, at the latest after so long. */
static inline void pool_cvr_again(struct pool_cvr_run *r, int64_t ns)
{
    if (!r->result->again_ns || ns < r->result->again_ns)
        r->result->again_ns = ns > 0 ? ns : 1;
}

/* cvr.c */
int pool_cvr_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                       struct err *e);
void pool_cvr_forget(struct pool_cvrs *c, const char *name);

/* cvr_tell.c */
void pool_cvr_tell(struct pool_cvr_run *r, const char *reason, bool warning, const char *message);
void pool_cvr_tell_verdict(struct pool_cvr_run *r, const struct pool_cvr_verdict *v);

/* cvr_wish.c */
/* The volume's name. Owned. */
char *pool_cvr_volume(const struct pool_cvrs *c, const json_t *object);
/* The volume's identity; NULL: nobody says it. */
const char *pool_cvr_volume_id(const json_t *object);
/* What is wrong with the object; code 0: nothing. */
void pool_cvr_check(const json_t *object, struct err *ret);
void pool_cvr_wish(struct pool_cvr_run *r);

/* cvr_key.c: has the key of the volume at hand, if it can be had; why not is in r->key. */
void pool_cvr_find_key(struct pool_cvr_run *r);
void pool_cvr_forget_key(struct pool_cvr *it);

/* cvr_metrics.c */
void pool_cvr_metrics_setup(struct metrics *m, struct pool_cvrs *c);

/*
 * The engine, for engine.c and keep.c.
 */
#pragma once

#include <pthread.h>

#include "base/vec.h"
#include "pool/impl.h"
#include "pool/replicas.h"

/* How a device was when it was last looked at. */
struct pool_seen {
    uint64_t guid, checksum_errors;
    enum zpool_state state;
};

struct pool_engine {
    struct pool_options options;
    struct kube_recorder *recorder;
    void (*changed)(void *context);
    void *context;
    const struct clock *clock;
    pthread_t thread, reviver;
    struct pool_replicas *replicas; /* owned */

    pthread_mutex_t lock; /* of all below, up to the next */
    pthread_cond_t changed_wish;
    struct pool_wish *wish; /* NULL: none yet */
    bool news, stop, release, ended;
    bool jobs;          /* of the replicas, for this thread */
    struct zpool *lent; /* to revive.c; NULL: not open, or about to be closed */
    bool reviving;      /* it is at work */
    struct pool_view view;

    /* The thread's own: */
    struct zpool *pool; /* NULL: not open */
    bool fresh, gone;
    bool again; /* something was done: look again at once, there may be more to do */
    bool scans; /* scan_ended is known */
    bool read_only;
    uint64_t damaged;      /* blocks, of which there is no other copy */
    uint64_t turns, retry; /* how many looks there were; when to try again what failed */
    struct err failed;     /* to open, or to destroy */
    const char *failed_phase;
    uint32_t host_id;              /* who had the pool last, when that is in the way; 0 */
    struct err errors[POOL_STEPS]; /* the last failure of each kind of step; code 0: none */
    VEC(struct pool_seen) seen;
    int64_t scan_ended;   /* Unix time of the end of the last scan; 0: one runs, or none was */
    unsigned percent;     /* used, when last looked at; UINT32_MAX: not known */
    char compression[16]; /* that was set last */
    int64_t cleared;      /* Unix time; 0: as the wish says */
    /* Requests that were answered last; "": as the wish says. */
    char answered[POOL_REQUESTS][POOL_REQUEST_MAX];
};

/* What the thread is at from now on: a literal. */
void pool_engine_say(struct pool_engine *x, const char *doing);

/* keep.c: a pool that is open is made as it is wanted; *ret_status is how it is then. */
int pool_keep(struct pool_engine *x, const struct pool_wish *w, struct zpool_status *ret_status,
              struct err *e);

/* The request that was answered last. */
const char *pool_answered(const struct pool_engine *x, const struct pool_wish *w,
                          enum pool_request r);

/* revive.c */
int pool_revive_start(struct pool_engine *x, struct err *e);
/* The pool that is watched from now on; NULL: none, and the one before is left alone when it returns. */
void pool_lend(struct pool_engine *x, struct zpool *p);

/* faults.c: in builds for tests, devices fail as a file says. */
void pool_faults_read(void);

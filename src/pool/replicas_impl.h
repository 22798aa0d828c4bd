/*
 * The replicas of a pool, inside:
 *
 *     replicas.c       what others call: wishes in, views out, the pool attached and detached
 *     replicas_job.c   jobs for the thread that may change the pool
 *     replicas_zvol.c  what such a job does: find, make, open, close, destroy, list
 *     replicas_plan.c  what to do next with a replica: a pure function
 *     replicas_run.c   the thread with the loop: does it
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "pool/replicas.h"
#include "pool/zvol.h"
#include "replio/replica.h"

/* A wish with texts of its own. */
struct replica_wish {
    struct pool_replica_wish w;
    char *name, *zvol, *volume_name, *compression, *target;
    uint8_t *key;
};
struct replica_wish *replica_wish_copy(const struct pool_replica_wish *w);
void replica_wish_free(struct replica_wish *w); /* NULL is ignored */
bool replica_wish_same(const struct pool_replica_wish *a, const struct pool_replica_wish *b);
/* Whether a replica that runs by one can go on by the other. */
bool replica_wish_fits(const struct pool_replica_wish *a, const struct pool_replica_wish *b);

/* What is in the pool of a replica. */
struct replica_found {
    bool data, meta;           /* there is one */
    bool data_ours, meta_ours; /* it says that it is this replica's */
    bool data_other;           /* it says that it is another's */
    bool meta_other;
    uint64_t guid;
};

/* replicas_plan.c */
enum replica_step {
    REPLICA_REST,
    REPLICA_LOOK,
    REPLICA_MAKE,
    REPLICA_OPEN,
    REPLICA_DESTROY,
    REPLICA_FORGET
};
/* Of one that is not open, with the pool attached. found NULL: nobody has looked. */
enum replica_step replica_plan(const struct pool_replica_wish *w,
                               const struct replica_found *found);
/* Whether the data that was found is this replica's, and may be destroyed for it. */
bool replica_is_own(const struct pool_replica_wish *w, const struct replica_found *found);
/* Whether one that is open may stay so. */
bool replica_may_stay(const struct pool_replica_wish *running, const struct pool_replica_wish *w);
/* missing, foreign and gone of a view. */
void replica_judge(const struct pool_replica_wish *w, const struct replica_found *found,
                   struct pool_replica_view *view);

/* replicas_job.c: done by who calls pool_replicas_serve(), then ended on the loop. */
struct replica_job {
    void (*fn)(struct replica_job *job);
    void (*ended)(struct replica_job *job); /* on the loop; NULL: whoever waits is woken */
    struct pool_replicas *all;
    struct list_link link;
    struct io_message message;
    bool done; /* under lock, of one that is waited for */
};

/* A replica, from its first wish on. The loop's, but what is under lock. */
struct replica {
    struct pool_replicas *all;
    struct list_link link; /* under lock, as are the next */
    char *name;
    struct replica_wish *news; /* the next wish; NULL: as it is */
    bool forget;
    struct pool_replica_view shown;

    struct replica_wish *wish;
    bool looked;
    struct replica_found found;
    struct replica_job job;
    enum replica_step doing; /* REST: no job is under way */
    struct err why;
    int64_t retry_at;
    unsigned failures;
    struct zpool_volume_info info, meta_info; /* as of the last list; name "": not in it */
    struct pool_replica_snapshot snapshots[POOL_REPLICA_SNAPSHOTS];
    unsigned n_snapshots;

    enum { REPLICA_CLOSED, REPLICA_RUNS, REPLICA_STOPS, REPLICA_FREED, REPLICA_CLOSES } state;
    struct replica_wish *running; /* the wish that it was opened by */
    struct replio_replica *replica;
    struct replio_key *key;
    struct store *data, *meta; /* owned */
    void *image;
    size_t image_size;
    char lost[200];
    bool broken;     /* it failed, and can only be freed */
    int64_t stop_at; /* when it is no longer waited for */
};

struct pool_replicas {
    void (*wake)(void *context); /* there is a job */
    void *wake_context;
    pthread_t thread;
    struct io_loop *loop;
    struct pool_zvols *zvols;
    struct io_message kick;
    struct io_timer tick;
    atomic_bool kicked, nearly_full, stop;

    pthread_mutex_t lock; /* of all below, up to the next */
    pthread_cond_t changed;
    struct list_link replicas;
    struct list_link jobs;
    struct zpool *pool; /* NULL: not attached */
    bool detaching;
    unsigned open; /* replicas whose zvols are open, or about to be */
    VEC(struct pool_replica_row) rows;
    void (*tell)(void *context, const char *name);
    void *tell_context;

    /* The loop's: */
    bool listing;
    int64_t list_at;
    struct replica_job list_job;
    /* The list job's, while it is under way: */
    struct zpool_volume_info *infos;
    size_t n_infos;
    VEC(struct pool_replica_row) listed;
};

void replicas_kick(struct pool_replicas *all);

/* replicas_job.c */
void replicas_submit(struct pool_replicas *all, struct replica_job *job);
/* For pool_zvol_options.run: waits. */
int replicas_run_sync(void *context, int (*fn)(void *context), void *argument);

/* replicas_zvol.c: on the thread that may change the pool. */
#define REPLICA_META ":orlop"
void replica_find(struct replica *r, struct zpool *p);
int replica_make(struct replica *r, struct zpool *p, struct err *e);
/* Opens data and meta, and reads the image. */
int replica_open_zvols(struct replica *r, struct zpool *p, struct err *e);
int replica_destroy(struct replica *r, struct zpool *p, struct err *e);
void replicas_list(struct pool_replicas *all, struct zpool *p);

/* replicas_run.c */
void *replicas_thread(void *context);

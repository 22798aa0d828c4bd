/*
 * cStor volumes: replicas that are data sets in the pools of a CStorPoolCluster, an object each.
 *
 *     world.c       what there is, as structs: pools, nodes, replicas, and what is promised
 *     placement.c   which pools get a replica             functions of these structs alone
 *     plan.c        which replicas come, leave and go
 *     replicas.c    carries that out
 *     grow.c        a size that is larger than the volume has
 *     engine.c      the volume's object; children; the engine's table
 *
 * Invariants:
 * - Where a replica is, is said by its object, which is made once and never moved: the object is
 *   the decision. Its name and its id follow from the volume and the pool, so nobody makes two.
 * - A replica leaves in three steps, each durable before the next: its id is in leavingReplicas;
 *   the target says that it is no member (removedReplicas); its object is deleted. The target lets
 *   one go only when as many others as are wanted have all data.
 * - All that are missing are placed, or none: a volume for which there is no room leaves nothing.
 */
#pragma once

#include "controllers/volume/volume.h"
#include "kinds/cstorvolume.h"

enum { CSTOR_MEMBERS = 8 }; /* of a volume, at most, those that come and go included */

/* A pool, and what speaks for it or against it. Texts are those of objects that world.c holds. */
struct cstor_pool {
    const char *name, *uid, *node, *zone; /* zone: "" where the node has none */
    const char *phase;
    bool thick;           /* what is promised must fit */
    bool read_only, gone; /* gone: it is being deleted, forgotten or evacuated */
    bool online;          /* not only DEGRADED */
    uint64_t total, free; /* as the pool says */
    uint64_t promised;    /* sizes of all replicas on it */
    uint64_t unmade;      /* of them, those that take no room yet */
    unsigned replicas;
    bool apart, rather_apart; /* it has a replica that says the same of itself as this volume */
    int64_t lost_ns;          /* how long it has been away; 0: it is there */
    bool evacuated;           /* what it has is to go elsewhere */
    bool used;                /* there is a replica of this volume in it, also one that leaves */
    bool mine;                /* and it stays */
};

/* What is wanted of a placement. */
struct cstor_wish {
    const char *cluster, *capacity;
    uint64_t size;
    const char *near;         /* the node that is preferred; "" */
    const char *const *named; /* the pools that are allowed; NULL: all */
    size_t named_n;
};

/*
 * Chooses `wanted` pools for replicas, beside those that have one (mine): their indexes. The same
 * for the same world. RESOURCE_EXHAUSTED, VOLUME_NO_ROOM, with what is wrong with the others.
 */
int cstor_place(const struct cstor_wish *wish, const struct cstor_pool *pools, size_t n,
                unsigned wanted, size_t *ret_chosen, struct err *e);
/* Whether the pool can be chosen, as far as it alone is concerned. */
bool cstor_pool_is_fit(const struct cstor_wish *wish, const struct cstor_pool *pool);
/* Whether a replica on the pool may be larger by that much; else why not, as a sentence's end. */
bool cstor_pool_holds(const struct cstor_pool *pool, uint64_t more, bool already, struct str *why);

/* A replica of the volume, as its object and the volume's status have it. */
struct cstor_replica {
    json_t *object;   /* owned */
    const char *id;   /* spec.replicaid */
    const char *pool; /* the pool's name */
    int at;           /* its pool among the world's; -1: it is gone */
    bool deleting;
    bool leaving;  /* in spec.leavingReplicas */
    bool removed;  /* in status.removedReplicas */
    bool known;    /* in status' knownReplicas */
    bool healthy;  /* a member that has all data */
    bool unwanted; /* it is to go elsewhere, if it may */
};

struct cstor_world {
    struct cstor_pool *pools;
    size_t pools_n;
    struct cstor_replica *replicas; /* of this volume */
    size_t replicas_n;
    json_t *held; /* objects whose texts are used above */
};

/* world.c */
/* `fresh`: the volume's replicas are asked of the server. */
int cstor_world_read(struct volume_work *w, bool fresh, struct cstor_world *ret, struct err *e);
/* Counts what is promised, which takes longer. With the lock. */
void cstor_world_count(struct volume_work *w, struct cstor_world *world);
void cstor_world_done(struct cstor_world *world);
/* A replica is about to be made: it counts before the cache has it. With the lock. */
void cstor_world_note(struct volume_controller *v, const json_t *replica);
/* The id of the replica of a volume in a pool, a decimal number that is not 0. To be freed. */
char *cstor_replica_id(const char *volume_uid, const char *pool_uid);
void cstor_follow(struct volume_controller *v, struct kube_manager *m);
void cstor_watch(struct volume_controller *v, struct kube_controller *c);

/* What is to be done about the replicas. */
struct cstor_plan {
    unsigned add;                   /* replicas to place */
    bool leave[2 * CSTOR_MEMBERS];  /* by replica: becomes leaving */
    bool stay[2 * CSTOR_MEMBERS];   /* by replica: is not leaving after all */
    bool remove[2 * CSTOR_MEMBERS]; /* by replica: its object is deleted */
};
/* plan.c: `made`: there is data. */
void cstor_plan(const struct cstor_replica *r, size_t n, unsigned wanted, bool made,
                struct cstor_plan *ret);

/* replicas.c */
int cstor_check(struct volume_work *w, struct err *e);
int cstor_apply_replicas(struct volume_work *w, const char *address, const struct volume_uids *uids,
                         struct err *e);
int cstor_end_replicas(struct volume_work *w, struct err *e);
/* Says of replicas whose pool is silent that they are Offline. */
int cstor_tell_silent(struct volume_work *w, const struct cstor_world *world, struct err *e);
json_t *cstor_replica_object(const json_t *volume, const struct cstor_pool *pool,
                             const char *address, const char *capacity, struct err *e);
/* The capacity of a replica: as ordered or as it has it, whichever is more. */
int cstor_raise_replicas(struct volume_work *w, const struct cstor_world *world,
                         const char *capacity, struct err *e);

/* grow.c */
int cstor_grow(struct volume_work *w, struct cstor_world *world, struct err *e);

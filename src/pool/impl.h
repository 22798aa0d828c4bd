/*
 * What the parts of orlop-pool share.
 */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "json/json.h"
#include "kinds/pool.h"
#include "kinds/pool_names.h"
#include "pool/pool.h"
#include "zpool/zpool.h"

/*
 * wish.c: whether the pool is to go with its object. One that a CStorPoolCluster owns comes again when
 * it was merely deleted; its pool goes when the operator says so.
 */
bool pool_is_doomed(const json_t *object);

/* wish.c: what is wanted, from objects. Immutable and counted; strings are in its arena. */

struct pool_device {
    const char *name;        /* of the BlockDevice */
    const char *path;        /* "" when it is not known */
    const char *not_ready;   /* why it may not be added; NULL: it may */
    const char *predecessor; /* the BlockDevice whose place it takes; "" */
    uint64_t guid;           /* in the pool, as the object remembers it; 0 */
    enum zpool_role role;
    bool announced; /* of a spare or cache: the object says that it is about to be added */
};

struct pool_group {
    enum zpool_group_type type;
    enum zpool_role role;
    const struct pool_device *devices;
    size_t n_devices;
};

/* What people ask for with an annotation: another value than the last one that was answered is a request. */
enum pool_request { POOL_SCRUB, POOL_CLEAR, POOL_REQUESTS };
enum { POOL_REQUEST_MAX = 64 };

struct pool_wish {
    _Atomic unsigned refs;
    struct arena arena;
    json_t *about;            /* an ObjectReference, for events */
    const char *name;         /* of the pool on its devices */
    const char *cluster_name; /* as cStor calls every pool of the cluster; "": of no cluster */
    uint64_t guid;            /* as the object remembers it; 0: there was none yet */
    struct pool_group *groups;
    size_t n_groups;
    struct pool_device *devices; /* of all groups, in their order */
    size_t n_devices;
    struct pool_device *others; /* that are not in the object's spec and may be in the pool */
    size_t n_others;
    const char *compression;
    unsigned read_only_percent;          /* 0: never */
    const char *request[POOL_REQUESTS];  /* what the annotation says, or the beginning of it; "" */
    const char *answered[POOL_REQUESTS]; /* what was answered last, as the object says; "" */
    int64_t cleared;                     /* Unix time of the last POOL_CLEAR; 0 */
    int64_t scrub_due;                   /* Unix time; 0: never */
    int64_t scrub_started;               /* the last that the object knows of; 0 */
    unsigned used_percent;               /* as the object says: what was told of the last time */
    bool was_read_only;                  /* the same */
    bool guarded;                        /* our finalizer is on it */
    bool destroy;                        /* the object is being deleted, and the pool with it */
    bool take_over;                      /* the host that had the pool last is gone */
    bool existing;                       /* `name` is of a pool that there is: it is never made */
    bool paused;
    struct str text; /* says the same as another wish's when they are the same */
};

/* How a wish gets at the other objects; the tree is the caller's, NULL: there is none. */
struct pool_lookup {
    json_t *(*device)(void *context, const char *name);
    json_t *(*claim)(void *context, const char *name);
    void *context;
};
/* What a wish is made with. */
struct pool_maker {
    struct pool_wish *w;
    struct pool_instance its;
    const struct pool_lookup *lookup;
};
/* wish_device.c */
struct pool_device pool_make_device(const struct pool_maker *m, const char *name);
static inline uint64_t pool_number(const char *digits)
{
    return strtoull(digits, NULL, 10);
}
/* object is in normal form. INVALID_ARGUMENT when it is not one that can be. */
struct pool_wish *pool_wish_new(const json_t *object, const struct pool_options *o,
                                const struct pool_lookup *lookup, struct err *e);
struct pool_wish *pool_wish_ref(struct pool_wish *w);
void pool_wish_unref(struct pool_wish *w); /* NULL is ignored */
DEFINE_CLEANUP(struct pool_wish *, pool_wish_unref)
/* The row of the pool that this device is, or -1. A spare that is in use: where it is used. */
int pool_wish_row(const struct pool_wish *w, const struct pool_device *d,
                  const struct zpool_status *s);
/* The device that this row is, of the wish or of the others; NULL. */
const struct pool_device *pool_wish_device(const struct pool_wish *w, const struct zpool_status *s,
                                           size_t row);
const struct pool_device *pool_wish_named(const struct pool_wish *w, const char *name);

/* judge.c: whether to import, create, or neither. */

enum pool_verdict_kind { POOL_WAIT, POOL_IMPORT, POOL_CREATE, POOL_REFUSE, POOL_NOTHING };

struct pool_verdict {
    enum pool_verdict_kind kind;
    uint64_t guid;     /* IMPORT */
    const char *phase; /* WAIT, REFUSE */
    uint32_t host_id;  /* who had the pool last, when that is why it cannot be imported */
    struct err why;
};
/* found: one for each device of the wish, then one for each of the others. */
void pool_judge(const struct pool_wish *w, const struct zpool_found *found,
                struct pool_verdict *ret);
/* Whether this label is what is left of making this very pool, or of adding to it. */
bool pool_is_own_leftover(const struct pool_wish *w, uint64_t guid, const struct zpool_found *f);

/* Of a spare or cache that is announced: its label is what is left of adding it. */
bool pool_is_announced_leftover(const struct pool_device *d, const struct zpool_found *f);
static inline bool pool_is_aux(const struct pool_device *d)
{
    return d->role == ZPOOL_ROLE_SPARE || d->role == ZPOOL_ROLE_CACHE;
}

/* plan.c: what to do with a pool that is there, first things first. */

enum pool_step_kind {
    POOL_STEP_ONLINE,  /* a device is back */
    POOL_STEP_ADD,     /* devices of a group */
    POOL_STEP_GROW,    /* a device is larger than it was */
    POOL_STEP_REPLACE, /* a device by another */
    POOL_STEP_SPARE,   /* a device that failed, by a spare */
    POOL_STEP_UNSPARE, /* what the spare stood in for is whole again */
    POOL_STEP_CLEAR,   /* errors are forgotten, failed devices tried again */
    POOL_STEP_SCRUB,
    POOL_STEPS,
};

struct pool_step {
    enum pool_step_kind kind;
    const struct pool_group *group;   /* ADD */
    const struct pool_device *device; /* ADD: the first; NULL: all of the group. Else the new one */
    char row[32];                     /* GUID, in decimal, of the device that it is done to */
    char path[256];                   /* of the spare, or where the device is now */
    char text[256];                   /* what is done, for people */
};
enum { POOL_PLAN_MAX = 64 };
/* How many there are. answered: the last request of each kind; now_s is Unix time. */
size_t pool_plan(const struct pool_wish *w, const struct zpool_status *s,
                 const char *const answered[POOL_REQUESTS], int64_t now_s,
                 struct pool_step steps[POOL_PLAN_MAX]);

/* report.c: what is so, as the object's status has it. */

struct pool_facts {
    const struct pool_wish *wish;
    const struct zpool_status *status; /* NULL: there is no pool */
    uint64_t guid;
    const char *phase; /* NULL: as status says */
    bool read_only;
    const bool *announce; /* for each device of the wish: it may be announced; NULL: none */
    const char *answered[POOL_REQUESTS]; /* what was answered last; "" */
    int64_t cleared;                     /* Unix time of the last POOL_CLEAR; 0 */
    const struct err *why;    /* there is no pool, or it does not work; code 0: nothing is wrong */
    const struct err *adding; /* the last failure of each; code 0: none */
    const struct err *replacing; /* the same */
};
/*
 * Everything of the status but conditions, which are in "conditions" as an object, by type, of
 * {status, reason, message}; and "replaced", names of devices that have taken their predecessor's place.
 */
json_t *pool_report(const struct pool_facts *f);
/* Used space in per cent, as volumes see it. */
unsigned pool_used_percent(uint64_t used, uint64_t available);

/* engine.c */

struct pool_view {
    json_t *report;    /* NULL: nothing is known yet */
    struct err why;    /* what the pool waits for, or what failed last */
    int64_t seen_ns;   /* when the pool was last looked at; monotonic */
    const char *doing; /* what the engine is at since seen_ns; NULL: it waits */
    bool gone;         /* destroyed, and the labels cleared */
    uint64_t damaged;  /* blocks, of which there is no other copy */
    uint32_t host_id;  /* who had the pool last, when that is in the way; 0 */
    int64_t seen_at;   /* Unix time of seen_ns */
    char name[128];    /* of the pool */
};

struct pool_engine;
struct pool_engine *pool_engine_start(const struct pool_options *o, struct kube_recorder *recorder,
                                      void (*changed)(void *context), void *context, struct err *e);
/* Exports the pool, if it can be, and ends the thread. */
void pool_engine_stop(struct pool_engine *x);
/* Takes a reference; one that says the same as the last is no news. */
void pool_engine_wish(struct pool_engine *x, struct pool_wish *w);
/* The pool is let go: it has moved to another node, or nobody wants anything of it any more. */
void pool_engine_release(struct pool_engine *x);
/* The replicas of the pool, which are there as long as the engine is. */
struct pool_replicas;
struct pool_replicas *pool_engine_replicas(struct pool_engine *x);
/* A copy; its report is the caller's own. */
void pool_engine_view(struct pool_engine *x, struct pool_view *ret);

/* open.c: on the engine's thread. */
struct zpool *pool_open(const struct pool_wish *w, struct kube_recorder *recorder,
                        struct pool_verdict *ret);
/* 0 when nothing of the pool is left. */
int pool_destroy(struct zpool **p, const struct pool_wish *w, struct kube_recorder *recorder,
                 struct err *e);

/* act.c: the same. */
int pool_act(struct zpool *p, const struct pool_wish *w, const struct pool_step *step,
             struct kube_recorder *recorder, struct err *e);
/* The devices of a group as the engine wants them, into `to`. */
void pool_fill_devices(const struct pool_wish *w, uint64_t guid, const struct pool_device *from,
                       size_t n, struct zpool_device *to);

/* reconcile.c */
int pool_reconcile_setup(struct kube_manager *m, const struct pool_options *o, struct err *e);

struct pool_kinds {
    struct kube_client *client;
    struct kube_resource pool, device, claim, lease, node;
};
/* status.c */
struct pool_writer {
    const struct pool_kinds *kinds;
    const struct clock *clock;
    int64_t write_ns;   /* how long numbers alone wait; 0: 10 s */
    int64_t written_at; /* monotonic; 0: never */
};
int pool_status_write(struct pool_writer *s, json_t **object, const json_t *report, struct err *e);

/* claims.c: devices that were replaced are given back. */
int pool_claims_finish(const struct pool_kinds *k, struct kube_recorder *recorder,
                       const json_t *about, const json_t *claim, const json_t *old_claim,
                       struct err *e);

/* heartbeat.c */
int pool_heartbeat(const struct pool_kinds *k, const json_t *object, const char *identity,
                   json_t **lease, const struct clock *clock, struct err *e);

/* metrics.c */
void pool_metrics_setup(struct metrics *m, struct pool_engine *x);

/* command.c */
uint32_t pool_host_id(const char *node);

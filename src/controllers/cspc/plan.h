/*
 * Which instance is whose pool, and what is to change: functions of JSON values, without the API.
 *
 * A pool spec continues an instance that has one of its devices, wherever the pool is now; failing that,
 * a record of an instance that is gone (status.instances) is found in the same way. An instance that no
 * pool spec continues is unwanted. The same rules judge an edit at admission (kinds/cspc.c).
 */
#pragma once

#include "base/vec.h"
#include "kinds/pool.h"

enum { CSPC_SUFFIX = 6 };

struct cspc_pool {
    const json_t *spec;   /* of the cluster; borrowed */
    json_t *instance;     /* borrowed; NULL: there is none */
    const json_t *record; /* of an instance that was there; NULL */
};

struct cspc_plan {
    VEC(struct cspc_pool) pools;
    VEC(json_t *) unwanted; /* borrowed */
};

/* Both are borrowed for as long as the plan lives. */
void cspc_plan_make(const json_t *cluster, const json_t *instances, struct cspc_plan *ret_plan);
void cspc_plan_done(struct cspc_plan *p);

/* The name of the instance of a pool that had none: the cluster's and five letters that no other has. */
char *cspc_instance_name(const json_t *cluster, const struct cspc_pool *pool,
                         const json_t *instances);
/*
 * Whose groups a new instance gets: of a pool that exists, those that it has. What the spec asks for beyond
 * is a change like any other: of a device that is merely left out nobody would know that it is in use.
 */
const json_t *cspc_groups_from(const struct cspc_pool *p);
/* What a new instance is asked for, in normal form: each group says its type. */
json_t *cspc_instance_spec(const struct cspc_pool *p, const char *node);

/* A change of one raid group of an instance. */
enum cspc_change_kind { CSPC_NEW_GROUP, CSPC_ADD_DEVICE, CSPC_REPLACE_DEVICE, CSPC_NOT_POSSIBLE };
struct cspc_change {
    enum cspc_change_kind kind;
    size_t group;             /* of the instance; of the pool spec for a new one */
    const json_t *wanted;     /* the group of the pool spec */
    const char *device, *old; /* the device that comes, and what it replaces */
    const char *why;          /* it is not possible; a literal */
};
struct cspc_changes {
    struct cspc_change *p;
    size_t len, cap;
};

/* Expansions first, then replacements. */
void cspc_changes_find(const json_t *pool, const json_t *instance,
                       struct cspc_changes *ret_changes);
/* Puts a change into the spec of an instance. */
void cspc_change_apply(json_t *spec, const json_t *pool, const struct cspc_change *change);

/*
 * What each program of Orlop may write: one table, for the embedded API server and for the webhook.
 *
 *     who                credential                                   its own name
 *     a node             user system:node:NODE in system:nodes        NODE
 *     a pool             account orlop-pool-POOL                       POOL, in the account's namespace
 *       before it has one  account orlop-pool, token bound to its Pod    the Pod's label says which pool
 *     a target           account orlop-volume-VOLUME                   VOLUME, in the account's namespace
 *     a replica          none; account orlop-replica is reserved       nothing
 *     a CSI node         account orlop-csi-node, token with a node     the node that the token names
 *
 * Roles say which kinds a program needs; they cannot say "its own", and this can. A write of one of these
 * identities goes through only where a row of the table allows kind, part and verb, and where the object
 * was the identity's own before the write and is after it: nothing is taken from others, and nothing is
 * given to them. What the table does not mention is refused. Everybody else, people and the controller
 * included, is not in the table and is held by roles alone; so are kinds that users define.
 *
 * Functions here are pure; other objects are looked at through struct api_lookup (api/among.h).
 */
#pragma once

#include "api/among.h"

/* On a Pod: the pool that runs in it. */
#define API_ACCESS_POOL_LABEL    "openebs.io/cstor-pool-instance"
/* Accounts: the pool's or the volume's name follows (kinds/pool_names.h). */
#define API_ACCESS_POOL_PREFIX   "orlop-pool-"
#define API_ACCESS_VOLUME_PREFIX "orlop-volume-"
/* That all pools of a namespace once shared. Pods that an earlier version started have it until they are replaced. */
#define API_ACCESS_POOLS_ACCOUNT "orlop-pool"
/* A pattern of the users that are such accounts. */
#define API_ACCESS_ACCOUNTS                                                                        \
    "^system:serviceaccount:[^:]+:orlop-(pool|pool-.+|replica|csi-node|volume-.+)$"
/* On a Pod: a node runs it of its own accord, and only says so. */
#define API_ACCESS_MIRROR "kubernetes.io/config.mirror"

enum api_who {
    API_WHO_NODE,
    API_WHO_POOL,
    API_WHO_TARGET,
    API_WHO_REPLICA,
    API_WHO_CSI_NODE,
    API_WHO_COUNT,
    API_WHO_OTHER = API_WHO_COUNT, /* the table does not concern them */
};

/* Who asks; texts are the caller's, `ns` is our own. */
struct api_actor {
    enum api_who who;
    char *ns;                  /* of an account; NULL of a node */
    const char *name;          /* of the node, pool, volume; NULL: not known, or by its Pod */
    const char *pod, *pod_uid; /* that the token is bound to; NULL: none */
};

/* `extra` is as reviews have it, or NULL; the result lives no longer than what is given. */
void api_actor_init(struct api_actor *a, const char *user, bool in_nodes, const json_t *extra);
void api_actor_done(struct api_actor *a);

struct api_write {
    const struct api_kind *kind;
    const char *verb;        /* create, update or delete; a patch is an update */
    const char *subresource; /* "" and NULL: the object itself */
    const json_t *object;    /* NULL of a deletion; in normal form, as `old` */
    const json_t *old;       /* NULL of a creation */
};

/*
 * 0: nothing here speaks against it. -1 with Forbidden: the message says what is allowed; with another
 * error: other objects could not be looked at. `lookup` may be NULL: then nothing that needs it is one's own.
 */
int api_access_check(const struct api_actor *a, const struct api_write *w,
                     const struct api_lookup *lookup, struct err *e);

/* One row. */
struct api_access_rule {
    enum api_who who;
    const char *kind;        /* its name: no two kinds of the table share one */
    const char *subresource; /* "" */
    const char *verbs;       /* separated by spaces */
    /* Paths that an update may change, separated by spaces; "+" before one: only where there was nothing.
     * NULL: all. */
    const char *changes;
    bool (*owns)(const struct api_actor *a, const json_t *object, const struct api_lookup *lookup,
                 struct err *e);
    const char *own; /* which objects these are, for people */
    /* Whether an object of somebody else may become its own; NULL: none. */
    bool (*takes)(const json_t *old);
};
extern const struct api_access_rule api_access_rules[]; /* ends with a row without a kind */
/* The row for a part of a kind; NULL. */
const struct api_access_rule *api_access_find(enum api_who who, const struct api_kind *kind,
                                              const char *subresource);
const char *api_who_text(enum api_who who); /* "node" */

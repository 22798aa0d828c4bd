/*
 * cspc-operator: a CStorPoolCluster becomes pools, and its pools follow it as it is edited.
 *
 *     CStorPoolCluster ──> BlockDeviceClaims ──(nodes bind them)──> CStorPoolInstance ──> account, Deployment
 *        spec.pools[]        one a device            devices.c        one a pool       account.c, pool.c
 *
 *     in the order of a reconcile:
 *       pools that are no longer wanted go        remove.c      (never while replicas live on them)
 *       pools that are missing come               create.c
 *       Deployments are as they should be         pool.c
 *       when none of the former is under way:
 *         migration, expansion, replacement       operate.c
 *       claims that nobody needs are released     release.c
 *       and what is so is said                    silence.c, status.c
 *
 * Which instance is whose pool, and what differs, are functions of JSON values (plan.h).
 *
 * Invariants:
 * - A pool spec has at most one instance: before one is made the server is asked which there are, and its
 *   name follows from the pool. A device has at most one claim of ours: its name follows from the device.
 * - No instance names a device that is not claimed for this cluster.
 * - A pool is destroyed only on our word: API_POOL_DESTROY is written on its instance before that is deleted,
 *   and orlop-pool looks for it. An instance that somebody else deleted comes up again, with the name and
 *   the identity (status.guid) of the one before, which this cluster's status keeps: it is imported.
 *   A pool that was forgotten (API_POOL_FORGOTTEN) goes without its node, and is not destroyed.
 * - A claim is released only when no spec, no instance and no replacement under way has its device, by
 *   what the server says at that moment; until then a finalizer of ours holds it.
 * - Each write can be the last before kill -9: what is in the API says what is next.
 */
#pragma once

#include <pthread.h>

#include "api/kind.h"
#include "base/map.h"
#include "controllers/cspc/plan.h"
#include "kinds/access.h"
#include "kinds/pool_names.h"
#include "kube/child.h"
#include "kube/groups.h"
#include "kube/manager.h"
#include "kube/template.h"

#define CSPC_INSTANCE   API_ACCESS_POOL_LABEL
/* Which Deployments are of pools; and the indexes of the caches. */
#define CSPC_APP        "app=cstor-pool"
#define CSPC_BY_CLUSTER "cspc-cluster"
#define CSPC_BY_DEVICE  "cspc-device"
#define CSPC_BY_LABEL   "cspc-label"

enum { CSPC_NAME_MAX = 57 }; /* a label has 63 */

/*
 * The same for each of the two groups that clusters and instances may be of; in an embedded server both
 * are views of one object, which the first one has.
 */
struct cspc {
    struct kube_groups *groups; /* the clusters of both; the first one's */
    const struct clock *clock;
    struct kube_ages *ages;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct kube_controller *controller;
    struct kube_resource clusters_r, instances_r, claims_r, deployments_r, replicas_r;
    struct kube_informer *clusters, *instances, *claims, *devices, *deployments, *replicas, *nodes;
    pthread_mutex_t lock;
    /* Accounts that are there, NS/POOL, and namespaces without the shared one, NS/; under the lock. */
    struct map accounts;
};

/* What keeps a cluster from being as it is wanted, in the order in which it is said. */
enum cspc_part { CSPC_PROVISION, CSPC_OPERATION, CSPC_DELETION, CSPC_PARTS };

struct cspc_trouble {
    const char *reason; /* a literal; NULL: there is none */
    struct str text;    /* of all of them */
    bool progress;      /* it is under way, and no news */
};

/* One reconcile. */
struct cspc_run {
    struct cspc *c;
    json_t *cluster;   /* owned; in normal form */
    json_t *instances; /* owned: array; of this cluster */
    struct cspc_plan plan;
    struct cspc_trouble trouble[CSPC_PARTS];
    bool live, live_cluster; /* read from the server, not the cache */
    struct kube_result *result;
};

/* cspc.c */
int cspc_reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                   struct err *e);
/* Of a kind of ours, as its author wrote it, the form that the rest reads. */
void cspc_normalize(const struct api_kind *kind, json_t *object);
/* Notes that something is wrong, or with `progress` only under way. */
void cspc_trouble(struct cspc_run *r, enum cspc_part part, bool progress, const char *reason,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* After the cluster or its instances are others. */
void cspc_plan_again(struct cspc_run *r);
/*
 * Asks the server for the instances, unless they are its already, and with `cluster` for that after them;
 * plans anew. ABORTED when the cluster is another one now.
 */
int cspc_refresh(struct cspc_run *r, bool cluster, struct err *e);
/* Whether orlop-pool has still to do with it. */
bool cspc_is_guarded(const json_t *instance);
bool cspc_is_of(const json_t *object, const json_t *cluster);
/*
 * Merge-patches the object with its resourceVersion as a precondition; the object becomes what is there
 * now. Takes over the patch; `what` names the step.
 */
int cspc_patch(struct cspc *c, const struct kube_resource *resource, json_t *object, json_t *patch,
               const char *what, struct err *e);
/* The same for its status, which is written where it differs. */
int cspc_say(struct cspc *c, const struct kube_resource *resource, json_t *object,
             const json_t *status, const char *what, struct err *e);
/* Takes over the object. *ret_made is NULL when there is one of that name. */
int cspc_create(struct cspc *c, const struct kube_resource *resource, json_t *object,
                json_t **ret_made, struct err *e);
/* Takes a finalizer off, or does nothing. */
int cspc_unfinalize(struct cspc *c, const struct kube_resource *resource, json_t *object,
                    const char *finalizer, struct err *e);
int cspc_delete(struct cspc *c, const struct kube_resource *resource, const json_t *object,
                struct err *e);

/* devices.c */
/* The one node that the selector means; NULL with the reason noted. */
json_t *cspc_node(struct cspc_run *r, enum cspc_part part, const json_t *selector);
/* The BlockDevice; NULL. */
json_t *cspc_device(struct cspc *c, const char *ns, const char *name);
/*
 * Makes sure of a claim for the device, which is on that node and can be used; `predecessor`, if given, is
 * what it replaces. True when it is bound; else what it waits for is noted. < 0: an error.
 */
int cspc_claim(struct cspc_run *r, enum cspc_part part, const char *device, const char *node,
               const char *predecessor, struct err *e);
/* The claim of this cluster for the device; NULL. */
json_t *cspc_claim_of(struct cspc_run *r, const char *device);
/* What the claim's device takes the place of; NULL. */
const char *cspc_predecessor(const json_t *claim);
/* Fills in what the system knows of the devices that an instance's spec names: capacity and devLink. */
void cspc_describe(struct cspc_run *r, json_t *spec);

/* account.c: the account of a pool's pod, and what it may. */
int cspc_ensure_account(struct cspc_run *r, const char *instance, struct err *e);
/* With the pool. */
int cspc_remove_account(struct cspc_run *r, const json_t *instance, struct err *e);
/* The one that pools of a namespace shared goes when no pod of theirs has it any more. */
int cspc_retire_shared_account(struct cspc_run *r, struct err *e);
/* pool.c: applies a child. Takes over the values. */
int cspc_apply_template(struct cspc_run *r, const struct kube_template *template, json_t *values,
                        const struct kube_children *of, const json_t *owner, struct err *e);
/* create.c, pool.c, remove.c, operate.c, release.c, status.c */
int cspc_create_missing(struct cspc_run *r, struct err *e);
int cspc_keep_deployments(struct cspc_run *r, struct err *e);
int cspc_remove_deployment(struct cspc_run *r, const json_t *instance, struct err *e);
int cspc_remove_unwanted(struct cspc_run *r, struct err *e);
/* The whole cluster is to go; 1 when nothing of it is left. */
int cspc_remove_all(struct cspc_run *r, struct err *e);
int cspc_operate(struct cspc_run *r, struct err *e);
int cspc_release_claims(struct cspc_run *r, struct err *e);
/* All of them; 1 when none is held any more. */
int cspc_release_all(struct cspc_run *r, struct err *e);
int cspc_write_status(struct cspc_run *r, struct err *e);
/*
 * How the pool's process is: 1 available, 0 not; -1 when nobody says, because nobody has looked after its
 * Deployment yet.
 */
int cspc_is_managed(struct cspc_run *r, const json_t *instance);
/* forget.c: marks the devices and claims of an instance that was forgotten, so that nothing wipes them. */
int cspc_forget(struct cspc_run *r, const json_t *instance, struct err *e);
/* silence.c: instances whose process is silent do not say that they are well. */
int cspc_note_silent(struct cspc_run *r, struct err *e);
/* Nobody can say how the pool is; why. */
int cspc_say_unknown(struct cspc_run *r, json_t *instance, const char *phase, const char *reason,
                     const char *message, struct err *e);
/* Writes the part of the status that outlives instances: which pools there are. */
int cspc_write_records(struct cspc_run *r, struct err *e);

/*
 * What an API server does with objects beside storing them: names and identity, optimistic
 * concurrency, generations, status apart from spec, finalizers and deletion.
 *
 *     create   checked, named, given uid, creationTimestamp and generation 1
 *     update   checked against what is stored; server's metadata kept; generation counts changes of
 *              the desired state; what changes nothing is not written
 *     status   the same, for status only
 *     delete   at once, or, where finalizers hold the object or it takes time to end, a
 *              deletionTimestamp; the update that removes the last finalizer, or the deletion that
 *              says that the time is over, removes the object. A kind with /finalize has finalizers
 *              in its spec as well, and says Terminating meanwhile
 *
 * Errors carry what a Status needs: the code maps to the HTTP status, the reason is the Status
 * reason, and for Invalid the caller's report has the causes.
 */
#pragma once

#include <pthread.h>

#include "api/admit.h"
#include "base/clock.h"
#include "k8s/apiserver/notes.h"
#include "k8s/apiserver/path.h"
#include "k8s/apiserver/store.h"
#include "k8s/apiserver/user.h"

struct apiserver_rules;
struct apiserver_rbac;
struct apiserver_webhooks;
struct apiserver_kinds;

struct apiserver_registry {
    struct apiserver_store *store;
    const struct clock *clock;
    struct apiserver_rules *rules;       /* NULL: no namespaces that must exist, no quotas */
    struct apiserver_rbac *rbac;         /* who may do what; NULL: nobody asks */
    struct apiserver_webhooks *webhooks; /* NULL: nobody else is asked */
    /* Kinds in service (apiserver/kinds.h), under the lock; NULL: only those of the tables. */
    struct apiserver_kinds *kinds;
    pthread_mutex_t kinds_lock;
};

/* What becomes of the objects that a deleted one owns. */
enum apiserver_propagation {
    APISERVER_PROPAGATE_AS_IS,      /* as an earlier deletion said, else in the background */
    APISERVER_PROPAGATE_BACKGROUND, /* they go after it */
    APISERVER_PROPAGATE_FOREGROUND, /* it goes after them */
    APISERVER_PROPAGATE_ORPHAN,     /* they stay */
};

/* The finalizers that stand for the last two. */
#define APISERVER_FOREGROUND_FINALIZER "foregroundDeletion"
#define APISERVER_ORPHAN_FINALIZER     "orphan"

struct apiserver_request {
    const struct apiserver_user *user; /* who asks; NULL: the server itself */
    const struct api_kind *kind;
    const struct api_group_version *gv; /* as asked for; NULL: the canonical one */
    enum apiserver_subresource subresource;
    const char *namespace; /* NULL for kinds of the whole cluster */
    const char *name;      /* NULL for create */
    bool dry_run;          /* decide everything, change nothing */
    const char *manager;   /* whose fields the changed ones become; NULL: the server's */
    bool force;            /* of an apply: also those that others own */
    json_t *managed;       /* owners as an apply leaves them (managed.h); NULL: find them out */
    enum api_unknown unknown;
    struct apiserver_notes *notes; /* where warnings go; NULL: nowhere */
    /* Of a deletion. */
    const char *uid;   /* it must have this uid; NULL: any */
    uint64_t revision; /* it must have this revision; 0: any */
    enum apiserver_propagation propagation;
    bool has_grace; /* it says how many seconds the object has to end, where its kind takes time */
    int64_t grace;
};

/*
 * A kind in service, by "group/version" (or "v1") and kind, or by the name of its collection; NULL.
 * Only for the followers' thread, which is the one that changes the set: the result is valid until
 * it does so. All others hold the set (apiserver/kinds.h).
 */
const struct api_kind *apiserver_kind_find(struct apiserver_registry *g, const char *api_version,
                                           const char *kind);
const struct api_kind *apiserver_kind_of(struct apiserver_registry *g, const char *collection);

/* "openebs.io/cstorpoolclusters": where a kind's objects are kept, whatever version they came in. */
void apiserver_collection(const struct api_kind *kind, struct str *ret_name);
/* "namespace/name" or "name" */
void apiserver_key(const struct apiserver_request *r, const char *name, struct str *ret_key);

/*
 * Each returns the object as stored (a new reference), or NULL. The object given is changed in
 * place. Of a dry run the result has the revision of what is there, or 0.
 */
struct apiserver_object *apiserver_create(struct apiserver_registry *g,
                                          const struct apiserver_request *r, json_t *object,
                                          struct api_report *report, struct err *e);
struct apiserver_object *apiserver_update(struct apiserver_registry *g,
                                          const struct apiserver_request *r, json_t *object,
                                          struct api_report *report, struct err *e);
struct apiserver_object *apiserver_update_status(struct apiserver_registry *g,
                                                 const struct apiserver_request *r, json_t *object,
                                                 struct api_report *report, struct err *e);

enum apiserver_patch_type {
    APISERVER_JSON_PATCH,
    APISERVER_MERGE_PATCH,
    APISERVER_STRATEGIC_PATCH, /* UnsupportedMediaType for custom resources, as in Kubernetes */
    APISERVER_APPLY_PATCH,     /* see apiserver_apply() */
};

/* `status`: the patch is for /status and changes nothing else. */
struct apiserver_object *apiserver_patch(struct apiserver_registry *g,
                                         const struct apiserver_request *r,
                                         enum apiserver_patch_type type, const json_t *patch,
                                         bool status, struct api_report *report, struct err *e);

/*
 * Server-side apply: makes the object what the configuration says, leaves what it does not mention
 * to its owners, and creates the object where there is none (*ret_created). `config` has kind and
 * apiVersion of the request. "Conflict" with API_OWNED problems in the report when others own what
 * it would change; r->force takes it over.
 */
struct apiserver_object *apiserver_apply(struct apiserver_registry *g,
                                         const struct apiserver_request *r, const json_t *config,
                                         bool status, bool *ret_created, struct api_report *report,
                                         struct err *e);

/*
 * *ret_gone: it is deleted; else it has a deletionTimestamp, and stays until it has no finalizers and
 * its time to end is over, which only another deletion can say. That one may shorten it.
 */
struct apiserver_object *apiserver_delete(struct apiserver_registry *g,
                                          const struct apiserver_request *r, bool *ret_gone,
                                          struct err *e);

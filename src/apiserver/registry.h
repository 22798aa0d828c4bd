/*
 * What an API server does with objects beside storing them: names and identity, optimistic
 * concurrency, generations, status apart from spec, finalizers and deletion.
 *
 *     create   checked, named, given uid, creationTimestamp and generation 1
 *     update   checked against what is stored; server's metadata kept; generation counts changes of
 *              the desired state; what changes nothing is not written
 *     status   the same, for status only
 *     delete   at once, or, where finalizers hold the object, a deletionTimestamp; the update that
 *              removes the last finalizer of a deleted object removes the object
 *
 * Errors carry what a Status needs: the code maps to the HTTP status, the reason is the Status
 * reason, and for Invalid the caller's report has the causes.
 */
#pragma once

#include "api/admit.h"
#include "apiserver/path.h"
#include "apiserver/store.h"
#include "apiserver/user.h"
#include "base/clock.h"

struct apiserver_registry {
    struct apiserver_store *store;
    const struct clock *clock;
};

struct apiserver_pledge {
    void (*begin)(void *pledged); /* before each write that was decided */
    /* After it, on another thread: NULL, or why it was not made after all. */
    void (*done)(void *pledged, const struct err *failure);
};

struct apiserver_request {
    const struct apiserver_user *user; /* who asks; NULL: the server itself */
    const struct api_kind *kind;
    const struct api_group_version *gv; /* as asked for; NULL: the canonical one */
    enum apiserver_subresource subresource;
    const char *namespace; /* NULL for kinds of the whole cluster */
    const char *name;      /* NULL for create */
    bool dry_run;          /* decide everything, change nothing */
    enum api_unknown unknown;
    /* Of a deletion. */
    const char *uid;       /* it must have this uid; NULL: any */
    uint64_t revision;     /* it must have this revision; 0: any */
    const char *finalizer; /* add this one when deleting: foreground or orphan propagation; NULL */
    /*
     * Who answers for the write, instead of waiting for it here: when the function returns the
     * write may only be under way. NULL: it is durable then.
     */
    const struct apiserver_pledge *pledge;
    void *pledged;
};

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
};

/* `status`: the patch is for /status and changes nothing else. */
struct apiserver_object *apiserver_patch(struct apiserver_registry *g,
                                         const struct apiserver_request *r,
                                         enum apiserver_patch_type type, const json_t *patch,
                                         bool status, struct api_report *report, struct err *e);

/* *ret_gone: it is deleted; else its finalizers keep it and it has a deletionTimestamp. */
struct apiserver_object *apiserver_delete(struct apiserver_registry *g,
                                          const struct apiserver_request *r, bool *ret_gone,
                                          struct err *e);

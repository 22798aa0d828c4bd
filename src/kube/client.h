/*
 * A client of a Kubernetes API.
 *
 * One per process; any thread may use it. Objects go in and come out as JSON values. Every failure
 * is an error with a code that says what to do about it:
 *
 *     NOT_FOUND             404
 *     ALREADY_EXISTS        409 AlreadyExists
 *     ABORTED               409 Conflict: the object has changed since it was read; read it again
 *     OUT_OF_RANGE          410 Expired or Gone: list again
 *     INVALID_ARGUMENT      400, 415, 422: the request will never be taken as it is
 *     UNAUTHENTICATED 401   PERMISSION_DENIED 403
 *     RESOURCE_EXHAUSTED    429 when patience ran out, or an answer above the limit
 *     FAILED_PRECONDITION   405, 412
 *     DEADLINE_EXCEEDED     no answer in time, or 504
 *     UNAVAILABLE           no connection, it broke, or a 5xx: it may or may not have been done
 *     CANCELLED             kube_client_stop()
 *
 * The reason is the Status' (a literal of ours, "Unknown" for one we do not know) and the message the
 * server's, cut and cleaned.
 *
 * What is tried again, with jittered backoff until the deadline: what the server says it did not do
 * (429, 503 with Retry-After, no connection), for all methods; a broken connection or another 5xx
 * for those that only read. Requests but watches take a token of a bucket first, so that no bug of
 * ours is a flood.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "json/json.h"
#include "kube/config.h"
#include "kube/resource.h"

struct kube_client;
struct metrics;

struct kube_client_options {
    const struct kube_config *config; /* copied */
    const char *field_manager;        /* "orlop-controller": managedFields and User-Agent say it */
    unsigned qps, burst;              /* 0: 100 and 200 */
    int64_t deadline_ns;              /* of a call, with everything that is tried again; 0: 30 s */
    const struct clock *clock;        /* NULL: the machine's */
    struct metrics *metrics;          /* NULL: none; rest_client_requests_total and the like */
};

struct kube_client *kube_client_new(const struct kube_client_options *o, struct err *e);
void kube_client_free(struct kube_client *c); /* no call under way, no informer left */
DEFINE_CLEANUP(struct kube_client *, kube_client_free)
/* Ends all calls that are under way and any later one with CANCELLED. From any thread. */
void kube_client_stop(struct kube_client *c);
const char *kube_client_namespace(const struct kube_client *c);
const char *kube_client_server(const struct kube_client *c);

/* ns is NULL for what is cluster-scoped, and in lists for all namespaces. */
json_t *kube_get(struct kube_client *c, const struct kube_resource *r, const char *ns,
                 const char *name, struct err *e);

struct kube_query {
    const char *labels, *fields; /* selectors; NULL: none */
    const char *resource_version;
    unsigned limit; /* of a page; 0: 500 */
};

/*
 * Calls page() with the items of each page in turn (borrowed; an array); *ret_version is the
 * collection's, for a watch to begin at. A continuation that expired is OUT_OF_RANGE,
 * and the caller begins again.
 */
int kube_list_pages(struct kube_client *c, const struct kube_resource *r, const char *ns,
                    const struct kube_query *q,
                    int (*page)(void *context, const json_t *items, struct err *e), void *context,
                    struct str *ret_version, struct err *e);
/* All items at once, as an array: for small collections. q may be NULL. */
json_t *kube_list(struct kube_client *c, const struct kube_resource *r, const char *ns,
                  const struct kube_query *q, struct err *e);

/* How a write is made; NULL: plainly. */
struct kube_write {
    const char *subresource; /* "status", "scale", ...; NULL: the object itself */
    bool dry_run;            /* the server does everything but keep it */
    bool force;              /* of an apply: take over fields that others own */
};

/* The namespace and name are the object's. What comes back is the object as it is now. */
json_t *kube_create(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e);
/* With the object's resourceVersion as the precondition where it has one. */
json_t *kube_update(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e);

enum kube_patch { KUBE_JSON_PATCH, KUBE_MERGE_PATCH, KUBE_STRATEGIC_PATCH, KUBE_APPLY };
json_t *kube_patch(struct kube_client *c, const struct kube_resource *r, const char *ns,
                   const char *name, enum kube_patch type, const json_t *patch,
                   const struct kube_write *w, struct err *e);

struct kube_delete {
    const char *uid, *resource_version; /* preconditions; NULL: none */
    const char *propagation;            /* "Background", "Foreground", "Orphan"; NULL: the kind's */
    int grace_seconds;                  /* < 0: the kind's */
    bool dry_run;
};

/* What is already gone is a success. o may be NULL. */
int kube_delete(struct kube_client *c, const struct kube_resource *r, const char *ns,
                const char *name, const struct kube_delete *o, struct err *e);

/* Anything else: "/healthz", "/apis/...". ret_body gets the text of a 2xx answer; body may be NULL. */
int kube_raw(struct kube_client *c, const char *method, const char *path, const json_t *body,
             struct str *ret_body, struct err *e);
/* Whether it has the group, "topolvm.io/v1"; one that does not say that it has not may have it. */
bool kube_serves(struct kube_client *c, const char *version);

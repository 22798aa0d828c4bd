/*
 * Rules for writes that need to look at other objects: the steps that admission.c lists. Each looks
 * whether a write concerns it.
 *
 *     rules_namespace.c   a namespace must exist and not be going; those that always stay
 *     rules_storage.c     default classes, protection, which claims and templates may grow
 *     rules_limits.c      the least and most that a LimitRange allows a claim
 *     rules_service.c     addresses of services
 *     rules_access.c      programs of ours write what is their own: the table of api/access.h
 *     rules_node.c        labels and taints of nodes, and the Pods that they make
 *     rules_rights.c      writes that give power over a node itself need a right of their own
 *     rules_among.c       rules of our own kinds that look at other objects
 *     rules_quota.c       ResourceQuotas are never exceeded, however many write at once
 */
#pragma once

#include <pthread.h>

#include "base/list.h"
#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/gates.h"

/* What keeps a claim or volume that is used. */
#define RULES_CLAIM_FINALIZER  "kubernetes.io/pvc-protection"
#define RULES_VOLUME_FINALIZER "kubernetes.io/pv-protection"

/* What the rules of one server hold. */
struct apiserver_rules {
    struct apiserver_features features;
    /* Shared by whoever creates in a namespace, until it is visible; alone for deleting one. */
    pthread_rwlock_t namespaces;
    /* Quotas: for looking at what is used and for the list of what is about to be. */
    pthread_mutex_t lock;
    struct list_link reservations;
    /* Under the same lock: writes that rules_among.c looks at, in the order in which they came. */
    struct list_link flights;
    /* Addresses of services: the range, the one to try first, and those about to be written. */
    struct {
        pthread_mutex_t lock;
        uint32_t first, last, next;
        unsigned bits;
        struct list_link reserved;
    } addresses;
};

struct apiserver_rules *apiserver_rules_new(const struct apiserver_features *features);
void apiserver_rules_free(struct apiserver_rules *rules); /* NULL is fine */

/* Shared: an object, and one as JSON; NULL when there is none. */
struct apiserver_object *rules_find(struct apiserver_registry *g, const struct api_kind *kind,
                                    const char *namespace, const char *name);
json_t *rules_get(struct apiserver_registry *g, const struct api_kind *kind, const char *namespace,
                  const char *name);
/* Whether it is a write of the kind's objects themselves, not of a subresource. */
bool rules_concern(const struct apiserver_admission *a, const struct api_kind *kind);
/* The name of the object that a write is of, for messages; never NULL. */
const char *rules_name(const struct apiserver_admission *a);

int rules_namespace_exists(struct apiserver_admission *a, struct err *e);
int rules_namespace_fill(struct apiserver_admission *a, struct err *e);
int rules_namespace_deletable(struct apiserver_admission *a, struct err *e);
int rules_namespace_hold(struct apiserver_admission *a, struct err *e);
void rules_namespace_release(struct apiserver_admission *a);

int rules_storage_fill(struct apiserver_admission *a, struct err *e);
int rules_storage_check(struct apiserver_admission *a, struct err *e);
int rules_limits_check(struct apiserver_admission *a, struct err *e);

/* NULL: the default. */
int rules_service_range(struct apiserver_rules *rules, const char *text, struct err *e);
int rules_service_fill(struct apiserver_admission *a, struct err *e);
void rules_service_release(struct apiserver_admission *a);

int rules_access_check(struct apiserver_admission *a, struct err *e);

int rules_node_fill(struct apiserver_admission *a, struct err *e);
int rules_node_check(struct apiserver_admission *a, struct err *e);
/* Whether it is a node that asks; *ret_node is its name, NULL when that is not to be known. */
bool rules_is_node(const struct apiserver_user *user, const char **ret_node);
/* Whether a node made the pod itself. */
bool rules_is_mirror(const json_t *pod);
/* Whether a user may have a token that is bound to this; nodes only for their pods. */
int rules_node_token(const struct apiserver_user *user, const char *bound_kind, const json_t *bound,
                     const json_t *reference, struct err *e);

int rules_rights_check(struct apiserver_admission *a, struct err *e);

int rules_among_check(struct apiserver_admission *a, struct err *e);
void rules_among_release(struct apiserver_admission *a);
/* Makes what a write that is visible leads to. */
void rules_among_follow(struct apiserver_registry *g, json_t *wishes);

int rules_quota_hold(struct apiserver_admission *a, struct err *e);
void rules_quota_release(struct apiserver_admission *a);

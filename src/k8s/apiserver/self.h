/*
 * What the server does to objects of its own accord: the followers, and what they share.
 *
 * Every change that they make names the revision that they looked at. Where somebody was faster it
 * fails, and the change that was faster comes by as well: they look again then.
 */
#pragma once

#include "k8s/apiserver/follow.h"
#include "k8s/apiserver/registry.h"

extern const struct apiserver_follower gc_follower;           /* gc.c */
extern const struct apiserver_follower namespaces_follower;   /* namespaces.c */
extern const struct apiserver_follower protection_follower;   /* protection.c */
extern const struct apiserver_follower quota_follower;        /* quota_status.c */
extern const struct apiserver_follower event_ttl_follower;    /* event_ttl.c */
extern const struct apiserver_follower csr_follower;          /* csr_signer.c */
extern const struct apiserver_follower cluster_info_follower; /* cluster_info.c */

enum self_result {
    SELF_DONE, /* also: it is gone */
    SELF_AGAIN /* somebody was faster, or it cannot be done now; logged unless the former */
};

/* Calls fn with every object of a kind, or of one namespace of it (NULL: all). */
void self_each(struct apiserver_registry *g, const struct api_kind *kind, const char *namespace,
               void (*fn)(void *context, const struct api_kind *kind, struct apiserver_object *o),
               void *context);
json_t *self_parse(const struct apiserver_object *o);
/* Whether it has a deletionTimestamp. */
bool self_is_deleted(const struct apiserver_object *o);
/* The namespace that a key begins with, to be freed; NULL for an object of the whole cluster. */
char *self_namespace(const char *key);

enum self_result self_delete(struct apiserver_registry *g, const struct api_kind *kind,
                             const struct apiserver_object *o,
                             enum apiserver_propagation propagation);
/* Writes `object`, which is `o` changed; `subresource` says which part is meant. */
enum self_result self_update(struct apiserver_registry *g, const struct api_kind *kind,
                             const struct apiserver_object *o, json_t *object,
                             enum apiserver_subresource subresource);

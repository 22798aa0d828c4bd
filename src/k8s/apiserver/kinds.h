/*
 * The kinds in service: those of the tables, and those that CustomResourceDefinitions add.
 *
 * A set of kinds never changes; when definitions do, another takes its place. Whoever needs kinds
 * for longer than a moment takes a reference to the set in service, once, and uses that one: a
 * request for as long as it is served, a watch until it has caught up with a newer one. As long as
 * there are no definitions the set is a constant, and nothing is allocated or counted.
 */
#pragma once

#include "base/map.h"
#include "k8s/apiserver/definition.h"
#include "k8s/apiserver/openapi_doc.h"
#include "k8s/apiserver/registry.h"

struct apiserver_kinds {
    const struct api_kind *const *all; /* ends with NULL; those of the tables first */
    bool converts;                     /* one of them has a conversion webhook */
    /* Private. */
    struct apiserver_definition **definitions; /* ends with NULL */
    unsigned refs;                             /* atomic */
    pthread_mutex_t lock;
    struct map documents; /* under the lock: "group/version" -> struct apiserver_document */
};

/* A description of the kinds, in the bytes that are sent, and a hash of them. */
struct apiserver_document {
    struct str text;
    char hash[APISERVER_HASH_MAX];
};

/* The kinds of the tables: all that there are, or Kubernetes' own. Said once, before the first request. */
void apiserver_kinds_only_kubernetes(void);
const struct api_kind *const *apiserver_kinds_tables(void);

/* The set in service, a new reference. */
struct apiserver_kinds *apiserver_kinds_get(struct apiserver_registry *g);
/* Puts the kinds of these definitions, and of the tables, in service. */
void apiserver_kinds_set(struct apiserver_registry *g, struct apiserver_definition *const *added,
                         size_t n);
struct apiserver_kinds *apiserver_kinds_ref(struct apiserver_kinds *k);
void apiserver_kinds_unref(struct apiserver_kinds *k); /* NULL is fine */
DEFINE_CLEANUP(struct apiserver_kinds *, apiserver_kinds_unref)

/* By group, version and plural, as in paths; NULL. */
const struct api_kind *apiserver_kinds_find(const struct apiserver_kinds *k,
                                            const struct api_group_version *gv, const char *plural);
/*
 * The OpenAPI document of a version, of NULL the index; and that of v2, in JSON or protobuf. They are
 * made when they are first asked for, and kept as long as the set.
 */
const struct apiserver_document *apiserver_kinds_document(struct apiserver_kinds *k,
                                                          const struct api_group_version *gv);
const struct apiserver_document *apiserver_kinds_document_v2(struct apiserver_kinds *k,
                                                             bool protobuf);

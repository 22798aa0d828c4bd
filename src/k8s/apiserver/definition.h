/*
 * A CustomResourceDefinition as kinds that can be served: one for each version in service, because
 * versions differ in schema, columns and subresources. They share a collection; their objects are
 * kept in the version that is marked for storage, and each version shows them pruned and defaulted
 * by its own schema.
 *
 * Does not change once it is made, and is reference counted: the sets of kinds that it is in hold
 * it, and with it everything its kinds point to.
 */
#pragma once

#include "api/kind.h"
#include "k8s/apiserver/registry.h"
#include "k8s/apiserver/store.h"

struct apiserver_definition {
    const struct api_kind *kinds; /* all but the first have API_SIBLING */
    size_t n;                     /* 0 when no version is served */
    /* Private. */
    struct apiserver_object *source; /* whose bytes the kinds point to */
    struct api_schema_set *schemas;
    const struct api_conversion *conversion; /* NULL: versions differ by name only */
    struct arena arena;
    unsigned refs; /* atomic */
};

/*
 * The registry is where a conversion webhook's service is looked for; it must live longer.
 * `definition` is what is in `source`, of the right structure; `names` are those that it may have
 * (status.acceptedNames). INVALID_ARGUMENT when a schema cannot be served.
 */
struct apiserver_definition *apiserver_definition_new(struct apiserver_registry *g,
                                                      struct apiserver_object *source,
                                                      const json_t *definition, const json_t *names,
                                                      struct err *e);
struct apiserver_definition *apiserver_definition_ref(struct apiserver_definition *d);
void apiserver_definition_unref(struct apiserver_definition *d); /* NULL is fine */

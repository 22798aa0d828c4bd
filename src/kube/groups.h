/*
 * Kinds that have more than one API group or version, such as CStorPoolCluster of openebs.io and
 * cstor.openebs.io, asked of the server itself.
 *
 * A cluster may have them as definitions of their own, one alone, or the same objects under several names. So all
 * are asked, in the order of the kind's table, and each object counts once. What comes back is as the server has
 * it, and its apiVersion and kind say where it was found: whatever is written of it goes there. pair.h is the
 * same for caches.
 */
#pragma once

#include "api/kind.h"
#include "kube/client.h"

/* NULL with NOT_FOUND, in the words of the first, when none has it. */
json_t *kube_get_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                     const char *name, struct err *e);
/* An array; NULL with NOT_FOUND when the server has none of the kind's groups. q may be NULL. */
json_t *kube_list_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                      const struct kube_query *q, struct err *e);
/* Where the object is written, which one of these two, or a cache, has given. Lives as long as it does. */
struct kube_resource kube_resource_of(const json_t *object);

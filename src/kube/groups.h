/*
 * Kinds that have more than one API group, such as CStorPoolCluster of openebs.io and
 * cstor.openebs.io, or LogicalVolume of topolvm.cybozu.com and topolvm.io.
 *
 * A cluster has such a kind in one group, in the other, in both, or not yet: what comes later is
 * found. Where both are names of the same objects, as on the embedded server, each object counts
 * once, as the first group has it: a uid says which are the same. Whatever is written of an object
 * goes to the group that it was read from.
 *
 *     struct kube_groups       the collection in caches, for controllers
 *     kube_get_any() and so    the same, asked of the server itself
 */
#pragma once

#include "api/kind.h"
#include "kube/manager.h"

enum { KUBE_GROUPS = 2 };

struct kube_groups {
    struct kube_resource resources[KUBE_GROUPS];
    struct kube_informer *informers[KUBE_GROUPS];
};

/* Versions as "topolvm.io/v1", literals; the first is that which counts. */
void kube_groups_init(struct kube_groups *g, struct kube_manager *m, const char *first,
                      const char *second, const char *kind);
/* The same of those alone that are in a namespace and have these labels; NULL: all. */
void kube_groups_init_some(struct kube_groups *g, struct kube_manager *m, const char *first,
                           const char *second, const char *kind, const char *ns,
                           const char *labels);
void kube_groups_add_index(struct kube_groups *g, const struct kube_index *index);
/* `source` without its informer: it is watched in both groups. */
void kube_groups_watch(struct kube_groups *g, struct kube_controller *c, struct kube_source source);

/* All that there are. Appends references. */
void kube_groups_list(struct kube_groups *g, struct kube_objects *ret_list);
void kube_groups_find(struct kube_groups *g, const char *index, const char *value,
                      struct kube_objects *ret_list);
/* A reference, or NULL. ns is NULL for what is cluster-scoped. */
struct kube_object *kube_groups_get(struct kube_groups *g, const char *ns, const char *name);
json_t *kube_groups_json(struct kube_groups *g, const char *ns, const char *name); /* NULL */
/*
 * Whether an object of the second group is one that the first has too, and so sees to. The cache
 * may not have it yet: then the server is asked. 1, 0, -1.
 */
int kube_groups_is_first(struct kube_groups *g, struct kube_client *c, const json_t *object,
                         struct err *e);
/* Where the object is written. */
const struct kube_resource *kube_groups_of(const struct kube_groups *g, const json_t *object);
/* The group of that name, if the server was seen to have it, else the other. */
const struct kube_resource *kube_groups_prefer(const struct kube_groups *g, const char *group);
/* Whether the server was seen to have that group; NULL: either. */
bool kube_groups_served(const struct kube_groups *g, const char *group);

/*
 * Asked of the server, in the order of the kind's table. What comes back is as the server has it,
 * and its apiVersion and kind say where it was found.
 */
/* NULL with NOT_FOUND, in the words of the first, when none has it. */
json_t *kube_get_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                     const char *name, struct err *e);
/* An array; NULL with NOT_FOUND when the server has none of the kind's groups. q may be NULL. */
json_t *kube_list_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                      const struct kube_query *q, struct err *e);
/*
 * Where the object is written, which one of these two, or a cache, has given. Lives as long as it
 * does.
 */
struct kube_resource kube_resource_of(const json_t *object);

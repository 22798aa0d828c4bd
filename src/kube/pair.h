/*
 * A kind that has two API groups, such as LogicalVolume of topolvm.cybozu.com and topolvm.io, as one
 * collection.
 *
 * A cluster has the kind in one group, in the other, in both, or not yet: what comes later is found. Where both
 * are names of the same objects, as on the embedded server, each is found once: a uid is counted once, as the
 * first group has it. Whatever is written of an object goes to the group that it was read from.
 *
 * The kind is cluster-scoped: a name is all it takes.
 */
#pragma once

#include "kube/manager.h"

enum { KUBE_PAIR = 2 };

struct kube_pair {
    struct kube_resource resources[KUBE_PAIR];
    struct kube_informer *informers[KUBE_PAIR];
};

/* Versions as "topolvm.io/v1", literals. */
void kube_pair_init(struct kube_pair *p, struct kube_manager *m, const char *first,
                    const char *second, const char *kind);
void kube_pair_add_index(struct kube_pair *p, const struct kube_index *index);
/* `source` without its informer: it is watched in both groups. */
void kube_pair_watch(struct kube_pair *p, struct kube_controller *c, struct kube_source source);

void kube_pair_find(struct kube_pair *p, const char *index, const char *value,
                    struct kube_objects *ret_list);
/* A reference, or NULL. */
struct kube_object *kube_pair_get(struct kube_pair *p, const char *name);
json_t *kube_pair_json(struct kube_pair *p, const char *name); /* NULL */
/* Where the object is written. */
const struct kube_resource *kube_pair_of(const struct kube_pair *p, const json_t *object);
/* The group of that name, if the server was seen to have it, else the other. */
const struct kube_resource *kube_pair_prefer(const struct kube_pair *p, const char *group);
/* Whether the server was seen to have that group; NULL: either. */
bool kube_pair_served(const struct kube_pair *p, const char *group);

/*
 * The LogicalVolumes of both groups, topolvm.cybozu.com and topolvm.io, as one collection.
 *
 * A cluster has the resources of one group, of the other, or of both. Where both are names of the same
 * objects, as on the embedded server, each is found once: a uid is counted once, as the first group has it.
 * Whatever is written of a volume goes to the group that it was read from.
 */
#pragma once

#include "kube/manager.h"

enum { TOPOLVM_GROUPS = 2 };

struct topolvm_lvs {
    struct kube_resource resources[TOPOLVM_GROUPS];
    struct kube_informer *informers[TOPOLVM_GROUPS];
};

void topolvm_lvs_init(struct topolvm_lvs *l, struct kube_manager *m);
void topolvm_lvs_add_index(struct topolvm_lvs *l, const struct kube_index *index);
/* `source` without its informer: it is watched in both groups. */
void topolvm_lvs_watch(struct topolvm_lvs *l, struct kube_controller *c, struct kube_source source);

void topolvm_lvs_find(struct topolvm_lvs *l, const char *index, const char *value,
                      struct kube_objects *ret_list);
/* A reference, or NULL. */
struct kube_object *topolvm_lvs_get(struct topolvm_lvs *l, const char *name);
json_t *topolvm_lvs_json(struct topolvm_lvs *l, const char *name); /* NULL */
/* From the server, whichever group has it; NULL with NOT_FOUND when none has. */
json_t *topolvm_lvs_ask(struct topolvm_lvs *l, struct kube_client *client, const char *name,
                        struct err *e);

/* Where the volume is written. */
const struct kube_resource *topolvm_lvs_of(const struct topolvm_lvs *l, const json_t *lv);
/* Where a provisioner's new volumes are made: in the group of its name, if the server has that. */
const struct kube_resource *topolvm_lvs_for(const struct topolvm_lvs *l, const char *provisioner);

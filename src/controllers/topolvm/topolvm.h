/*
 * Local volumes on LVM, the part that has no disk: claims become LogicalVolumes on a node with room,
 * LogicalVolumes become PersistentVolumes, and both follow their claim as it grows and goes.
 *
 *     claim ──> LogicalVolume ──(node makes it)──> PersistentVolume ──(binder)──> bound     provision.c,
 *               on a node with room                                                         place.c
 *     claim grows ──> spec.size ──(node grows it)──> capacity of both                       resize.c
 *     claim gone ──> LogicalVolume deleted ──(node removes it)──> PersistentVolume deleted  reclaim.c
 *     room of each node and class ──> CSIStorageCapacity, for the scheduler                 publish.c
 *     node that was forgotten ──> nobody waits for it                                       lifecycle.c
 *
 * All but the last are what external-provisioner and external-resizer do beside a CSI driver; on a
 * cluster that has those, topolvm-provisioner stays off. What is promised is in ledger.h.
 */
#pragma once

#include "controllers/topolvm/ledger.h"
#include "metrics/metrics.h"

struct topolvm {
    const struct clock *clock;
    struct kube_client *client;
    struct kube_recorder *recorder;
    struct metrics *metrics;
    struct topolvm_ledger *ledger;
    struct kube_resource claims_r, volumes_r, capacities_r, drivers_r;
    struct kube_informer *claims, *volumes, *classes, *capacities, *drivers;
};

int topolvm_setup_provision(struct topolvm *t, struct kube_manager *m, struct err *e);
int topolvm_setup_reclaim(struct topolvm *t, struct kube_manager *m, struct err *e);
int topolvm_setup_resize(struct topolvm *t, struct kube_manager *m, struct err *e);
int topolvm_setup_publish(struct topolvm *t, struct kube_manager *m, struct err *e);

/*
 * Promises room by creating the LogicalVolume `name`; `only`: on that node, NULL: where most room is.
 * 1: done; 0: there is no room, ret_why says how much there is where; -1.
 */
int topolvm_place(struct topolvm *t, const json_t *claim, const json_t *class, const char *only,
                  const char *name, struct str *ret_why, struct err *e);
/* The PersistentVolume of a LogicalVolume that is made, for its claim. */
json_t *topolvm_make_volume(const json_t *claim, const json_t *class, const json_t *lv,
                            const json_t *node);
/* {"topology.topolvm.io/node": NAME} where the node has that label, else its hostname. */
json_t *topolvm_topology(const json_t *node);

#define TOPOLVM_VOLUME_FINALIZER "external-provisioner.volume.kubernetes.io/finalizer"

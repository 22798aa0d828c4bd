/*
 * The agent of a node: its block devices and who has them, and that the node is alive.
 *
 *     uevents, every minute --> scan --> inventory --> BlockDevices      devices.c
 *                                            |
 *     BlockDeviceClaims <--- binds ----------'                           claims.c
 *     Node, Lease <--------- every 10 s                                  heartbeat.c
 *     LogicalVolumes <------ LVM                                         lvs.h
 *
 * Invariants:
 * - A device is given to one claim: the API server's optimistic concurrency on its BlockDevice decides,
 *   and only the node that has the device writes there.
 * - Nothing is written on a device that is not claimed, and nothing is wiped that was not released by
 *   its claim and then found, by a fresh look, to be the same device and unused.
 * - Each step can be the last before kill -9: what is in the API and on the device says what is next.
 */
#pragma once

#include "base/vec.h"
#include "kube/manager.h"
#include "node/device.h"
#include "node/lvs.h"
#include "node/sparse.h"

struct node_label_pair {
    const char *key, *value;
};

struct node_options {
    const char *name;     /* of the Node */
    const char *ns;       /* of BlockDevices and their claims */
    const char *data_dir; /* sparse files are in DATA/sparse */
    const char *address;  /* of the node; NULL: loopback */
    const char *pod_cidr; /* NULL: none */
    const char *program;  /* our own, for children that touch devices; NULL: none, for tests */
    struct node_sparse sparse;
    struct node_lvs_options lvs;
    struct node_filter filter; /* becomes the agent's */
    VEC(struct node_label_pair) labels;
    bool discover; /* look for real disks: false for all but one of several nodes on a machine */
    bool register_node;
    int64_t rescan_ns;                /* 0: a minute */
    int64_t lease_ns;                 /* of the node's Lease; 0: 40 s */
    const struct node_places *places; /* NULL: this machine */
};

/* Adds everything to the manager, which frees it. The texts must outlive it. */
int node_setup(struct kube_manager *m, struct node_options *o, struct err *e);

/* "a=b,c=d" to pairs; text is cut up. */
int node_labels_parse(char *text, struct node_options *o, struct err *e);

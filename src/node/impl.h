/*
 * What the parts of the agent share.
 */
#pragma once

#include <pthread.h>

#include "kube/condition.h"
#include "kube/manager.h"
#include "node/inventory.h"
#include "node/node.h"
#include "node/object.h"

struct node {
    struct kube_manager *manager;
    struct kube_client *client;
    struct kube_recorder *recorder;
    const struct clock *clock;
    struct kube_ages *ages;
    struct node_options options;
    struct node_inventory inventory;
    struct node_name name;
    char *host; /* name.host, when the Node says another than its name; NULL */
    char *sparse_folder;
    struct kube_resource device_kind, claim_kind, node_kind, lease_kind;
    struct kube_informer *devices, *claims, *nodes;
    struct kube_controller *device_controller, *claim_controller, *scan_controller, *heartbeat;
    /* Hot plug. */
    int uevents, stop_fd;
    pthread_t listener;
    bool listening;
    /* heartbeat.c */
    json_t *lease;          /* as we wrote it last; NULL */
    int64_t status_written; /* when, by the monotonic clock; 0: not yet */
    uint64_t warned;        /* bytes promised too much, when that was last said */
};

/*
 * Writes what differs, with the resourceVersion of *object, which becomes what the server has now: first the
 * object, then its status, which are two calls. Whoever is killed in between comes to the second again, for all
 * that is written follows from what is there.
 */
int node_write(struct node *n, const struct kube_resource *r, json_t **object, const json_t *wanted,
               struct err *e);
/* Its status alone; NULL: as it is. */
int node_say(struct node *n, const struct kube_resource *r, json_t **object, const json_t *status,
             struct err *e);

/* devices.c */
int node_devices_setup(struct node *n, struct err *e);
/* All BlockDevices of the namespace; json_decref each and vec_done. */
struct node_objects {
    json_t **p;
    size_t len, cap;
};
void node_devices_all(struct node *n, struct node_objects *ret);
void node_objects_done(struct node_objects *l);

/* claims.c */
int node_claims_setup(struct node *n, struct err *e);
/* All that wait for a device, or to go. */
void node_claims_again(struct node *n);

/* heartbeat.c */
int node_heartbeat_setup(struct node *n, struct err *e);

/* uevent.c: a thread that calls for a scan when the kernel says that devices changed. */
int node_uevents_start(struct node *n, struct err *e);
void node_uevents_stop(struct node *n);

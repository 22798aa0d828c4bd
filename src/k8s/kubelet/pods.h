/*
 * The pod runner: Pods that are bound to this node run as supervised processes of the host.
 *
 *     API --informer--> reconcile a pod --> orlop-shim, one per container --> the program
 *      ^                  |   ^   ^             |  holds the output, waits, records the end
 *      '---- status ------'   |   '-- ended ----'
 *                           probes
 *
 * Invariants:
 * - An instance of a container (its pod's uid, its name, a number that counts restarts) is started at
 *   most once, whoever is killed when. Its shim claims the number with a file that must not exist.
 * - A container outlives us: what comes after us finds it by its folder of state, and its end is in
 *   a file there before anybody can learn of it. So no end is lost and nothing runs twice.
 * - No process of a pod is left when the pod is: a shim adopts what its container leaves behind, and
 *   should the shim be gone, processes are found by a mark in their environment.
 *
 * Folders below data_dir (a namespace cannot begin with a dot):
 *
 *     pods/NAMESPACE/POD/CONTAINER.log           what the API server serves as logs
 *     pods/.state/UID/pod.json                   what is remembered of the pod
 *     pods/.state/UID/containers/NAME/N.status   instances, as their shims record them
 *     pods/.state/UID/volumes/NAME/              emptyDir, configMap, secret, projected, ...
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "kube/manager.h"

struct node_pods_options {
    const char *node;     /* its name */
    const char *address;  /* its address: hostIP */
    const char *pod_cidr; /* IPv4 network that pods get addresses of; NULL: they have the node's */
    const char *data_dir;
    const char *libexec; /* where orlop-shim and the programs of our images are */
    const char *cgroup;  /* cgroup v2 folder to put pods in; NULL: a child of our own if we may */
    bool allow_host_commands; /* of Pods that ask by annotation */
    bool stop_on_exit;        /* when the manager stops, so do all containers */
    /*
     * Where the volume of a claim is mounted, or -1: UNAVAILABLE for not yet. May be NULL: Pods with
     * claims wait and say why. release() is called when the pod is gone, at least once.
     */
    int (*claim)(void *context, const json_t *pod, const char *claim, bool read_only,
                 struct str *ret_path, struct err *e);
    void (*release)(void *context, const json_t *pod, const char *claim);
    void *claim_context;
    /* Of restarts; 0: 10 s, 5 min, and 10 min after which the delay is the first again. */
    int64_t backoff_ns, backoff_max_ns, backoff_reset_ns;
    int64_t refresh_ns; /* how often volumes follow their ConfigMaps and Secrets; 0: 1 min */
};

/* Adds the controller of pods to the manager, which frees it when it stops. Options are copied. */
int node_pods_setup(struct kube_manager *m, const struct node_pods_options *o, struct err *e);

/*
 * Stops every container below data_dir, whoever started it: SIGTERM, and after the grace SIGKILL.
 * For `orlop down` after a crash. No runner may be at work on the folder.
 */
int node_pods_stop_all(const char *data_dir, int64_t grace_ns, struct err *e);

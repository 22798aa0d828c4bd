/*
 * What a Kubernetes cluster would bring: controllers for workloads, a scheduler, the end of pods
 * whose node is gone, and the addresses behind services. Each sets itself up with a manager.
 *
 *     Deployment ──> ReplicaSet ──> Pod ──scheduler──> Pod on a node ──> Endpoints, EndpointSlice
 *     DaemonSet ────────────────────^        nodes that are lost ──> their pods are deleted
 *
 * What is to be done follows from functions of JSON values and numbers (pods.h, rollout.h,
 * schedule.h), which know no server; the controllers read, ask them, and write one step.
 */
#pragma once

#include "kube/manager.h"

int embedded_replica_sets(struct kube_manager *m, struct err *e);
int embedded_deployments(struct kube_manager *m, struct err *e);
int embedded_daemon_sets(struct kube_manager *m, struct err *e);
int embedded_stateful_sets(struct kube_manager *m, struct err *e);
int embedded_scheduler(struct kube_manager *m, struct err *e);
int embedded_binder(struct kube_manager *m, struct err *e);
int embedded_evictor(struct kube_manager *m, struct err *e);
int embedded_endpoints(struct kube_manager *m, struct err *e);
int embedded_node_lifecycle(struct kube_manager *m, struct err *e);
/* How long a node may be silent; before the setup. */
void embedded_node_grace(int64_t ns);

/*
 * Addresses of Services on this machine, for nodes that run Pods without a kube-proxy.
 */
#pragma once

#include "kube/manager.h"

/* Adds it to the manager, which frees it when it stops. */
int node_services_setup(struct kube_manager *m, struct err *e);

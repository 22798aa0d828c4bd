/*
 * The controllers that orlop-controller can run: Orlop's own, and those that a Kubernetes cluster
 * would bring.
 */
#include "controllers/controllers.h"

#include "k8s/controllers/embedded.h"

/* In alphabetical order. */
const struct controller controllers[] = {
    {"blockdevice-lifecycle", "marks devices whose node is silent", false,
     controllers_device_lifecycle},
    {"cspc-operator", "the pools of CStorPoolClusters: made, grown, mended, moved, removed", false,
     controllers_cspc},
    {"cstor-volume-controller", "targets, replicas and addresses of CStorVolumes", false,
     controllers_cstor_volume},
    {"cstorvolumeconfig-controller", "CStorVolumes for CStorVolumeConfigs", false, controllers_cvc},
    {"daemonset", "pods of DaemonSets, one on every node", true, embedded_daemon_sets},
    {"deployment", "ReplicaSets of Deployments, and moving from one to the next", true,
     embedded_deployments},
    {"endpoints", "the addresses behind services", true, embedded_endpoints},
    {"jiva-volume-controller", "targets, replicas and addresses of JivaVolumes", false,
     controllers_jiva_volume},
    {"jiva-volume-resize-controller", "JivaVolumes that grow, by JivaVolumeResizes", false,
     controllers_jiva_resize},
    {"node-lifecycle", "marks nodes that are silent, and their pods", true,
     embedded_node_lifecycle},
    {"persistentvolume-binder", "binds claims to volumes", true, embedded_binder},
    {"pod-eviction", "ends pods whose node is lost", true, embedded_evictor},
    {"replicaset", "pods of ReplicaSets", true, embedded_replica_sets},
    {"scheduler", "gives pods a node", true, embedded_scheduler},
    {"statefulset", "pods and claims of StatefulSets", true, embedded_stateful_sets},
    {"topolvm-controller", "LogicalVolumes of nodes that were forgotten", false,
     controllers_topolvm},
    {"topolvm-provisioner", "volumes for claims on LVM: made, grown, removed; room of nodes", true,
     controllers_topolvm_provisioner},
    {0},
};

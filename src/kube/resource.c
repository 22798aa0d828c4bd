#include "kube/resource.h"

#include <stdlib.h>

#include "api/kind.h"
#include "base/log.h"
#include "base/str.h"

const struct kube_resource kube_builtin_resources[] = {
    {"v1", "ConfigMap", "configmaps", true},
    {"v1", "Endpoints", "endpoints", true},
    {"v1", "Event", "events", true},
    {"v1", "Namespace", "namespaces", false},
    {"v1", "Node", "nodes", false},
    {"v1", "PersistentVolume", "persistentvolumes", false},
    {"v1", "PersistentVolumeClaim", "persistentvolumeclaims", true},
    {"v1", "Pod", "pods", true},
    {"v1", "ResourceQuota", "resourcequotas", true},
    {"v1", "Secret", "secrets", true},
    {"v1", "Service", "services", true},
    {"v1", "ServiceAccount", "serviceaccounts", true},
    {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
     "validatingwebhookconfigurations", false},
    {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false},
    {"apps/v1", "ControllerRevision", "controllerrevisions", true},
    {"apps/v1", "DaemonSet", "daemonsets", true},
    {"apps/v1", "Deployment", "deployments", true},
    {"apps/v1", "ReplicaSet", "replicasets", true},
    {"apps/v1", "StatefulSet", "statefulsets", true},
    {"certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", false},
    {"coordination.k8s.io/v1", "Lease", "leases", true},
    {"discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true},
    {"events.k8s.io/v1", "Event", "events", true},
    {"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true},
    {"rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false},
    {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false},
    {"rbac.authorization.k8s.io/v1", "Role", "roles", true},
    {"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true},
    {"scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false},
    {"snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots", true},
    {"snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "volumesnapshotclasses", false},
    {"snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "volumesnapshotcontents", false},
    {"storage.k8s.io/v1", "CSIDriver", "csidrivers", false},
    {"storage.k8s.io/v1", "CSINode", "csinodes", false},
    {"storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", true},
    {"storage.k8s.io/v1", "StorageClass", "storageclasses", false},
    {"storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", false},
    {0},
};

struct kube_resource kube_resource(const char *api_version, const char *kind)
{
    for (const struct kube_resource *r = kube_builtin_resources; r->kind; r++) {
        if (str_eq(r->kind, kind) && str_eq(r->api_version, api_version))
            return *r;
    }
    const struct api_kind *k = api_kind_find(api_version, kind, NULL);
    if (!k) {
        log_error("no such kind in the tables", LOG_S("apiVersion", api_version),
                  LOG_S("kind", kind));
        abort();
    }
    return (struct kube_resource){api_version, k->kind, k->plural,
                                  !(k->flags & API_CLUSTER_SCOPED)};
}

/*
 * The roles that every cluster has, and who has them.
 *
 * As in Kubernetes: cluster-admin; admin, edit and view, for use in namespaces, filled from roles
 * that have their labels, so that the kinds of others can be added to them; and what everybody may
 * see. Beside them, for each program of Orlop what it needs and no more.
 */
#include "k8s/apiserver/rbac_impl.h"

#define READ  "get list watch"
#define WRITE "create delete deletecollection patch update"

#define OPENEBS       "openebs.io cstor.openebs.io"
#define TOPOLVM       "topolvm.cybozu.com topolvm.io"
/* What people use in their namespaces, and what they may write of it. */
/* Not endpoints, as in Kubernetes: who writes them sends others, and this server, wherever they like. */
#define CORE_WRITABLE "configmaps events persistentvolumeclaims pods serviceaccounts services"
#define APPS_WRITABLE                                                                              \
    "daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets "         \
    "statefulsets/scale"
#define OPENEBS_ALL                                                                                \
    "blockdevices blockdeviceclaims cstorpoolclusters cstorpoolinstances cstorvolumes "            \
    "cstorvolumereplicas cstorvolumeconfigs cstorvolumepolicies jivavolumes jivavolumeresizes"
#define OPENEBS_STATUS                                                                             \
    "blockdevices/status blockdeviceclaims/status cstorpoolclusters/status "                       \
    "cstorpoolinstances/status cstorvolumes/status cstorvolumereplicas/status "                    \
    "cstorvolumeconfigs/status jivavolumes/status "                                                \
    "jivavolumeresizes/status"

static const struct rbac_default_rule cluster_admin[] = {
    {"*", "*", NULL, "*"},
    {.paths = "*", .verbs = "*"},
    {0},
};

static const struct rbac_default_rule view[] = {
    {"core",
     CORE_WRITABLE
     " endpoints limitranges namespaces namespaces/status persistentvolumeclaims/status pods/log"
     " pods/status resourcequotas resourcequotas/status services/status",
     NULL, READ},
    {"events.k8s.io", "events", NULL, READ},
    {"apps",
     APPS_WRITABLE " controllerrevisions daemonsets/status deployments/status replicasets/status"
                   " statefulsets/status",
     NULL, READ},
    {"batch", "cronjobs cronjobs/status jobs jobs/status", NULL, READ},
    {"discovery.k8s.io", "endpointslices", NULL, READ},
    {"policy", "poddisruptionbudgets poddisruptionbudgets/status", NULL, READ},
    {"snapshot.storage.k8s.io", "volumesnapshots volumesnapshots/status", NULL, READ},
    {OPENEBS, OPENEBS_ALL " " OPENEBS_STATUS, NULL, READ},
    {0},
};

static const struct rbac_default_rule edit[] = {
    {"core", "secrets", NULL, READ " " WRITE},
    {"core", "serviceaccounts", NULL, "impersonate"},
    {"core", "serviceaccounts/token", NULL, "create"},
    {"core", CORE_WRITABLE, NULL, WRITE},
    {"apps", APPS_WRITABLE, NULL, WRITE},
    {"batch", "cronjobs jobs", NULL, WRITE},
    {"policy", "poddisruptionbudgets", NULL, WRITE},
    {"coordination.k8s.io", "leases", NULL, READ " " WRITE},
    {"snapshot.storage.k8s.io", "volumesnapshots", NULL, WRITE},
    {OPENEBS, OPENEBS_ALL, NULL, WRITE},
    {0},
};

static const struct rbac_default_rule admin[] = {
    {"authorization.k8s.io", "localsubjectaccessreviews", NULL, "create"},
    {"rbac.authorization.k8s.io", "roles rolebindings", NULL, READ " " WRITE},
    {0},
};

static const struct rbac_default_rule discovery[] = {
    {.paths = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version "
              "/version/",
     .verbs = "get"},
    {0},
};

static const struct rbac_default_rule basic_user[] = {
    {"authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", NULL, "create"},
    {"authentication.k8s.io", "selfsubjectreviews", NULL, "create"},
    {0},
};

static const struct rbac_default_rule public_info[] = {
    {.paths = "/healthz /livez /readyz /version /version/", .verbs = "get"},
    {0},
};

static const struct rbac_default_rule auth_delegator[] = {
    {"authentication.k8s.io", "tokenreviews", NULL, "create"},
    {"authorization.k8s.io", "subjectaccessreviews", NULL, "create"},
    {0},
};

/*
 * A node: its pods, their volumes, and that it is alive. What is its own, rules_access.c says; which
 * Secrets, ConfigMaps, claims and volumes it may read, authz_node.c.
 */
static const struct rbac_default_rule node[] = {
    {"authentication.k8s.io", "tokenreviews", NULL, "create"},
    {"authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", NULL, "create"},
    {"core", "services endpoints", NULL, READ},
    {"core", "nodes", NULL, "create patch update " READ},
    {"core", "nodes/status pods/status", NULL, "patch update"},
    {"core", "pods", NULL, "create delete " READ},
    {"core", "serviceaccounts/token", NULL, "create"},
    {"core events.k8s.io", "events", NULL, "create patch update"},
    {"coordination.k8s.io", "leases", NULL, "create delete patch update " READ},
    {"storage.k8s.io", "csidrivers volumeattachments", NULL, READ},
    {"storage.k8s.io", "csinodes", NULL, "create delete patch update " READ},
    {"discovery.k8s.io", "endpointslices", NULL, READ},
    {"certificates.k8s.io", "certificatesigningrequests", NULL, "create " READ},
    {0},
};

/* A machine that joins asks for a certificate; the next two say which need no person to approve. */
static const struct rbac_default_rule node_bootstrapper[] = {
    {"certificates.k8s.io", "certificatesigningrequests", NULL, "create " READ},
    {0},
};

static const struct rbac_default_rule node_client[] = {
    {"certificates.k8s.io", "certificatesigningrequests/nodeclient", NULL, "create"},
    {0},
};

static const struct rbac_default_rule self_node_client[] = {
    {"certificates.k8s.io", "certificatesigningrequests/selfnodeclient", NULL, "create"},
    {0},
};

static const struct rbac_default_rule client_approver[] = {
    {"certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client", "approve"},
    {0},
};

static const struct rbac_default_rule kubelet_approver[] = {
    {"certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet", "approve"},
    {0},
};

/* By it a machine that knows nobody yet learns whom to trust; see cluster_info.c. */
static const struct rbac_default_rule cluster_info[] = {
    {"core", "configmaps", "cluster-info", "get"},
    {0},
};

/* The reconcilers, and in an embedded cluster those that Kubernetes would bring. */
static const struct rbac_default_rule orlop_controller[] = {
    {OPENEBS, OPENEBS_ALL " " OPENEBS_STATUS, NULL, READ " " WRITE},
    {TOPOLVM, "logicalvolumes logicalvolumes/status", NULL, READ " " WRITE},
    {"core",
     "configmaps endpoints namespaces nodes nodes/status persistentvolumeclaims "
     "persistentvolumeclaims/status persistentvolumes persistentvolumes/status pods pods/status "
     "services services/status",
     NULL, READ " " WRITE},
    {"core", "pods/binding", NULL, "create"},
    {"discovery.k8s.io", "endpointslices", NULL, READ " " WRITE},
    {"core", "limitranges resourcequotas", NULL, READ},
    /* Pods of volumes and pools have accounts of their own, with rights on what is theirs. */
    {"core", "secrets serviceaccounts", NULL, READ " create delete patch update"},
    {"rbac.authorization.k8s.io", "roles rolebindings", NULL, READ " create delete patch update"},
    {"rbac.authorization.k8s.io", "clusterrolebindings", NULL, "get create delete patch"},
    {"rbac.authorization.k8s.io", "clusterroles", "system:orlop:pool system:orlop:pool-nodes",
     "bind"},
    {"core events.k8s.io", "events", NULL, READ " " WRITE},
    {"apps",
     "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
     "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
     "statefulsets/scale statefulsets/status",
     NULL, READ " " WRITE},
    {"batch", "cronjobs cronjobs/status jobs jobs/status", NULL, READ " " WRITE},
    {"policy", "poddisruptionbudgets poddisruptionbudgets/status", NULL, READ " " WRITE},
    {"coordination.k8s.io", "leases", NULL, READ " " WRITE},
    {"storage.k8s.io",
     "csidrivers csinodes csistoragecapacities storageclasses volumeattachments "
     "volumeattachments/status volumeattributesclasses",
     NULL, READ " " WRITE},
    {"snapshot.storage.k8s.io",
     "volumesnapshotclasses volumesnapshotcontents volumesnapshotcontents/status volumesnapshots "
     "volumesnapshots/status",
     NULL, READ " " WRITE},
    {"scheduling.k8s.io", "priorityclasses", NULL, READ},
    {"apiextensions.k8s.io", "customresourcedefinitions", NULL, READ " create patch update"},
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations validatingwebhookconfigurations", NULL,
     READ " create patch update"},
    {"orlop.io", "pods", NULL, "run-host-commands"}, /* as templates say that were admitted */
    {0},
};

/* The agent of a node: its devices and their claims, logical volumes, and the pods it runs. */
static const struct rbac_default_rule orlop_node[] = {
    {OPENEBS, "blockdevices blockdeviceclaims", NULL, READ " patch update"},
    {OPENEBS, "blockdevices/status blockdeviceclaims/status", NULL, "get patch update"},
    {OPENEBS, "blockdevices", NULL, "create"},
    {"openebs.io", "blockdevices", NULL, "set-device-path"},
    {TOPOLVM, "logicalvolumes logicalvolumes/status", NULL, READ " patch update"},
    {"storage.k8s.io", "csistoragecapacities storageclasses", NULL, READ},
    {"core", "nodes pods", NULL, READ},
    {"core", "nodes nodes/status pods/status", NULL, "patch update"},
    {"core events.k8s.io", "events", NULL, "create patch update"},
    {"coordination.k8s.io", "leases", NULL, "create patch update " READ},
    {0},
};

/*
 * A pool: its instance and replicas, the devices and claims that it has, that it lives. Bound in the
 * namespace of the pool only.
 */
static const struct rbac_default_rule orlop_pool[] = {
    {OPENEBS, "cstorpoolinstances cstorvolumereplicas", NULL, READ " patch update"},
    {OPENEBS, "cstorpoolinstances/status cstorvolumereplicas/status", NULL, "get patch update"},
    {OPENEBS, "blockdevices cstorpoolclusters cstorvolumes", NULL, READ},
    {OPENEBS, "blockdeviceclaims", NULL, READ " delete patch update"},
    {"core events.k8s.io", "events", NULL, "create patch update"},
    {"coordination.k8s.io", "leases", NULL, "create delete patch update " READ},
    {0},
};

/* Whether the node that had a pool last still lives: then another does not take it. */
static const struct rbac_default_rule orlop_pool_nodes[] = {
    {"core", "nodes", NULL, "get list"},
    {0},
};

/* The CSI driver and the sidecars beside it. */
static const struct rbac_default_rule orlop_csi[] = {
    {OPENEBS, "cstorvolumes cstorvolumereplicas jivavolumes jivavolumeresizes", NULL,
     READ " create delete patch update"},
    {OPENEBS, "cstorpoolclusters cstorpoolinstances", NULL, READ},
    {TOPOLVM, "logicalvolumes", NULL, READ " create delete patch update"},
    {"core", "persistentvolumes", NULL, READ " create delete patch update"},
    {"core", "persistentvolumeclaims persistentvolumeclaims/status", NULL, READ " patch update"},
    {"core", "nodes pods secrets", NULL, READ},
    {"core events.k8s.io", "events", NULL, "create list patch update watch"},
    {"coordination.k8s.io", "leases", NULL, "create delete patch update " READ},
    {"storage.k8s.io", "csidrivers csinodes storageclasses volumeattributesclasses", NULL, READ},
    {"storage.k8s.io", "volumeattachments volumeattachments/status", NULL, READ " patch update"},
    {"storage.k8s.io", "csistoragecapacities", NULL, READ " create delete patch update"},
    {"apps", "replicasets daemonsets deployments statefulsets", NULL, "get"},
    {"snapshot.storage.k8s.io", "volumesnapshotclasses volumesnapshots", NULL,
     READ " patch update"},
    {"snapshot.storage.k8s.io",
     "volumesnapshotcontents volumesnapshotcontents/status volumesnapshots/status", NULL,
     READ " create delete patch update"},
    {0},
};

const struct rbac_default_role rbac_default_roles[] = {
    {"cluster-admin", cluster_admin},
    {"admin", NULL, .aggregate_from = "admin"},
    {"edit", NULL, .aggregate_from = "edit", .aggregate_to = "admin"},
    {"view", NULL, .aggregate_from = "view", .aggregate_to = "edit"},
    {"system:aggregate-to-admin", admin, .aggregate_to = "admin"},
    {"system:aggregate-to-edit", edit, .aggregate_to = "edit"},
    {"system:aggregate-to-view", view, .aggregate_to = "view"},
    {"system:auth-delegator", auth_delegator},
    {"system:basic-user", basic_user},
    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient", node_client},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", self_node_client},
    {"system:certificates.k8s.io:kube-apiserver-client-approver", client_approver},
    {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", kubelet_approver},
    {"system:discovery", discovery},
    {"system:node", node},
    {"system:node-bootstrapper", node_bootstrapper},
    {"system:orlop:controller", orlop_controller},
    {"system:orlop:csi", orlop_csi},
    {"system:orlop:node", orlop_node},
    {"system:orlop:pool", orlop_pool},
    {"system:orlop:pool-nodes", orlop_pool_nodes},
    {"system:public-info-viewer", public_info},
    {"kubeadm:bootstrap-signer-clusterinfo", cluster_info, .namespace = "kube-public"},
    {0},
};

const struct rbac_default_binding rbac_default_bindings[] = {
    {"cluster-admin", .groups = "system:masters"},
    {"system:basic-user", .groups = "system:authenticated"},
    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
     .groups = "system:bootstrappers"},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
     .groups = "system:nodes"},
    {"system:discovery", .groups = "system:authenticated"},
    {"system:node", .groups = "system:nodes"},
    {"system:node-bootstrapper", .groups = "system:bootstrappers"},
    {"system:orlop:controller", .users = "system:orlop-controller"},
    {"system:orlop:csi", .users = "system:orlop:csi"},
    {"system:orlop:node", .groups = "system:nodes"},
    {"system:public-info-viewer", .groups = "system:authenticated system:unauthenticated"},
    {"kubeadm:bootstrap-signer-clusterinfo", .users = "system:anonymous",
     .namespace = "kube-public"},
    {0},
};

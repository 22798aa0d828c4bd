/*
 * Volumes, claims and storage drivers. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message glusterfs_persistent_volume_source = {
    STRING(1, "endpoints"), STRING(2, "path"), BOOL(3, "readOnly"),
    GIVEN(4, "endpointsNamespace", STRING), {0},
};

static message secret_reference = {
    STRING(1, "name"), STRING(2, "namespace"), {0},
};

static message rbd_persistent_volume_source = {
    STRINGS(1, "monitors"), STRING(2, "image"), STRING(3, "fsType"), STRING(4, "pool"),
    STRING(5, "user"), STRING(6, "keyring"), ONE(7, "secretRef", secret_reference),
    BOOL(8, "readOnly"), {0},
};

static message iscsi_persistent_volume_source = {
    STRING(1, "targetPortal"), STRING(2, "iqn"), INT(3, "lun"), STRING(4, "iscsiInterface"),
    STRING(5, "fsType"), BOOL(6, "readOnly"), STRINGS(7, "portals"), BOOL(8, "chapAuthDiscovery"),
    ONE(10, "secretRef", secret_reference), BOOL(11, "chapAuthSession"),
    GIVEN(12, "initiatorName", STRING), {0},
};

static message cinder_persistent_volume_source = {
    STRING(1, "volumeID"), STRING(2, "fsType"), BOOL(3, "readOnly"),
    ONE(4, "secretRef", secret_reference), {0},
};

static message ceph_fs_persistent_volume_source = {
    STRINGS(1, "monitors"), STRING(2, "path"), STRING(3, "user"), STRING(4, "secretFile"),
    ONE(5, "secretRef", secret_reference), BOOL(6, "readOnly"), {0},
};

static message flex_persistent_volume_source = {
    STRING(1, "driver"), STRING(2, "fsType"), ONE(3, "secretRef", secret_reference),
    BOOL(4, "readOnly"), MAP(5, "options"), {0},
};

static message azure_file_persistent_volume_source = {
    STRING(1, "secretName"), STRING(2, "shareName"), BOOL(3, "readOnly"),
    GIVEN(4, "secretNamespace", STRING), {0},
};

static message scale_io_persistent_volume_source = {
    STRING(1, "gateway"), STRING(2, "system"), ONE(3, "secretRef", secret_reference),
    BOOL(4, "sslEnabled"), STRING(5, "protectionDomain"), STRING(6, "storagePool"),
    STRING(7, "storageMode"), STRING(8, "volumeName"), STRING(9, "fsType"), BOOL(10, "readOnly"),
    {0},
};

static message local_volume_source = {
    STRING(1, "path"), GIVEN(2, "fsType", STRING), {0},
};

static message storage_os_persistent_volume_source = {
    STRING(1, "volumeName"), STRING(2, "volumeNamespace"), STRING(3, "fsType"), BOOL(4, "readOnly"),
    ONE(5, "secretRef", message_object_reference), {0},
};

static message csi_persistent_volume_source = {
    STRING(1, "driver"), STRING(2, "volumeHandle"), BOOL(3, "readOnly"), STRING(4, "fsType"),
    MAP(5, "volumeAttributes"), ONE(6, "controllerPublishSecretRef", secret_reference),
    ONE(7, "nodeStageSecretRef", secret_reference),
    ONE(8, "nodePublishSecretRef", secret_reference),
    ONE(9, "controllerExpandSecretRef", secret_reference),
    ONE(10, "nodeExpandSecretRef", secret_reference), {0},
};

static message persistent_volume_source = {
    ONE(1, "gcePersistentDisk", message_gce_persistent_disk_volume_source),
    ONE(2, "awsElasticBlockStore", message_aws_elastic_block_store_volume_source),
    ONE(3, "hostPath", message_host_path_volume_source),
    ONE(4, "glusterfs", glusterfs_persistent_volume_source),
    ONE(5, "nfs", message_nfs_volume_source), ONE(6, "rbd", rbd_persistent_volume_source),
    ONE(7, "iscsi", iscsi_persistent_volume_source),
    ONE(8, "cinder", cinder_persistent_volume_source),
    ONE(9, "cephfs", ceph_fs_persistent_volume_source), ONE(10, "fc", message_fc_volume_source),
    ONE(11, "flocker", message_flocker_volume_source),
    ONE(12, "flexVolume", flex_persistent_volume_source),
    ONE(13, "azureFile", azure_file_persistent_volume_source),
    ONE(14, "vsphereVolume", message_vsphere_virtual_disk_volume_source),
    ONE(15, "quobyte", message_quobyte_volume_source),
    ONE(16, "azureDisk", message_azure_disk_volume_source),
    ONE(17, "photonPersistentDisk", message_photon_persistent_disk_volume_source),
    ONE(18, "portworxVolume", message_portworx_volume_source),
    ONE(19, "scaleIO", scale_io_persistent_volume_source), ONE(20, "local", local_volume_source),
    ONE(21, "storageos", storage_os_persistent_volume_source),
    ONE(22, "csi", csi_persistent_volume_source), {0},
};

static message volume_node_affinity = {
    ONE(1, "required", message_node_selector), {0},
};

static message persistent_volume_spec = {
    QUANTITIES(1, "capacity"), INLINE(2, persistent_volume_source), STRINGS(3, "accessModes"),
    ONE(4, "claimRef", message_object_reference), STRING(5, "persistentVolumeReclaimPolicy"),
    STRING(6, "storageClassName"), STRINGS(7, "mountOptions"), GIVEN(8, "volumeMode", STRING),
    ONE(9, "nodeAffinity", volume_node_affinity), GIVEN(10, "volumeAttributesClassName", STRING),
    {0},
};

static message persistent_volume_status = {
    STRING(1, "phase"), STRING(2, "message"), STRING(3, "reason"),
    TIME(4, "lastPhaseTransitionTime"), {0},
};

message message_persistent_volume = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", persistent_volume_spec),
    ONE(3, "status", persistent_volume_status), {0},
};

static message persistent_volume_claim_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastProbeTime"), TIME(4, "lastTransitionTime"),
    STRING(5, "reason"), STRING(6, "message"), {0},
};

static message modify_volume_status = {
    STRING(1, "targetVolumeAttributesClassName"), STRING(2, "status"), {0},
};

static message volume_health_status = {
    MANY(1, "healthConditions", message_volume_health_condition), TIME(2, "lastTransitionTime"),
    {0},
};

static message persistent_volume_claim_status = {
    STRING(1, "phase"), STRINGS(2, "accessModes"), QUANTITIES(3, "capacity"),
    MANY(4, "conditions", persistent_volume_claim_condition), QUANTITIES(5, "allocatedResources"),
    MAP(7, "allocatedResourceStatuses"), GIVEN(8, "currentVolumeAttributesClassName", STRING),
    ONE(9, "modifyVolumeStatus", modify_volume_status),
    ONE(10, "healthStatus", volume_health_status), {0},
};

message message_persistent_volume_claim = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", message_persistent_volume_claim_spec),
    ONE(3, "status", persistent_volume_claim_status), {0},
};

static message topology_selector_label_requirement = {
    STRING(1, "key"), STRINGS(2, "values"), {0},
};

static message topology_selector_term = {
    MANY(1, "matchLabelExpressions", topology_selector_label_requirement), {0},
};

message message_storage_class = {
    ONE(1, "metadata", message_metadata), STRING(2, "provisioner"), MAP(3, "parameters"),
    GIVEN(4, "reclaimPolicy", STRING), STRINGS(5, "mountOptions"),
    GIVEN(6, "allowVolumeExpansion", BOOL), GIVEN(7, "volumeBindingMode", STRING),
    MANY(8, "allowedTopologies", topology_selector_term), {0},
};

static message volume_node_resources = {
    GIVEN(1, "count", INT), {0},
};

static message csi_node_driver = {
    STRING(1, "name"), STRING(2, "nodeID"), STRINGS(3, "topologyKeys"),
    ONE(4, "allocatable", volume_node_resources), {0},
};

static message csi_node_spec = {
    MANY(1, "drivers", csi_node_driver), {0},
};

static message storage_health_condition = {
    STRING(1, "status"), STRING(2, "reason"), STRING(3, "message"), GIVEN(4, "accessMode", STRING),
    GIVEN(5, "volumeMode", STRING), TIME(6, "lastTransitionTime"), {0},
};

static message storage_health = {
    STRING(1, "name"), MANY(2, "healthConditions", storage_health_condition), {0},
};

static message csi_node_status = {
    MANY(1, "storageHealth", storage_health), {0},
};

message message_csi_node = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", csi_node_spec),
    ONE(3, "status", csi_node_status), {0},
};

static message token_request = {
    STRING(1, "audience"), GIVEN(2, "expirationSeconds", INT), {0},
};

static message csi_driver_spec = {
    GIVEN(1, "attachRequired", BOOL), GIVEN(2, "podInfoOnMount", BOOL),
    STRINGS(3, "volumeLifecycleModes"), GIVEN(4, "storageCapacity", BOOL),
    GIVEN(5, "fsGroupPolicy", STRING), MANY(6, "tokenRequests", token_request),
    GIVEN(7, "requiresRepublish", BOOL), GIVEN(8, "seLinuxMount", BOOL),
    GIVEN(9, "nodeAllocatableUpdatePeriodSeconds", INT),
    GIVEN(10, "serviceAccountTokenInSecrets", BOOL),
    GIVEN(11, "preventPodSchedulingIfMissing", BOOL), {0},
};

message message_csi_driver = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", csi_driver_spec), {0},
};

static message volume_attachment_source = {
    GIVEN(1, "persistentVolumeName", STRING), ONE(2, "inlineVolumeSpec", persistent_volume_spec),
    {0},
};

static message volume_attachment_spec = {
    STRING(1, "attacher"), ONE(2, "source", volume_attachment_source), STRING(3, "nodeName"), {0},
};

static message volume_error = {
    TIME(1, "time"), STRING(2, "message"), GIVEN(3, "errorCode", INT), {0},
};

static message volume_attachment_status = {
    BOOL(1, "attached"), MAP(2, "attachmentMetadata"), ONE(3, "attachError", volume_error),
    ONE(4, "detachError", volume_error), {0},
};

message message_volume_attachment = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", volume_attachment_spec),
    ONE(3, "status", volume_attachment_status), {0},
};

message message_csi_storage_capacity = {
    ONE(1, "metadata", message_metadata), ONE(2, "nodeTopology", message_label_selector),
    STRING(3, "storageClassName"), QUANTITY(4, "capacity"), QUANTITY(5, "maximumVolumeSize"), {0},
};

message message_volume_attributes_class = {
    ONE(1, "metadata", message_metadata), STRING(2, "driverName"), MAP(3, "parameters"), {0},
};
/* clang-format on */

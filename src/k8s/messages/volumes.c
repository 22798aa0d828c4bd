/*
 * Volumes of pods, and what claims ask for. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
message message_host_path_volume_source = {
    STRING(1, "path"), GIVEN(2, "type", STRING), {0},
};

static message empty_dir_volume_source = {
    STRING(1, "medium"), QUANTITY(2, "sizeLimit"), GIVEN(3, "mode", INT), {0},
};

message message_gce_persistent_disk_volume_source = {
    STRING(1, "pdName"), STRING(2, "fsType"), INT(3, "partition"), BOOL(4, "readOnly"), {0},
};

message message_aws_elastic_block_store_volume_source = {
    STRING(1, "volumeID"), STRING(2, "fsType"), INT(3, "partition"), BOOL(4, "readOnly"), {0},
};

static message git_repo_volume_source = {
    STRING(1, "repository"), STRING(2, "revision"), STRING(3, "directory"), {0},
};

static message key_to_path = {
    STRING(1, "key"), STRING(2, "path"), GIVEN(3, "mode", INT), GIVEN(4, "user", INT), {0},
};

static message secret_volume_source = {
    STRING(1, "secretName"), MANY(2, "items", key_to_path), GIVEN(3, "defaultMode", INT),
    GIVEN(4, "optional", BOOL), GIVEN(5, "defaultUser", INT), {0},
};

message message_nfs_volume_source = {
    STRING(1, "server"), STRING(2, "path"), BOOL(3, "readOnly"), {0},
};

static message iscsi_volume_source = {
    STRING(1, "targetPortal"), STRING(2, "iqn"), INT(3, "lun"), STRING(4, "iscsiInterface"),
    STRING(5, "fsType"), BOOL(6, "readOnly"), STRINGS(7, "portals"), BOOL(8, "chapAuthDiscovery"),
    ONE(10, "secretRef", message_local_reference), BOOL(11, "chapAuthSession"),
    GIVEN(12, "initiatorName", STRING), {0},
};

static message glusterfs_volume_source = {
    STRING(1, "endpoints"), STRING(2, "path"), BOOL(3, "readOnly"), {0},
};

static message persistent_volume_claim_volume_source = {
    STRING(1, "claimName"), BOOL(2, "readOnly"), {0},
};

static message rbd_volume_source = {
    STRINGS(1, "monitors"), STRING(2, "image"), STRING(3, "fsType"), STRING(4, "pool"),
    STRING(5, "user"), STRING(6, "keyring"), ONE(7, "secretRef", message_local_reference),
    BOOL(8, "readOnly"), {0},
};

static message flex_volume_source = {
    STRING(1, "driver"), STRING(2, "fsType"), ONE(3, "secretRef", message_local_reference),
    BOOL(4, "readOnly"), MAP(5, "options"), {0},
};

static message cinder_volume_source = {
    STRING(1, "volumeID"), STRING(2, "fsType"), BOOL(3, "readOnly"),
    ONE(4, "secretRef", message_local_reference), {0},
};

static message ceph_fs_volume_source = {
    STRINGS(1, "monitors"), STRING(2, "path"), STRING(3, "user"), STRING(4, "secretFile"),
    ONE(5, "secretRef", message_local_reference), BOOL(6, "readOnly"), {0},
};

message message_flocker_volume_source = {
    STRING(1, "datasetName"), STRING(2, "datasetUUID"), {0},
};

message message_object_field_selector = {
    STRING(1, "apiVersion"), STRING(2, "fieldPath"), {0},
};

message message_resource_field_selector = {
    STRING(1, "containerName"), STRING(2, "resource"), QUANTITY(3, "divisor"), {0},
};

static message downward_api_volume_file = {
    STRING(1, "path"), ONE(2, "fieldRef", message_object_field_selector),
    ONE(3, "resourceFieldRef", message_resource_field_selector), GIVEN(4, "mode", INT),
    GIVEN(5, "user", INT), {0},
};

static message downward_api_volume_source = {
    MANY(1, "items", downward_api_volume_file), GIVEN(2, "defaultMode", INT),
    GIVEN(3, "defaultUser", INT), {0},
};

message message_fc_volume_source = {
    STRINGS(1, "targetWWNs"), GIVEN(2, "lun", INT), STRING(3, "fsType"), BOOL(4, "readOnly"),
    STRINGS(5, "wwids"), {0},
};

static message azure_file_volume_source = {
    STRING(1, "secretName"), STRING(2, "shareName"), BOOL(3, "readOnly"), {0},
};

static message config_map_volume_source = {
    INLINE(1, message_local_reference), MANY(2, "items", key_to_path),
    GIVEN(3, "defaultMode", INT), GIVEN(4, "optional", BOOL), GIVEN(5, "defaultUser", INT), {0},
};

message message_vsphere_virtual_disk_volume_source = {
    STRING(1, "volumePath"), STRING(2, "fsType"), STRING(3, "storagePolicyName"),
    STRING(4, "storagePolicyID"), {0},
};

message message_quobyte_volume_source = {
    STRING(1, "registry"), STRING(2, "volume"), BOOL(3, "readOnly"), STRING(4, "user"),
    STRING(5, "group"), STRING(6, "tenant"), {0},
};

message message_azure_disk_volume_source = {
    STRING(1, "diskName"), STRING(2, "diskURI"), GIVEN(3, "cachingMode", STRING),
    GIVEN(4, "fsType", STRING), GIVEN(5, "readOnly", BOOL), GIVEN(6, "kind", STRING), {0},
};

message message_photon_persistent_disk_volume_source = {
    STRING(1, "pdID"), STRING(2, "fsType"), {0},
};

message message_portworx_volume_source = {
    STRING(1, "volumeID"), STRING(2, "fsType"), BOOL(3, "readOnly"), {0},
};

static message scale_io_volume_source = {
    STRING(1, "gateway"), STRING(2, "system"), ONE(3, "secretRef", message_local_reference),
    BOOL(4, "sslEnabled"), STRING(5, "protectionDomain"), STRING(6, "storagePool"),
    STRING(7, "storageMode"), STRING(8, "volumeName"), STRING(9, "fsType"), BOOL(10, "readOnly"),
    {0},
};

static message secret_projection = {
    INLINE(1, message_local_reference), MANY(2, "items", key_to_path), GIVEN(4, "optional", BOOL),
    {0},
};

static message downward_api_projection = {
    MANY(1, "items", downward_api_volume_file), {0},
};

static message config_map_projection = {
    INLINE(1, message_local_reference), MANY(2, "items", key_to_path), GIVEN(4, "optional", BOOL),
    {0},
};

static message service_account_token_projection = {
    STRING(1, "audience"), GIVEN(2, "expirationSeconds", INT), STRING(3, "path"),
    GIVEN(4, "user", INT), {0},
};

static message cluster_trust_bundle_projection = {
    GIVEN(1, "name", STRING), GIVEN(2, "signerName", STRING),
    ONE(3, "labelSelector", message_label_selector), STRING(4, "path"), GIVEN(5, "optional", BOOL),
    GIVEN(6, "user", INT), {0},
};

static message pod_certificate_projection = {
    STRING(1, "signerName"), STRING(2, "keyType"), GIVEN(3, "maxExpirationSeconds", INT),
    STRING(4, "credentialBundlePath"), STRING(5, "keyPath"), STRING(6, "certificateChainPath"),
    MAP(7, "userAnnotations"), GIVEN(8, "user", INT), {0},
};

static message volume_projection = {
    ONE(1, "secret", secret_projection), ONE(2, "downwardAPI", downward_api_projection),
    ONE(3, "configMap", config_map_projection),
    ONE(4, "serviceAccountToken", service_account_token_projection),
    ONE(5, "clusterTrustBundle", cluster_trust_bundle_projection),
    ONE(6, "podCertificate", pod_certificate_projection), {0},
};

static message projected_volume_source = {
    MANY(1, "sources", volume_projection), GIVEN(2, "defaultMode", INT),
    GIVEN(3, "defaultUser", INT), {0},
};

static message storage_os_volume_source = {
    STRING(1, "volumeName"), STRING(2, "volumeNamespace"), STRING(3, "fsType"), BOOL(4, "readOnly"),
    ONE(5, "secretRef", message_local_reference), {0},
};

static message csi_volume_source = {
    STRING(1, "driver"), GIVEN(2, "readOnly", BOOL), GIVEN(3, "fsType", STRING),
    MAP(4, "volumeAttributes"), ONE(5, "nodePublishSecretRef", message_local_reference), {0},
};

static message volume_resource_requirements = {
    QUANTITIES(1, "limits"), QUANTITIES(2, "requests"), {0},
};

static message typed_local_object_reference = {
    GIVEN(1, "apiGroup", STRING), STRING(2, "kind"), STRING(3, "name"), {0},
};

static message typed_object_reference = {
    GIVEN(1, "apiGroup", STRING), STRING(2, "kind"), STRING(3, "name"),
    GIVEN(4, "namespace", STRING), {0},
};

message message_persistent_volume_claim_spec = {
    STRINGS(1, "accessModes"), ONE(2, "resources", volume_resource_requirements),
    STRING(3, "volumeName"), ONE(4, "selector", message_label_selector),
    GIVEN(5, "storageClassName", STRING), GIVEN(6, "volumeMode", STRING),
    ONE(7, "dataSource", typed_local_object_reference),
    ONE(8, "dataSourceRef", typed_object_reference), GIVEN(9, "volumeAttributesClassName", STRING),
    {0},
};

static message persistent_volume_claim_template = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", message_persistent_volume_claim_spec),
    {0},
};

static message ephemeral_volume_source = {
    ONE(1, "volumeClaimTemplate", persistent_volume_claim_template), {0},
};

static message image_volume_source = {
    STRING(1, "reference"), STRING(2, "pullPolicy"), {0},
};

static message volume_source = {
    ONE(1, "hostPath", message_host_path_volume_source),
    ONE(2, "emptyDir", empty_dir_volume_source),
    ONE(3, "gcePersistentDisk", message_gce_persistent_disk_volume_source),
    ONE(4, "awsElasticBlockStore", message_aws_elastic_block_store_volume_source),
    ONE(5, "gitRepo", git_repo_volume_source), ONE(6, "secret", secret_volume_source),
    ONE(7, "nfs", message_nfs_volume_source), ONE(8, "iscsi", iscsi_volume_source),
    ONE(9, "glusterfs", glusterfs_volume_source),
    ONE(10, "persistentVolumeClaim", persistent_volume_claim_volume_source),
    ONE(11, "rbd", rbd_volume_source), ONE(12, "flexVolume", flex_volume_source),
    ONE(13, "cinder", cinder_volume_source), ONE(14, "cephfs", ceph_fs_volume_source),
    ONE(15, "flocker", message_flocker_volume_source),
    ONE(16, "downwardAPI", downward_api_volume_source), ONE(17, "fc", message_fc_volume_source),
    ONE(18, "azureFile", azure_file_volume_source), ONE(19, "configMap", config_map_volume_source),
    ONE(20, "vsphereVolume", message_vsphere_virtual_disk_volume_source),
    ONE(21, "quobyte", message_quobyte_volume_source),
    ONE(22, "azureDisk", message_azure_disk_volume_source),
    ONE(23, "photonPersistentDisk", message_photon_persistent_disk_volume_source),
    ONE(24, "portworxVolume", message_portworx_volume_source),
    ONE(25, "scaleIO", scale_io_volume_source), ONE(26, "projected", projected_volume_source),
    ONE(27, "storageos", storage_os_volume_source), ONE(28, "csi", csi_volume_source),
    ONE(29, "ephemeral", ephemeral_volume_source), ONE(30, "image", image_volume_source), {0},
};

message message_volume = {
    STRING(1, "name"), INLINE(2, volume_source), {0},
};
/* clang-format on */

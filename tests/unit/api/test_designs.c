/*
 * Every field and word that the designs name, and that the published forms name for them, is in the
 * tables. The lists are written from the designs, not from the tables, so that a field that gets lost
 * is missed.
 */
#include "api/manifest.h"

/* Paths through objects, lists and maps alike. */
static const struct {
    const char *api_version, *kind;
    const char *const *paths;
} designs[] = {
    {"openebs.io/v1alpha1", "CStorPoolCluster",
     API_WORDS(
         "spec.pools.nodeSelector", "spec.pools.raidGroups.type", "spec.pools.raidGroups.name",
         "spec.pools.raidGroups.isWriteCache", "spec.pools.raidGroups.isSpare",
         "spec.pools.raidGroups.isReadCache", "spec.pools.raidGroups.blockDevices.blockDeviceName",
         "spec.pools.raidGroups.blockDevices.capacity",
         "spec.pools.raidGroups.blockDevices.devLink", "spec.pools.poolConfig.cacheFile",
         "spec.pools.poolConfig.defaultRaidGroupType", "spec.pools.poolConfig.overProvisioning",
         "spec.pools.poolConfig.compression", "status.phase", "status.capacity.total",
         "status.capacity.free", "status.capacity.used")},
    {"cstor.openebs.io/v1", "CStorPoolCluster",
     API_WORDS("spec.pools.dataRaidGroups.blockDevices.blockDeviceName",
               "spec.pools.dataRaidGroups.cspiBlockDevices.blockDeviceName",
               "spec.pools.writeCacheRaidGroups.blockDevices.capacity",
               "spec.pools.poolConfig.dataRaidGroupType",
               "spec.pools.poolConfig.writeCacheGroupType", "spec.pools.poolConfig.thickProvision",
               "spec.pools.poolConfig.resources", "spec.pools.poolConfig.auxResources",
               "spec.pools.poolConfig.tolerations", "spec.pools.poolConfig.priorityClassName",
               "spec.pools.poolConfig.roThresholdLimit", "spec.resources", "spec.auxResources",
               "spec.tolerations", "spec.priorityClassName", "status.provisionedInstances",
               "status.desiredInstances", "status.healthyInstances", "status.conditions.type",
               "versionDetails.autoUpgrade", "versionDetails.desired",
               "versionDetails.status.current", "versionDetails.status.dependentsUpgraded",
               "versionDetails.status.state", "versionDetails.status.message",
               "versionDetails.status.reason", "versionDetails.status.lastUpdateTime")},
    {"openebs.io/v1alpha1", "CStorPoolInstance",
     API_WORDS("spec.hostName", "spec.nodeSelector", "spec.poolConfig.cacheFile",
               "spec.raidGroup.blockDevices.devLink", "spec.raidGroups.type", "status.phase")},
    {"cstor.openebs.io/v1", "CStorPoolInstance",
     API_WORDS("spec.dataRaidGroups.blockDevices.capacity", "spec.writeCacheRaidGroups.type",
               "status.capacity.used", "status.capacity.free", "status.capacity.total",
               "status.capacity.zfs.logicalUsed", "status.readOnly", "status.provisionedReplicas",
               "status.healthyReplicas", "status.conditions.type", "versionDetails.desired")},
    {"cstor.openebs.io/v1", "CStorVolume",
     API_WORDS("spec.capacity", "spec.targetIP", "spec.targetPort", "spec.iqn", "spec.targetPortal",
               "spec.replicationFactor", "spec.consistencyFactor", "spec.desiredReplicationFactor",
               "spec.replicaDetails.knownReplicas", "versionDetails.desired", "status.phase",
               "status.replicaStatuses.replicaId", "status.replicaStatuses.mode",
               "status.replicaStatuses.checkpointedIOSeq", "status.replicaStatuses.inflightRead",
               "status.replicaStatuses.inflightWrite", "status.replicaStatuses.inflightSync",
               "status.replicaStatuses.upTime", "status.replicaStatuses.quorum", "status.capacity",
               "status.lastTransitionTime", "status.lastUpdateTime", "status.message",
               "status.conditions.type", "status.conditions.status",
               "status.conditions.lastProbeTime", "status.conditions.lastTransitionTime",
               "status.conditions.reason", "status.conditions.message",
               "status.replicaDetails.knownReplicas")},
    {"openebs.io/v1alpha1", "CStorVolume", API_WORDS("spec.status", "spec.nodeBase")},
    {"cstor.openebs.io/v1", "CStorVolumeReplica",
     API_WORDS("spec.targetIP", "spec.capacity", "spec.zvolWorkers", "spec.replicaid",
               "spec.compression", "spec.blockSize", "status.phase", "status.capacity.total",
               "status.capacity.used", "status.lastTransitionTime", "status.lastUpdateTime",
               "status.message", "status.snapshots.logicalReferenced",
               "status.pendingSnapshots.logicalReferenced", "versionDetails.status.current")},
    {"openebs.io/v1alpha1", "CStorVolumeReplica", API_WORDS("status.capacity.totalAllocated")},
    {"openebs.io/v1alpha1", "BlockDevice",
     API_WORDS("spec.nodeAttributes.nodeName", "spec.path", "spec.capacity.storage",
               "spec.capacity.physicalSectorSize", "spec.capacity.logicalSectorSize",
               "spec.details.deviceType", "spec.details.driveType", "spec.details.logicalBlockSize",
               "spec.details.physicalBlockSize", "spec.details.hardwareSectorSize",
               "spec.details.model", "spec.details.compliance", "spec.details.serial",
               "spec.details.vendor", "spec.details.firmwareRevision", "spec.claimRef.name",
               "spec.devlinks.kind", "spec.devlinks.links", "spec.filesystem.fsType",
               "spec.filesystem.mountPoint", "spec.partitioned", "spec.parentDevice",
               "spec.aggregateDevice", "status.claimState", "status.state")},
    {"openebs.io/v1alpha1", "BlockDeviceClaim",
     API_WORDS("spec.selector.matchLabels", "spec.resources.requests", "spec.deviceType",
               "spec.hostName", "spec.deviceClaimDetails.blockVolumeMode",
               "spec.deviceClaimDetails.formatType", "spec.deviceClaimDetails.allowPartition",
               "spec.blockDeviceName", "spec.blockDeviceNodeAttributes.nodeName",
               "spec.blockDeviceNodeAttributes.hostName", "status.phase")},
    {"openebs.io/v1alpha1", "JivaVolume",
     API_WORDS("spec.capacity", "spec.lun", "iscsi.iqn", "iscsi.targetPortal", "service.name",
               "service.namespace", "targetDeployment.name", "targetDeployment.namespace",
               "replicaDeployment.name", "replicaDeployment.namespace", "status")},
    {"openebs.io/v1", "JivaVolume",
     API_WORDS("spec.pv", "spec.accessType", "spec.iscsiSpec.targetIP", "spec.iscsiSpec.targetPort",
               "spec.iscsiSpec.iqn", "spec.mountInfo.stagingPath", "spec.mountInfo.targetPath",
               "spec.mountInfo.fsType", "spec.mountInfo.devicePath", "spec.policy.replicaSC",
               "spec.policy.serviceAccountName", "spec.policy.priorityClassName",
               "spec.policy.target.disableMonitor", "spec.policy.target.replicationFactor",
               "spec.policy.target.auxResources", "spec.policy.target.resources",
               "spec.policy.target.tolerations", "spec.policy.target.affinity",
               "spec.policy.target.nodeSelector", "spec.policy.replica.resources",
               "spec.policy.replica.tolerations", "spec.policy.replica.affinity",
               "spec.policy.replica.nodeSelector", "spec.desiredReplicationFactor", "status.status",
               "status.replicaCount", "status.replicaStatus.address", "status.replicaStatus.mode",
               "status.phase", "versionDetails.desired")},
    {"openebs.io/v1alpha1", "JivaVolumeResize", API_WORDS("spec.capacity", "status.phase")},
    {"topolvm.cybozu.com/v1", "LogicalVolume",
     API_WORDS("spec.name", "spec.nodeName", "spec.size", "spec.vgName", "status.volumeID",
               "status.code", "status.message", "status.currentSize")},
    {"topolvm.io/v1", "LogicalVolume",
     API_WORDS("spec.deviceClass", "spec.lvcreateOptionClass", "spec.source", "spec.accessType")},
};

/* The field at a path, by its name or another name of it. */
static const struct api_field *field_at(const struct api_field *fields, const char *path)
{
    _cleanup_free_ char *copy = mem_strdup(path);
    const struct api_field *field = NULL;
    char *rest = copy, *name;
    while ((name = strsep(&rest, "."))) {
        field = api_field_find(fields, name);
        if (!field)
            field = api_field_by_alias(fields, name);
        if (!field)
            return NULL;
        fields = field->fields;
    }
    return field;
}

static void test_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(designs); i++) {
        const struct api_kind *kind = api_kind_find(designs[i].api_version, designs[i].kind, NULL);
        if (!kind)
            fail_msg("no %s %s", designs[i].api_version, designs[i].kind);
        for (const char *const *path = designs[i].paths; *path; path++) {
            if (!field_at(kind->fields, *path))
                fail_msg("%s %s has no %s", designs[i].api_version, designs[i].kind, *path);
        }
    }
}

static const struct {
    const char *kind, *path;
    const char *const *words;
} words[] = {
    {"CStorPoolCluster", "spec.pools.raidGroups.type",
     API_WORDS("stripe", "mirror", "raidz", "raidz2")},
    {"CStorPoolInstance", "status.phase",
     API_WORDS("", "ONLINE", "OFFLINE", "DEGRADED", "FAULTED", "REMOVED", "UNAVAIL", "Error",
               "DeletionFailed", "Invalid", "ErrorDuplicate", "Pending", "Init",
               "PoolCreationFailed")},
    {"CStorVolume", "status.phase",
     API_WORDS("Init", "Healthy", "Degraded", "Offline", "Error", "Invalid")},
    {"CStorVolume", "status.conditions.status", API_WORDS("InProgress", "Success")},
    {"CStorVolume", "status.replicaStatuses.quorum", API_WORDS("0", "1")},
    {"CStorVolumeReplica", "status.phase",
     API_WORDS("", "Healthy", "Offline", "Degraded", "NewReplicaDegraded", "Rebuilding",
               "ReconstructingNewReplica", "Error", "DeletionFailed", "Invalid", "Init",
               "Recreate")},
    {"BlockDevice", "status.claimState", API_WORDS("Claimed", "Unclaimed", "Released")},
    {"BlockDevice", "status.state", API_WORDS("Active", "Inactive", "Unknown")},
    {"BlockDevice", "spec.details.deviceType",
     API_WORDS("disk", "partition", "sparse", "loop", "lvm", "crypt", "dm", "mpath")},
    {"BlockDeviceClaim", "status.phase",
     API_WORDS("", "Pending", "Invalid Capacity Request", "Bound")},
    {"JivaVolume", "status.phase",
     API_WORDS("Pending", "Syncing", "Failed", "Unknown", "Ready", "Deleting")},
    {"JivaVolume", "status.status", API_WORDS("RW", "RO")},
    {"JivaVolumeResize", "status.phase",
     API_WORDS("INIT", "IN-PROGRESS", "FAILED", "SUCCEEDED", "COMPLETED")},
    {"LogicalVolume", "spec.accessType", API_WORDS("ro", "rw")},
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        const struct api_kind *kind = api_kind_by_name(words[i].kind);
        const struct api_field *field = field_at(kind->fields, words[i].path);
        for (const char *const *word = words[i].words; *word; word++) {
            if (!str_in(*word, field->words))
                fail_msg("%s.%s does not take \"%s\"", words[i].kind, words[i].path, *word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests_name("designs", tests, NULL, NULL);
}

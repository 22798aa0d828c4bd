/*
 * Pods, and how they are. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message pod_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastProbeTime"), TIME(4, "lastTransitionTime"),
    STRING(5, "reason"), STRING(6, "message"), INT(7, "observedGeneration"), {0},
};

static message container_state_waiting = {
    STRING(1, "reason"), STRING(2, "message"), {0},
};

static message container_state_running = {
    TIME(1, "startedAt"), {0},
};

static message container_state_terminated = {
    INT(1, "exitCode"), INT(2, "signal"), STRING(3, "reason"), STRING(4, "message"),
    TIME(5, "startedAt"), TIME(6, "finishedAt"), STRING(7, "containerID"), {0},
};

static message container_state = {
    ONE(1, "waiting", container_state_waiting), ONE(2, "running", container_state_running),
    ONE(3, "terminated", container_state_terminated), {0},
};

static message image_volume_status = {
    STRING(1, "imageRef"), {0},
};

static message volume_status = {
    ONE(1, "image", image_volume_status), {0},
};

static message volume_mount_status = {
    STRING(1, "name"), STRING(2, "mountPath"), BOOL(3, "readOnly"),
    GIVEN(4, "recursiveReadOnly", STRING), ONE(5, "volumeStatus", volume_status), {0},
};

static message linux_container_user = {
    INT(1, "uid"), INT(2, "gid"), INTS(3, "supplementalGroups"), {0},
};

static message container_user = {
    ONE(1, "linux", linux_container_user), {0},
};

static message resource_health = {
    STRING(1, "resourceID"), STRING(2, "health"), GIVEN(6, "message", STRING), {0},
};

static message resource_status = {
    STRING(1, "name"), MANY(2, "resources", resource_health), {0},
};

static message container_status = {
    STRING(1, "name"), ONE(2, "state", container_state), ONE(3, "lastState", container_state),
    BOOL(4, "ready"), INT(5, "restartCount"), STRING(6, "image"), STRING(7, "imageID"),
    STRING(8, "containerID"), GIVEN(9, "started", BOOL), QUANTITIES(10, "allocatedResources"),
    ONE(11, "resources", message_resource_requirements),
    MANY(12, "volumeMounts", volume_mount_status), ONE(13, "user", container_user),
    MANY(14, "allocatedResourcesStatus", resource_status), GIVEN(15, "stopSignal", STRING), {0},
};

static message pod_ip = {
    STRING(1, "ip"), {0},
};

static message pod_resource_claim_status = {
    STRING(1, "name"), GIVEN(2, "resourceClaimName", STRING), {0},
};

static message host_ip = {
    STRING(1, "ip"), {0},
};

static message container_extended_resource_request = {
    STRING(1, "containerName"), STRING(2, "resourceName"), STRING(3, "requestName"), {0},
};

static message pod_extended_resource_claim_status = {
    MANY(1, "requestMappings", container_extended_resource_request), STRING(2, "resourceClaimName"),
    {0},
};

static message node_allocatable_mapped_resources = {
    STRING(1, "name"), QUANTITY(2, "quantity"), {0},
};

static message node_allocatable_overhead_resources = {
    STRING(1, "name"), QUANTITY(2, "perPod"), QUANTITY(3, "perContainer"), {0},
};

static message node_allocatable_resource_claim_status = {
    STRING(1, "resourceClaimName"), STRINGS(2, "containers"),
    MANY(4, "mapping", node_allocatable_mapped_resources),
    MANY(5, "overhead", node_allocatable_overhead_resources), {0},
};

message message_volume_health_condition = {
    STRING(1, "status"), STRING(2, "reason"), STRING(3, "message"), {0},
};

static message pod_volume_health = {
    STRING(1, "name"), MANY(2, "healthConditions", message_volume_health_condition),
    TIME(3, "lastTransitionTime"), {0},
};

static message pod_status = {
    STRING(1, "phase"), MANY(2, "conditions", pod_condition), STRING(3, "message"),
    STRING(4, "reason"), STRING(5, "hostIP"), STRING(6, "podIP"), TIME(7, "startTime"),
    MANY(8, "containerStatuses", container_status), STRING(9, "qosClass"),
    MANY(10, "initContainerStatuses", container_status), STRING(11, "nominatedNodeName"),
    MANY(12, "podIPs", pod_ip), MANY(13, "ephemeralContainerStatuses", container_status),
    STRING(14, "resize"), MANY(15, "resourceClaimStatuses", pod_resource_claim_status),
    MANY(16, "hostIPs", host_ip), INT(17, "observedGeneration"),
    ONE(18, "extendedResourceClaimStatus", pod_extended_resource_claim_status),
    QUANTITIES(19, "allocatedResources"), ONE(20, "resources", message_resource_requirements),
    MANY(21, "nodeAllocatableResourceClaimStatuses", node_allocatable_resource_claim_status),
    MANY(22, "volumeHealth", pod_volume_health), {0},
};

message message_pod = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", message_pod_spec),
    ONE(3, "status", pod_status), {0},
};
/* clang-format on */

/*
 * Services, nodes and limits. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message service_port = {
    STRING(1, "name"), STRING(2, "protocol"), INT(3, "port"), INT_OR_STRING(4, "targetPort"),
    INT(5, "nodePort"), GIVEN(6, "appProtocol", STRING), {0},
};

static message client_ip_config = {
    GIVEN(1, "timeoutSeconds", INT), {0},
};

static message session_affinity_config = {
    ONE(1, "clientIP", client_ip_config), {0},
};

static message service_spec = {
    MANY(1, "ports", service_port), MAP(2, "selector"), STRING(3, "clusterIP"), STRING(4, "type"),
    STRINGS(5, "externalIPs"), STRING(7, "sessionAffinity"), STRING(8, "loadBalancerIP"),
    STRINGS(9, "loadBalancerSourceRanges"), STRING(10, "externalName"),
    STRING(11, "externalTrafficPolicy"), INT(12, "healthCheckNodePort"),
    BOOL(13, "publishNotReadyAddresses"), ONE(14, "sessionAffinityConfig", session_affinity_config),
    GIVEN(17, "ipFamilyPolicy", STRING), STRINGS(18, "clusterIPs"), STRINGS(19, "ipFamilies"),
    GIVEN(20, "allocateLoadBalancerNodePorts", BOOL), GIVEN(21, "loadBalancerClass", STRING),
    GIVEN(22, "internalTrafficPolicy", STRING), GIVEN(23, "trafficDistribution", STRING), {0},
};

static message port_status = {
    INT(1, "port"), STRING(2, "protocol"), GIVEN(3, "error", STRING), {0},
};

static message load_balancer_ingress = {
    STRING(1, "ip"), STRING(2, "hostname"), GIVEN(3, "ipMode", STRING),
    MANY(4, "ports", port_status), {0},
};

static message load_balancer_status = {
    MANY(1, "ingress", load_balancer_ingress), {0},
};

static message service_status = {
    ONE(1, "loadBalancer", load_balancer_status), MANY(2, "conditions", message_condition), {0},
};

message message_service = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", service_spec),
    ONE(3, "status", service_status), {0},
};

static message endpoint_address = {
    STRING(1, "ip"), ONE(2, "targetRef", message_object_reference), STRING(3, "hostname"),
    GIVEN(4, "nodeName", STRING), {0},
};

static message endpoint_port = {
    STRING(1, "name"), INT(2, "port"), STRING(3, "protocol"), GIVEN(4, "appProtocol", STRING), {0},
};

static message endpoint_subset = {
    MANY(1, "addresses", endpoint_address), MANY(2, "notReadyAddresses", endpoint_address),
    MANY(3, "ports", endpoint_port), {0},
};

message message_endpoints = {
    ONE(1, "metadata", message_metadata), MANY(2, "subsets", endpoint_subset), {0},
};

static message taint = {
    STRING(1, "key"), STRING(2, "value"), STRING(3, "effect"), TIME(4, "timeAdded"), {0},
};

static message config_map_node_config_source = {
    STRING(1, "namespace"), STRING(2, "name"), STRING(3, "uid"), STRING(4, "resourceVersion"),
    STRING(5, "kubeletConfigKey"), {0},
};

static message node_config_source = {
    ONE(2, "configMap", config_map_node_config_source), {0},
};

static message node_pod_preemption_policy = {
    STRINGS(1, "disableResizePreemption"), {0},
};

static message node_spec = {
    STRING(1, "podCIDR"), STRING(2, "externalID"), STRING(3, "providerID"),
    BOOL(4, "unschedulable"), MANY(5, "taints", taint), ONE(6, "configSource", node_config_source),
    STRINGS(7, "podCIDRs"), ONE(8, "podPreemptionPolicy", node_pod_preemption_policy), {0},
};

static message node_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastHeartbeatTime"),
    TIME(4, "lastTransitionTime"), STRING(5, "reason"), STRING(6, "message"), {0},
};

static message node_address = {
    STRING(1, "type"), STRING(2, "address"), {0},
};

static message daemon_endpoint = {
    INT(1, "Port"), {0},
};

static message node_daemon_endpoints = {
    ONE(1, "kubeletEndpoint", daemon_endpoint), {0},
};

static message node_swap_status = {
    GIVEN(1, "capacity", INT), {0},
};

static message node_system_info = {
    STRING(1, "machineID"), STRING(2, "systemUUID"), STRING(3, "bootID"),
    STRING(4, "kernelVersion"), STRING(5, "osImage"), STRING(6, "containerRuntimeVersion"),
    STRING(7, "kubeletVersion"), STRING(8, "kubeProxyVersion"), STRING(9, "operatingSystem"),
    STRING(10, "architecture"), ONE(11, "swap", node_swap_status), {0},
};

static message container_image = {
    STRINGS(1, "names"), INT(2, "sizeBytes"), {0},
};

static message attached_volume = {
    STRING(1, "name"), STRING(2, "devicePath"), {0},
};

static message node_config_status = {
    ONE(1, "assigned", node_config_source), ONE(2, "active", node_config_source),
    ONE(3, "lastKnownGood", node_config_source), STRING(4, "error"), {0},
};

static message node_runtime_handler_features = {
    GIVEN(1, "recursiveReadOnlyMounts", BOOL), GIVEN(2, "userNamespaces", BOOL), {0},
};

static message node_runtime_handler = {
    STRING(1, "name"), ONE(2, "features", node_runtime_handler_features), {0},
};

static message node_features = {
    GIVEN(1, "supplementalGroupsPolicy", BOOL), {0},
};

static message node_status = {
    QUANTITIES(1, "capacity"), QUANTITIES(2, "allocatable"), STRING(3, "phase"),
    MANY(4, "conditions", node_condition), MANY(5, "addresses", node_address),
    ONE(6, "daemonEndpoints", node_daemon_endpoints), ONE(7, "nodeInfo", node_system_info),
    MANY(8, "images", container_image), STRINGS(9, "volumesInUse"),
    MANY(10, "volumesAttached", attached_volume), ONE(11, "config", node_config_status),
    MANY(12, "runtimeHandlers", node_runtime_handler), ONE(13, "features", node_features),
    STRINGS(14, "declaredFeatures"), {0},
};

message message_node = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", node_spec), ONE(3, "status", node_status),
    {0},
};

static message scoped_resource_selector_requirement = {
    STRING(1, "scopeName"), STRING(2, "operator"), STRINGS(3, "values"), {0},
};

static message scope_selector = {
    MANY(1, "matchExpressions", scoped_resource_selector_requirement), {0},
};

static message resource_quota_spec = {
    QUANTITIES(1, "hard"), STRINGS(2, "scopes"), ONE(3, "scopeSelector", scope_selector), {0},
};

static message resource_quota_status = {
    QUANTITIES(1, "hard"), QUANTITIES(2, "used"), {0},
};

message message_resource_quota = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", resource_quota_spec),
    ONE(3, "status", resource_quota_status), {0},
};

static message limit_range_item = {
    STRING(1, "type"), QUANTITIES(2, "max"), QUANTITIES(3, "min"), QUANTITIES(4, "default"),
    QUANTITIES(5, "defaultRequest"), QUANTITIES(6, "maxLimitRequestRatio"), {0},
};

static message limit_range_spec = {
    MANY(1, "limits", limit_range_item), {0},
};

message message_limit_range = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", limit_range_spec), {0},
};

static message scale_spec = {
    INT(1, "replicas"), {0},
};

static message scale_status = {
    INT(1, "replicas"), STRING(2, "selector"), {0},
};

message message_scale = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", scale_spec),
    ONE(3, "status", scale_status), {0},
};
/* clang-format on */

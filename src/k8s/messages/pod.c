/*
 * What pods are made of. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message container_port = {
    STRING(1, "name"), INT(2, "hostPort"), INT(3, "containerPort"), STRING(4, "protocol"),
    STRING(5, "hostIP"), {0},
};

static message config_map_key_selector = {
    INLINE(1, message_local_reference), STRING(2, "key"), GIVEN(3, "optional", BOOL), {0},
};

static message secret_key_selector = {
    INLINE(1, message_local_reference), STRING(2, "key"), GIVEN(3, "optional", BOOL), {0},
};

static message file_key_selector = {
    STRING(1, "volumeName"), STRING(2, "path"), STRING(3, "key"), GIVEN(4, "optional", BOOL), {0},
};

static message env_var_source = {
    ONE(1, "fieldRef", message_object_field_selector),
    ONE(2, "resourceFieldRef", message_resource_field_selector),
    ONE(3, "configMapKeyRef", config_map_key_selector), ONE(4, "secretKeyRef", secret_key_selector),
    ONE(5, "fileKeyRef", file_key_selector), {0},
};

static message env_var = {
    STRING(1, "name"), STRING(2, "value"), ONE(3, "valueFrom", env_var_source), {0},
};

static message resource_claim = {
    STRING(1, "name"), STRING(2, "request"), {0},
};

message message_resource_requirements = {
    QUANTITIES(1, "limits"), QUANTITIES(2, "requests"), MANY(3, "claims", resource_claim), {0},
};

static message volume_mount = {
    STRING(1, "name"), BOOL(2, "readOnly"), STRING(3, "mountPath"), STRING(4, "subPath"),
    GIVEN(5, "mountPropagation", STRING), STRING(6, "subPathExpr"),
    GIVEN(7, "recursiveReadOnly", STRING), STRINGS(8, "bindMountOptions"), {0},
};

static message exec_action = {
    STRINGS(1, "command"), {0},
};

static message http_header = {
    STRING(1, "name"), STRING(2, "value"), {0},
};

static message http_get_action = {
    STRING(1, "path"), INT_OR_STRING(2, "port"), STRING(3, "host"), STRING(4, "scheme"),
    MANY(5, "httpHeaders", http_header), GIVEN(6, "protocol", STRING), {0},
};

static message tcp_socket_action = {
    INT_OR_STRING(1, "port"), STRING(2, "host"), {0},
};

static message grpc_action = {
    INT(1, "port"), GIVEN(2, "service", STRING), GIVEN(3, "mode", STRING), {0},
};

static message probe_handler = {
    ONE(1, "exec", exec_action), ONE(2, "httpGet", http_get_action),
    ONE(3, "tcpSocket", tcp_socket_action), ONE(4, "grpc", grpc_action), {0},
};

static message probe = {
    INLINE(1, probe_handler), INT(2, "initialDelaySeconds"), INT(3, "timeoutSeconds"),
    INT(4, "periodSeconds"), INT(5, "successThreshold"), INT(6, "failureThreshold"),
    GIVEN(7, "terminationGracePeriodSeconds", INT), {0},
};

static message sleep_action = {
    INT(1, "seconds"), {0},
};

static message lifecycle_handler = {
    ONE(1, "exec", exec_action), ONE(2, "httpGet", http_get_action),
    ONE(3, "tcpSocket", tcp_socket_action), ONE(4, "sleep", sleep_action), {0},
};

static message lifecycle = {
    ONE(1, "postStart", lifecycle_handler), ONE(2, "preStop", lifecycle_handler),
    GIVEN(3, "stopSignal", STRING), {0},
};

static message capabilities = {
    STRINGS(1, "add"), STRINGS(2, "drop"), {0},
};

static message se_linux_options = {
    STRING(1, "user"), STRING(2, "role"), STRING(3, "type"), STRING(4, "level"), {0},
};

static message windows_security_context_options = {
    GIVEN(1, "gmsaCredentialSpecName", STRING), GIVEN(2, "gmsaCredentialSpec", STRING),
    GIVEN(3, "runAsUserName", STRING), GIVEN(4, "hostProcess", BOOL), {0},
};

static message seccomp_profile = {
    STRING(1, "type"), GIVEN(2, "localhostProfile", STRING), {0},
};

static message app_armor_profile = {
    STRING(1, "type"), GIVEN(2, "localhostProfile", STRING), {0},
};

static message security_context = {
    ONE(1, "capabilities", capabilities), GIVEN(2, "privileged", BOOL),
    ONE(3, "seLinuxOptions", se_linux_options), GIVEN(4, "runAsUser", INT),
    GIVEN(5, "runAsNonRoot", BOOL), GIVEN(6, "readOnlyRootFilesystem", BOOL),
    GIVEN(7, "allowPrivilegeEscalation", BOOL), GIVEN(8, "runAsGroup", INT),
    GIVEN(9, "procMount", STRING), ONE(10, "windowsOptions", windows_security_context_options),
    ONE(11, "seccompProfile", seccomp_profile), ONE(12, "appArmorProfile", app_armor_profile), {0},
};

static message config_map_env_source = {
    INLINE(1, message_local_reference), GIVEN(2, "optional", BOOL), {0},
};

static message secret_env_source = {
    INLINE(1, message_local_reference), GIVEN(2, "optional", BOOL), {0},
};

static message env_from_source = {
    STRING(1, "prefix"), ONE(2, "configMapRef", config_map_env_source),
    ONE(3, "secretRef", secret_env_source), {0},
};

static message volume_device = {
    STRING(1, "name"), STRING(2, "devicePath"), {0},
};

static message container_resize_policy = {
    STRING(1, "resourceName"), STRING(2, "restartPolicy"), {0},
};

static message container_restart_rule_on_exit_codes = {
    STRING(1, "operator"), INTS(2, "values"), {0},
};

static message container_restart_rule = {
    STRING(1, "action"), ONE(2, "exitCodes", container_restart_rule_on_exit_codes), {0},
};

static message container = {
    STRING(1, "name"), STRING(2, "image"), STRINGS(3, "command"), STRINGS(4, "args"),
    STRING(5, "workingDir"), MANY(6, "ports", container_port), MANY(7, "env", env_var),
    ONE(8, "resources", message_resource_requirements), MANY(9, "volumeMounts", volume_mount),
    ONE(10, "livenessProbe", probe), ONE(11, "readinessProbe", probe),
    ONE(12, "lifecycle", lifecycle), STRING(13, "terminationMessagePath"),
    STRING(14, "imagePullPolicy"), ONE(15, "securityContext", security_context), BOOL(16, "stdin"),
    BOOL(17, "stdinOnce"), BOOL(18, "tty"), MANY(19, "envFrom", env_from_source),
    STRING(20, "terminationMessagePolicy"), MANY(21, "volumeDevices", volume_device),
    ONE(22, "startupProbe", probe), MANY(23, "resizePolicy", container_resize_policy),
    GIVEN(24, "restartPolicy", STRING), MANY(25, "restartPolicyRules", container_restart_rule), {0},
};

static message sysctl = {
    STRING(1, "name"), STRING(2, "value"), {0},
};

static message pod_security_context = {
    ONE(1, "seLinuxOptions", se_linux_options), GIVEN(2, "runAsUser", INT),
    GIVEN(3, "runAsNonRoot", BOOL), INTS(4, "supplementalGroups"), GIVEN(5, "fsGroup", INT),
    GIVEN(6, "runAsGroup", INT), MANY(7, "sysctls", sysctl),
    ONE(8, "windowsOptions", windows_security_context_options),
    GIVEN(9, "fsGroupChangePolicy", STRING), ONE(10, "seccompProfile", seccomp_profile),
    ONE(11, "appArmorProfile", app_armor_profile), GIVEN(12, "supplementalGroupsPolicy", STRING),
    GIVEN(13, "seLinuxChangePolicy", STRING), {0},
};

static message node_selector_requirement = {
    STRING(1, "key"), STRING(2, "operator"), STRINGS(3, "values"), {0},
};

static message node_selector_term = {
    MANY(1, "matchExpressions", node_selector_requirement),
    MANY(2, "matchFields", node_selector_requirement), {0},
};

message message_node_selector = {
    MANY(1, "nodeSelectorTerms", node_selector_term), {0},
};

static message preferred_scheduling_term = {
    INT(1, "weight"), ONE(2, "preference", node_selector_term), {0},
};

static message node_affinity = {
    ONE(1, "requiredDuringSchedulingIgnoredDuringExecution", message_node_selector),
    MANY(2, "preferredDuringSchedulingIgnoredDuringExecution", preferred_scheduling_term), {0},
};

static message pod_affinity_term = {
    ONE(1, "labelSelector", message_label_selector), STRINGS(2, "namespaces"),
    STRING(3, "topologyKey"), ONE(4, "namespaceSelector", message_label_selector),
    STRINGS(5, "matchLabelKeys"), STRINGS(6, "mismatchLabelKeys"), {0},
};

static message weighted_pod_affinity_term = {
    INT(1, "weight"), ONE(2, "podAffinityTerm", pod_affinity_term), {0},
};

static message pod_affinity = {
    MANY(1, "requiredDuringSchedulingIgnoredDuringExecution", pod_affinity_term),
    MANY(2, "preferredDuringSchedulingIgnoredDuringExecution", weighted_pod_affinity_term), {0},
};

static message pod_anti_affinity = {
    MANY(1, "requiredDuringSchedulingIgnoredDuringExecution", pod_affinity_term),
    MANY(2, "preferredDuringSchedulingIgnoredDuringExecution", weighted_pod_affinity_term), {0},
};

static message affinity = {
    ONE(1, "nodeAffinity", node_affinity), ONE(2, "podAffinity", pod_affinity),
    ONE(3, "podAntiAffinity", pod_anti_affinity), {0},
};

static message toleration = {
    STRING(1, "key"), STRING(2, "operator"), STRING(3, "value"), STRING(4, "effect"),
    GIVEN(5, "tolerationSeconds", INT), {0},
};

static message host_alias = {
    STRING(1, "ip"), STRINGS(2, "hostnames"), {0},
};

static message pod_dns_config_option = {
    STRING(1, "name"), GIVEN(2, "value", STRING), {0},
};

static message pod_dns_config = {
    STRINGS(1, "nameservers"), STRINGS(2, "searches"), MANY(3, "options", pod_dns_config_option),
    {0},
};

static message pod_readiness_gate = {
    STRING(1, "conditionType"), {0},
};

static message topology_spread_constraint = {
    INT(1, "maxSkew"), STRING(2, "topologyKey"), STRING(3, "whenUnsatisfiable"),
    ONE(4, "labelSelector", message_label_selector), GIVEN(5, "minDomains", INT),
    GIVEN(6, "nodeAffinityPolicy", STRING), GIVEN(7, "nodeTaintsPolicy", STRING),
    STRINGS(8, "matchLabelKeys"), {0},
};

static message ephemeral_container_common = {
    STRING(1, "name"), STRING(2, "image"), STRINGS(3, "command"), STRINGS(4, "args"),
    STRING(5, "workingDir"), MANY(6, "ports", container_port), MANY(7, "env", env_var),
    ONE(8, "resources", message_resource_requirements), MANY(9, "volumeMounts", volume_mount),
    ONE(10, "livenessProbe", probe), ONE(11, "readinessProbe", probe),
    ONE(12, "lifecycle", lifecycle), STRING(13, "terminationMessagePath"),
    STRING(14, "imagePullPolicy"), ONE(15, "securityContext", security_context), BOOL(16, "stdin"),
    BOOL(17, "stdinOnce"), BOOL(18, "tty"), MANY(19, "envFrom", env_from_source),
    STRING(20, "terminationMessagePolicy"), MANY(21, "volumeDevices", volume_device),
    ONE(22, "startupProbe", probe), MANY(23, "resizePolicy", container_resize_policy),
    GIVEN(24, "restartPolicy", STRING), MANY(25, "restartPolicyRules", container_restart_rule), {0},
};

static message ephemeral_container = {
    INLINE(1, ephemeral_container_common), STRING(2, "targetContainerName"), {0},
};

static message pod_os = {
    STRING(1, "name"), {0},
};

static message pod_scheduling_gate = {
    STRING(1, "name"), {0},
};

static message pod_resource_claim = {
    STRING(1, "name"), GIVEN(3, "resourceClaimName", STRING),
    GIVEN(4, "resourceClaimTemplateName", STRING), {0},
};

static message pod_scheduling_group = {
    GIVEN(1, "podGroupName", STRING), {0},
};

static message eviction_responder = {
    STRING(1, "name"), GIVEN(2, "priority", INT), {0},
};

message message_pod_spec = {
    MANY(1, "volumes", message_volume), MANY(2, "containers", container),
    STRING(3, "restartPolicy"), GIVEN(4, "terminationGracePeriodSeconds", INT),
    GIVEN(5, "activeDeadlineSeconds", INT), STRING(6, "dnsPolicy"), MAP(7, "nodeSelector"),
    STRING(8, "serviceAccountName"), STRING(9, "serviceAccount"), STRING(10, "nodeName"),
    BOOL(11, "hostNetwork"), BOOL(12, "hostPID"), BOOL(13, "hostIPC"),
    ONE(14, "securityContext", pod_security_context),
    MANY(15, "imagePullSecrets", message_local_reference), STRING(16, "hostname"),
    STRING(17, "subdomain"), ONE(18, "affinity", affinity), STRING(19, "schedulerName"),
    MANY(20, "initContainers", container), GIVEN(21, "automountServiceAccountToken", BOOL),
    MANY(22, "tolerations", toleration), MANY(23, "hostAliases", host_alias),
    STRING(24, "priorityClassName"), GIVEN(25, "priority", INT),
    ONE(26, "dnsConfig", pod_dns_config), GIVEN(27, "shareProcessNamespace", BOOL),
    MANY(28, "readinessGates", pod_readiness_gate), GIVEN(29, "runtimeClassName", STRING),
    GIVEN(30, "enableServiceLinks", BOOL), GIVEN(31, "preemptionPolicy", STRING),
    QUANTITIES(32, "overhead"), MANY(33, "topologySpreadConstraints", topology_spread_constraint),
    MANY(34, "ephemeralContainers", ephemeral_container), GIVEN(35, "setHostnameAsFQDN", BOOL),
    ONE(36, "os", pod_os), GIVEN(37, "hostUsers", BOOL),
    MANY(38, "schedulingGates", pod_scheduling_gate),
    MANY(39, "resourceClaims", pod_resource_claim),
    ONE(40, "resources", message_resource_requirements), GIVEN(41, "hostnameOverride", STRING),
    ONE(43, "schedulingGroup", pod_scheduling_group),
    MANY(44, "evictionResponders", eviction_responder), {0},
};

message message_pod_template_spec = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", message_pod_spec), {0},
};
/* clang-format on */

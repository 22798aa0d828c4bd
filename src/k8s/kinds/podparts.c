/*
 * Parts of pods that hardly have rules, but defaults, and words for people: probes, hooks, where
 * variables and files come from, privileges, and which nodes a pod wants.
 */
#include "k8s/kinds/kinds.h"

static const struct api_field exec_action[] = {
    {"command", API_STRING, API_LIST, .doc = "The program and its arguments, not in a shell."},
    {0},
};

static const struct api_field http_header[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the header."},
    {"value", API_STRING, .doc = "Its value."},
    {0},
};

static const struct api_field http_get_action[] = {
    {"path", API_STRING, .def = "\"/\"", .doc = "The path to ask for."},
    {"port", API_INT_OR_STRING, .flags = API_REQUIRED, .doc = "The port, or its name."},
    {"host", API_STRING, .doc = "The host; the pod's address when not given."},
    {"scheme", API_STRING, .def = "\"HTTP\"", .words = API_WORDS("HTTP", "HTTPS"),
     .doc = "HTTP or HTTPS."},
    {"httpHeaders", API_OBJECT, API_LIST, .fields = http_header, .doc = "Headers to send."},
    {0},
};

static const struct api_field tcp_socket_action[] = {
    {"port", API_INT_OR_STRING, .flags = API_REQUIRED, .doc = "The port, or its name."},
    {"host", API_STRING, .doc = "The host; the pod's address when not given."},
    {0},
};

static const struct api_field grpc_action[] = {
    {"port", API_INT, .flags = API_REQUIRED, .min = 1, .max = 65535, .doc = "The port."},
    {"service", API_STRING, .def = "\"\"", .doc = "The service to ask for."},
    {0},
};

static const struct api_field sleep_action[] = {
    {"seconds", API_INT, .doc = "How long."},
    {0},
};

const struct api_field api_probe[] = {
    {"exec", API_OBJECT, .fields = exec_action, .doc = "A program that must end with 0."},
    {"httpGet", API_OBJECT, .fields = http_get_action, .doc = "A page that must be there."},
    {"tcpSocket", API_OBJECT, .fields = tcp_socket_action, .doc = "A port that must be open."},
    {"grpc", API_OBJECT, .fields = grpc_action, .doc = "A gRPC service that must be healthy."},
    {"initialDelaySeconds", API_INT, API_UINT31, .doc = "Time to wait before the first."},
    {"timeoutSeconds", API_INT, API_UINT31, .def = "1", .doc = "Time to answer."},
    {"periodSeconds", API_INT, API_UINT31, .def = "10", .doc = "Time from one to the next."},
    {"successThreshold", API_INT, API_UINT31, .def = "1",
     .doc = "Successes in a row that count after a failure."},
    {"failureThreshold", API_INT, API_UINT31, .def = "3", .doc = "Failures in a row that count."},
    {"terminationGracePeriodSeconds", API_INT, .min = 1, .max = INT64_MAX,
     .doc = "Time to end after a failure; the pod's when not given."},
    {0},
};

static const struct api_field lifecycle_handler[] = {
    {"exec", API_OBJECT, .fields = exec_action, .doc = "A program to run."},
    {"httpGet", API_OBJECT, .fields = http_get_action, .doc = "A page to ask for."},
    {"tcpSocket", API_OBJECT, .fields = tcp_socket_action, .doc = "Obsolete."},
    {"sleep", API_OBJECT, .fields = sleep_action, .doc = "Time to wait."},
    {0},
};

const struct api_field api_lifecycle[] = {
    {"postStart", API_OBJECT, .fields = lifecycle_handler, .doc = "Right after it was started."},
    {"preStop", API_OBJECT, .fields = lifecycle_handler, .doc = "Before it is told to end."},
    {"stopSignal", API_STRING, .doc = "The signal by which it is told to end."},
    {0},
};

static const struct api_field key_selector[] = {
    {"name", API_STRING, .doc = "Name of the object, in the same namespace."},
    {"key", API_STRING, .flags = API_REQUIRED, .doc = "The key."},
    {"optional", API_BOOL, .doc = "Whether it may be missing."},
    {0},
};

static const struct api_field field_ref[] = {
    {"apiVersion", API_STRING, .def = "\"v1\"", .doc = "Version of the path."},
    {"fieldPath", API_STRING, .flags = API_REQUIRED, .doc = "A field of the pod."},
    {0},
};

static const struct api_field resource_ref[] = {
    {"containerName", API_STRING, .doc = "The container."},
    {"resource", API_STRING, .flags = API_REQUIRED, .doc = "Such as limits.cpu."},
    {"divisor", API_QUANTITY, .def = "\"0\"", .doc = "The unit; 0 is 1."},
    {0},
};

const struct api_field api_value_from[] = {
    {"fieldRef", API_OBJECT, .flags = API_ATOMIC, .fields = field_ref, .doc = "From the pod."},
    {"resourceFieldRef", API_OBJECT, .flags = API_ATOMIC, .fields = resource_ref,
     .doc = "From a container's resources."},
    {"configMapKeyRef", API_OBJECT, .flags = API_ATOMIC, .fields = key_selector,
     .doc = "From a ConfigMap."},
    {"secretKeyRef", API_OBJECT, .flags = API_ATOMIC, .fields = key_selector,
     .doc = "From a Secret."},
    {0},
};

static const struct api_field env_source[] = {
    {"name", API_STRING, .doc = "Name of the object, in the same namespace."},
    {"optional", API_BOOL, .doc = "Whether it may be missing."},
    {0},
};

const struct api_field api_env_from[] = {
    {"prefix", API_STRING, .doc = "What each name begins with."},
    {"configMapRef", API_OBJECT, .fields = env_source, .doc = "A ConfigMap."},
    {"secretRef", API_OBJECT, .fields = env_source, .doc = "A Secret."},
    {0},
};

static const struct api_field capabilities[] = {
    {"add", API_STRING, API_LIST, .doc = "Capabilities that it gets."},
    {"drop", API_STRING, API_LIST, .doc = "Capabilities that it does not get."},
    {0},
};

static const struct api_field se_linux_options[] = {
    {"user", API_STRING, .doc = "SELinux user."},
    {"role", API_STRING, .doc = "SELinux role."},
    {"type", API_STRING, .doc = "SELinux type."},
    {"level", API_STRING, .doc = "SELinux level."},
    {0},
};

static const struct api_field profile[] = {
    {"type", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("Localhost", "RuntimeDefault", "Unconfined"), .doc = "Which profile."},
    {"localhostProfile", API_STRING, .doc = "Its name on the node, for Localhost."},
    {0},
};

#define USER_FIELDS                                                                                \
    {"seLinuxOptions", API_OBJECT, .fields = se_linux_options, .doc = "The SELinux context."},     \
        {"runAsUser", API_INT, .min = 0, .max = INT64_MAX, .doc = "The user."},                    \
        {"runAsGroup", API_INT, .min = 0, .max = INT64_MAX, .doc = "The group."},                  \
        {"runAsNonRoot", API_BOOL, .doc = "Whether it must not be root."},                         \
        {"seccompProfile", API_OBJECT, .fields = profile, .doc = "Which system calls it has."},    \
    {                                                                                              \
        "appArmorProfile", API_OBJECT, .fields = profile, .doc = "What AppArmor allows it."        \
    }

const struct api_field api_security_context[] = {
    USER_FIELDS,
    {"capabilities", API_OBJECT, .fields = capabilities, .doc = "Its capabilities."},
    {"privileged", API_BOOL, .doc = "Whether it is root on the node."},
    {"readOnlyRootFilesystem", API_BOOL, .doc = "Whether it can only read its own files."},
    {"allowPrivilegeEscalation", API_BOOL, .doc = "Whether it can get more than it has."},
    {"procMount", API_STRING, .doc = "How it sees /proc: Default or Unmasked."},
    {0},
};

static const struct api_field sysctl[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the setting."},
    {"value", API_STRING, .doc = "Its value."},
    {0},
};

const struct api_field api_pod_security_context[] = {
    USER_FIELDS,
    {"supplementalGroups", API_INT, API_LIST, .doc = "Further groups."},
    {"fsGroup", API_INT, .min = 0, .max = INT64_MAX, .doc = "The group that volumes belong to."},
    {"fsGroupChangePolicy", API_STRING, .words = API_WORDS("OnRootMismatch", "Always"),
     .doc = "When volumes are made to belong to it."},
    {"sysctls", API_OBJECT, API_LIST, .fields = sysctl, .doc = "Settings of the kernel."},
    {0},
};

static const struct api_field node_requirement[] = {
    {"key", API_STRING, .flags = API_REQUIRED, .doc = "A label of the node, or a field."},
    {"operator", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
     .doc = "How it relates to values."},
    {"values", API_STRING, API_LIST, .doc = "The values."},
    {0},
};

static const struct api_field node_term[] = {
    {"matchExpressions", API_OBJECT, API_LIST, .fields = node_requirement,
     .doc = "Labels, all of which must fit."},
    {"matchFields", API_OBJECT, API_LIST, .fields = node_requirement,
     .doc = "Fields, all of which must fit."},
    {0},
};

const struct api_field api_node_selector[] = {
    {"nodeSelectorTerms", API_OBJECT, API_LIST, API_REQUIRED, .fields = node_term,
     .doc = "Terms, one of which must fit."},
    {0},
};

static const struct api_field preferred_node[] = {
    {"weight", API_INT, .flags = API_REQUIRED, .min = 1, .max = 100, .doc = "How much it counts."},
    {"preference", API_OBJECT, .fields = node_term, .doc = "The term."},
    {0},
};

static const struct api_field node_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", API_OBJECT, .flags = API_ATOMIC,
     .fields = api_node_selector, .doc = "Nodes that it can be on."},
    {"preferredDuringSchedulingIgnoredDuringExecution", API_OBJECT, API_LIST,
     .fields = preferred_node, .doc = "Nodes that it would rather be on."},
    {0},
};

static const struct api_field pod_term[] = {
    {"labelSelector", API_OBJECT, .fields = api_label_selector, .doc = "Which pods."},
    {"namespaces", API_STRING, API_LIST, .doc = "Their namespaces; its own when none is given."},
    {"namespaceSelector", API_OBJECT, .fields = api_label_selector, .doc = "The same by label."},
    {"topologyKey", API_STRING, .flags = API_REQUIRED, .doc = "Node label that makes a place."},
    {"matchLabelKeys", API_STRING, API_LIST, .doc = "Labels that must be the pod's own."},
    {"mismatchLabelKeys", API_STRING, API_LIST, .doc = "Labels that must be other than its own."},
    {0},
};

static const struct api_field weighted_pod_term[] = {
    {"weight", API_INT, .flags = API_REQUIRED, .min = 1, .max = 100, .doc = "How much it counts."},
    {"podAffinityTerm", API_OBJECT, .fields = pod_term, .doc = "The term."},
    {0},
};

static const struct api_field pod_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", API_OBJECT, API_LIST, .fields = pod_term,
     .doc = "All must fit."},
    {"preferredDuringSchedulingIgnoredDuringExecution", API_OBJECT, API_LIST,
     .fields = weighted_pod_term, .doc = "The more fit, the better."},
    {0},
};

const struct api_field api_affinity[] = {
    {"nodeAffinity", API_OBJECT, .fields = node_affinity, .doc = "By nodes."},
    {"podAffinity", API_OBJECT, .fields = pod_affinity, .doc = "Near to pods."},
    {"podAntiAffinity", API_OBJECT, .fields = pod_affinity, .doc = "Far from pods."},
    {0},
};

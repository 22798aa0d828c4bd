/*
 * Which kind has which message; and those of what clients ask about themselves and others, of leases
 * and events, of what kubectl creates without a manifest, and of how things are to be deleted. The
 * numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message owner_reference = {
    STRING(1, "kind"),
    STRING(3, "name"),
    STRING(4, "uid"),
    STRING(5, "apiVersion"),
    GIVEN(6, "controller", BOOL),
    GIVEN(7, "blockOwnerDeletion", BOOL),
    {0},
};

static message managed_fields = {
    STRING(1, "manager"),
    STRING(2, "operation"),
    STRING(3, "apiVersion"),
    TIME(4, "time"),
    STRING(6, "fieldsType"),
    {"fieldsV1", 7, API_MESSAGE_JSON},
    STRING(8, "subresource"),
    {0},
};

message message_metadata = {
    STRING(1, "name"),
    STRING(2, "generateName"),
    STRING(3, "namespace"),
    STRING(4, "selfLink"),
    STRING(5, "uid"),
    STRING(6, "resourceVersion"),
    INT(7, "generation"),
    TIME(8, "creationTimestamp"),
    TIME(9, "deletionTimestamp"),
    GIVEN(10, "deletionGracePeriodSeconds", INT),
    MAP(11, "labels"),
    MAP(12, "annotations"),
    MANY(13, "ownerReferences", owner_reference),
    STRINGS(14, "finalizers"),
    MANY(17, "managedFields", managed_fields),
    {0},
};

/* authorization.k8s.io/v1 */

static message requirement = {
    STRING(1, "key"),
    STRING(2, "operator"),
    STRINGS(3, "values"),
    {0},
};

static message selector_attributes = {
    STRING(1, "rawSelector"),
    MANY(2, "requirements", requirement),
    {0},
};

static message resource_attributes = {
    STRING(1, "namespace"),
    STRING(2, "verb"),
    STRING(3, "group"),
    STRING(4, "version"),
    STRING(5, "resource"),
    STRING(6, "subresource"),
    STRING(7, "name"),
    ONE(8, "fieldSelector", selector_attributes),
    ONE(9, "labelSelector", selector_attributes),
    {0},
};

static message path_attributes = {
    STRING(1, "path"),
    STRING(2, "verb"),
    {0},
};

static message access_spec = {
    ONE(1, "resourceAttributes", resource_attributes),
    ONE(2, "nonResourceAttributes", path_attributes),
    STRING(3, "user"),
    STRINGS(4, "groups"),
    LISTS(5, "extra"),
    STRING(6, "uid"),
    {0},
};

static message access_status = {
    BOOL(1, "allowed"),
    STRING(2, "reason"),
    STRING(3, "evaluationError"),
    BOOL(4, "denied"),
    {0},
};

static message access_review = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", access_spec),
    ONE(3, "status", access_status),
    {0},
};

static message self_access_spec = {
    ONE(1, "resourceAttributes", resource_attributes),
    ONE(2, "nonResourceAttributes", path_attributes),
    {0},
};

static message self_access_review = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", self_access_spec),
    ONE(3, "status", access_status),
    {0},
};

static message rules_spec = {
    STRING(1, "namespace"),
    {0},
};

static message resource_rule = {
    STRINGS(1, "verbs"),
    STRINGS(2, "apiGroups"),
    STRINGS(3, "resources"),
    STRINGS(4, "resourceNames"),
    {0},
};

static message path_rule = {
    STRINGS(1, "verbs"),
    STRINGS(2, "nonResourceURLs"),
    {0},
};

static message rules_status = {
    MANY(1, "resourceRules", resource_rule),
    MANY(2, "nonResourceRules", path_rule),
    BOOL(3, "incomplete"),
    STRING(4, "evaluationError"),
    {0},
};

static message rules_review = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", rules_spec),
    ONE(3, "status", rules_status),
    {0},
};

/* authentication.k8s.io/v1 */

static message user_info = {
    STRING(1, "username"),
    STRING(2, "uid"),
    STRINGS(3, "groups"),
    LISTS(4, "extra"),
    {0},
};

static message token_spec = {
    STRING(1, "token"),
    STRINGS(2, "audiences"),
    {0},
};

static message token_status = {
    BOOL(1, "authenticated"),
    ONE(2, "user", user_info),
    STRING(3, "error"),
    STRINGS(4, "audiences"),
    {0},
};

static message token_review = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", token_spec),
    ONE(3, "status", token_status),
    {0},
};

static message self_status = {
    ONE(1, "userInfo", user_info),
    {0},
};

static message self_review = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "status", self_status),
    {0},
};

static message bound_object = {
    STRING(1, "kind"),
    STRING(2, "apiVersion"),
    STRING(3, "name"),
    STRING(4, "uid"),
    {0},
};

static message token_request_spec = {
    STRINGS(1, "audiences"),
    ONE(3, "boundObjectRef", bound_object),
    GIVEN(4, "expirationSeconds", INT),
    {0},
};

static message token_request_status = {
    STRING(1, "token"),
    TIME(2, "expirationTimestamp"),
    {0},
};

static message token_request = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", token_request_spec),
    ONE(3, "status", token_request_status),
    {0},
};

/* coordination.k8s.io/v1 */

static message lease_spec = {
    GIVEN(1, "holderIdentity", STRING),
    GIVEN(2, "leaseDurationSeconds", INT),
    MICRO_TIME(3, "acquireTime"),
    MICRO_TIME(4, "renewTime"),
    GIVEN(5, "leaseTransitions", INT),
    STRING(6, "strategy"),
    STRING(7, "preferredHolder"),
    {0},
};

static message lease = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", lease_spec),
    {0},
};

/* v1 and events.k8s.io/v1 */

message message_object_reference = {
    STRING(1, "kind"),
    STRING(2, "namespace"),
    STRING(3, "name"),
    STRING(4, "uid"),
    STRING(5, "apiVersion"),
    STRING(6, "resourceVersion"),
    STRING(7, "fieldPath"),
    {0},
};

static message event_source = {
    STRING(1, "component"),
    STRING(2, "host"),
    {0},
};

static message event_series = {
    INT(1, "count"),
    MICRO_TIME(2, "lastObservedTime"),
    {0},
};

static message core_event = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "involvedObject", message_object_reference),
    STRING(3, "reason"),
    STRING(4, "message"),
    ONE(5, "source", event_source),
    TIME(6, "firstTimestamp"),
    TIME(7, "lastTimestamp"),
    INT(8, "count"),
    STRING(9, "type"),
    MICRO_TIME(10, "eventTime"),
    ONE(11, "series", event_series),
    STRING(12, "action"),
    ONE(13, "related", message_object_reference),
    STRING(14, "reportingComponent"),
    STRING(15, "reportingInstance"),
    {0},
};

static message new_event = {
    ONE(1, "metadata", message_metadata),
    MICRO_TIME(2, "eventTime"),
    ONE(3, "series", event_series),
    STRING(4, "reportingController"),
    STRING(5, "reportingInstance"),
    STRING(6, "action"),
    STRING(7, "reason"),
    ONE(8, "regarding", message_object_reference),
    ONE(9, "related", message_object_reference),
    STRING(10, "note"),
    STRING(11, "type"),
    ONE(12, "deprecatedSource", event_source),
    TIME(13, "deprecatedFirstTimestamp"),
    TIME(14, "deprecatedLastTimestamp"),
    INT(15, "deprecatedCount"),
    {0},
};

/* What kubectl create makes. */

static message secret = {
    ONE(1, "metadata", message_metadata),
    BYTES_MAP(2, "data"),
    STRING(3, "type"),
    MAP(4, "stringData"),
    GIVEN(5, "immutable", BOOL),
    {0},
};

static message config_map = {
    ONE(1, "metadata", message_metadata),
    MAP(2, "data"),
    BYTES_MAP(3, "binaryData"),
    GIVEN(4, "immutable", BOOL),
    {0},
};

static message namespace_condition = {
    STRING(1, "type"),
    STRING(2, "status"),
    TIME(4, "lastTransitionTime"),
    STRING(5, "reason"),
    STRING(6, "message"),
    {0},
};

static message namespace_spec = {
    STRINGS(1, "finalizers"),
    {0},
};

static message namespace_status = {
    STRING(1, "phase"),
    MANY(2, "conditions", namespace_condition),
    {0},
};

static message namespace = {
    ONE(1, "metadata", message_metadata),
    ONE(2, "spec", namespace_spec),
    ONE(3, "status", namespace_status),
    {0},
};

message message_local_reference = {
    STRING(1, "name"),
    {0},
};

static message service_account = {
    ONE(1, "metadata", message_metadata),
    MANY(2, "secrets", message_object_reference),
    MANY(3, "imagePullSecrets", message_local_reference),
    GIVEN(4, "automountServiceAccountToken", BOOL),
    {0},
};

static message policy_rule = {
    STRINGS(1, "verbs"),
    STRINGS(2, "apiGroups"),
    STRINGS(3, "resources"),
    STRINGS(4, "resourceNames"),
    STRINGS(5, "nonResourceURLs"),
    {0},
};

message message_label_selector = {
    MAP(1, "matchLabels"),
    MANY(2, "matchExpressions", requirement),
    {0},
};

static message aggregation_rule = {
    MANY(1, "clusterRoleSelectors", message_label_selector),
    {0},
};

static message role = {
    ONE(1, "metadata", message_metadata),
    MANY(2, "rules", policy_rule),
    ONE(3, "aggregationRule", aggregation_rule),
    {0},
};

static message subject = {
    STRING(1, "kind"),
    STRING(2, "apiGroup"),
    STRING(3, "name"),
    STRING(4, "namespace"),
    {0},
};

static message role_ref = {
    STRING(1, "apiGroup"),
    STRING(2, "kind"),
    STRING(3, "name"),
    {0},
};

static message role_binding = {
    ONE(1, "metadata", message_metadata),
    MANY(2, "subjects", subject),
    ONE(3, "roleRef", role_ref),
    {0},
};

/* meta/v1 */

message message_condition = {
    STRING(1, "type"),
    STRING(2, "status"),
    INT(3, "observedGeneration"),
    TIME(4, "lastTransitionTime"),
    STRING(5, "reason"),
    STRING(6, "message"),
    {0},
};

static message preconditions = {
    GIVEN(1, "uid", STRING),
    GIVEN(2, "resourceVersion", STRING),
    {0},
};

static message delete_options = {
    GIVEN(1, "gracePeriodSeconds", INT),
    ONE(2, "preconditions", preconditions),
    GIVEN(3, "orphanDependents", BOOL),
    GIVEN(4, "propagationPolicy", STRING),
    STRINGS(5, "dryRun"),
    {0},
};
/* clang-format on */

static const struct {
    const char *kind, *group; /* the group with its version; NULL: any, as of what has none */
    const struct api_message_field *fields;
} messages[] = {
    {"SelfSubjectAccessReview", "authorization.k8s.io/v1", self_access_review},
    {"SubjectAccessReview", "authorization.k8s.io/v1", access_review},
    {"LocalSubjectAccessReview", "authorization.k8s.io/v1", access_review},
    {"SelfSubjectRulesReview", "authorization.k8s.io/v1", rules_review},
    {"TokenReview", "authentication.k8s.io/v1", token_review},
    {"SelfSubjectReview", "authentication.k8s.io/v1", self_review},
    {"TokenRequest", "authentication.k8s.io/v1", token_request},
    {"Lease", "coordination.k8s.io/v1", lease},
    {"Event", "v1", core_event},
    {"Event", "events.k8s.io/v1", new_event},
    {"Secret", "v1", secret},
    {"ConfigMap", "v1", config_map},
    {"Namespace", "v1", namespace},
    {"ServiceAccount", "v1", service_account},
    {"Role", "rbac.authorization.k8s.io/v1", role},
    {"ClusterRole", "rbac.authorization.k8s.io/v1", role},
    {"RoleBinding", "rbac.authorization.k8s.io/v1", role_binding},
    {"ClusterRoleBinding", "rbac.authorization.k8s.io/v1", role_binding},
    {"DeleteOptions", NULL, delete_options},
    {"Pod", "v1", message_pod},
    {"Service", "v1", message_service},
    {"Endpoints", "v1", message_endpoints},
    {"Node", "v1", message_node},
    {"ResourceQuota", "v1", message_resource_quota},
    {"LimitRange", "v1", message_limit_range},
    {"PersistentVolume", "v1", message_persistent_volume},
    {"PersistentVolumeClaim", "v1", message_persistent_volume_claim},
    {"Deployment", "apps/v1", message_deployment},
    {"ReplicaSet", "apps/v1", message_replica_set},
    {"StatefulSet", "apps/v1", message_stateful_set},
    {"DaemonSet", "apps/v1", message_daemon_set},
    {"ControllerRevision", "apps/v1", message_controller_revision},
    {"Scale", "autoscaling/v1", message_scale},
    {"Job", "batch/v1", message_job},
    {"CronJob", "batch/v1", message_cron_job},
    {"PodDisruptionBudget", "policy/v1", message_pod_disruption_budget},
    {"PriorityClass", "scheduling.k8s.io/v1", message_priority_class},
    {"StorageClass", "storage.k8s.io/v1", message_storage_class},
    {"CSINode", "storage.k8s.io/v1", message_csi_node},
    {"CSIDriver", "storage.k8s.io/v1", message_csi_driver},
    {"VolumeAttachment", "storage.k8s.io/v1", message_volume_attachment},
    {"CSIStorageCapacity", "storage.k8s.io/v1", message_csi_storage_capacity},
    {"VolumeAttributesClass", "storage.k8s.io/v1", message_volume_attributes_class},
    {"CertificateSigningRequest", "certificates.k8s.io/v1", message_certificate_signing_request},
    {"Binding", "v1", message_binding},
    {"EndpointSlice", "discovery.k8s.io/v1", message_endpoint_slice},
    {"ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1",
     message_validating_webhook_configuration},
    {"MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1",
     message_mutating_webhook_configuration},
};

const struct api_message_field *message_find(const char *api_version, const char *kind)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        if (str_eq(messages[i].kind, kind) &&
            (!messages[i].group || str_eq(messages[i].group, api_version)))
            return messages[i].fields;
    }
    return NULL;
}

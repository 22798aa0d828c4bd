/*
 * What makes pods: workloads and jobs; and what watches over them. The numbers are Kubernetes'.
 */
#include "k8s/messages/messages.h"

/* clang-format off */
static message rolling_update_deployment = {
    INT_OR_STRING(1, "maxUnavailable"), INT_OR_STRING(2, "maxSurge"), {0},
};

static message deployment_strategy = {
    STRING(1, "type"), ONE(2, "rollingUpdate", rolling_update_deployment), {0},
};

static message deployment_spec = {
    GIVEN(1, "replicas", INT), ONE(2, "selector", message_label_selector),
    ONE(3, "template", message_pod_template_spec), ONE(4, "strategy", deployment_strategy),
    INT(5, "minReadySeconds"), GIVEN(6, "revisionHistoryLimit", INT), BOOL(7, "paused"),
    GIVEN(9, "progressDeadlineSeconds", INT), {0},
};

static message deployment_condition = {
    STRING(1, "type"), STRING(2, "status"), STRING(4, "reason"), STRING(5, "message"),
    TIME(6, "lastUpdateTime"), TIME(7, "lastTransitionTime"), {0},
};

static message deployment_status = {
    INT(1, "observedGeneration"), INT(2, "replicas"), INT(3, "updatedReplicas"),
    INT(4, "availableReplicas"), INT(5, "unavailableReplicas"),
    MANY(6, "conditions", deployment_condition), INT(7, "readyReplicas"),
    GIVEN(8, "collisionCount", INT), GIVEN(9, "terminatingReplicas", INT), {0},
};

message message_deployment = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", deployment_spec),
    ONE(3, "status", deployment_status), {0},
};

static message rolling_update_stateful_set_strategy = {
    GIVEN(1, "partition", INT), INT_OR_STRING(2, "maxUnavailable"), {0},
};

static message stateful_set_update_strategy = {
    STRING(1, "type"), ONE(2, "rollingUpdate", rolling_update_stateful_set_strategy), {0},
};

static message stateful_set_persistent_volume_claim_retention_policy = {
    STRING(1, "whenDeleted"), STRING(2, "whenScaled"), {0},
};

static message stateful_set_ordinals = {
    INT(1, "start"), {0},
};

static message stateful_set_spec = {
    GIVEN(1, "replicas", INT), ONE(2, "selector", message_label_selector),
    ONE(3, "template", message_pod_template_spec),
    MANY(4, "volumeClaimTemplates", message_persistent_volume_claim), STRING(5, "serviceName"),
    STRING(6, "podManagementPolicy"), ONE(7, "updateStrategy", stateful_set_update_strategy),
    GIVEN(8, "revisionHistoryLimit", INT), INT(9, "minReadySeconds"),
    ONE(10, "persistentVolumeClaimRetentionPolicy", stateful_set_persistent_volume_claim_retention_policy),
    ONE(11, "ordinals", stateful_set_ordinals), {0},
};

static message stateful_set_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastTransitionTime"), STRING(4, "reason"),
    STRING(5, "message"), {0},
};

static message stateful_set_status = {
    INT(1, "observedGeneration"), INT(2, "replicas"), INT(3, "readyReplicas"),
    INT(4, "currentReplicas"), INT(5, "updatedReplicas"), STRING(6, "currentRevision"),
    STRING(7, "updateRevision"), GIVEN(9, "collisionCount", INT),
    MANY(10, "conditions", stateful_set_condition), INT(11, "availableReplicas"), {0},
};

message message_stateful_set = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", stateful_set_spec),
    ONE(3, "status", stateful_set_status), {0},
};

static message rolling_update_daemon_set = {
    INT_OR_STRING(1, "maxUnavailable"), INT_OR_STRING(2, "maxSurge"), {0},
};

static message daemon_set_update_strategy = {
    STRING(1, "type"), ONE(2, "rollingUpdate", rolling_update_daemon_set), {0},
};

static message daemon_set_spec = {
    ONE(1, "selector", message_label_selector), ONE(2, "template", message_pod_template_spec),
    ONE(3, "updateStrategy", daemon_set_update_strategy), INT(4, "minReadySeconds"),
    GIVEN(6, "revisionHistoryLimit", INT), {0},
};

static message daemon_set_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastTransitionTime"), STRING(4, "reason"),
    STRING(5, "message"), {0},
};

static message daemon_set_status = {
    INT(1, "currentNumberScheduled"), INT(2, "numberMisscheduled"),
    INT(3, "desiredNumberScheduled"), INT(4, "numberReady"), INT(5, "observedGeneration"),
    INT(6, "updatedNumberScheduled"), INT(7, "numberAvailable"), INT(8, "numberUnavailable"),
    GIVEN(9, "collisionCount", INT), MANY(10, "conditions", daemon_set_condition), {0},
};

message message_daemon_set = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", daemon_set_spec),
    ONE(3, "status", daemon_set_status), {0},
};

static message replica_set_spec = {
    GIVEN(1, "replicas", INT), ONE(2, "selector", message_label_selector),
    ONE(3, "template", message_pod_template_spec), INT(4, "minReadySeconds"), {0},
};

static message replica_set_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastTransitionTime"), STRING(4, "reason"),
    STRING(5, "message"), {0},
};

static message replica_set_status = {
    INT(1, "replicas"), INT(2, "fullyLabeledReplicas"), INT(3, "observedGeneration"),
    INT(4, "readyReplicas"), INT(5, "availableReplicas"),
    MANY(6, "conditions", replica_set_condition), GIVEN(7, "terminatingReplicas", INT), {0},
};

message message_replica_set = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", replica_set_spec),
    ONE(3, "status", replica_set_status), {0},
};

message message_controller_revision = {
    ONE(1, "metadata", message_metadata), JSON(2, "data"), INT(3, "revision"), {0},
};

static message pod_failure_policy_on_exit_codes_requirement = {
    GIVEN(1, "containerName", STRING), STRING(2, "operator"), INTS(3, "values"), {0},
};

static message pod_failure_policy_on_pod_conditions_pattern = {
    STRING(1, "type"), STRING(2, "status"), {0},
};

static message pod_failure_policy_rule = {
    STRING(1, "action"), ONE(2, "onExitCodes", pod_failure_policy_on_exit_codes_requirement),
    MANY(3, "onPodConditions", pod_failure_policy_on_pod_conditions_pattern), {0},
};

static message pod_failure_policy = {
    MANY(1, "rules", pod_failure_policy_rule), {0},
};

static message success_policy_rule = {
    GIVEN(1, "succeededIndexes", STRING), GIVEN(2, "succeededCount", INT), {0},
};

static message success_policy = {
    MANY(1, "rules", success_policy_rule), {0},
};

static message job_spec = {
    GIVEN(1, "parallelism", INT), GIVEN(2, "completions", INT),
    GIVEN(3, "activeDeadlineSeconds", INT), ONE(4, "selector", message_label_selector),
    GIVEN(5, "manualSelector", BOOL), ONE(6, "template", message_pod_template_spec),
    GIVEN(7, "backoffLimit", INT), GIVEN(8, "ttlSecondsAfterFinished", INT),
    GIVEN(9, "completionMode", STRING), GIVEN(10, "suspend", BOOL),
    ONE(11, "podFailurePolicy", pod_failure_policy), GIVEN(12, "backoffLimitPerIndex", INT),
    GIVEN(13, "maxFailedIndexes", INT), GIVEN(14, "podReplacementPolicy", STRING),
    GIVEN(15, "managedBy", STRING), ONE(16, "successPolicy", success_policy), {0},
};

static message job_condition = {
    STRING(1, "type"), STRING(2, "status"), TIME(3, "lastProbeTime"), TIME(4, "lastTransitionTime"),
    STRING(5, "reason"), STRING(6, "message"), {0},
};

static message uncounted_terminated_pods = {
    STRINGS(1, "succeeded"), STRINGS(2, "failed"), {0},
};

static message job_status = {
    MANY(1, "conditions", job_condition), TIME(2, "startTime"), TIME(3, "completionTime"),
    INT(4, "active"), INT(5, "succeeded"), INT(6, "failed"), STRING(7, "completedIndexes"),
    ONE(8, "uncountedTerminatedPods", uncounted_terminated_pods), GIVEN(9, "ready", INT),
    GIVEN(10, "failedIndexes", STRING), GIVEN(11, "terminating", INT), {0},
};

message message_job = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", job_spec), ONE(3, "status", job_status),
    {0},
};

static message job_template_spec = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", job_spec), {0},
};

static message cron_job_spec = {
    STRING(1, "schedule"), GIVEN(2, "startingDeadlineSeconds", INT), STRING(3, "concurrencyPolicy"),
    GIVEN(4, "suspend", BOOL), ONE(5, "jobTemplate", job_template_spec),
    GIVEN(6, "successfulJobsHistoryLimit", INT), GIVEN(7, "failedJobsHistoryLimit", INT),
    GIVEN(8, "timeZone", STRING), {0},
};

static message cron_job_status = {
    MANY(1, "active", message_object_reference), TIME(4, "lastScheduleTime"),
    TIME(5, "lastSuccessfulTime"), {0},
};

message message_cron_job = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", cron_job_spec),
    ONE(3, "status", cron_job_status), {0},
};

static message pod_disruption_budget_spec = {
    INT_OR_STRING(1, "minAvailable"), ONE(2, "selector", message_label_selector),
    INT_OR_STRING(3, "maxUnavailable"), GIVEN(4, "unhealthyPodEvictionPolicy", STRING), {0},
};

static message pod_disruption_budget_status = {
    INT(1, "observedGeneration"), INT(3, "disruptionsAllowed"), INT(4, "currentHealthy"),
    INT(5, "desiredHealthy"), INT(6, "expectedPods"), MANY(7, "conditions", message_condition),
    {0},
};

message message_pod_disruption_budget = {
    ONE(1, "metadata", message_metadata), ONE(2, "spec", pod_disruption_budget_spec),
    ONE(3, "status", pod_disruption_budget_status), {0},
};

message message_priority_class = {
    ONE(1, "metadata", message_metadata), INT(2, "value"), BOOL(3, "globalDefault"),
    STRING(4, "description"), GIVEN(5, "preemptionPolicy", STRING), {0},
};
/* clang-format on */

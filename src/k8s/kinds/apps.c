/*
 * Deployment, ReplicaSet, DaemonSet and ControllerRevision.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field rolling_update[] = {
    {"maxUnavailable", API_INT_OR_STRING, .def = "\"25%\"",
     .doc = "How many pods may be missing meanwhile, as number or percentage."},
    {"maxSurge", API_INT_OR_STRING, .def = "\"25%\"",
     .doc = "How many pods there may be on top meanwhile, as number or percentage."},
    {0},
};

static const struct api_field strategy[] = {
    {"type", API_STRING, .words = API_WORDS("RollingUpdate", "Recreate"),
     .def = "\"RollingUpdate\"", .doc = "Replace pods a few at a time, or all at once."},
    {"rollingUpdate", API_OBJECT, .fields = rolling_update, .doc = "Settings of RollingUpdate."},
    {0},
};

static const struct api_field deployment_spec[] = {
    {"replicas", API_INT, API_UINT31, .def = "1", .doc = "How many pods are wanted."},
    {"selector", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED, .fields = api_label_selector,
     .doc = "Which pods are its own; must match the template's labels."},
    {"template", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_template,
     .doc = "The pods that are made."},
    {"strategy", API_OBJECT, .flags = API_RETAIN_KEYS, .fields = strategy,
     .def = "{\"type\": \"RollingUpdate\", \"rollingUpdate\": {}}",
     .doc = "How old pods are replaced by new ones."},
    {"minReadySeconds", API_INT, API_UINT31, .doc = "How long a pod must be ready to count."},
    {"revisionHistoryLimit", API_INT, API_UINT31, .def = "10",
     .doc = "How many old ReplicaSets are kept."},
    {"paused", API_BOOL, .doc = "Whether changes wait."},
    {"progressDeadlineSeconds", API_INT, API_UINT31, .def = "600",
     .doc = "Time after which a roll-out that stands still counts as failed."},
    {0},
};

static const struct api_field deployment_status[] = {
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"replicas", API_INT, API_UINT31, .doc = "Pods that are there."},
    {"updatedReplicas", API_INT, API_UINT31, .doc = "Pods of the present template."},
    {"readyReplicas", API_INT, API_UINT31, .doc = "Pods that are ready."},
    {"availableReplicas", API_INT, API_UINT31, .doc = "Pods that were ready long enough."},
    {"unavailableReplicas", API_INT, API_UINT31, .doc = "Pods that are missing."},
    {"terminatingReplicas", API_INT, API_UINT31, .doc = "Pods that are ending."},
    API_CONDITIONS,
    {"collisionCount", API_INT, API_UINT31, .doc = "How often a name for a ReplicaSet was taken."},
    {0},
};

static const struct api_field deployment_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = deployment_spec,
     .doc = "The pods that are wanted."},
    {"status", API_OBJECT, .fields = deployment_status, .def = "{}",
     .doc = "The pods that are there."},
    {0},
};

static const struct api_column deployment_columns[] = {
    {"Ready", "string", NULL, "Pods that are ready, of all", 0, api_cell_replicas_ready},
    {"Up-to-date", "string", NULL, "Pods of the present template", 0, api_cell_updated},
    {"Available", "string", NULL, "Pods that were ready long enough", 0, api_cell_available},
    API_AGE,
    API_TEMPLATE_COLUMNS,
    API_SELECTOR_COLUMN,
    {0},
};

static const struct api_field replica_set_spec[] = {
    {"replicas", API_INT, API_UINT31, .def = "1", .doc = "How many pods are wanted."},
    {"minReadySeconds", API_INT, API_UINT31, .doc = "How long a pod must be ready to count."},
    {"selector", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED, .fields = api_label_selector,
     .doc = "Which pods are its own; must match the template's labels."},
    {"template", API_OBJECT, .fields = api_pod_template, .doc = "The pods that are made."},
    {0},
};

static const struct api_field replica_set_status[] = {
    {"replicas", API_INT, API_UINT31, .doc = "Pods that are there."},
    {"fullyLabeledReplicas", API_INT, API_UINT31, .doc = "Pods that have the template's labels."},
    {"readyReplicas", API_INT, API_UINT31, .doc = "Pods that are ready."},
    {"availableReplicas", API_INT, API_UINT31, .doc = "Pods that were ready long enough."},
    {"terminatingReplicas", API_INT, API_UINT31, .doc = "Pods that are ending."},
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    API_CONDITIONS,
    {0},
};

static const struct api_field replica_set_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = replica_set_spec,
     .doc = "The pods that are wanted."},
    {"status", API_OBJECT, .fields = replica_set_status, .def = "{\"replicas\": 0}",
     .doc = "The pods that are there."},
    {0},
};

static const struct api_column replica_set_columns[] = {
    {"Desired", "integer", ".spec.replicas", "Pods that are wanted"},
    {"Current", "integer", ".status.replicas", "Pods that are there"},
    {"Ready", "integer", ".status.readyReplicas", "Pods that are ready"},
    API_AGE,
    API_TEMPLATE_COLUMNS,
    API_SELECTOR_COLUMN,
    {0},
};

static const struct api_field daemon_rolling_update[] = {
    {"maxUnavailable", API_INT_OR_STRING, .def = "1",
     .doc = "On how many nodes the pod may be missing meanwhile."},
    {"maxSurge", API_INT_OR_STRING, .def = "0",
     .doc = "On how many nodes there may be two pods meanwhile."},
    {0},
};

static const struct api_field daemon_strategy[] = {
    {"type", API_STRING, .words = API_WORDS("RollingUpdate", "OnDelete"),
     .def = "\"RollingUpdate\"", .doc = "Replace pods by itself, or when they are deleted."},
    {"rollingUpdate", API_OBJECT, .fields = daemon_rolling_update,
     .doc = "Settings of RollingUpdate."},
    {0},
};

static const struct api_field daemon_set_spec[] = {
    {"selector", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED, .fields = api_label_selector,
     .doc = "Which pods are its own; must match the template's labels."},
    {"template", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_template,
     .doc = "The pod that every node gets."},
    {"updateStrategy", API_OBJECT, .fields = daemon_strategy,
     .def = "{\"type\": \"RollingUpdate\", \"rollingUpdate\": {}}",
     .doc = "How old pods are replaced by new ones."},
    {"minReadySeconds", API_INT, API_UINT31, .doc = "How long a pod must be ready to count."},
    {"revisionHistoryLimit", API_INT, API_UINT31, .def = "10",
     .doc = "How many old revisions are kept."},
    {0},
};

static const struct api_field daemon_set_status[] = {
    {"currentNumberScheduled", API_INT, API_UINT31, .doc = "Nodes that should have it and do."},
    {"numberMisscheduled", API_INT, API_UINT31, .doc = "Nodes that have it and should not."},
    {"desiredNumberScheduled", API_INT, API_UINT31, .doc = "Nodes that should have it."},
    {"numberReady", API_INT, API_UINT31, .doc = "Nodes on which it is ready."},
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"updatedNumberScheduled", API_INT, API_UINT31, .doc = "Nodes with the present template."},
    {"numberAvailable", API_INT, API_UINT31, .doc = "Nodes on which it was ready long enough."},
    {"numberUnavailable", API_INT, API_UINT31, .doc = "Nodes on which it is missing."},
    {"collisionCount", API_INT, API_UINT31, .doc = "How often a name for a revision was taken."},
    API_CONDITIONS,
    {0},
};

static const struct api_field daemon_set_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = daemon_set_spec,
     .doc = "The pods that are wanted."},
    {"status", API_OBJECT, .fields = daemon_set_status,
     .def = "{\"currentNumberScheduled\": 0, \"numberMisscheduled\": 0, "
            "\"desiredNumberScheduled\": 0, \"numberReady\": 0}",
     .doc = "The pods that are there."},
    {0},
};

static const struct api_column daemon_set_columns[] = {
    {"Desired", "integer", ".status.desiredNumberScheduled", "Nodes that should have it"},
    {"Current", "integer", ".status.currentNumberScheduled", "Nodes that have it"},
    {"Ready", "integer", ".status.numberReady", "Nodes on which it is ready"},
    {"Up-to-date", "integer", ".status.updatedNumberScheduled", "Nodes with the present template"},
    {"Available", "integer", ".status.numberAvailable", "Nodes on which it was ready long enough"},
    {"Node Selector", "string", NULL, "Labels of its nodes", 0, api_cell_node_selector},
    API_AGE,
    API_TEMPLATE_COLUMNS,
    API_SELECTOR_COLUMN,
    {0},
};

static const struct api_field revision_fields[] = {
    API_TYPE_AND_META,
    {"data", API_ANY, .doc = "The state that was kept."},
    {"revision", API_INT, .flags = API_REQUIRED, .doc = "Its number; the latest has the highest."},
    {0},
};

static const struct api_column revision_columns[] = {
    {"Controller", "string", NULL, "What it is a revision of", 0, api_cell_controller},
    {"Revision", "integer", ".revision", "Number of the revision"},
    API_AGE,
    {0},
};

/* Pods that have a template to be checked as well. */
static void validate(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "spec"), "template");
    const json_t *template = json_at(object, "spec", "template");
    api_workload_validate(object, report);
    if (template)
        api_pod_spec_validate(json_object_get(template, "spec"), API_KEY(at, "spec"), report);
}

const struct api_kind api_deployment = {
    .kind = "Deployment",
    .plural = "deployments",
    .singular = "deployment",
    .short_names = API_WORDS("deploy"),
    .versions = API_VERSION("apps", "v1"),
    .flags = API_BUILTIN | API_STATUS | API_SCALE,
    .fields = deployment_fields,
    .columns = deployment_columns,
    .scale_spec = ".spec.replicas",
    .scale_status = ".status.replicas",
    .scale_selector = ".spec.selector",
    .derive = api_pod_template_derive,
    .validate = validate,
    .doc = "A number of like pods, replaced step by step when the template changes.",
};

const struct api_kind api_replica_set = {
    .kind = "ReplicaSet",
    .plural = "replicasets",
    .singular = "replicaset",
    .short_names = API_WORDS("rs"),
    .versions = API_VERSION("apps", "v1"),
    .flags = API_BUILTIN | API_STATUS | API_SCALE,
    .fields = replica_set_fields,
    .columns = replica_set_columns,
    .scale_spec = ".spec.replicas",
    .scale_status = ".status.replicas",
    .scale_selector = ".spec.selector",
    .derive = api_pod_template_derive,
    .validate = validate,
    .doc = "A number of like pods; as a rule made by a Deployment.",
};

const struct api_kind api_daemon_set = {
    .kind = "DaemonSet",
    .plural = "daemonsets",
    .singular = "daemonset",
    .short_names = API_WORDS("ds"),
    .versions = API_VERSION("apps", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = daemon_set_fields,
    .columns = daemon_set_columns,
    .derive = api_pod_template_derive,
    .validate = validate,
    .doc = "One pod on every node.",
};

const struct api_kind api_controller_revision = {
    .kind = "ControllerRevision",
    .plural = "controllerrevisions",
    .singular = "controllerrevision",
    .versions = API_VERSION("apps", "v1"),
    .flags = API_BUILTIN,
    .fields = revision_fields,
    .columns = revision_columns,
    .doc = "A state that a StatefulSet or DaemonSet once had.",
};

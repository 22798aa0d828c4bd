/*
 * What programs of a cluster use among themselves: leases, budgets, priorities.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field lease_spec[] = {
    {"holderIdentity", API_STRING, .doc = "Who holds the lease."},
    {"leaseDurationSeconds", API_INT, .min = 1, .max = INT32_MAX,
     .doc = "How long after renewTime others must wait."},
    {"acquireTime", API_TIME, .doc = "Since when the holder has it."},
    {"renewTime", API_TIME, .doc = "When the holder last confirmed it."},
    {"leaseTransitions", API_INT, API_UINT31, .doc = "How often the holder changed."},
    {"strategy", API_STRING, .doc = "How the next holder is chosen."},
    {"preferredHolder", API_STRING, .doc = "Whom the holder should make room for."},
    {0},
};

static const struct api_field lease_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = lease_spec, .doc = "Who holds it, and until when."},
    {0},
};

static const struct api_column lease_columns[] = {
    {"Holder", "string", ".spec.holderIdentity", "Who holds it"},
    API_AGE,
    {0},
};

static const struct api_field budget_spec[] = {
    {"minAvailable", API_INT_OR_STRING, .doc = "How many pods must stay, as number or percentage."},
    {"maxUnavailable", API_INT_OR_STRING,
     .doc = "How many pods may be missing, as number or percentage."},
    {"selector", API_OBJECT, .flags = API_ATOMIC | API_REPLACE, .fields = api_label_selector,
     .doc = "The pods that it is about."},
    {"unhealthyPodEvictionPolicy", API_STRING, .words = API_WORDS("IfHealthyBudget", "AlwaysAllow"),
     .doc = "When pods that are not ready may be moved."},
    {0},
};

static const struct api_field budget_status[] = {
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"disruptedPods", API_TIME, API_MAP, .doc = "Pods that are about to be moved, and since when."},
    {"disruptionsAllowed", API_INT, API_UINT31, .doc = "Pods that may be moved now."},
    {"currentHealthy", API_INT, API_UINT31, .doc = "Pods that are ready."},
    {"desiredHealthy", API_INT, API_UINT31, .doc = "Pods that must be ready."},
    {"expectedPods", API_INT, API_UINT31, .doc = "Pods that are counted."},
    API_CONDITIONS,
    {0},
};

static const struct api_field budget_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = budget_spec, .doc = "How many pods may be missing."},
    {"status", API_OBJECT, .fields = budget_status, .doc = "How many are."},
    {0},
};

static const struct api_column budget_columns[] = {
    {"Min Available", "string", NULL, "Pods that must stay", 0, api_cell_min_available},
    {"Max Unavailable", "string", NULL, "Pods that may be missing", 0, api_cell_max_unavailable},
    {"Allowed Disruptions", "integer", ".status.disruptionsAllowed", "Pods that may be moved now"},
    API_AGE,
    {0},
};

static void validate_budget(const json_t *object, struct api_report *report)
{
    if (json_at(object, "spec", "minAvailable") && json_at(object, "spec", "maxUnavailable"))
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "maxUnavailable"), API_FORBIDDEN, NULL,
                    "minAvailable is given as well; keep one of them");
}

static const struct api_field priority_class_fields[] = {
    API_TYPE_AND_META,
    {"value", API_INT, .flags = API_REQUIRED, .min = INT32_MIN, .max = INT32_MAX,
     .doc = "The priority; higher goes first."},
    {"globalDefault", API_BOOL, .doc = "Whether pods without a class have this one."},
    {"description", API_STRING, .doc = "When to use it."},
    {"preemptionPolicy", API_STRING, .words = API_WORDS("PreemptLowerPriority", "Never"),
     .def = "\"PreemptLowerPriority\"", .doc = "Whether its pods may drive out others."},
    {0},
};

static const struct api_column priority_class_columns[] = {
    {"Value", "integer", ".value", "The priority"},
    {"Global-Default", "boolean", ".globalDefault", "Whether it is the default"},
    API_AGE,
    {"PreemptionPolicy", "string", ".preemptionPolicy", "Whether its pods may drive out others"},
    {0},
};

const struct api_kind api_lease = {
    .kind = "Lease",
    .plural = "leases",
    .singular = "lease",
    .versions = API_VERSION("coordination.k8s.io", "v1"),
    .flags = API_BUILTIN,
    .fields = lease_fields,
    .columns = lease_columns,
    .doc = "A right that one process at a time has, such as to be the leader.",
};

const struct api_kind api_pod_disruption_budget = {
    .kind = "PodDisruptionBudget",
    .plural = "poddisruptionbudgets",
    .singular = "poddisruptionbudget",
    .short_names = API_WORDS("pdb"),
    .versions = API_VERSION("policy", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = budget_fields,
    .columns = budget_columns,
    .validate = validate_budget,
    .doc = "How many pods of a set may be missing when nodes are emptied.",
};

const struct api_kind api_priority_class = {
    .kind = "PriorityClass",
    .plural = "priorityclasses",
    .singular = "priorityclass",
    .short_names = API_WORDS("pc"),
    .versions = API_VERSION("scheduling.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = priority_class_fields,
    .columns = priority_class_columns,
    .doc = "A name for a priority of pods.",
};

/*
 * What programs of a cluster use among themselves: leases, budgets, priorities, and the definitions
 * of further kinds.
 */
#include "api/kinds/kinds.h"

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
    {"Min Available", "string", ".spec.minAvailable", "Pods that must stay"},
    {"Max Unavailable", "string", ".spec.maxUnavailable", "Pods that may be missing"},
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

static const struct api_field crd_names[] = {
    {"plural", API_STRING, .flags = API_REQUIRED, .doc = "The plural, as in paths."},
    {"singular", API_STRING, .doc = "The singular, for people."},
    {"shortNames", API_STRING, API_LIST, .doc = "Short forms, for people."},
    {"kind", API_STRING, .flags = API_REQUIRED, .doc = "The kind."},
    {"listKind", API_STRING, .doc = "The kind of its lists."},
    {"categories", API_STRING, API_LIST, .doc = "Groups of kinds, such as all."},
    {0},
};

static const struct api_field crd_column[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Head of the column."},
    {"type", API_STRING, .flags = API_REQUIRED, .doc = "OpenAPI type of its values."},
    {"jsonPath", API_STRING, .flags = API_REQUIRED, .doc = "Where its values come from."},
    {"format", API_STRING, .doc = "OpenAPI format of its values."},
    {"description", API_STRING, .doc = "What it shows."},
    {"priority", API_INT, .doc = "Above 0: only in wide output."},
    {0},
};

static const struct api_field crd_version[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "The version, such as v1."},
    {"served", API_BOOL, .flags = API_REQUIRED, .doc = "Whether it can be used."},
    {"storage", API_BOOL, .flags = API_REQUIRED, .doc = "Whether objects are kept in it; one is."},
    {"deprecated", API_BOOL, .doc = "Whether users are warned."},
    {"deprecationWarning", API_STRING, .doc = "What they are told."},
    {"schema", API_OBJECT, .flags = API_KEEP, .doc = "Its OpenAPI schema."},
    {"subresources", API_OBJECT, .flags = API_KEEP, .doc = "Whether it has status and scale."},
    {"additionalPrinterColumns", API_OBJECT, API_LIST, .fields = crd_column,
     .doc = "Columns that kubectl get shows."},
    {"selectableFields", API_OBJECT, API_LIST, API_KEEP, .doc = "Fields to select by."},
    {0},
};

static const struct api_field crd_spec[] = {
    {"group", API_STRING, .flags = API_REQUIRED, .format = &api_dns_subdomain,
     .doc = "The API group."},
    {"names", API_OBJECT, .flags = API_REQUIRED, .fields = crd_names, .doc = "What it is called."},
    {"scope", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("Namespaced", "Cluster"),
     .doc = "Whether its objects belong to a namespace."},
    {"versions", API_OBJECT, API_LIST, API_REQUIRED, .fields = crd_version,
     .doc = "The versions that it has."},
    {"conversion", API_OBJECT, .flags = API_KEEP, .def = "{\"strategy\": \"None\"}",
     .doc = "How objects go from one version to another."},
    {"preserveUnknownFields", API_BOOL, .doc = "Obsolete; must be false."},
    {0},
};

/* Strategic merge replaces its conditions, other than most kinds'; server-side apply does not. */
static const struct api_field crd_status[] = {
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions, .map_keys = API_KEYS("type"),
     .doc = "Whether the kind can be used."},
    {"acceptedNames", API_OBJECT, .flags = API_KEEP, .doc = "Names that are in force."},
    {"storedVersions", API_STRING, API_LIST, .doc = "Versions in which objects were ever kept."},
    {0},
};

static const struct api_field crd_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = crd_spec, .doc = "The kind."},
    {"status", API_OBJECT, .fields = crd_status, .doc = "Whether it can be used."},
    {0},
};

static const struct api_column crd_columns[] = {
    API_CREATED_AT,
    {0},
};

static void validate_crd(const json_t *object, struct api_report *report)
{
    const json_t *name = json_at(object, "metadata", "name");
    const char *plural = json_string_value(json_at(object, "spec", "names", "plural"));
    const char *group = json_string_value(json_at(object, "spec", "group"));
    _cleanup_free_ char *expected = mem_printf("%s.%s", plural, group);
    if (name && !str_eq(json_string_value(name), expected))
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID, name,
                    "must be plural and group: \"%s\"", expected);

    unsigned stored = 0;
    size_t i;
    json_t *version;
    json_array_foreach(json_at(object, "spec", "versions"), i, version)
        stored += json_is_true(json_object_get(version, "storage"));
    if (stored != 1)
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "versions"), API_INVALID, NULL,
                    "exactly one version must have \"storage: true\", not %u", stored);
}

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

const struct api_kind api_custom_resource_definition = {
    .kind = "CustomResourceDefinition",
    .plural = "customresourcedefinitions",
    .singular = "customresourcedefinition",
    .short_names = API_WORDS("crd", "crds"),
    .versions = API_VERSION("apiextensions.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_STATUS,
    .fields = crd_fields,
    .columns = crd_columns,
    .validate = validate_crd,
    .doc = "A kind that the API is taught.",
};

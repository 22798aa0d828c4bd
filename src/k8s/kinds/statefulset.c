/*
 * StatefulSet: pods with a lasting name and claims of their own.
 */
#include "base/map.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

const char api_stateful_set_fixed[] =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden";

static const struct api_field rolling_update[] = {
    {"partition", API_INT, API_UINT31, .def = "0",
     .doc = "Pods with a lower number keep the old template."},
    {"maxUnavailable", API_INT_OR_STRING,
     .doc = "How many pods may be missing meanwhile, as number or percentage."},
    {0},
};

static const struct api_field update_strategy[] = {
    {"type", API_STRING, .words = API_WORDS("RollingUpdate", "OnDelete"),
     .def = "\"RollingUpdate\"", .doc = "Replace pods by itself, or when they are deleted."},
    {"rollingUpdate", API_OBJECT, .fields = rolling_update, .doc = "Settings of RollingUpdate."},
    {0},
};

static const struct api_field retention_policy[] = {
    {"whenDeleted", API_STRING, .words = API_WORDS("Retain", "Delete"), .def = "\"Retain\"",
     .doc = "What becomes of the claims when the set is deleted."},
    {"whenScaled", API_STRING, .words = API_WORDS("Retain", "Delete"), .def = "\"Retain\"",
     .doc = "What becomes of the claims of pods that are no longer wanted."},
    {0},
};

static const struct api_field ordinals[] = {
    {"start", API_INT, API_UINT31, .def = "0", .doc = "Number of the first pod."},
    {0},
};

/* A whole claim; what a server has filled in besides its spec is let pass. */
static const struct api_field claim_template[] = {
    {"apiVersion", API_STRING, .doc = "That of a PersistentVolumeClaim."},
    {"kind", API_STRING, .doc = "PersistentVolumeClaim, as a rule left out."},
    {"metadata", API_OBJECT, .flags = API_REQUIRED | API_EMBEDDED, .fields = api_object_meta,
     .doc = "Name, labels and annotations of the claims."},
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = api_claim_spec, .doc = "The claims."},
    {"status", API_OBJECT, .flags = API_KEEP, .doc = "Without meaning here."},
    {0},
};

static const struct api_field spec[] = {
    {"replicas", API_INT, API_UINT31, .def = "1", .doc = "How many pods are wanted."},
    {"selector", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED, .fields = api_label_selector,
     .doc = "Which pods are its own; must match the template's labels."},
    {"template", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_template,
     .doc = "The pods that are made."},
    {"volumeClaimTemplates", API_OBJECT, API_LIST, .fields = claim_template,
     .doc = "Claims that every pod gets for itself and keeps."},
    {"volumeClaimUpdatePolicy", API_STRING, .words = API_WORDS("OnClaimDelete", "InPlace"),
     .doc = "Whether a changed claim template reaches only claims made later, which is so when "
            "not given, or those that are there, too."},
    {"serviceName", API_STRING, .format = &api_dns_subdomain,
     .doc = "The service under whose name the pods are known."},
    {"podManagementPolicy", API_STRING, .words = API_WORDS("OrderedReady", "Parallel"),
     .def = "\"OrderedReady\"", .doc = "Start and end pods one by one, or all at once."},
    {"updateStrategy", API_OBJECT, .fields = update_strategy,
     .def = "{\"type\": \"RollingUpdate\", \"rollingUpdate\": {}}",
     .doc = "How old pods are replaced by new ones."},
    {"revisionHistoryLimit", API_INT, API_UINT31, .def = "10",
     .doc = "How many old revisions are kept."},
    {"minReadySeconds", API_INT, API_UINT31, .doc = "How long a pod must be ready to count."},
    {"persistentVolumeClaimRetentionPolicy", API_OBJECT, .fields = retention_policy,
     .doc = "What becomes of claims that are no longer used."},
    {"ordinals", API_OBJECT, .fields = ordinals, .doc = "How pods are numbered."},
    {0},
};

static const struct api_field status[] = {
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"replicas", API_INT, API_UINT31, .doc = "Pods that are there."},
    {"readyReplicas", API_INT, API_UINT31, .doc = "Pods that are ready."},
    {"currentReplicas", API_INT, API_UINT31, .doc = "Pods of the current revision."},
    {"updatedReplicas", API_INT, API_UINT31, .doc = "Pods of the update revision."},
    {"availableReplicas", API_INT, API_UINT31, .doc = "Pods that were ready long enough."},
    {"currentRevision", API_STRING, .doc = "The revision that pods come from."},
    {"updateRevision", API_STRING, .doc = "The revision that pods go to."},
    {"collisionCount", API_INT, API_UINT31, .doc = "How often a name for a revision was taken."},
    API_CONDITIONS,
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec,
     .doc = "The pods and claims that are wanted."},
    {"status", API_OBJECT, .fields = status, .def = "{\"replicas\": 0, \"availableReplicas\": 0}",
     .doc = "The pods that are there."},
    {0},
};

static const struct api_column columns[] = {
    {"Ready", "string", NULL, "Pods that are ready, of all", 0, api_cell_replicas_ready},
    API_AGE,
    API_TEMPLATE_COLUMNS,
    {0},
};

/* The policy can be without, so it is nobody's to be there by itself. */
static void derive(json_t *object)
{
    json_t *wanted = json_object_get(object, "spec");
    if (json_is_object(wanted) && !json_object_get(wanted, "persistentVolumeClaimRetentionPolicy"))
        json_object_set_new(
            wanted, "persistentVolumeClaimRetentionPolicy",
            json_pack("{s:s,s:s}", "whenDeleted", "Retain", "whenScaled", "Retain"));
    api_pod_template_derive(object);
}

static void check_claim_templates(const json_t *templates, struct api_report *report)
{
    const struct api_path *list = API_KEY(API_KEY(NULL, "spec"), "volumeClaimTemplates");
    struct map seen = {0};
    size_t i;
    json_t *template;
    json_array_foreach(templates, i, template) {
        const struct api_path *at = API_AT(list, i);
        const struct api_path *name_at = API_KEY(API_KEY(at, "metadata"), "name");
        const json_t *name = json_at(template, "metadata", "name");
        const char *text = json_string_value(name);
        const char *why = text && *text ? api_dns_label.check(text) : NULL;
        if (!text || !*text)
            api_problem(report, name_at, API_MISSING, NULL,
                        "say by which name the pods mount the volume");
        else if (why)
            api_problem(report, name_at, API_INVALID, name, "%s", why);
        else if (map_set(&seen, text, template))
            api_problem(report, name_at, API_DUPLICATE, name, "another template has this name");
        api_claim_spec_validate(json_object_get(template, "spec"), API_KEY(at, "spec"), report);
    }
    map_done(&seen);
}

/* The pods' mounts are not checked: their volumes come from the claim templates as well. */
static void validate(const json_t *object, struct api_report *report)
{
    api_workload_validate(object, report);
    check_claim_templates(json_at(object, "spec", "volumeClaimTemplates"), report);
    const json_t *strategy = json_at(object, "spec", "updateStrategy");
    const char *type = json_str(strategy, "type");
    if (type && str_eq(type, "OnDelete") && json_object_get(strategy, "rollingUpdate"))
        api_problem(report,
                    API_KEY(API_KEY(API_KEY(NULL, "spec"), "updateStrategy"), "rollingUpdate"),
                    API_INVALID, NULL, "is only for the type RollingUpdate; remove it");
}

/*
 * What may not change of a set. Of the claim templates that is everything but the sizes, which the
 * claims follow; whether their classes allow that is asked where the classes can be read. What a
 * server fills into a template is not compared.
 */
static json_t *fixed_part(const json_t *object)
{
    static const char *const free_to_change[] = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "volumeClaimUpdatePolicy",
        NULL,
    };
    json_t *fixed = json_deep_copy(json_object_get(object, "spec"));
    for (const char *const *key = free_to_change; *key; key++)
        json_object_del(fixed, *key);
    size_t i;
    json_t *template;
    json_array_foreach(json_object_get(fixed, "volumeClaimTemplates"), i, template) {
        json_object_del(template, "apiVersion");
        json_object_del(template, "kind");
        json_object_del(template, "status");
        json_object_del(json_object_get(template, "metadata"), "creationTimestamp");
        json_t *resources = json_object_get(json_object_get(template, "spec"), "resources");
        json_object_del(json_object_get(resources, "requests"), "storage");
    }
    if (!json_array_size(json_object_get(fixed, "volumeClaimTemplates")))
        json_object_del(fixed, "volumeClaimTemplates");
    return fixed;
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    json_auto_t *was = fixed_part(old), *is = fixed_part(object);
    if (!json_equal(was, is))
        api_problem(report, API_KEY(NULL, "spec"), API_FORBIDDEN, NULL, "%s",
                    api_stateful_set_fixed);
}

const struct api_kind api_stateful_set = {
    .kind = "StatefulSet",
    .plural = "statefulsets",
    .singular = "statefulset",
    .short_names = API_WORDS("sts"),
    .versions = API_VERSION("apps", "v1"),
    .flags = API_BUILTIN | API_STATUS | API_SCALE,
    .fields = fields,
    .columns = columns,
    .scale_spec = ".spec.replicas",
    .scale_status = ".status.replicas",
    .scale_selector = ".spec.selector",
    .derive = derive,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "Pods with lasting names, each with volumes of its own that outlive it.",
};

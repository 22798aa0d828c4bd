/*
 * The group authorization.k8s.io: questions about who may do what. None of them is ever stored.
 */
#include "k8s/kinds/kinds.h"

static const struct api_field selector[] = {
    {"rawSelector", API_STRING, .doc = "The selector as a query has it."},
    {"requirements", API_ANY, API_LIST, .doc = "The selector taken apart."},
    {0},
};

static const struct api_field resource_attributes[] = {
    {"namespace", API_STRING, .doc = "In which namespace; empty is in all, or in none."},
    {"verb", API_STRING, .doc = "What is to be done, such as list; * is everything."},
    {"group", API_STRING, .doc = "API group of the resource; * is every one."},
    {"version", API_STRING, .doc = "API version of the resource; it makes no difference."},
    {"resource", API_STRING, .doc = "The resource, in the plural; * is every one."},
    {"subresource", API_STRING, .doc = "A subresource of it, such as status."},
    {"name", API_STRING, .doc = "Name of the object; empty is any."},
    {"fieldSelector", API_OBJECT, .fields = selector, .doc = "Only objects with these fields."},
    {"labelSelector", API_OBJECT, .fields = selector, .doc = "Only objects with these labels."},
    {0},
};

static const struct api_field path_attributes[] = {
    {"path", API_STRING, .doc = "The path, such as /healthz."},
    {"verb", API_STRING, .doc = "The HTTP method, in lower case."},
    {0},
};

#define ATTRIBUTES                                                                                 \
    {"resourceAttributes", API_OBJECT, .fields = resource_attributes,                              \
     .doc = "What is to be done with a resource."},                                                \
    {                                                                                              \
        "nonResourceAttributes", API_OBJECT, .fields = path_attributes,                            \
                                             .doc = "What is to be done with another path."        \
    }

static const struct api_field spec[] = {
    ATTRIBUTES,
    {"user", API_STRING, .doc = "Who is to do it."},
    {"groups", API_STRING, API_LIST, .doc = "Groups that they are in."},
    {"uid", API_STRING, .doc = "Their identity, if they have one."},
    {"extra", API_ANY, API_MAP, .doc = "What else is known of them."},
    {0},
};

static const struct api_field self_spec[] = {
    ATTRIBUTES,
    {0},
};

static const struct api_field rules_spec[] = {
    {"namespace", API_STRING, .doc = "In which namespace."},
    {0},
};

static const struct api_field status[] = {
    {"allowed", API_BOOL, .doc = "Whether it would be allowed."},
    {"denied", API_BOOL, .doc = "Whether it is forbidden whatever else allows it."},
    {"reason", API_STRING, .doc = "Why."},
    {"evaluationError", API_STRING, .doc = "What could not be found out."},
    {0},
};

static const struct api_field resource_rule[] = {
    {"verbs", API_STRING, API_LIST, .doc = "What may be done; * is everything."},
    {"apiGroups", API_STRING, API_LIST, .doc = "API groups; * is every one."},
    {"resources", API_STRING, API_LIST, .doc = "Resources; * is every one."},
    {"resourceNames", API_STRING, API_LIST, .doc = "Only objects of these names."},
    {0},
};

static const struct api_field path_rule[] = {
    {"verbs", API_STRING, API_LIST, .doc = "HTTP methods, in lower case; * is every one."},
    {"nonResourceURLs", API_STRING, API_LIST, .doc = "Paths; * at the end is anything."},
    {0},
};

static const struct api_field rules_status[] = {
    {"resourceRules", API_OBJECT, API_LIST, .fields = resource_rule, .doc = "About resources."},
    {"nonResourceRules", API_OBJECT, API_LIST, .fields = path_rule, .doc = "About other paths."},
    {"incomplete", API_BOOL, .doc = "Whether there may be more."},
    {"evaluationError", API_STRING, .doc = "What could not be found out."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec, .doc = "The question."},
    {"status", API_OBJECT, .fields = status, .doc = "The answer."},
    {0},
};

static const struct api_field self_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = self_spec, .doc = "The question."},
    {"status", API_OBJECT, .fields = status, .doc = "The answer."},
    {0},
};

static const struct api_field rules_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = rules_spec, .doc = "The question."},
    {"status", API_OBJECT, .fields = rules_status, .doc = "The answer."},
    {0},
};

static const struct api_column no_columns[] = {
    {0},
};

/* A question is about a resource or about a path. */
static void validate_self(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(NULL, "spec");
    bool resource = json_at(object, "spec", "resourceAttributes");
    bool path = json_at(object, "spec", "nonResourceAttributes");
    if (resource && path)
        api_problem(report, API_KEY(at, "nonResourceAttributes"), API_INVALID, NULL,
                    "cannot be specified in combination with resourceAttributes");
    if (!resource && !path)
        api_problem(report, API_KEY(at, "resourceAttributes"), API_INVALID, NULL,
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified");
}

static void validate(const json_t *object, struct api_report *report)
{
    const json_t *of = json_object_get(object, "spec");
    const char *user = json_str(of, "user");
    validate_self(object, report);
    if ((!user || !*user) && !json_array_size(json_object_get(of, "groups")))
        api_problem(report, API_KEY(API_KEY(NULL, "spec"), "user"), API_INVALID, NULL,
                    "at least one of user or group must be specified");
}

#define AUTHORIZATION API_VERSION("authorization.k8s.io", "v1")

const struct api_kind api_subject_access_review = {
    .kind = "SubjectAccessReview",
    .plural = "subjectaccessreviews",
    .singular = "subjectaccessreview",
    .versions = AUTHORIZATION,
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_REVIEW,
    .fields = fields,
    .columns = no_columns,
    .validate = validate,
    .doc = "Asks whether somebody may do something.",
};

const struct api_kind api_local_subject_access_review = {
    .kind = "LocalSubjectAccessReview",
    .plural = "localsubjectaccessreviews",
    .singular = "localsubjectaccessreview",
    .versions = AUTHORIZATION,
    .flags = API_BUILTIN | API_REVIEW,
    .fields = fields,
    .columns = no_columns,
    .validate = validate,
    .doc = "Asks whether somebody may do something in one namespace.",
};

const struct api_kind api_self_subject_access_review = {
    .kind = "SelfSubjectAccessReview",
    .plural = "selfsubjectaccessreviews",
    .singular = "selfsubjectaccessreview",
    .versions = AUTHORIZATION,
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_REVIEW,
    .fields = self_fields,
    .columns = no_columns,
    .validate = validate_self,
    .doc = "Asks whether whoever asks may do something.",
};

const struct api_kind api_self_subject_rules_review = {
    .kind = "SelfSubjectRulesReview",
    .plural = "selfsubjectrulesreviews",
    .singular = "selfsubjectrulesreview",
    .versions = AUTHORIZATION,
    .flags = API_BUILTIN | API_CLUSTER_SCOPED | API_REVIEW,
    .fields = rules_fields,
    .columns = no_columns,
    .doc = "Asks what whoever asks may do in a namespace.",
};

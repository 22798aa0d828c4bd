/*
 * The group admissionregistration.k8s.io: who is asked before objects are written.
 */
#include "base/map.h"
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"
#include "k8s/schema/match.h"

static const struct api_field service_ref[] = {
    {"namespace", API_STRING, .flags = API_REQUIRED, .doc = "Namespace of the service."},
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the service."},
    {"path", API_STRING, .doc = "Path of the requests."},
    {"port", API_INT, .min = 1, .max = 65535, .def = "443", .doc = "Port of the service."},
    {0},
};

const struct api_field api_webhook_client[] = {
    {"url", API_STRING, .doc = "Where the webhook is, for one outside the cluster."},
    {"service", API_OBJECT, .fields = service_ref, .doc = "The service it is behind."},
    {"caBundle", API_STRING, .format = &api_base64,
     .doc = "Certificates that its own is checked against, PEM in base64."},
    {0},
};

static const struct api_field rule[] = {
    {"operations", API_STRING, API_LIST, API_REQUIRED,
     .words = API_WORDS("*", "CREATE", "UPDATE", "DELETE", "CONNECT"), .doc = "What is done."},
    {"apiGroups", API_STRING, API_LIST, API_REQUIRED, .doc = "API groups; * is every one."},
    {"apiVersions", API_STRING, API_LIST, API_REQUIRED, .doc = "API versions; * is every one."},
    {"resources", API_STRING, API_LIST, API_REQUIRED, .doc = "Resources; * is every one."},
    {"scope", API_STRING, .words = API_WORDS("*", "Cluster", "Namespaced"), .def = "\"*\"",
     .doc = "Only kinds with this scope."},
    {0},
};

static const struct api_field match_condition[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the condition."},
    {"expression", API_STRING, .flags = API_REQUIRED, .doc = "The condition, in CEL."},
    {0},
};

#define WEBHOOK_FIELDS                                                                             \
    {"name", API_STRING, .flags = API_REQUIRED, .format = &api_dns_subdomain,                      \
     .doc = "Its name, with at least three parts between dots."},                                  \
        {"clientConfig", API_OBJECT, .flags = API_REQUIRED, .fields = api_webhook_client,          \
         .doc = "Where it is."},                                                                   \
        {"rules", API_OBJECT, API_LIST, .fields = rule, .doc = "When it is asked."},               \
        {"failurePolicy", API_STRING, .words = API_WORDS("Fail", "Ignore"), .def = "\"Fail\"",     \
         .doc = "What if it does not answer."},                                                    \
        {"matchPolicy", API_STRING, .words = API_WORDS("Equivalent", "Exact"),                     \
         .def = "\"Equivalent\"", .doc = "Whether other versions of a resource count, too."},      \
        {"namespaceSelector",          API_OBJECT,  .flags = API_ATOMIC,                           \
         .fields = api_label_selector, .def = "{}", .doc = "Only objects in these namespaces."},   \
        {"objectSelector",    API_OBJECT,                                                          \
         .flags = API_ATOMIC, .fields = api_label_selector,                                        \
         .def = "{}",         .doc = "Only these objects."},                                       \
        {"sideEffects", API_STRING, .flags = API_REQUIRED,                                         \
         .words = API_WORDS("None", "NoneOnDryRun"),                                               \
         .doc = "Whether asking it changes anything."},                                            \
        {"timeoutSeconds", API_INT,     .min = 1,                                                  \
         .max = 30,        .def = "10", .doc = "How long to wait for its answer."},                \
        {"admissionReviewVersions", API_STRING, API_LIST, API_REQUIRED,                            \
         .doc = "Versions of AdmissionReview that it understands."},                               \
    {                                                                                              \
        "matchConditions", API_OBJECT, API_LIST, .fields = match_condition, .merge_key = "name",   \
                                                 .doc = "Further conditions for asking it."        \
    }

static const struct api_field validating_webhook[] = {
    WEBHOOK_FIELDS,
    {0},
};

static const struct api_field mutating_webhook[] = {
    WEBHOOK_FIELDS,
    {"reinvocationPolicy", API_STRING, .words = API_WORDS("Never", "IfNeeded"), .def = "\"Never\"",
     .doc = "Whether it is asked again when a later one changed the object."},
    {0},
};

static const struct api_field validating_fields[] = {
    API_TYPE_AND_META,
    {"webhooks", API_OBJECT, API_LIST, .fields = validating_webhook, .merge_key = "name",
     .doc = "The webhooks."},
    {0},
};

static const struct api_field mutating_fields[] = {
    API_TYPE_AND_META,
    {"webhooks", API_OBJECT, API_LIST, .fields = mutating_webhook, .merge_key = "name",
     .doc = "The webhooks, in the order in which they are asked."},
    {0},
};

static const struct api_column columns[] = {
    {"Webhooks", "integer", NULL, "How many it has", 0, api_cell_webhooks},
    API_AGE,
    {0},
};

static void validate_url(const json_t *url, const struct api_path *at, struct api_report *report)
{
    static const char scheme[] = "https://";
    const char *text = json_string_value(url);
    const char *why = NULL;
    if (!str_starts_with(text, scheme))
        why = "must begin with https://, as a webhook must prove who it is";
    else if (strchr("/?#", text[strlen(scheme)])) /* the end is in every string */
        why = "must name a host, for example \"https://hooks.example.com/pools\"";
    else if (memchr(text, '@', strcspn(text + strlen(scheme), "/") + strlen(scheme)))
        why = "must hold no user or password; a webhook is asked without any";
    else if (strpbrk(text, "?#"))
        why = "must have neither a query nor a fragment";
    if (why)
        api_problem(report, at, API_INVALID, url, "%s", why);
}

void api_check_webhook_client(const json_t *client, const struct api_path *at,
                              struct api_report *report)
{
    const json_t *url = json_object_get(client, "url"),
                 *service = json_object_get(client, "service");
    const json_t *path = json_object_get(service, "path");
    if (!url == !service)
        api_problem(report, at, API_MISSING, NULL, "exactly one of url or service is required");
    if (url)
        validate_url(url, API_KEY(at, "url"), report);
    const char *text = json_string_value(path);
    if (text && *text && (*text != '/' || strpbrk(text, "?#") || strstr(text, "//")))
        api_problem(report, API_KEY(API_KEY(at, "service"), "path"), API_INVALID, path,
                    "must be a path, for example \"/pools\"");
}

/* Where everything is meant, nothing else can be. */
static void validate_rule(const json_t *rule_, const struct api_path *at, struct api_report *report)
{
    static const char *const lists[] = {"operations", "apiGroups", "apiVersions", NULL};
    for (const char *const *name = lists; *name; name++) {
        const json_t *list = json_object_get(rule_, *name);
        size_t i;
        json_t *word;
        json_array_foreach(list, i, word) {
            if (str_eq(json_string_value(word), "*") && json_array_size(list) > 1)
                api_problem(report, API_KEY(at, *name), API_INVALID, list,
                            "if '*' is present, must not specify other %s", *name);
        }
    }
}

static void validate_versions(const json_t *versions, const struct api_path *at,
                              struct api_report *report)
{
    size_t i;
    json_t *version;
    json_array_foreach(versions, i, version) {
        if (str_eq(json_string_value(version), "v1"))
            return;
    }
    api_problem(report, at, API_INVALID, versions, "must include v1");
}

static void validate_expression(const json_t *expression, const struct api_path *at,
                                struct api_report *report)
{
    struct err e = {0};
    struct cel_program *p =
        cel_compile(json_string_value(expression), api_match_variables, CEL_BOOL, &e);
    if (!p)
        api_problem(report, at, API_INVALID, expression, "%s%s",
                    str_eq(e.reason, "WrongResult") ? "" : "compilation failed: ", e.msg);
    cel_program_free(p);
}

static void validate_conditions(const json_t *conditions, const struct api_path *at,
                                struct api_report *report)
{
    struct map seen = {0};
    size_t i;
    json_t *condition;
    json_array_foreach(conditions, i, condition) {
        const json_t *name = json_object_get(condition, "name");
        if (map_set(&seen, json_string_value(name), condition))
            api_problem(report, API_KEY(API_AT(at, i), "name"), API_DUPLICATE, name,
                        "another condition has this name");
        validate_expression(json_object_get(condition, "expression"),
                            API_KEY(API_AT(at, i), "expression"), report);
    }
    map_done(&seen);
}

static void validate(const json_t *object, struct api_report *report)
{
    struct map seen = {0};
    size_t i, j;
    json_t *webhook, *item;
    json_array_foreach(json_object_get(object, "webhooks"), i, webhook) {
        const struct api_path *at = API_AT(API_KEY(NULL, "webhooks"), i);
        const json_t *name = json_object_get(webhook, "name");
        const char *text = json_string_value(name), *dot = strchr(text, '.');
        if (!dot || !strchr(dot + 1, '.'))
            api_problem(report, API_KEY(at, "name"), API_INVALID, name,
                        "must have at least three parts, for example 'pools.example.com'");
        if (map_set(&seen, text, webhook))
            api_problem(report, API_KEY(at, "name"), API_DUPLICATE, name,
                        "another webhook has this name");
        api_check_webhook_client(json_object_get(webhook, "clientConfig"),
                                 API_KEY(at, "clientConfig"), report);
        json_array_foreach(json_object_get(webhook, "rules"), j, item)
            validate_rule(item, API_AT(API_KEY(at, "rules"), j), report);
        validate_versions(json_object_get(webhook, "admissionReviewVersions"),
                          API_KEY(at, "admissionReviewVersions"), report);
        validate_conditions(json_object_get(webhook, "matchConditions"),
                            API_KEY(at, "matchConditions"), report);
    }
    map_done(&seen);
}

const struct api_kind api_validating_webhook = {
    .kind = "ValidatingWebhookConfiguration",
    .plural = "validatingwebhookconfigurations",
    .singular = "validatingwebhookconfiguration",
    .versions = API_VERSION("admissionregistration.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = validating_fields,
    .columns = columns,
    .validate = validate,
    .doc = "Webhooks that may refuse objects.",
};

const struct api_kind api_mutating_webhook = {
    .kind = "MutatingWebhookConfiguration",
    .plural = "mutatingwebhookconfigurations",
    .singular = "mutatingwebhookconfiguration",
    .versions = API_VERSION("admissionregistration.k8s.io", "v1"),
    .flags = API_BUILTIN | API_CLUSTER_SCOPED,
    .fields = mutating_fields,
    .columns = columns,
    .validate = validate,
    .doc = "Webhooks that may change objects.",
};

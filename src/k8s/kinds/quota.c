/* The rules of a ResourceQuota's scopes. */
#include "k8s/kinds/kinds.h"

static const char *const compute[] = {
    "pods",          "cpu",          "memory",          "limits.cpu",
    "limits.memory", "requests.cpu", "requests.memory", NULL};
static const char *const pods[] = {"pods", NULL};
static const char *const claims[] = {"persistentvolumeclaims", "requests.storage", NULL};
/* Names that mean the same everywhere; others may be of anything. */
static const char *const standard[] = {"cpu",
                                       "memory",
                                       "ephemeral-storage",
                                       "requests.cpu",
                                       "requests.memory",
                                       "requests.storage",
                                       "requests.ephemeral-storage",
                                       "limits.cpu",
                                       "limits.memory",
                                       "limits.ephemeral-storage",
                                       "pods",
                                       "resourcequotas",
                                       "services",
                                       "replicationcontrollers",
                                       "secrets",
                                       "persistentvolumeclaims",
                                       "configmaps",
                                       "services.nodeports",
                                       "services.loadbalancers",
                                       NULL};

static const struct scope {
    const char *name, *opposite;
    const char *const *resources; /* what can be limited in it, of the standard ones */
    bool classes;                 /* it is about a class, and takes all operators */
} scopes[] = {
    {"Terminating", "NotTerminating", compute, false},   {"NotTerminating", NULL, compute, false},
    {"BestEffort", "NotBestEffort", pods, false},        {"NotBestEffort", NULL, compute, false},
    {"CrossNamespacePodAffinity", NULL, compute, false}, {"PriorityClass", NULL, compute, true},
    {"VolumeAttributesClass", NULL, claims, true},
};

static const struct scope *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        if (str_eq(scopes[i].name, name))
            return &scopes[i];
    }
    return NULL;
}

/* A scope, and what the quota limits in it. `value` is what to show. */
static const struct scope *check_scope(const json_t *spec, const char *name, const json_t *value,
                                       const struct api_path *at, struct api_report *report)
{
    const struct scope *s = find(name);
    if (!s) {
        api_problem(report, at, API_INVALID, value, "unsupported scope");
        return NULL;
    }
    const char *resource;
    json_t *limit;
    json_object_foreach(json_object_get(spec, "hard"), resource, limit) {
        if (str_in(resource, standard) && !str_in(resource, s->resources))
            api_problem(report, at, API_INVALID, value, "unsupported scope applied to resource");
    }
    return s;
}

static bool lists(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const char *text = key ? json_str(item, key) : json_string_value(item);
        if (text && str_eq(text, name))
            return true;
    }
    return false;
}

static void check_conflicts(const json_t *list, const char *key, const struct api_path *at,
                            struct api_report *report)
{
    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        if (scopes[i].opposite && lists(list, key, scopes[i].name) &&
            lists(list, key, scopes[i].opposite))
            api_problem(report, at, API_INVALID, list, "conflicting scopes");
    }
}

static void check_expression(const json_t *spec, const json_t *expression,
                             const struct api_path *at, struct api_report *report)
{
    const json_t *name = json_object_get(expression, "scopeName");
    const json_t *op = json_object_get(expression, "operator");
    const json_t *values = json_object_get(expression, "values");
    const char *word = json_string_value(op);
    const struct scope *s =
        check_scope(spec, json_string_value(name), name, API_KEY(at, "scopeName"), report);
    if (s && !s->classes && !str_eq(word, "Exists"))
        api_problem(report, API_KEY(at, "operator"), API_INVALID, op,
                    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                    "ResourceQuotaScopeNotBestEffort or "
                    "ResourceQuotaScopeCrossNamespacePodAffinity");
    if (str_eq(word, "In") || str_eq(word, "NotIn")) {
        if (!json_array_size(values))
            api_problem(report, API_KEY(at, "values"), API_MISSING, NULL,
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                        "selector");
    } else if (str_eq(word, "Exists") || str_eq(word, "DoesNotExist")) {
        if (json_array_size(values))
            api_problem(report, API_KEY(at, "values"), API_INVALID, values,
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                        "selector");
    } else {
        api_problem(report, API_KEY(at, "operator"), API_INVALID, op,
                    "not a valid selector operator");
    }
}

void api_quota_validate(const json_t *object, struct api_report *report)
{
    const json_t *spec = json_object_get(object, "spec");
    const json_t *list = json_object_get(spec, "scopes");
    const json_t *expressions = json_at(spec, "scopeSelector", "matchExpressions");
    const struct api_path *at = API_KEY(NULL, "spec");
    const struct api_path *selector = API_KEY(API_KEY(at, "scopeSelector"), "matchExpressions");
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
        check_scope(spec, json_string_value(one), list, API_KEY(at, "scopes"), report);
    check_conflicts(list, NULL, API_KEY(at, "scopes"), report);
    json_array_foreach(expressions, i, one)
        check_expression(spec, one, API_AT(selector, i), report);
    check_conflicts(expressions, "scopeName", selector, report);
}

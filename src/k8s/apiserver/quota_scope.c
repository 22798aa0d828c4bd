/*
 * Scopes of ResourceQuotas: a quota that has some counts only what is in all of them. A scope is
 * about one kind; objects of others are in none.
 */
#include "k8s/apiserver/quota.h"
#include "k8s/kinds/kinds.h"

enum { MOST_NAMES = 3 };

/* Names of a class that an object refers to. */
struct names {
    const char *p[MOST_NAMES];
    size_t n;
};

static void add_name(struct names *names, const json_t *object, const char *key)
{
    const char *name = json_str(object, key);
    if (name && *name)
        names->p[names->n++] = name;
}

static void priority_class(const json_t *pod, struct names *ret)
{
    add_name(ret, json_object_get(pod, "spec"), "priorityClassName");
}

/* While the class changes a claim counts for both. */
static void attributes_class(const json_t *claim, struct names *ret)
{
    add_name(ret, json_object_get(claim, "spec"), "volumeAttributesClassName");
    add_name(ret, json_object_get(claim, "status"), "currentVolumeAttributesClassName");
    add_name(ret, json_at(claim, "status", "modifyVolumeStatus"),
             "targetVolumeAttributesClassName");
}

static bool ends_by_itself(const json_t *pod)
{
    const json_t *seconds = json_at(pod, "spec", "activeDeadlineSeconds");
    return json_is_integer(seconds) && json_integer_value(seconds) >= 0;
}

/* Whether anything is asked for, or limited, of processor or memory. */
static bool has_resources(const json_t *resources)
{
    static const char *const parts[] = {"requests", "limits", NULL};
    static const char *const names[] = {"cpu", "memory", NULL};
    for (const char *const *part = parts; *part; part++) {
        for (const char *const *name = names; *name; name++) {
            if (quota_limit(json_at(resources, *part, *name)) > 0)
                return true;
        }
    }
    return false;
}

static bool is_best_effort(const json_t *pod)
{
    static const char *const lists[] = {"containers", "initContainers", NULL};
    const json_t *spec = json_object_get(pod, "spec");
    for (const char *const *list = lists; *list; list++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_object_get(spec, *list), i, container) {
            if (has_resources(json_object_get(container, "resources")))
                return false;
        }
    }
    return !has_resources(json_object_get(spec, "resources"));
}

static bool crosses(const json_t *term)
{
    return json_array_size(json_object_get(term, "namespaces")) ||
           json_is_object(json_object_get(term, "namespaceSelector"));
}

/* Whether it wants to be near to, or away from, pods of other namespaces. */
static bool crosses_namespaces(const json_t *pod)
{
    static const char *const sides[] = {"podAffinity", "podAntiAffinity", NULL};
    for (const char *const *side = sides; *side; side++) {
        const json_t *affinity = json_at(pod, "spec", "affinity", *side);
        size_t i;
        json_t *term;
        json_array_foreach(
            json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), i, term) {
            if (crosses(term))
                return true;
        }
        json_array_foreach(
            json_object_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution"), i, term) {
            if (crosses(json_object_get(term, "podAffinityTerm")))
                return true;
        }
    }
    return false;
}

static const struct scope {
    const char *name;
    const struct api_kind *kind;
    bool (*test)(const json_t *object); /* NULL: it is about a class */
    bool is;                            /* what the test must say */
    void (*names)(const json_t *object, struct names *ret);
} scopes[] = {
    {"Terminating", &api_pod, ends_by_itself, true},
    {"NotTerminating", &api_pod, ends_by_itself, false},
    {"BestEffort", &api_pod, is_best_effort, true},
    {"NotBestEffort", &api_pod, is_best_effort, false},
    {"CrossNamespacePodAffinity", &api_pod, crosses_namespaces, true},
    {"PriorityClass", &api_pod, .names = priority_class},
    {"VolumeAttributesClass", &api_persistent_volume_claim, .names = attributes_class},
};

static bool is_listed(const json_t *values, const char *name)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        const char *text = json_string_value(value);
        if (text && str_eq(text, name))
            return true;
    }
    return false;
}

/* As a label selector does: what is not there is in no list. */
static bool selects(const char *op, const json_t *values, const char *name)
{
    if (str_eq(op, "In"))
        return name && is_listed(values, name);
    if (str_eq(op, "NotIn"))
        return !name || !is_listed(values, name);
    return str_eq(op, "Exists") == (name != NULL);
}

static bool is_in(const struct scope *s, const char *op, const json_t *values, const json_t *object)
{
    if (s->test)
        return s->test(object) == s->is;
    struct names names = {0};
    s->names(object, &names);
    for (size_t i = 0; i < names.n; i++) {
        if (selects(op, values, names.p[i]))
            return true;
    }
    return names.n == 0 && selects(op, values, NULL);
}

static bool matches(const char *name, const char *op, const json_t *values,
                    const struct api_kind *kind, const json_t *object)
{
    for (size_t i = 0; name && op && i < ARRAY_SIZE(scopes); i++) {
        if (str_eq(scopes[i].name, name))
            return scopes[i].kind == kind && is_in(&scopes[i], op, values, object);
    }
    return false;
}

bool quota_is_scoped(const json_t *quota)
{
    const json_t *spec = json_object_get(quota, "spec");
    return json_array_size(json_object_get(spec, "scopes")) ||
           json_array_size(json_at(spec, "scopeSelector", "matchExpressions"));
}

bool quota_has_in_scope(const json_t *quota, const struct api_kind *kind, const json_t *object)
{
    const json_t *spec = json_object_get(quota, "spec");
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(spec, "scopes"), i, one) {
        if (!matches(json_string_value(one), "Exists", NULL, kind, object))
            return false;
    }
    json_array_foreach(json_at(spec, "scopeSelector", "matchExpressions"), i, one) {
        if (!matches(json_str(one, "scopeName"), json_str(one, "operator"),
                     json_object_get(one, "values"), kind, object))
            return false;
    }
    return true;
}

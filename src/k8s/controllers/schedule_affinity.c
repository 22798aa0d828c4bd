/*
 * Affinity: to nodes by their labels and names, to pods and away from pods by topology.
 */
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule_impl.h"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static bool is_in(const json_t *values, const char *text)
{
    size_t i;
    json_t *value;
    json_array_foreach((json_t *)values, i, value) {
        const char *is = json_string_value(value);
        if (is && str_eq(is, text))
            return true;
    }
    return false;
}

/* Whole numbers only, as Kubernetes has it. */
static bool number(const char *text, int64_t *ret_n)
{
    char *end;
    *ret_n = text && *text ? strtoll(text, &end, 10) : 0;
    return text && *text && !*end;
}

/* Whether a value (NULL: there is none) is as an expression says. */
static bool expression_holds(const json_t *x, const char *value)
{
    const char *operator= json_str(x, "operator");
    const json_t *values = json_object_get(x, "values");
    int64_t is, limit;
    if (!operator)
        return false;
    if (str_eq(operator, "In"))
        return value && is_in(values, value);
    if (str_eq(operator, "NotIn"))
        return !value || !is_in(values, value);
    if (str_eq(operator, "Exists"))
        return value;
    if (str_eq(operator, "DoesNotExist"))
        return !value;
    bool greater = str_eq(operator, "Gt");
    if (!(greater || str_eq(operator, "Lt")) || !number(value, &is) ||
        !number(json_string_value(json_array_get(values, 0)), &limit))
        return false;
    return greater ? is > limit : is < limit;
}

static bool term_matches(const json_t *term, const json_t *node)
{
    const json_t *labels = json_at(node, "metadata", "labels");
    const json_t *expressions = json_object_get(term, "matchExpressions");
    const json_t *fields = json_object_get(term, "matchFields");
    size_t i;
    json_t *x;
    json_array_foreach((json_t *)expressions, i, x) {
        const char *key = json_str(x, "key");
        if (!key || !expression_holds(x, json_str(labels, key)))
            return false;
    }
    json_array_foreach((json_t *)fields, i, x) {
        const char *key = json_str(x, "key");
        if (!key || !str_eq(key, "metadata.name") || !expression_holds(x, kube_name(node)))
            return false;
    }
    return json_array_size(expressions) || json_array_size(fields); /* none selects nothing */
}

bool schedule_selector_matches(const json_t *selector, const json_t *node)
{
    size_t i;
    json_t *term;
    json_array_foreach((json_t *)json_object_get(selector, "nodeSelectorTerms"), i, term) {
        if (term_matches(term, node))
            return true;
    }
    return false;
}

bool schedule_selects(const json_t *pod, const json_t *node)
{
    const json_t *labels = json_at(node, "metadata", "labels");
    const json_t *required = json_at(pod, "spec", "affinity", "nodeAffinity", REQUIRED);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(pod, "spec", "nodeSelector"), key, value) {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    return !required || schedule_selector_matches(required, node);
}

/* Pods. */

/* Whether a term of `owner`, a pod, is about another. */
static bool is_about(const json_t *term, const json_t *owner, const json_t *pod)
{
    const json_t *namespaces = json_object_get(term, "namespaces");
    const json_t *all = json_object_get(term, "namespaceSelector");
    bool here = json_array_size(namespaces) ? is_in(namespaces, kube_namespace(pod))
                                            : str_eq(kube_namespace(owner), kube_namespace(pod));
    if (json_is_object(all) && !json_object_size(all))
        here = true; /* {}: every namespace */
    return here && pods_selected(json_object_get(term, "labelSelector"),
                                 json_at(pod, "metadata", "labels"));
}

/* The value that says which part of the topology a node is in; NULL. */
static const char *domain_of(const json_t *term, const json_t *node)
{
    const char *key = json_str(term, "topologyKey");
    return key ? json_str(json_at(node, "metadata", "labels"), key) : NULL;
}

/* How many pods that the term is about are in the same part as the node; *ret_all: anywhere. */
static size_t count_near(const json_t *term, const json_t *pod, const struct schedule_node *nodes,
                         size_t n, const char *domain, size_t *ret_all)
{
    size_t near = 0;
    *ret_all = 0;
    for (size_t i = 0; i < n; i++) {
        const char *other = domain_of(term, nodes[i].node);
        size_t j;
        json_t *there;
        if (!other)
            continue;
        json_array_foreach((json_t *)nodes[i].pods, j, there) {
            if (!is_about(term, pod, there))
                continue;
            ++*ret_all;
            near += domain && str_eq(domain, other);
        }
    }
    return near;
}

static bool wants_near(const json_t *pod, const struct schedule_node *nodes, size_t n, size_t node)
{
    size_t i, all;
    json_t *term;
    json_array_foreach((json_t *)json_at(pod, "spec", "affinity", "podAffinity", REQUIRED), i,
                       term) {
        const char *domain = domain_of(term, nodes[node].node);
        if (!domain)
            return false;
        /* The first of a group that wants to be together has nobody to go to. */
        if (!count_near(term, pod, nodes, n, domain, &all) && (all || !is_about(term, pod, pod)))
            return false;
    }
    return true;
}

static bool avoids(const json_t *pod, const struct schedule_node *nodes, size_t n, size_t node)
{
    size_t i, all;
    json_t *term;
    json_array_foreach((json_t *)json_at(pod, "spec", "affinity", "podAntiAffinity", REQUIRED), i,
                       term) {
        const char *domain = domain_of(term, nodes[node].node);
        if (domain && count_near(term, pod, nodes, n, domain, &all))
            return true;
    }
    return false;
}

/* Whether a pod that is there does not want this one near. */
static bool is_avoided(const json_t *pod, const struct schedule_node *nodes, size_t n, size_t node)
{
    for (size_t i = 0; i < n; i++) {
        size_t j, k;
        json_t *there, *term;
        json_array_foreach((json_t *)nodes[i].pods, j, there) {
            json_array_foreach(
                (json_t *)json_at(there, "spec", "affinity", "podAntiAffinity", REQUIRED), k,
                term) {
                const char *own = domain_of(term, nodes[node].node);
                const char *other = domain_of(term, nodes[i].node);
                if (own && other && str_eq(own, other) && is_about(term, there, pod))
                    return true;
            }
        }
    }
    return false;
}

void schedule_filter_pods(const json_t *pod, const struct schedule_node *nodes, size_t n,
                          size_t node, struct schedule_reasons *r)
{
    if (!wants_near(pod, nodes, n, node))
        schedule_add_reason(r, "node(s) didn't match pod affinity rules");
    else if (avoids(pod, nodes, n, node))
        schedule_add_reason(r, "node(s) didn't match pod anti-affinity rules");
    else if (is_avoided(pod, nodes, n, node))
        schedule_add_reason(r, "node(s) didn't satisfy existing pods anti-affinity rules");
}

static int64_t prefers_pods(const json_t *list, int64_t sign, const json_t *pod,
                            const struct schedule_node *nodes, size_t n, size_t node)
{
    int64_t score = 0;
    size_t i, all;
    json_t *wish;
    json_array_foreach((json_t *)list, i, wish) {
        const json_t *term = json_object_get(wish, "podAffinityTerm");
        const char *domain = domain_of(term, nodes[node].node);
        int64_t weight = json_integer_value(json_object_get(wish, "weight"));
        if (domain)
            score += sign * weight * (int64_t)count_near(term, pod, nodes, n, domain, &all);
    }
    return score;
}

int64_t schedule_score_affinity(const json_t *pod, const struct schedule_node *nodes, size_t n,
                                size_t node)
{
    const json_t *affinity = json_at(pod, "spec", "affinity");
    int64_t score = 0;
    size_t i;
    json_t *wish;
    json_array_foreach((json_t *)json_at(affinity, "nodeAffinity", PREFERRED), i, wish) {
        if (term_matches(json_object_get(wish, "preference"), nodes[node].node))
            score += json_integer_value(json_object_get(wish, "weight"));
    }
    score += prefers_pods(json_at(affinity, "podAffinity", PREFERRED), 1, pod, nodes, n, node);
    score += prefers_pods(json_at(affinity, "podAntiAffinity", PREFERRED), -1, pod, nodes, n, node);
    return score;
}

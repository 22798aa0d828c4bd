/*
 * Which requests a webhook wants to see.
 */
#include "k8s/apiserver/webhook_impl.h"

/* Whether a list of a rule has the text, or "*". */
static bool lists(const json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const char *word = json_string_value(item);
        if (word && (str_eq(word, "*") || str_eq(word, text)))
            return true;
    }
    return false;
}

/* Words as "pods", "pods/status" or "pods/ *"; "*" alone stands for no subresource. */
static bool resource_matches(const char *word, const char *plural, const char *subresource)
{
    const char *slash = strchr(word, '/'), *below = slash ? slash + 1 : "";
    size_t n = slash ? (size_t)(slash - word) : strlen(word);
    bool resource = (n == 1 && *word == '*') || (n == strlen(plural) && !memcmp(word, plural, n));
    return resource && (str_eq(below, subresource) || str_eq(below, "*"));
}

static bool resources_match(const json_t *list, const char *plural, const char *subresource)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        const char *word = json_string_value(item);
        if (word && resource_matches(word, plural, subresource))
            return true;
    }
    return false;
}

static bool scope_matches(const json_t *rule, const struct apiserver_request *r)
{
    const char *scope = json_str(rule, "scope");
    if (!scope || str_eq(scope, "*"))
        return true;
    bool cluster = r->kind->flags & API_CLUSTER_SCOPED;
    return str_eq(scope, cluster ? "Cluster" : "Namespaced");
}

static bool rule_matches(const json_t *rule, const struct apiserver_request *r,
                         const char *operation, const struct api_group_version *gv)
{
    return lists(json_object_get(rule, "operations"), operation) &&
           lists(json_object_get(rule, "apiGroups"), gv->group) &&
           lists(json_object_get(rule, "apiVersions"), gv->version) && scope_matches(rule, r) &&
           resources_match(json_object_get(rule, "resources"), r->kind->plural,
                           apiserver_subresource_text(r->subresource));
}

static const struct api_group_version *asked_version(const struct apiserver_request *r)
{
    return r->gv ? r->gv : api_kind_canonical(r->kind);
}

bool webhook_rules_match(const json_t *rules, bool equivalent, const struct apiserver_request *r,
                         const char *operation, const struct api_group_version **ret_gv)
{
    const struct api_group_version *asked = asked_version(r);
    size_t i;
    json_t *rule;
    json_array_foreach(rules, i, rule) {
        if (rule_matches(rule, r, operation, asked)) {
            *ret_gv = asked;
            return true;
        }
    }
    /* The same objects under another name. */
    json_array_foreach(rules, i, rule) {
        for (const struct api_group_version *gv = r->kind->versions; equivalent && gv->group;
             gv++) {
            if (gv != asked && rule_matches(rule, r, operation, gv)) {
                *ret_gv = gv;
                return true;
            }
        }
    }
    return false;
}

/* Labels of a namespace, and the one that every namespace has. New reference. */
static json_t *namespace_labels(const json_t *namespace, const char *name)
{
    const json_t *own = json_at(namespace, "metadata", "labels");
    json_t *labels = own ? json_deep_copy(own) : json_object();
    json_object_set_new(labels, "kubernetes.io/metadata.name", json_string(name));
    return labels;
}

static bool namespace_selected(const struct webhook *h, const struct apiserver_admission *a)
{
    const struct apiserver_request *r = a->request;
    if (!h->namespaces.requirements.len && !h->namespaces.nothing)
        return true;
    bool is_namespace = str_eq(r->kind->kind, "Namespace") && !*api_kind_canonical(r->kind)->group;
    if (r->kind->flags & API_CLUSTER_SCOPED && !is_namespace)
        return true; /* it is in none, so none can exclude it */
    json_auto_t *stored = NULL;
    const json_t *namespace = a->object ? a->object : a->old;
    const char *name = r->namespace;
    if (is_namespace) {
        name = json_str(json_object_get(namespace, "metadata"), "name");
    } else {
        _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
            apiserver_store_get(a->registry->store, "/namespaces", name ? name : "");
        stored = o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
        namespace = stored;
    }
    json_auto_t *labels = namespace_labels(namespace, name ? name : "");
    return api_selector_matches(&h->namespaces, labels);
}

/* As it is or as it was: one that is about to leave the selection is still in it. */
static bool object_selected(const struct webhook *h, const struct apiserver_admission *a)
{
    const json_t *const both[] = {a->object, a->old};
    for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
        if (both[i] && api_selector_matches(&h->objects, json_at(both[i], "metadata", "labels")))
            return true;
    }
    return false;
}

bool webhook_matches(const struct webhook *h, const struct apiserver_admission *a,
                     const struct api_group_version **ret_gv)
{
    const char *policy = json_str(h->spec, "matchPolicy");
    return webhook_rules_match(json_object_get(h->spec, "rules"),
                               !policy || !str_eq(policy, "Exact"), a->request,
                               webhook_operation(a), ret_gv) &&
           namespace_selected(h, a) && object_selected(h, a);
}

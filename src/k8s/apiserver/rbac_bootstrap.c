/*
 * The default roles and bindings as objects, and how they come into the store. What a default role
 * lacks is added to it at every start; what somebody added stays.
 */
#include "k8s/apiserver/rbac_impl.h"
#include "k8s/kinds/kinds.h"

#define GROUP    "rbac.authorization.k8s.io"
#define UPDATED  "rbac.authorization.kubernetes.io/autoupdate"
#define FILLS    "rbac.authorization.k8s.io/aggregate-to-"
#define DEFAULTS "kubernetes.io/bootstrapping"

/* "a b" to ["a", "b"]; "core" is "". */
static json_t *words(const char *text)
{
    json_t *list = json_array();
    while (text && *text) {
        size_t n = strcspn(text, " ");
        bool core = n == 4 && strncmp(text, "core", 4) == 0;
        json_array_append_new(list, json_stringn(text, core ? 0 : n));
        text += n;
        text += strspn(text, " ");
    }
    return list;
}

static json_t *rule_object(const struct rbac_default_rule *rule)
{
    const struct {
        const char *key, *text;
    } members[] = {
        {"verbs", rule->verbs},           {"apiGroups", rule->groups},
        {"resources", rule->resources},   {"resourceNames", rule->names},
        {"nonResourceURLs", rule->paths},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (members[i].text)
            json_object_set_new(object, members[i].key, words(members[i].text));
    }
    return object;
}

static json_t *new_object(const struct api_kind *kind, const char *namespace, const char *name)
{
    json_t *object = json_pack("{s:s,s:s,s:{s:s,s:{s:s},s:{s:s}}}", "apiVersion", GROUP "/v1",
                               "kind", kind->kind, "metadata", "name", name, "annotations", UPDATED,
                               "true", "labels", DEFAULTS, "rbac-defaults");
    if (namespace)
        json_object_set_new(json_object_get(object, "metadata"), "namespace",
                            json_string(namespace));
    return object;
}

static json_t *role_object(const struct rbac_default_role *role)
{
    json_t *object =
        new_object(role->namespace ? &api_role : &api_cluster_role, role->namespace, role->name);
    if (role->aggregate_to) {
        _cleanup_free_ char *label = mem_printf(FILLS "%s", role->aggregate_to);
        json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
        json_object_set_new(labels, label, json_string("true"));
    }
    if (role->aggregate_from) {
        _cleanup_free_ char *label = mem_printf(FILLS "%s", role->aggregate_from);
        json_object_set_new(
            object, "aggregationRule",
            json_pack("{s:[{s:{s:s}}]}", "clusterRoleSelectors", "matchLabels", label, "true"));
        return object;
    }
    json_t *rules = json_array();
    for (const struct rbac_default_rule *rule = role->rules; rule->verbs; rule++)
        json_array_append_new(rules, rule_object(rule));
    json_object_set_new(object, "rules", rules);
    return object;
}

static void add_subjects(json_t *subjects, const char *kind, const char *names)
{
    json_auto_t *list = words(names);
    size_t i;
    json_t *name;
    json_array_foreach(list, i, name)
        json_array_append_new(
            subjects, json_pack("{s:s,s:s,s:O}", "kind", kind, "apiGroup", GROUP, "name", name));
}

static json_t *binding_object(const struct rbac_default_binding *binding)
{
    json_t *object = new_object(binding->namespace ? &api_role_binding : &api_cluster_role_binding,
                                binding->namespace, binding->role);
    json_t *subjects = json_array();
    add_subjects(subjects, "User", binding->users);
    add_subjects(subjects, "Group", binding->groups);
    json_object_set_new(object, "subjects", subjects);
    json_object_set_new(object, "roleRef",
                        json_pack("{s:s,s:s,s:s}", "apiGroup", GROUP, "kind",
                                  binding->namespace ? "Role" : "ClusterRole", "name",
                                  binding->role));
    return object;
}

/* Adds the members that are not there; true when there were some. */
static bool add_members(json_t *object, const char *key, const json_t *members)
{
    json_t *own = json_object_get(object, key);
    bool added = false;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)members, name, value) {
        if (json_object_get(own, name))
            continue;
        if (!own) {
            own = json_object();
            json_object_set_new(object, key, own);
        }
        json_object_set(own, name, value);
        added = true;
    }
    return added;
}

static json_t *own_list(json_t *object, const char *key)
{
    json_t *list = json_array_at(object, key);
    return list;
}

/* Adds the elements that are not there, as they are. */
static bool add_elements(json_t *object, const char *key, const json_t *wanted)
{
    if (!json_array_size(wanted))
        return false;
    json_t *own = own_list(object, key);
    bool added = false;
    size_t i, j;
    json_t *value, *there;
    json_array_foreach((json_t *)wanted, i, value) {
        bool found = false;
        json_array_foreach(own, j, there)
            found |= json_equal(there, value);
        if (!found)
            json_array_append(own, value);
        added |= !found;
    }
    return added;
}

/* Adds the rules that the others do not cover. */
static bool add_rules(json_t *object, const json_t *wanted)
{
    json_t *own = own_list(object, "rules");
    struct arena arena = {0};
    struct rbac_rules has = rbac_rules_compile(own, &arena);
    struct rbac_rules needs = rbac_rules_compile(wanted, &arena);
    const struct rbac_rule **held = arena_alloc(&arena, (has.n + 1) * sizeof(*held));
    for (size_t i = 0; i < has.n; i++)
        held[i] = &has.p[i];
    bool added = false;
    for (size_t i = 0; i < needs.n; i++) {
        if (rbac_rules_cover(held, has.n, &needs.p[i]))
            continue;
        json_array_append(own, json_array_get(wanted, i));
        added = true;
    }
    arena_done(&arena);
    return added;
}

/* Adds to a stored object what the default has; true when something was missing. */
static bool reconcile(json_t *stored, const json_t *wanted)
{
    json_t *metadata = json_object_get(stored, "metadata");
    const json_t *update = json_at(metadata, "annotations", UPDATED);
    if (json_is_string(update) && str_eq(json_string_value(update), "false"))
        return false;
    bool changed = add_members(metadata, "labels", json_at(wanted, "metadata", "labels"));
    changed |= add_members(metadata, "annotations", json_at(wanted, "metadata", "annotations"));
    changed |= add_elements(stored, "subjects", json_object_get(wanted, "subjects"));
    const json_t *selectors = json_at(wanted, "aggregationRule", "clusterRoleSelectors");
    if (selectors) {
        if (!json_object_get(stored, "aggregationRule"))
            json_object_set_new(stored, "aggregationRule", json_object());
        changed |= add_elements(json_object_get(stored, "aggregationRule"), "clusterRoleSelectors",
                                selectors);
    } else if (json_object_get(wanted, "rules")) {
        changed |= add_rules(stored, json_object_get(wanted, "rules"));
    }
    return changed;
}

/* A binding to another role is none of the default ones, whatever its name is. */
static bool other_role(const json_t *stored, const json_t *wanted)
{
    const json_t *is = json_at(stored, "roleRef", "name"), *be = json_at(wanted, "roleRef", "name");
    return be && !json_equal(is, be);
}

static int ensure(struct apiserver_registry *g, const struct api_kind *kind, const char *namespace,
                  const char *name, json_t *wanted, struct err *e)
{
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    struct apiserver_request r = {.kind = kind, .namespace = namespace};
    apiserver_collection(kind, &collection);
    apiserver_key(&r, name, &key);
    struct apiserver_object *there =
        apiserver_store_get(g->store, str_get(&collection), str_get(&key));
    json_auto_t *stored = there ? json_parse(there->bytes, there->size, NULL, NULL) : NULL;
    apiserver_object_unref(there);
    if (stored && (other_role(stored, wanted) || !reconcile(stored, wanted)))
        return 0;
    struct api_report report = {0};
    struct apiserver_object *o;
    if (stored) {
        r.name = name;
        o = apiserver_update(g, &r, stored, &report, e);
    } else {
        o = apiserver_create(g, &r, wanted, &report, e);
    }
    api_report_done(&report);
    apiserver_object_unref(o);
    return o ? 0 : err_prefix(e, "cannot make the default %s %s", kind->kind, name);
}

int apiserver_rbac_bootstrap(struct apiserver_registry *g, struct err *e)
{
    for (const struct rbac_default_role *role = rbac_default_roles; role->name; role++) {
        json_auto_t *object = role_object(role);
        const struct api_kind *kind = role->namespace ? &api_role : &api_cluster_role;
        if (ensure(g, kind, role->namespace, role->name, object, e) < 0)
            return -1;
    }
    for (const struct rbac_default_binding *b = rbac_default_bindings; b->role; b++) {
        json_auto_t *object = binding_object(b);
        const struct api_kind *kind = b->namespace ? &api_role_binding : &api_cluster_role_binding;
        if (ensure(g, kind, b->namespace, b->role, object, e) < 0)
            return -1;
    }
    return 0;
}

/*
 * Aggregated ClusterRoles: their rules are those of the roles that their selectors name, in the
 * order of the roles' names, each once. A role may be filled from one that is filled itself, so what
 * changed is looked at again until nothing changes any more.
 */
#include "api/selector.h"
#include "k8s/apiserver/rbac_impl.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

static const char collection[] = "rbac.authorization.k8s.io/clusterroles";

enum { ROUNDS = 8 }; /* in one go; the rest follows, since what was written is a change again */

static bool has_rule(const json_t *rules, const json_t *rule)
{
    size_t i;
    json_t *own;
    json_array_foreach((json_t *)rules, i, own) {
        if (json_equal(own, rule))
            return true;
    }
    return false;
}

static bool selects(const json_t *selectors, const json_t *labels)
{
    size_t i;
    json_t *selector;
    json_array_foreach((json_t *)selectors, i, selector) {
        struct api_selector s;
        if (api_selector_from_json(selector, &s, NULL) < 0)
            continue;
        bool matches = api_selector_matches(&s, labels);
        api_selector_done(&s);
        if (matches)
            return true;
    }
    return false;
}

/* The rules that the role at `at` should have. */
static json_t *gather(json_t *const *roles, size_t n, size_t at)
{
    const json_t *selectors = json_at(roles[at], "aggregationRule", "clusterRoleSelectors");
    json_t *rules = json_array();
    for (size_t i = 0; i < n; i++) {
        if (i == at || !selects(selectors, json_at(roles[i], "metadata", "labels")))
            continue;
        size_t j;
        json_t *rule;
        json_array_foreach(json_object_get(roles[i], "rules"), j, rule) {
            if (!has_rule(rules, rule))
                json_array_append(rules, rule);
        }
    }
    return rules;
}

/* Writes the rules if they differ; true when they did. */
static bool fill(struct apiserver *a, json_t *role, json_t *rules)
{
    const json_t *now = json_object_get(role, "rules");
    if (json_equal(now, rules) || (!json_array_size(now) && !json_array_size(rules)))
        return false;
    json_object_set(role, "rules", rules);
    struct apiserver_request r = {.kind = &api_cluster_role,
                                  .name = json_str(json_object_get(role, "metadata"), "name")};
    struct api_report report = {0};
    json_auto_t *update = json_deep_copy(role);
    struct err e = {0};
    struct apiserver_object *o = apiserver_update(&a->registry, &r, update, &report, &e);
    api_report_done(&report);
    apiserver_object_unref(o);
    if (!o && !err_is_infeasible(e.code)) /* somebody was faster, or the disk is full */
        a->roles_changed = true;
    return o != NULL;
}

/* One look at all roles; true when some were filled. */
static bool fill_all(struct apiserver *a)
{
    struct apiserver_list list;
    struct apiserver_list_options all = {0};
    apiserver_store_list(a->registry.store, collection, &all, &list, NULL);
    json_t **roles = mem_zalloc((list.objects.len + 1) * sizeof(*roles));
    bool filled = false;
    for (size_t i = 0; i < list.objects.len; i++)
        roles[i] = json_parse(list.objects.p[i]->bytes, list.objects.p[i]->size, NULL, NULL);
    for (size_t i = 0; i < list.objects.len; i++) {
        if (!json_object_get(roles[i], "aggregationRule"))
            continue;
        json_auto_t *rules = gather(roles, list.objects.len, i);
        filled |= fill(a, roles[i], rules);
    }
    for (size_t i = 0; i < list.objects.len; i++)
        json_decref(roles[i]);
    free(roles);
    apiserver_list_done(&list);
    return filled;
}

static void resync(struct apiserver *a)
{
    for (int i = 0; i < ROUNDS && fill_all(a); i++)
        ;
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    if (str_eq(event->object->collection, collection))
        a->roles_changed = true;
}

static void tick(struct apiserver *a)
{
    if (a->roles_changed) {
        a->roles_changed = false;
        resync(a);
    }
}

const struct apiserver_follower apiserver_rbac_aggregation = {
    .name = "clusterrole-aggregation",
    .resync = resync,
    .changed = changed,
    .tick = tick,
};

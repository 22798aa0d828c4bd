/*
 * Nobody gives away what they do not have: whoever writes a role must hold what it allows, or be
 * allowed to `escalate` it; whoever writes a binding must hold what its role allows, or be allowed to
 * `bind` it. A role that is filled from others could come to allow anything, so its writer must be
 * allowed everything.
 */
#include "k8s/apiserver/rbac_impl.h"
#include "k8s/kinds/kinds.h"

struct grantor {
    const struct apiserver_admission *admission;
    const struct apiserver_user *user;
    const char *namespace; /* "" for kinds of the whole cluster */
};

static bool may(const struct grantor *g, const char *verb, bool cluster_role, const char *name)
{
    struct apiserver_attributes attributes = {
        .verb = verb,
        .group = api_kind_canonical(&api_role)->group,
        .resource = cluster_role ? api_cluster_role.plural : api_role.plural,
        .namespace = g->namespace,
        .name = name,
    };
    return apiserver_rbac_allows(g->admission->registry->rbac, g->user, &attributes, NULL);
}

/* user "x" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held: */
static int refuse(const struct grantor *g, const char *missing, const char *error, struct err *e)
{
    _cleanup_(str_done) struct str groups = {0};
    for (const char *const *group = g->user->groups; group && *group; group++)
        str_appendf(&groups, "%s\"%s\"", groups.len ? " " : "", *group);
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                   "user \"%s\" (groups=[%.200s]) is attempting to grant RBAC permissions not "
                   "currently held:\n%s%s%s",
                   g->user->name, str_get(&groups), missing, *error ? "; resolution errors: " : "",
                   error);
}

static int check_held(const struct grantor *g, struct rbac_view *view,
                      const struct rbac_rules *rules, struct err *e)
{
    _cleanup_(str_done) struct str missing = {0};
    size_t budget = RBAC_COMBINATIONS;
    for (size_t i = 0; i < rules->n; i++) {
        if (!rbac_rules_missing(view->rules.p, view->rules.len, &rules->p[i], &budget, &missing))
            return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                           "the rules have more than %d combinations of groups, resources, names "
                           "and verbs: write several smaller roles",
                           RBAC_COMBINATIONS);
    }
    return missing.len ? refuse(g, missing.p, str_get(&view->error), e) : 0;
}

static bool same(const struct apiserver_admission *a, const char *key)
{
    const json_t *was = json_object_get(a->old, key), *is = json_object_get(a->object, key);
    bool both_empty = !json_array_size(was) && !json_array_size(is) && !json_is_object(was) &&
                      !json_is_object(is);
    return both_empty || (was && is && json_equal(was, is));
}

static int check_role(const struct grantor *g, bool cluster, struct err *e)
{
    const struct apiserver_admission *a = g->admission;
    if (a->old && same(a, "rules") && same(a, "aggregationRule"))
        return 0;
    const char *name = json_str(json_object_get(a->object, "metadata"), "name");
    if (may(g, "escalate", cluster, name))
        return 0;
    struct arena arena = {0};
    struct rbac_view view;
    struct rbac_rules rules = rbac_rules_compile(json_object_get(a->object, "rules"), &arena);
    static const char *all[] = {"*", NULL}, *none[] = {NULL};
    struct rbac_rule everything[] = {{all, all, all, none, none}, {all, none, none, none, all}};
    struct rbac_rules authority = {everything, ARRAY_SIZE(everything)};
    rbac_view_init(&view, a->registry->rbac, g->user, g->namespace);
    int status = check_held(g, &view, &rules, e);
    if (status == 0 && json_object_get(a->object, "aggregationRule")) {
        status = check_held(g, &view, &authority, e);
        if (status < 0)
            err_prefix(e, "must have cluster-admin privileges to use the aggregationRule");
    }
    rbac_view_done(&view);
    arena_done(&arena);
    return status;
}

static int check_binding(const struct grantor *g, struct err *e)
{
    const struct apiserver_admission *a = g->admission;
    if (a->old && same(a, "subjects") && same(a, "roleRef"))
        return 0;
    const json_t *ref = json_object_get(a->object, "roleRef");
    const char *name = json_str(ref, "name"), *kind = json_str(ref, "kind");
    bool cluster = kind && str_eq(kind, "ClusterRole");
    if (may(g, "bind", cluster, name))
        return 0;
    struct rbac_view view;
    rbac_view_init(&view, a->registry->rbac, g->user, g->namespace);
    const struct rbac_rules *rules =
        rbac_view_role(&view, cluster ? "" : g->namespace, name ? name : "");
    int status = rules ? check_held(g, &view, rules, e)
                       : err_set(e, ERR_NOT_FOUND, "NotFound",
                                 "%s.rbac.authorization.k8s.io \"%s\" not found",
                                 cluster ? api_cluster_role.plural : api_role.plural, name);
    rbac_view_done(&view);
    return status;
}

int apiserver_rbac_admit(struct apiserver_admission *a, struct err *e)
{
    const struct api_kind *kind = a->request->kind;
    const struct apiserver_user *user = a->request->user;
    bool role = kind == &api_role || kind == &api_cluster_role;
    bool binding = kind == &api_role_binding || kind == &api_cluster_role_binding;
    if (a->operation == APISERVER_OP_DELETE || (!role && !binding) || !user || !a->registry->rbac ||
        apiserver_user_in(user, "system:masters"))
        return 0;
    struct grantor g = {a, user, a->request->namespace ? a->request->namespace : ""};
    return role ? check_role(&g, kind == &api_cluster_role, e) : check_binding(&g, e);
}

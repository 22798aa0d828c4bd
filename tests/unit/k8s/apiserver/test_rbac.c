/*
 * Who may do what, over roles and bindings that are stored as users store them.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "jsontest.h"
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

static char *folder;
static struct apiserver server;
static struct apiserver_registry *const g = &server.registry;

static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-rbac-XXXXXX";
    folder = mem_strdup(mkdtemp(template));
    _cleanup_free_ char *path = mem_printf("%s/db", folder);
    server = (struct apiserver){0};
    g->clock = clock_system();
    if (apiserver_store_open(path, NULL, &g->store, NULL) < 0)
        return -1;
    g->rbac = apiserver_rbac_new(g->store);
    return 0;
}

static int end(void **state)
{
    (void)state;
    apiserver_rbac_free(g->rbac);
    apiserver_store_close(g->store);
    int status = file_remove_tree(folder, NULL);
    free(folder);
    return status;
}

#define USER(name_, ...)                                                                           \
    (&(const struct apiserver_user){.name = (name_),                                               \
                                    .groups = (const char *const[]){__VA_ARGS__, NULL}})

/* Creates or, where it exists, updates; 0 or -1. */
static int write_as(const struct apiserver_user *user, const struct api_kind *kind,
                    const char *namespace, const char *name, const char *members, struct err *e)
{
    _cleanup_free_ char *text = mem_printf(
        "{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': '%s', %s}", kind->kind, members);
    json_auto_t *object = parse_quoted(text);
    if (!json_object_get(object, "metadata"))
        json_object_set_new(object, "metadata", json_pack("{s:s}", "name", name));
    json_auto_t *again = json_deep_copy(object);
    struct apiserver_request r = {.user = user, .kind = kind, .namespace = namespace};
    struct api_report report = {0};
    struct apiserver_object *o = apiserver_create(g, &r, object, &report, e);
    if (!o && e->code == ERR_ALREADY_EXISTS) {
        r.name = name;
        o = apiserver_update(g, &r, again, &report, e);
    }
    api_report_done(&report);
    apiserver_object_unref(o);
    return o ? 0 : -1;
}

static void put(const struct api_kind *kind, const char *namespace, const char *name,
                const char *members)
{
    struct err e = {0};
    if (write_as(NULL, kind, namespace, name, members, &e) < 0)
        fail_msg("%s %s: %s", kind->kind, name, e.msg);
}

static void drop(const struct api_kind *kind, const char *namespace, const char *name)
{
    struct apiserver_request r = {.kind = kind, .namespace = namespace, .name = name};
    struct err e = {0};
    bool gone;
    struct apiserver_object *o = apiserver_delete(g, &r, &gone, &e);
    if (!o)
        fail_msg("%s", e.msg);
    apiserver_object_unref(o);
}

static bool allows(const struct apiserver_user *user, struct apiserver_attributes a)
{
    return apiserver_rbac_allows(g->rbac, user, &a, NULL);
}

#define REF(kind, name)                                                                            \
    "'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': '" kind "', 'name': '" name "'}"
#define SUBJECT(kind, name) "{'kind': '" kind "', 'name': '" name "'}"

static void test_rules(void **state)
{
    (void)state;
    /* rule; verb, group, resource, subresource, name, path; allowed */
    static const struct {
        const char *rule;
        struct apiserver_attributes a;
        bool allowed;
    } cases[] = {
#define PODS "'apiGroups': [''], 'resources': ['pods']"
        {"'verbs': ['get'], " PODS, {"get", "", "pods"}, true},
        {"'verbs': ['get'], " PODS, {"list", "", "pods"}, false},
        {"'verbs': ['*'], " PODS, {"deletecollection", "", "pods"}, true},
        {"'verbs': ['get'], " PODS, {"get", "apps", "pods"}, false},
        {"'verbs': ['get'], " PODS, {"get", "", "pods", "log"}, false},
        {"'verbs': ['get'], " PODS, {"get", "", "podsx"}, false},
        {"'verbs': ['get'], 'apiGroups': ['*'], 'resources': ['pods']", {"get", "x", "pods"}, true},
        {"'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']",
         {"get", "", "pods", "log"},
         true},
        {"'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']",
         {"get", "", "pods"},
         false},
        {"'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']",
         {"get", "", "pods", "status"},
         false},
        {"'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['*/scale']",
         {"get", "apps", "deployments", "scale"},
         true},
        {"'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['*/scale']",
         {"get", "apps", "deployments", "status"},
         false},
        {"'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['*/scale']",
         {"get", "apps", "deployments"},
         false},
        {"'verbs': ['get'], 'apiGroups': [''], 'resources': ['*']",
         {"get", "", "pods", "log"},
         true},
        {"'verbs': ['get'], " PODS ", 'resourceNames': ['a', 'b']",
         {"get", "", "pods", .name = "b"},
         true},
        {"'verbs': ['get'], " PODS ", 'resourceNames': ['a', 'b']",
         {"get", "", "pods", .name = "c"},
         false},
        {"'verbs': ['list'], " PODS ", 'resourceNames': ['a', 'b']", {"list", "", "pods"}, false},
        {"'verbs': ['get'], 'nonResourceURLs': ['/metrics']", {"get", .path = "/metrics"}, true},
        {"'verbs': ['get'], 'nonResourceURLs': ['/metrics']", {"post", .path = "/metrics"}, false},
        {"'verbs': ['get'], 'nonResourceURLs': ['/metrics']", {"get", .path = "/metrics/x"}, false},
        {"'verbs': ['get'], 'nonResourceURLs': ['/logs/*']", {"get", .path = "/logs/a/b"}, true},
        {"'verbs': ['get'], 'nonResourceURLs': ['/logs/*']", {"get", .path = "/logs"}, false},
        {"'verbs': ['get'], 'nonResourceURLs': ['*']", {"get", .path = "/anything"}, true},
        {"'verbs': ['get'], 'nonResourceURLs': ['*']", {"get", "", "pods"}, false},
        {"'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']", {"get", .path = "/x"}, false},
        {"'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']",
         {"impersonate", "", "users"},
         true},
#undef PODS
    };
    put(&api_cluster_role_binding, NULL, "b",
        "'subjects': [" SUBJECT("User", "u") "], " REF("ClusterRole", "r"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *rules = mem_printf("'rules': [{%s}]", cases[i].rule);
        put(&api_cluster_role, NULL, "r", rules);
        if (allows(USER("u", "g"), cases[i].a) != cases[i].allowed)
            fail_msg("%zu: {%s} should%s allow %s", i, cases[i].rule,
                     cases[i].allowed ? "" : " not", cases[i].a.verb);
        assert_false(allows(USER("other", "g"), cases[i].a));
    }
}

static void test_subjects_and_scopes(void **state)
{
    (void)state;
    put(&api_cluster_role, NULL, "reader",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    put(&api_role, "ns", "local",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['secrets']}]");
    put(&api_cluster_role_binding, NULL, "everywhere",
        "'subjects': [" SUBJECT("Group", "readers") "], " REF("ClusterRole", "reader"));
    put(&api_role_binding, "ns", "here",
        "'subjects': [" SUBJECT("User", "jane") ", {'kind': 'ServiceAccount', 'name': 'robot', "
                                                "'namespace': 'other'}], " REF("ClusterRole",
                                                                               "reader"));
    put(&api_role_binding, "ns", "local",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("Role", "local"));
    const struct apiserver_user *robot = USER("system:serviceaccount:other:robot", "x");
    const struct {
        const struct apiserver_user *user;
        const char *resource, *namespace;
        bool allowed;
    } cases[] = {
        {USER("x", "readers"), "pods", "ns", true},
        {USER("x", "readers"), "pods", "", true},
        {USER("readers", "x"), "pods", "ns", false}, /* a user is no group */
        {USER("jane", "x"), "pods", "ns", true},
        {USER("jane", "x"), "pods", "elsewhere", false},
        {USER("jane", "x"), "pods", "", false},
        {USER("x", "jane"), "pods", "ns", false},
        {USER("jane", "x"), "secrets", "ns", true},
        {USER("jane", "x"), "secrets", "other", false},
        {robot, "pods", "ns", true},
        {robot, "secrets", "ns", false},
        {USER("robot", "x"), "pods", "ns", false},
        {USER("system:serviceaccount:ns:robot", "x"), "pods", "ns", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (allows(cases[i].user, (struct apiserver_attributes){"get", "", cases[i].resource,
                                                                .namespace = cases[i].namespace}) !=
            cases[i].allowed)
            fail_msg("%zu: %s, %s in %s", i, cases[i].user->name, cases[i].resource,
                     cases[i].namespace);
    }
}

static void test_reasons(void **state)
{
    (void)state;
    put(&api_role_binding, "ns", "b",
        "'subjects': [{'kind': 'ServiceAccount', 'name': 's', 'namespace': 'o'}, " SUBJECT(
            "User", "lost") "], " REF("Role", "r"));
    struct apiserver_attributes a = {"get", "", "pods", .namespace = "ns"};
    _cleanup_(str_done) struct str reason = {0};
    assert_false(apiserver_rbac_allows(g->rbac, USER("lost", "x"), &a, &reason));
    assert_string_equal(str_get(&reason), "RBAC: role.rbac.authorization.k8s.io \"r\" not found");
    put(&api_role, "ns", "r",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    str_clear(&reason);
    assert_true(
        apiserver_rbac_allows(g->rbac, USER("system:serviceaccount:o:s", "x"), &a, &reason));
    assert_string_equal(str_get(&reason), "RBAC: allowed by RoleBinding \"b/ns\" of Role \"r\" to "
                                          "ServiceAccount \"s/o\"");
    str_clear(&reason);
    assert_false(apiserver_rbac_allows(g->rbac, USER("nobody", "x"), &a, &reason));
    assert_string_equal(str_get(&reason), "");
}

/* The next request after a write knows of it. */
static void test_changes_hold_at_once(void **state)
{
    (void)state;
    struct apiserver_attributes a = {"get", "", "pods"};
    for (int i = 0; i < 20; i++) {
        put(&api_cluster_role, NULL, "r",
            "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
        assert_false(allows(USER("u", "g"), a));
        put(&api_cluster_role_binding, NULL, "b",
            "'subjects': [" SUBJECT("User", "u") "], " REF("ClusterRole", "r"));
        assert_true(allows(USER("u", "g"), a));
        put(&api_cluster_role, NULL, "r", "'rules': []");
        assert_false(allows(USER("u", "g"), a));
        drop(&api_cluster_role, NULL, "r");
        drop(&api_cluster_role_binding, NULL, "b");
    }
}

static void *keep_asking(void *context)
{
    const bool *stop = context;
    while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
        assert_true(allows(USER("steady", "g"), (struct apiserver_attributes){"get", "", "pods"}));
        allows(USER("u", "g"), (struct apiserver_attributes){"get", "", "pods"});
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    bool stop = false;
    put(&api_cluster_role, NULL, "steady",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    put(&api_cluster_role_binding, NULL, "steady",
        "'subjects': [" SUBJECT("User", "steady") "], " REF("ClusterRole", "steady"));
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_create(&threads[i], NULL, keep_asking, &stop);
    test_changes_hold_at_once(NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
}

/* jane holds get and list on pods and configmaps everywhere, all of secrets in ns, and paths. */
static void give_jane(void)
{
    put(&api_cluster_role, NULL, "jane",
        "'rules': [{'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods', "
        "'configmaps', 'pods/log']}, {'verbs': ['get'], 'nonResourceURLs': ['/logs/*']},"
        "{'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['*/scale']},"
        "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['nodes'], 'resourceNames': ['n1']}]");
    put(&api_cluster_role_binding, NULL, "jane",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("ClusterRole", "jane"));
    put(&api_role, "ns", "secrets",
        "'rules': [{'verbs': ['*'], 'apiGroups': [''], 'resources': ['secrets']}]");
    put(&api_role_binding, "ns", "jane",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("Role", "secrets"));
}

static void test_no_escalation_by_roles(void **state)
{
    (void)state;
    static const struct {
        const char *namespace, *rule;
        const char *missing; /* NULL: allowed */
    } cases[] = {
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']", NULL},
        {NULL, "'verbs': ['get', 'list'], 'apiGroups': [''], 'resources': ['pods', 'configmaps']",
         NULL},
        {NULL, "'verbs': ['get', 'watch'], 'apiGroups': [''], 'resources': ['pods']",
         "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\"]}"},
        {NULL, "'verbs': ['watch', 'create'], 'apiGroups': [''], 'resources': ['pods', 'nodes']",
         "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"create\"]}\n"
         "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"watch\" \"create\"]}"},
        {NULL, "'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']",
         "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"},
        {NULL, "'verbs': ['get'], 'apiGroups': ['', 'apps'], 'resources': ['pods']",
         "{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\"]}"},
        {NULL, "'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['deployments/scale']", NULL},
        {NULL, "'verbs': ['get'], 'apiGroups': ['apps'], 'resources': ['*/scale']", NULL},
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/log']", NULL},
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/status']",
         "Resources:[\"pods/status\"]"},
        {NULL,
         "'verbs': ['get'], 'apiGroups': [''], 'resources': ['nodes'], 'resourceNames': ['n1']",
         NULL},
        {NULL,
         "'verbs': ['get'], 'apiGroups': [''], 'resources': ['nodes'], 'resourceNames': "
         "['n1', 'n2']",
         "{APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"n2\"], Verbs:[\"get\"]}"},
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['nodes']",
         "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}"},
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods'], 'resourceNames': ['a']",
         NULL},
        {NULL, "'verbs': ['get'], 'nonResourceURLs': ['/logs/a', '/logs/b/*']", NULL},
        {NULL, "'verbs': ['get', 'post'], 'nonResourceURLs': ['/logs/a', '/x']",
         "{NonResourceURLs:[\"/logs/a\"], Verbs:[\"post\"]}\n"
         "{NonResourceURLs:[\"/x\"], Verbs:[\"get\" \"post\"]}"},
        {NULL, "'verbs': ['get'], 'nonResourceURLs': ['*']", "NonResourceURLs:[\"*\"]"},
        {NULL, "'verbs': ['get'], 'apiGroups': [''], 'resources': ['secrets']",
         "Resources:[\"secrets\"]"}, /* only in ns */
        {"ns", "'verbs': ['get'], 'apiGroups': [''], 'resources': ['secrets']", NULL},
        {"other", "'verbs': ['get'], 'apiGroups': [''], 'resources': ['secrets']",
         "Resources:[\"secrets\"]"},
    };
    give_jane();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *rules = mem_printf("'rules': [{%s}]", cases[i].rule);
        char name[16];
        snprintf(name, sizeof(name), "new-%zu", i);
        struct err e = {0};
        int status =
            write_as(USER("jane", "devs"), cases[i].namespace ? &api_role : &api_cluster_role,
                     cases[i].namespace, name, rules, &e);
        if ((status == 0) != !cases[i].missing)
            fail_msg("%zu: %s: %s", i, cases[i].rule, status == 0 ? "allowed" : e.msg);
        if (!cases[i].missing)
            continue;
        assert_string_equal(e.reason, "Forbidden");
        if (!strstr(e.msg, "user \"jane\" (groups=[\"devs\"]) is attempting to grant RBAC "
                           "permissions not currently held:\n") ||
            !strstr(e.msg, cases[i].missing))
            fail_msg("%zu: %s", i, e.msg);
    }
}

static json_t *stored(const struct api_kind *kind, const char *name)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(kind, &collection);
    struct apiserver_object *o = apiserver_store_get(g->store, str_get(&collection), name);
    json_t *object = o ? parse_json(o->bytes) : NULL;
    apiserver_object_unref(o);
    return object;
}

static int update_as(const struct apiserver_user *user, const char *name, json_t *role,
                     struct err *e)
{
    struct apiserver_request r = {.user = user, .kind = &api_cluster_role, .name = name};
    struct api_report report = {0};
    struct apiserver_object *o = apiserver_update(g, &r, role, &report, e);
    api_report_done(&report);
    apiserver_object_unref(o);
    return o ? 0 : -1;
}

static void test_who_may_escalate(void **state)
{
    (void)state;
    static const char rules[] =
        "'rules': [{'verbs': ['delete'], 'apiGroups': [''], 'resources': ['nodes']}]";
    struct err e = {0};
    give_jane();
    assert_int_equal(write_as(USER("jane", "x"), &api_cluster_role, NULL, "r", rules, &e), -1);
    assert_int_equal(
        write_as(USER("root", "system:masters"), &api_cluster_role, NULL, "r", rules, &e), 0);
    assert_int_equal(write_as(&apiserver_self, &api_cluster_role, NULL, "r2", rules, &e), 0);
    /* What changes no rules needs no rights to them. */
    json_auto_t *role = stored(&api_cluster_role, "r"), *more = json_deep_copy(role);
    json_object_set_new(json_object_get(role, "metadata"), "labels", json_pack("{s:s}", "a", "b"));
    assert_int_equal(update_as(USER("jane", "x"), "r", role, &e), 0);
    json_object_del(json_object_get(more, "metadata"), "resourceVersion");
    json_object_set_new(json_array_get(json_object_get(more, "rules"), 0), "verbs",
                        json_pack("[s]", "*"));
    assert_int_equal(update_as(USER("jane", "x"), "r", more, &e), -1);
    assert_string_equal(e.reason, "Forbidden");
    put(&api_cluster_role, NULL, "escalator",
        "'rules': [{'verbs': ['escalate', 'bind'], 'apiGroups': ['rbac.authorization.k8s.io'], "
        "'resources': ['clusterroles'], 'resourceNames': ['named']}]");
    put(&api_cluster_role_binding, NULL, "escalator",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("ClusterRole", "escalator"));
    assert_int_equal(write_as(USER("jane", "x"), &api_cluster_role, NULL, "named", rules, &e), 0);
    assert_int_equal(write_as(USER("jane", "x"), &api_cluster_role, NULL, "other", rules, &e), -1);
    /* A role that others fill could come to hold everything. */
    assert_int_equal(write_as(USER("jane", "x"), &api_cluster_role, NULL, "filled",
                              "'aggregationRule': {'clusterRoleSelectors': [{}]}", &e),
                     -1);
    assert_non_null(strstr(e.msg, "aggregationRule"));
}

static void test_no_escalation_by_bindings(void **state)
{
    (void)state;
    static const char to_john[] = "'subjects': [" SUBJECT("User", "john") "], ";
    give_jane();
    put(&api_cluster_role, NULL, "pods",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods']}]");
    put(&api_cluster_role, NULL, "secrets",
        "'rules': [{'verbs': ['get'], 'apiGroups': [''], 'resources': ['secrets']}]");
    static const struct {
        const char *namespace, *ref, *reason; /* NULL: allowed */
    } cases[] = {
        {NULL, REF("ClusterRole", "pods"), NULL},
        {NULL, REF("ClusterRole", "secrets"), "Forbidden"},
        {"ns", REF("ClusterRole", "secrets"), NULL},
        {"ns", REF("Role", "secrets"), NULL},
        {"other", REF("ClusterRole", "secrets"), "Forbidden"},
        {"ns", REF("Role", "none"), "NotFound"},
        {NULL, REF("ClusterRole", "none"), "NotFound"},
    };
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *members = mem_printf("%s%s", to_john, cases[i].ref);
        char name[16];
        snprintf(name, sizeof(name), "new-%zu", i);
        int status = write_as(USER("jane", "x"),
                              cases[i].namespace ? &api_role_binding : &api_cluster_role_binding,
                              cases[i].namespace, name, members, &e);
        if ((status == 0) != !cases[i].reason || (status < 0 && !str_eq(e.reason, cases[i].reason)))
            fail_msg("%zu: %s", i, status == 0 ? "allowed" : e.msg);
    }
    put(&api_role, "other", "binder",
        "'rules': [{'verbs': ['bind'], 'apiGroups': ['rbac.authorization.k8s.io'], "
        "'resources': ['clusterroles'], 'resourceNames': ['secrets']}]");
    put(&api_role_binding, "other", "binder",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("Role", "binder"));
    assert_int_equal(
        write_as(USER("jane", "x"), &api_role_binding, "other", "now",
                 "'subjects': [" SUBJECT("User", "john") "], " REF("ClusterRole", "secrets"), &e),
        0);
}

/* A rule with more combinations than anybody can look at is refused, quickly. */
static void test_too_many_combinations(void **state)
{
    (void)state;
    give_jane();
    _cleanup_(str_done) struct str rule = {0};
    static const char *const lists[] = {"apiGroups", "resources", "verbs"};
    str_append(&rule, "'rules': [{");
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        str_appendf(&rule, "%s'%s': [", i ? ", " : "", lists[i]);
        for (int j = 0; j < 2000; j++)
            str_appendf(&rule, "%s'w%d'", j ? ", " : "", j);
        str_append(&rule, "]");
    }
    str_append(&rule, "}]");
    struct err e = {0};
    assert_int_equal(write_as(USER("jane", "x"), &api_cluster_role, NULL, "big", rule.p, &e), -1);
    assert_string_equal(e.reason, "Forbidden");
    assert_non_null(strstr(e.msg, "combinations"));
}

static void test_aggregation(void **state)
{
    (void)state;
#define RULE(resource) "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['" resource "']}"
    put(&api_cluster_role, NULL, "all",
        "'aggregationRule': {'clusterRoleSelectors': [{'matchLabels': {'to': 'all'}}]}");
    put(&api_cluster_role, NULL, "some",
        "'metadata': {'name': 'some', 'labels': {'to': 'all'}}, 'aggregationRule': "
        "{'clusterRoleSelectors': [{'matchLabels': {'to': 'some'}}]}");
    put(&api_cluster_role, NULL, "a",
        "'metadata': {'name': 'a', 'labels': {'to': 'some'}}, 'rules': [" RULE("pods") "]");
    put(&api_cluster_role, NULL, "b",
        "'metadata': {'name': 'b', 'labels': {'to': 'all'}}, 'rules': [" RULE("pods") ", " RULE(
            "nodes") "]");
    apiserver_rbac_aggregation.resync(&server);
    json_auto_t *some = stored(&api_cluster_role, "some"), *all = stored(&api_cluster_role, "all");
    json_auto_t *pods = parse_quoted("[" RULE("pods") "]");
    json_auto_t *both = parse_quoted("[" RULE("pods") ", " RULE("nodes") "]");
    assert_json(json_object_get(some, "rules"), pods, "some");
    assert_json(json_object_get(all, "rules"), both, "all, each once");
    uint64_t before = apiserver_store_revision(g->store);
    apiserver_rbac_aggregation.resync(&server);
    assert_int_equal(apiserver_store_revision(g->store), before); /* nothing to do */

    drop(&api_cluster_role, NULL, "b");
    struct apiserver_events events;
    apiserver_store_events(g->store, NULL, before, 0, &events, NULL);
    vec_for_each(&events.events, event)
        apiserver_rbac_aggregation.changed(&server, event);
    apiserver_events_done(&events);
    apiserver_rbac_aggregation.tick(&server);
    json_auto_t *less = stored(&api_cluster_role, "all");
    assert_json(json_object_get(less, "rules"), pods, "all, with one role less");
}

static void must_bootstrap(void)
{
    struct err e = {0};
    if (apiserver_rbac_bootstrap(g, &e) < 0)
        fail_msg("%s", e.msg);
    apiserver_rbac_aggregation.resync(&server);
}

static void test_defaults(void **state)
{
    (void)state;
    must_bootstrap();
    const struct apiserver_user *anonymous = USER("system:anonymous", "system:unauthenticated");
    const struct apiserver_user *someone = USER("jane", "system:authenticated");
    const struct apiserver_user *root = USER("root", "system:masters");
    const struct apiserver_user *node = USER("system:node:n1", "system:nodes");
    const struct apiserver_user *csi = USER("system:orlop:csi", "system:authenticated");
    const struct {
        const struct apiserver_user *user;
        struct apiserver_attributes a;
        bool allowed;
    } cases[] = {
        {anonymous, {"get", .path = "/healthz"}, true},
        {anonymous, {"get", .path = "/livez"}, true},
        {anonymous, {"get", .path = "/readyz"}, true},
        {anonymous, {"get", .path = "/version"}, true},
        {anonymous, {"get", .path = "/api"}, false},
        {anonymous, {"get", .path = "/apis"}, false},
        {anonymous, {"get", .path = "/openapi/v3"}, false},
        {anonymous, {"get", .path = "/metrics"}, false},
        {anonymous, {"get", .path = "/"}, false},
        {anonymous, {"create", "authorization.k8s.io", "selfsubjectaccessreviews"}, false},
        {someone, {"get", .path = "/openapi/v3/apis/apps/v1"}, true},
        {someone, {"get", .path = "/metrics"}, false},
        {someone, {"create", "authorization.k8s.io", "selfsubjectrulesreviews"}, true},
        {someone, {"create", "authorization.k8s.io", "subjectaccessreviews"}, false},
        {someone, {"list", "", "pods"}, false},
        {root, {"delete", "anything", "at-all"}, true},
        {root, {"post", .path = "/x"}, true},
        {node, {"update", "", "nodes", "status"}, true},
        {node, {"get", "", "secrets"}, false},
        {node, {"patch", "openebs.io", "blockdevices", "status"}, true},
        {csi, {"create", "", "persistentvolumes"}, true},
        {csi, {"create", "", "pods"}, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (allows(cases[i].user, cases[i].a) != cases[i].allowed)
            fail_msg("%zu: %s %s", i, cases[i].user->name, cases[i].a.verb);
    }
}

static void test_user_roles(void **state)
{
    (void)state;
    must_bootstrap();
    static const char *const roles[] = {"view", "edit", "admin"};
    static const struct {
        struct apiserver_attributes a;
        bool allowed[3];
    } cases[] = {
        {{"list", "", "pods", .namespace = "ns"}, {true, true, true}},
        {{"get", "", "pods", "log", .namespace = "ns"}, {true, true, true}},
        {{"get", "", "secrets", .namespace = "ns"}, {false, true, true}},
        {{"create", "apps", "deployments", .namespace = "ns"}, {false, true, true}},
        {{"patch", "cstor.openebs.io", "cstorvolumes", .namespace = "ns"}, {false, true, true}},
        {{"create", "rbac.authorization.k8s.io", "rolebindings", .namespace = "ns"},
         {false, false, true}},
        {{"create", "rbac.authorization.k8s.io", "roles", .namespace = "other"},
         {false, false, false}},
        {{"delete", "", "namespaces", .namespace = "ns"}, {false, false, false}},
    };
    for (size_t r = 0; r < ARRAY_SIZE(roles); r++) {
        _cleanup_free_ char *members =
            mem_printf("'subjects': [{'kind': 'User', 'name': 'u-%s'}], 'roleRef': {'kind': "
                       "'ClusterRole', 'name': '%s'}",
                       roles[r], roles[r]);
        put(&api_role_binding, "ns", roles[r], members);
        _cleanup_free_ char *name = mem_printf("u-%s", roles[r]);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            if (allows(USER(name, "g"), cases[i].a) != cases[i].allowed[r])
                fail_msg("%s: %s %s", roles[r], cases[i].a.verb, cases[i].a.resource);
        }
    }
}

static void test_bootstrap_again(void **state)
{
    (void)state;
    must_bootstrap();
    uint64_t before = apiserver_store_revision(g->store);
    must_bootstrap();
    assert_int_equal(apiserver_store_revision(g->store), before);

    /* What is missing comes back, what was added stays. */
    put(&api_cluster_role, NULL, "system:basic-user",
        "'metadata': {'name': 'system:basic-user', 'labels': {'mine': 'x'}}, 'rules': ["
        "{'verbs': ['get'], 'apiGroups': ['x'], 'resources': ['y']}]");
    must_bootstrap();
    json_auto_t *role = stored(&api_cluster_role, "system:basic-user");
    assert_int_equal(json_array_size(json_object_get(role, "rules")), 3);
    assert_string_equal(
        json_string_value(json_at(role, "metadata", "labels", "kubernetes.io/bootstrapping")),
        "rbac-defaults");
    assert_string_equal(json_string_value(json_at(role, "metadata", "labels", "mine")), "x");

    /* Whoever says so keeps it as it is. */
    put(&api_cluster_role, NULL, "system:basic-user",
        "'metadata': {'name': 'system:basic-user', 'annotations': "
        "{'rbac.authorization.kubernetes.io/autoupdate': 'false'}}, 'rules': []");
    drop(&api_cluster_role_binding, NULL, "system:discovery");
    must_bootstrap();
    json_auto_t *kept = stored(&api_cluster_role, "system:basic-user");
    assert_int_equal(json_array_size(json_object_get(kept, "rules")), 0);
    json_auto_t *back = stored(&api_cluster_role_binding, "system:discovery");
    assert_non_null(back);
}

static void test_rules_review(void **state)
{
    (void)state;
    give_jane();
    put(&api_role_binding, "ns", "lost",
        "'subjects': [" SUBJECT("User", "jane") "], " REF("Role", "none"));
    json_auto_t *resources = json_array(), *paths = json_array();
    _cleanup_(str_done) struct str error = {0};
    apiserver_rbac_rules(g->rbac, USER("jane", "x"), "ns", resources, paths, &error);
    assert_int_equal(json_array_size(resources), 4);
    assert_int_equal(json_array_size(paths), 1);
    assert_string_equal(str_get(&error), "role.rbac.authorization.k8s.io \"none\" not found");
    json_auto_t *secrets =
        parse_quoted("{'verbs': ['*'], 'apiGroups': [''], 'resources': ['secrets']}");
    assert_json(json_array_get(resources, 3), secrets, "the rule of the namespace");
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_rules),
        WITH_STORE(test_subjects_and_scopes),
        WITH_STORE(test_reasons),
        WITH_STORE(test_changes_hold_at_once),
        WITH_STORE(test_threads),
        WITH_STORE(test_no_escalation_by_roles),
        WITH_STORE(test_who_may_escalate),
        WITH_STORE(test_no_escalation_by_bindings),
        WITH_STORE(test_too_many_combinations),
        WITH_STORE(test_aggregation),
        WITH_STORE(test_defaults),
        WITH_STORE(test_user_roles),
        WITH_STORE(test_bootstrap_again),
        WITH_STORE(test_rules_review),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

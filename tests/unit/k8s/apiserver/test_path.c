#include "base/mem.h"
#include "k8s/apiserver/path.h"
#include "k8s/kinds/kinds.h"
#include "kinds/kinds.h"
#include "unit.h"

static int parse(const char *method, const char *path, bool watch, struct apiserver_path *ret_path,
                 struct err *e)
{
    /* A copy without a NUL behind it: nothing may be read past the end. */
    size_t n = strlen(path);
    _cleanup_free_ char *bytes = mem_alloc(n ? n : 1);
    memcpy(bytes, path, n);
    return apiserver_path_parse(api_kinds, method, bytes, n, watch, ret_path, e);
}

static void test_objects(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path;
        bool watch;
        const struct api_kind *kind;
        const char *version, *namespace, *name;
        enum apiserver_subresource subresource;
        enum apiserver_verb verb;
        bool all;
    } cases[] = {
        {"GET", "/api/v1/pods", false, &api_pod, "v1", "", "", 0, APISERVER_LIST, true},
        {"GET", "/api/v1/pods", true, &api_pod, "v1", "", "", 0, APISERVER_WATCH, true},
        {"GET", "/api/v1/pods/", false, &api_pod, "v1", "", "", 0, APISERVER_LIST, true},
        {"GET", "/api/v1/namespaces/ns/pods", false, &api_pod, "v1", "ns", "", 0, APISERVER_LIST,
         false},
        {"POST", "/api/v1/namespaces/ns/pods", false, &api_pod, "v1", "ns", "", 0, APISERVER_CREATE,
         false},
        {"DELETE", "/api/v1/namespaces/ns/pods", false, &api_pod, "v1", "ns", "", 0,
         APISERVER_DELETE_COLLECTION, false},
        {"GET", "/api/v1/namespaces/ns/pods/p", false, &api_pod, "v1", "ns", "p", 0, APISERVER_GET,
         false},
        {"GET", "/api/v1/namespaces/ns/pods/p", true, &api_pod, "v1", "ns", "p", 0, APISERVER_WATCH,
         false},
        {"PUT", "/api/v1/namespaces/ns/pods/p", false, &api_pod, "v1", "ns", "p", 0,
         APISERVER_UPDATE, false},
        {"PATCH", "/api/v1/namespaces/ns/pods/p/status", false, &api_pod, "v1", "ns", "p",
         APISERVER_STATUS, APISERVER_PATCH, false},
        {"DELETE", "/api/v1/namespaces/ns/pods/p", false, &api_pod, "v1", "ns", "p", 0,
         APISERVER_DELETE, false},
        {"PUT", "/apis/apps/v1/namespaces/ns/deployments/d/scale", false, &api_deployment, "v1",
         "ns", "d", APISERVER_SCALE, APISERVER_UPDATE, false},
        {"GET", "/apis/apps/v1/namespaces/ns/deployments/d/scale", true, &api_deployment, "v1",
         "ns", "d", APISERVER_SCALE, APISERVER_GET, false},
        {"GET", "/api/v1/namespaces", false, &api_namespace, "v1", "", "", 0, APISERVER_LIST,
         false},
        {"DELETE", "/api/v1/namespaces/x", false, &api_namespace, "v1", "", "x", 0,
         APISERVER_DELETE, false},
        {"GET", "/api/v1/namespaces/x/status", false, &api_namespace, "v1", "", "x",
         APISERVER_STATUS, APISERVER_GET, false},
        {"POST", "/api/v1/nodes", false, &api_node, "v1", "", "", 0, APISERVER_CREATE, false},
        {"GET", "/api/v1/namespaces/namespaces/pods", false, &api_pod, "v1", "namespaces", "", 0,
         APISERVER_LIST, false},
        {"GET", "/apis/openebs.io/v1alpha1/namespaces/ns/cstorpoolclusters/c", false,
         &api_cstor_pool_cluster, "v1alpha1", "ns", "c", 0, APISERVER_GET, false},
        {"GET", "/apis/cstor.openebs.io/v1/cstorpoolclusters", false, &api_cstor_pool_cluster, "v1",
         "", "", 0, APISERVER_LIST, true},
        {"GET", "/apis/events.k8s.io/v1/namespaces/ns/events", false, &api_event, "v1", "ns", "", 0,
         APISERVER_LIST, false},
        {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", false,
         &api_cluster_role, "v1", "", "system:node", 0, APISERVER_GET, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct apiserver_path p;
        struct err e = {0};
        if (parse(cases[i].method, cases[i].path, cases[i].watch, &p, &e) < 0)
            fail_msg("%s %s: %s", cases[i].method, cases[i].path, e.msg);
        if (p.asked != APISERVER_ASKED_OBJECTS || p.kind != cases[i].kind ||
            !str_eq(p.gv->version, cases[i].version) || !str_eq(p.namespace, cases[i].namespace) ||
            !str_eq(p.name, cases[i].name) || p.subresource != cases[i].subresource ||
            p.verb != cases[i].verb || p.all_namespaces != cases[i].all)
            fail_msg("%s %s: %s of %s %s/%s", cases[i].method, cases[i].path,
                     apiserver_verb_text(p.verb), p.kind->kind, p.namespace, p.name);
    }
}

static void test_group_of_the_path(void **state)
{
    (void)state;
    struct apiserver_path p;
    assert_int_equal(parse("GET", "/apis/cstor.openebs.io/v1/cstorvolumes", false, &p, NULL), 0);
    assert_string_equal(p.gv->group, "cstor.openebs.io");
    assert_int_equal(parse("GET", "/apis/openebs.io/v1alpha1/cstorvolumes", false, &p, NULL), 0);
    assert_string_equal(p.gv->group, "openebs.io");
}

static void test_others(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum apiserver_asked asked;
        const char *group, *version, *name, *check;
    } cases[] = {
        {"/", APISERVER_ASKED_ROOT, NULL, NULL, "", ""},
        {"/healthz", APISERVER_ASKED_HEALTH, NULL, NULL, "healthz", ""},
        {"/readyz/ping", APISERVER_ASKED_HEALTH, NULL, NULL, "readyz", "ping"},
        {"/livez/", APISERVER_ASKED_HEALTH, NULL, NULL, "livez", ""},
        {"/version", APISERVER_ASKED_VERSION, NULL, NULL, "", ""},
        {"/version/", APISERVER_ASKED_VERSION, NULL, NULL, "", ""},
        {"/metrics", APISERVER_ASKED_METRICS, NULL, NULL, "", ""},
        {"/api", APISERVER_ASKED_CORE, "", NULL, "", ""},
        {"/api/v1", APISERVER_ASKED_RESOURCES, "", "v1", "", ""},
        {"/apis", APISERVER_ASKED_GROUPS, NULL, NULL, "", ""},
        {"/apis/", APISERVER_ASKED_GROUPS, NULL, NULL, "", ""},
        {"/apis/apps", APISERVER_ASKED_GROUP, "apps", NULL, "", ""},
        {"/apis/apps/v1", APISERVER_ASKED_RESOURCES, "apps", "v1", "", ""},
        {"/openapi/v2", APISERVER_ASKED_OPENAPI_V2, NULL, NULL, "", ""},
        {"/openapi/v3", APISERVER_ASKED_OPENAPI_V3, NULL, NULL, "", ""},
        {"/openapi/v3/api/v1", APISERVER_ASKED_OPENAPI_V3_DOCUMENT, "", "v1", "", ""},
        {"/openapi/v3/apis/openebs.io/v1alpha1", APISERVER_ASKED_OPENAPI_V3_DOCUMENT, "openebs.io",
         "v1alpha1", "", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct apiserver_path p;
        struct err e = {0};
        if (parse("GET", cases[i].path, false, &p, &e) < 0)
            fail_msg("%s: %s", cases[i].path, e.msg);
        const char *group = p.group ? p.group : "-", *version = p.gv ? p.gv->version : "-";
        if (p.asked != cases[i].asked || !str_eq(group, cases[i].group ? cases[i].group : "-") ||
            !str_eq(version, cases[i].version ? cases[i].version : "-") ||
            !str_eq(p.name, cases[i].name) || !str_eq(p.check, cases[i].check))
            fail_msg("%s: %d %s %s %s %s", cases[i].path, (int)p.asked, group, version, p.name,
                     p.check);
        assert_int_equal(parse("POST", cases[i].path, false, &p, &e), -1);
        assert_string_equal(e.reason, "MethodNotAllowed");
    }
    struct apiserver_path p;
    assert_int_equal(parse("HEAD", "/healthz", false, &p, NULL), 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *reason;
    } cases[] = {
        {"GET", "", "BadRequest"},
        {"GET", "api", "BadRequest"},
        {"GET", "*", "BadRequest"},
        {"GET", "http://x/api", "BadRequest"},
        {"GET", "//", "BadRequest"},
        {"GET", "//api", "BadRequest"},
        {"GET", "/api//v1", "BadRequest"},
        {"GET", "/api/v1/pods//", "BadRequest"},
        {"GET", "/api/v1/namespaces/../pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%2e%2E/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/a%2fb/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/a%00/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/a%0d%0a/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%ff/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%2525/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%4/pods", "BadRequest"},
        {"GET", "/api/v1/namespaces/%zz/pods", "BadRequest"},
        {"GET", "/api/%4", "BadRequest"},
        {"GET", "/api/v1/pods?watch=true", "BadRequest"},
        {"GET", "/api/v2", "NotFound"},
        {"GET", "/api/v1/gadgets", "NotFound"},
        {"GET", "/api/v1/Pods", "NotFound"},
        {"GET", "/api/v1/pod", "NotFound"},
        {"GET", "/api/v1/deployments", "NotFound"},
        {"GET", "/api/apps/v1/deployments", "NotFound"},
        {"GET", "/apis/v1/pods", "NotFound"},
        {"GET", "/apis/nope", "NotFound"},
        {"GET", "/apis/apps/v2", "NotFound"},
        {"GET", "/apis/apps/v1beta1/deployments", "NotFound"},
        {"GET", "/api/v1/pods/p", "NotFound"},
        {"GET", "/api/v1/pods/p/status", "NotFound"},
        {"GET", "/api/v1/namespaces/ns/nodes", "NotFound"},
        {"GET", "/api/v1/namespaces/ns/secrets/p/log", "NotFound"},
        {"PUT", "/api/v1/namespaces/ns/pods/p/log", "MethodNotAllowed"},
        {"GET", "/api/v1/namespaces/ns/finalize", "MethodNotAllowed"},
        {"GET", "/api/v1/namespaces/ns/pods/p/scale", "NotFound"},
        {"GET", "/api/v1/namespaces/ns/pods/p/status/x", "NotFound"},
        {"GET", "/api/v1/namespaces/ns/secrets/s/status", "NotFound"},
        {"GET", "/apis/apps/v1/namespaces", "NotFound"},
        {"GET", "/apis/apps/v1/namespaces/ns", "NotFound"},
        {"GET", "/apis/apps/v1/namespaces/ns/deployments/d/scale/x", "NotFound"},
        {"GET", "/a/b/c/d/e/f/g/h/i", "NotFound"},
        {"GET", "/openapi", "NotFound"},
        {"GET", "/openapi/v4", "NotFound"},
        {"GET", "/openapi/v2/api/v1", "NotFound"},
        {"GET", "/openapi/v3/apis", "NotFound"},
        {"GET", "/openapi/v3/apis/apps", "NotFound"},
        {"GET", "/openapi/v3/apis/apps/v1/deployments", "NotFound"},
        {"GET", "/healthz/a/b", "NotFound"},
        {"GET", "/version/x", "NotFound"},
        {"GET", "/secret", "NotFound"},
        {"POST", "/api/v1/pods", "MethodNotAllowed"},
        {"DELETE", "/api/v1/pods", "MethodNotAllowed"},
        {"PUT", "/api/v1/namespaces/ns/pods", "MethodNotAllowed"},
        {"PATCH", "/api/v1/namespaces/ns/pods", "MethodNotAllowed"},
        {"POST", "/api/v1/namespaces/ns/pods/p", "MethodNotAllowed"},
        {"POST", "/api/v1/namespaces/ns/pods/p/status", "MethodNotAllowed"},
        {"DELETE", "/api/v1/namespaces/ns/pods/p/status", "MethodNotAllowed"},
        {"DELETE", "/api/v1/namespaces", "MethodNotAllowed"},
        {"get", "/api/v1/pods", "MethodNotAllowed"},
        {"OPTIONS", "/api/v1/pods", "MethodNotAllowed"},
        {"", "/api/v1/pods", "MethodNotAllowed"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct apiserver_path p;
        struct err e = {0};
        if (parse(cases[i].method, cases[i].path, false, &p, &e) == 0)
            fail_msg("%s %s: accepted", cases[i].method, cases[i].path);
        if (!str_eq(e.reason, cases[i].reason))
            fail_msg("%s %s: %s: %s", cases[i].method, cases[i].path, e.reason, e.msg);
    }
}

static void test_limits(void **state)
{
    (void)state;
    char path[APISERVER_PATH_MAX + 2];
    static const char start[] = "/api/v1/nodes/";
    struct apiserver_path p;
    struct err e = {0};
    memset(path, 'a', sizeof(path));
    memcpy(path, start, strlen(start));
    size_t longest = strlen(start) + APISERVER_NAME_MAX;
    assert_int_equal(apiserver_path_parse(api_kinds, "GET", path, longest, false, &p, &e), 0);
    assert_int_equal(strlen(p.name), APISERVER_NAME_MAX);
    assert_int_equal(apiserver_path_parse(api_kinds, "GET", path, longest + 1, false, &p, &e), -1);
    assert_string_equal(e.reason, "NotFound");
    assert_int_equal(apiserver_path_parse(api_kinds, "GET", path, sizeof(path), false, &p, &e), -1);
    assert_string_equal(e.reason, "BadRequest");
    static const char with_nul[] = "/api/v1/nodes/a\0b";
    size_t n = sizeof(with_nul) - 1;
    assert_int_equal(apiserver_path_parse(api_kinds, "GET", with_nul, n, false, &p, &e), -1);
    assert_string_equal(e.reason, "BadRequest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects), cmocka_unit_test(test_group_of_the_path),
        cmocka_unit_test(test_others),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}

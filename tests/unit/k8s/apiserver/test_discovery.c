#include "jsontest.h"
#include "k8s/apiserver/discovery.h"
#include "k8s/kinds/kinds.h"

static const struct api_group_version three[] = {{"rec.example.test", "v1alpha1"},
                                                 {"rec.example.test", "v1"},
                                                 {"rec.example.test", "v1beta2"},
                                                 {0}};
static const struct api_group_version one[] = {{"rec.example.test", "v1beta10"}, {"", "v1"}, {0}};

/* One kind of each sort, in several groups and versions. */
static const struct api_kind gadget = {
    .kind = "Gadget",
    .plural = "gadgets",
    .singular = "gadget",
    .short_names = API_WORDS("gd"),
    .versions = three,
    .flags = API_STATUS | API_SCALE,
};
static const struct api_kind place = {
    .kind = "Place",
    .plural = "places",
    .singular = "place",
    .versions = one,
    .flags = API_CLUSTER_SCOPED | API_BUILTIN,
};
static const struct api_kind *const kinds[] = {&gadget, &api_deployment, &place, &api_namespace,
                                               NULL};
static const struct api_kind *const none[] = {NULL};

#define ALL_VERBS                                                                                  \
    "'verbs': ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']"
#define BUILTIN_VERBS                                                                              \
    "'verbs': ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']"
#define SUB_VERBS "'verbs': ['get', 'patch', 'update']"

static void check(json_t *got, const char *expected, const char *what)
{
    json_auto_t *reply = got, *wanted = parse_quoted(expected);
    assert_json(reply, wanted, what);
}

static void test_version_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {
        "v10",       "v2",   "v1",    "v11beta2", "v10beta3", "v3beta1", "v12alpha1",
        "v11alpha2", "foo1", "foo10", "v",        "v1beta",   "v1x",     "vbeta1"};
    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(sorted); k++) {
            int order = apiserver_version_cmp(sorted[i], sorted[k]);
            if ((order < 0) != (i < k) || (order == 0) != (i == k))
                fail_msg("%s and %s: %d", sorted[i], sorted[k], order);
        }
    }
}

static void test_versions(void **state)
{
    (void)state;
    static const struct api_group_version expected[] = {
        {"rec.example.test", "v1"},
        {"rec.example.test", "v1beta10"},
        {"rec.example.test", "v1beta2"},
        {"rec.example.test", "v1alpha1"},
        {"apps", "v1"},
        {"", "v1"},
    };
    _cleanup_free_ struct api_group_version *all = apiserver_versions(kinds);
    size_t n = 0;
    for (; all[n].group; n++) {
        assert_true(n < ARRAY_SIZE(expected));
        assert_string_equal(all[n].group, expected[n].group);
        assert_string_equal(all[n].version, expected[n].version);
    }
    assert_int_equal(n, ARRAY_SIZE(expected));
    _cleanup_free_ struct api_group_version *empty = apiserver_versions(none);
    assert_null(empty[0].group);
}

static void test_core(void **state)
{
    (void)state;
    check(apiserver_core_versions(kinds, "10.0.0.1:6443"),
          "{'kind': 'APIVersions', 'versions': ['v1'], 'serverAddressByClientCIDRs': "
          "[{'clientCIDR': '0.0.0.0/0', 'serverAddress': '10.0.0.1:6443'}]}",
          "/api");
    check(apiserver_core_versions(none, NULL),
          "{'kind': 'APIVersions', 'versions': [], 'serverAddressByClientCIDRs': []}", "/api");
}

#define GADGET_GROUP                                                                               \
    "'name': 'rec.example.test', 'versions': ["                                                    \
    "{'groupVersion': 'rec.example.test/v1', 'version': 'v1'},"                                    \
    "{'groupVersion': 'rec.example.test/v1beta10', 'version': 'v1beta10'},"                        \
    "{'groupVersion': 'rec.example.test/v1beta2', 'version': 'v1beta2'},"                          \
    "{'groupVersion': 'rec.example.test/v1alpha1', 'version': 'v1alpha1'}],"                       \
    "'preferredVersion': {'groupVersion': 'rec.example.test/v1', 'version': 'v1'}"

static void test_groups(void **state)
{
    (void)state;
    check(apiserver_group_list(kinds),
          "{'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': [{" GADGET_GROUP "},"
          "{'name': 'apps', 'versions': [{'groupVersion': 'apps/v1', 'version': 'v1'}],"
          " 'preferredVersion': {'groupVersion': 'apps/v1', 'version': 'v1'}}]}",
          "/apis");
    check(apiserver_group_list(none), "{'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': []}",
          "/apis");
    check(apiserver_group(kinds, "rec.example.test"),
          "{'kind': 'APIGroup', 'apiVersion': 'v1'," GADGET_GROUP "}", "/apis/G");
    assert_null(apiserver_group(kinds, "nope"));
    assert_null(apiserver_group(kinds, "")); /* the core group is under /api */
}

static void test_resources(void **state)
{
    (void)state;
    check(apiserver_resource_list(kinds, "rec.example.test", "v1"),
          "{'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': 'rec.example.test/v1',"
          "'resources': [{'name': 'gadgets', 'singularName': 'gadget', 'namespaced': true,"
          "'kind': 'Gadget', " ALL_VERBS ", 'shortNames': ['gd'], 'categories': ['orlop']},"
          "{'name': 'gadgets/status', 'singularName': '', 'namespaced': true,"
          "'kind': 'Gadget', " SUB_VERBS "},"
          "{'name': 'gadgets/scale', 'singularName': '', 'namespaced': true,"
          "'group': 'autoscaling', 'version': 'v1', 'kind': 'Scale', " SUB_VERBS "}]}",
          "/apis/G/V");
    check(apiserver_resource_list(kinds, "rec.example.test", "v1beta10"),
          "{'kind': 'APIResourceList', 'apiVersion': 'v1',"
          "'groupVersion': 'rec.example.test/v1beta10', 'resources': [{'name': 'places',"
          "'singularName': 'place', 'namespaced': false, 'kind': 'Place', " BUILTIN_VERBS "}]}",
          "/apis/G/V of one kind");
    assert_null(apiserver_resource_list(kinds, "rec.example.test", "v2"));
    assert_null(apiserver_resource_list(kinds, "", "v2"));
    assert_null(apiserver_resource_list(none, "", "v1"));
}

/* Nobody may delete all namespaces at once, and so it is not offered. */
static void test_namespaces(void **state)
{
    (void)state;
    static const struct api_kind *const only[] = {&api_namespace, NULL};
    check(apiserver_resource_list(only, "", "v1"),
          "{'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': 'v1', 'resources': ["
          "{'name': 'namespaces', 'singularName': 'namespace', 'namespaced': false,"
          "'kind': 'Namespace', 'verbs': ['create', 'delete', 'get', 'list', 'patch', 'update',"
          "'watch'], 'shortNames': ['ns']},"
          "{'name': 'namespaces/status', 'singularName': '', 'namespaced': false,"
          "'kind': 'Namespace', " SUB_VERBS "}]}",
          "/api/v1");
}

static void test_aggregated(void **state)
{
    (void)state;
    static const struct api_kind *const some[] = {&api_deployment, &place, NULL};
    /* As a server of Kubernetes describes deployments. */
    check(apiserver_aggregated_discovery(some, false),
          "{'kind': 'APIGroupDiscoveryList', 'apiVersion': 'apidiscovery.k8s.io/v2',"
          "'metadata': {}, 'items': [{'metadata': {'name': 'apps'}, 'versions': [{'version': 'v1',"
          "'resources': [{'resource': 'deployments', 'responseKind': {'group': '', 'version': '',"
          "'kind': 'Deployment'}, 'scope': 'Namespaced', 'singularResource': "
          "'deployment'," BUILTIN_VERBS
          ", 'shortNames': ['deploy'], 'categories': ['all'], 'subresources': ["
          "{'subresource': 'scale', 'responseKind': {'group': 'autoscaling', 'version': 'v1',"
          "'kind': 'Scale'}, " SUB_VERBS
          "}, {'subresource': 'status', 'responseKind': {'group': '',"
          "'version': '', 'kind': 'Deployment'}, " SUB_VERBS "}]}], 'freshness': 'Current'}]},"
          "{'metadata': {'name': 'rec.example.test'}, 'versions': [{'version': 'v1beta10',"
          "'resources': [{'resource': 'places', 'responseKind': {'group': '', 'version': '',"
          "'kind': 'Place'}, 'scope': 'Cluster', 'singularResource': 'place'," BUILTIN_VERBS "}],"
          "'freshness': 'Current'}]}]}",
          "/apis");
    check(apiserver_aggregated_discovery(some, true),
          "{'kind': 'APIGroupDiscoveryList', 'apiVersion': 'apidiscovery.k8s.io/v2',"
          "'metadata': {}, 'items': [{'metadata': {}, 'versions': [{'version': 'v1',"
          "'resources': [{'resource': 'places', 'responseKind': {'group': '', 'version': '',"
          "'kind': 'Place'}, 'scope': 'Cluster', 'singularResource': 'place'," BUILTIN_VERBS "}],"
          "'freshness': 'Current'}]}]}",
          "/api");
    check(apiserver_aggregated_discovery(none, true),
          "{'kind': 'APIGroupDiscoveryList', 'apiVersion': 'apidiscovery.k8s.io/v2',"
          "'metadata': {}, 'items': []}",
          "/api without kinds");
}

/* Every kind that there is can be found in both forms, in each of its versions. */
static void test_all_kinds(void **state)
{
    (void)state;
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            json_auto_t *list = apiserver_resource_list(api_kinds, gv->group, gv->version);
            bool found = false;
            size_t i;
            json_t *entry;
            json_array_foreach(json_object_get(list, "resources"), i, entry) {
                found |= str_eq(json_str(entry, "name"), (*k)->plural) &&
                         str_eq(json_str(entry, "kind"), (*k)->kind);
            }
            if (!found)
                fail_msg("%s is not in %s/%s", (*k)->plural, gv->group, gv->version);
        }
    }
}

static void test_version(void **state)
{
    (void)state;
    json_auto_t *v = apiserver_version();
    static const char *const keys[] = {"major",     "minor",        "gitVersion",
                                       "gitCommit", "gitTreeState", "buildDate",
                                       "goVersion", "compiler",     "platform"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!json_str(v, keys[i]))
            fail_msg("no %s", keys[i]);
    }
    assert_true(str_starts_with(json_str(v, "gitVersion"), "v1.36.0+orlop-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_order), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_core),          cmocka_unit_test(test_groups),
        cmocka_unit_test(test_resources),     cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_aggregated),    cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests_name("discovery", tests, NULL, NULL);
}

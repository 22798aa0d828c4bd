#include "jsontest.h"
#include "k8s/apiserver/openapi_doc.h"
#include "k8s/apiserver/openapi_v2.h"
#include "k8s/kinds/kinds.h"

static const struct api_kind *const none[] = {NULL};

static bool has_parameter(const json_t *operation, const char *name)
{
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(operation, "parameters"), i, p) {
        if (str_eq(json_str(p, "name"), name) && str_eq(json_str(p, "in"), "query"))
            return true;
    }
    return false;
}

static void test_hash(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hash; /* the published values of the function */
    } cases[] = {
        {"", "6C62272E07BB014262B821756295C58D"},
        {"a", "D228CB696F1A8CAF78912B704E4A8964"},
        {"foobar", "343E1662793C64BF6F0D3597BA446F18"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buf[APISERVER_HASH_MAX];
        assert_string_equal(apiserver_content_hash(cases[i].text, strlen(cases[i].text), buf),
                            cases[i].hash);
    }
}

/* The numbers of gnostic's messages, by hand for a small document; the rest is integration/openapi. */
static void test_v2_forms(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str text = {0}, binary = {0}, schema = {0};
    apiserver_openapi_v2(none, false, &text);
    json_auto_t *document = parse_json(str_get(&text));
    assert_string_equal(json_str(document, "swagger"), "2.0");
    assert_int_equal(json_object_size(json_object_get(document, "paths")), 0);
    assert_non_null(json_at(document, "definitions",
                            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "properties"));
    apiserver_openapi_v2(none, true, &binary);
    static const char head[] = "\x0a\x03"
                               "2.0\x12";
    assert_memory_equal(binary.p, head, sizeof(head) - 1);

    json_auto_t *value = parse_quoted("{'type': 'integer', 'minimum': 1, 'maximum': 0, 'x-a': [1], "
                                      "'enum': ['b'], 'uniqueItems': false, 'maxLength': 300}");
    openapi_write_named(&schema, 1, "n", &openapi_schema, value);
    static const char expected[] = "\x0a\x36\x0a\x01n\x12\x31"
                                   "\x49\0\0\0\0\0\0\xf0\x3f"                      /* minimum */
                                   "\x58\xac\x02"                                  /* maxLength */
                                   "\xa2\x01\x06\x12\x04\"b\"\n"                   /* enum */
                                   "\xb2\x01\x09\x0a\x07integer"                   /* type */
                                   "\xfa\x01\x0d\x0a\x03x-a\x12\x06\x12\x04[1]\n"; /* x-a */
    assert_int_equal(schema.len, sizeof(expected) - 1);
    assert_memory_equal(schema.p, expected, sizeof(expected) - 1);
}

/* What kubectl must find to leave validation to the server. */
static void test_patch_operation(void **state)
{
    (void)state;
    static const struct {
        const char *group, *version, *path, *kind;
    } cases[] = {
        {"openebs.io", "v1alpha1",
         "/apis/openebs.io/v1alpha1/namespaces/{namespace}/cstorpoolclusters/{name}",
         "CStorPoolCluster"},
        {"cstor.openebs.io", "v1",
         "/apis/cstor.openebs.io/v1/namespaces/{namespace}/cstorpoolclusters/{name}",
         "CStorPoolCluster"},
        {"", "v1", "/api/v1/namespaces/{namespace}/pods/{name}", "Pod"},
        {"", "v1", "/api/v1/nodes/{name}", "Node"},
        {"storage.k8s.io", "v1", "/apis/storage.k8s.io/v1/storageclasses/{name}", "StorageClass"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *document =
            apiserver_openapi_document(api_kinds, cases[i].group, cases[i].version);
        const json_t *patch = json_at(document, "paths", cases[i].path, "patch");
        if (!patch)
            fail_msg("no %s", cases[i].path);
        json_auto_t *expected = json_pack("{s:s,s:s,s:s}", "group", cases[i].group, "version",
                                          cases[i].version, "kind", cases[i].kind);
        assert_json(json_object_get(patch, "x-kubernetes-group-version-kind"), expected,
                    cases[i].path);
        assert_string_equal(json_str(patch, "x-kubernetes-action"), "patch");
        assert_true(has_parameter(patch, "fieldValidation"));
        assert_true(has_parameter(patch, "dryRun"));
        assert_true(has_parameter(patch, "fieldManager"));
    }
}

static void test_operations(void **state)
{
    (void)state;
    json_auto_t *apps = apiserver_openapi_document(api_kinds, "apps", "v1");
    json_auto_t *core = apiserver_openapi_document(api_kinds, "", "v1");
    const json_t *apps_paths = json_object_get(apps, "paths");
    const json_t *core_paths = json_object_get(core, "paths");
#define DEPLOYMENTS "/apis/apps/v1/namespaces/{namespace}/deployments"
    const struct {
        const json_t *paths;
        const char *path, *method, *action; /* NULL: there is none */
    } cases[] = {
        {apps_paths, DEPLOYMENTS, "get", "list"},
        {apps_paths, DEPLOYMENTS, "post", "post"},
        {apps_paths, DEPLOYMENTS, "delete", "deletecollection"},
        {apps_paths, DEPLOYMENTS, "put", NULL},
        {apps_paths, DEPLOYMENTS, "patch", NULL},
        {apps_paths, DEPLOYMENTS "/{name}", "get", "get"},
        {apps_paths, DEPLOYMENTS "/{name}", "put", "put"},
        {apps_paths, DEPLOYMENTS "/{name}", "delete", "delete"},
        {apps_paths, DEPLOYMENTS "/{name}", "post", NULL},
        {apps_paths, DEPLOYMENTS "/{name}/status", "patch", "patch"},
        {apps_paths, DEPLOYMENTS "/{name}/status", "delete", NULL},
        {apps_paths, DEPLOYMENTS "/{name}/scale", "put", "put"},
        {apps_paths, "/apis/apps/v1/deployments", "get", "list"},
        {apps_paths, "/apis/apps/v1/deployments", "post", NULL},
        {core_paths, "/api/v1/namespaces", "get", "list"},
        {core_paths, "/api/v1/namespaces", "delete", NULL},
        {core_paths, "/api/v1/namespaces/{name}", "delete", "delete"},
        {core_paths, "/api/v1/namespaces/{namespace}/nodes", "get", NULL},
        {core_paths, "/api/v1/namespaces/{namespace}/secrets/{name}/status", "get", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *action = json_str(json_at(cases[i].paths, cases[i].path, cases[i].method),
                                      "x-kubernetes-action");
        if (!action != !cases[i].action || (action && !str_eq(action, cases[i].action)))
            fail_msg("%s %s: %s", cases[i].method, cases[i].path, action ? action : "none");
    }
    const json_t *scale = json_at(apps_paths, DEPLOYMENTS "/{name}/scale", "put");
    assert_string_equal(json_str(json_object_get(scale, "x-kubernetes-group-version-kind"), "kind"),
                        "Scale");
    assert_false(has_parameter(json_at(apps_paths, DEPLOYMENTS, "get"), "fieldManager"));
    assert_true(has_parameter(json_at(apps_paths, DEPLOYMENTS, "get"), "labelSelector"));
}

static void test_schemas(void **state)
{
    (void)state;
    static const struct {
        const char *group, *version, *name, *kind;
    } cases[] = {
        {"cstor.openebs.io", "v1", "io.openebs.cstor.v1.CStorVolume", "CStorVolume"},
        {"topolvm.io", "v1", "io.topolvm.v1.LogicalVolume", "LogicalVolume"},
        {"", "v1", "io.k8s.api.core.v1.Pod", "Pod"},
        {"apps", "v1", "io.k8s.api.apps.v1.DeploymentList", "DeploymentList"},
        {"storage.k8s.io", "v1", "io.k8s.api.storage.v1.StorageClass", "StorageClass"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *document =
            apiserver_openapi_document(api_kinds, cases[i].group, cases[i].version);
        const json_t *schema = json_at(document, "components", "schemas", cases[i].name);
        json_auto_t *expected = json_pack("[{s:s,s:s,s:s}]", "group", cases[i].group, "version",
                                          cases[i].version, "kind", cases[i].kind);
        assert_json(json_object_get(schema, "x-kubernetes-group-version-kind"), expected,
                    cases[i].name);
        assert_non_null(json_at(schema, "properties", "metadata"));
    }
    json_auto_t *apps = apiserver_openapi_document(api_kinds, "apps", "v1");
    const json_t *items =
        json_at(apps, "components", "schemas", "io.k8s.api.apps.v1.DeploymentList", "properties",
                "items", "items");
    assert_string_equal(json_str(items, "$ref"),
                        "#/components/schemas/io.k8s.api.apps.v1.Deployment");
}

/* Every reference leads to a schema of the same document. */
static void check_references(const json_t *value, const json_t *schemas, unsigned depth)
{
    static const char prefix[] = "#/components/schemas/";
    const char *key, *to = json_str(value, "$ref");
    size_t i;
    json_t *child;
    assert_true(depth < JSON_MAX_DEPTH);
    if (to && (!str_starts_with(to, prefix) || !json_object_get(schemas, to + strlen(prefix))))
        fail_msg("%s leads nowhere", to);
    json_object_foreach((json_t *)value, key, child)
        check_references(child, schemas, depth + 1);
    json_array_foreach(value, i, child)
        check_references(child, schemas, depth + 1);
}

static void test_index(void **state)
{
    (void)state;
    json_auto_t *index = apiserver_openapi_index(api_kinds);
    json_auto_t *again = apiserver_openapi_index(api_kinds);
    assert_json(again, index, "the same twice");
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            char version[128], hash[APISERVER_HASH_MAX];
            json_auto_t *document = apiserver_openapi_document(api_kinds, gv->group, gv->version);
            check_references(document, json_at(document, "components", "schemas"), 0);
            _cleanup_(str_done) struct str text = {0};
            json_format(document, &text);
            _cleanup_free_ char *place =
                mem_printf("%s/%s", *gv->group ? "apis" : "api", api_version_text(gv, version));
            _cleanup_free_ char *url = mem_printf("/openapi/v3/%s?hash=%s", place,
                                                  apiserver_content_hash(text.p, text.len, hash));
            const char *got = json_str(json_at(index, "paths", place), "serverRelativeURL");
            if (!got || !str_eq(got, url))
                fail_msg("%s: %s instead of %s", place, got ? got : "none", url);
        }
    }
}

static void test_nothing(void **state)
{
    (void)state;
    assert_null(apiserver_openapi_document(api_kinds, "openebs.io", "v9"));
    assert_null(apiserver_openapi_document(api_kinds, "nope", "v1"));
    assert_null(apiserver_openapi_document(none, "", "v1"));
    json_auto_t *index = apiserver_openapi_index(none), *expected = parse_quoted("{'paths': {}}");
    assert_json(index, expected, "index");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_v2_forms),
        cmocka_unit_test(test_patch_operation),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests_name("openapi_doc", tests, NULL, NULL);
}

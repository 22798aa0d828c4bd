#include <pthread.h>
#include <stdio.h>

#include "a_registry.h"
#include "k8s/apiserver/quota.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"

static int begin(void **state)
{
    registry.rules = apiserver_rules_new(NULL);
    return registry_begin(state);
}

static int end(void **state)
{
    assert_true(list_empty(&registry.rules->reservations));
    int status = registry_end(state);
    apiserver_rules_free(registry.rules);
    return status;
}

/* The reason why it failed, "" when it did not; *ret_message, if given, to be freed. */
static const char *create(const struct api_kind *kind, const char *namespace, const char *text,
                          bool dry_run, char **ret_message)
{
    json_auto_t *object = parse_quoted(text);
    struct api_report report = {0};
    struct err e = {0};
    struct apiserver_request r = {.kind = kind, .namespace = namespace, .dry_run = dry_run};
    struct apiserver_object *o = apiserver_create(&registry, &r, object, &report, &e);
    apiserver_object_unref(o);
    api_report_done(&report);
    if (ret_message)
        *ret_message = mem_strdup(e.msg);
    return o ? "" : e.reason;
}

static const char *delete_namespace(const char *name, bool *ret_gone)
{
    struct err e = {0};
    struct apiserver_request r = {.kind = &api_namespace, .name = name};
    struct apiserver_object *o = apiserver_delete(&registry, &r, ret_gone, &e);
    apiserver_object_unref(o);
    return o ? "" : e.reason;
}

#define NAMESPACE(n) "{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': '" n "'}}"
#define CONFIG(n)    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '" n "'}}"
#define CLAIM(n, size)                                                                             \
    "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': '" n               \
    "'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '" size  \
    "'}}}}"
#define QUOTA(n, hard)                                                                             \
    "{'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': '" n                       \
    "'}, 'spec': {'hard': {" hard "}}}"

static void test_namespaces(void **state)
{
    (void)state;
    bool gone;
    assert_string_equal(create(&api_config_map, "ns", CONFIG("a"), false, NULL),
                        "NamespaceNotFound");
    assert_string_equal(create(&api_namespace, NULL, NAMESPACE("ns"), true, NULL), "");
    assert_string_equal(create(&api_config_map, "ns", CONFIG("a"), false, NULL),
                        "NamespaceNotFound"); /* it was a dry run */
    assert_string_equal(create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL), "");
    assert_string_equal(create(&api_config_map, "ns", CONFIG("a"), false, NULL), "");
    assert_string_equal(delete_namespace("ns", &gone), "");
    assert_false(gone);
    assert_string_equal(create(&api_config_map, "ns", CONFIG("b"), false, NULL),
                        "NamespaceTerminating");
    assert_string_equal(create(&api_namespace, NULL, NAMESPACE("default"), false, NULL), "");
    assert_string_equal(delete_namespace("default", &gone), "Forbidden");
    assert_string_equal(delete_namespace("none", &gone), "NotFound");
    /* labels that are none are refused, not replaced */
    assert_string_equal(create(&api_namespace, NULL,
                               "{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': "
                               "{'name': 'odd', 'labels': []}}",
                               false, NULL),
                        "Invalid");
}

static void test_terms(void **state)
{
    (void)state;
    static const struct {
        const char *name, *kind, *class;
        bool storage, unfinished;
    } cases[] = {
        {"requests.storage", "PersistentVolumeClaim", "", true, false},
        {"persistentvolumeclaims", "PersistentVolumeClaim", "", false, false},
        {"gold.storageclass.storage.k8s.io/requests.storage", "PersistentVolumeClaim", "gold", true,
         false},
        {"a.b.storageclass.storage.k8s.io/persistentvolumeclaims", "PersistentVolumeClaim", "a.b",
         false, false},
        {"pods", "Pod", "", false, true},
        {"count/pods", "Pod", "", false, false},
        {"secrets", "Secret", "", false, false},
        {"count/deployments.apps", "Deployment", "", false, false},
        {"count/jivavolumes.openebs.io", "JivaVolume", "", false, false},
        {"count/deployments", NULL, "", false, false},
        {"count/nodes", NULL, "", false, false},
        {"count/", NULL, "", false, false},
        {"requests.cpu", NULL, "", false, false},
        {".storageclass.storage.k8s.io/requests.storage", NULL, "", false, false},
        {"x.storageclass.storage.k8s.io/limits.storage", NULL, "", false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct quota_term t;
        bool found = quota_term_parse(api_kinds, cases[i].name, &t);
        if (found != (cases[i].kind != NULL))
            fail_msg("%s: %s", cases[i].name, found ? "found" : "not found");
        if (!found)
            continue;
        assert_string_equal(t.kind->kind, cases[i].kind);
        assert_string_equal(t.class, cases[i].class);
        assert_int_equal(t.storage, cases[i].storage);
        assert_int_equal(t.unfinished, cases[i].unfinished);
    }
}

static void test_quota(void **state)
{
    (void)state;
    _cleanup_free_ char *message = NULL;
    assert_string_equal(create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL), "");
    assert_string_equal(create(&api_resource_quota, "ns",
                               QUOTA("q", "'requests.storage': '3Gi', 'persistentvolumeclaims': 9"),
                               false, NULL),
                        "");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("a", "2Gi"), true, NULL),
                        "");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("a", "2Gi"), false, NULL),
                        "");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("b", "2Gi"), true, NULL),
                        "Forbidden");
    assert_string_equal(
        create(&api_persistent_volume_claim, "ns", CLAIM("b", "2Gi"), false, &message),
        "Forbidden");
    assert_string_equal(message, "exceeded quota: q, requested: requests.storage=2Gi, used: "
                                 "requests.storage=2Gi, limited: requests.storage=3Gi");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("b", "1Gi"), false, NULL),
                        "");
    /* a failed write leaves nothing behind: see end() */
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("b", "0"), false, NULL),
                        "Invalid");
}

enum { THREADS = 8, EACH = 12, FIT = 20 };

static void *create_claims(void *context)
{
    size_t *made = context;
    for (int i = 0; i < EACH; i++) {
        _cleanup_free_ char *text =
            mem_printf("{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":"
                       "{\"name\":\"c-%zu-%d\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                       "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
                       (size_t)(uintptr_t)context, i);
        *made += str_eq(create(&api_persistent_volume_claim, "ns", text, false, NULL), "");
    }
    return NULL;
}

#define POD(n, spec)                                                                               \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '" n                                 \
    "'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]" spec "}}"
#define SCOPED(n, hard, scopes)                                                                    \
    "{'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': '" n                       \
    "'}, 'spec': {'hard': {" hard "}, " scopes "}}"
#define SELECTOR(scope, op, more)                                                                  \
    "'scopeSelector': {'matchExpressions': [{'scopeName': '" scope "', 'operator': '" op "'" more  \
    "}]}"

/* Whether a quota of nothing keeps an object out: it does when the object is in its scopes. */
static void test_scopes(void **state)
{
    (void)state;
    static const char plain[] = POD("p", "");
    static const char asks[] = "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, "
                               "'spec': {'initContainers': [{'name': 'i', 'image': 'i', "
                               "'resources': {'requests': {'memory': '1Mi'}}}], "
                               "'containers': [{'name': 'c', 'image': 'i'}]}}";
    static const char zero[] = "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, "
                               "'spec': {'containers': [{'name': 'c', 'image': 'i', "
                               "'resources': {'requests': {'cpu': '0'}}}]}}";
    static const char ends[] = POD("p", ", 'activeDeadlineSeconds': 60");
    static const char gold[] = POD("p", ", 'priorityClassName': 'gold'");
    static const char crosses[] =
        POD("p", ", 'affinity': {'podAntiAffinity': {"
                 "'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 1, "
                 "'podAffinityTerm': {'topologyKey': 'k', 'namespaces': ['other']}}]}}");
    static const struct {
        const char *scopes, *pod;
        bool in;
    } cases[] = {
        {"'scopes': []", plain, true},
        {"'scopes': ['BestEffort']", plain, true},
        {"'scopes': ['BestEffort']", zero, true},
        {"'scopes': ['BestEffort']", asks, false},
        {"'scopes': ['NotBestEffort']", plain, false},
        {"'scopes': ['NotBestEffort']", asks, true},
        {"'scopes': ['Terminating']", plain, false},
        {"'scopes': ['Terminating']", ends, true},
        {"'scopes': ['NotTerminating']", plain, true},
        {"'scopes': ['NotTerminating']", ends, false},
        {"'scopes': ['Terminating', 'BestEffort']", ends, true},
        {"'scopes': ['Terminating', 'NotBestEffort']", ends, false},
        {"'scopes': ['CrossNamespacePodAffinity']", plain, false},
        {"'scopes': ['CrossNamespacePodAffinity']", crosses, true},
        {"'scopes': ['PriorityClass']", plain, false},
        {"'scopes': ['PriorityClass']", gold, true},
        {SELECTOR("PriorityClass", "Exists", ""), gold, true},
        {SELECTOR("PriorityClass", "DoesNotExist", ""), gold, false},
        {SELECTOR("PriorityClass", "DoesNotExist", ""), plain, true},
        {SELECTOR("PriorityClass", "In", ", 'values': ['silver', 'gold']"), gold, true},
        {SELECTOR("PriorityClass", "In", ", 'values': ['silver']"), gold, false},
        {SELECTOR("PriorityClass", "In", ", 'values': ['silver']"), plain, false},
        {SELECTOR("PriorityClass", "NotIn", ", 'values': ['silver']"), gold, true},
        {SELECTOR("PriorityClass", "NotIn", ", 'values': ['gold']"), gold, false},
        {SELECTOR("PriorityClass", "NotIn", ", 'values': ['gold']"), plain, true},
        {SELECTOR("Terminating", "Exists", ""), ends, true},
    };
    create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *name = mem_printf("ns%zu", i);
        _cleanup_free_ char *namespace = mem_printf(NAMESPACE("%s"), name);
        _cleanup_free_ char *quota = mem_printf(SCOPED("q", "'pods': 0", "%s"), cases[i].scopes);
        create(&api_namespace, NULL, namespace, false, NULL);
        assert_string_equal(create(&api_resource_quota, name, quota, false, NULL), "");
        const char *reason = create(&api_pod, name, cases[i].pod, false, NULL);
        if (!str_eq(reason, cases[i].in ? "Forbidden" : ""))
            fail_msg("%s: %s: '%s'", cases[i].scopes, cases[i].pod, reason);
    }
}

static void test_claim_scopes(void **state)
{
    (void)state;
    create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL);
    static const char fast[] = "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': "
                               "{'name': 'f'}, 'spec': {'accessModes': ['ReadWriteOnce'], "
                               "'volumeAttributesClassName': 'fast', "
                               "'resources': {'requests': {'storage': '1Gi'}}}}";
    assert_string_equal(
        create(&api_resource_quota, "ns",
               SCOPED("q", "'persistentvolumeclaims': 0",
                      SELECTOR("VolumeAttributesClass", "In", ", 'values': ['fast']")),
               false, NULL),
        "");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", CLAIM("a", "1Gi"), false, NULL),
                        "");
    assert_string_equal(create(&api_persistent_volume_claim, "ns", fast, false, NULL), "Forbidden");
}

static void test_bad_scopes(void **state)
{
    (void)state;
    static const char *const bad[] = {
        SCOPED("q", "'pods': 1", "'scopes': ['Frob']"),
        SCOPED("q", "'pods': 1", "'scopes': ['BestEffort', 'NotBestEffort']"),
        SCOPED("q", "'pods': 1", "'scopes': ['Terminating', 'NotTerminating']"),
        SCOPED("q", "'requests.cpu': 1", "'scopes': ['BestEffort']"),
        SCOPED("q", "'services': 1", "'scopes': ['NotBestEffort']"),
        SCOPED("q", "'pods': 1", "'scopes': ['VolumeAttributesClass']"),
        SCOPED("q", "'pods': 1", SELECTOR("Frob", "Exists", "")),
        SCOPED("q", "'pods': 1", SELECTOR("PriorityClass", "Like", "")),
        SCOPED("q", "'pods': 1", SELECTOR("PriorityClass", "In", "")),
        SCOPED("q", "'pods': 1", SELECTOR("PriorityClass", "Exists", ", 'values': ['a']")),
        SCOPED("q", "'pods': 1", SELECTOR("BestEffort", "DoesNotExist", "")),
    };
    create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (!str_eq(create(&api_resource_quota, "ns", bad[i], false, NULL), "Invalid"))
            fail_msg("%s was taken", bad[i]);
    }
    assert_string_equal(create(&api_resource_quota, "ns",
                               SCOPED("q", "'pods': 1, 'count/services': 1, 'requests.cpu': 1",
                                      "'scopes': ['NotBestEffort', 'Terminating']"),
                               false, NULL),
                        "");
}

static void test_quota_at_once(void **state)
{
    (void)state;
    create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL);
    create(&api_resource_quota, "ns", QUOTA("q", "'requests.storage': '20Gi'"), false, NULL);
    pthread_t threads[THREADS];
    size_t made[THREADS] = {0}, total = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_claims, &made[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += made[i];
    }
    assert_int_equal(total, FIT); /* no more, and none was refused for nothing */
}

/* While many create in it, a namespace is deleted: what is written after that is refused. */
static void *create_configs(void *context)
{
    for (int i = 0; i < EACH * 4; i++) {
        _cleanup_free_ char *text =
            mem_printf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":"
                       "{\"name\":\"c-%zu-%d\"}}",
                       (size_t)(uintptr_t)context, i);
        create(&api_config_map, "ns", text, false, NULL);
    }
    return NULL;
}

static void test_deleted_while_used(void **state)
{
    (void)state;
    create(&api_namespace, NULL, NAMESPACE("ns"), false, NULL);
    pthread_t threads[THREADS];
    bool gone;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_configs, (void *)(i + 1)), 0);
    assert_string_equal(delete_namespace("ns", &gone), "");
    uint64_t marked = apiserver_store_revision(registry.store);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(apiserver_store_revision(registry.store), marked);
}

static void test_gates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok, fixed;
    } cases[] = {
        {"", true, false},
        {"StatefulSetVolumeExpansion=true", true, false},
        {"StatefulSetVolumeExpansion=false", true, true},
        {"StatefulSetVolumeExpansion=false,StatefulSetVolumeExpansion=true", true, false},
        {"StatefulSetVolumeExpansion", false, false},
        {"StatefulSetVolumeExpansion=", false, false},
        {"StatefulSetVolumeExpansion=yes", false, false},
        {"StatefulSet=true", false, false},
        {"=true", false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct apiserver_features f = {0};
        struct err e = {0};
        if ((apiserver_features_parse(cases[i].text, &f, &e) == 0) != cases[i].ok)
            fail_msg("%s: %s", cases[i].text, e.msg);
        assert_int_equal(f.fixed_claim_templates, cases[i].fixed);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_namespaces), TEST(test_terms),
        TEST(test_quota),      TEST(test_quota_at_once),
        TEST(test_scopes),     TEST(test_claim_scopes),
        TEST(test_bad_scopes), TEST(test_deleted_while_used),
        TEST(test_gates),
    };
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

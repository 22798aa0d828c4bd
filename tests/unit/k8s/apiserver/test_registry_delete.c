/*
 * Deletion of what takes time to end: Pods on a node stay until the node says that they have ended.
 */
#include <stdio.h>

#include "a_registry.h"
#include "k8s/kinds/kinds.h"

static const struct apiserver_request pods = {.kind = &api_pod, .namespace = "ns"};

#define POD(name, meta, spec)                                                                      \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '" name "'" meta "}, "               \
    "'spec': {'containers': [{'name': 'c', 'image': 'i'}]" spec "}}"
#define ON_NODE ", 'nodeName': 'n'"

static const int64_t own = INT64_MIN; /* the deletion does not say */

static struct apiserver_request deletion(int64_t grace)
{
    struct apiserver_request r = pods;
    r.name = "p";
    r.has_grace = grace != own;
    r.grace = r.has_grace ? grace : 0;
    return r;
}

/* "gone", or the seconds and the end. */
static const char *delete_pod(int64_t grace)
{
    static char text[128];
    struct apiserver_request r = deletion(grace);
    struct err e = {0};
    bool gone;
    struct apiserver_object *o = apiserver_delete(&registry, &r, &gone, &e);
    if (!o)
        return e.reason;
    json_auto_t *pod = parse_json(o->bytes);
    const json_t *metadata = json_at(pod, "metadata");
    snprintf(text, sizeof(text), "%s%lld %s", gone ? "gone " : "",
             (long long)json_integer_value(json_object_get(metadata, "deletionGracePeriodSeconds")),
             json_str(metadata, "deletionTimestamp"));
    apiserver_object_unref(o);
    return text;
}

static void make(const char *text)
{
    json_auto_t *pod = must(apiserver_create, pods, text);
    assert_null(json_at(pod, "metadata", "deletionTimestamp"));
}

static void test_first(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        int64_t grace;
        const char *is;
    } table[] = {
        {POD("p", "", ON_NODE), own, "30 2026-01-02T03:04:35Z"},
        {POD("p", "", ON_NODE), 5, "5 2026-01-02T03:04:10Z"},
        {POD("p", "", ON_NODE), 600, "600 2026-01-02T03:14:05Z"},
        {POD("p", "", ON_NODE ", 'terminationGracePeriodSeconds': 7"), own,
         "7 2026-01-02T03:04:12Z"},
        {POD("p", "", ON_NODE), INT64_MAX, "9223372036854775807 2125-12-09T03:04:05Z"},
        /* at once */
        {POD("p", "", ON_NODE), 0, "gone 0 2026-01-02T03:04:05Z"},
        {POD("p", "", ON_NODE ", 'terminationGracePeriodSeconds': 0"), own,
         "gone 0 2026-01-02T03:04:05Z"},
        {POD("p", "", ""), own, "gone 0 2026-01-02T03:04:05Z"},
        {POD("p", "", ""), 60, "gone 0 2026-01-02T03:04:05Z"},
        {POD("p", "", ", 'nodeName': ''"), 60, "gone 0 2026-01-02T03:04:05Z"},
        /* held by a finalizer, too or alone */
        {POD("p", ", 'finalizers': ['a/b']", ON_NODE), own, "30 2026-01-02T03:04:35Z"},
        {POD("p", ", 'finalizers': ['a/b']", ON_NODE), 0, "0 2026-01-02T03:04:05Z"},
        {POD("p", ", 'finalizers': ['a/b']", ""), own, "0 2026-01-02T03:04:05Z"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        registry_begin(NULL);
        make(table[i].pod);
        assert_string_equal(delete_pod(table[i].grace), table[i].is);
        registry_end(NULL);
    }
}

/* Later ones shorten, and never lengthen, what the first said. */
static void test_again(void **state)
{
    (void)state;
    registry_begin(NULL);
    make(POD("p", "", ON_NODE));
    assert_string_equal(delete_pod(own), "30 2026-01-02T03:04:35Z");
    clock_manual_advance(&time_now, 5 * CLOCK_SECOND);
    assert_string_equal(delete_pod(own), "30 2026-01-02T03:04:35Z");
    assert_string_equal(delete_pod(60), "30 2026-01-02T03:04:35Z");
    assert_string_equal(delete_pod(30), "30 2026-01-02T03:04:35Z");
    assert_string_equal(delete_pod(10), "10 2026-01-02T03:04:15Z");
    assert_string_equal(delete_pod(20), "10 2026-01-02T03:04:15Z");
    /* time alone deletes nothing: the node may be away, its processes alive */
    clock_manual_advance(&time_now, 3600 * CLOCK_SECOND);
    assert_string_equal(delete_pod(own), "10 2026-01-02T03:04:15Z");
    assert_string_equal(delete_pod(0), "gone 0 2026-01-02T03:04:05Z");
    assert_string_equal(delete_pod(0), "NotFound");
    registry_end(NULL);
}

static void update_phase(const char *phase, const char *expected)
{
    struct apiserver_request r = pods;
    r.name = "p";
    _cleanup_free_ char *text =
        mem_printf("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, "
                   "'status': {'phase': '%s'}}",
                   phase);
    json_auto_t *pod = must(apiserver_update_status, r, text);
    assert_member(pod, "metadata", "deletionGracePeriodSeconds", expected);
}

/* What the node writes meanwhile does not end it. */
static void test_updates(void **state)
{
    (void)state;
    registry_begin(NULL);
    make(POD("p", "", ON_NODE));
    delete_pod(own);
    update_phase("Running", "30");
    update_phase("Succeeded", "30");
    assert_string_equal(delete_pod(own), "30 2026-01-02T03:04:35Z");
    assert_string_equal(delete_pod(0), "gone 0 2026-01-02T03:04:05Z");
    /* one that has ended before */
    make(POD("p", "", ON_NODE));
    update_phase("Failed", "");
    assert_string_equal(delete_pod(own), "gone 0 2026-01-02T03:04:05Z");
    registry_end(NULL);
}

/* Both must be over: the time, as the node says, and the finalizers. */
static void test_finalizers(void **state)
{
    (void)state;
    static const char free_of[] = POD("p", ", 'finalizers': []", ON_NODE);
    struct apiserver_request r = deletion(own);
    for (int node_first = 0; node_first < 2; node_first++) {
        registry_begin(NULL);
        make(POD("p", ", 'finalizers': ['a/b']", ON_NODE));
        delete_pod(own);
        if (node_first)
            assert_string_equal(delete_pod(0), "0 2026-01-02T03:04:05Z");
        json_decref(must(apiserver_update, r, free_of));
        if (!node_first)
            assert_string_equal(delete_pod(0), "gone 0 2026-01-02T03:04:05Z");
        assert_string_equal(delete_pod(own), "NotFound");
        registry_end(NULL);
    }
}

/* All other kinds go at once, whatever is asked for. */
static void test_others(void **state)
{
    (void)state;
    registry_begin(NULL);
    struct apiserver_request r = {.kind = &api_config_map, .namespace = "ns"};
    json_decref(must(apiserver_create, r,
                     "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'c'}}"));
    r.name = "c";
    r.has_grace = true;
    r.grace = 60;
    bool gone = false;
    struct apiserver_object *o = apiserver_delete(&registry, &r, &gone, NULL);
    assert_true(o && gone);
    json_auto_t *last = parse_json(o->bytes);
    assert_null(json_at(last, "metadata", "deletionTimestamp"));
    apiserver_object_unref(o);
    registry_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),   cmocka_unit_test(test_again),
        cmocka_unit_test(test_updates), cmocka_unit_test(test_finalizers),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

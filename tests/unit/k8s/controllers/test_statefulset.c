#include "jsontest.h"
#include "k8s/controllers/statefulset.h"

/* One letter for each pod: . none, n new, o old, x new and not ready, y old and not ready, e ending,
 * f failed. */
static struct statefulset_pod_state state_of(char c)
{
    return (struct statefulset_pod_state){
        .there = c != '.',
        .ending = c == 'e',
        .failed = c == 'f',
        .available = c == 'n' || c == 'o',
        .updated = c == 'n' || c == 'x',
    };
}

static void test_next(void **state)
{
    (void)state;
    static const struct {
        const char *pods;
        size_t wanted, partition;
        bool parallel, on_delete;
        const char *expected; /* "+1" to make, "-2" to end, "" to wait */
    } cases[] = {
        {"...", 3, 0, false, false, "+0"},  {"x..", 3, 0, false, false, ""},
        {"n..", 3, 0, false, false, "+1"},  {"x..", 3, 0, true, false, "+1"},
        {"nnn", 3, 0, false, false, ""},    {"n.n", 3, 0, false, false, "+1"},
        {"nfn", 3, 0, false, false, "-1"},  {"nen", 3, 0, false, false, ""},
        {"nnnn", 2, 0, false, false, "-3"}, {"nnne", 2, 0, false, false, ""},
        {"nnne", 2, 0, true, false, "-2"},  {"nnx.", 2, 0, false, false, "-2"},
        {"ooo", 3, 0, false, false, "-2"},  {"oo.", 3, 0, false, false, "+2"},
        {"oox", 3, 0, false, false, ""},    {"oon", 3, 0, false, false, "-1"},
        {"onn", 3, 0, false, false, "-0"},  {"ooo", 3, 2, false, false, "-2"},
        {"oon", 3, 2, false, false, ""},    {"ooo", 3, 3, false, false, ""},
        {"ooo", 3, 0, false, true, ""},     {"oyo", 3, 0, false, false, "-1"},
        {"oyo", 3, 2, false, false, ""},    {"", 0, 0, false, false, ""},
        {"n", 0, 0, false, false, "-0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct statefulset_pod_state pods[8] = {{0}};
        size_t n = strlen(cases[i].pods);
        for (size_t j = 0; j < n; j++)
            pods[j] = state_of(cases[i].pods[j]);
        struct statefulset_step step = statefulset_next(
            pods, n, cases[i].wanted, cases[i].partition, cases[i].parallel, !cases[i].on_delete);
        char text[32] = "";
        if (step.action != STATEFULSET_NOTHING)
            snprintf(text, sizeof(text), "%c%zu", step.action == STATEFULSET_CREATE ? '+' : '-',
                     step.pod);
        if (!str_eq(text, cases[i].expected))
            fail_msg("%s of %zu: %s", cases[i].pods, cases[i].wanted, text);
    }
}

static const char set_text[] =
    "{'apiVersion': 'apps/v1', 'kind': 'StatefulSet', 'metadata': {'name': 'db', 'namespace': 'a', "
    "'uid': 'u'}, 'spec': {'serviceName': 'dbs', 'selector': {'matchLabels': {'app': 'db'}}, "
    "'template': {'metadata': {'labels': {'app': 'db'}}, 'spec': {'containers': [{'name': 'c'}], "
    "'volumes': [{'name': 'data', 'emptyDir': {}}, {'name': 'tmp', 'emptyDir': {}}]}}, "
    "'volumeClaimTemplates': [{'metadata': {'name': 'data'}, 'spec': {'resources': {'requests': "
    "{'storage': '1Gi'}}}}]}}";

static void test_objects(void **state)
{
    (void)state;
    json_auto_t *set = parse_quoted(set_text);
    json_auto_t *pod = statefulset_pod(set, json_at(set, "spec", "template"), 3, "db-x");
    json_auto_t *labels = parse_quoted(
        "{'app': 'db', 'controller-revision-hash': 'db-x', 'statefulset.kubernetes.io/pod-name': "
        "'db-3', 'apps.kubernetes.io/pod-index': '3'}");
    json_auto_t *volumes = parse_quoted("[{'name': 'tmp', 'emptyDir': {}}, {'name': 'data', "
                                        "'persistentVolumeClaim': {'claimName': 'data-db-3'}}]");
    assert_json(json_at(pod, "metadata", "labels"), labels, "labels");
    assert_json(json_at(pod, "spec", "volumes"), volumes, "volumes");
    assert_string_equal(json_string_value(json_at(pod, "spec", "hostname")), "db-3");
    assert_string_equal(json_string_value(json_at(pod, "spec", "subdomain")), "dbs");
    json_auto_t *claims = statefulset_claims(set, 3);
    const json_t *claim = json_array_get(claims, 0);
    assert_string_equal(json_string_value(json_at(claim, "metadata", "name")), "data-db-3");
    assert_string_equal(json_string_value(json_at(claim, "metadata", "labels", "app")), "db");
    json_auto_t *revision = statefulset_revision(set, 2);
    assert_string_equal(json_string_value(json_at(statefulset_template(revision), "$patch")),
                        "replace");
}

static void test_ordinals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t ordinal;
    } cases[] = {{"db-0", 0},   {"db-12", 12},          {"db", -1},   {"db-", -1}, {"db-x", -1},
                 {"db-01", -1}, {"db-99999999999", -1}, {"dbx-1", -1}};
    json_auto_t *set = parse_quoted(set_text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *pod = json_pack("{s:{s:s}}", "metadata", "name", cases[i].name);
        assert_int_equal(statefulset_ordinal(set, pod), cases[i].ordinal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_ordinals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

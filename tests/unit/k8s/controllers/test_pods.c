#include "base/clock.h"
#include "jsontest.h"
#include "k8s/controllers/daemonset.h"
#include "k8s/controllers/pods.h"
#include "kube/names.h"

#define READY(time)                                                                                \
    "'status': {'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'True', "           \
    "'lastTransitionTime': '" time "'}]}"
#define AT    "2026-01-01T00:00:00Z"
#define LATER "2026-01-01T00:00:09Z"

static const int64_t at = INT64_C(1767225600) * CLOCK_SECOND; /* AT */

/* Ages on a clock that stands; to be freed. */
static struct kube_ages *ages_at(struct clock_manual *clock, int64_t real_ns)
{
    clock_manual_init(clock, real_ns);
    return kube_ages_new(&clock->clock);
}

static void test_available(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        int64_t seconds, later;
        bool available;
        int64_t wait;
    } cases[] = {
        {"{}", 0, 0, false, 0},
        {"{" READY(AT) "}", 0, 0, true, 0},
        {"{" READY(AT) "}", 10, 3, false, 7},
        {"{" READY(AT) "}", 10, 10, true, 0},
        {"{" READY("never") "}", 10, 10, false, 0},
        {"{'status': {'conditions': [{'type': 'Ready', 'status': 'False'}]}}", 0, 0, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *pod = parse_quoted(cases[i].pod);
        struct clock_manual clock;
        struct kube_ages *ages = ages_at(&clock, at + cases[i].later * CLOCK_SECOND);
        int64_t wait;
        assert_int_equal(pods_is_available(pod, cases[i].seconds, ages, &wait), cases[i].available);
        assert_int_equal(wait, cases[i].wait * CLOCK_SECOND);
        kube_ages_free(ages);
    }
}

/* A clock that is set makes nothing available early, keeps nothing back, and evicts nobody early or late. */
static void test_clock_is_set(void **state)
{
    (void)state;
    json_auto_t *pod = parse_quoted("{'metadata': {'uid': 'u'}, " READY(AT) "}");
    json_auto_t *node = parse_quoted(
        "{'metadata': {'name': 'n'}, 'spec': {'taints': [{'key': 'node.kubernetes.io/unreachable', "
        "'effect': 'NoExecute', 'timeAdded': '" AT "'}]}}");
    for (int64_t hours = -24; hours <= 24; hours += 12) {
        struct clock_manual clock;
        struct kube_ages *ages = ages_at(&clock, at);
        int64_t wait;
        assert_false(pods_is_available(pod, 10, ages, &wait));
        assert_int_equal(pods_stay_ns(pod, node, ages), 300 * CLOCK_SECOND);
        clock_manual_advance(&clock, 4 * CLOCK_SECOND);
        clock_manual_set_real(&clock, clock_real_ns(&clock.clock) + hours * 3600 * CLOCK_SECOND);
        assert_false(pods_is_available(pod, 10, ages, &wait));
        assert_int_equal(wait, 6 * CLOCK_SECOND);
        assert_int_equal(pods_stay_ns(pod, node, ages), 296 * CLOCK_SECOND);
        clock_manual_advance(&clock, 6 * CLOCK_SECOND);
        assert_true(pods_is_available(pod, 10, ages, &wait));
        clock_manual_advance(&clock, 290 * CLOCK_SECOND);
        assert_int_equal(pods_stay_ns(pod, node, ages), 0);
        kube_ages_free(ages);
    }
}

static void test_order(void **state)
{
    (void)state;
    static const char *const in_order[] = {
        "{'metadata': {'name': 'nowhere'}}",
        "{'metadata': {'name': 'pending'}, 'spec': {'nodeName': 'a'}, 'status': {'phase': "
        "'Pending'}}",
        "{'metadata': {'name': 'unready'}, 'spec': {'nodeName': 'b'}, 'status': {'phase': "
        "'Running'}}",
        "{'metadata': {'name': 'cheap', 'annotations': "
        "{'controller.kubernetes.io/pod-deletion-cost': '-1'}}, 'spec': {'nodeName': 'f'}, " READY(
            AT) "}",
        "{'metadata': {'name': 'crowded'}, 'spec': {'nodeName': 'c'}, " READY(LATER) "}",
        "{'metadata': {'name': 'crowded2'}, 'spec': {'nodeName': 'c'}, " READY(AT) "}",
        "{'metadata': {'name': 'young'}, 'spec': {'nodeName': 'd'}, " READY(LATER) "}",
        "{'metadata': {'name': 'old'}, 'spec': {'nodeName': 'e'}, " READY(AT) "}",
    };
    json_auto_t *pods = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(in_order); i++)
        json_array_append_new(pods, parse_quoted(in_order[i]));
    json_auto_t *shuffled = json_array();
    for (size_t i = json_array_size(pods); i > 0; i--)
        json_array_append(shuffled, json_array_get(pods, i - 1));
    pods_sort_for_deletion(shuffled);
    for (size_t i = 0; i < json_array_size(pods); i++)
        assert_string_equal(kube_name(json_array_get(shuffled, i)),
                            kube_name(json_array_get(pods, i)));
}

static void test_hash(void **state)
{
    (void)state;
    char a[KUBE_HASH], b[KUBE_HASH], c[KUBE_HASH], d[KUBE_HASH];
    json_auto_t *x = parse_quoted("{'a': 1, 'b': {'c': 2, 'd': 3}}");
    json_auto_t *y = parse_quoted("{'b': {'d': 3, 'c': 2}, 'a': 1}");
    json_auto_t *z = parse_quoted("{'a': 1, 'b': {'c': 2, 'd': 4}}");
    kube_hash(x, 0, a);
    kube_hash(y, 0, b);
    kube_hash(z, 0, c);
    kube_hash(x, 1, d);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    assert_int_equal(strlen(a), KUBE_HASH - 1);
}

static void test_stay(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *taint;
        int64_t later, expected; /* seconds; < 0: for ever */
    } cases[] = {
        {"{}", "{'key': 'k', 'effect': 'NoSchedule'}", 0, -1},
        {"{}", "{'key': 'k', 'effect': 'NoExecute', 'timeAdded': '" AT "'}", 0, 0},
        {"{}",
         "{'key': 'node.kubernetes.io/unreachable', 'effect': 'NoExecute', 'timeAdded': '" AT "'}",
         100, 200},
        {"{}",
         "{'key': 'node.kubernetes.io/unreachable', 'effect': 'NoExecute', 'timeAdded': '" AT "'}",
         301, 0},
        {"{'spec': {'tolerations': [{'key': 'k', 'operator': 'Exists', 'tolerationSeconds': 9}]}}",
         "{'key': 'k', 'effect': 'NoExecute', 'timeAdded': '" AT "'}", 4, 5},
        {"{'spec': {'tolerations': [{'operator': 'Exists'}]}}",
         "{'key': 'k', 'effect': 'NoExecute', 'timeAdded': '" AT "'}", 4, -1},
        {"{'spec': {'tolerations': [{'operator': 'Exists', 'tolerationSeconds': 0}]}}",
         "{'key': 'k', 'effect': 'NoExecute'}", 4, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *pod = parse_quoted(cases[i].pod), *taint = parse_quoted(cases[i].taint);
        json_auto_t *node = json_pack("{s:{s:[O]}}", "spec", "taints", taint);
        struct clock_manual clock;
        struct kube_ages *ages = ages_at(&clock, at + cases[i].later * CLOCK_SECOND);
        int64_t stay = pods_stay_ns(pod, node, ages);
        kube_ages_free(ages);
        if (stay != (cases[i].expected < 0 ? INT64_MAX : cases[i].expected * CLOCK_SECOND))
            fail_msg("case %zu: %ld s", i, (long)(stay / CLOCK_SECOND));
    }
    json_auto_t *pod = json_object();
    assert_int_equal(pods_stay_ns(pod, NULL, NULL), INT64_MAX);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool up;
        int64_t expected;
    } cases[] = {
        {"3", true, 3},        {"'25%'", true, 3}, {"'25%'", false, 2}, {"'4'", true, 4},
        {"'0%'", true, 0},     {"'x'", true, 77},  {"''", true, 77},    {"'-5%'", true, 77},
        {"'100%'", false, 10}, {"null", true, 77}, {"'5x'", true, 77},  {"true", true, 77},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *text = mem_printf("[%s]", cases[i].value);
        json_auto_t *list = parse_quoted(text);
        assert_int_equal(pods_int_or_percent(json_array_get(list, 0), 10, cases[i].up, 77),
                         cases[i].expected);
    }
}

static void test_daemons(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *node;
        bool wants, keeps;
    } cases[] = {
        {"{}", "{}", true, true},
        {"{'nodeSelector': {'a': 'b'}}", "{}", false, false},
        {"{'nodeSelector': {'a': 'b'}}", "{'metadata': {'labels': {'a': 'b'}}}", true, true},
        {"{}", "{'spec': {'taints': [{'key': 'k', 'effect': 'NoSchedule'}]}}", false, true},
        {"{}", "{'spec': {'taints': [{'key': 'k', 'effect': 'NoExecute'}]}}", false, false},
        {"{}", "{'spec': {'taints': [{'key': 'k', 'effect': 'PreferNoSchedule'}]}}", true, true},
        {"{'tolerations': [{'operator': 'Exists'}]}",
         "{'spec': {'taints': [{'key': 'k', 'effect': 'NoExecute'}]}}", true, true},
        {"{}",
         "{'spec': {'taints': [{'key': 'node.kubernetes.io/unreachable', 'effect': 'NoSchedule'}, "
         "{'key': 'node.kubernetes.io/unreachable', 'effect': 'NoExecute'}]}}",
         true, true},
        {"{}",
         "{'spec': {'taints': [{'key': 'node.kubernetes.io/unschedulable', 'effect': "
         "'NoSchedule'}]}}",
         true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *spec = parse_quoted(cases[i].spec), *node = parse_quoted(cases[i].node);
        json_auto_t *set = json_pack("{s:{s:s},s:{s:{s:O}}}", "metadata", "name", "d", "spec",
                                     "template", "spec", spec);
        bool keeps, wants = daemonset_wants(set, node, &keeps);
        if (wants != cases[i].wants || keeps != cases[i].keeps)
            fail_msg("case %zu: wants %d, keeps %d", i, wants, keeps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_available), cmocka_unit_test(test_clock_is_set),
        cmocka_unit_test(test_order),     cmocka_unit_test(test_hash),
        cmocka_unit_test(test_stay),      cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_daemons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

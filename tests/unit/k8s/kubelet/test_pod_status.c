/*
 * What is said of pods: states of containers, conditions, phases, classes.
 */
#include <stdio.h>

#include "jsontest.h"
#include "k8s/kubelet/pod.h"
#include "unit.h"

static struct clock_manual clock_now;

static const int64_t t0 = 1767225600 * CLOCK_SECOND; /* 2026-01-01T00:00:00Z */

/* The status of a pod with these facts. */
static json_t *status_of(const char *spec, const struct pod_facts *facts, enum pod_phase phase,
                         bool initialized, int64_t backoff)
{
    _cleanup_free_ char *text = mem_printf(
        "{'metadata':{'name':'p','namespace':'n','uid':'u'},'spec':{%s},'status':{'qosClass':'x',"
        "'conditions':[{'type':'mine','status':'True'}]}}",
        spec);
    json_auto_t *pod = parse_quoted(text);
    struct pod_spec parsed;
    struct err e = {0};
    assert_int_equal(pod_spec_parse(pod, &parsed, &e), 0);
    struct pod_plan plan = {.phase = phase, .initialized = initialized};
    for (size_t i = 0; i < parsed.containers.len; i++)
        vec_push(&plan.backoffs, backoff);
    struct pod_place place = {"node-1", "127.0.0.1", "127.10.3.2", "h", "1"};
    struct pod_report report = {&parsed, facts, &plan, &place, t0, NULL, &clock_now.clock};
    json_t *status = pod_status_make(&report);
    pod_plan_done(&plan);
    pod_spec_done(&parsed);
    return status;
}

static const char *condition(const json_t *status, const char *type, const char *key)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(status, "conditions"), i, it) {
        if (str_eq(json_str(it, "type"), type))
            return json_str(it, key);
    }
    return NULL;
}

#define ONE "'containers':[{'name':'a','image':'orlop/orlop-target:1'}]"

static const json_t *first(const json_t *status)
{
    return json_array_get(json_object_get(status, "containerStatuses"), 0);
}

static void expect_state(const json_t *container, const char *member, const char *text)
{
    json_auto_t *expected = parse_quoted(text);
    assert_json(json_object_get(container, member), expected, member);
}

static void test_running(void **state)
{
    (void)state;
    struct pod_facts f = {.running = POD_RUNNING, .number = 0, .started = t0};
    json_auto_t *status = status_of(ONE, &f, POD_PHASE_RUNNING, true, 0);
    expect_state(first(status), "state", "{'running':{'startedAt':'2026-01-01T00:00:00Z'}}");
    expect_state(first(status), "lastState", "{}");
    assert_string_equal(json_str(first(status), "containerID"), "orlop://u/a/0");
    assert_string_equal(json_str(first(status), "imageID"), "orlop://orlop-target");
    assert_true(json_is_true(json_object_get(first(status), "ready")));
    assert_string_equal(condition(status, "Ready", "status"), "True");
    assert_null(condition(status, "Ready", "reason"));
    assert_string_equal(condition(status, "PodScheduled", "status"), "True");
    assert_string_equal(condition(status, "mine", "status"), "True");
    assert_string_equal(json_str(status, "phase"), "Running");
    assert_string_equal(json_str(status, "podIP"), "127.10.3.2");
    assert_string_equal(json_str(status, "hostIP"), "127.0.0.1");
    assert_string_equal(json_str(status, "qosClass"), "BestEffort");
    assert_string_equal(json_str(status, "startTime"), "2026-01-01T00:00:00Z");
}

static void test_crash_loop(void **state)
{
    (void)state;
    struct pod_facts f = {.running = POD_ENDED,
                          .number = 3,
                          .has_last = true,
                          .end = {.exit_code = 139,
                                  .signal = 11,
                                  .started = t0,
                                  .finished = t0,
                                  .reason = "Error",
                                  .message = "bad \xff byte"}};
    json_auto_t *status = status_of(ONE, &f, POD_PHASE_RUNNING, true, 80 * CLOCK_SECOND);
    expect_state(first(status), "state",
                 "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 1m20s restarting "
                 "failed container=a pod=p_n(u)'}}");
    expect_state(
        first(status), "lastState",
        "{'terminated':{'exitCode':139,'reason':'Error','startedAt':'2026-01-01T00:00:00Z',"
        "'finishedAt':'2026-01-01T00:00:00Z','containerID':'orlop://u/a/3','signal':11,"
        "'message':'bad ? byte'}}");
    assert_int_equal(json_integer_value(json_object_get(first(status), "restartCount")), 3);
    assert_string_equal(condition(status, "Ready", "message"),
                        "containers with unready status: [a]");
    assert_string_equal(condition(status, "Ready", "reason"), "ContainersNotReady");
}

static void test_waiting(void **state)
{
    (void)state;
    struct pod_facts f[2] = {{.number = -1}, {.number = -1, .blocked = "ErrImageNeverPull"}};
    snprintf(f[1].why, sizeof(f[1].why), "why");
    json_auto_t *plain = status_of(ONE, &f[0], POD_PENDING, true, 0);
    expect_state(first(plain), "state", "{'waiting':{'reason':'ContainerCreating'}}");
    assert_null(json_object_get(first(plain), "containerID"));
    assert_null(json_object_get(plain, "initContainerStatuses"));
    json_auto_t *blocked = status_of(ONE, &f[1], POD_PENDING, true, 0);
    expect_state(first(blocked), "state",
                 "{'waiting':{'reason':'ErrImageNeverPull','message':'why'}}");
    struct pod_facts init[2] = {{.running = POD_RUNNING}, {.number = -1}};
    json_auto_t *initializing =
        status_of("'initContainers':[{'name':'i'}]," ONE, init, POD_PENDING, false, 0);
    expect_state(first(initializing), "state", "{'waiting':{'reason':'PodInitializing'}}");
    assert_string_equal(condition(initializing, "Initialized", "status"), "False");
    assert_string_equal(condition(initializing, "Initialized", "message"),
                        "containers with incomplete status: [i]");
    assert_int_equal(json_array_size(json_object_get(initializing, "initContainerStatuses")), 1);
}

static void test_ended(void **state)
{
    (void)state;
    struct pod_facts f = {.running = POD_ENDED,
                          .end = {.started = t0, .finished = t0, .reason = "Completed"}};
    json_auto_t *good = status_of(ONE, &f, POD_SUCCEEDED, true, 0);
    assert_string_equal(condition(good, "Ready", "reason"), "PodCompleted");
    assert_string_equal(condition(good, "Initialized", "reason"), "PodCompleted");
    assert_string_equal(json_str(good, "phase"), "Succeeded");
    f.end.exit_code = 1;
    json_auto_t *bad = status_of(ONE, &f, POD_FAILED, true, 0);
    assert_string_equal(condition(bad, "Ready", "reason"), "PodFailed");
}

static void test_gates(void **state)
{
    (void)state;
    struct pod_facts f = {.running = POD_RUNNING};
    json_auto_t *closed = status_of(ONE ",'readinessGates':[{'conditionType':'yours'}]", &f,
                                    POD_PHASE_RUNNING, true, 0);
    assert_string_equal(condition(closed, "ContainersReady", "status"), "True");
    assert_string_equal(condition(closed, "Ready", "reason"), "ReadinessGatesNotReady");
    json_auto_t *open = status_of(ONE ",'readinessGates':[{'conditionType':'mine'}]", &f,
                                  POD_PHASE_RUNNING, true, 0);
    assert_string_equal(condition(open, "Ready", "status"), "True");
}

static void test_quality(void **state)
{
    (void)state;
    static const struct {
        const char *resources, *class;
    } cases[] = {
        {"{}", "BestEffort"},
        {"{'limits':{'cpu':'1','memory':'1Gi'}}", "Guaranteed"},
        {"{'limits':{'cpu':'1000m','memory':'1Gi'},'requests':{'cpu':'1','memory':'1024Mi'}}",
         "Guaranteed"},
        {"{'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'500m'}}", "Burstable"},
        {"{'limits':{'memory':'1Gi'}}", "Burstable"},
        {"{'requests':{'cpu':'1'}}", "Burstable"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text =
            mem_printf("{'spec':{'containers':[{'resources':%s}]}}", cases[i].resources);
        json_auto_t *pod = parse_quoted(text);
        assert_string_equal(pod_qos_class(pod), cases[i].class);
    }
}

static int before(void **state)
{
    (void)state;
    clock_manual_init(&clock_now, t0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_running, before),
        cmocka_unit_test_setup(test_crash_loop, before),
        cmocka_unit_test_setup(test_waiting, before),
        cmocka_unit_test_setup(test_ended, before),
        cmocka_unit_test_setup(test_gates, before),
        cmocka_unit_test(test_quality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Cells of tables that no path leads to.
 */
#include "api/kind.h"
#include "base/clock.h"
#include "jsontest.h"

/* What the column of a kind shows of an object, as JSON. */
static void check(const char *api_version, const char *kind_name, const char *quoted,
                  const char *column, const char *expected)
{
    const struct api_kind *kind = api_kind_find(api_version, kind_name, NULL);
    assert_non_null(kind);
    const struct api_column *c = kind->columns;
    while (c->name && !str_eq(c->name, column))
        c++;
    assert_non_null(c->name);
    assert_non_null(c->cell);
    json_auto_t *object = parse_quoted(quoted);
    /* 2026-01-01T00:01:00Z */
    json_auto_t *cell = c->cell(object, (int64_t)1767225660 * CLOCK_SECOND);
    _cleanup_(str_done) struct str text = {0};
    json_format(cell, &text);
    if (!str_eq(str_get(&text), expected))
        fail_msg("%s of %s: %s instead of %s", column, quoted, str_get(&text), expected);
}

#define POD(spec, status) "{'spec': {" spec "}, 'status': {" status "}}"
#define TWO               "'containers': [{'name': 'a'}, {'name': 'b'}]"
#define INIT              "'initContainers': [{'name': 'i'}, {'name': 'j'}], " TWO
#define RUNS              "'ready': true, 'state': {'running': {}}"
#define ENDED(more)       "'state': {'terminated': {" more "}}"

static void test_pods(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *ready, *status, *restarts;
    } cases[] = {
        {"{}", "0/0", "", "0"},
        {POD(TWO, "'phase': 'Pending'"), "0/2", "Pending", "0"},
        {POD(TWO, "'phase': 'Failed', 'reason': 'Evicted'"), "0/2", "Evicted", "0"},
        {POD(TWO ", 'schedulingGates': [{'name': 'g'}]", "'phase': 'Pending'"), "0/2",
         "SchedulingGated", "0"},
        {POD(TWO, "'phase': 'Running', 'containerStatuses': [{" RUNS "}, {" RUNS
                  ", 'restartCount': 2}]"),
         "2/2", "Running", "2"},
        {POD(TWO, "'phase': 'Running', 'containerStatuses': [{" RUNS "}, {'restartCount': 1, "
                  "'lastState': {'terminated': {'finishedAt': '2026-01-01T00:00:30Z'}}, 'state': "
                  "{'waiting': {'reason': 'CrashLoopBackOff'}}}]"),
         "1/2", "CrashLoopBackOff", "1 (30s ago)"},
        {POD(TWO, "'phase': 'Failed', 'containerStatuses': [{" ENDED("'exitCode': 3") "}]"), "0/2",
         "ExitCode:3", "0"},
        {POD(TWO, "'phase': 'Failed', 'containerStatuses': [{" ENDED("'signal': 9") "}]"), "0/2",
         "Signal:9", "0"},
        {POD(TWO, "'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'False'}], "
                  "'containerStatuses': [{" ENDED("'reason': 'Completed'") "}, {" RUNS "}]"),
         "1/2", "NotReady", "0"},
        {POD(INIT, "'initContainerStatuses': [{" ENDED("'exitCode': 0") "}, {'state': {}}]"), "0/2",
         "Init:1/2", "0"},
        {POD(INIT, "'initContainerStatuses': [{" ENDED("'exitCode': 1, 'reason': 'Error'") "}]"),
         "0/2", "Init:Error", "0"},
        {POD(INIT, "'initContainerStatuses': [{'state': {'waiting': {'reason': 'ErrImagePull'}}}]"),
         "0/2", "Init:ErrImagePull", "0"},
        {POD("'initContainers': [{'name': 's', 'restartPolicy': 'Always'}], " TWO,
             "'phase': 'Running', 'initContainerStatuses': [{'name': 's', 'started': true, " RUNS
             "}], 'containerStatuses': [{" RUNS "}, {" RUNS "}]"),
         "3/3", "Running", "0"},
        {"{'metadata': {'deletionTimestamp': 'x'}, 'status': {'phase': 'Running'}}", "0/0",
         "Terminating", "0"},
        {"{'metadata': {'deletionTimestamp': 'x'}, 'status': {'reason': 'NodeLost'}}", "0/0",
         "Unknown", "0"},
        /* Whatever is stored. */
        {"{'spec': 1, 'status': {'containerStatuses': [7], 'initContainerStatuses': {}}}", "0/0",
         "", "0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *ready = mem_printf("\"%s\"", cases[i].ready);
        _cleanup_free_ char *status = mem_printf("\"%s\"", cases[i].status);
        _cleanup_free_ char *restarts = mem_printf("\"%s\"", cases[i].restarts);
        check("v1", "Pod", cases[i].pod, "Ready", ready);
        check("v1", "Pod", cases[i].pod, "Status", status);
        check("v1", "Pod", cases[i].pod, "Restarts", restarts);
    }
    check("v1", "Pod", "{}", "Node", "\"<none>\"");
    check(
        "v1", "Pod",
        "{'spec': {'readinessGates': [{'conditionType': 'a'}, {'conditionType': 'b'}]}, 'status': "
        "{'conditions': [{'type': 'b', 'status': 'True'}, {'type': 'a', 'status': 'False'}]}}",
        "Readiness Gates", "\"1/2\"");
}

static void test_others(void **state)
{
    (void)state;
    static const struct {
        const char *version, *kind, *object, *column, *expected;
    } cases[] = {
        {"v1", "Service",
         "{'spec': {'ports': [{'port': 80, 'protocol': 'TCP', 'nodePort': 30000}, "
         "{'port': 53, 'protocol': 'UDP'}]}}",
         "Port(s)", "\"80:30000/TCP,53/UDP\""},
        {"v1", "Service", "{}", "Port(s)", "\"<none>\""},
        {"v1", "Service", "{'spec': {'type': 'LoadBalancer'}}", "External-IP", "\"<pending>\""},
        {"v1", "Service",
         "{'spec': {'type': 'LoadBalancer', 'externalIPs': ['192.0.2.9']}, 'status'"
         ": {'loadBalancer': {'ingress': [{'ip': '192.0.2.1'}, {'hostname': 'h'}]}}}",
         "External-IP", "\"192.0.2.1,h,192.0.2.9\""},
        {"v1", "Service", "{'spec': {'type': 'ExternalName', 'externalName': 'e.test'}}",
         "External-IP", "\"e.test\""},
        {"v1", "Service", "{'spec': {'selector': {'b': '2', 'a': '1'}}}", "Selector",
         "\"a=1,b=2\""},
        {"v1", "Endpoints",
         "{'subsets': [{'ports': [{'port': 1}, {'port': 2}], 'addresses': [{'ip': "
         "'192.0.2.1'}, {'ip': '::1'}]}]}",
         "Endpoints", "\"192.0.2.1:1,[::1]:1,192.0.2.1:2 + 1 more...\""},
        {"v1", "Node", "{}", "Status", "\"Unknown\""},
        {"v1", "Node",
         "{'spec': {'unschedulable': true}, 'status': {'conditions': [{'type': 'Ready',"
         "'status': 'False'}]}}",
         "Status", "\"NotReady,SchedulingDisabled\""},
        {"v1", "Node",
         "{'metadata': {'labels': {'node-role.kubernetes.io/w': '', "
         "'kubernetes.io/role': 'a'}}}",
         "Roles", "\"a,w\""},
        {"v1", "Event", "{'firstTimestamp': '2026-01-01T00:00:00Z'}", "Last Seen", "\"60s\""},
        {"v1", "Event", "{'series': {'count': 7, 'lastObservedTime': '2026-01-01T00:00:59.0Z'}}",
         "Last Seen", "\"1s\""},
        {"v1", "Event", "{'series': {'count': 7}}", "Count", "7"},
        {"v1", "Event", "{}", "Count", "1"},
        {"v1", "Event", "{}", "Last Seen", "\"<unknown>\""},
        {"v1", "Event", "{'involvedObject': {'kind': 'ConfigMap', 'name': 'x'}}", "Object",
         "\"configmap/x\""},
        {"v1", "Event", "{'source': {'component': 'c', 'host': 'h'}}", "Source", "\"c, h\""},
        {"v1", "Event", "{'message': ' a b\\n'}", "Message", "\"a b\""},
        {"v1", "ResourceQuota",
         "{'status': {'hard': {'pods': '4', 'limits.cpu': '2'}, 'used': "
         "{'pods': '1'}}}",
         "Request", "\"pods: 1/4\""},
        {"v1", "ResourceQuota", "{'status': {'hard': {'limits.cpu': '2'}}}", "Limit",
         "\"limits.cpu: 0/2\""},
        {"v1", "ConfigMap", "{'data': {'a': ''}, 'binaryData': {'b': ''}}", "Data", "2"},
        {"v1", "PersistentVolumeClaim",
         "{'spec': {'volumeName': 'v'}, 'status': {'accessModes': ['ReadWriteMany', "
         "'ReadWriteOnce'], 'capacity': {'storage': '1Gi'}}}",
         "Access Modes", "\"RWO,RWX\""},
        {"v1", "PersistentVolumeClaim", "{'status': {'capacity': {'storage': '1Gi'}}}", "Capacity",
         "\"\""},
        {"v1", "PersistentVolumeClaim", "{'metadata': {'deletionTimestamp': 'x'}}", "Status",
         "\"Terminating\""},
        {"v1", "PersistentVolume", "{'spec': {'claimRef': {'namespace': 'n', 'name': 'c'}}}",
         "Claim", "\"n/c\""},
        {"v1", "PersistentVolume", "{}", "VolumeAttributesClass", "\"<unset>\""},
        {"storage.k8s.io/v1", "StorageClass",
         "{'metadata': {'name': 's', 'annotations': "
         "{'storageclass.kubernetes.io/is-default-class': "
         "'true'}}}",
         "Name", "\"s (default)\""},
        {"storage.k8s.io/v1", "CSIDriver", "{'spec': {'tokenRequests': [{'audience': 'a'}, {}]}}",
         "TokenRequests", "\"a,\""},
        {"apps/v1", "Deployment", "{'spec': {'replicas': 3}, 'status': {'readyReplicas': 1}}",
         "Ready", "\"1/3\""},
        {"apps/v1", "Deployment",
         "{'spec': {'template': {'spec': {'containers': [{'image': 'a'}, "
         "{'image': 'b'}]}}}}",
         "Images", "\"a,b\""},
        {"apps/v1", "ReplicaSet", "{'spec': {'selector': {'matchLabels': {'a': 'b'}}}}", "Selector",
         "\"a=b\""},
        {"apps/v1", "ControllerRevision",
         "{'metadata': {'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'StatefulSet', "
         "'name': "
         "'w', 'controller': true}]}}",
         "Controller", "\"statefulset.apps/w\""},
        {"apps/v1", "ControllerRevision", "{}", "Controller", "\"<none>\""},
        {"batch/v1", "Job", "{}", "Status", "\"Running\""},
        {"batch/v1", "Job", "{'status': {'conditions': [{'type': 'Suspended', 'status': 'True'}]}}",
         "Status", "\"Suspended\""},
        {"batch/v1", "Job", "{'spec': {'parallelism': 3}}", "Completions", "\"0/1 of 3\""},
        {"batch/v1", "Job",
         "{'status': {'startTime': '2026-01-01T00:00:00Z', 'completionTime': "
         "'2026-01-01T00:00:05Z'}}",
         "Duration", "\"5s\""},
        {"batch/v1", "CronJob", "{'spec': {'suspend': true}}", "Suspend", "\"True\""},
        {"policy/v1", "PodDisruptionBudget", "{'spec': {'minAvailable': '50%'}}", "Min Available",
         "\"50%\""},
        {"policy/v1", "PodDisruptionBudget", "{}", "Max Unavailable", "\"N/A\""},
        {"rbac.authorization.k8s.io/v1", "RoleBinding",
         "{'roleRef': {'kind': 'Role', 'name': 'r'}, 'subjects': [{'kind': 'ServiceAccount', "
         "'namespace': 'n', 'name': 's'}, {'kind': 'User', 'name': 'u'}]}",
         "ServiceAccounts", "\"n/s\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check(cases[i].version, cases[i].kind, cases[i].object, cases[i].column, cases[i].expected);
}

/* No cell stumbles over what an object should not have. */
static void test_odd_objects(void **state)
{
    (void)state;
    static const char *const objects[] = {
        "{}",
        "{'metadata': 1, 'spec': [], 'status': 'x', 'data': [], 'subjects': {}, 'subsets': 1}",
        "{'metadata': {'labels': [], 'ownerReferences': [1]}, 'spec': {'ports': [1], 'template': "
        "[],"
        "'selector': 1, 'accessModes': [1]}, 'status': {'conditions': [1], 'hard': {'a': 1}}}"};
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        for (const struct api_column *c = (*k)->columns; c && c->name; c++) {
            for (size_t i = 0; c->cell && i < ARRAY_SIZE(objects); i++) {
                json_auto_t *object = parse_quoted(objects[i]), *cell = c->cell(object, 0);
                if (!cell)
                    fail_msg("%s of a %s: nothing", c->name, (*k)->kind);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_odd_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

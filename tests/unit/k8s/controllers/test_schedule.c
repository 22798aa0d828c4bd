#include "jsontest.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule.h"

enum { NODES = 4 };

/* A world from [{node..., "pods": [...]}, ...]: what nodes do not say they have as a rule. */
struct world {
    json_t *list;
    struct schedule_node nodes[NODES];
    size_t n;
};

static void world_init(struct world *w, const char *text)
{
    size_t i;
    json_t *entry;
    w->list = parse_quoted(text);
    w->n = json_array_size(w->list);
    assert_true(w->n <= NODES);
    json_array_foreach(w->list, i, entry) {
        char name[32];
        snprintf(name, sizeof(name), "n%zu", i);
        if (!json_object_get(entry, "metadata"))
            json_object_set_new(entry, "metadata", json_object());
        json_t *metadata = json_object_get(entry, "metadata");
        json_object_set_new(metadata, "name", json_string(name));
        if (!json_object_get(metadata, "labels"))
            json_object_set_new(metadata, "labels", json_object());
        json_object_set_new(json_object_get(metadata, "labels"), "host", json_string(name));
        if (!json_object_get(entry, "status"))
            json_object_set_new(entry, "status", json_object());
        if (!json_at(entry, "status", "conditions"))
            json_object_set_new(json_object_get(entry, "status"), "conditions",
                                json_pack("[{s:s,s:s}]", "type", "Ready", "status", "True"));
        if (!json_object_get(entry, "pods"))
            json_object_set_new(entry, "pods", json_array());
        w->nodes[i] = (struct schedule_node){entry, json_object_get(entry, "pods")};
    }
}

#define CPU(n) "{'spec': {'containers': [{'resources': {'requests': {'cpu': '" n "'}}}]}}"
#define DB     "{'metadata': {'namespace': 'a', 'labels': {'app': 'db'}}, 'spec': {'containers': [{}]}}"
#define SHY                                                                                        \
    "{'metadata': {'namespace': 'a', 'labels': {'app': 'shy'}}, 'spec': {'affinity': "             \
    "{'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [{'labelSelector': "   \
    "{'matchLabels': {'app': 'db'}}, 'topologyKey': 'host'}]}}}}"
#define NEAR(kind, app)                                                                            \
    "{'metadata': {'namespace': 'a', 'labels': {'app': 'db'}}, 'spec': {'affinity': {'" kind       \
    "': {'requiredDuringSchedulingIgnoredDuringExecution': [{'labelSelector': {'matchLabels': "    \
    "{'app': '" app "'}}, 'topologyKey': 'host'}]}}}}"
#define AFFINITY(expression)                                                                       \
    "{'spec': {'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "   \
    "{'nodeSelectorTerms': [{'matchExpressions': [" expression "]}]}}}}}"
#define TAINT(effect) "{'spec': {'taints': [{'key': 'k', 'value': 'v', 'effect': '" effect "'}]}}"

static void test_pick(void **state)
{
    (void)state;
    static const struct {
        const char *name, *pod, *nodes, *expected; /* a node, or why none */
    } cases[] = {
        {"no nodes", "{}", "[]", "no nodes available to schedule pods"},
        {"any", "{}", "[{}]", "n0"},
        {"fewest pods", "{}", "[{'pods': [" DB "]}, {}]", "n1"},
        {"cordoned", "{}", "[{'spec': {'unschedulable': true}}]",
         "0/1 nodes are available: 1 node(s) were unschedulable."},
        {"cordoned and tolerated",
         "{'spec': {'tolerations': [{'key': 'node.kubernetes.io/unschedulable', 'operator': "
         "'Exists'}]}}",
         "[{'spec': {'unschedulable': true}}]", "n0"},
        {"not ready", "{}", "[{'status': {'conditions': []}}, {}]", "n1"},
        {"none is ready", "{}",
         "[{'status': {'conditions': [{'type': 'Ready', 'status': 'Unknown'}]}}]",
         "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: "
         "}."},
        {"tainted", "{}", "[" TAINT("NoSchedule") "]",
         "0/1 nodes are available: 1 node(s) had untolerated taint {k: v}."},
        {"tolerated", "{'spec': {'tolerations': [{'key': 'k', 'value': 'v'}]}}",
         "[" TAINT("NoSchedule") "]", "n0"},
        {"another value", "{'spec': {'tolerations': [{'key': 'k', 'value': 'w'}]}}",
         "[" TAINT("NoExecute") "]",
         "0/1 nodes are available: 1 node(s) had untolerated taint {k: v}."},
        {"everything tolerated", "{'spec': {'tolerations': [{'operator': 'Exists'}]}}",
         "[" TAINT("NoExecute") "]", "n0"},
        {"rather not", "{}", "[" TAINT("PreferNoSchedule") ", {'pods': [" DB "]}]", "n1"},
        {"if there is no other", "{}", "[" TAINT("PreferNoSchedule") "]", "n0"},
        {"selector", "{'spec': {'nodeSelector': {'host': 'n1'}}}", "[{}, {}]", "n1"},
        {"no such", "{'spec': {'nodeSelector': {'host': 'x'}}}", "[{}, {}]",
         "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
        {"in", AFFINITY("{'key': 'host', 'operator': 'In', 'values': ['n1', 'x']}"), "[{}, {}]",
         "n1"},
        {"not in", AFFINITY("{'key': 'host', 'operator': 'NotIn', 'values': ['n0']}"), "[{}, {}]",
         "n1"},
        {"exists", AFFINITY("{'key': 'ssd', 'operator': 'Exists'}"),
         "[{}, {'metadata': {'labels': {'ssd': ''}}}]", "n1"},
        {"does not", AFFINITY("{'key': 'ssd', 'operator': 'DoesNotExist'}"),
         "[{'metadata': {'labels': {'ssd': ''}}}, {}]", "n1"},
        {"greater", AFFINITY("{'key': 'gen', 'operator': 'Gt', 'values': ['5']}"),
         "[{'metadata': {'labels': {'gen': '5'}}}, {'metadata': {'labels': {'gen': '10'}}}]", "n1"},
        {"less than no number", AFFINITY("{'key': 'gen', 'operator': 'Lt', 'values': ['5']}"),
         "[{'metadata': {'labels': {'gen': 'x'}}}]",
         "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
        {"by name",
         "{'spec': {'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution':"
         " {'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', "
         "'values': ['n1']}]}]}}}}}",
         "[{}, {}]", "n1"},
        {"preferred",
         "{'spec': {'affinity': {'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution'"
         ": [{'weight': 10, 'preference': {'matchExpressions': [{'key': 'host', 'operator': 'In', "
         "'values': ['n1']}]}}]}}}}",
         "[{}, {'pods': [" DB "]}]", "n1"},
        {"room", CPU("2"),
         "[{'status': {'allocatable': {'cpu': '4'}}, 'pods': [" CPU(
             "3") "]}, "
                  "{'status': {'allocatable': {'cpu': '4'}}, 'pods': [" CPU("1") "]}]",
         "n1"},
        {"no room", CPU("1500m"),
         "[{'status': {'allocatable': {'cpu': '2'}}, 'pods': [" CPU("501m") "]}]",
         "0/1 nodes are available: 1 Insufficient cpu."},
        {"exactly enough", CPU("1500m"),
         "[{'status': {'allocatable': {'cpu': '2'}}, 'pods': [" CPU("500m") "]}]", "n0"},
        {"two reasons",
         "{'spec': {'containers': [{'resources': {'limits': {'cpu': '3', 'memory': '2Gi'}}}]}}",
         "[{'status': {'allocatable': {'cpu': '2', 'memory': '1Gi'}}}]",
         "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
        {"what a node has not", CPU("1"), "[{'status': {'allocatable': {'memory': '1Gi'}}}]",
         "0/1 nodes are available: 1 Insufficient cpu."},
        {"too many", "{}", "[{'status': {'allocatable': {'pods': '1'}}, 'pods': [" DB "]}]",
         "0/1 nodes are available: 1 Too many pods."},
        {"a port that is taken",
         "{'spec': {'containers': [{'ports': [{'hostPort': 80, 'protocol': 'TCP'}]}]}}",
         "[{'pods': [{'spec': {'containers': [{'ports': [{'hostPort': 80, 'protocol': "
         "'TCP'}]}]}}]}, "
         "{'pods': [{'spec': {'containers': [{'ports': [{'hostPort': 80, 'protocol': 'UDP'}]}]}}, "
         "{}]}]",
         "n1"},
        {"near", NEAR("podAffinity", "db"), "[{}, {'pods': [" DB "]}]", "n1"},
        {"nobody to be near", NEAR("podAffinity", "web"), "[{}]",
         "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."},
        {"the first of those who want to be near", NEAR("podAffinity", "db"), "[{}]", "n0"},
        {"away", NEAR("podAntiAffinity", "db"), "[{'pods': [" DB "]}, {'pods': [{}, {}]}]", "n1"},
        {"nowhere away", NEAR("podAntiAffinity", "db"), "[{'pods': [" DB "]}]",
         "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."},
        {"not wanted", DB, "[{'pods': [" SHY "]}]",
         "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."},
        {"each for its reason", CPU("3"),
         "[{'spec': {'unschedulable': true}}, {'status': {'allocatable': {'cpu': '1'}}}, "
         "{'status': {'allocatable': {'cpu': '2'}}}]",
         "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        _cleanup_(str_done) struct str why = {0};
        json_auto_t *pod = parse_quoted(cases[i].pod);
        world_init(&w, cases[i].nodes);
        size_t best = schedule_pick(pod, NULL, w.nodes, w.n, &why);
        const char *got = best < w.n ? kube_name(w.nodes[best].node) : str_get(&why);
        if (!str_eq(got, cases[i].expected))
            fail_msg("%s: %s", cases[i].name, got);
        json_decref(w.list);
    }
}

/* Pods of one owner are spread, whatever else is there. */
static void test_spread(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "[{}, {}, {}]");
    json_auto_t *pod = parse_quoted("{'metadata': {'ownerReferences': [{'uid': 'u', 'controller': "
                                    "true}]}, 'spec': {'containers': [{}]}}");
    json_array_append_new(json_object_get(json_array_get(w.list, 2), "pods"), json_object());
    for (int i = 0; i < 9; i++) {
        size_t best = schedule_pick(pod, NULL, w.nodes, w.n, NULL);
        json_array_append(json_object_get(json_array_get(w.list, best), "pods"), pod);
    }
    assert_int_equal(json_array_size(w.nodes[0].pods), 3);
    assert_int_equal(json_array_size(w.nodes[1].pods), 3);
    assert_int_equal(json_array_size(w.nodes[2].pods), 4);
    json_decref(w.list);
}

/* Claims, on nodes n0 and n1. */
/* A claim for 2Gi of a class that has so much on n1. */
#define TWO_GI(class, room)                                                                        \
    "{'claim': {'spec': {'resources': {'requests': {'storage': '2Gi'}}}}, 'class': {'metadata': "  \
    "{'name': " class "}}, 'capacities': [{'capacity': " room ", 'nodeTopology': {'matchLabels': " \
                      "{'host': 'n1'}}}]}"

static void test_volumes(void **state)
{
    (void)state;
    static const struct {
        const char *claims, *expected;
    } cases[] = {
        {"[]", "n0"},
        {"[{'claim': {}, 'volume': {}}]", "n0"},
        {"[{'claim': {}, 'volume': {'spec': {'nodeAffinity': {'required': {'nodeSelectorTerms': "
         "[{'matchExpressions': [{'key': 'host', 'operator': 'In', 'values': ['n1']}]}]}}}}}]",
         "n1"},
        {"[{'claim': {}, 'volume': {'spec': {'nodeAffinity': {'required': {'nodeSelectorTerms': "
         "[{'matchExpressions': [{'key': 'host', 'operator': 'In', 'values': ['x']}]}]}}}}}]",
         "0/2 nodes are available: 2 node(s) had volume node affinity conflict."},
        {"[{'claim': {'metadata': {'annotations': {'volume.kubernetes.io/selected-node': 'n1'}}}, "
         "'class': {}}]",
         "n1"},
        {"[{'claim': {}, 'class': {'allowedTopologies': [{'matchLabelExpressions': [{'key': "
         "'host', 'values': ['x', 'n1']}]}]}}]",
         "n1"},
        {"[{'claim': {}, 'class': {'allowedTopologies': [{'matchLabelExpressions': [{'key': "
         "'host', 'values': ['x']}]}]}}]",
         "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."},
        {"[{'claim': {'spec': {'resources': {'requests': {'storage': '2Gi'}}}}, 'class': {}, "
         "'capacities': [{'capacity': '1Gi', 'nodeTopology': {'matchLabels': {'host': 'n0'}}}, "
         "{'capacity': '9Gi', 'maximumVolumeSize': '2Gi', 'nodeTopology': {'matchLabels': "
         "{'host': 'n1'}}}]}]",
         "n1"},
        {"[{'claim': {'spec': {'resources': {'requests': {'storage': '3Gi'}}}}, 'class': {}, "
         "'capacities': [{'capacity': '9Gi', 'maximumVolumeSize': '2Gi', 'nodeTopology': "
         "{'matchLabels': {'host': 'n1'}}}]}]",
         "0/2 nodes are available: 2 node(s) did not have enough free storage."},
        /* Claims of one class need room together; of two, each its own. */
        {"[" TWO_GI("'a'", "'2Gi'") "," TWO_GI("'a'", "'2Gi'") "]",
         "0/2 nodes are available: 2 node(s) did not have enough free storage."},
        {"[" TWO_GI("'a'", "'4Gi'") "," TWO_GI("'a'", "'4Gi'") "]", "n1"},
        {"[" TWO_GI("'a'", "'2Gi'") "," TWO_GI("'b'", "'2Gi'") "]", "n1"},
        /* What was promised to the claim itself is room no more, and its own. */
        {"[{'claim': {'metadata': {'annotations': {'volume.kubernetes.io/selected-node': 'n1'}}, "
         "'spec': {'resources': {'requests': {'storage': '2Gi'}}}}, 'class': {}, 'capacities': "
         "[]}]",
         "n1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        _cleanup_(str_done) struct str why = {0};
        json_auto_t *pod = json_object(), *claims = parse_quoted(cases[i].claims);
        world_init(&w, "[{}, {}]");
        size_t best = schedule_pick(pod, claims, w.nodes, w.n, &why);
        assert_string_equal(best < w.n ? kube_name(w.nodes[best].node) : str_get(&why),
                            cases[i].expected);
        json_decref(w.list);
    }
}

static void test_concerns(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        bool concerns;
    } cases[] = {
        {"{'spec': {}}", true},
        {"{'spec': {'schedulerName': 'default-scheduler'}}", true},
        {"{'spec': {'schedulerName': 'other'}}", false},
        {"{'spec': {'nodeName': 'n1'}}", false},
        {"{'metadata': {'deletionTimestamp': '2026-01-01T00:00:00Z'}, 'spec': {}}", false},
        {"{'spec': {}, 'status': {'phase': 'Failed'}}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *pod = parse_quoted(cases[i].pod);
        assert_int_equal(schedule_concerns(pod), cases[i].concerns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_concerns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "jsontest.h"
#include "sidecar/sidecar.h"

static struct sidecar_shown read_quoted(const char *text)
{
    struct sidecar_shown shown;
    sidecar_shown_read(parse_quoted(text), &shown);
    return shown;
}

/* Every word that a target has for a replica is a state, and any other one has not all data. */
static void test_states(void **state)
{
    static const struct {
        const char *word, *mode;
        enum sidecar_state state;
        bool rebuilding;
    } cases[] = {
        {"Healthy", "RW", SIDECAR_HEALTHY, false},
        {"Offline", "ERR", SIDECAR_OFFLINE, false},
        {"Degraded", "WO", SIDECAR_DEGRADED, false},
        {"Rebuilding", "WO", SIDECAR_REBUILDING, true},
        {"NewReplicaDegraded", "WO", SIDECAR_NEW_DEGRADED, false},
        {"ReconstructingNewReplica", "WO", SIDECAR_RECONSTRUCTING, true},
        {"Building", "WO", SIDECAR_DEGRADED, false},
        {"", "WO", SIDECAR_DEGRADED, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf(
            "{'ready':true,'size':8192,'volumeStatus':[{'serving':true,'replicaStatus':[{"
            "'replicaId':'a','mode':'%s','rebuildPercent':7,'rebuildSecondsLeft':9,'lag':3}]}]}",
            cases[i].word);
        _cleanup_(sidecar_shown_done) struct sidecar_shown shown = read_quoted(text);
        json_auto_t *volume = parse_quoted("{'spec':{'desiredReplicationFactor':1},'status':{"
                                           "'replicaStatus':[{'replicaId':'a','address':'x'}]}}");
        assert_int_equal(sidecar_shown_volume(&shown)->replicas.p[0].state, cases[i].state);
        json_auto_t *status = sidecar_jiva.status(volume, &shown, NULL, clock_system());
        const json_t *replica = json_array_get(json_object_get(status, "replicaStatus"), 0);
        assert_string_equal(json_str(replica, "mode"), cases[i].mode);
        assert_string_equal(json_str(replica, "address"), "x");
        assert_int_equal(json_integer_value(json_object_get(replica, "rebuildPercent")),
                         cases[i].rebuilding ? 7 : 0);
        assert_int_equal(json_integer_value(json_object_get(replica, "lag")),
                         cases[i].rebuilding ? 3 : 0);
    }
}

/* What has not the shape of an answer is one of a target that shows nothing. */
static void test_strange(void **state)
{
    static const char *const cases[] = {
        "{}", "[]", "{'volumeStatus':{},'sessions':3}",
        "{'volumeStatus':[3],'operation':[],'snapshots':[{},4]}",
        "{'volumeStatus':[{'replicaStatus':[{},1,null],'guests':{}}]}"};
    (void)state;
    json_auto_t *volume = parse_quoted("{'spec':{}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(sidecar_shown_done) struct sidecar_shown shown = read_quoted(cases[i]);
        json_auto_t *status = sidecar_jiva.status(volume, &shown, NULL, clock_system());
        assert_false(sidecar_is_busy(&shown));
        assert_false(shown.ready);
        assert_string_equal(json_str(status, "status"), "Offline");
        assert_null(json_object_get(status, "capacity"));
    }
}

/* Orders are fields of the spec; the status acknowledges them by generation. */
static void test_orders(void **state)
{
    static const struct {
        const char *volume;
        int64_t generation;
        enum sidecar_command command;
        enum sidecar_phase phase;
    } cases[] = {
        {"{'spec':{}}", 0, SIDECAR_COMMANDS, SIDECAR_NEW},
        {"{'spec':{'snapshotOrder':{'generation':3,'command':'delete','name':'s'}}}", 3,
         SIDECAR_DELETE, SIDECAR_NEW},
        {"{'spec':{'snapshotOrder':{'generation':3,'command':'create','name':'s'}},"
         "'status':{'snapshotOrder':{'generation':2,'phase':'Done'}}}",
         3, SIDECAR_CREATE, SIDECAR_NEW},
        {"{'spec':{'snapshotOrder':{'generation':3,'command':'revert','name':'s'}},"
         "'status':{'snapshotOrder':{'generation':3,'phase':'Running'}}}",
         3, SIDECAR_REVERT, SIDECAR_RUNNING},
        {"{'spec':{'snapshotOrder':{'generation':3,'command':'what','name':'s'}},"
         "'status':{'snapshotOrder':{'generation':3,'phase':'Failed'}}}",
         3, SIDECAR_COMMANDS, SIDECAR_ENDED},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *volume = parse_quoted(cases[i].volume);
        struct sidecar_order o;
        sidecar_jiva.order(volume, &o);
        assert_int_equal(o.generation, cases[i].generation);
        assert_int_equal(o.command, cases[i].command);
        assert_int_equal(o.phase, cases[i].phase);
    }
}

/* A growth counts while the resize that ordered it holds the volume's lock. */
static void test_growth(void **state)
{
    static const struct {
        const char *lock, *order;
        bool counts;
    } cases[] = {
        {"r", "{'name':'r','capacity':'8Ki'}", true},
        {"", "{'name':'r','capacity':'8Ki'}", false},
        {"q", "{'name':'r','capacity':'8Ki'}", false},
        {"r", "{'name':'r','capacity':'x'}", false},
        {"r", "{}", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text =
            mem_printf("{'metadata':{'annotations':{'resize.jiva.openebs.io/name':'%s'}},"
                       "'spec':{'resizeOrder':%s}}",
                       cases[i].lock, cases[i].order);
        json_auto_t *volume = parse_quoted(text);
        struct sidecar_wanted wanted;
        sidecar_jiva.wanted(volume, &wanted);
        assert_int_equal(wanted.resize != NULL, cases[i].counts);
        assert_int_equal(wanted.grow_to, cases[i].counts ? 8192 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_strange),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_growth),
    };
    return cmocka_run_group_tests_name("shown", tests, NULL, NULL);
}

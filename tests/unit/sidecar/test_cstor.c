#include "base/clock.h"
#include "jsontest.h"
#include "kube/condition.h"
#include "sidecar/sidecar.h"

/* The rule of the published controller, over replicas that are healthy, degraded and away. */
static void test_phase(void **state)
{
    static const struct {
        const char *what;
        unsigned members, healthy, degraded, needed, voters;
        bool serving, made;
        const char *phase;
    } cases[] = {
        {"never made", 0, 0, 0, 0, 0, false, false, "Init"},
        {"its target has just been started", 0, 0, 0, 0, 0, false, true, "Offline"},
        {"all", 3, 3, 0, 2, 3, true, true, "Healthy"},
        {"two of three", 3, 2, 0, 2, 3, true, true, "Healthy"},
        {"two, and one is rebuilt", 3, 2, 1, 2, 3, true, true, "Healthy"},
        {"one, and two are rebuilt", 3, 1, 2, 2, 3, true, true, "Degraded"},
        {"none, and three are rebuilt", 3, 0, 3, 2, 3, true, true, "Degraded"},
        {"one of three", 3, 1, 0, 2, 3, false, true, "Offline"},
        {"one of three that claims to serve", 3, 1, 0, 2, 3, true, true, "Offline"},
        {"enough are there, and it does not serve", 3, 2, 1, 2, 3, false, true, "Offline"},
        {"one of one", 1, 1, 0, 1, 1, true, true, "Healthy"},
        {"two of two", 2, 2, 0, 2, 2, true, true, "Healthy"},
        {"one of two", 2, 1, 0, 2, 2, false, true, "Offline"},
        {"three of five", 5, 3, 0, 3, 5, true, true, "Healthy"},
        {"two of five and one that is rebuilt", 5, 2, 1, 3, 5, true, true, "Degraded"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct sidecar_health h = {.members = cases[i].members,
                                         .healthy = cases[i].healthy,
                                         .degraded = cases[i].degraded,
                                         .needed = cases[i].needed,
                                         .voters = cases[i].voters,
                                         .serving = cases[i].serving};
        const char *got = sidecar_cstor_phase(&h, cases[i].made);
        if (!str_eq(got, cases[i].phase))
            fail_msg("%s: %s, not %s", cases[i].what, got, cases[i].phase);
    }
}

static json_t *shown_json(unsigned up_time, const char *seq, const char *second)
{
    return json_pack("{s:b,s:s,s:I,s:[{s:b,s:i,s:i,s:[{s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:s,s:b},"
                     "{s:s,s:s,s:b}],s:[]}]}",
                     "ready", 1, "operation", "", "size", (json_int_t)4096 * 1024, "volumeStatus",
                     "serving", 1, "consistencyFactor", 2, "replicationFactor", 2, "replicaStatus",
                     "replicaId", "00000000-0000-000a-0000-0000000000ff", "mode", "Healthy",
                     "checkpointedIOSeq", seq, "inflightRead", "0", "inflightWrite", "1",
                     "inflightSync", "0", "upTime", (int)up_time, "quorum", "1", "voter", 1,
                     "replicaId", "00000000-0000-000b-0000-000000000100", "mode", second, "voter",
                     1, "guests");
}

/* The volume with the status that follows from what its target shows. */
static void look(json_t *volume, json_t *shown)
{
    struct sidecar_shown s;
    sidecar_shown_read(shown, &s);
    json_object_set_new(volume, "status", sidecar_cstor.status(volume, &s, NULL, clock_system()));
    sidecar_shown_done(&s);
}

static const char volume_text[] =
    "{'metadata': {'name': 'v', 'uid': 'u', 'annotations': {'orlop.io/volume-id': 'u'}}, 'spec': "
    "{'capacity': '4Mi', 'replicationFactor': 2, 'leavingReplicas': ['11', '12']}}";

static void test_status(void **state)
{
    (void)state;
    json_auto_t *volume = parse_quoted(volume_text);
    look(volume, shown_json(7, "40", "Healthy"));
    const json_t *status = json_object_get(volume, "status");
    json_auto_t *known = parse_quoted("{'10': '255', '11': '256'}"),
                *removed = parse_quoted("['12']");
    assert_string_equal(json_str(status, "phase"), "Healthy");
    assert_string_equal(json_str(status, "replicas"), "2/2");
    assert_string_equal(json_str(status, "capacity"), "4Mi");
    assert_json(json_at(status, "replicaDetails", "knownReplicas"), known, "ids and data sets");
    assert_json(json_object_get(status, "removedReplicas"), removed, "who leaves and is no member");
    const json_t *first = json_array_get(json_object_get(status, "replicaStatuses"), 0);
    json_auto_t *expected = parse_quoted(
        "{'replicaId': '255', 'mode': 'Healthy', 'checkpointedIOSeq': '40', 'inflightRead': '0', "
        "'inflightWrite': '1', 'inflightSync': '0', 'upTime': 7, 'quorum': '1'}");
    assert_json(first, expected, "a replica has all fields");
    assert_true(kube_condition_is_true(volume, "FullyReplicated"));

    look(volume, shown_json(7, "40", "Offline"));
    assert_false(kube_condition_is_true(volume, "FullyReplicated"));
    assert_string_equal(json_str(json_object_get(volume, "status"), "replicas"), "1/2");
}

/* Time alone is no news; I/O is, now and then; anything else is at once, with the numbers of then. */
static void test_rest(void **state)
{
    (void)state;
    json_auto_t *volume = parse_quoted(volume_text);
    look(volume, shown_json(7, "40", "Healthy"));
    json_auto_t *before = json_deep_copy(volume);
    look(volume, shown_json(600, "40", "Healthy"));
    assert_json(volume, before, "no I/O: nothing is written");
    look(volume, shown_json(8, "41", "Healthy"));
    assert_json(volume, before, "I/O, and it was just written");
    json_object_set_new(json_object_get(volume, "status"), "lastUpdateTime",
                        json_string("2020-01-01T00:00:00Z"));
    look(volume, shown_json(9, "42", "Healthy"));
    const json_t *list = json_at(volume, "status", "replicaStatuses");
    assert_string_equal(json_str(json_array_get(list, 0), "checkpointedIOSeq"), "42");
    look(volume, shown_json(10, "43", "Rebuilding"));
    list = json_at(volume, "status", "replicaStatuses");
    assert_string_equal(json_str(json_array_get(list, 0), "checkpointedIOSeq"), "43");
}

/* A target that ends, or does not answer, leaves nothing that looks well; who the replicas are stays. */
static void test_silence(void **state)
{
    (void)state;
    json_auto_t *volume = parse_quoted(volume_text);
    look(volume, shown_json(7, "40", "Healthy"));
    json_auto_t *ended = sidecar_cstor.last_status(volume, clock_system()),
                *silent = sidecar_cstor.status(volume, NULL, "no answer", clock_system());
    const json_t *const both[] = {ended, silent};
    static const char *const phases[] = {"Offline", "Error"};
    for (size_t i = 0; i < 2; i++) {
        json_auto_t *now = json_pack("{s:O}", "status", both[i]);
        assert_string_equal(json_str(both[i], "phase"), phases[i]);
        assert_int_equal(json_array_size(json_object_get(both[i], "replicaStatuses")), 0);
        assert_int_equal(json_object_size(json_at(both[i], "replicaDetails", "knownReplicas")), 2);
        assert_null(json_object_get(both[i], "removedReplicas"));
        assert_false(kube_condition_is_true(now, "Serving"));
        assert_false(kube_condition_is_true(now, "FullyReplicated"));
    }
}

static void test_wanted(void **state)
{
    (void)state;
    json_auto_t *volume = parse_quoted(volume_text);
    struct sidecar_wanted w;
    sidecar_cstor.wanted(volume, &w);
    assert_true(w.create && w.named);
    assert_int_equal(w.size, 4096 * 1024);
    assert_int_equal(w.replicas, 2);
    assert_true(sidecar_is_leaving(&w, 11) && sidecar_is_leaving(&w, 12));
    json_object_set_new(json_object_get(json_object_get(volume, "metadata"), "annotations"),
                        "orlop.io/volume-id", json_string("brought"));
    sidecar_cstor.wanted(volume, &w);
    assert_false(w.create);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phase),   cmocka_unit_test(test_status), cmocka_unit_test(test_rest),
        cmocka_unit_test(test_silence), cmocka_unit_test(test_wanted),
    };
    return cmocka_run_group_tests_name("cstor", tests, NULL, NULL);
}

#include "controllers/volume/volume.h"
#include "jsontest.h"

/* A volume with replicas in these states, "HHO": Healthy, Offline, Rebuilding. */
static json_t *volume_having(int factor, const char *states, bool made, const char *status)
{
    json_t *replicas = json_array();
    for (const char *at = states; *at; at++)
        json_array_append_new(replicas, json_pack("{s:s}", "state",
                                                  *at == 'H'   ? "Healthy"
                                                  : *at == 'O' ? "Offline"
                                                               : "Rebuilding"));
    json_t *o = json_pack("{s:{s:i},s:{s:o,s:s}}", "spec", "desiredReplicationFactor", factor,
                          "status", "replicaStatus", replicas, "status", status);
    if (made)
        json_object_set_new(json_object_get(o, "status"), "capacity", json_string("1Gi"));
    return o;
}

static void test_replica_count(void **state)
{
    static const struct {
        const char *name;
        int factor;
        const char *states;
        bool made;
        const char *status;
        unsigned now, wanted;
    } cases[] = {
        {"to be made", 3, "", false, "Offline", 0, 3},
        {"its target has just been started and knows nobody", 3, "", true, "Offline", 3, 3},
        {"as it should be", 3, "HHH", true, "RW", 3, 3},
        {"somebody took pods away", 3, "HOO", true, "Offline", 1, 3},
        {"somebody added pods", 3, "HHH", true, "RW", 5, 3},
        {"the same, while not every member is known by its address", 3, "HHO", true, "RW", 5, 5},
        {"two more: one first", 5, "HHH", true, "RW", 3, 4},
        {"that one is not a member yet", 5, "HHH", true, "RW", 4, 4},
        {"it is, and has not all data", 5, "HHHR", true, "RW", 4, 4},
        {"it has: the next", 5, "HHHH", true, "RW", 4, 5},
        {"more, while one is away", 5, "HHO", true, "RW", 3, 3},
        {"fewer: each has its pod while it is a member", 2, "HHH", true, "RW", 3, 3},
        {"one has left", 2, "HH", true, "RW", 3, 2},
        {"nobody is in sync: nothing is taken away", 2, "OO", true, "Offline", 3, 3},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *volume =
            volume_having(cases[i].factor, cases[i].states, cases[i].made, cases[i].status);
        struct volume_view view;
        volume_jiva.view(volume, &view);
        unsigned got = volume_replica_count(&view, cases[i].now);
        if (got != cases[i].wanted)
            fail_msg("%s: %u, not %u", cases[i].name, got, cases[i].wanted);
    }
}

static void test_lists(void **state)
{
    (void)state;
    json_auto_t *volume =
        parse_quoted("{'metadata': {'annotations': {'jiva.openebs.io/nodes': 'a,b,,c'}}}");
    json_auto_t *list = volume_list(volume, volume_jiva.nodes),
                *none = volume_list(volume, volume_jiva.stale);
    json_auto_t *text = volume_list_text(list), *empty = volume_list_text(none);
    assert_int_equal(json_array_size(list), 3);
    assert_true(volume_listed(list, "b"));
    assert_false(volume_listed(list, "d"));
    assert_string_equal(json_string_value(text), "a,b,c");
    assert_true(json_is_null(empty));
}

static json_t *must(json_t *made, const struct err *e)
{
    if (!made)
        fail_msg("%s", e->msg);
    return made;
}

/*
 * Every template can be filled, and none says anything that changes in the life of a volume, or every change
 * would restart it.
 */
static void test_templates(void **state)
{
    static const char text[] =
        "{'metadata': {'name': 'v', 'namespace': 'n', 'uid': 'u', 'annotations': "
        "{'jiva.openebs.io/volume-id': 'u'}}, 'iscsi': {'iqn': 'iqn.2016-09.com.openebs.jiva:v'}, "
        "'spec': {'capacity': '1Gi'}}";
    (void)state;
    struct err e = {0};
    json_auto_t *before = parse_quoted(text), *after = parse_quoted(text);
    json_object_set_new(json_object_get(after, "spec"), "capacity", json_string("2Gi"));
    json_object_set_new(after, "status", json_pack("{s:s}", "capacity", "2Gi"));
    const struct volume_uids uids = {"k", "c", "s"};
    json_auto_t *a = must(volume_target(&volume_jiva, before, "127.96.0.1", &uids, &e), &e),
                *b = must(volume_target(&volume_jiva, after, "127.96.0.1", &uids, &e), &e);
    json_auto_t *c = must(volume_jiva_replicas(before, "127.96.0.1", "k", 3, &e), &e),
                *d = must(volume_jiva_replicas(after, "127.96.0.1", "k", 4, &e), &e);
    assert_json(json_at(a, "spec", "template"), json_at(b, "spec", "template"), "target");
    assert_json(json_at(c, "spec", "template"), json_at(d, "spec", "template"), "replicas");
    for (enum volume_child which = VOLUME_KEY; which <= VOLUME_ROLE_BINDING; which++)
        json_decref(must(volume_child(&volume_jiva, before, which, &e), &e));
    json_auto_t *service = must(volume_service(&volume_jiva, before, NULL, &e), &e),
                *again = must(volume_service(&volume_jiva, before, "10.0.0.1", &e), &e),
                *eraser = must(volume_jiva.eraser(before, "node", &e), &e);
    assert_null(json_at(service, "spec", "clusterIP"));
    assert_string_equal(json_str(json_object_get(again, "spec"), "clusterIP"), "10.0.0.1");
    assert_string_equal(kube_name(eraser), "v-erase-node");
}

/* What a policy says is in the pods, and one replica a node is not for it to change. */
static void test_policy(void **state)
{
    static const char text[] =
        "{'metadata': {'name': 'v', 'namespace': 'n', 'uid': 'u'}, 'iscsi': {'iqn': 'i'}, 'spec': "
        "{'policy': {'enableBufio': false, 'priorityClassName': 'all', 'target': "
        "{'disableMonitor': true, 'priorityClassName': 'own', 'tolerations': [{'key': 'a'}]}, "
        "'replica': {'nodeSelector': {'a': 'b'}, 'affinity': {'nodeAffinity': {'x': 1}, "
        "'podAntiAffinity': {}}}}}}";
    (void)state;
    struct err e = {0};
    json_auto_t *volume = parse_quoted(text);
    const struct volume_uids uids = {"k", "c", "s"};
    json_auto_t *target = must(volume_target(&volume_jiva, volume, "10.0.0.1", &uids, &e), &e),
                *replicas = must(volume_jiva_replicas(volume, "10.0.0.1", "k", 3, &e), &e);
    const json_t *of_target = json_at(target, "spec", "template", "spec"),
                 *of_replica = json_at(replicas, "spec", "template", "spec");
    assert_string_equal(json_str(of_target, "priorityClassName"), "own");
    assert_string_equal(json_str(of_replica, "priorityClassName"), "all");
    assert_int_equal(json_array_size(json_object_get(of_target, "tolerations")), 3);
    assert_int_equal(json_array_size(json_object_get(of_replica, "tolerations")), 2);
    assert_non_null(json_at(of_replica, "nodeSelector", "a"));
    assert_non_null(json_at(of_replica, "affinity", "nodeAffinity", "x"));
    assert_int_equal(json_array_size(json_at(of_replica, "affinity", "podAntiAffinity",
                                             "requiredDuringSchedulingIgnoredDuringExecution")),
                     1);
    const json_t *first = json_array_get(json_object_get(of_target, "containers"), 0);
    assert_int_equal(json_array_size(json_object_get(first, "ports")), 2);
    assert_string_equal(json_str(json_at(target, "spec", "template", "metadata", "annotations"),
                                 "prometheus.io/scrape"),
                        "false");
}

static bool has_word(const json_t *list, const char *word)
{
    const json_t *it;
    for (size_t i = 0; (it = json_array_get(list, i)); i++) {
        if (str_eq(json_string_value(it), word))
            return true;
    }
    return false;
}

/* A target asks for CHAP unless its volume says otherwise, and no secret is in what runs it. */
static void test_chap(void **state)
{
    static const char text[] = "{'metadata': {'name': 'v', 'namespace': 'n', 'uid': 'u'}, 'iscsi': "
                               "{'iqn': 'iqn.2016-09.com.openebs.jiva:v'}, 'spec': {%s}}";
    static const struct {
        const char *spec;
        bool chap;
    } cases[] = {{"", true},
                 {"'policy':{'target':{}}", true},
                 {"'policy':{'target':{'authentication':'CHAP'}}", true},
                 {"'policy':{'target':{'authentication':'None'}}", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *whole =
            mem_printf("%.*s%s%s", (int)(strlen(text) - 4), text, cases[i].spec, "}}");
        json_auto_t *volume = parse_quoted(whole);
        const struct volume_uids uids = {"k", cases[i].chap ? "c" : "", "s"};
        struct err e = {0};
        json_auto_t *o = must(volume_target(&volume_jiva, volume, "127.96.0.1", &uids, &e), &e);
        const json_t *pod = json_at(o, "spec", "template", "spec");
        const json_t *args =
            json_object_get(json_array_get(json_object_get(pod, "containers"), 0), "args");
        assert_int_equal(has_word(args, "--chap-secret-file"), cases[i].chap);
        assert_int_equal(has_word(args, "--mutual-secret-file"), cases[i].chap);
        assert_int_equal(json_array_size(json_object_get(pod, "volumes")), cases[i].chap ? 4 : 3);
        json_auto_t *secret = must(volume_child(&volume_jiva, volume, VOLUME_CHAP, &e), &e),
                    *data = volume_chap_data(volume, "password-one", "password-two");
        assert_string_equal(json_str(secret, "type"), "kubernetes.io/iscsi-chap");
        assert_string_equal(json_str(data, "node.session.auth.username"), "v");
        assert_string_equal(json_str(data, "node.session.auth.password"), "password-one");
        assert_string_equal(json_str(data, "node.session.auth.username_in"), "v-target");
        assert_string_equal(json_str(data, "discovery.sendtargets.auth.password_in"),
                            "password-two");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica_count), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_templates),     cmocka_unit_test(test_policy),
        cmocka_unit_test(test_chap),
    };
    return cmocka_run_group_tests_name("volume", tests, NULL, NULL);
}

#include "controllers/volume/cstor/cstor.h"
#include "jsontest.h"

enum { MOST = 12 };
#define GI (1024ull * 1024 * 1024)

/*
 * Pools in a line: name@node, then words: zone=z free=n (Gi, 10) promised=n unmade=n replicas=n thin, and
 * what is so of it: ro gone used mine apart rather, or a phase in capitals.
 */
static size_t read_pools(const char *text, char *copy, struct cstor_pool *pools)
{
    size_t n = 0;
    char *save = NULL;
    strcpy(copy, text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *at = strchr(word, '@'), *is = strchr(word, '=');
        uint64_t number = is ? strtoull(is + 1, NULL, 10) * GI : 0;
        if (at) {
            *at = '\0';
            pools[n++] = (struct cstor_pool){.name = word,
                                             .uid = word,
                                             .node = at + 1,
                                             .zone = "",
                                             .phase = "ONLINE",
                                             .online = true,
                                             .thick = true,
                                             .total = 10 * GI,
                                             .free = 10 * GI};
            continue;
        }
        struct cstor_pool *p = &pools[n - 1];
        if (str_starts_with(word, "zone="))
            p->zone = is + 1;
        else if (str_starts_with(word, "free="))
            p->free = number;
        else if (str_starts_with(word, "promised="))
            p->promised = number;
        else if (str_starts_with(word, "unmade="))
            p->unmade = number;
        else if (str_starts_with(word, "replicas="))
            p->replicas = (unsigned)(number / GI);
        else if (str_eq(word, "thin"))
            p->thick = false;
        else if (str_eq(word, "ro"))
            p->read_only = true;
        else if (str_eq(word, "gone"))
            p->gone = true;
        else if (str_eq(word, "used"))
            p->used = true;
        else if (str_eq(word, "mine"))
            p->used = p->mine = true;
        else if (str_eq(word, "apart"))
            p->apart = true;
        else if (str_eq(word, "rather"))
            p->rather_apart = true;
        else {
            p->phase = word;
            p->online = false;
        }
    }
    return n;
}

static void test_placement(void **state)
{
    static const struct {
        const char *what, *pools;
        unsigned wanted;
        const char *near, *named, *chosen; /* chosen: or, after "!", what the error says */
    } cases[] = {
        {"one a node", "a@1 b@1 c@2 d@3", 3, "", "", "a c d"},
        {"of two on a node the one with more room", "a@1 free=5 b@1 c@2", 2, "", "", "b c"},
        {"more room first", "a@1 free=5 b@2 free=9 c@3 free=7", 2, "", "", "b c"},
        {"what is promised is no room", "a@1 promised=8 b@2 promised=7 c@3", 2, "", "", "c b"},
        {"nor what is promised and not made", "a@1 free=6 unmade=4 b@2 free=5", 1, "", "", "b"},
        {"with thin pools only what is free counts", "a@1 thin promised=90 b@2 free=9 thin", 1, "",
         "", "a"},
        {"the fewest replicas, then the name", "c@1 b@2 a@3 replicas=1", 2, "", "", "b c"},
        {"zones are spread", "a@1 zone=x b@2 zone=x c@3 zone=y free=3", 2, "", "", "a c"},
        {"as far as they go", "a@1 zone=x b@2 zone=x c@3 zone=y free=3", 3, "", "", "a c b"},
        {"with those that have one", "a@1 zone=x mine b@2 zone=x c@3 zone=y free=3", 1, "", "",
         "c"},
        {"a node that has one gets no other", "a@1 mine b@1 c@2 free=3", 1, "", "", "c"},
        {"but it does when that one leaves", "a@1 used b@1 c@2 free=3", 1, "", "", "b"},
        {"near a node", "a@1 b@2 free=3 c@3", 1, "2", "", "b"},
        {"near a node that cannot", "a@1 b@2 ro c@3", 1, "2", "", "a"},
        {"rather apart comes before room", "a@1 rather b@2 free=3", 1, "", "", "b"},
        {"rather apart is no must", "a@1 rather b@2 free=3", 2, "", "", "b a"},
        {"DEGRADED comes after ONLINE", "a@1 DEGRADED b@2 free=3", 1, "", "", "b"},
        {"DEGRADED is better than none", "a@1 DEGRADED", 1, "", "", "a"},
        {"pools that are named", "a@1 b@2 c@3", 2, "", "b c", "b c"},
        {"none of them is there", "a@1 b@2", 1, "", "x", "!it has no other pools"},
        {"two of three", "a@1 b@2", 3, "", "", "!3 more replicas of 2Gi are wanted, and 2 can"},
        {"OFFLINE", "a@1 OFFLINE", 1, "", "", "!pool a is OFFLINE"},
        {"being made", "a@1 Pending", 1, "", "", "!pool a is Pending"},
        {"read-only", "a@1 ro", 1, "", "", "!pool a is read-only"},
        {"deleted", "a@1 gone", 1, "", "", "!pool a is on its way out"},
        {"apart is a must", "a@1 apart", 1, "", "", "!pool a has a replica of a volume with the"},
        {"no room", "a@1 free=1", 1, "", "", "!pool a has 1Gi that are neither used nor promised"},
        {"no room, thin", "a@1 thin free=0", 1, "", "", "!pool a has 0 free"},
        {"the node is taken", "a@1 mine b@1", 1, "", "", "!pool b is on node 1, which has"},
        {"it has one that leaves", "a@1 used", 1, "", "", "!pool a has a replica that is leaving"},
        {"no pools", "", 1, "", "", "!not enough pools are available of provided CSPC \"pools\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char copy[400], names[100];
        struct cstor_pool pools[MOST];
        size_t n = read_pools(cases[i].pools, copy, pools), chosen[MOST], named = 0;
        const char *list[MOST];
        char *save = NULL;
        strcpy(names, cases[i].named);
        for (char *w = strtok_r(names, " ", &save); w; w = strtok_r(NULL, " ", &save))
            list[named++] = w;
        const struct cstor_wish wish = {.cluster = "pools",
                                        .capacity = "2Gi",
                                        .size = 2 * GI,
                                        .near = cases[i].near,
                                        .named = named ? list : NULL,
                                        .named_n = named};
        struct err e = {0};
        _cleanup_(str_done) struct str got = {0};
        int status = cstor_place(&wish, pools, n, cases[i].wanted, chosen, &e);
        for (unsigned k = 0; status == 0 && k < cases[i].wanted; k++)
            str_appendf(&got, "%s%s", k ? " " : "", pools[chosen[k]].name);
        if (status < 0 ? *cases[i].chosen != '!' || !strstr(e.msg, cases[i].chosen + 1)
                       : !str_eq(str_get(&got), cases[i].chosen))
            fail_msg("%s: %s, not %s", cases[i].what, status < 0 ? e.msg : str_get(&got),
                     cases[i].chosen);
        assert_true(status == 0 ||
                    (e.code == ERR_RESOURCE_EXHAUSTED && str_eq(e.reason, "NotEnoughPools")));
    }
}

/*
 * Replicas in a line: a name, then letters after a colon: H healthy, l leaving, r removed, d deleting, u unwanted.
 * What comes of it: +n are added, and for each that is not left alone: leave, stay or remove.
 */
static void test_plan(void **state)
{
    static const struct {
        const char *what, *replicas;
        unsigned wanted;
        bool made;
        const char *plan;
    } cases[] = {
        {"all are to be made", "", 3, false, "+3"},
        {"the rest is", "a b", 3, false, "+1"},
        {"as it should be", "a:H b:H c:H", 3, true, "+0"},
        {"one more", "a:H b:H c:H", 4, true, "+1"},
        {"fewer: the last", "a:H b:H c:H", 2, true, "+0 leave:c"},
        {"fewer: who has not all data", "a:H b c:H", 2, true, "+0 leave:b"},
        {"two fewer", "a:H b c:H", 1, true, "+0 leave:b leave:c"},
        {"one is leaving: nothing is new", "a:H b:H c:Hl", 2, true, "+0"},
        {"it has left", "a:H b:H c:lr", 2, true, "+0 remove:c"},
        {"its object goes", "a:H b:H c:lrd", 2, true, "+0"},
        {"it stays after all", "a:H b:H c:Hl", 3, true, "+0 stay:c"},
        {"it is too late for that", "a:H b:H c:lr", 3, true, "+1 remove:c"},
        {"one goes elsewhere", "a:H b:H c:Hu", 3, true, "+1 leave:c"},
        {"which goes on", "a:H b:H c:Hul d", 3, true, "+0"},
        {"an unwanted one is not called back", "a:H b:H c:Hul", 3, true, "+1"},
        {"all go elsewhere", "a:Hu b:Hu c:Hu", 3, true, "+3 leave:a leave:b leave:c"},
        {"of many, as many as there are places for", "a:Hu b:Hu c:Hu d:Hu e:Hu f:Hu g:Hu", 7, true,
         "+1 leave:a"},
        {"fewer and elsewhere at once", "a:H b:H c:Hu", 2, true, "+0 leave:c"},
        {"somebody deleted one", "a:H b:H c:Hd", 3, true, "+1"},
        {"before there is data it just goes", "a b c:u", 3, false, "+1 remove:c"},
        {"and fewer do", "a b c", 2, false, "+0 remove:c"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cstor_replica r[MOST] = {0};
        size_t n = 0;
        char copy[200], *save = NULL;
        strcpy(copy, cases[i].replicas);
        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
            char *is = strchr(word, ':');
            if (is)
                *is++ = '\0';
            r[n++] = (struct cstor_replica){.pool = word,
                                            .id = word,
                                            .healthy = is && strchr(is, 'H'),
                                            .leaving = is && strchr(is, 'l'),
                                            .removed = is && strchr(is, 'r'),
                                            .deleting = is && strchr(is, 'd'),
                                            .unwanted = is && strchr(is, 'u')};
        }
        struct cstor_plan p;
        _cleanup_(str_done) struct str got = {0};
        cstor_plan(r, n, cases[i].wanted, cases[i].made, &p);
        str_appendf(&got, "+%u", p.add);
        for (size_t k = 0; k < n; k++) {
            if (p.leave[k] || p.stay[k] || p.remove[k])
                str_appendf(&got, " %s:%s",
                            p.leave[k]  ? "leave"
                            : p.stay[k] ? "stay"
                                        : "remove",
                            r[k].pool);
        }
        if (!str_eq(str_get(&got), cases[i].plan))
            fail_msg("%s: %s, not %s", cases[i].what, str_get(&got), cases[i].plan);
    }
}

static json_t *must(json_t *made, const struct err *e)
{
    if (!made)
        fail_msg("%s", e->msg);
    return made;
}

static const char text[] =
    "{'metadata': {'name': 'v', 'namespace': 'n', 'uid': 'u', 'labels': {'openebs.io/"
    "replica-anti-affinity': 'app'}, 'annotations': {'orlop.io/volume-id': 'u'}}, 'spec': "
    "{'capacity': '1Gi', 'iqn': 'iqn.2016-09.com.openebs.cstor:v', 'replicationFactor': 3}}";

static void test_templates(void **state)
{
    (void)state;
    struct err e = {0};
    json_auto_t *volume = parse_quoted(text), *grown = parse_quoted(text);
    json_object_set_new(json_object_get(grown, "spec"), "capacity", json_string("2Gi"));
    const struct volume_uids uids = {"k", "c", "s"};
    json_auto_t *a = must(volume_target(&volume_cstor, volume, "127.96.0.1", &uids, &e), &e),
                *b = must(volume_target(&volume_cstor, grown, "127.96.0.1", &uids, &e), &e),
                *service = must(volume_service(&volume_cstor, volume, NULL, &e), &e);
    assert_json(a, b, "a volume that grows restarts nobody");
    assert_string_equal(kube_name(a), "v-target");
    assert_string_equal(kube_name(service), "v");
    const json_t *labels = json_at(a, "spec", "template", "metadata", "labels");
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(json_object_get(service, "spec"), "selector"), key, value)
        assert_string_equal(json_str(labels, key), json_string_value(value));
    for (enum volume_child which = VOLUME_KEY; which <= VOLUME_ROLE_BINDING; which++)
        json_decref(must(volume_child(&volume_cstor, volume, which, &e), &e));

    const struct cstor_pool pool = {.name = "p", .uid = "pu", .node = "node", .thick = true};
    json_auto_t *replica = must(cstor_replica_object(volume, &pool, "127.96.0.1", "1Gi", &e), &e);
    assert_string_equal(kube_name(replica), "v-p");
    assert_string_equal(kube_label(replica, API_CSTOR_APART), "app");
    assert_null(kube_label(replica, API_CSTOR_RATHER_APART));
    assert_true(json_is_true(json_at(replica, "spec", "thick")));
    _cleanup_free_ char *id = cstor_replica_id("u", "pu"), *other = cstor_replica_id("u", "pv");
    assert_string_equal(json_str(json_object_get(replica, "spec"), "replicaid"), id);
    assert_string_not_equal(id, other);
    assert_int_equal(strspn(id, "0123456789"), strlen(id));
}

/* What a policy says is in the pods and the replicas; what is there already keeps its blocks. */
static void test_policy(void **state)
{
    (void)state;
    struct err e = {0};
    json_auto_t *volume = parse_quoted(
        "{'metadata': {'name': 'v', 'namespace': 'n', 'uid': 'u'}, 'spec': {'capacity': '1Gi', "
        "'replicationFactor': 3, 'policy': {'provision': {'blockSize': 65536}, 'replica': "
        "{'zvolWorkers': '3', 'compression': 'zstd'}, 'target': {'monitor': false, "
        "'priorityClassName': 'high', 'tolerations': [{'key': 'a'}], 'nodeSelector': {'a': 'b'}, "
        "'affinity': {'x': 1}, 'resources': {'limits': {'cpu': '1'}}}}, 'replicaPoolInfo': "
        "[{'poolName': 'p'}, {'poolName': 'q'}]}}");
    const struct volume_uids uids = {"k", "c", "s"};
    json_auto_t *target = must(volume_target(&volume_cstor, volume, "10.0.0.1", &uids, &e), &e);
    const json_t *pod = json_at(target, "spec", "template", "spec");
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    assert_string_equal(json_str(pod, "priorityClassName"), "high");
    assert_int_equal(json_array_size(json_object_get(pod, "tolerations")), 3);
    assert_non_null(json_at(pod, "nodeSelector", "a"));
    assert_non_null(json_at(pod, "affinity", "podAffinity", "x"));
    assert_non_null(json_at(first, "resources", "limits"));
    assert_int_equal(json_array_size(json_object_get(first, "ports")), 2);
    const struct cstor_pool pool = {.name = "p", .uid = "pu", .node = "node"};
    json_auto_t *replica = must(cstor_replica_object(volume, &pool, "10.0.0.1", "1Gi", &e), &e);
    const json_t *spec = json_object_get(replica, "spec");
    assert_string_equal(json_str(spec, "zvolWorkers"), "3");
    assert_string_equal(json_str(spec, "compression"), "zstd");
    assert_int_equal(json_integer_value(json_object_get(spec, "blockSize")), 65536);
    struct volume_view view;
    volume_cstor.view(volume, &view);
    assert_int_equal(view.factor, 2);
    assert_false(view.monitored);
    json_auto_t *plain = parse_quoted(text);
    volume_cstor.view(plain, &view);
    assert_true(view.monitored);
}

/* What a user leaves out is filled in once. */
static void test_identity(void **state)
{
    (void)state;
    json_auto_t *volume = parse_quoted(
        "{'metadata': {'name': 'v', 'uid': 'u'}, 'spec': {'capacity': '1Gi', 'replicationFactor': "
        "3}}");
    json_auto_t *expected = parse_quoted(
        "{'metadata': {'annotations': {'orlop.io/volume-id': 'u'}}, 'spec': {'iqn': "
        "'iqn.2016-09.com.openebs.cstor:v', 'consistencyFactor': 2, 'desiredReplicationFactor': "
        "3}}");
    json_auto_t *patch = volume_cstor.identity(volume);
    assert_json(patch, expected, "identity");
    json_object_update_recursive(volume, patch);
    json_auto_t *again = volume_cstor.identity(volume);
    assert_int_equal(json_object_size(again), 0);
    json_auto_t *v6 = volume_cstor.portal(volume, "[fd00::1]:3260"),
                *address = parse_quoted("{'spec': {'targetIP': 'fd00::1', 'targetPort': '3260', "
                                        "'targetPortal': '[fd00::1]:3260'}}");
    assert_json(v6, address, "portal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placement), cmocka_unit_test(test_plan),
        cmocka_unit_test(test_templates), cmocka_unit_test(test_identity),
        cmocka_unit_test(test_policy),
    };
    return cmocka_run_group_tests_name("cstor", tests, NULL, NULL);
}

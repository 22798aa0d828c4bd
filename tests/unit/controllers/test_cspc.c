#include "controllers/cspc/plan.h"
#include "jsontest.h"
#include "kube/object.h"

/* "stripe:a,b mirror:c,d" as the raid groups of a pool; the role before a "!" is one of its flags. */
static json_t *groups_from(const char *text)
{
    json_t *groups = json_array();
    _cleanup_free_ char *copy = mem_strdup(text);
    char *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        json_t *group = json_object(), *devices = json_array();
        char *role = strchr(word, '!') ? strsep(&word, "!") : NULL, *type = strsep(&word, ":");
        for (char *name; (name = strsep(&word, ","));)
            json_array_append_new(devices, json_pack("{s:s}", "blockDeviceName", name));
        if (role)
            json_object_set_new(group, role, json_true());
        if (*type)
            json_object_set_new(group, "type", json_string(type));
        json_object_set_new(group, "blockDevices", devices);
        json_array_append_new(groups, group);
    }
    return groups;
}

/* The same for the other direction. */
static char *groups_text(const json_t *pool)
{
    struct str out = {0};
    size_t i, j;
    json_t *group, *device;
    json_array_foreach(json_object_get(pool, "raidGroups"), i, group) {
        str_appendf(&out, "%s%s:", i ? " " : "", json_str(group, "type"));
        json_array_foreach(json_object_get(group, "blockDevices"), j, device)
            str_appendf(&out, "%s%s", j ? "," : "", json_str(device, "blockDeviceName"));
    }
    return str_take(&out);
}

static json_t *pool_from(const char *node, const char *groups)
{
    return json_pack("{s:{s:s},s:o,s:{s:s}}", "nodeSelector", "kubernetes.io/hostname", node,
                     "raidGroups", groups_from(groups), "poolConfig", "defaultRaidGroupType",
                     "raidz");
}

static json_t *instance_from(const char *name, const char *node, const char *groups)
{
    return json_pack("{s:{s:s},s:o}", "metadata", "name", name, "spec", pool_from(node, groups));
}

/* What an edit of a pool comes to: the groups afterwards, with each step or why not. */
static void test_changes(void **state)
{
    (void)state;
    static const struct {
        const char *was, *wanted, *becomes, *steps;
    } cases[] = {
        {"stripe:a", "stripe:a", "stripe:a", ""},
        {"mirror:a,b", "mirror:b,a", "mirror:a,b", ""},
        {"stripe:a", "stripe:a,b", "stripe:a,b", "+b"},
        {"stripe:a", "stripe:b,a,c", "stripe:a,b,c", "+b +c"},
        {"stripe:a", "stripe:a mirror:b,c", "stripe:a mirror:b,c", "group"},
        {"stripe:a", "stripe:a :b,c", "stripe:a raidz:b,c", "group"},
        {"mirror:a,b", "mirror:c,b", "mirror:c,b", "a>c"},
        {"raidz:a,b,c mirror:d,e", "raidz:a,x,c mirror:d,y stripe:z",
         "raidz:a,x,c mirror:d,y stripe:z", "group b>x e>y"},
        {"raidz:a,b", ":a,b", "raidz:a,b", ""},
        /* All that admission would refuse, should it be down. */
        {"stripe:a,b", "stripe:a", "stripe:a,b", "no"},
        {"stripe:a,b", "stripe:a,c", "stripe:a,b", "no"},
        {"mirror:a,b", "mirror:a", "mirror:a,b", "no"},
        {"mirror:a,b", "mirror:a,b,c", "mirror:a,b", "no"},
        {"mirror:a,b,c", "mirror:a,x,y", "mirror:a,b,c", "no"},
        {"mirror:a,b", "raidz:a,b", "mirror:a,b", "no"},
        {"mirror:a,b", "isWriteCache!mirror:a,b", "mirror:a,b", "no"},
        {"mirror:a,b mirror:c,d", "mirror:a,b", "mirror:a,b mirror:c,d", "no"},
        {"mirror:a,b", "mirror:c,d", "mirror:a,b mirror:c,d", "group no"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *pool = pool_from("n", cases[i].wanted);
        json_auto_t *instance = instance_from("i", "n", cases[i].was);
        json_auto_t *spec = json_deep_copy(json_object_get(instance, "spec"));
        struct cspc_changes changes = {0};
        _cleanup_(str_done) struct str steps = {0};
        cspc_changes_find(pool, instance, &changes);
        vec_for_each(&changes, c) {
            str_append(&steps, steps.len ? " " : "");
            if (c->kind == CSPC_NOT_POSSIBLE)
                str_append(&steps, "no");
            else if (c->kind == CSPC_NEW_GROUP)
                str_append(&steps, "group");
            else
                str_appendf(&steps, "%s%s%s", c->old ? c->old : "", c->old ? ">" : "+", c->device);
            assert_true((c->kind == CSPC_NOT_POSSIBLE) == (c->why != NULL));
            cspc_change_apply(spec, pool, c);
        }
        _cleanup_free_ char *text = groups_text(spec);
        assert_string_equal(str_get(&steps), cases[i].steps);
        assert_string_equal(text, cases[i].becomes);
        vec_done(&changes);
    }
}

static json_t *cluster_from(const char *uid, json_t *pools, const char *records)
{
    return json_pack("{s:{s:s,s:s},s:{s:o},s:{s:o}}", "metadata", "name", "c", "uid", uid, "spec",
                     "pools", pools, "status", "instances", parse_quoted(records));
}

static const char *name_of(const json_t *instance)
{
    return instance ? kube_name(instance) : "-";
}

/* Which instance is whose, by devices, wherever they are. */
static void test_plan(void **state)
{
    (void)state;
    json_auto_t *cluster = cluster_from(
        "u",
        json_pack("[o,o,o,o]", pool_from("n1", "mirror:a,b"), pool_from("n9", "stripe:c,new"),
                  pool_from("n3", "stripe:d"), pool_from("n4", "stripe:e")),
        "[{'name': 'i4', 'guid': '7', 'raidGroups': [{'blockDevices': [{'blockDeviceName': "
        "'e'}]}]},"
        " {'name': 'i1', 'guid': '5', 'raidGroups': "
        "[{'type': 'mirror', 'blockDevices': [{'blockDeviceName': 'a'}, {'blockDeviceName': "
        "'b'}]}]}]");
    json_t *going = instance_from("old", "n1", "mirror:a,b");
    json_object_set_new(json_object_get(going, "metadata"), "deletionTimestamp", json_string("x"));
    json_auto_t *instances =
        json_pack("[o,o,o,o]", going, instance_from("i1", "n1", "mirror:x,b"),
                  instance_from("i2", "n2", "stripe:c"), instance_from("gone", "n5", "stripe:z"));
    struct cspc_plan plan;
    cspc_plan_make(cluster, instances, &plan);
    static const char *const expected[][2] = {{"i1", "5"}, {"i2", "-"}, {"-", "-"}, {"-", "7"}};
    assert_int_equal(plan.pools.len, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const char *guid = json_str(plan.pools.p[i].record, "guid");
        assert_string_equal(name_of(plan.pools.p[i].instance), expected[i][0]);
        assert_string_equal(guid ? guid : "-", expected[i][1]);
    }
    assert_int_equal(plan.unwanted.len, 2);
    assert_string_equal(kube_name(plan.unwanted.p[0]), "old");
    assert_string_equal(kube_name(plan.unwanted.p[1]), "gone");
    cspc_plan_done(&plan);
}

/* Names follow from cluster and node, are taken over from records, and never given twice. */
static void test_names(void **state)
{
    (void)state;
    json_auto_t *cluster = cluster_from("u", json_array(), "[]");
    json_auto_t *other = cluster_from("v", json_array(), "[]");
    json_auto_t *spec = pool_from("n1", "stripe:a"), *away = pool_from("n2", "stripe:b");
    json_auto_t *record = parse_quoted("{'name': 'c-before'}"), *none = json_array();
    struct cspc_pool pool = {.spec = spec}, far = {.spec = away}, known = {spec, NULL, record};
    _cleanup_free_ char *a = cspc_instance_name(cluster, &pool, none),
                        *again = cspc_instance_name(cluster, &pool, none),
                        *b = cspc_instance_name(cluster, &far, none),
                        *c = cspc_instance_name(other, &pool, none),
                        *d = cspc_instance_name(cluster, &known, none);
    assert_int_equal(strlen(a), strlen("c-12345"));
    assert_string_equal(a, again);
    assert_string_not_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_equal(d, "c-before");
    json_auto_t *taken = json_pack("[o,o]", instance_from(a, "n1", "stripe:a"),
                                   instance_from("c-before", "n2", "stripe:b"));
    _cleanup_free_ char *next = cspc_instance_name(cluster, &pool, taken),
                        *instead = cspc_instance_name(cluster, &known, taken);
    assert_string_not_equal(next, a);
    assert_string_equal(next, instead);
}

/* A pool that exists keeps its groups, whatever the spec says meanwhile: that is a change for later. */
static void test_groups(void **state)
{
    (void)state;
    json_auto_t *spec = pool_from("n1", "mirror:new,b stripe:c");
    json_auto_t *made =
        json_pack("{s:s,s:o}", "guid", "5", "raidGroups", groups_from("mirror:a,b"));
    json_auto_t *never = json_pack("{s:o}", "raidGroups", groups_from("mirror:a,b"));
    const struct {
        struct cspc_pool pool;
        const char *groups;
    } cases[] = {{{.spec = spec}, "mirror:new,b stripe:c"},
                 {{.spec = spec, .record = made}, "mirror:a,b"},
                 {{.spec = spec, .record = never}, "mirror:new,b stripe:c"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *got = cspc_instance_spec(&cases[i].pool, "n1");
        _cleanup_free_ char *text = groups_text(got);
        assert_string_equal(text, cases[i].groups);
        assert_string_equal(json_str(got, "hostName"), "n1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

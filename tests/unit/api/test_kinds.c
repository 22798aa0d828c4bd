/*
 * What admission makes of our kinds: normal form, defaults, and the updates that are allowed. What
 * it refuses, and in which words, is in tests/data/bad.
 */
#include "api/manifest.h"
#include "kinds/jiva.h"

#define META "'metadata': {'name': 'x'}"
#define CSPC(p)                                                                                    \
    "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorPoolCluster', " META                      \
    ", 'spec': {'pools': [" p "]}}"
#define POOL(node, groups)                                                                         \
    "{'nodeSelector': {'kubernetes.io/hostname': '" node "'}, 'raidGroups': [" groups "]}"
#define GROUP(type, ...) "{'type': '" type "', 'blockDevices': [" __VA_ARGS__ "]}"
#define BD(name)         "{'blockDeviceName': '" name "'}"
#define MIRROR           GROUP("mirror", BD("a") "," BD("b"))
#define CV(spec)                                                                                   \
    "{'apiVersion': 'cstor.openebs.io/v1', 'kind': 'CStorVolume', " META ", 'spec': {" spec "}}"
#define JIVA(v, rest) "{'apiVersion': 'openebs.io/" v "', 'kind': 'JivaVolume', " META ", " rest "}"

#define RESIZE(capacity)                                                                           \
    "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'JivaVolumeResize', 'metadata': {'name': "      \
    "'x', 'labels': {'jiva.openebs.io/name': 'v'}}, 'spec': {'capacity': " capacity "}}"

static void fail_with(const char *text, const struct api_report *report)
{
    fail_msg("%s\n%s: %s", text, report->problems.len ? report->problems.p[0].path : "",
             report->problems.len ? report->problems.p[0].message : "");
}

/* What admission stores, where only the part at a path of keys is compared. */
static void test_normal_form(void **state)
{
    static const struct {
        const char *text;
        const char *keys[4];
        const char *expected;
    } cases[] = {
        {CSPC(POOL("n", MIRROR)),
         {"spec", "pools"},
         "[{'nodeSelector':{'kubernetes.io/hostname':'n'},'raidGroups':[{'type':'mirror',"
         "'blockDevices':[{'blockDeviceName':'a'},{'blockDeviceName':'b'}]}],'poolConfig':{"
         "'compression':'off','roThresholdLimit':85}}]"},
        {CV("'capacity': '1Gi', 'replicationFactor': 5"),
         {"spec"},
         "{'capacity':'1Gi','replicationFactor':5,'consistencyFactor':3,"
         "'desiredReplicationFactor':5}"},
        {CV("'capacity': '1Gi', 'replicationFactor': 1.0"), {"spec", "consistencyFactor"}, "1"},
        {CV("'capacity': 1e9, 'replicationFactor': 4"),
         {"spec"},
         "{'capacity':'1000000000','replicationFactor':4,'consistencyFactor':3,"
         "'desiredReplicationFactor':4}"},
        {JIVA("v1alpha1", "'spec': {'capacity': 6, 'lun': null}"),
         {"spec"},
         "{'capacity':'6Gi','lun':0}"},
        {JIVA("v1", "'spec': {'capacity': '5G', 'iscsiSpec': {'iqn': 'iqn.2016-09.a.b:c', "
                    "'targetIP': 'fd00::1', 'targetPort': 3260}}"),
         {"spec", "iscsiSpec"},
         "{'iqn':'iqn.2016-09.a.b:c','targetIP':'fd00::1','targetPort':3260}"},
        {"{'apiVersion': 'topolvm.io/v1', 'kind': 'LogicalVolume', " META ", 'spec': {'name': 'v', "
         "'nodeName': 'n', 'size': '1Gi', 'deviceClass': 'ssd'}}",
         {"spec", "vgName"},
         "'ssd'"},
        {"{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorVolumeReplica', " META
         ", 'spec': {'capacity': '1Gi', 'compression': false}, 'status': {'capacity': "
         "{'totalAllocated': '6K'}}}",
         {"status", "capacity", "total"},
         "'6K'"},
        {"{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorVolumeReplica', " META
         ", 'spec': {'capacity': '1Gi'}, 'status': {'capacity': {'totalAllocated': true}}}",
         {"status", "capacity", "total"},
         NULL},
        /* what Go's clients write for members that nobody set */
        {"{'apiVersion': 'cstor.openebs.io/v1', 'kind': 'CStorVolumeReplica', " META
         ", 'spec': {'targetIP': '', 'capacity': '1Gi', 'zvolWorkers': '', 'replicaid': '', "
         "'compression': '', 'blockSize': 0}}",
         {"spec"},
         "{'targetIP':'','capacity':'1Gi','zvolWorkers':'','replicaid':'','compression':'',"
         "'blockSize':4096}"},
        {CSPC("{'nodeSelector': {'a': 'b'}, 'raidGroups': [{'type': '', 'blockDevices': "
              "[{'blockDeviceName': 'a', 'capacity': '', 'devLink': ''}]}], 'poolConfig': "
              "{'cacheFile': '', 'defaultRaidGroupType': 'stripe', 'compression': ''}}"),
         {"spec", "pools"},
         "[{'nodeSelector':{'a':'b'},'raidGroups':[{'type':'','blockDevices':[{'blockDeviceName':"
         "'a','devLink':''}]}],'poolConfig':{'cacheFile':'','defaultRaidGroupType':'stripe',"
         "'compression':'off','roThresholdLimit':85}}]"},
        /* another name that is null is not given, in either order */
        {CSPC("{'nodeSelector': {'a': 'b'}, 'raidGroups': [" MIRROR "], 'dataRaidGroups': null}"),
         {"spec", "pools"},
         "[{'nodeSelector':{'a':'b'},'raidGroups':[" MIRROR "],'poolConfig':{"
         "'compression':'off','roThresholdLimit':85}}]"},
        {CSPC("{'nodeSelector': {'a': 'b'}, 'dataRaidGroups': [" MIRROR "], 'raidGroups': null, "
              "'writeCacheRaidGroups': null}"),
         {"spec", "pools"},
         "[{'nodeSelector':{'a':'b'},'raidGroups':[" MIRROR "],'poolConfig':{"
         "'compression':'off','roThresholdLimit':85}}]"},
        {JIVA("v1", "'spec': {'capacity': '5G', 'iscsiSpec': {'targetIP': '10.0.0.7'}}"),
         {"spec"},
         "{'capacity':'5G','lun':0,'iscsiSpec':{'targetIP':'10.0.0.7'}}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *object = admit(cases[i].text, &report);
        if (!cases[i].expected) {
            assert_null(object); /* the alias is looked into as well */
            assert_string_equal(report.problems.p[0].path, "status.capacity.totalAllocated");
        } else {
            if (!object)
                fail_with(cases[i].text, &report);
            _cleanup_free_ char *wrapped = mem_printf("[%s]", cases[i].expected);
            json_auto_t *expected = parse_quoted(wrapped);
            _cleanup_(str_done) struct str got = {0};
            json_format(json_walk(object, cases[i].keys), &got);
            if (!json_equal(json_walk(object, cases[i].keys), json_array_get(expected, 0)))
                fail_msg("%s\nbecame %s", cases[i].text, str_get(&got));
        }
        api_report_done(&report);
    }
}

#define OTHER GROUP("mirror", BD("c") "," BD("d"))

static void test_updates_that_are_allowed(void **state)
{
    static const char *const cases[][3] = {
        {"nothing changes", CSPC(POOL("n", MIRROR)), CSPC(POOL("n", MIRROR))},
        {"a pool more", CSPC(POOL("n", MIRROR)), CSPC(POOL("n", MIRROR) "," POOL("m", OTHER))},
        {"a pool less", CSPC(POOL("n", MIRROR) "," POOL("m", OTHER)), CSPC(POOL("m", OTHER))},
        {"pools in another order", CSPC(POOL("n", MIRROR) "," POOL("m", OTHER)),
         CSPC(POOL("m", OTHER) "," POOL("n", MIRROR))},
        {"a pool moves", CSPC(POOL("n", MIRROR)), CSPC(POOL("m", MIRROR))},
        {"a pool moves and another takes its node", CSPC(POOL("n", MIRROR)),
         CSPC(POOL("m", MIRROR) "," POOL("n", OTHER))},
        {"two pools change places", CSPC(POOL("n", MIRROR) "," POOL("m", OTHER)),
         CSPC(POOL("m", MIRROR) "," POOL("n", OTHER))},
        {"a group more, and a device replaced", CSPC(POOL("n", MIRROR)),
         CSPC(POOL("n", OTHER "," GROUP("mirror", BD("b") "," BD("e"))))},
        {"one device replaced in each of two groups", CSPC(POOL("n", MIRROR "," OTHER)),
         CSPC(POOL("n",
                   GROUP("mirror", BD("a") "," BD("x")) "," GROUP("mirror", BD("y") "," BD("d"))))},
        {"devices in another order", CSPC(POOL("n", MIRROR)),
         CSPC(POOL("n", GROUP("mirror", BD("b") "," BD("a"))))},
        {"a stripe grows", CSPC(POOL("n", GROUP("stripe", BD("a")))),
         CSPC(POOL("n", GROUP("stripe", BD("b") "," BD("a") "," BD("c"))))},
        {"a volume grows", CV("'capacity': '1Gi', 'replicationFactor': 3"),
         CV("'capacity': '1.5Gi', 'replicationFactor': 3")},
        {"the same size in other words", CV("'capacity': '1Gi', 'replicationFactor': 3"),
         CV("'capacity': 1073741824, 'replicationFactor': 3")},
        {"an iqn is given", CV("'capacity': '1Gi', 'replicationFactor': 3"),
         CV("'capacity': '1Gi', 'replicationFactor': 3, 'iqn': 'iqn.2016-09.a.b:c'")},
        {"a resize's size in other words", RESIZE("'12Gi'"), RESIZE("'12288Mi'")},
        {"a resize's size as a number", RESIZE("'12Gi'"), RESIZE("12")},
        {"a volume that has grown says so under its lock",
         "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'JivaVolume', 'metadata': {'name': 'x', "
         "'annotations': {'resize.jiva.openebs.io/name': 'r'}}, 'spec': {'capacity': '6Gi'}, "
         "'status': {'capacity': '12Gi'}}",
         JIVA("v1alpha1", "'spec': {'capacity': 12}")},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *object = admit_update(cases[i][1], cases[i][2], &report);
        if (!object)
            fail_with(cases[i][0], &report);
        api_report_done(&report);
    }
}

/* A text that goes on after a NUL is not what it looks like, whatever its type. */
static void test_nul(void **state)
{
    (void)state;
    json_auto_t *object = parse_quoted(CV("'replicationFactor': 1"));
    json_t *spec = json_object_get(object, "spec");
    json_object_set_new(spec, "capacity", json_stringn("1Gi\0Ti", 6));
    struct api_report report = {0};
    const struct api_kind *kind = api_kind_of(object, &report);
    assert_false(api_admit(kind, object, NULL, API_UNKNOWN_ERROR, &report));
    assert_int_equal(report.errors, 1);
    assert_string_equal(report.problems.p[0].path, "spec.capacity");
    api_report_done(&report);
}

/* An old object that no rule of today would accept does not keep a good one from replacing it. */
static void test_old_objects_without_structure(void **state)
{
    (void)state;
    static const char *const olds[] = {
        "{}",
        "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorPoolCluster', 'metadata': 1}",
        CSPC("1"),
        CSPC(POOL("n", "{'blockDevices': [{'blockDeviceName': null}]}")),
        CSPC(POOL("n", "{'blockDevices': 'x'}, null")),
        "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorPoolCluster', 'spec': {'pools': {}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(olds); i++) {
        struct api_report report = {0};
        json_auto_t *object = admit_update(olds[i], CSPC(POOL("n", MIRROR)), &report);
        if (!object)
            fail_with(olds[i], &report);
        api_report_done(&report);
    }
}

/* Strange values in every place end in problems, not in a crash. */
static void test_any_value_anywhere(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "true", "1",  "1.5",  "''",     "'x'",
                                         "[]",   "[[]]", "{}", "[{}]", "[null]", "{'a': null}"};
    static const char *const places[] = {
        "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorPoolCluster', " META ", 'spec': %s}",
        CSPC("%s"),
        CSPC("{'writeCacheRaidGroups': %s, 'raidGroups': %s, 'poolConfig': %s}"),
        CSPC(POOL("n", "{'cspiBlockDevices': %s}")),
        "{'apiVersion': 'openebs.io/v1', 'kind': 'JivaVolume', " META ", 'spec': {'iscsiSpec': %s, "
        "'capacity': %s}, 'iscsi': %s}",
        "{'apiVersion': 'cstor.openebs.io/v1', 'kind': 'CStorVolume', " META
        ", 'spec': {'capacity': %s, 'replicationFactor': %s, 'targetPortal': %s}}",
        "{'apiVersion': %s, 'kind': %s, 'metadata': %s}",
        "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'JivaVolumeResize', 'metadata': {'name': "
        "%s, "
        "'labels': %s, 'annotations': %s}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
            struct api_report report = {0};
            _cleanup_(str_done) struct str text = {0};
            for (const char *p = places[i]; *p; p++) {
                if (p[0] == '%' && p[1] == 's') {
                    str_append(&text, values[j]);
                    p++;
                } else {
                    str_append_c(&text, *p);
                }
            }
            json_auto_t *object = admit(str_get(&text), &report);
            assert_true(object || report.errors);
            api_report_done(&report);
        }
    }
}

/* A volume says in both forms how it is reached; what ours says counts. */
static void test_both_forms_of_an_address(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"'spec': {}", "{'iqn':'iqn.2016-09.com.openebs.jiva:x'}",
         "{'iqn':'iqn.2016-09.com.openebs.jiva:x'}"},
        {"'spec': {'iscsiSpec': {'iqn': 'iqn.2016-09.a.b:c', 'targetIP': 'fd00::1', 'targetPort': "
         "3260}}",
         "{'iqn':'iqn.2016-09.a.b:c','targetPortal':'[fd00::1]:3260'}",
         "{'iqn':'iqn.2016-09.a.b:c','targetIP':'fd00::1','targetPort':3260}"},
        {"'spec': {'iscsiSpec': {'targetIP': '10.0.0.7', 'targetPort': 3260}}, 'iscsi': {'iqn': "
         "'iqn.2016-09.a.b:c', 'targetPortal': '10.0.0.8:3261'}",
         "{'iqn':'iqn.2016-09.a.b:c','targetPortal':'10.0.0.8:3261'}",
         "{'iqn':'iqn.2016-09.a.b:c','targetIP':'10.0.0.8','targetPort':3261}"},
        {"'spec': {'iscsiSpec': {'targetIP': '10.0.0.7'}}",
         "{'iqn':'iqn.2016-09.com.openebs.jiva:x'}", "{'iqn':'iqn.2016-09.com.openebs.jiva:x'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("{" META ", %s}", cases[i][0]);
        json_auto_t *volume = parse_quoted(text), *ours = parse_quoted(cases[i][1]),
                    *theirs = parse_quoted(cases[i][2]), *iscsi = api_jiva_iscsi(volume),
                    *published = api_jiva_iscsi_published(iscsi);
        if (!json_equal(iscsi, ours) || !json_equal(published, theirs))
            fail_msg("%s", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_form),
        cmocka_unit_test(test_updates_that_are_allowed),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_old_objects_without_structure),
        cmocka_unit_test(test_any_value_anywhere),
        cmocka_unit_test(test_both_forms_of_an_address),
    };
    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}

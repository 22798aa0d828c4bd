#include "base/str.h"
#include "controllers/topolvm/capacity.h"
#include "controllers/topolvm/topolvm.h"
#include "jsontest.h"

#define MI ((int64_t)1 << 20)
#define GI ((int64_t)1 << 30)

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t bytes;
    } cases[] = {{"'1Gi'", GI}, {"1048576", MI}, {"'1500m'", 2}, {"'x'", 0},          {"null", 0},
                 {"true", 0},   {"'0'", 0},      {"'8Ei'", 0},   {"'7Ei'", 7ll << 60}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("[%s]", cases[i].value);
        json_auto_t *value = parse_quoted(text);
        assert_int_equal(api_quantity_int(json_array_get(value, 0)), cases[i].bytes);
    }
    assert_int_equal(api_quantity_int(NULL), 0);
}

static void test_round(void **state)
{
    (void)state;
    static const int64_t cases[][2] = {{0, 0},
                                       {-5, 0},
                                       {1, 4 * MI},
                                       {4 * MI, 4 * MI},
                                       {4 * MI + 1, 8 * MI},
                                       {INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(topolvm_round(cases[i][0]), cases[i][1]);
}

/* What a volume will yet take of what its node says is free. */
static void test_pending(void **state)
{
    (void)state;
    static const struct {
        const char *lv;
        int64_t bytes;
    } cases[] = {
        {"{'spec': {'size': '1Gi'}}", GI},
        {"{'spec': {'size': '1'}}", 4 * MI},
        {"{'spec': {'size': '1Gi'}, 'status': {'volumeID': ''}}", GI},
        {"{'spec': {'size': '1Gi'}, 'status': {'volumeID': 'a', 'currentSize': '1Gi'}}", 0},
        {"{'spec': {'size': '3Gi'}, 'status': {'volumeID': 'a', 'currentSize': '1Gi'}}", 2 * GI},
        {"{'spec': {'size': '1Gi'}, 'status': {'volumeID': 'a', 'currentSize': '2Gi'}}", 0},
        /* A node that failed will try again; one that refused waits to be asked. */
        {"{'spec': {'size': '1Gi'}, 'status': {'code': 13}}", GI},
        {"{'spec': {'size': '1Gi'}, 'status': {'code': 8}}", 0},
        {"{'spec': {'size': '3Gi'}, 'status': {'volumeID': 'a', 'currentSize': '1Gi', 'code': 11}}",
         0},
        /* One that is deleted may be being made. */
        {"{'metadata': {'deletionTimestamp': 'x'}, 'spec': {'size': '1Gi'}}", GI},
        {"{}", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *json = parse_quoted(cases[i].lv);
        struct logical_volume lv = logical_volume_of(json);
        assert_int_equal(topolvm_pending(&lv), cases[i].bytes);
    }
}

#define CLASSES                                                                                    \
    "'topolvm.io/device-classes': '[{\\'name\\':\\'ssd\\',\\'vg\\':\\'vg1\\',\\'default\\':true}," \
    "{\\'name\\':\\'hdd\\',\\'vg\\':\\'vg2\\'}]'"

/* A node with these annotations: \' becomes \". */
static json_t *node_with(const char *annotations)
{
    _cleanup_free_ char *text =
        mem_printf("{'metadata': {'name': 'n', 'annotations': {%s}}}", annotations);
    return parse_quoted(text);
}

static void test_what_is_free(void **state)
{
    (void)state;
    static const struct {
        const char *annotations, *class;
        int64_t bytes; /* -1: it says nothing of such a class */
    } cases[] = {
        {"", "ssd", -1},
        {"'capacity.topolvm.io/ssd': '5'", "ssd", 5},
        {"'capacity.topolvm.cybozu.com/ssd': '6'", "ssd", 6},
        {"'capacity.topolvm.io/ssd': '5', 'capacity.topolvm.cybozu.com/ssd': '6'", "ssd", 5},
        {"'capacity.topolvm.io/ssd': 'much'", "ssd", -1},
        {"'capacity.topolvm.io/ssd': '-1'", "ssd", -1},
        {"'capacity.topolvm.io/ssd': '9223372036854775807'", "ssd", INT64_MAX},
        {"'capacity.topolvm.io/ssd': '5'", "hdd", -1},
        {"'capacity.topolvm.io/00default': '7'", "", 7},
        /* By the volume group, and by what is the default. */
        {CLASSES ", 'capacity.topolvm.io/ssd': '5', 'capacity.topolvm.io/hdd': '8'", "vg2", 8},
        {CLASSES ", 'capacity.topolvm.io/ssd': '5', 'capacity.topolvm.io/hdd': '8'", "", 5},
        {CLASSES ", 'capacity.topolvm.io/ssd': '5'", "vg2", -1},
        {"'topolvm.io/device-classes': 'nonsense', 'capacity.topolvm.io/ssd': '5'", "ssd", 5},
        {"'topolvm.io/device-classes': '{}', 'capacity.topolvm.io/00default': '5'", "", 5},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *node = node_with(cases[i].annotations);
        int64_t bytes = -1;
        bool known = topolvm_free(node, cases[i].class, &bytes);
        assert_int_equal(known ? bytes : -1, cases[i].bytes);
    }
}

static void test_class_at(void **state)
{
    (void)state;
    static const struct {
        const char *annotations, *wanted, *name;
    } cases[] = {
        {"", "", "00default"},
        {"", "x", "x"},
        {CLASSES, "", "ssd"},
        {CLASSES, "ssd", "ssd"},
        {CLASSES, "vg1", "ssd"},
        {CLASSES, "vg2", "hdd"},
        {CLASSES, "x", "x"},
        /* What has a capacity of its own is a class, though a group is called so too. */
        {CLASSES ", 'capacity.topolvm.io/vg2': '1'", "vg2", "vg2"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *node = node_with(cases[i].annotations), *classes = topolvm_classes(node);
        assert_string_equal(topolvm_class_at(node, classes, cases[i].wanted), cases[i].name);
    }
}

static void test_class_of(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", ""},
        {"{'parameters': {'topolvm.io/device-class': 'a'}}", "a"},
        {"{'parameters': {'topolvm.cybozu.com/device-class': 'b'}}", "b"},
        {"{'parameters': {'topolvm.io/volume-group': 'c'}}", "c"},
        {"{'parameters': {'topolvm.io/volume-group': 'c', 'topolvm.io/device-class': 'a'}}", "a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *class = parse_quoted(cases[i][0]);
        assert_string_equal(topolvm_class_of(class), cases[i][1]);
    }
}

static void test_volume(void **state)
{
    (void)state;
    static const struct {
        const char *labels, *policy, *topology;
        bool finalizer;
    } cases[] = {
        {"{}", "Delete", "{'kubernetes.io/hostname': 'n'}", true},
        {"{'kubernetes.io/hostname': 'h'}", "Delete", "{'kubernetes.io/hostname': 'h'}", true},
        {"{'topology.topolvm.cybozu.com/node': 'c', 'kubernetes.io/hostname': 'h'}", "Retain",
         "{'topology.topolvm.cybozu.com/node': 'c'}", false},
        {"{'topology.topolvm.io/node': 't', 'topology.topolvm.cybozu.com/node': 'c'}", "Retain",
         "{'topology.topolvm.io/node': 't'}", false},
    };
    json_auto_t *claim = parse_quoted(
        "{'metadata': {'namespace': 'a', 'name': 'c', 'uid': 'u', 'resourceVersion': '5'}, 'spec': "
        "{'accessModes': ['ReadWriteOnce'], 'volumeMode': 'Filesystem'}}");
    json_auto_t *lv = parse_quoted("{'spec': {'name': 'pvc-u'}, 'status': {'volumeID': 'id', "
                                   "'currentSize': '4Mi'}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *of = mem_printf(
            "{'metadata': {'name': 's'}, 'provisioner': 'topolvm.io', 'reclaimPolicy': '%s', "
            "'parameters': {'csi.storage.k8s.io/fstype': 'xfs'}}",
            cases[i].policy);
        _cleanup_free_ char *at =
            mem_printf("{'metadata': {'name': 'n', 'labels': %s}}", cases[i].labels);
        json_auto_t *class = parse_quoted(of), *node = parse_quoted(at);
        json_auto_t *topology = topolvm_topology(node), *wanted = parse_quoted(cases[i].topology);
        assert_json(topology, wanted, cases[i].labels);
        json_auto_t *volume = topolvm_make_volume(claim, class, lv, node);
        assert_non_null(volume);
        assert_string_equal(kube_name(volume), "pvc-u");
        assert_string_equal(json_str(json_at(volume, "spec", "csi"), "fsType"), "xfs");
        assert_string_equal(json_str(json_at(volume, "spec", "claimRef"), "uid"), "u");
        assert_int_equal(!!json_at(volume, "metadata", "finalizers"), cases[i].finalizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_round),
        cmocka_unit_test(test_pending),  cmocka_unit_test(test_what_is_free),
        cmocka_unit_test(test_class_at), cmocka_unit_test(test_class_of),
        cmocka_unit_test(test_volume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

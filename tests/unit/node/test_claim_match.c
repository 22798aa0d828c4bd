/*
 * Which device a claim gets, and what it is told when there is none.
 */
#include "base/mem.h"
#include "base/str.h"
#include "node/claim_match.h"
#include "unit.h"

static json_t *parse(const char *text)
{
    struct err e = {0};
    json_t *value = json_parse(text, strlen(text), NULL, &e);
    if (!value)
        fail_msg("%s: %s", e.msg, text);
    return value;
}

#define DEVICE(name, node, size, more, labels, status)                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"kubernetes.io/hostname\":\"host-" node     \
    "\"" labels "}},\"spec\":{\"nodeAttributes\":{\"nodeName\":\"" node                            \
    "\"},\"capacity\":{\"storage\":" size "}" more "},\"status\":{" status "}}"
#define FREE                                                                                       \
    "\"state\":\"Active\",\"claimState\":\"Unclaimed\",\"conditions\":[{\"type\":\"Claimable\","   \
    "\"status\":\"True\"}]"
#define TYPE(t) ",\"details\":{\"deviceType\":\"" t "\"}"

static const char *const devices[] = {
    DEVICE("large", "n1", "4000", TYPE("disk"), "", FREE),
    DEVICE("small-b", "n2", "1000", TYPE("disk"), "", FREE),
    DEVICE("small-a", "n1", "1000", TYPE("disk"), "", FREE),
    DEVICE("sparse", "n1", "500", TYPE("sparse"), "", FREE),
    DEVICE("part", "n1", "500", TYPE("partition"), "", FREE),
    DEVICE("tagged", "n1", "500", TYPE("disk"), ",\"openebs.io/block-device-tag\":\"fast\"", FREE),
    DEVICE("claimed", "n1", "500", TYPE("disk") ",\"claimRef\":{\"name\":\"x\",\"uid\":\"u1\"}", "",
           FREE),
    DEVICE("released", "n1", "500", TYPE("disk"), "",
           "\"state\":\"Active\",\"claimState\":\"Released\""),
    DEVICE("gone", "n1", "500", TYPE("disk"), "",
           "\"state\":\"Inactive\",\"claimState\":\"Unclaimed\""),
    DEVICE("used", "n1", "500", TYPE("disk"), "",
           "\"state\":\"Active\",\"claimState\":\"Unclaimed\",\"conditions\":[{\"type\":"
           "\"Claimable\",\"status\":\"False\"}]"),
    DEVICE("foreign", "n3", "500", TYPE("disk") ",\"filesystem\":{\"fsType\":\"ext4\"}", "",
           "\"state\":\"Active\",\"claimState\":\"Unclaimed\""),
    DEVICE("ndm", "n3", "9000", TYPE("disk") ",\"partitioned\":\"No\"", "",
           "\"state\":\"Active\",\"claimState\":\"Unclaimed\""),
    DEVICE("nonsense", "n1", "\"many\"", TYPE("disk"), "", FREE),
};
enum { N = sizeof(devices) / sizeof(devices[0]) };

#define SIZE(s) "\"resources\":{\"requests\":{\"storage\":" s "}}"

static const struct {
    const char *spec, *device, *reason, *keeper;
} cases[] = {
    {SIZE("\"100\""), "small-a", NULL, NULL}, /* the smallest, and of two the first by name */
    {SIZE("1000"), "small-a", NULL, NULL},
    {SIZE("1001"), "large", NULL, NULL},
    {SIZE("\"5k\""), "ndm", NULL, NULL},
    {SIZE("\"1Gi\""), NULL, "TooSmall", "n1"},
    {SIZE("100") ",\"blockDeviceNodeAttributes\":{\"nodeName\":\"n2\"}", "small-b", NULL, NULL},
    {SIZE("100") ",\"blockDeviceNodeAttributes\":{\"hostName\":\"host-n2\"}", "small-b", NULL,
     NULL},
    {SIZE("100") ",\"hostName\":\"host-n2\"", "small-b", NULL, NULL},
    {SIZE("2000") ",\"hostName\":\"host-n2\"", NULL, "TooSmall", "n2"},
    {SIZE("100") ",\"hostName\":\"nowhere\"", NULL, "OtherNode", "n1"},
    {SIZE("100") ",\"deviceType\":\"sparse\"", "sparse", NULL, NULL},
    {SIZE("100") ",\"deviceType\":\"partition\"", "part", NULL, NULL},
    {SIZE("100") ",\"deviceClaimDetails\":{\"allowPartition\":true}", "part", NULL, NULL},
    {SIZE("100") ",\"deviceType\":\"blockdevice\"", "small-a", NULL, NULL},
    {SIZE("100") ",\"deviceType\":\"tape\"", NULL, "OtherType", "n1"},
    {SIZE("100") ",\"selector\":{\"matchLabels\":{\"openebs.io/block-device-tag\":\"fast\"}}",
     "tagged", NULL, NULL},
    {SIZE("100") ",\"selector\":{\"matchLabels\":{\"openebs.io/block-device-tag\":\"slow\"}}", NULL,
     "OtherLabels", "n1"},
    {SIZE(
         "100") ",\"selector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Sometimes\"}]}",
     NULL, "InvalidSelector", "n1"},
    {SIZE("100") ",\"selector\":{}", "small-a", NULL, NULL},
    {"\"blockDeviceName\":\"sparse\"", "sparse", NULL, NULL},
    {"\"blockDeviceName\":\"part\"", "part", NULL, NULL},
    {"\"blockDeviceName\":\"tagged\"", "tagged", NULL, NULL},
    {"\"blockDeviceName\":\"large\"," SIZE("5000"), NULL, "TooSmall", "n1"},
    {"\"blockDeviceName\":\"claimed\"", NULL, "Claimed", "n1"},
    {"\"blockDeviceName\":\"released\"", NULL, "Claimed", "n1"},
    {"\"blockDeviceName\":\"gone\"", NULL, "Inactive", "n1"},
    {"\"blockDeviceName\":\"used\"", NULL, "NotClaimable", "n1"},
    {"\"blockDeviceName\":\"foreign\"", NULL, "NotClaimable", "n3"},
    {"\"blockDeviceName\":\"ndm\"", "ndm", NULL, NULL},
    {"\"blockDeviceName\":\"nonsense\"", NULL, "TooSmall", "n1"},
    {"\"blockDeviceName\":\"none\"", NULL, "NotFound", "n1"},
    {"\"blockDeviceName\":\"large\",\"hostName\":\"host-n2\"", NULL, "OtherNode", "n1"},
    {"", NULL, "InvalidCapacityRequest", "n1"},
    {SIZE("0"), NULL, "InvalidCapacityRequest", "n1"},
    {SIZE("-5"), NULL, "InvalidCapacityRequest", "n1"},
    {SIZE("\"1.5\""), NULL, "InvalidCapacityRequest", "n1"},
    {"\"blockDeviceName\":\"large\"," SIZE("\"x\""), NULL, "InvalidCapacityRequest", "n1"},
};

static void test_match(void **state)
{
    (void)state;
    json_t *all[N];
    for (size_t i = 0; i < N; i++)
        all[i] = parse(devices[i]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *text =
            mem_printf("{\"metadata\":{\"name\":\"c\"},\"spec\":{%s}}", cases[i].spec);
        json_auto_t *claim = parse(text);
        /* In any order it is the same. */
        for (size_t turn = 0; turn < N; turn++) {
            json_t *turned[N];
            for (size_t k = 0; k < N; k++)
                turned[k] = all[(k + turn) % N];
            struct node_match match;
            const json_t *const *list = (const json_t *const *)turned;
            node_claim_match(claim, list, N, &match);
            const char *got =
                match.device ? json_str(json_object_get(match.device, "metadata"), "name") : NULL;
            if ((got == NULL) != (cases[i].device == NULL) ||
                (got && !str_eq(got, cases[i].device)))
                fail_msg("%s: %s", cases[i].spec, got ? got : match.message);
            if (got)
                continue;
            if (!str_eq(match.reason, cases[i].reason) || !match.message[0])
                fail_msg("%s: %s: %s", cases[i].spec, match.reason, match.message);
            assert_string_equal(node_claim_keeper(claim, list, N), cases[i].keeper);
        }
    }
    for (size_t i = 0; i < N; i++)
        json_decref(all[i]);
}

static void test_nothing(void **state)
{
    (void)state;
    json_auto_t *claim = parse("{\"spec\":{" SIZE("1") "}}");
    struct node_match match;
    node_claim_match(claim, NULL, 0, &match);
    assert_null(match.device);
    assert_string_equal(match.reason, "NoDevice");
    assert_null(node_claim_keeper(claim, NULL, 0));
}

static void test_message(void **state)
{
    (void)state;
    json_t *all[] = {parse(devices[0]), parse(devices[6]), parse(devices[7])};
    json_auto_t *claim = parse("{\"spec\":{" SIZE("\"1Gi\"") "}}");
    struct node_match match;
    node_claim_match(claim, (const json_t *const *)all, 3, &match);
    assert_string_equal(match.message,
                        "no device fits; of 3: 1 too small, 2 claimed or not yet cleaned");
    for (size_t i = 0; i < 3; i++)
        json_decref(all[i]);
}

static void test_claimed_by(void **state)
{
    (void)state;
    json_auto_t *device = parse(devices[6]);
    assert_true(node_device_is_claimed_by(device, "u1"));
    assert_false(node_device_is_claimed_by(device, "u2"));
    json_auto_t *free_one = parse(devices[0]);
    assert_false(node_device_is_claimed_by(free_one, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_claimed_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

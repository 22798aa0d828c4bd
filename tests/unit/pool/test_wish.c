/*
 * From objects to a wish, and from a pool to a report.
 */
#include "base/str.h"
#include "pool/impl.h"
#include "unit.h"

static json_t *objects; /* name -> object, of both kinds */

static json_t *get(void *context, const char *name)
{
    (void)context;
    return json_deep_copy(json_object_get(objects, name));
}

static const struct pool_lookup lookup = {get, get, NULL};

static json_t *parse(const char *text)
{
    struct err e = {0};
    json_t *value = json_parse(text, strlen(text), NULL, &e);
    if (!value)
        fail_msg("%s: %s", text, e.msg);
    return value;
}

/* A device that is as it should be, and its claim; more is merged into the device. */
static void add_device(const char *name, const char *more, const char *claim_more)
{
    _cleanup_free_ char *device =
        mem_printf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"path\":\"/d/"
                   "%s\",\"nodeAttributes\":{\"nodeName\":\"n1\"},"
                   "\"claimRef\":{\"name\":\"bdc-%s\",\"uid\":\"u-%s\"}},"
                   "\"status\":{\"state\":\"Active\",\"claimState\":\"Claimed\"}}",
                   name, name, name, name);
    _cleanup_free_ char *claim =
        mem_printf("{\"metadata\":{\"name\":\"bdc-%s\",\"uid\":\"u-%s\",\"labels\":"
                   "{\"openebs.io/cstor-pool-cluster\":\"c1\"}}}",
                   name, name);
    _cleanup_free_ char *claim_name = mem_printf("bdc-%s", name);
    json_t *d = parse(device), *c = parse(claim);
    json_auto_t *dm = parse(more), *cm = parse(claim_more);
    json_object_update_recursive(d, dm);
    json_object_update_recursive(c, cm);
    json_object_set_new(objects, name, d);
    json_object_set_new(objects, claim_name, c);
}

static const char INSTANCE[] =
    "{\"apiVersion\":\"openebs.io/v1alpha1\",\"kind\":\"CStorPoolInstance\","
    "\"metadata\":{\"name\":\"p\",\"namespace\":\"openebs\",\"uid\":\"uid-1\","
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
    "\"labels\":{\"openebs.io/cstor-pool-cluster\":\"c1\"},"
    "\"finalizers\":[\"cstorpoolinstance.openebs.io/finalizer\"]},"
    "\"spec\":{\"hostName\":\"n1\",\"poolConfig\":{\"defaultRaidGroupType\":\"mirror\","
    "\"compression\":\"lz4\",\"roThresholdLimit\":70},"
    "\"raidGroups\":[{\"blockDevices\":[{\"blockDeviceName\":\"a\"},{\"blockDeviceName\":\"b\"}]},"
    "{\"type\":\"stripe\",\"isSpare\":true,\"blockDevices\":[{\"blockDeviceName\":\"s\"}]}]},"
    "\"status\":{\"guid\":\"12345678901234567890\",\"readOnly\":true,"
    "\"capacity\":{\"used\":\"3Gi\",\"total\":\"4Gi\"},"
    "\"devices\":[{\"blockDeviceName\":\"a\",\"guid\":\"7\"},{\"blockDeviceName\":\"old\",\"guid\":"
    "\"9\"}]}}";

static struct pool_wish *wish_of(const char *more)
{
    struct err e = {0};
    json_auto_t *object = parse(INSTANCE), *m = parse(more);
    json_object_update_recursive(object, m);
    const struct pool_options o = {.scrub_ns = 3600 * CLOCK_SECOND};
    struct pool_wish *w = pool_wish_new(object, &o, &lookup, &e);
    if (!w)
        assert_string_equal(e.reason, "InvalidSpec");
    return w;
}

static void test_wish(void **state)
{
    (void)state;
    objects = json_object();
    add_device("a", "{}", "{}");
    add_device("b", "{}",
               "{\"metadata\":{\"annotations\":{\"openebs.io/bd-predecessor\":\"was\"}}}");
    add_device("s", "{}", "{}");
    struct pool_wish *w = wish_of("{}");
    assert_string_equal(w->name, "cstor-uid-1");
    assert_true(w->guid == 12345678901234567890ULL);
    assert_string_equal(w->compression, "lz4");
    assert_int_equal(w->read_only_percent, 70);
    assert_int_equal(w->used_percent, 75);
    assert_true(w->was_read_only && w->guarded && !w->destroy && !w->existing);
    assert_int_equal(w->scrub_due, 1767225600 + 3600);
    assert_int_equal(w->n_groups, 2);
    assert_int_equal(w->groups[0].type, ZPOOL_MIRROR);
    assert_int_equal(w->groups[1].role, ZPOOL_ROLE_SPARE);
    assert_int_equal(w->n_devices, 3);
    assert_int_equal(w->devices[0].guid, 7);
    assert_string_equal(w->devices[1].predecessor, "was");
    for (size_t i = 0; i < 3; i++)
        assert_null(w->devices[i].not_ready);
    assert_int_equal(w->n_others, 2); /* what is replaced, and what the object remembers */
    assert_string_equal(w->others[0].name, "was");
    assert_string_equal(w->others[1].name, "old");
    assert_int_equal(w->others[1].guid, 9);
    struct pool_wish *same = wish_of("{}");
    assert_string_equal(str_get(&same->text), str_get(&w->text));
    struct pool_wish *other = wish_of("{\"spec\":{\"poolConfig\":{\"compression\":\"off\"}}}");
    assert_string_not_equal(str_get(&other->text), str_get(&w->text));
    pool_wish_unref(other);
    pool_wish_unref(same);
    pool_wish_unref(w);
    assert_null(wish_of("{\"spec\":{\"raidGroups\":[]}}"));
    json_decref(objects);
}

/* An instance that was made anew knows its pool before it has a status; what its status says counts more. */
static void test_guid_of_a_new_instance(void **state)
{
    (void)state;
    objects = json_object();
    struct pool_wish *both =
        wish_of("{\"metadata\":{\"annotations\":{\"" API_POOL_GUID "\":\"42\"}}}");
    assert_true(both->guid == 12345678901234567890ULL);
    struct pool_wish *noted =
        wish_of("{\"metadata\":{\"annotations\":{\"" API_POOL_GUID "\":\"42\"}},"
                "\"status\":{\"guid\":\"\"}}");
    assert_int_equal(noted->guid, 42);
    struct pool_wish *none = wish_of("{\"status\":{\"guid\":\"\"}}");
    assert_int_equal(none->guid, 0);
    pool_wish_unref(none);
    pool_wish_unref(noted);
    pool_wish_unref(both);
    json_decref(objects);
}

/* Devices that may not be added, and why. */
static void test_not_ready(void **state)
{
    (void)state;
    static const struct {
        const char *device, *claim, *says;
    } table[] = {
        {"{}", "{}", NULL},
        {"{\"status\":{\"state\":\"Inactive\"}}", "{}", "is Inactive"},
        {"{\"status\":{\"claimState\":\"Unclaimed\"}}", "{}", "no claim has"},
        {"{\"status\":{\"claimState\":\"Released\"}}", "{}", "no claim has"},
        {"{\"spec\":{\"claimRef\":{\"uid\":\"another\"}}}", "{}", "no claim has"},
        {"{\"spec\":{\"nodeAttributes\":{\"nodeName\":\"n2\"}}}", "{}", "is on node n2"},
        {"{\"spec\":{\"path\":\"\"}}", "{}", "does not say its path"},
        {"{}", "{\"metadata\":{\"labels\":{\"openebs.io/cstor-pool-cluster\":\"c2\"}}}",
         "not of cluster c1"},
        {"{}", "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}", "no claim has"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        objects = json_object();
        add_device("a", table[i].device, table[i].claim);
        add_device("b", "{}", "{}");
        struct pool_wish *w = wish_of("{}");
        const char *why = w->devices[0].not_ready;
        if (!why != !table[i].says || (why && !strstr(why, table[i].says)))
            fail_msg("%s %s: %s", table[i].device, table[i].claim, why ? why : "(ready)");
        assert_non_null(strstr(w->devices[2].not_ready, "there is no BlockDevice s"));
        pool_wish_unref(w);
        json_decref(objects);
    }
}

/* A report of a pool with a replacement under way. */
static void test_report(void **state)
{
    (void)state;
    objects = json_object();
    add_device("a", "{}", "{}");
    add_device("b", "{}",
               "{\"metadata\":{\"annotations\":{\"openebs.io/bd-predecessor\":\"was\"}}}");
    add_device("was", "{}", "{}");
    add_device("s", "{}", "{}");
    struct pool_wish *w = wish_of("{}");
    struct zpool_vdev rows[] = {
        {.type = "root", .parent = -1},
        {.type = "mirror", .parent = 0},
        {.type = "file", .path = "/d/a", .parent = 1, .guid = 7, .checksum_errors = 3},
        {.type = "replacing", .parent = 1},
        {.type = "file",
         .path = "/d/was",
         .parent = 3,
         .guid = 8,
         .state = ZPOOL_UNAVAILABLE,
         .why = "it cannot be opened"},
        {.type = "file", .path = "/d/b", .parent = 3, .guid = 10, .behind = true},
        {.type = "file", .path = "/d/s", .parent = -1, .role = ZPOOL_ROLE_SPARE, .guid = 11},
    };
    struct zpool_status s = {.state = ZPOOL_DEGRADED,
                             .used = 1 << 30,
                             .available = 3U << 30,
                             .vdevs = rows,
                             .n_vdevs = 7,
                             .scan = {.kind = ZPOOL_SCAN_RESILVER,
                                      .state = ZPOOL_SCAN_RUNNING,
                                      .percent = 41.7,
                                      .eta_s = 20}};
    const struct err none = {0};
    struct pool_facts f = {.wish = w,
                           .status = &s,
                           .guid = 5,
                           .why = &none,
                           .adding = &none,
                           .replacing = &none,
                           .answered = {"", ""}};
    json_auto_t *report = pool_report(&f);
    assert_string_equal(json_str(report, "phase"), "DEGRADED");
    assert_string_equal(json_str(json_object_get(report, "capacity"), "total"), "4Gi");
    assert_int_equal(json_array_size(json_object_get(report, "devices")), 4);
    assert_string_equal(json_str(json_object_get(report, "resilver"), "blockDeviceName"), "b");
    assert_int_equal(json_integer_value(json_at(report, "resilver", "percent")), 41);
    assert_int_equal(json_integer_value(json_at(report, "resilver", "remainingSeconds")), 20);
    assert_int_equal(json_array_size(json_object_get(report, "replaced")), 0);
    const json_t *c = json_object_get(report, "conditions");
    assert_string_equal(json_str(json_object_get(c, "DiskReplacement"), "status"), "True");
    assert_non_null(strstr(json_str(json_object_get(c, "DiskReplacement"), "message"), "41 %"));
    assert_non_null(
        strstr(json_str(json_object_get(c, "DiskUnavailable"), "message"), "was (/d/was)"));
    assert_string_equal(json_str(json_object_get(c, "Available"), "status"), "True");
    /* And when it is over. */
    rows[3] = rows[5];
    rows[3].parent = 1;
    rows[3].behind = false;
    rows[4] = rows[6];
    s.n_vdevs = 5;
    s.scan.state = ZPOOL_SCAN_DONE;
    json_auto_t *later = pool_report(&f);
    assert_null(json_object_get(later, "resilver"));
    assert_string_equal(json_string_value(json_array_get(json_object_get(later, "replaced"), 0)),
                        "b");
    /* A pool that does not answer, and none. */
    s.suspended = true;
    json_auto_t *suspended = pool_report(&f);
    assert_string_equal(json_str(suspended, "phase"), "FAULTED");
    c = json_object_get(suspended, "conditions");
    assert_string_equal(json_str(json_object_get(c, "PoolLost"), "status"), "True");
    struct err why = {0};
    err_set(&why, ERR_NOT_FOUND, "PoolNotFound", "it is not there");
    f = (struct pool_facts){.wish = w,
                            .phase = "UNAVAIL",
                            .why = &why,
                            .adding = &none,
                            .replacing = &none,
                            .answered = {"", ""}};
    json_auto_t *lost = pool_report(&f);
    assert_string_equal(json_str(lost, "phase"), "UNAVAIL");
    assert_null(json_object_get(lost, "devices")); /* what the object remembers stays */
    c = json_object_get(lost, "conditions");
    assert_string_equal(json_str(json_object_get(c, "PoolLost"), "reason"), "PoolNotFound");
    pool_wish_unref(w);
    json_decref(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wish),
        cmocka_unit_test(test_guid_of_a_new_instance),
        cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

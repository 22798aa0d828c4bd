/*
 * Import, create or neither, by what the object says and what is on its devices.
 */
#include <errno.h>

#include "pool/pooltest.h"

enum { OURS = 77, OTHERS = 88 };

/* What a letter means of a device. */
static struct zpool_found found_of(char c)
{
    struct zpool_found f = {.size = 1 << 30, .device_guid = (uint64_t)c};
    const char *name = "cstor-uid";
    f.pool_guid = OURS;
    f.complete = true;
    switch (c) {
    case '.': /* empty */
        return (struct zpool_found){.size = 1 << 30};
    case 'e': /* ext4 */
        f = (struct zpool_found){.label = ZPOOL_LABEL_FOREIGN, .size = 1 << 30};
        snprintf(f.what, sizeof(f.what), "ext4");
        return f;
    case '!': /* cannot be read */
        return (struct zpool_found){.error = EIO};
    case 'M': /* of our pool */
        f.label = ZPOOL_LABEL_MEMBER;
        break;
    case 'N': /* of another pool with our name */
        f.label = ZPOOL_LABEL_MEMBER;
        f.pool_guid = OTHERS;
        break;
    case 'm': /* of our pool, which was never complete */
        f.label = ZPOOL_LABEL_MEMBER;
        f.complete = false;
        break;
    case 'f': /* was of our pool */
        f.label = ZPOOL_LABEL_FORMER;
        break;
    case 'F': /* was of another pool */
    case 'O': /* is of another pool */
        f.label = c == 'F' ? ZPOOL_LABEL_FORMER : ZPOOL_LABEL_MEMBER;
        f.pool_guid = OTHERS;
        name = "tank";
        break;
    case 'S': /* somebody's spare */
        f.label = ZPOOL_LABEL_SPARE;
        f.pool_guid = 0;
        name = "";
        break;
    default:
        fail_msg("there is no '%c'", c);
    }
    snprintf(f.pool_name, sizeof(f.pool_name), "%s", name);
    return f;
}

static const struct {
    const char *devices;
    uint64_t guid; /* that the object has */
    enum pool_verdict_kind kind;
    const char *phase, *reason;
} table[] = {
    {"..", 0, POOL_CREATE, NULL, NULL},
    {"mm", 0, POOL_CREATE, NULL, NULL},
    {"m.", 0, POOL_CREATE, NULL, NULL},
    {"f.", 0, POOL_CREATE, NULL, NULL},
    {"MM", 0, POOL_IMPORT, NULL, NULL},
    {"M.", 0, POOL_IMPORT, NULL, NULL}, /* the other is for it to add */
    {"Mm", 0, POOL_IMPORT, NULL, NULL},
    {"M!", 0, POOL_IMPORT, NULL, NULL},
    {"Me", 0, POOL_IMPORT, NULL, NULL},
    {"MN", 0, POOL_REFUSE, "ErrorDuplicate", "TwoPools"},
    {".!", 0, POOL_WAIT, "Pending", "DeviceUnreadable"},
    {".e", 0, POOL_REFUSE, "PoolCreationFailed", "DeviceNotEmpty"},
    {"!e", 0, POOL_REFUSE, "PoolCreationFailed", "DeviceNotEmpty"},
    {".O", 0, POOL_REFUSE, "PoolCreationFailed", "DeviceHasPool"},
    {".F", 0, POOL_REFUSE, "PoolCreationFailed", "DeviceHasPool"},
    {".S", 0, POOL_REFUSE, "PoolCreationFailed", "DeviceHasPool"},
    {"MM", OURS, POOL_IMPORT, NULL, NULL},
    {"!M", OURS, POOL_IMPORT, NULL, NULL},
    {"eM", OURS, POOL_IMPORT, NULL, NULL},
    {"..", OURS, POOL_WAIT, "UNAVAIL", "PoolNotFound"},
    {"ff", OURS, POOL_WAIT, "UNAVAIL", "PoolNotFound"},
    {"OO", OURS, POOL_WAIT, "UNAVAIL", "PoolNotFound"},
    {"NN", OURS, POOL_WAIT, "UNAVAIL", "PoolNotFound"},
    {"!.", OURS, POOL_WAIT, "UNAVAIL", "DevicesUnreadable"},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct test_wish t;
        struct pool_wish *w = test_wish(&t, "mirror a b");
        const struct zpool_found found[] = {found_of(table[i].devices[0]),
                                            found_of(table[i].devices[1])};
        struct pool_verdict v;
        w->guid = table[i].guid;
        pool_judge(w, found, &v);
        if (v.kind != table[i].kind)
            fail_msg("%s with %lu: %d, not %d", table[i].devices, w->guid, v.kind, table[i].kind);
        if (v.kind == POOL_IMPORT)
            assert_int_equal(v.guid, OURS);
        if (table[i].phase) {
            assert_string_equal(v.phase, table[i].phase);
            assert_string_equal(v.why.reason, table[i].reason);
            assert_true(strlen(v.why.msg) > 20);
        }
    }
}

/* As cStor calls them: every pool of a cluster after the cluster. */
static void test_cluster_name(void **state)
{
    (void)state;
    struct test_wish t;
    struct pool_wish *w = test_wish(&t, "mirror a b");
    struct zpool_found found[2] = {found_of('O'), found_of('O')};
    struct pool_verdict v;
    w->cluster_name = "cstor-cluster";
    pool_judge(w, found, &v);
    assert_int_equal(v.kind, POOL_REFUSE);
    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        snprintf(found[i].pool_name, sizeof(found[i].pool_name), "cstor-cluster");
    pool_judge(w, found, &v);
    assert_int_equal(v.kind, POOL_IMPORT);
    assert_int_equal(v.guid, OTHERS);
    found[0].complete = found[1].complete = false; /* not ours to make anew */
    pool_judge(w, found, &v);
    assert_int_equal(v.kind, POOL_REFUSE);
    assert_string_equal(v.why.reason, "DeviceHasPool");
}

/* Deleted by the operator's word: destroyed. Forgotten: never. */
static void test_doomed(void **state)
{
    (void)state;
    json_auto_t *object = json_pack("{s:{s:[{s:s, s:s}]}}", "metadata", "ownerReferences", "kind",
                                    "CStorPoolCluster", "uid", "u");
    json_t *annotations = json_object();
    json_object_set_new(json_object_get(object, "metadata"), "annotations", annotations);
    assert_false(pool_is_doomed(object));
    json_object_set_new(annotations, API_POOL_DESTROY, json_string("PoolSpecRemoved"));
    assert_true(pool_is_doomed(object));
    json_object_set_new(annotations, API_POOL_FORGOTTEN, json_string("{}"));
    assert_false(pool_is_doomed(object));
}

/* What is asked of the object beside its devices. */
static void test_object(void **state)
{
    (void)state;
    struct test_wish t;
    struct pool_wish *w = test_wish(&t, "mirror a b");
    const struct zpool_found empty[2] = {found_of('.'), found_of('.')};
    struct pool_verdict v;
    w->guarded = false;
    pool_judge(w, empty, &v);
    assert_int_equal(v.kind, POOL_WAIT);
    assert_string_equal(v.phase, "Init");
    w->guarded = true;
    t.devices[1].not_ready = "no claim has it";
    pool_judge(w, empty, &v);
    assert_int_equal(v.kind, POOL_WAIT);
    assert_string_equal(v.phase, "Pending");
    t.devices[1].not_ready = NULL;
    w->existing = true;
    pool_judge(w, empty, &v);
    assert_int_equal(v.kind, POOL_WAIT);
    assert_string_equal(v.why.reason, "PoolNotFound");
    w->existing = false;
    w->destroy = true;
    pool_judge(w, empty, &v);
    assert_int_equal(v.kind, POOL_NOTHING);
}

/* Spares: announced while they are empty; then what is on them was written by us. */
static void test_spares(void **state)
{
    (void)state;
    static const struct {
        char spare;
        bool announced;
        enum pool_verdict_kind kind;
        const char *reason;
    } cases[] = {
        {'.', false, POOL_WAIT, "Announcing"},
        {'.', true, POOL_CREATE, NULL},
        {'S', true, POOL_CREATE, NULL},
        {'S', false, POOL_REFUSE, "DeviceHasPool"},
        {'e', true, POOL_REFUSE, "DeviceNotEmpty"},
        {'O', true, POOL_REFUSE, "DeviceHasPool"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct test_wish t;
        struct pool_wish *w = test_wish(&t, "stripe a; spare s");
        const struct zpool_found found[] = {found_of('.'), found_of(cases[i].spare)};
        struct pool_verdict v;
        t.devices[1].announced = cases[i].announced;
        pool_judge(w, found, &v);
        assert_int_equal(v.kind, cases[i].kind);
        if (cases[i].reason)
            assert_string_equal(v.why.reason, cases[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),  cmocka_unit_test(test_cluster_name),
        cmocka_unit_test(test_doomed), cmocka_unit_test(test_object),
        cmocka_unit_test(test_spares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/mem.h"
#include "kube/object.h"
#include "unit.h"

#define META(more)                                                                                 \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\"" more  \
    "},\"spec\":{\"x\":[1,2.5,null]}}"

static json_t *parse(const char *text)
{
    struct err e = {0};
    json_t *value = json_parse(text, strlen(text), NULL, &e);
    if (!value)
        fail_msg("%s", e.msg);
    return value;
}

static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *more, *key, *ns, *owner;
        bool deleting;
        int64_t generation;
    } table[] = {
        {"", "n", "", "", false, 0},
        {",\"namespace\":\"d\"", "d/n", "d", "", false, 0},
        {",\"namespace\":\"d\",\"generation\":9,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
         "d/n", "d", "", true, 9},
        {",\"ownerReferences\":[{\"kind\":\"A\",\"name\":\"a\",\"uid\":\"1\"},"
         "{\"kind\":\"B\",\"name\":\"b\",\"uid\":\"2\",\"controller\":true}]",
         "n", "", "B b 2", false, 0},
        /* nothing is what it should be */
        {",\"ownerReferences\":{},\"generation\":\"x\",\"deletionTimestamp\":1,\"namespace\":[]",
         "n", "", "", false, 0},
        {",\"ownerReferences\":[1,{\"controller\":true}]", "n", "", "  ", false, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        _cleanup_free_ char *text = mem_printf(META("%s"), table[i].more);
        json_auto_t *tree = parse(text);
        _cleanup_(kube_object_unrefp) struct kube_object *o = kube_object_new(tree, &e);
        assert_non_null(o);
        assert_string_equal(o->key, table[i].key);
        assert_string_equal(o->ns, table[i].ns);
        assert_string_equal(o->name, "n");
        assert_string_equal(o->uid, "u");
        assert_string_equal(o->resource_version, "7");
        _cleanup_free_ char *owner =
            mem_printf("%s %s %s", o->owner_kind, o->owner_name, o->owner_uid);
        assert_string_equal(owner, *table[i].owner ? table[i].owner : "  ");
        assert_int_equal(o->deleting, table[i].deleting);
        assert_int_equal(o->generation, table[i].generation);
        assert_string_equal(o->text, text);
        assert_int_equal(o->size, strlen(text));
        json_auto_t *again = kube_object_json(o);
        assert_true(json_equal(again, tree));
    }
}

static void test_managed_fields_are_left_out(void **state)
{
    (void)state;
    json_auto_t *tree =
        parse(META(",\"managedFields\":[{\"manager\":\"m\"}],\"labels\":{\"a\":\"b\"}"));
    json_auto_t *before = json_deep_copy(tree);
    _cleanup_(kube_object_unrefp) struct kube_object *o = kube_object_new(tree, NULL);
    assert_string_equal(o->text, META(",\"labels\":{\"a\":\"b\"}"));
    assert_true(json_equal(tree, before));
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "{}",
        "[]",
        "{\"metadata\":1}",
        "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":1,\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        json_auto_t *tree = parse(table[i]);
        assert_null(kube_object_new(tree, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    assert_null(kube_object_new(NULL, NULL));
}

static void test_readers(void **state)
{
    (void)state;
    json_auto_t *tree = parse(META(
        ",\"labels\":{\"a\":\"b\",\"c\":1},\"annotations\":{\"x\":\"y\"},\"namespace\":\"d\""));
    assert_string_equal(kube_label(tree, "a"), "b");
    assert_null(kube_label(tree, "c"));
    assert_null(kube_label(tree, "d"));
    assert_string_equal(kube_annotation(tree, "x"), "y");
    assert_null(kube_annotation(NULL, "x"));
    assert_string_equal(kube_namespace(NULL), "");
    json_auto_t *owner = kube_owner_reference(tree);
    json_auto_t *wanted =
        parse("{\"apiVersion\":\"\",\"kind\":\"Pod\",\"name\":\"n\",\"uid\":\"u\","
              "\"controller\":true,\"blockOwnerDeletion\":true}");
    assert_true(json_equal(owner, wanted));
}

static void test_keys(void **state)
{
    (void)state;
    static const char *const table[][3] = {
        {"a/b", "a", "b"}, {"b", "", "b"}, {"", "", ""}, {"/b", "", "b"}, {"a/", "a", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char buf[8];
        const char *ns, *name;
        kube_key_split(table[i][0], buf, &ns, &name);
        assert_string_equal(ns, table[i][1]);
        assert_string_equal(name, table[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),  cmocka_unit_test(test_managed_fields_are_left_out),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_readers),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

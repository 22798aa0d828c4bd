#include "jsontest.h"
#include "k8s/apiserver/kinds.h"

enum { READERS = 3, ROUNDS = 200 };

static const char crd[] =
    "{\"spec\":{\"group\":\"a.test\",\"scope\":\"Cluster\",\"names\":{\"plural\":\"gadgets\","
    "\"kind\":\"Gadget\",\"singular\":\"gadget\",\"listKind\":\"GadgetList\"},\"versions\":[{"
    "\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"
    "\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
    "\"string\",\"pattern\":\"^a+$\",\"default\":\"a\"}}}}}}}]}}";

static struct apiserver_definition *define(void)
{
    json_auto_t *definition = parse_json(crd);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *source =
        apiserver_object_new("c", "k", 1, crd, sizeof(crd) - 1, "", 0);
    source->size = sizeof(crd) - 1;
    return apiserver_definition_new(NULL, source, definition, json_at(definition, "spec", "names"),
                                    NULL);
}

static void test_tables_only(void **state)
{
    (void)state;
    struct apiserver_registry g = {.kinds_lock = PTHREAD_MUTEX_INITIALIZER};
    struct apiserver_kinds *k = apiserver_kinds_get(&g);
    assert_ptr_equal(k->all, api_kinds);
    assert_null(g.kinds);
    const struct api_group_version gv = {"openebs.io", "v1alpha1"};
    assert_non_null(apiserver_kinds_find(k, &gv, "jivavolumes"));
    assert_null(apiserver_kinds_find(k, &gv, "gadgets"));
    apiserver_kinds_unref(k);
}

static void test_set_and_unset(void **state)
{
    (void)state;
    const struct api_group_version gv = {"a.test", "v1"};
    struct apiserver_registry g = {.kinds_lock = PTHREAD_MUTEX_INITIALIZER};
    struct apiserver_definition *d = define();
    apiserver_kinds_set(&g, &d, 1);
    apiserver_definition_unref(d);
    struct apiserver_kinds *k = apiserver_kinds_get(&g);
    const struct api_kind *kind = apiserver_kinds_find(k, &gv, "gadgets");
    assert_non_null(kind);
    const struct apiserver_document *document = apiserver_kinds_document(k, &gv);
    assert_non_null(strstr(document->text.p, "test.a.v1.Gadget"));
    assert_ptr_equal(apiserver_kinds_document(k, &gv), document);
    assert_non_null(strstr(apiserver_kinds_document(k, NULL)->text.p, "apis/a.test/v1"));
    for (int protobuf = 0; protobuf < 2; protobuf++) {
        document = apiserver_kinds_document_v2(k, protobuf);
        assert_non_null(memmem(document->text.p, document->text.len, "test.a.v1.Gadget", 16));
        assert_ptr_equal(apiserver_kinds_document_v2(k, protobuf), document);
    }
    apiserver_kinds_set(&g, NULL, 0);
    assert_null(g.kinds);
    assert_string_equal(kind->kind, "Gadget"); /* as long as somebody holds it */
    apiserver_kinds_unref(k);
}

static void *use(void *context)
{
    struct apiserver_registry *g = context;
    const struct api_group_version gv = {"a.test", "v1"};
    for (int i = 0; i < ROUNDS; i++) {
        struct apiserver_kinds *k = apiserver_kinds_get(g);
        const struct api_kind *kind = apiserver_kinds_find(k, &gv, "gadgets");
        if (kind) {
            struct api_report report = {0};
            json_auto_t *object = parse_quoted("{'apiVersion': 'a.test/v1', 'kind': 'Gadget', "
                                               "'metadata': {'name': 'x'}, 'spec': {}}");
            assert_true(api_admit(kind, object, NULL, API_UNKNOWN_ERROR, &report));
            assert_string_equal(json_string_value(json_at(object, "spec", "a")), "a");
            api_report_done(&report);
            apiserver_kinds_document(k, &gv);
        }
        apiserver_kinds_unref(k);
    }
    return NULL;
}

static void test_replaced_while_in_use(void **state)
{
    (void)state;
    struct apiserver_registry g = {.kinds_lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, use, &g), 0);
    struct apiserver_definition *kept = define();
    for (int i = 0; i < ROUNDS; i++) {
        struct apiserver_definition *d = i % 2 ? define() : apiserver_definition_ref(kept);
        apiserver_kinds_set(&g, &d, i % 5 ? 1 : 0);
        apiserver_definition_unref(d);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    apiserver_kinds_set(&g, NULL, 0);
    apiserver_definition_unref(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_only),
        cmocka_unit_test(test_set_and_unset),
        cmocka_unit_test(test_replaced_while_in_use),
    };
    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}

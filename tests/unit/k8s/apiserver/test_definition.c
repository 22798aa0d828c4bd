#include "api/openapi.h"
#include "jsontest.h"
#include "k8s/apiserver/definition.h"
#include "k8s/apiserver/definition_names.h"
#include "k8s/apiserver/discovery.h"

static struct apiserver_definition *define(const char *quoted, struct err *e)
{
    json_auto_t *definition = parse_quoted(quoted);
    _cleanup_(str_done) struct str text = {0};
    json_format(definition, &text);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *source =
        apiserver_object_new("c", "k", 1, text.p, text.len, "", 0);
    /* The revision's digit behind it is not part of the JSON. */
    source->size = text.len;
    return apiserver_definition_new(NULL, source, definition, json_at(definition, "spec", "names"),
                                    e);
}

#define GADGETS                                                                                    \
    "{'metadata': {}, 'spec': {'group': 'a.test', 'scope': 'Cluster', 'names': {'plural': "        \
    "'gadgets', 'kind': 'Gadget', 'singular': 'gadget', 'listKind': 'Gadgets', 'shortNames': "     \
    "['gd'], 'categories': ['all']}, 'versions': ["                                                \
    "{'name': 'v1alpha1', 'served': false, 'storage': false, 'schema': {'openAPIV3Schema': "       \
    "{'type': 'object'}}},"                                                                        \
    "{'name': 'v1beta1', 'served': true, 'deprecated': true, 'storage': false, 'schema': "         \
    "{'openAPIV3Schema': {'type': 'object'}}},"                                                    \
    "{'name': 'v2beta1', 'served': true, 'deprecated': true, 'deprecationWarning': 'too new', "    \
    "'storage': false, 'schema': {'openAPIV3Schema': {'type': 'object'}}},"                        \
    "{'name': 'v1', 'served': true, 'storage': true, 'schema': {'openAPIV3Schema': {'type': "      \
    "'object', 'description': 'A gadget.', 'properties': {'spec': {'type': 'object', "             \
    "'properties': {'size': {'type': 'string'}}}}}}, 'subresources': {'status': {}, 'scale': "     \
    "{'specReplicasPath': '.spec.n', 'statusReplicasPath': '.status.n'}}, "                        \
    "'additionalPrinterColumns': [{'name': 'Size', 'type': 'string', 'jsonPath': '.spec.size', "   \
    "'priority': 1}], 'selectableFields': [{'jsonPath': '.spec.size'}]}]}}"

static void test_versions(void **state)
{
    (void)state;
    struct err e = {0};
    struct apiserver_definition *d = define(GADGETS, &e);
    assert_non_null(d);
    assert_int_equal(d->n, 3);
    const struct api_kind *beta = &d->kinds[0], *other = &d->kinds[1], *stable = &d->kinds[2];
    assert_string_equal(api_kind_canonical(beta)->version, "v1beta1");
    assert_string_equal(api_kind_stored(beta)->version, "v1");
    assert_string_equal(beta->warning, "a.test/v1beta1 Gadget is deprecated; use a.test/v1 Gadget");
    assert_string_equal(other->warning, "too new");
    assert_string_equal(beta->columns[0].name, "Age");
    assert_int_equal(beta->flags, API_CLUSTER_SCOPED);
    assert_int_equal(stable->flags, API_CLUSTER_SCOPED | API_STATUS | API_SCALE | API_SIBLING);
    assert_string_equal(stable->scale_spec, ".spec.n");
    assert_string_equal(stable->scale_status, ".status.n");
    assert_null(stable->scale_selector);
    assert_string_equal(stable->columns[0].doc,
                        "Custom resource definition column (in JSONPath format): .spec.size");
    assert_int_equal(stable->columns[0].priority, 1);
    assert_null(stable->columns[1].name);
    assert_string_equal(stable->selectable[0], "spec.size");
    assert_null(stable->warning);
    assert_string_equal(stable->list_kind, "Gadgets");
    assert_string_equal(stable->short_names[0], "gd");
    assert_null(stable->short_names[1]);

    json_auto_t *schema = api_openapi_schema(stable);
    assert_string_equal(json_str(schema, "description"), "A gadget.");
    assert_non_null(json_at(schema, "properties", "metadata", "properties", "labels"));
    assert_non_null(json_at(schema, "properties", "spec", "properties", "size"));
    const struct api_kind *kinds[] = {beta, other, stable, NULL};
    json_auto_t *group = apiserver_group(kinds, "a.test");
    assert_string_equal(json_string_value(json_at(group, "preferredVersion", "version")), "v1");
    apiserver_definition_unref(d);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "{}",
        "{'spec': {'group': 'a.test', 'names': {'plural': 'p', 'kind': 'K', 'singular': 's', "
        "'listKind': 'L'}, 'versions': [{'name': 'v1', 'served': true, 'storage': true}]}}",
        "{'spec': {'group': 'a.test', 'names': {'plural': 'p', 'kind': 'K', 'singular': 's', "
        "'listKind': 'L'}, 'versions': [{'name': 'v1', 'served': true, 'storage': true, 'schema': "
        "{'openAPIV3Schema': {}}}]}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        assert_null(define(cases[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void test_names(void **state)
{
    (void)state;
#define ALL "'plural': 'gadgets', 'singular': 'gadget', 'kind': 'Gadget', 'listKind': 'GadgetList'"
    static const struct {
        const char *requested, *before, *others, *accepted, *conflict;
    } cases[] = {
        {"{" ALL ", 'shortNames': ['gd'], 'categories': ['all']}", "{}", "{}",
         "{" ALL ", 'shortNames': ['gd'], 'categories': ['all']}", NULL},
        {"{" ALL "}", "{}", "{'kind': 'Gadget'}",
         "{'plural': 'gadgets', 'singular': 'gadget', 'listKind': 'GadgetList'}", "KindConflict"},
        {"{" ALL "}", "{'kind': 'Gadget'}", "{'kind': 'Gadget'}", "{" ALL "}", NULL},
        {"{" ALL "}", "{}", "{'singular': 'gadget'}",
         "{'plural': 'gadgets', 'kind': 'Gadget', 'listKind': 'GadgetList'}", "SingularConflict"},
        {"{" ALL "}", "{}", "{'plural': 'gadgets'}",
         "{'singular': 'gadget', 'kind': 'Gadget', 'listKind': 'GadgetList'}", "PluralConflict"},
        {"{" ALL "}", "{}", "{'kind': 'GadgetList'}",
         "{'plural': 'gadgets', 'singular': 'gadget', 'kind': 'Gadget'}", "ListKindConflict"},
        {"{" ALL ", 'shortNames': ['a', 'b']}", "{'shortNames': ['a']}",
         "{'shortNames': ['a', 'b']}", "{" ALL ", 'shortNames': ['a']}", "ShortNamesConflict"},
        {"{" ALL "}", "{'singular': 'old'}", "{'shortNames': ['gadget']}",
         "{'plural': 'gadgets', 'singular': 'old', 'kind': 'Gadget', 'listKind': 'GadgetList'}",
         "SingularConflict"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *requested = parse_quoted(cases[i].requested);
        json_auto_t *before = parse_quoted(cases[i].before);
        json_auto_t *others = parse_quoted(cases[i].others);
        json_auto_t *accepted = parse_quoted(cases[i].accepted);
        struct apiserver_taken taken = {0};
        apiserver_taken_add(&taken, others);
        struct apiserver_names names = apiserver_names_accept(requested, before, &taken);
        assert_json(names.accepted, accepted, cases[i].requested);
        if (cases[i].conflict) {
            assert_string_equal(names.conflict, cases[i].conflict);
            assert_non_null(strstr(names.message, "is already in use"));
        } else {
            assert_null(names.conflict);
        }
        json_decref(names.accepted);
        apiserver_taken_done(&taken);
    }
    struct apiserver_taken tables = {0};
    apiserver_taken_add_tables(&tables, "openebs.io", "blockdevices");
    assert_true(map_has(&tables.kinds, "JivaVolume"));
    assert_true(map_has(&tables.resources, "jv"));
    assert_false(map_has(&tables.kinds, "BlockDevice"));
    assert_false(map_has(&tables.kinds, "Pod"));
    apiserver_taken_done(&tables);
}

static void test_conditions(void **state)
{
    (void)state;
    json_auto_t *status = json_object();
    assert_true(apiserver_condition_set(status, "A", false, "No", "not yet", "t1"));
    assert_false(apiserver_condition_set(status, "A", false, "No", "not yet", "t2"));
    assert_false(apiserver_condition_is_true(json_object_get(status, "conditions"), "A"));
    assert_true(apiserver_condition_set(status, "A", false, "No", "nearly", "t3"));
    assert_true(apiserver_condition_set(status, "B", true, "Yes", "", "t4"));
    json_auto_t *expected = parse_quoted(
        "[{'type': 'A', 'lastTransitionTime': 't1', 'status': 'False', 'reason': 'No', 'message': "
        "'nearly'}, {'type': 'B', 'lastTransitionTime': 't4', 'status': 'True', 'reason': 'Yes', "
        "'message': ''}]");
    assert_json(json_object_get(status, "conditions"), expected, "conditions");
    assert_true(apiserver_condition_set(status, "A", true, "Yes", "now", "t5"));
    assert_true(apiserver_condition_is_true(json_object_get(status, "conditions"), "A"));
    assert_false(apiserver_condition_is_true(NULL, "A"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_conditions),
    };
    return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}

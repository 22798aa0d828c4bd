#include "api/admit.h"
#include "jsontest.h"
#include "k8s/kinds/kinds.h"

#define SCHEMA  "'schema': {'openAPIV3Schema': {'type': 'object'}}"
#define VERSION "{'name': 'v1', 'served': true, 'storage': true, " SCHEMA "}"
#define NAMES   "'names': {'plural': 'gadgets', 'kind': 'Gadget'}"
#define CRD(name, spec, more)                                                                      \
    "{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': "   \
    "{'name': '" name "'}, 'spec': {'scope': 'Namespaced', " spec "}" more "}"
#define PLAIN(versions)                                                                            \
    CRD("gadgets.a.test", "'group': 'a.test', " NAMES ", 'versions': [" versions "]", "")
#define OF(more) PLAIN("{'name': 'v1', 'served': true, 'storage': true, " more "}")

/* The object as admitted, or half way; report says which. */
static json_t *admit(const char *text, const json_t *old, struct api_report *report)
{
    json_t *object = parse_quoted(text);
    api_admit(&api_custom_resource_definition, object, old, API_UNKNOWN_WARN, report);
    return object;
}

static char *problems_of(const struct api_report *report)
{
    struct str text = {0};
    vec_for_each(&report->problems, p) {
        if (!p->warning)
            str_appendf(&text, "%s: %s\n", p->path, p->message);
    }
    return str_take(&text);
}

static void test_fills_in(void **state)
{
    (void)state;
    struct api_report report = {0};
    json_auto_t *object = admit(PLAIN(VERSION), NULL, &report);
    _cleanup_free_ char *got = problems_of(&report);
    assert_string_equal(got, "");
    json_auto_t *names = parse_quoted("{'plural': 'gadgets', 'kind': 'Gadget', 'listKind': "
                                      "'GadgetList', 'singular': 'gadget'}");
    json_auto_t *status = parse_quoted("{'storedVersions': ['v1']}");
    assert_json(json_at(object, "spec", "names"), names, "names");
    assert_json(json_at(object, "status"), status, "status");
    assert_string_equal(json_string_value(json_at(object, "spec", "conversion", "strategy")),
                        "None");
    api_report_done(&report);
}

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *object, *expected;
    } cases[] = {
        {CRD("gadgets.b.test", "'group': 'a.test', " NAMES ", 'versions': [" VERSION "]", ""),
         "metadata.name: Invalid value: \"gadgets.b.test\": must be "
         "spec.names.plural+\".\"+spec.group: \"gadgets.a.test\""},
        {CRD("gadgets.apps", "'group': 'apps', " NAMES ", 'versions': [" VERSION "]", ""),
         "spec.group: Invalid value: \"apps\": should be a domain with at least one dot"},
        {CRD("gadgets.x.k8s.io", "'group': 'x.k8s.io', " NAMES ", 'versions': [" VERSION "]", ""),
         "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups"},
        {CRD("Gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'Gadgets', 'kind': 'Gadget'}, 'versions': "
             "[" VERSION "]",
             ""),
         "spec.names.plural: Invalid value: \"Gadgets\": a DNS-1035 label must consist"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'gadgets', 'kind': 'Ga_dget'}, 'versions': "
             "[" VERSION "]",
             ""),
         "spec.names.kind: Invalid value: \"Ga_dget\": may have mixed case"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'gadgets', 'kind': 'G', 'listKind': 'G'}, "
             "'versions': [" VERSION "]",
             ""),
         "spec.names.listKind: Invalid value: \"G\": kind and listKind may not be the same"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'gadgets', 'kind': 'G', 'shortNames': "
             "['g', 'G']}, 'versions': [" VERSION "]",
             ""),
         "spec.names.shortNames[1]: Invalid value: \"G\""},
        {PLAIN(""), "spec.versions: Required value"},
        {PLAIN("{'name': 'v1', 'served': true, 'storage': false, " SCHEMA "}"),
         "spec.versions: Invalid value: must have exactly one version marked as storage version"},
        {PLAIN(VERSION ", " VERSION), "spec.versions: Invalid value: must contain unique version"},
        {PLAIN("{'name': '1', 'served': true, 'storage': true, " SCHEMA "}"),
         "spec.versions[0].name: Invalid value: \"1\""},
        {PLAIN("{'name': 'v1', 'served': true, 'storage': true}"),
         "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"},
        {OF("'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {'spec': {}}}}"),
         "spec.versions[0].schema.openAPIV3Schema.properties.spec.type: Required value"},
        {OF(SCHEMA ", 'deprecationWarning': 'old'"),
         "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set"},
        {OF(SCHEMA ", 'subresources': {'scale': {'specReplicasPath': '.status.n', "
                   "'statusReplicasPath': '.status.n'}}"),
         "subresources.scale.specReplicasPath: Invalid value: \".status.n\": must be a json path"},
        {OF(SCHEMA ", 'subresources': {'scale': {'specReplicasPath': '.spec.n', "
                   "'statusReplicasPath': '.status.a[0]'}}"),
         "subresources.scale.statusReplicasPath: Invalid value"},
        {OF(SCHEMA ", 'additionalPrinterColumns': [{'name': 'A', 'type': 'text', 'jsonPath': "
                   "'.a'}]"),
         "additionalPrinterColumns[0].type: Unsupported value: \"text\""},
        {OF(SCHEMA ", 'additionalPrinterColumns': [{'name': 'A', 'type': 'string', 'jsonPath': "
                   "'a'}]"),
         "additionalPrinterColumns[0].jsonPath: Invalid value: \"a\": must be a simple json path"},
        {OF(SCHEMA ", 'selectableFields': [{'jsonPath': '.spec.x'}]"),
         "selectableFields[0].jsonPath: Invalid value: \".spec.x\": must point to a field"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', " NAMES ", 'versions': [" VERSION "], 'conversion': {'strategy': "
             "'Webhook'}",
             ""),
         "spec.conversion.webhook.clientConfig: Required value: required when strategy is set to "
         "Webhook"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', " NAMES ", 'versions': [" VERSION
             "], 'conversion': {'strategy': 'Webhook', 'webhook': {'clientConfig': {'url': "
             "'https://h/c'}, 'conversionReviewVersions': ['v9']}}",
             ""),
         "spec.conversion.webhook.conversionReviewVersions: Invalid value: [\"v9\"]: must include "
         "at least one of v1, v1beta1"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', " NAMES ", 'versions': [" VERSION
             "], 'conversion': {'strategy': 'Webhook', 'webhook': {'clientConfig': {}, "
             "'conversionReviewVersions': ['v1']}}",
             ""),
         "spec.conversion.webhook.clientConfig: Required value: exactly one of url or service is "
         "required"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', " NAMES ", 'versions': [" VERSION
             "], 'conversion': {'strategy': 'None', 'webhook': {'clientConfig': {'url': "
             "'https://h/c'}, 'conversionReviewVersions': ['v1']}}",
             ""),
         "spec.conversion.webhook: Forbidden: should not be set when strategy is not set to "
         "Webhook"},
        {CRD("gadgets.a.test",
             "'group': 'a.test', " NAMES ", 'versions': [" VERSION
             "], 'preserveUnknownFields': true",
             ""),
         "spec.preserveUnknownFields: Invalid value: true: must be false"},
        {CRD("gadgets.a.test", "'group': 'a.test', " NAMES ", 'versions': [" VERSION "]",
             ", 'status': {'storedVersions': ['v0', 'v1']}"),
         "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_decref(admit(cases[i].object, NULL, &report));
        _cleanup_free_ char *got = problems_of(&report);
        if (!strstr(got, cases[i].expected))
            fail_msg("%s:\n%sinstead of\n%s", cases[i].object, got, cases[i].expected);
        api_report_done(&report);
    }
}

static void test_updates(void **state)
{
    (void)state;
#define ESTABLISHED                                                                                \
    ", 'status': {'conditions': [{'type': 'Established', 'status': 'True'}], 'storedVersions': "   \
    "['v1']}"
    static const char cluster[] =
        "{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': "
        "{'name': 'gadgets.a.test'}, 'spec': {'scope': 'Cluster', 'group': 'a.test', " NAMES
        ", 'versions': [" VERSION "]}}";
    static const struct {
        const char *old, *object, *expected;
    } cases[] = {
        {PLAIN(VERSION), cluster, ""}, /* nobody has used it yet */
        {CRD("gadgets.a.test", "'group': 'a.test', " NAMES ", 'versions': [" VERSION "]",
             ESTABLISHED),
         cluster, "spec.scope: Invalid value: \"Cluster\": field is immutable"},
        {CRD("gadgets.a.test", "'group': 'a.test', " NAMES ", 'versions': [" VERSION "]",
             ESTABLISHED),
         CRD("gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'gadgets', 'kind': 'Other'}, 'versions': "
             "[" VERSION "]",
             ""),
         "spec.names.kind: Invalid value: \"Other\": field is immutable"},
        {CRD("gadgets.a.test", "'group': 'a.test', " NAMES ", 'versions': [" VERSION "]",
             ESTABLISHED),
         CRD("gadgets.a.test",
             "'group': 'a.test', 'names': {'plural': 'gadgets', 'kind': 'Gadget', 'shortNames': "
             "['gd']}, 'versions': [" VERSION "]",
             ""),
         ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_report report = {0};
        json_auto_t *old = parse_quoted(cases[i].old);
        json_decref(admit(cases[i].object, old, &report));
        _cleanup_free_ char *got = problems_of(&report);
        if (!strstr(got, cases[i].expected) || (!*cases[i].expected && *got))
            fail_msg("%s:\n%sinstead of\n%s", cases[i].object, got, cases[i].expected);
        api_report_done(&report);
    }
}

static void test_rules(void **state)
{
    (void)state;
    struct api_report report = {0};
    json_decref(
        admit(OF("'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-validations': "
                 "[{'rule': 'true'}]}}"),
              NULL, &report));
    assert_int_equal(report.errors + report.warnings, 0);
    json_decref(
        admit(OF("'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-validations': "
                 "[{'rule': 'self.spec.x > 0'}]}}"),
              NULL, &report));
    assert_int_equal(report.errors, 1);
    assert_non_null(strstr(report.problems.p[0].message, "undefined field 'spec'"));
    api_report_done(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills_in),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}

/*
 * Rules in CEL: what a definition may say, and what becomes of objects.
 */
#include <stdio.h>

#include "jsontest.h"
#include "k8s/schema/schema.h"

static const struct api_schema *compile(struct api_schema_set *set, const char *spec,
                                        struct api_report *report)
{
    _cleanup_free_ char *text = mem_printf("{'type': 'object', 'properties': {'spec': %s}}", spec);
    json_auto_t *json = parse_quoted(text);
    return api_schema_compile(set, json, NULL, report);
}

static json_t *object_with(const char *spec)
{
    _cleanup_free_ char *text = mem_printf(
        "{'apiVersion': 'a/v1', 'kind': 'K', 'metadata': {'name': 'n'}, 'spec': %s}", spec);
    return parse_quoted(text);
}

/* "path: message" of all problems, in lines; warnings begin with "W ". */
static char *problems_of(const struct api_report *report)
{
    struct str text = {0};
    vec_for_each(&report->problems, p)
        str_appendf(&text, "%s%s%s: %s", text.len ? "\n" : "", p->warning ? "W " : "", p->path,
                    p->message);
    return str_take(&text);
}

#define RULES     "'x-kubernetes-validations': "
#define RULE(...) RULES "[{'rule': " __VA_ARGS__ "}]"

static void test_objects(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *spec, *old, *expected; /* "": nothing is wrong */
    } cases[] = {
        {"{'type': 'integer', " RULE("'self > 1'") "}", "2", NULL, ""},
        {"{'type': 'integer', " RULE("'self > 1'") "}", "1", NULL,
         "spec: Invalid value: 1: failed rule: self > 1"},
        {"{'type': 'string', " RULE(
             "'self.startsWith(\\\"a\\\")', 'message': ' must begin with a '") "}",
         "'b'", NULL, "spec: Invalid value: \"b\": must begin with a"},
        {"{'type': 'object', " RULE(
             "'self.min <= self.max', 'message': 'min > max'") ", "
                                                               "'properties': {'min': {'type': "
                                                               "'integer'}, 'max': {'type': "
                                                               "'integer'}}}",
         "{'min': 3, 'max': 2}", NULL, "spec: Invalid value: min > max"},
        {"{'type': 'object', " RULE(
             "'self.min <= self.max', 'message': 'm', 'fieldPath': '.max', "
             "'reason': 'FieldValueForbidden'") ", "
                                                "'properties': {'min': {'type': 'integer'}, 'max': "
                                                "{'type': 'integer'}}}",
         "{'min': 3, 'max': 2}", NULL, "spec.max: Forbidden: m"},
        {"{'type': 'object', " RULE(
             "'has(self.a)', 'message': 'say a', 'fieldPath': '.a', "
             "'reason': 'FieldValueRequired'") ", "
                                               "'properties': {'a': {'type': 'integer'}}}",
         "{}", NULL, "spec.a: Required value: say a"},
        {"{'type': 'integer', " RULE("'self > 1', 'reason': 'FieldValueDuplicate'") "}", "1", NULL,
         "spec: Duplicate value: 1"},
        {"{'type': 'integer', " RULE("'self > 5', 'messageExpression': '\\\"%d is not > "
                                     "5\\\".format([self])', 'message': 'too small'") "}",
         "1", NULL, "spec: Invalid value: 1: 1 is not > 5"},
        {"{'type': 'integer', " RULE("'self > 5', 'messageExpression': 'string(self / 0)', "
                                     "'message': 'too small'") "}",
         "1", NULL, "spec: Invalid value: 1: too small"},
        /* errors of rules */
        {"{'type': 'integer', " RULE("'1 / self > 0'") "}", "0", NULL,
         "spec: Invalid value: \"integer\": division by zero evaluating rule: 1 / self > 0"},
        {"{'type': 'object', " RULE(
             "'self.a > 0', 'message': 'm'") ", 'properties': {'a': {'type': "
                                             "'integer'}}}",
         "{}", NULL, "spec: Invalid value: \"object\": no such key: a evaluating rule: m"},
        {"{'type': 'object', 'properties': {'p': {'x-kubernetes-int-or-string': true, " RULE(
             "'self > 5'") "}}}",
         "{'p': 'a'}", NULL,
         "spec.p: Invalid value: \"\": 'no such overload': call arguments did not match a "
         "supported "
         "operator, function or macro signature for rule: self > 5"},
        {"{'type': 'integer', " RULES
         "[{'rule': 'lists.range(1000).all(a, lists.range(1000).all(b, "
         "a + b >= 0))'}, {'rule': 'self > 5'}]}",
         "1", NULL,
         "spec: Invalid value: \"integer\": 'operation cancelled: actual cost limit exceeded': no "
         "further validation rules will be run due to call cost exceeds limit for rule: "
         "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"},
        /* what is not valid otherwise is not looked at */
        {"{'type': 'object', 'required': ['b'], " RULE(
             "'self.a > 0'") ", 'properties': {'a': "
                             "{'type': 'integer'}, 'b': {'type': 'integer'}}}",
         "{'a': 0}", NULL,
         "spec.b: Required value\n<nil>: Invalid value: \"null\": some validation rules were not "
         "checked because the object was invalid; correct the existing errors to complete "
         "validation"},
        /* nothing to say about null and what is missing */
        {"{'type': 'object', 'properties': {'a': {'type': 'string', 'nullable': true, " RULE(
             "'false'") "}}}",
         "{'a': null}", NULL, ""},
        /* elements, members, names that have to be escaped, formats */
        {"{'type': 'array', 'items': {'type': 'object', 'properties': {'if': {'type': "
         "'integer'}}, " RULE("'self.__if__ > 0'") "}}",
         "[{'if': 1}, {'if': 0}]", NULL, "spec[1]: Invalid value: failed rule: self.__if__ > 0"},
        {"{'type': 'object', 'additionalProperties': {'type': 'integer', " RULE("'self > 0'") "}}",
         "{'a.b': 0}", NULL, "spec[a.b]: Invalid value: 0: failed rule: self > 0"},
        {"{'type': 'object', " RULE(
             "'self.when > timestamp(\\\"2026-01-01T00:00:00Z\\\") && self.span < "
             "duration(\\\"1h\\\") && self.data == b\\\"hi\\\"'") ", 'properties': "
                                                                  "{'when': {'type': 'string', "
                                                                  "'format': "
                                                                  "'date-time'}, 'span': {'type': "
                                                                  "'string', 'format': "
                                                                  "'duration'}, 'data': {'type': "
                                                                  "'string', "
                                                                  "'format': 'byte'}}}",
         "{'when': '2026-02-01T00:00:00Z', 'span': '3 minutes', 'data': 'aGk='}", NULL, ""},
        /* updates */
        {"{'type': 'integer', " RULE("'self >= oldSelf', 'message': 'only grows'") "}", "1", NULL,
         ""},
        {"{'type': 'integer', " RULE("'self >= oldSelf', 'message': 'only grows'") "}", "1", "2",
         "spec: Invalid value: 1: only grows"},
        {"{'type': 'integer', " RULE("'!oldSelf.hasValue()', 'optionalOldSelf': true, 'message': "
                                     "'fixed'") "}",
         "1", NULL, ""},
        {"{'type': 'integer', " RULE("'!oldSelf.hasValue()', 'optionalOldSelf': true, 'message': "
                                     "'fixed'") "}",
         "1", "2", "spec: Invalid value: 1: fixed"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'], "
         "'items': {'type': 'object', 'required': ['k'], 'properties': {'k': {'type': 'string'}, "
         "'v': "
         "{'type': 'integer', " RULE("'self >= oldSelf'") "}}}}",
         "[{'k': 'b', 'v': 1}, {'k': 'a', 'v': 5}, {'k': 'c', 'v': 0}]",
         "[{'k': 'a', 'v': 4}, {'k': 'b', 'v': 2}]",
         "spec[0].v: Invalid value: 1: failed rule: self >= oldSelf"},
        /* what was there before a rule is only warned of */
        {"{'type': 'object', 'properties': {'a': {'type': 'integer', " RULE(
             "'self > 5'") "}, 'b': "
                           "{'type': 'integer'}}}",
         "{'a': 1, 'b': 2}", "{'a': 1, 'b': 1}", "W spec.a: failed rule: self > 5"},
        {"{'type': 'object', 'properties': {'a': {'type': 'integer', " RULE("'self > 5'") "}}}",
         "{'a': 2}", "{'a': 1}", "spec.a: Invalid value: 2: failed rule: self > 5"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        struct api_report report = {0};
        const struct api_schema *s = compile(set, cases[i].schema, &report);
        if (!s)
            fail_msg("%s: %s", cases[i].schema, report.problems.p[0].message);
        json_auto_t *object = object_with(cases[i].spec);
        json_auto_t *old = cases[i].old ? object_with(cases[i].old) : NULL;
        api_schema_validate(s, object, old, &report);
        _cleanup_free_ char *got = problems_of(&report);
        if (!str_eq(got, cases[i].expected))
            fail_msg("%zu %s\n%s\n%s", i, cases[i].schema, got, cases[i].expected);
        api_report_done(&report);
    }
}

static void test_definitions(void **state)
{
    (void)state;
#define AT "properties.spec.x-kubernetes-validations[0]."
    static const struct {
        const char *schema, *expected;
    } cases[] = {
        {"{'type': 'object', " RULE("'self.x > 0'") "}", AT
         "rule: Invalid value: \"self.x > 0\": compilation failed: ERROR: <input>:1:5: undefined "
         "field 'x'\n | self.x > 0\n | ....^"},
        {"{'type': 'integer', " RULE("'self +'") "}", AT
         "rule: Invalid value: \"self +\": compilation failed: ERROR: <input>:1:7: Syntax error: "
         "mismatched input '<EOF>' expecting an expression\n | self +\n | ......^"},
        {"{'type': 'integer', " RULE("'self + 1'") "}",
         AT "rule: Invalid value: \"self + 1\": cel expression must evaluate to a bool"},
        {"{'type': 'integer', " RULE("'self > 1', 'messageExpression': 'self'") "}", AT
         "messageExpression: Invalid value: \"self\": messageExpression must evaluate to a string"},
        {"{'type': 'integer', " RULE("'self > 1', 'messageExpression': 'x'") "}",
         AT "messageExpression: Invalid value: \"x\": messageExpression compilation failed: ERROR: "
            "<input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^"},
        {"{'type': 'integer', " RULE("' '") "}", AT "rule: Required value: rule is not specified"},
        {"{'type': 'integer', " RULE("'self > 1', 'message': ' '") "}",
         AT "message: Invalid value: \" \": must be non-empty if specified"},
        {"{'type': 'integer', " RULE("'self\\n > 1'") "}",
         AT "message: Required value: message must be specified if rule contains line breaks"},
        {"{'type': 'integer', " RULE("'self > 1', 'reason': 'Because'") "}",
         AT "reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", "
            "\"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""},
        {"{'type': 'integer', " RULE("'self > 1', 'fieldPath': '.a'") "}",
         AT "fieldPath: Invalid value: \".a\": must be a valid path"},
        {"{'type': 'integer', " RULE("'self > 1', 'optionalOldSelf': true") "}",
         AT "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"},
        {"{'type': 'integer', " RULE("1") "}", AT "rule: Invalid value: 1: must be a string"},
        {"{'type': 'integer', " RULES "{}}",
         "properties.spec.x-kubernetes-validations: Invalid value: {}: must be a list"},
        {"{'type': 'array', 'items': {'type': 'integer', " RULE("'self > oldSelf'") "}}",
         "properties.spec.items.x-kubernetes-validations[0].rule: Invalid value: \"self > "
         "oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within "
         "properties.spec"},
        {"{'type': 'integer', 'default': 0, " RULE("'self > 1'") "}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        struct api_report report = {0};
        const struct api_schema *s = compile(set, cases[i].schema, &report);
        _cleanup_free_ char *got = problems_of(&report);
        if (cases[i].expected && (s || !str_eq(got, cases[i].expected)))
            fail_msg("%s\n%s\n%s", cases[i].schema, got, cases[i].expected);
        api_report_done(&report);
    }
}

/* Rules at the root see apiVersion, kind and two members of metadata. */
static void test_root(void **state)
{
    (void)state;
    _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
    struct api_report report = {0};
    json_auto_t *json =
        parse_quoted("{'type': 'object', 'properties': {'spec': {'type': 'string'}}, " RULE(
            "'self.metadata.name == self.spec && self.kind == \\\"K\\\" && self.apiVersion == "
            "\\\"a/v1\\\"'") "}");
    const struct api_schema *s = api_schema_compile(set, json, NULL, &report);
    assert_non_null(s);
    json_auto_t *good = object_with("'n'"), *bad = object_with("'m'");
    api_schema_validate(s, good, NULL, &report);
    assert_int_equal(report.errors, 0);
    api_schema_validate(s, bad, NULL, &report);
    assert_int_equal(report.errors, 1);
    assert_string_equal(report.problems.p[0].path, "<nil>");
    json_auto_t *wrong =
        parse_quoted("{'type': 'object', " RULE("'self.metadata.uid != \\\"\\\"'") "}");
    assert_null(api_schema_compile(set, wrong, NULL, &report));
    api_report_done(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_root),
    };
    return cmocka_run_group_tests_name("schema_cel", tests, NULL, NULL);
}

#include <stdio.h>

#include "jsontest.h"
#include "k8s/schema/schema.h"

/* A whole object's schema whose spec is the given one. */
static const struct api_schema *compile(struct api_schema_set *set, const char *spec,
                                        struct api_report *report)
{
    _cleanup_free_ char *text = mem_printf("{'type': 'object', 'properties': {'spec': %s}}", spec);
    json_auto_t *json = parse_quoted(text);
    return api_schema_compile(set, json, NULL, report);
}

static const struct api_schema *must_compile(struct api_schema_set *set, const char *spec)
{
    struct api_report report = {0};
    const struct api_schema *s = compile(set, spec, &report);
    if (!s)
        fail_msg("%s: %s: %s", spec, report.problems.p[0].path, report.problems.p[0].message);
    api_report_done(&report);
    return s;
}

static json_t *object_with(const char *spec)
{
    _cleanup_free_ char *text =
        mem_printf("{'apiVersion': 'a/v1', 'kind': 'K', 'metadata': {}, 'spec': %s}", spec);
    return parse_quoted(text);
}

/* "path: message" of all problems, in lines. */
static char *problems_of(const struct api_report *report)
{
    struct str text = {0};
    vec_for_each(&report->problems, p)
        str_appendf(&text, "%s%s: %s", text.len ? "\n" : "", p->path, p->message);
    return str_take(&text);
}

static void test_validate(void **state)
{
    (void)state;
#define BODY "spec in body "
    static const struct {
        const char *schema, *spec, *expected; /* "": nothing is wrong */
    } cases[] = {
        /* types */
        {"{'type': 'string'}", "'a'", ""},
        {"{'type': 'string'}", "1",
         "spec: Invalid value: \"integer\": " BODY "must be of type string: \"integer\""},
        {"{'type': 'string'}", "null",
         "spec: Invalid value: \"null\": " BODY "must be of type string: \"null\""},
        {"{'type': 'string', 'nullable': true}", "null", ""},
        {"{'type': 'integer'}", "3", ""},
        {"{'type': 'integer'}", "3.0", ""},
        {"{'type': 'integer'}", "3.5",
         "spec: Invalid value: \"number\": " BODY "must be of type integer: \"number\""},
        {"{'type': 'number'}", "3", ""},
        {"{'type': 'number'}", "3.5", ""},
        {"{'type': 'boolean'}", "true", ""},
        {"{'type': 'boolean'}", "'true'",
         "spec: Invalid value: \"string\": " BODY "must be of type boolean: \"string\""},
        {"{'type': 'object'}", "[]",
         "spec: Invalid value: \"array\": " BODY "must be of type object: \"array\""},
        {"{'type': 'array', 'items': {'type': 'string'}}", "['a', 1]",
         "spec[1]: Invalid value: \"integer\": spec[1] in body must be of type string: "
         "\"integer\""},
        {"{'x-kubernetes-int-or-string': true}", "'a'", ""},
        {"{'x-kubernetes-int-or-string': true}", "5", ""},
        {"{'x-kubernetes-int-or-string': true}", "true",
         "spec: Invalid value: \"boolean\": " BODY "must be of type integer,string: "
         "\"boolean\""},
        {"{'x-kubernetes-preserve-unknown-fields': true}", "[1, {'a': null}]", ""},
        /* numbers */
        {"{'type': 'integer', 'maximum': 10}", "10", ""},
        {"{'type': 'integer', 'maximum': 10}", "20",
         "spec: Invalid value: 20: " BODY "should be less than or equal to 10"},
        {"{'type': 'integer', 'maximum': 10, 'exclusiveMaximum': true}", "10",
         "spec: Invalid value: 10: " BODY "should be less than 10"},
        {"{'type': 'number', 'minimum': 0.5}", "0.25",
         "spec: Invalid value: 0.25: " BODY "should be greater than or equal to 0.5"},
        {"{'type': 'number', 'minimum': 0.5, 'exclusiveMinimum': true}", "0.5",
         "spec: Invalid value: 0.5: " BODY "should be greater than 0.5"},
        {"{'type': 'integer', 'maximum': 9007199254740992}", "9007199254740993",
         "spec: Invalid value: 9007199254740993: " BODY
         "should be less than or equal to 9007199254740992"},
        {"{'type': 'integer', 'multipleOf': 5}", "15", ""},
        {"{'type': 'integer', 'multipleOf': 5}", "16",
         "spec: Invalid value: 16: " BODY "should be a multiple of 5"},
        {"{'type': 'number', 'multipleOf': 0.5}", "1.5", ""},
        {"{'type': 'number', 'multipleOf': 0.5}", "1.6",
         "spec: Invalid value: 1.6: " BODY "should be a multiple of 0.5"},
        {"{'type': 'integer', 'format': 'int32'}", "2147483647", ""},
        {"{'type': 'integer', 'format': 'int32'}", "2147483648",
         "spec: Invalid value: 2147483648: " BODY "must be of type int32: \"2147483648\""},
        /* strings; characters count, not bytes */
        {"{'type': 'string', 'minLength': 2}", "'a'",
         "spec: Invalid value: \"a\": " BODY "should be at least 2 chars long"},
        {"{'type': 'string', 'maxLength': 2}", "'äö'", ""},
        {"{'type': 'string', 'maxLength': 2}", "'abc'",
         "spec: Too long: may not be more than 2 bytes"},
        {"{'type': 'string', 'pattern': '^[a-z]+$'}", "'Abc'",
         "spec: Invalid value: \"Abc\": " BODY "should match '^[a-z]+$'"},
        {"{'type': 'string', 'pattern': '^(a+)+$'}", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'",
         "spec: Invalid value: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\": " BODY
         "takes too long to be matched with '^(a+)+$'"},
        {"{'type': 'string', 'format': 'date-time'}", "'yesterday'",
         "spec: Invalid value: \"yesterday\": " BODY "must be of type date-time: \"yesterday\""},
        {"{'type': 'string', 'format': 'of-mine'}", "'x'", ""},
        /* words */
        {"{'type': 'string', 'enum': ['a', 'b']}", "'b'", ""},
        {"{'type': 'string', 'enum': ['a', 'b']}", "'x'",
         "spec: Unsupported value: \"x\": supported values: \"a\", \"b\""},
        {"{'type': 'integer', 'enum': [1, 2]}", "3",
         "spec: Unsupported value: 3: supported values: \"1\", \"2\""},
        {"{'type': 'number', 'enum': [1]}", "1.0", ""},
        {"{'type': 'object', 'x-kubernetes-preserve-unknown-fields': true, 'enum': [{'a': 1}]}",
         "{'a': 1}", ""},
        /* lists */
        {"{'type': 'array', 'minItems': 1, 'items': {'type': 'string'}}", "[]",
         "spec: Invalid value: []: " BODY "should have at least 1 items"},
        {"{'type': 'array', 'maxItems': 1, 'items': {'type': 'string'}}", "['a', 'b']",
         "spec: Too many: 2: must have at most 1 items"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}}",
         "['a', 'b', 'a']", "spec[2]: Duplicate value: \"a\""},
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': "
         "['p', 'q'], 'items': {'type': 'object', 'required': ['p'], 'properties': {'p': {'type': "
         "'integer'}, 'q': {'type': 'string', 'default': 'x'}}}}",
         "[{'p': 1, 'q': 'a'}, {'p': 1, 'q': 'b'}, {'p': 1, 'q': 'a'}]",
         "spec[2]: Duplicate value: {\"p\":1,\"q\":\"a\"}"},
        /* objects */
        {"{'type': 'object', 'required': ['a', 'b'], 'properties': {'a': {'type': 'string'}}}",
         "{'b': 1}", "spec.a: Required value"},
        {"{'type': 'object', 'additionalProperties': {'type': 'integer'}}", "{'a': 1, 'b': 'c'}",
         "spec.b: Invalid value: \"string\": spec.b in body must be of type integer: \"string\""},
        {"{'type': 'object', 'minProperties': 2, 'additionalProperties': true}", "{'a': 1}",
         "spec: Invalid value: {\"a\":1}: " BODY "should have at least 2 properties"},
        {"{'type': 'object', 'maxProperties': 1, 'additionalProperties': true}", "{'a': 1, 'b': 2}",
         "spec: Too many: 2: must have at most 1 items"},
        {"{'type': 'object', 'x-kubernetes-embedded-resource': true, "
         "'x-kubernetes-preserve-unknown-fields': true}",
         "{'apiVersion': 'v1', 'spec': {}}", "spec.kind: Required value: must not be empty"},
        /* composition */
        {"{'type': 'integer', 'allOf': [{'minimum': 2}, {'maximum': 4}]}", "3", ""},
        {"{'type': 'integer', 'allOf': [{'minimum': 2}, {'maximum': 4}]}", "5",
         "spec: Invalid value: 5: " BODY "should be less than or equal to 4"},
        {"{'type': 'integer', 'anyOf': [{'maximum': 2}, {'minimum': 4}]}", "5", ""},
        {"{'type': 'integer', 'anyOf': [{'maximum': 2}, {'minimum': 4}]}", "3",
         "spec: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)"},
        {"{'type': 'integer', 'oneOf': [{'maximum': 2}, {'minimum': 4}]}", "3",
         "spec: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). "
         "Found none valid"},
        {"{'type': 'integer', 'oneOf': [{'maximum': 4}, {'minimum': 2}]}", "3",
         "spec: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). "
         "Found several valid alternatives"},
        {"{'type': 'integer', 'not': {'enum': [3]}}", "4", ""},
        {"{'type': 'integer', 'not': {'enum': [3]}}", "3",
         "spec: Invalid value: \"\": \"spec\" must not validate the schema (not)"},
        {"{'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'string'}}, "
         "'oneOf': [{'required': ['a']}, {'required': ['b']}]}",
         "{'b': 'x'}", ""},
        {"{'x-kubernetes-int-or-string': true, 'anyOf': [{'type': 'integer'}, {'type': 'string'}], "
         "'pattern': '^[0-9]+%$'}",
         "'5%'", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        const struct api_schema *s = must_compile(set, cases[i].schema);
        json_auto_t *object = object_with(cases[i].spec);
        struct api_report report = {0};
        api_schema_validate(s, object, NULL, &report);
        _cleanup_free_ char *got = problems_of(&report);
        if (!str_eq(got, cases[i].expected))
            fail_msg("%s, %s:\n%s\ninstead of\n%s", cases[i].schema, cases[i].spec, got,
                     cases[i].expected);
        api_report_clear(&report); /* what does not change is not looked at again */
        api_schema_validate(s, object, object, &report);
        assert_int_equal(report.errors, 0);
        api_report_done(&report);
    }
}

static void test_updates(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *old, *spec, *expected;
    } cases[] = {
        {"{'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}}}",
         "{'a': 1, 'b': 1}", "{'a': 1, 'b': 2}", ""},
        {"{'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}}}",
         "{'a': 1, 'b': 1}", "{'a': 2, 'b': 2}",
         "spec.a: Invalid value: \"integer\": spec.a in body must be of type string: \"integer\""},
        {"{'type': 'object', 'required': ['c'], 'properties': {'a': {'type': 'integer'}}}",
         "{'a': 1}", "{'a': 2}", "spec.c: Required value"},
        /* elements of a map are known by their keys, wherever they are */
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n'], "
         "'items': {'type': 'object', 'required': ['n'], 'properties': {'n': {'type': 'string'}, "
         "'v': {'type': 'integer', 'maximum': 5}}}}",
         "[{'n': 'a', 'v': 9}, {'n': 'b', 'v': 1}]", "[{'n': 'b', 'v': 2}, {'n': 'a', 'v': 9}]",
         ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        const struct api_schema *s = must_compile(set, cases[i].schema);
        json_auto_t *old = object_with(cases[i].old), *object = object_with(cases[i].spec);
        struct api_report report = {0};
        api_schema_validate(s, object, old, &report);
        _cleanup_free_ char *got = problems_of(&report);
        assert_string_equal(got, cases[i].expected);
        api_report_done(&report);
    }
}

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *format, *good, *bad;
    } cases[] = {
        {"date", "2026-01-02", "2026-13-02"},
        {"date-time", "2026-01-02T03:04:05Z", "2026-01-02"},
        {"duration", "1h30m", "1x"},
        {"duration", "-1.5h", "h"},
        {"duration", "3 days", "3 fortnights"},
        {"duration", "0", ""},
        {"byte", "YWJj", "YWJ"},
        {"byte", "YWI=", "Y===W"},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456"},
        {"uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"},
        {"uuid3", "123e4567-e89b-32d3-a456-426614174000", "x"},
        {"uuid5", "123e4567-e89b-52d3-a456-426614174000", "123e4567-e89b-52d3-a456-4266141740000"},
        {"ipv4", "10.0.0.1", "10.0.0.256"},
        {"ipv6", "fe80::1", "10.0.0.1"},
        {"cidr", "10.0.0.0/8", "10.0.0.0/33"},
        {"cidr", "fe80::/10", "fe80::"},
        {"mac", "00:11:22:33:44:55", "00:11:22:33:44"},
        {"mac", "00-11-22-33-44-55", "00:11-22:33:44:55"},
        {"hostname", "a-b.example.test", "-a.test"},
        {"email", "a@b.test", "a@"},
        {"uri", "https://a.test/b?c#d", "no uri"},
        {"uri", "/a", "a"},
        {"hexcolor", "#fff", "#ffff"},
        {"bsonobjectid", "507f1f77bcf86cd799439011", "507f"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        _cleanup_free_ char *schema =
            mem_printf("{'type': 'string', 'format': '%s'}", cases[i].format);
        const struct api_schema *s = must_compile(set, schema);
        const char *texts[] = {cases[i].good, cases[i].bad};
        for (unsigned wrong = 0; wrong < ARRAY_SIZE(texts); wrong++) {
            _cleanup_free_ char *value = mem_printf("'%s'", texts[wrong]);
            json_auto_t *object = object_with(value);
            struct api_report report = {0};
            api_schema_validate(s, object, NULL, &report);
            if (report.errors != wrong)
                fail_msg("%s: %s", cases[i].format, texts[wrong]);
            api_report_done(&report);
        }
    }
}

#define POINTS "{'type': 'object', 'properties': {'x': {'type': 'integer', 'default': 1}}}"

static void test_prune_and_default(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *spec, *expected, *unknown;
    } cases[] = {
        {POINTS, "{}", "{'x': 1}", ""},
        {POINTS, "{'x': null}", "{'x': 1}", ""},
        {POINTS, "{'x': 5, 'y': 6}", "{'x': 5}", "spec.y"},
        {POINTS, "[1]", "[1]", ""}, /* not for pruning to judge */
        {"{'type': 'object', 'properties': {'p': {'type': 'object', 'default': {}, 'properties': "
         "{'x': {'type': 'string', 'default': 'a'}}}}}",
         "{}", "{'p': {'x': 'a'}}", ""},
        {"{'type': 'object', 'properties': {'p': {'type': 'object', 'properties': {'x': {'type': "
         "'string', 'default': 'a'}}}}}",
         "{}", "{}", ""}, /* nothing is made just to hold defaults */
        {"{'type': 'array', 'items': " POINTS "}", "[{}, {'x': 2, 'z': 3}]", "[{'x': 1}, {'x': 2}]",
         "spec[1].z"},
        {"{'type': 'object', 'additionalProperties': " POINTS "}", "{'a': {}, 'b': {'q': 1}}",
         "{'a': {'x': 1}, 'b': {'x': 1}}", "spec.b.q"},
        {"{'type': 'object', 'additionalProperties': true}", "{'a': {'b': 1}}", "{'a': {'b': 1}}",
         ""},
        {"{'type': 'object'}", "{'a': 1}", "{}", "spec.a"},
        {"{'type': 'object', 'x-kubernetes-preserve-unknown-fields': true, 'properties': {'p': "
         "{'type': 'object', 'properties': {'x': {'type': 'string'}}}}}",
         "{'a': {'b': 1}, 'p': {'x': 'y', 'z': 1}}", "{'a': {'b': 1}, 'p': {'x': 'y'}}",
         "spec.p.z"},
        {"{'type': 'object', 'x-kubernetes-embedded-resource': true, 'properties': {'spec': "
         "{'type': 'object'}}}",
         "{'apiVersion': 'v1', 'kind': 'K', 'metadata': {'name': 'n'}, 'spec': {}, 'more': 1}",
         "{'apiVersion': 'v1', 'kind': 'K', 'metadata': {'name': 'n'}, 'spec': {}}", "spec.more"},
        {"{'type': 'object', 'properties': {'n': {'type': 'string', 'nullable': true, 'default': "
         "'a'}}}",
         "{'n': null}", "{'n': null}", ""},
        {"{'type': 'object', 'nullable': true, 'properties': {'a': {'type': 'string'}}}", "null",
         "null", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        const struct api_schema *s = must_compile(set, cases[i].schema);
        json_auto_t *object = object_with(cases[i].spec),
                    *expected = object_with(cases[i].expected);
        struct api_report report = {0};
        api_schema_prune(s, object, API_UNKNOWN_WARN, &report);
        api_schema_default(s, object);
        assert_json(object, expected, cases[i].schema);
        assert_int_equal(report.errors, 0);
        assert_int_equal(report.warnings, *cases[i].unknown ? 1 : 0);
        if (*cases[i].unknown)
            assert_string_equal(report.problems.p[0].path, cases[i].unknown);
        api_report_clear(&report); /* a second time there is nothing to do */
        api_schema_prune(s, object, API_UNKNOWN_ERROR, &report);
        api_schema_default(s, object);
        assert_json(object, expected, cases[i].schema);
        assert_int_equal(report.errors, 0);
        api_report_done(&report);
    }
}

static void test_not_structural(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *expected; /* where, and what is said */
    } cases[] = {
        {"{}", "type: Required value: must not be empty for specified object fields"},
        {"{'type': 'null'}", "type: Unsupported value: \"null\""},
        {"{'type': 5}", "type: Invalid value: 5: must be a string"},
        {"{'type': 'array'}", "items: Required value: must be specified"},
        {"{'type': 'array', 'items': {}}",
         "items.type: Required value: must not be empty for specified array items"},
        {"{'type': 'array', 'items': [{'type': 'string'}]}",
         "items: Forbidden: items must be a schema object and not an array"},
        {"{'type': 'object', 'properties': {'a': {'type': 'string'}}, 'additionalProperties': "
         "{'type': 'string'}}",
         "additionalProperties: Forbidden: additionalProperties and properties are mutual "
         "exclusive"},
        {"{'type': 'object', 'additionalProperties': false}",
         "additionalProperties: Forbidden: additionalProperties cannot be set to false"},
        {"{'type': 'array', 'uniqueItems': true, 'items': {'type': 'string'}}",
         "uniqueItems: Forbidden: uniqueItems cannot be set to true"},
        {"{'$ref': '#/x'}", "$ref: Forbidden: $ref is not supported"},
        {"{'type': 'object', 'x-kubernetes-preserve-unknown-fields': false}",
         "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"},
        {"{'type': 'string', 'x-kubernetes-int-or-string': true}",
         "type: Invalid value: \"string\": must be empty if x-kubernetes-int-or-string is true"},
        {"{'type': 'string', 'x-kubernetes-embedded-resource': true}",
         "type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource"},
        {"{'type': 'object', 'x-kubernetes-embedded-resource': true}",
         "properties: Required value: must not be empty if x-kubernetes-embedded-resource"},
        {"{'type': 'string', 'pattern': '('}",
         "pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: "},
        {"{'type': 'string', 'minLength': -1}", "minLength: Invalid value: -1: must be greater"},
        {"{'type': 'string', 'minLength': 'a'}", "minLength: Invalid value: \"a\": must be an int"},
        {"{'type': 'integer', 'multipleOf': 0}", "multipleOf: Invalid value: 0: must be greater"},
        {"{'type': 'integer', 'anyOf': [{'type': 'integer'}]}",
         "anyOf[0].type: Forbidden: must be empty to be structural"},
        {"{'type': 'object', 'not': {'properties': {'a': {'default': 1}}}}",
         "not.properties.a.default: Forbidden: must be empty to be structural"},
        {"{'type': 'object', 'oneOf': [{'properties': {'a': {'minimum': 1}}}]}",
         "properties.a: Required value: because it is defined below allOf"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'items': {'type': 'object'}}",
         "x-kubernetes-list-map-keys: Required value: must not be empty"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'], "
         "'items': {'type': 'object', 'properties': {'a': {'type': 'string'}}}}",
         "items.properties.a.default: Required value: this property is in "
         "x-kubernetes-list-map-keys"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'], "
         "'items': {'type': 'string'}}",
         "items.type: Invalid value: must be object if parent array's x-kubernetes-list-type"},
        {"{'type': 'array', 'x-kubernetes-list-type': 'heap', 'items': {'type': 'string'}}",
         "x-kubernetes-list-type: Unsupported value: \"heap\""},
        {"{'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'object'}}",
         "items: Invalid value: must be atomic as item of a list"},
        {"{'type': 'string', 'x-kubernetes-list-type': 'set'}",
         "type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"},
        {"{'type': 'string', 'x-kubernetes-map-type': 'atomic'}",
         "type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"},
        {"{'type': 'integer', 'default': 'a'}",
         "default: Invalid value: \"string\": properties.spec.default in body must be of type "
         "integer"},
        {"{'type': 'integer', 'maximum': 3, 'default': 4}",
         "default: Invalid value: 4: properties.spec.default in body should be less than"},
        {"{'type': 'object', 'default': {'b': 1}, 'properties': {'a': {'type': 'string'}}}",
         "default: Invalid value: {\"b\":1}: must not have unknown fields"},
        {"'text'", "Invalid value: \"text\": must be an object"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        struct api_report report = {0};
        const struct api_schema *s = compile(set, cases[i].schema, &report);
        _cleanup_free_ char *got = problems_of(&report);
        if (s || !strstr(got, cases[i].expected) || !str_starts_with(got, "properties.spec"))
            fail_msg("%s:\n%s\ninstead of\n%s", cases[i].schema, got, cases[i].expected);
        api_report_done(&report);
    }
}

static void test_root(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *expected; /* NULL: it is fine */
    } cases[] = {
        {"{'type': 'object'}", NULL},
        {"{'type': 'array', 'items': {'type': 'string'}}", "type: Invalid value: \"array\""},
        {"{'type': 'object', 'nullable': true}", "nullable: Forbidden"},
        {"{'type': 'object', 'additionalProperties': true}", "additionalProperties: Forbidden"},
        {"{'type': 'object', 'properties': {'metadata': {'type': 'object'}}}", NULL},
        {"{'type': 'object', 'properties': {'metadata': {'type': 'object', 'properties': {'name': "
         "{'type': 'string', 'maxLength': 5}}}}}",
         NULL},
        {"{'type': 'object', 'properties': {'metadata': {'type': 'object', 'properties': "
         "{'labels': {'type': 'object'}}}}}",
         "must not specify anything other than name and generateName"},
        {"{'type': 'object', 'properties': {'metadata': {'type': 'string'}}}", "must be object"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        struct api_report report = {0};
        json_auto_t *json = parse_quoted(cases[i].schema);
        const struct api_schema *s = api_schema_compile(set, json, NULL, &report);
        _cleanup_free_ char *got = problems_of(&report);
        if (!s != !!cases[i].expected || (cases[i].expected && !strstr(got, cases[i].expected)))
            fail_msg("%s: %s", cases[i].schema, got);
        api_report_done(&report);
    }
}

/* Schemas that are too deep or too large end in an error, not in the stack's end. */
static void test_bounds(void **state)
{
    (void)state;
    json_t *deep = json_pack("{s:s}", "type", "string");
    for (int i = 0; i < API_SCHEMA_MAX_DEPTH + 10; i++)
        deep = json_pack("{s:s,s:{s:o}}", "type", "object", "properties", "a", deep);
    json_t *wide = json_pack("{s:s}", "type", "object"), *properties = json_object();
    for (int i = 0; i <= API_SCHEMA_MAX_NODES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        json_object_set_new(properties, name, json_pack("{s:s}", "type", "string"));
    }
    json_object_set_new(wide, "properties", properties);
    json_t *cases[] = {deep, wide};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
        struct api_report report = {0};
        assert_null(api_schema_compile(set, cases[i], NULL, &report));
        assert_non_null(strstr(report.problems.p[0].message, "the schema is too large"));
        api_report_done(&report);
        json_decref(cases[i]);
    }
}

static void test_fields(void **state)
{
    (void)state;
    _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
    const struct api_schema *s = must_compile(
        set,
        "{'type': 'object', 'properties': {'plain': {'type': 'string'}, 'set': {'type': 'array', "
        "'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}}, 'map': {'type': 'array', "
        "'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n'], 'items': {'type': "
        "'object', 'required': ['n'], 'properties': {'n': {'type': 'string'}, 'whole': {'type': "
        "'object', 'x-kubernetes-map-type': 'atomic'}}}}, 'keyed': {'type': 'array', "
        "'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n', 'o'], 'items': "
        "{'type': 'object', 'required': ['n', 'o'], 'properties': {'n': {'type': 'string'}, 'o': "
        "{'type': 'string'}}}}}}");
    const struct api_field *fields = api_schema_fields(set, s);
    assert_string_equal(fields[0].name, "apiVersion");
    assert_non_null(api_field_find(api_field_find(fields, "metadata")->fields, "finalizers"));
    const struct api_field *spec = api_field_find(fields, "spec");
    assert_non_null(api_field_find(spec->fields, "plain"));
    assert_null(api_field_find(spec->fields, "other"));
    assert_true(api_field_find(spec->fields, "set")->flags & API_SET);
    const struct api_field *map = api_field_find(spec->fields, "map");
    assert_string_equal(map->merge_key, "n");
    assert_null(map->map_keys);
    const struct api_field *keyed = api_field_find(spec->fields, "keyed");
    assert_string_equal(keyed->map_keys[1], "o");
    assert_int_equal(map->shape, API_LIST);
    assert_true(api_field_find(map->fields, "whole")->flags & API_REPLACE);
    assert_true(api_field_find(map->fields, "whole")->flags & API_ATOMIC);

    assert_string_equal(api_schema_type_at(s, ".spec.plain"), "string");
    assert_string_equal(api_schema_type_at(s, ".spec"), "object");
    assert_null(api_schema_type_at(s, ".spec.other"));
    assert_null(api_schema_type_at(s, "spec"));
    assert_null(api_schema_type_at(s, ".spec..plain"));
}

static void test_unknown_words(void **state)
{
    (void)state;
    _cleanup_(api_schema_set_freep) struct api_schema_set *set = api_schema_set_new();
    struct api_report report = {0};
    assert_non_null(compile(set, "{'type': 'string', 'colour': 'red', 'format': 'mine'}", &report));
    assert_int_equal(report.warnings, 2); /* a word nobody knows, a format nobody knows */
    api_report_done(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validate),       cmocka_unit_test(test_updates),
        cmocka_unit_test(test_formats),        cmocka_unit_test(test_prune_and_default),
        cmocka_unit_test(test_not_structural), cmocka_unit_test(test_root),
        cmocka_unit_test(test_bounds),         cmocka_unit_test(test_fields),
        cmocka_unit_test(test_unknown_words),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}

/* What OpenAPI v2 can say of a schema. */
#include "api/openapi.h"
#include "jsontest.h"

#define META "'#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'"

static void test_schemas(void **state)
{
    static const struct {
        const char *v3, *v2;
    } cases[] = {
        {"{}", "{}"},
        {"{'type': 'string', 'description': 'd', 'pattern': 'p', 'maxLength': 1, 'x-a': {}}",
         "{'type': 'string', 'description': 'd', 'pattern': 'p', 'maxLength': 1, 'x-a': {}}"},
        /* choices are left out, whatever is in them */
        {"{'type': 'object', 'oneOf': [{}], 'anyOf': [{}], 'allOf': [{}], 'not': {}}",
         "{'type': 'object'}"},
        {"{'anyOf': [{'type': 'integer'}, {'type': 'string'}], 'x-kubernetes-int-or-string': true}",
         "{'x-kubernetes-int-or-string': true}"},
        /* words that v2 does not have */
        {"{'type': 'string', 'deprecated': true, 'id': 'x', '$schema': 'y', 'writeOnly': true}",
         "{'type': 'string'}"},
        /* what may be null may be anything, and need not be there */
        {"{'type': 'string', 'nullable': true, 'enum': ['a']}", "{'enum': ['a']}"},
        {"{'type': 'object', 'required': ['a', 'b'], 'properties': {'a': {'type': 'object', "
         "'nullable': true, 'properties': {'c': {}}}, 'b': {'type': 'string'}}}",
         "{'type': 'object', 'required': ['b'], 'properties': {'a': {}, 'b': {'type': 'string'}}}"},
        {"{'type': 'object', 'required': ['a'], 'properties': {'a': {'nullable': true}}}",
         "{'type': 'object', 'properties': {'a': {}}}"},
        {"{'type': 'object', 'required': ['a'], 'additionalProperties': {'type': 'string', "
         "'nullable': true}}",
         "{'type': 'object', 'additionalProperties': {}}"},
        {"{'type': 'string', 'nullable': false}", "{'type': 'string'}"},
        /* what keeps all that it does not name names nothing */
        {"{'type': 'object', 'properties': {'a': {}}, 'x-kubernetes-preserve-unknown-fields': "
         "true}",
         "{'x-kubernetes-preserve-unknown-fields': true}"},
        {"{'type': 'array', 'items': {'type': 'string'}, "
         "'x-kubernetes-preserve-unknown-fields': true}",
         "{'x-kubernetes-preserve-unknown-fields': true}"},
        {"{'type': 'array'}", "{}"},
        {"{'type': 'array', 'items': {'type': 'array', 'items': {'oneOf': []}}}",
         "{'type': 'array', 'items': {'type': 'array', 'items': {}}}"},
        {"{'type': 'object', 'additionalProperties': true}",
         "{'type': 'object', 'additionalProperties': true}"},
        /* an object inside another */
        {"{'type': 'object', 'x-kubernetes-embedded-resource': true, 'required': ['kind']}",
         "{'type': 'object', 'x-kubernetes-embedded-resource': true, 'required': ['kind', "
         "'apiVersion'], 'properties': {'metadata': {'$ref': " META
         "}, 'kind': {'type': 'string'}, "
         "'apiVersion': {'type': 'string'}}}"},
        {"{'type': 'object', 'x-kubernetes-embedded-resource': true, "
         "'x-kubernetes-preserve-unknown-fields': true}",
         "{'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true}"},
        {"true", "true"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *schema = parse_quoted(cases[i].v3);
        json_auto_t *expected = parse_quoted(cases[i].v2);
        api_openapi_to_v2(schema);
        assert_json(schema, expected, cases[i].v3);
    }
}

static const json_t *property(const json_t *schema, const char *name)
{
    return json_object_get(json_object_get(schema, "properties"), name);
}

/* Members of a table and of a message are both there. */
static void test_tables(void **state)
{
    (void)state;
    for (const struct api_openapi_shared *s = api_openapi_shared(); s->name; s++) {
        json_auto_t *schema = api_openapi_shared_schema(s);
        for (const struct api_field *f = s->fields; f->name; f++) {
            if (!property(schema, f->name))
                fail_msg("%s has no %s", s->name, f->name);
        }
        for (const struct api_message_field *m = s->message; m->number; m++) {
            if (m->kind != API_MESSAGE_INLINE && !property(schema, m->name))
                fail_msg("%s has no %s", s->name, m->name);
        }
    }
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        json_auto_t *schema = api_openapi_schema_v2(*kind);
        assert_string_equal(json_str(schema, "type"), "object");
        assert_non_null(json_str(property(schema, "metadata"), "$ref"));
        size_t i;
        json_t *name;
        json_array_foreach(json_object_get(schema, "required"), i, name)
            assert_string_not_equal(json_string_value(name), "metadata");
        json_auto_t *again = json_deep_copy(schema);
        api_openapi_to_v2(again);
        assert_json(again, schema, (*kind)->kind); /* there is nothing left to leave out */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

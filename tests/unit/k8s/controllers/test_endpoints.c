#include "jsontest.h"
#include "k8s/controllers/endpoints.h"

#define SERVICE(spec)                                                                              \
    "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's', 'namespace': 'a', 'uid': "  \
    "'u'}, 'spec': {'selector': {'app': 'x'}, 'ports': [{'name': 'p', 'port': 80, 'protocol': "    \
    "'TCP', 'targetPort': 'web'}]" spec "}}"
#define POD(name, ip, port, ready)                                                                 \
    "{'metadata': {'name': '" name "', 'namespace': 'a', 'uid': '" name                            \
    "'}, 'spec': {'nodeName': 'n', 'containers': [{'ports': [{'name': 'web', "                     \
    "'containerPort': " port "}]}]}, 'status': {'podIP': '" ip                                     \
    "', 'conditions': [{'type': 'Ready', 'status': '" ready "'}]}}"

/* "ip:port" of every ready address, "!" before those that are not. */
static void subsets_text(const json_t *object, struct str *out)
{
    size_t i, j;
    json_t *subset, *address;
    json_array_foreach(json_object_get(object, "subsets"), i, subset) {
        json_int_t port = json_integer_value(
            json_at(json_array_get(json_object_get(subset, "ports"), 0), "port"));
        json_array_foreach(json_object_get(subset, "addresses"), j, address)
            str_appendf(out, "%s:%d ", json_str(address, "ip"), (int)port);
        json_array_foreach(json_object_get(subset, "notReadyAddresses"), j, address)
            str_appendf(out, "!%s:%d ", json_str(address, "ip"), (int)port);
    }
}

static void slices_text(const json_t *slices, struct str *out)
{
    size_t i, j;
    json_t *slice, *endpoint;
    json_array_foreach((json_t *)slices, i, slice) {
        json_int_t port =
            json_integer_value(json_at(json_array_get(json_object_get(slice, "ports"), 0), "port"));
        json_array_foreach(json_object_get(slice, "endpoints"), j, endpoint)
            str_appendf(
                out, "%s%s:%d ", json_is_true(json_at(endpoint, "conditions", "ready")) ? "" : "!",
                json_string_value(json_array_get(json_object_get(endpoint, "addresses"), 0)),
                (int)port);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *service, *pods, *expected;
    } cases[] = {
        {SERVICE(""), "[]", ""},
        {SERVICE(""), "[" POD("a", "1.1.1.1", "8080", "True") "]", "1.1.1.1:8080 "},
        {SERVICE(""),
         "[" POD("a", "1.1.1.1", "8080", "True") "," POD("b", "1.1.1.2", "8080", "False") "]",
         "1.1.1.1:8080 !1.1.1.2:8080 "},
        {SERVICE(", 'publishNotReadyAddresses': true"),
         "[" POD("b", "1.1.1.2", "8080", "False") "]", "1.1.1.2:8080 "},
        {SERVICE(""),
         "[" POD("a", "1.1.1.1", "8080", "True") "," POD("b", "1.1.1.2", "9090", "True") "]",
         "1.1.1.1:8080 1.1.1.2:9090 "},
        {SERVICE(""), "[{'metadata': {'name': 'a'}, 'status': {'phase': 'Running'}}]", ""},
        {SERVICE(""),
         "[{'metadata': {'name': 'a'}, 'status': {'phase': 'Failed', 'podIP': '1.1.1.1'}}]", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *service = parse_quoted(cases[i].service), *pods = parse_quoted(cases[i].pods);
        json_auto_t *object = endpoints_object(service, pods);
        json_auto_t *slices = endpoints_slices(service, pods);
        _cleanup_(str_done) struct str a = {0}, b = {0};
        subsets_text(object, &a);
        slices_text(slices, &b);
        assert_string_equal(str_get(&a), cases[i].expected);
        assert_string_equal(str_get(&b), cases[i].expected);
        assert_string_equal(json_string_value(json_at(json_array_get(slices, 0), "metadata",
                                                      "labels", "kubernetes.io/service-name")),
                            "s");
    }
}

static void test_concern(void **state)
{
    (void)state;
    json_auto_t *service = parse_quoted(SERVICE(""));
    json_auto_t *external = parse_quoted(SERVICE(", 'type': 'ExternalName'"));
    json_auto_t *bare = parse_quoted("{'spec': {}}");
    json_auto_t *pod = parse_quoted("{'metadata': {'labels': {'app': 'x', 'y': 'z'}}}");
    json_auto_t *other = parse_quoted("{'metadata': {'labels': {'app': 'y'}}}");
    assert_true(endpoints_concern(service));
    assert_false(endpoints_concern(external));
    assert_false(endpoints_concern(bare));
    assert_true(endpoints_select(service, pod));
    assert_false(endpoints_select(service, other));
    assert_false(endpoints_select(bare, pod));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_concern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/str.h"
#include "jsontest.h"
#include "k8s/controllers/binder.h"
#include "kube/object.h"

#define CLAIM(spec)                                                                                \
    "{'metadata': {'namespace': 'a', 'name': 'c', 'uid': 'u'}, 'spec': {'accessModes': "           \
    "['ReadWriteOnce'], 'resources': {'requests': {'storage': '2Gi'}}" spec "}}"
#define VOLUME(name, size, spec)                                                                   \
    "{'metadata': {'name': '" name "', 'labels': {'l': '" name "'}}, 'spec': {'accessModes': "     \
    "['ReadWriteOnce', 'ReadOnlyMany'], 'capacity': {'storage': '" size "'}" spec "}}"

static void test_is_for(void **state)
{
    (void)state;
    static const struct {
        const char *of;
        bool is;
    } cases[] = {
        {"", false},
        {", 'claimRef': {'namespace': 'a', 'name': 'c', 'uid': 'u'}", true},
        {", 'claimRef': {'namespace': 'a', 'name': 'c'}", true},
        {", 'claimRef': {'namespace': 'a', 'name': 'c', 'uid': 'v'}", false},
        {", 'claimRef': {'namespace': 'b', 'name': 'c', 'uid': 'u'}", false},
        {", 'claimRef': {'namespace': 'a', 'name': 'd'}", false},
    };
    json_auto_t *claim = parse_quoted(CLAIM(""));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("{'spec': {'x': 1%s}}", cases[i].of);
        json_auto_t *volume = parse_quoted(text);
        assert_int_equal(binder_is_for(volume, claim), cases[i].is);
    }
}

static void test_best(void **state)
{
    (void)state;
    static const struct {
        const char *claim, *volumes, *best; /* "": none */
    } cases[] = {
        {CLAIM(""), "[]", ""},
        {CLAIM(""), "[" VOLUME("p", "1Gi", "") "]", ""},
        {CLAIM(""), "[" VOLUME("p", "9Gi", "") "," VOLUME("q", "3Gi", "") "]", "q"},
        {CLAIM(""), "[" VOLUME("p", "3Gi", ", 'storageClassName': 's'") "]", ""},
        {CLAIM(", 'storageClassName': 's'"),
         "[" VOLUME("p", "3Gi", "") "," VOLUME("q", "9Gi", ", 'storageClassName': 's'") "]", "q"},
        {CLAIM(", 'volumeMode': 'Block'"), "[" VOLUME("p", "3Gi", "") "]", ""},
        {CLAIM(", 'volumeMode': 'Block'"), "[" VOLUME("p", "3Gi", ", 'volumeMode': 'Block'") "]",
         "p"},
        {CLAIM(", 'selector': {'matchLabels': {'l': 'p'}}"),
         "[" VOLUME("q", "2Gi", "") "," VOLUME("p", "3Gi", "") "]", "p"},
        {CLAIM(""), "[" VOLUME("p", "3Gi", ", 'claimRef': {'namespace': 'a', 'name': 'c'}") "]",
         ""},
        {"{'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': "
         "'1Gi'}}}}",
         "[" VOLUME("p", "3Gi", "") "]", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *claim = parse_quoted(cases[i].claim), *list = parse_quoted(cases[i].volumes);
        const json_t *best = binder_best(list, claim);
        assert_string_equal(best ? kube_name(best) : "", cases[i].best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_for),
        cmocka_unit_test(test_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

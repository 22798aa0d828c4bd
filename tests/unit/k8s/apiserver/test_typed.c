#include "gadget.h"
#include "jsontest.h"
#include "k8s/apiserver/typed.h"

#define NAMED(name)          "'k:{\\\"name\\\":\\\"" name "\\\"}'"
#define PORT(port, protocol) "'k:{\\\"port\\\":" port ",\\\"protocol\\\":\\\"" protocol "\\\"}'"

/* An object with that spec. */
static json_t *with_spec(const char *spec)
{
    json_t *object = parse_quoted("{'apiVersion': 'example.test/v1', 'kind': 'Gadget', 'metadata': "
                                  "{'name': 'g', 'uid': '1'}}");
    if (spec)
        json_object_set_new(object, "spec", parse_quoted(spec));
    return object;
}

/* What a set has of spec. */
static void assert_set(const struct fieldset *set, const char *expected, const char *what)
{
    _cleanup_(str_done) struct str text = {0};
    fieldset_encode(set, &text);
    json_auto_t *got = parse_json(str_get(&text)), *wanted = parse_quoted(expected);
    const json_t *spec = json_object_get(got, "f:spec");
    json_auto_t *none = json_object();
    assert_true(json_object_size(got) == (spec ? 1 : 0));
    assert_json(spec ? spec : none, wanted, what);
}

static void test_set(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *set, *all; /* what a configuration owns, what a creator owns */
    } cases[] = {
        {NULL, "{}", "{}"},
        {"{}", "{}", "{}"},
        {"{'size': '1'}", "{'f:size': {}}", "{'.': {}, 'f:size': {}}"},
        {"{'inner': {'a': 'x'}}", "{'f:inner': {'f:a': {}}}",
         "{'.': {}, 'f:inner': {'.': {}, 'f:a': {}}}"},
        {"{'inner': {}}", "{'f:inner': {}}", "{'.': {}, 'f:inner': {}}"},
        {"{'whole': {'a': 'x'}}", "{'f:whole': {}}", "{'.': {}, 'f:whole': {}}"},
        {"{'map': {'x': '1', 'b.c/d': '2'}}", "{'f:map': {'f:b.c/d': {}, 'f:x': {}}}",
         "{'.': {}, 'f:map': {'.': {}, 'f:b.c/d': {}, 'f:x': {}}}"},
        {"{'map': {}}", "{'f:map': {}}", "{'.': {}, 'f:map': {}}"},
        {"{'wholeMap': {'x': '1'}}", "{'f:wholeMap': {}}", "{'.': {}, 'f:wholeMap': {}}"},
        {"{'objects': {'x': {'a': '1'}}}", "{'f:objects': {'f:x': {'.': {}, 'f:a': {}}}}",
         "{'.': {}, 'f:objects': {'.': {}, 'f:x': {'.': {}, 'f:a': {}}}}"},
        {"{'list': ['a', 'b']}", "{'f:list': {}}", "{'.': {}, 'f:list': {}}"},
        {"{'list': []}", "{'f:list': {}}", "{'.': {}, 'f:list': {}}"},
        {"{'set': ['b', 'a']}", "{'f:set': {'v:\\\"a\\\"': {}, 'v:\\\"b\\\"': {}}}",
         "{'.': {}, 'f:set': {'.': {}, 'v:\\\"a\\\"': {}, 'v:\\\"b\\\"': {}}}"},
        {"{'set': []}", "{}", "{'.': {}, 'f:set': {}}"},
        {"{'set': ['a', 'a']}", "{'f:set': {}}", "{'.': {}, 'f:set': {}}"},
        {"{'items': [{'name': 'b', 'value': '1'}, {'name': 'a', 'inner': {'a': '2'}}]}",
         "{'f:items': {" NAMED("a") ": {'.': {}, 'f:name': {}, 'f:inner': {'f:a': {}}}, " NAMED(
             "b") ": {'.': {}, 'f:name': {}, 'f:value': {}}}}",
         "{'.': {}, 'f:items': {'.': {}, " NAMED(
             "a") ": {'.': {}, 'f:name': {}, 'f:inner': {'.': "
                  "{}, 'f:a': {}}}, " NAMED("b") ": {'.': {}, 'f:name': {}, 'f:value': {}}}}"},
        {"{'items': [{'value': '1'}]}", "{'f:items': {}}", "{'.': {}, 'f:items': {}}"},
        {"{'items': [{'name': 'a'}, {'name': 'a'}]}", "{'f:items': {}}",
         "{'.': {}, 'f:items': {}}"},
        {"{'refs': [{'name': 'a', 'value': '1'}]}", "{'f:refs': {" NAMED("a") ": {}}}",
         "{'.': {}, 'f:refs': {'.': {}, " NAMED("a") ": {}}}"},
        {"{'ports': [{'port': 80}, {'port': 80, 'protocol': 'UDP'}]}",
         "{'f:ports': {" PORT("80", "TCP") ": {'.': {}, 'f:port': {}}, " PORT(
             "80", "UDP") ": {'.': {}, 'f:port': {}, 'f:protocol': {}}}}",
         "{'.': {}, 'f:ports': {'.': {}, " PORT("80", "TCP") ": {'.': {}, 'f:port': {}}, " PORT(
             "80", "UDP") ": {'.': {}, 'f:port': {}, 'f:protocol': {}}}}"},
        {"{'any': {'x': [1], 'y': {'z': 1}}}",
         "{'f:any': {'f:x': {}, 'f:y': {'.': {}, 'f:z': {}}}}",
         "{'.': {}, 'f:any': {'.': {}, 'f:x': {}, 'f:y': {'.': {}, 'f:z': {}}}}"},
        {"{'unknown': {'x': 1}, 'more': [1]}", "{'f:unknown': {'.': {}, 'f:x': {}}, 'f:more': {}}",
         "{'.': {}, 'f:unknown': {'.': {}, 'f:x': {}}, 'f:more': {}}"},
        /* not as the table says */
        {"{'size': {'x': 1}, 'items': {'x': 1}, 'map': [1], 'inner': 'x', 'set': [[]]}",
         "{'f:size': {}, 'f:items': {}, 'f:map': {}, 'f:inner': {}, 'f:set': {}}",
         "{'.': {}, 'f:size': {}, 'f:items': {}, 'f:map': {}, 'f:inner': {}, 'f:set': {}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *object = with_spec(cases[i].spec);
        assert_set(typed_set(&a, &gadget, object), cases[i].set, cases[i].spec);
        struct typed_changes all = typed_compare(&a, &gadget, NULL, object);
        assert_set(all.added, cases[i].all, cases[i].spec);
        assert_true(!all.modified && !all.removed);
        struct typed_changes none = typed_compare(&a, &gadget, object, object);
        assert_true(!none.added && !none.modified && !none.removed);
        arena_done(&a);
    }
}

static void test_untracked(void **state)
{
    (void)state;
    struct arena a = {0};
    json_auto_t *object = parse_quoted(
        "{'apiVersion': 'v', 'kind': 'k', 'metadata': {'name': 'n', 'namespace': 's', 'uid': 'u', "
        "'resourceVersion': '1', 'generation': 1, 'creationTimestamp': 't', 'selfLink': 'l', "
        "'managedFields': [], 'generateName': 'g-', 'labels': {'name': 'x'}, 'finalizers': ['f'], "
        "'ownerReferences': [{'uid': 'o', 'name': 'n'}]}}");
    _cleanup_(str_done) struct str text = {0};
    fieldset_encode(typed_set(&a, &gadget, object), &text);
    assert_string_equal(str_get(&text),
                        "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"f\\\"\":{}},\"f:generateName\":"
                        "{},\"f:labels\":{\"f:name\":{}},\"f:ownerReferences\":{\"k:{\\\"uid\\\":"
                        "\\\"o\\\"}\":{}}}}");
    arena_done(&a);
}

static void test_compare(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *added, *modified, *removed;
    } cases[] = {
        {"{'size': '1'}", "{'size': '2'}", "{}", "{'f:size': {}}", "{}"},
        {"{'size': '1'}", "{'replicas': 1}", "{'f:replicas': {}}", "{}", "{'f:size': {}}"},
        {"{'inner': {'a': '1'}}", "{'inner': {'a': '1', 'b': '2'}}", "{'f:inner': {'f:b': {}}}",
         "{}", "{}"},
        {"{'inner': {'a': '1'}}", "{}", "{}", "{}", "{'f:inner': {'.': {}, 'f:a': {}}}"},
        {"{'inner': {'a': '1'}}", "{'inner': {}}", "{}", "{}", "{'f:inner': {'f:a': {}}}"},
        {"{'whole': {'a': '1'}}", "{'whole': {'b': '1'}}", "{}", "{'f:whole': {}}", "{}"},
        {"{'map': {'a': '1', 'b': '1'}}", "{'map': {'a': '2', 'c': '1'}}", "{'f:map': {'f:c': {}}}",
         "{'f:map': {'f:a': {}}}", "{'f:map': {'f:b': {}}}"},
        {"{'list': ['a']}", "{'list': ['a', 'b']}", "{}", "{'f:list': {}}", "{}"},
        {"{'set': ['a', 'b']}", "{'set': ['c', 'a']}", "{'f:set': {'v:\\\"c\\\"': {}}}", "{}",
         "{'f:set': {'v:\\\"b\\\"': {}}}"},
        {"{'set': ['a', 'b']}", "{'set': ['b', 'a']}", "{}", "{}", "{}"},
        {"{'items': [{'name': 'a', 'value': '1'}, {'name': 'b', 'value': '1'}]}",
         "{'items': [{'name': 'c'}, {'name': 'b', 'value': '2'}]}",
         "{'f:items': {" NAMED("c") ": {'.': {}, 'f:name': {}}}}",
         "{'f:items': {" NAMED("b") ": {'f:value': {}}}}",
         "{'f:items': {" NAMED("a") ": {'.': {}, 'f:name': {}, 'f:value': {}}}}"},
        {"{'refs': [{'name': 'a', 'value': '1'}]}", "{'refs': [{'name': 'a', 'value': '2'}]}", "{}",
         "{'f:refs': {" NAMED("a") ": {}}}", "{}"},
        {"{'ports': [{'port': 1, 'protocol': 'TCP'}]}", "{'ports': [{'port': 1}]}", "{}", "{}",
         "{'f:ports': {" PORT("1", "TCP") ": {'f:protocol': {}}}}"},
        {"{'any': {'x': {'y': 1}}}", "{'any': {'x': 1}}", "{}", "{'f:any': {'f:x': {}}}",
         "{'f:any': {'f:x': {'f:y': {}}}}"},
        {"{'any': 1}", "{'any': {'x': 1}}", "{'f:any': {'f:x': {}}}", "{'f:any': {}}", "{}"},
        {"{'items': [{'name': 'a'}]}", "{'items': [{'name': 'a'}, {'name': 'a'}]}", "{}",
         "{'f:items': {}}", "{'f:items': {" NAMED("a") ": {'.': {}, 'f:name': {}}}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *old = with_spec(cases[i].old), *object = with_spec(cases[i].new);
        struct typed_changes c = typed_compare(&a, &gadget, old, object);
        assert_set(c.added, cases[i].added, cases[i].new);
        assert_set(c.modified, cases[i].modified, cases[i].new);
        assert_set(c.removed, cases[i].removed, cases[i].new);
        arena_done(&a);
    }
}

/* A list of items by their names, each a letter. */
static json_t *items_named(const char *names)
{
    json_t *list = json_array();
    for (; *names; names++)
        json_array_append_new(list, json_pack("{s:s%}", "name", names, (size_t)1));
    return json_pack("{s:{s:o}}", "spec", "items", list);
}

static void test_order(void **state)
{
    (void)state;
    static const struct {
        const char *live, *config, *merged;
    } cases[] = {
        {"abc", "abc", "abc"}, {"abc", "cba", "cba"},    {"abc", "", "abc"},
        {"", "abc", "abc"},    {"abc", "xyz", "abcxyz"}, {"abc", "bx", "abcx"},
        {"abc", "xb", "axbc"}, {"abc", "xcya", "bxcya"}, {"ab", "ba", "ba"},
        {"axb", "ba", "xba"},  {"abcde", "ec", "abdec"}, {"xay", "bac", "xbayc"},
        {"aabb", "ab", "ab"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *live = items_named(cases[i].live), *config = items_named(cases[i].config);
        json_auto_t *merged = typed_merge(&a, &gadget, live, config);
        _cleanup_(str_done) struct str names = {0};
        size_t j;
        json_t *item;
        json_array_foreach((json_t *)json_at(merged, "spec", "items"), j, item)
            str_append(&names, json_str(item, "name"));
        if (!str_eq(str_get(&names), cases[i].merged))
            fail_msg("%s and %s are %s, not %s", cases[i].live, cases[i].config, str_get(&names),
                     cases[i].merged);
        arena_done(&a);
    }
}

static void test_merge(void **state)
{
    (void)state;
    static const struct {
        const char *live, *config, *merged;
    } cases[] = {
        {"{'size': '1', 'replicas': 2}", "{'size': '2'}", "{'size': '2', 'replicas': 2}"},
        {"{'inner': {'a': '1', 'b': '1'}}", "{'inner': {'b': '2'}}",
         "{'inner': {'a': '1', 'b': '2'}}"},
        {"{'whole': {'a': '1'}}", "{'whole': {'b': '2'}}", "{'whole': {'b': '2'}}"},
        {"{'map': {'a': '1'}}", "{'map': {'b': '2'}}", "{'map': {'a': '1', 'b': '2'}}"},
        {"{'wholeMap': {'a': '1'}}", "{'wholeMap': {'b': '2'}}", "{'wholeMap': {'b': '2'}}"},
        {"{'list': ['a']}", "{'list': ['b']}", "{'list': ['b']}"},
        {"{'set': ['a', 'b']}", "{'set': ['c', 'b']}", "{'set': ['a', 'c', 'b']}"},
        {"{'items': [{'name': 'a', 'value': '1'}, {'name': 'b'}]}",
         "{'items': [{'name': 'a', 'inner': {'a': '1'}}]}",
         "{'items': [{'name': 'a', 'value': '1', 'inner': {'a': '1'}}, {'name': 'b'}]}"},
        {"{'refs': [{'name': 'a', 'value': '1'}]}", "{'refs': [{'name': 'a'}]}",
         "{'refs': [{'name': 'a'}]}"},
        {"{'ports': [{'port': 1, 'protocol': 'UDP'}, {'port': 1, 'protocol': 'TCP'}]}",
         "{'ports': [{'port': 1, 'name': 'x'}]}",
         "{'ports': [{'port': 1, 'protocol': 'UDP'}, {'port': 1, 'protocol': 'TCP', 'name': "
         "'x'}]}"},
        {"{'any': {'a': [1], 'b': 1}}", "{'any': {'a': [2]}}", "{'any': {'a': [2], 'b': 1}}"},
        {"{'items': [{'value': '1'}]}", "{'items': [{'name': 'a'}]}", "{'items': [{'name': 'a'}]}"},
        {"{'inner': 'x'}", "{'inner': {'a': '1'}}", "{'inner': {'a': '1'}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *live = with_spec(cases[i].live), *config = with_spec(cases[i].config);
        json_auto_t *copy = json_deep_copy(live), *wanted = with_spec(cases[i].merged);
        json_auto_t *merged = typed_merge(&a, &gadget, live, config);
        assert_json(merged, wanted, cases[i].config);
        assert_json(live, copy, "the live object stays as it is");
        arena_done(&a);
    }
}

static void test_remove(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *set, *left;
    } cases[] = {
        {"{'size': '1', 'replicas': 1}", "{'f:size': {}, 'f:none': {}}", "{'replicas': 1}"},
        {"{'inner': {'a': '1', 'b': '1'}}", "{'f:inner': {'f:a': {}}}", "{'inner': {'b': '1'}}"},
        {"{'inner': {'a': '1'}, 'size': '1'}", "{'f:inner': {'f:a': {}}}", "{'size': '1'}"},
        {"{'set': ['b', 'a', 'c']}", "{'f:set': {'v:\\\"a\\\"': {}}}", "{'set': ['b', 'c']}"},
        {"{'items': [{'name': 'b', 'value': '1'}, {'name': 'a', 'value': '1'}]}",
         "{'f:items': {" NAMED("a") ": {'f:value': {}}, " NAMED("b") ": {}}}",
         "{'items': [{'name': 'a'}]}"},
        {"{'list': ['a'], 'size': '1'}", "{'f:list': {'i:0': {}}}", "{'list': ['a'], 'size': '1'}"},
        {"{'inner': {}, 'size': '1'}", "{'f:inner': {'f:a': {}}}", "{'inner': {}, 'size': '1'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        json_auto_t *object = with_spec(cases[i].spec), *wanted = with_spec(cases[i].left);
        json_auto_t *below = parse_quoted(cases[i].set),
                    *fields = json_pack("{s:O}", "f:spec", below);
        const struct fieldset *set;
        assert_int_equal(fieldset_decode(&a, fields, &set, NULL), 0);
        json_auto_t *left = typed_remove(&a, &gadget, object, set);
        assert_json(left, wanted, cases[i].set);
        arena_done(&a);
    }
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"{'items': [{'name': 'a'}, {'name': 'b'}]}", NULL},
        {"{'items': [{'name': 'b'}, {'name': 'a'}, {'name': 'b'}]}",
         ".spec.items: duplicate entries for key [name=\"b\"]"},
        {"{'items': [{'name': 'a'}, {'value': 'b'}]}",
         ".spec.items: element 1: associative list with keys has an element that omits key field "
         "\"name\" (and doesn't have default value)"},
        {"{'ports': [{'port': 1}, {'port': 1, 'protocol': 'TCP'}]}",
         ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]"},
        {"{'set': ['a', 'a']}", ".spec.set: duplicate entries for key [=\"a\"]"},
        {"{'set': [{}]}", ".spec.set: element 0: a set can hold only scalars"},
        {"{'list': ['a', 'a']}", NULL},
        {"{'items': 'x', 'any': [{}]}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        struct err e = {0};
        json_auto_t *object = with_spec(cases[i].spec);
        assert_int_equal(typed_check(&a, &gadget, object, &e), cases[i].message ? -1 : 0);
        assert_string_equal(e.msg, cases[i].message ? cases[i].message : "");
        arena_done(&a);
    }
}

/* Whatever is nested how deeply, its set can be stored beside it. */
static void test_deep(void **state)
{
    (void)state;
    struct arena a = {0};
    json_t *value = json_integer(1);
    for (int i = 0; i < 200; i++)
        value = json_pack("{s:o}", "a", value);
    json_auto_t *object = json_pack("{s:{s:o}}", "spec", "any", value);
    _cleanup_(str_done) struct str text = {0};
    fieldset_encode(typed_set(&a, &gadget, object), &text);
    const struct fieldset *again;
    const char *at = str_get(&text);
    assert_int_equal(fieldset_read(&a, &at, &again), 0);
    assert_true(fieldset_equal(again, typed_set(&a, &gadget, object)));
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),     cmocka_unit_test(test_untracked),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_order),
        cmocka_unit_test(test_merge),   cmocka_unit_test(test_remove),
        cmocka_unit_test(test_check),   cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests_name("typed", tests, NULL, NULL);
}

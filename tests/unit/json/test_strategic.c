#include <stdio.h>

#include "base/mem.h"
#include "json/patch.h"
#include "jsontest.h"

/*
 * A schema of one node, which is also the node of its members: `items` merge by name, `ports` by
 * number, `tags` are a set, `whole` is replaced; the rest is unknown.
 */
static const int node;

static bool field(const void *at, const char *name, struct json_smp_field *ret)
{
    assert_ptr_equal(at, &node);
    if (str_eq(name, "items"))
        *ret = (struct json_smp_field){&node, JSON_LIST_MAP, "name", false, true};
    else if (str_eq(name, "ports"))
        *ret = (struct json_smp_field){NULL, JSON_LIST_MAP, "number", false, false};
    else if (str_eq(name, "tags"))
        *ret = (struct json_smp_field){NULL, JSON_LIST_SET, NULL, false, false};
    else if (str_eq(name, "whole"))
        *ret = (struct json_smp_field){.node = &node, .replace = true};
    else if (str_eq(name, "spec"))
        *ret = (struct json_smp_field){.node = &node};
    else
        return false;
    return true;
}

static const struct json_smp_schema schema = {field};

/* Applies and checks on the way that neither input has changed. */
static json_t *apply(const json_t *doc, const json_t *patch, struct err *e)
{
    json_auto_t *doc_before = json_deep_copy(doc), *patch_before = json_deep_copy(patch);
    json_t *result = json_smp_apply(doc, patch, &schema, &node, e);
    assert_true(json_equal(doc, doc_before));
    assert_true(json_equal(patch, patch_before));
    return result;
}

static void check(const char *const (*cases)[3], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_auto_t *doc = parse_quoted(cases[i][0]), *patch = parse_quoted(cases[i][1]);
        json_auto_t *expected = parse_quoted(cases[i][2]);
        struct err e = {0};
        json_auto_t *result = apply(doc, patch, &e);
        if (!result)
            fail_msg("%s: %s", cases[i][1], e.msg);
        assert_json(result, expected, cases[i][1]);
    }
}

static void test_objects(void **state)
{
    static const char *const cases[][3] = {
        {"{'a':1}", "{}", "{'a':1}"},
        {"{'a':1}", "{'a':2,'b':3}", "{'a':2,'b':3}"},
        {"{'a':1}", "{'a':null,'none':null}", "{}"},
        {"{'spec':{'a':1,'b':2}}", "{'spec':{'a':null,'c':3}}", "{'spec':{'b':2,'c':3}}"},
        {"{}", "{'spec':{'a':null,'b':{'c':null}}}", "{'spec':{'b':{}}}"},
        {"{}", "{'l':[null,{'a':null}]}", "{'l':[null,{}]}"},
        {"{'a':1}", "{'a':{'b':null,'c':1}}", "{'a':{'c':1}}"},
        {"{'a':[1]}", "{'a':{'b':1}}", "{'a':{'b':1}}"},
        {"{'a':{'b':1}}", "{'a':[1]}", "{'a':[1]}"},
        /* what the schema does not know */
        {"{'x':{'y':{'a':1}}}", "{'x':{'y':{'b':2}}}", "{'x':{'y':{'a':1,'b':2}}}"},
        {"{'x':{'items':[{'name':'a'}]}}", "{'x':{'items':[{'name':'b'}]}}",
         "{'x':{'items':[{'name':'b'}]}}"},
        /* replaced whole */
        {"{'whole':{'a':1}}", "{'whole':{'b':2}}", "{'whole':{'b':2}}"},
        /* directives */
        {"{'spec':{'a':1}}", "{'spec':{'$patch':'replace','b':2}}", "{'spec':{'b':2}}"},
        {"{'spec':{'a':1}}", "{'spec':{'$patch':'delete','b':2}}", "{'spec':{}}"},
        {"{'spec':1}", "{'spec':{'$patch':'delete'}}", "{}"},
        {"{}", "{'spec':{'a':{'$patch':'replace'},'b':1}}", "{'spec':{'b':1}}"},
        {"{'a':1}", "{'$patch':'delete'}", "{}"},
        {"{'spec':{'a':1,'b':2}}", "{'spec':{'$retainKeys':['a']}}", "{'spec':{'a':1}}"},
        {"{'spec':{'a':1,'b':2}}", "{'spec':{'$retainKeys':['a','c'],'c':3,'b':null}}",
         "{'spec':{'a':1,'c':3}}"},
        {"{'x':{'a':1,'b':2}}", "{'x':{'$retainKeys':[]}}", "{'x':{}}"},
    };
    (void)state;
    check(cases, ARRAY_SIZE(cases));
}

static void test_lists(void **state)
{
    static const char *const cases[][3] = {
        /* by key; new ones as early as the order allows */
        {"{'items':[{'name':'a','x':1},{'name':'b'}]}", "{'items':[{'name':'b','y':2}]}",
         "{'items':[{'name':'a','x':1},{'name':'b','y':2}]}"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'name':'n'}]}",
         "{'items':[{'name':'n'},{'name':'a'}]}"},
        {"{'items':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
         "{'items':[{'name':'b'},{'name':'n'}]}",
         "{'items':[{'name':'a'},{'name':'b'},{'name':'n'},{'name':'c'}]}"},
        {"{'items':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
         "{'items':[{'name':'c'},{'name':'a'}]}",
         "{'items':[{'name':'b'},{'name':'c'},{'name':'a'}]}"},
        {"{'items':[]}", "{'items':[]}", "{'items':[]}"},
        {"{'items':[]}", "{'items':[{'name':'a','x':null}]}", "{'items':[{'name':'a','x':null}]}"},
        {"{'items':[{'name':'a','x':1}]}", "{'items':[{'name':'a','x':null}]}",
         "{'items':[{'name':'a'}]}"},
        {"{'ports':[{'number':1},{'number':2}]}", "{'ports':[{'number':2.0,'x':1}]}",
         "{'ports':[{'number':1},{'number':2.0,'x':1}]}"},
        {"{'items':[{'name':true},{'name':1},{'name':'1'}]}", "{'items':[{'name':'1','x':1}]}",
         "{'items':[{'name':true},{'name':1},{'name':'1','x':1}]}"},
        {"{'items':[{'name':'a','items':[{'name':'b','tags':['x']}]}]}",
         "{'items':[{'name':'a','items':[{'name':'b','tags':['y']}]}]}",
         "{'items':[{'name':'a','items':[{'name':'b','tags':['y','x']}]}]}"},
        /* directives */
        {"{'items':[{'name':'a'},{'name':'b'},{'name':'a','x':1}]}",
         "{'items':[{'name':'a','$patch':'delete'}]}", "{'items':[{'name':'b'}]}"},
        {"{'items':[{'name':'a','x':1}]}",
         "{'items':[{'name':'a','y':1},{'name':'a','$patch':'delete'}]}",
         "{'items':[{'name':'a','y':1}]}"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'$patch':'replace'},{'name':'c'},{'name':'b'}]}",
         "{'items':[{'name':'c'},{'name':'b'}]}"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'$patch':'replace'}]}", "{'items':[]}"},
        /* sets */
        {"{'tags':['a','b']}", "{'tags':['b','c']}", "{'tags':['a','b','c']}"},
        {"{'tags':['a','b']}", "{'tags':['c']}", "{'tags':['c','a','b']}"},
        {"{'tags':[1,2]}", "{'tags':[2,2.0,3]}", "{'tags':[1,2,3]}"},
        {"{'tags':[true]}", "{'tags':[false]}", "{'tags':[false,true]}"},
        {"{'tags':['a','b','a']}", "{'$deleteFromPrimitiveList/tags':['a']}", "{'tags':['b']}"},
        {"{'tags':['a']}", "{'$deleteFromPrimitiveList/tags':null}", "{}"},
        {"{'tags':'a'}", "{'$deleteFromPrimitiveList/tags':['a']}", "{'tags':'a'}"},
        {"{}", "{'$deleteFromPrimitiveList/tags':['a']}", "{}"},
        {"{'other':['a','b']}", "{'$deleteFromPrimitiveList/other':['a']}", "{'other':['b']}"},
    };
    (void)state;
    check(cases, ARRAY_SIZE(cases));
}

static void test_element_order(void **state)
{
    static const char *const cases[][3] = {
        {"{'tags':['a','b','c']}", "{'$setElementOrder/tags':['c','a']}", "{'tags':['b','c','a']}"},
        {"{'tags':['a','b']}", "{'$setElementOrder/tags':['b','n','a'],'tags':['n']}",
         "{'tags':['b','n','a']}"},
        {"{'tags':['a']}", "{'$setElementOrder/tags':[]}", "{'tags':['a']}"},
        {"{'tags':[]}", "{'$setElementOrder/tags':['a']}", "{'tags':[]}"},
        {"{}", "{'$setElementOrder/tags':['a']}", "{}"},
        {"{}", "{'$setElementOrder/tags':['b','a'],'tags':['b','a']}", "{'tags':['b','a']}"},
        {"{'items':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/items':[{'name':'b'},{'name':'a'}],'items':[{'name':'a','x':1}]}",
         "{'items':[{'name':'b'},{'name':'a','x':1}]}"},
        {"{'items':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/items':[{'name':'b'}],'items':[{'name':'a','$patch':'delete'}]}",
         "{'items':[{'name':'b'}]}"},
        /* b makes room for n, which so counts as standing behind c */
        {"{'items':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
         "{'$setElementOrder/items':[{'name':'a'},{'name':'n'}],"
         "'items':[{'name':'b','$patch':'delete'},{'name':'n'}]}",
         "{'items':[{'name':'a'},{'name':'c'},{'name':'n'}]}"},
        {"{'items':[{'name':'a'},{'name':'c'}]}",
         "{'$setElementOrder/items':[{'name':'a'},{'name':'n'}],'items':[{'name':'n'}]}",
         "{'items':[{'name':'a'},{'name':'n'},{'name':'c'}]}"},
        {"{'items':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/items':[],'items':[{'name':'n'}]}",
         "{'items':[{'name':'a'},{'name':'b'},{'name':'n'}]}"},
        {"{'other':['a','b']}", "{'$setElementOrder/other':['c','b'],'other':['c','b']}",
         "{'other':['c','b']}"},
        {"{'tags':['a','b']}",
         "{'$setElementOrder/tags':['b'],'$deleteFromPrimitiveList/tags':['a']}", "{'tags':['b']}"},
    };
    (void)state;
    check(cases, ARRAY_SIZE(cases));
}

static void test_errors(void **state)
{
    static const struct {
        const char *doc, *patch, *says;
    } cases[] = {
        {"{}", "[]", "the patch: a strategic merge patch is an object"},
        {"[]", "{}", "applies to an object"},
        {"{'spec':{}}", "{'spec':{'$patch':'merge'}}", "/spec: $patch in an object is"},
        {"{'spec':{}}", "{'spec':{'$patch':1}}", "/spec: $patch in an object is"},
        {"{'a/b':{}}", "{'a/b':{'$patch':'x'}}", "/a~1b: $patch"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'name':'a','$patch':'merge'}]}",
         "/items: $patch in a list element is"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'$patch':'delete'}]}", "an element without"},
        {"{'items':[{'name':'a'}]}", "{'items':[{'x':1}]}", "without \"name\", by which"},
        {"{'items':[{'x':1}]}", "{'items':[{'name':'a'}]}", "without \"name\", by which"},
        {"{'items':[{'name':{}}]}", "{'items':[{'name':'a'}]}", "is of type object"},
        {"{'items':[{'name':null}]}", "{'items':[{'name':'a'}]}", "is of type null"},
        {"{'items':['a']}", "{'items':['b']}", "merges objects, but has elements of type string"},
        {"{'items':[{'name':'a'}]}", "{'items':['b']}", "of type object and of type string"},
        {"{'items':[[]]}", "{'items':[[]]}", "elements of type array cannot"},
        {"{'tags':[null]}", "{'tags':['a']}", "elements of type null cannot"},
        {"{'tags':['a']}", "{'tags':[1]}", "of type string and of type integer"},
        {"{'tags':[{}]}", "{'tags':[{}]}", "merges scalars, but has elements of type object"},
        {"{'items':[{'name':'a','items':[{'name':'b','spec':{}}]}]}",
         "{'items':[{'name':'a','items':[{'name':'b','spec':{'$patch':''}}]}]}",
         "/items/0/items/0/spec: $patch"},
        {"{'spec':{'a':1}}", "{'spec':{'$retainKeys':'a'}}", "/spec: $retainKeys is a list"},
        {"{'spec':{'a':1}}", "{'spec':{'$retainKeys':[1]}}", "element 0 is of type integer"},
        {"{'spec':{'a':1}}", "{'spec':{'$retainKeys':['a'],'b':1}}", "sets \"b\", which its"},
        {"{'tags':['a']}", "{'$deleteFromPrimitiveList':['a']}", "write $deleteFromPrimitiveList/"},
        {"{'tags':['a']}", "{'$deleteFromPrimitiveList/tags':[{}]}", "of type object"},
        {"{'items':[{'name':'a'}]}", "{'$deleteFromPrimitiveList/items':[{'name':'a'}]}",
         "an element of type object in a list of scalars"},
        {"{'tags':['a']}", "{'$setElementOrder':['a']}", "write $setElementOrder/"},
        {"{'tags':['a']}", "{'$setElementOrder/tags':'a'}", "/tags: $setElementOrder/tags orders"},
        {"{'tags':'a'}", "{'$setElementOrder/tags':['a']}", "one of them is no list"},
        {"{'tags':['a']}", "{'$setElementOrder/tags':['a'],'tags':null}", "is no list"},
        {"{'tags':['a']}", "{'$setElementOrder/tags':['a'],'tags':['b']}", "element 0 is not in"},
        {"{'tags':['a']}", "{'$setElementOrder/tags':['a','b'],'tags':['b','a']}",
         "element 1 is not in $setElementOrder, or not in that order"},
        {"{'items':[{'name':'a'}]}", "{'$setElementOrder/items':[{'x':1}]}", "an element without"},
        {"{'items':[{'name':'a'}]}", "{'$setElementOrder/items':['a']}", "merges objects by"},
        {"{'other':[{'name':'a'}]}", "{'$setElementOrder/other':['a']}", "a list of scalars"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *doc = parse_quoted(cases[i].doc), *patch = parse_quoted(cases[i].patch);
        struct err e = {0};
        if (apply(doc, patch, &e))
            fail_msg("%s applies", cases[i].patch);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].patch, e.msg);
        assert_null(json_smp_apply(doc, patch, &schema, &node, NULL));
    }
}

static void test_shares(void **state)
{
    json_auto_t *doc = parse_quoted("{'same':{'x':1},'items':[{'name':'a','in':{}},{'name':'b'}]}");
    json_auto_t *patch = parse_quoted("{'items':[{'name':'a','x':1}],'new':{'y':[]}}");
    (void)state;
    json_auto_t *result = apply(doc, patch, NULL);
    const json_t *before = json_at(doc, "items"), *after = json_at(result, "items");
    assert_ptr_equal(json_at(result, "same"), json_at(doc, "same"));
    assert_ptr_equal(json_at(result, "new"), json_at(patch, "new"));
    assert_ptr_not_equal(json_array_get(before, 0), json_array_get(after, 0));
    assert_ptr_equal(json_at(json_array_get(before, 0), "in"),
                     json_at(json_array_get(after, 0), "in"));
    assert_ptr_equal(json_array_get(before, 1), json_array_get(after, 1));
}

/* Without a schema every list is atomic. */
static void test_no_schema(void **state)
{
    json_auto_t *doc = parse_quoted("{'items':[{'name':'a'}],'spec':{'x':1}}");
    json_auto_t *patch = parse_quoted("{'items':[{'name':'b'}],'spec':{'y':2}}");
    json_auto_t *expected = parse_quoted("{'items':[{'name':'b'}],'spec':{'x':1,'y':2}}");
    (void)state;
    json_auto_t *result = json_smp_apply(doc, patch, &schema, NULL, NULL);
    assert_true(json_equal(result, expected));
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        json_auto_t *patch = json_object();
        for (unsigned depth = 2; depth <= JSON_MAX_DEPTH + 1; depth++) {
            json_t *outer =
                kind ? json_pack("{so}", "spec", patch) : json_pack("{s[o]}", "unknown", patch);
            patch = outer;
            depth += kind ? 0 : 1;
            struct err e = {0};
            json_auto_t *result = json_smp_apply(patch, patch, &schema, &node, &e);
            assert_int_equal(result != NULL, depth <= JSON_MAX_DEPTH);
            if (result)
                assert_true(json_equal(result, patch));
            else
                assert_non_null(strstr(e.msg, "levels deep"));
        }
    }
}

static json_t *numbered(json_int_t from, json_int_t n, const char *member)
{
    json_t *list = json_array();
    for (json_int_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{sI sb}", "number", from + i, member, 1));
    return list;
}

/* Many elements, half of them new: neither quadratic nor out of order. */
static void test_long_lists(void **state)
{
    enum { N = 20000 };
    json_auto_t *doc = json_pack("{so}", "ports", numbered(0, N, "old"));
    json_auto_t *patch = json_pack("{so}", "ports", numbered(N / 2, N, "new"));
    (void)state;
    json_auto_t *result = json_smp_apply(doc, patch, &schema, &node, NULL);
    const json_t *ports = json_at(result, "ports");
    assert_int_equal(json_array_size(ports), N + N / 2);
    for (size_t i = 0; i < N + N / 2; i++) {
        const json_t *port = json_array_get(ports, i);
        assert_int_equal(json_integer_value(json_object_get(port, "number")), i);
        assert_int_equal(json_object_get(port, "old") != NULL, i < N);
        assert_int_equal(json_object_get(port, "new") != NULL, i >= N / 2);
    }

    /* an order that says nothing about 30 new ones: they come first */
    json_auto_t *vague = json_pack("{so so}", "ports", numbered(N, 30, "new"),
                                   "$setElementOrder/ports", json_array());
    json_auto_t *sorted = json_smp_apply(doc, vague, &schema, &node, NULL);
    assert_int_equal(json_array_size(json_at(sorted, "ports")), N + 30);
    const json_t *first = json_array_get(json_at(sorted, "ports"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "number")), N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),          cmocka_unit_test(test_lists),
        cmocka_unit_test(test_element_order),    cmocka_unit_test(test_errors),
        cmocka_unit_test(test_shares),           cmocka_unit_test(test_no_schema),
        cmocka_unit_test(test_depth_is_bounded), cmocka_unit_test(test_long_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

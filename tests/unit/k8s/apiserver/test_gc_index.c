#include "jsontest.h"
#include "k8s/apiserver/gc_index.h"

static struct gc_index x;

static int end(void **state)
{
    (void)state;
    gc_index_done(&x);
    return 0;
}

static bool set(const char *id, const char *references)
{
    json_auto_t *list = references ? parse_quoted(references) : NULL;
    return gc_index_set(&x, id, list);
}

/* The ids that name a uid, joined. */
static void assert_dependents(const char *uid, const char *expected)
{
    _cleanup_(str_done) struct str found = {0};
    const struct map *ids = gc_index_dependents(&x, uid);
    if (ids) {
        map_for_each(ids, it)
            str_appendf(&found, "%s%s", found.len ? " " : "", it->key);
    }
    assert_string_equal(str_get(&found), expected);
}

static void test_changes(void **state)
{
    (void)state;
    assert_true(set("a", "[{'uid': '1'}]"));
    assert_true(set("b", "[{'uid': '1'}, {'uid': '2'}]"));
    assert_false(set("b", "[{'uid': '1'}, {'uid': '2'}]"));
    assert_false(set("c", NULL));
    assert_false(set("c", "[]"));
    assert_dependents("1", "a b");
    assert_dependents("2", "b");
    assert_true(set("b", "[{'uid': '2'}]"));
    assert_dependents("1", "a");
    assert_dependents("2", "b");
    assert_true(set("a", NULL));
    assert_dependents("1", "");
    assert_null(gc_index_dependents(&x, "1")); /* nothing is kept for nobody */
    assert_null(gc_index_node(&x, "a"));
    assert_true(set("b", NULL));
    assert_int_equal(x.nodes.count + x.dependents.count, 0);
}

static void test_blocking(void **state)
{
    (void)state;
    set("a", "[{'uid': '1'}, {'uid': '2', 'blockOwnerDeletion': true}]");
    set("b", "[{'uid': '1', 'blockOwnerDeletion': false}]");
    assert_false(gc_index_is_blocked(&x, "1")); /* another reference of the object blocks */
    assert_true(gc_index_is_blocked(&x, "2"));
    assert_false(gc_index_is_blocked(&x, "3"));
    assert_true(set("b", "[{'uid': '1', 'blockOwnerDeletion': true}]"));
    assert_true(gc_index_is_blocked(&x, "1"));
}

static void test_odd_references(void **state)
{
    (void)state;
    assert_true(set("a", "[{'uid': '1'}, {'uid': '1'}]"));
    assert_dependents("1", "a");
    assert_true(set("a", "[{'uid': '1'}]"));
    assert_dependents("1", "a");
    assert_true(set("a", "[{'name': 'no uid'}, {'uid': ''}, {'uid': 7}, 3]"));
    assert_null(gc_index_node(&x, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_changes, end),
        cmocka_unit_test_teardown(test_blocking, end),
        cmocka_unit_test_teardown(test_odd_references, end),
    };
    return cmocka_run_group_tests_name("gc_index", tests, NULL, NULL);
}

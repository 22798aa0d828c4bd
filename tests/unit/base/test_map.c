#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "unit.h"

static void test_set_get_remove(void **state)
{
    (void)state;
    _cleanup_(map_done) struct map m = {0};
    int a, b, c;
    assert_null(map_get(&m, "x"));
    assert_false(map_has(&m, "x"));
    assert_null(map_remove(&m, "x"));

    assert_null(map_set(&m, "x", &a));
    assert_null(map_set(&m, "", &b));
    assert_ptr_equal(map_get(&m, "x"), &a);
    assert_ptr_equal(map_get(&m, ""), &b);
    assert_null(map_get(&m, "X"));
    assert_ptr_equal(map_set(&m, "x", &c), &a);
    assert_ptr_equal(map_get(&m, "x"), &c);
    assert_int_equal(m.count, 2);

    /* a NULL value is there all the same */
    assert_null(map_set(&m, "null", NULL));
    assert_null(map_get(&m, "null"));
    assert_true(map_has(&m, "null"));

    assert_ptr_equal(map_remove(&m, "x"), &c);
    assert_null(map_remove(&m, "x"));
    assert_false(map_has(&m, "x"));
    assert_int_equal(m.count, 2);
    assert_null(map_set(&m, "x", &a));
    assert_ptr_equal(map_get(&m, "x"), &a);
}

static void test_keys_are_copied(void **state)
{
    (void)state;
    _cleanup_(map_done) struct map m = {0};
    char key[] = "key";
    map_set(&m, key, &m);
    key[0] = 'X';
    assert_ptr_equal(map_get(&m, "key"), &m);
    assert_null(map_get(&m, key));
}

/* Keys of every length, so that every tail of the hash is used. */
static void test_many_keys(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int values[N];
    _cleanup_(map_done) struct map m = {0};
    char key[64];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "%.*s%d", i % 40, "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", i);
        assert_null(map_set(&m, key, &values[i]));
    }
    assert_int_equal(m.count, N);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "%.*s%d", i % 40, "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", i);
        assert_ptr_equal(map_get(&m, key), &values[i]);
        if (i % 3 == 0)
            assert_ptr_equal(map_remove(&m, key), &values[i]);
    }
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "%.*s%d", i % 40, "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", i);
        assert_ptr_equal(map_get(&m, key), i % 3 ? &values[i] : NULL);
    }
}

static void test_order(void **state)
{
    (void)state;
    _cleanup_(map_done) struct map m = {0};
    map_for_each(&m, it)
        fail();
    char key[32];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%d", i);
        map_set(&m, key, &m);
    }
    int n = 0;
    map_for_each(&m, it) {
        snprintf(key, sizeof(key), "%d", n++);
        assert_string_equal(it->key, key);
    }
    assert_int_equal(n, 100);

    /* removing while iterating; an else that follows belongs to the caller's if */
    if (m.count)
        map_for_each(&m, it)
            map_remove(&m, it->key);
    else
        fail();
    assert_int_equal(m.count, 0);
    map_for_each(&m, it)
        fail();
    map_set(&m, "new", &m);
    map_for_each(&m, it)
        assert_string_equal(it->key, "new");
}

/* Keys that come and go do not make the map grow, nor make it tidy up for every key. */
static void test_churn(void **state)
{
    (void)state;
    for (size_t standing = 0; standing < 40; standing++) {
        _cleanup_(map_done) struct map m = {0};
        char key[32];
        for (size_t i = 0; i < standing; i++) {
            snprintf(key, sizeof(key), "standing%zu", i);
            map_set(&m, key, &m);
        }
        int rebuilt = 0;
        for (int i = 0; i < 4000; i++) {
            const struct map_entry *before = m.entries;
            snprintf(key, sizeof(key), "%d", i);
            assert_null(map_set(&m, key, &m));
            rebuilt += m.entries != before;
            assert_ptr_equal(map_remove(&m, key), &m);
        }
        assert_int_equal(m.count, standing);
        assert_true(m.nslots <= 8 || m.nslots <= standing * 6);
        assert_true(rebuilt <= 2000);
        if (standing >= 16)
            assert_true(rebuilt <= 700);
        for (size_t i = 0; i < standing; i++) {
            snprintf(key, sizeof(key), "standing%zu", i);
            assert_ptr_equal(map_get(&m, key), &m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_get_remove), cmocka_unit_test(test_keys_are_copied),
        cmocka_unit_test(test_many_keys),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/mem.h"
#include "base/vec.h"
#include "unit.h"

static void test_push_pop(void **state)
{
    (void)state;
    VEC(int) v = {0};
    vec_for_each(&v, it)
        fail();
    for (int i = 0; i < 1000; i++) {
        vec_push(&v, i);
        assert_int_equal(v.len, i + 1);
        assert_true(v.cap >= v.len);
        assert_int_equal(vec_last(&v), i);
    }
    int n = 0;
    vec_for_each(&v, it)
        assert_int_equal(*it, n++);
    assert_int_equal(n, 1000);
    for (int i = 999; i >= 0; i--)
        assert_int_equal(vec_pop(&v), i);
    assert_int_equal(v.len, 0);
    vec_for_each(&v, it)
        fail();
    vec_done(&v);
    assert_null(v.p);
    assert_int_equal(v.cap, 0);
    vec_done(&v);
}

static void test_structs(void **state)
{
    (void)state;
    struct point {
        int x, y;
    };
    VEC(struct point) v = {0};
    vec_push(&v, (struct point){1, 2});
    /* an element pushed again, also when that makes the array grow */
    for (int i = 0; i < 50; i++)
        vec_push(&v, v.p[0]);
    vec_for_each(&v, it) {
        assert_int_equal(it->x, 1);
        assert_int_equal(it->y, 2);
    }
    if (v.len)
        vec_push(&v, (struct point){3, 4});
    else
        fail();
    assert_int_equal(vec_last(&v).y, 4);
    vec_done(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_pop),
        cmocka_unit_test(test_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

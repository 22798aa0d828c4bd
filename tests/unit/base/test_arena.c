#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "unit.h"

static void test_alloc(void **state)
{
    (void)state;
    _cleanup_(arena_done) struct arena a = {0};
    enum { BLOCK = 32 * 1024 }; /* as in arena.c: sizes around it meet the end of a block */
    static const size_t sizes[] = {0,          1,     15,        16,     17, 1000,
                                   BLOCK - 16, BLOCK, BLOCK + 1, 100000, 3,  0};
    char *all[ARRAY_SIZE(sizes)];
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        all[i] = arena_alloc(&a, sizes[i]);
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % 16, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(all[i][j], 0);
        memset(all[i], (int)i + 1, sizes[i]);
    }
    /* none lies on another */
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(all[i][j], i + 1);
    }
    assert_true(a.total >= 100000);
    struct thing {
        long x;
    } *thing = arena_new(&a, struct thing);
    assert_int_equal(thing->x, 0);
}

static void test_strings(void **state)
{
    (void)state;
    _cleanup_(arena_done) struct arena a = {0};
    assert_string_equal(arena_strdup(&a, ""), "");
    assert_string_equal(arena_strdup(&a, "text"), "text");
    assert_string_equal(arena_strndup(&a, "text", 2), "te");
    assert_string_equal(arena_strndup(&a, "text", 200), "text");
    char raw[3] = {'x', 'y', 'z'};
    assert_string_equal(arena_strndup(&a, raw, 3), "xyz");
    assert_string_equal(arena_printf(&a, "%s-%d", "a", 5), "a-5");
    assert_string_equal(arena_printf(&a, "%s", ""), "");

    /* around and past what is formatted at once */
    char big[40000];
    static const size_t sizes[] = {254, 255, 256, 257, 1000, sizeof(big) - 1};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        memset(big, 'x', sizes[i]);
        big[sizes[i]] = '\0';
        assert_string_equal(arena_printf(&a, "%s", big), big);
    }
}

static void test_clear(void **state)
{
    (void)state;
    _cleanup_(arena_done) struct arena a = {0};
    arena_clear(&a);
    char *first = arena_alloc(&a, 100);
    memset(first, 1, 100);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    arena_clear(&a);
    assert_int_equal(a.total, 0);

    /* the memory is used again, and zeroed again */
    char *again = arena_alloc(&a, 100);
    assert_ptr_equal(again, first);
    for (int i = 0; i < 100; i++)
        assert_int_equal(again[i], 0);

    /* one huge allocation is not kept */
    arena_done(&a);
    arena_alloc(&a, 1 << 20);
    arena_clear(&a);
    assert_null(a.blocks);
    assert_non_null(arena_alloc(&a, 1));
    arena_done(&a);
    arena_done(&a);
}

static void test_copies_any_bytes(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *copy = arena_copy(&a, "a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(arena_strndup(&a, "a\0b", 3), "a");
    assert_string_equal(arena_copy(&a, NULL, 0), "");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_any_bytes),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

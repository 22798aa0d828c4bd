/*
 * Blocks that say what they are: each kind of damage has its name.
 */
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/map.h"
#include "unit.h"

enum { BLOCK = 4096 };

static void test_findings(void **state)
{
    (void)state;
    uint8_t data[BLOCK], older[BLOCK], other[BLOCK];
    struct bench_map m;
    bench_map_init(&m, 16, BLOCK, 7);
    bench_map_stamp(&m, 3, 5, data);
    assert_int_equal(bench_map_check(&m, 3, data, 5, 5), BENCH_FINE);
    assert_int_equal(bench_map_check(&m, 3, data, 4, 6), BENCH_FINE);
    assert_int_equal(bench_map_check(&m, 3, data, 6, 6), BENCH_LOST);
    assert_int_equal(bench_map_check(&m, 3, data, 1, 4), BENCH_CORRUPT); /* never written */
    assert_int_equal(bench_map_check(&m, 4, data, 5, 5), BENCH_MISPLACED);

    bench_map_stamp(&m, 3, 4, older);
    memcpy(older + BLOCK / 2, data + BLOCK / 2, BLOCK / 2);
    assert_int_equal(bench_map_check(&m, 3, older, 5, 5), BENCH_TORN);
    assert_int_equal(bench_map_check(&m, 3, older, 4, 5), BENCH_FINE); /* it was under way */

    /* A sector in the place of another of the same block. */
    memcpy(other, data, BLOCK);
    memcpy(other + 512, data + 1024, 512);
    assert_int_equal(bench_map_check(&m, 3, other, 5, 5), BENCH_MISPLACED);

    for (size_t bit = 0; bit < BLOCK * 8; bit += 13) {
        memcpy(other, data, BLOCK);
        other[bit / 8] = (uint8_t)(other[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(bench_map_check(&m, 3, other, 5, 5), BENCH_CORRUPT);
    }
    memset(other, 0, BLOCK);
    assert_int_equal(bench_map_check(&m, 3, other, 1, 1), BENCH_LOST);
    assert_int_equal(bench_map_check(&m, 3, other, 0, 1), BENCH_FINE); /* nothing has to be there */
    memcpy(other, data, BLOCK / 2);
    assert_int_equal(bench_map_check(&m, 3, other, 5, 5), BENCH_TORN);

    struct bench_map another;
    bench_map_init(&another, 16, BLOCK, 8);
    assert_int_equal(bench_map_check(&another, 3, data, 1, 9), BENCH_LOST); /* of an earlier run */
    bench_map_done(&another);
    bench_map_done(&m);
}

static void test_save(void **state)
{
    (void)state;
    char path[] = "/tmp/orlop-map-XXXXXX";
    struct err e;
    struct bench_map m, n = {0};
    close(mkstemp(path));
    bench_map_init(&m, 100, BLOCK, 42);
    m.versions[7] = (struct bench_versions){1, 2, 3};
    assert_int_equal(bench_map_save(&m, path, &e), 0);
    assert_int_equal(bench_map_load(&n, path, &e), 0);
    assert_int_equal(n.blocks, 100);
    assert_int_equal(n.seed, 42);
    assert_int_equal(n.block_size, BLOCK);
    assert_memory_equal(n.versions, m.versions, 100 * sizeof(*m.versions));
    bench_map_done(&n);
    bench_map_done(&m);
    /* Damage is seen. */
    _cleanup_(str_done) struct str s = {0};
    assert_int_equal(file_read(path, 1 << 20, &s, &e), 0);
    for (size_t i = 0; i < s.len; i += 7) {
        s.p[i] ^= 1;
        assert_int_equal(file_replace(path, s.p, i % 2 ? s.len : i, 0600, &e), 0);
        s.p[i] ^= 1;
        assert_int_equal(bench_map_load(&n, path, &e), -1);
    }
    unlink(path);
    assert_int_equal(bench_map_load(&n, path, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_findings),
                                       cmocka_unit_test(test_save)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Metadata on disk: layout, damage, and that a crash at any byte leaves one that is valid. */
#include <string.h>

#include "repl/meta.h"
#include "unit.h"

static struct repl_super example(uint64_t generation)
{
    struct repl_super s = {.generation = generation,
                           .volume = {{9}},
                           .replica = {{8}},
                           .boot = 3,
                           .promised = 12,
                           .owner = 0x1122334455667788,
                           .pos = repl_pos(12, 345),
                           .mark_pos = repl_pos(12, 3),
                           .mark_region = 17,
                           .snap_mark = 99,
                           .snap_region = 18,
                           .clean = true};
    s.view = (struct repl_view){.version = (uint64_t)12 << 32 | 4,
                                .size = 1 << 30,
                                .rf = 3,
                                .cf = 2,
                                .flags = REPL_FORMED,
                                .region_shift = 16,
                                .block_shift = 12,
                                .n = 3};
    for (int i = 0; i < 3; i++)
        s.view.member[i] = (struct repl_member){
            .id = {{(uint8_t)(i + 1)}}, .flags = REPL_VOTER | REPL_OLD, .floor = 5};
    s.lineage.n = REPL_EPOCHS;
    for (uint32_t i = 0; i < REPL_EPOCHS; i++) {
        s.lineage.at[i].epoch = i + 1;
        s.lineage.at[i].owner = 77 + i;
        s.lineage.at[i].end = repl_pos(i + 1, i);
    }
    return s;
}

static void as_written(void **state)
{
    (void)state;
    struct repl_super s = example(6), got;
    uint8_t block[REPL_SUPER_SIZE], again[REPL_SUPER_SIZE];
    repl_super_encode(&s, block);
    assert_int_equal(repl_super_decode(block, &got, NULL), 0);
    repl_super_encode(&got, again);
    assert_memory_equal(block, again, sizeof(block));
    assert_true(got.pos == s.pos && got.owner == s.owner && got.mark_region == 17 && got.clean);
    assert_true(got.snap_mark == 99 && got.snap_region == 18);
    assert_int_equal(got.view.member[2].id.bytes[0], 3);
    assert_int_equal(got.lineage.at[31].owner, 108);
}

static void damage(void **state)
{
    (void)state;
    struct repl_super s = example(6), got;
    uint8_t block[REPL_SUPER_SIZE];
    repl_super_encode(&s, block);
    for (size_t i = 0; i < sizeof(block); i += 7) {
        block[i] ^= 0x10;
        assert_int_equal(repl_super_decode(block, &got, NULL), -1);
        block[i] ^= 0x10;
    }
    s.view.member[1].id = s.view.member[0].id; /* a member twice */
    repl_super_encode(&s, block);
    assert_int_equal(repl_super_decode(block, &got, NULL), -1);
    s = example(6);
    s.lineage.n = REPL_EPOCHS + 1;
    repl_super_encode(&s, block);
    assert_int_equal(repl_super_decode(block, &got, NULL), -1);
}

/* Superblock 7 is written over 5 while 6 is there; the write stops after any sector. */
static void crash(void **state)
{
    (void)state;
    uint8_t slots[2][REPL_SUPER_SIZE] = {{0}}, next[REPL_SUPER_SIZE];
    struct repl_super s = example(5), got;
    repl_super_encode(&s, slots[repl_super_offset(5) / REPL_SUPER_SIZE]);
    s = example(6);
    s.promised = 13;
    repl_super_encode(&s, slots[repl_super_offset(6) / REPL_SUPER_SIZE]);
    s = example(7);
    s.promised = 14;
    repl_super_encode(&s, next);
    uint8_t *slot = slots[repl_super_offset(7) / REPL_SUPER_SIZE];
    for (size_t sector = 0; sector <= REPL_SUPER_SIZE; sector += 512) {
        if (sector)
            memcpy(slot + sector - 512, next + sector - 512, 512);
        assert_int_equal(repl_super_choose(slots[0], slots[1], &got, NULL), 0);
        bool whole = memcmp(slot, next, REPL_SUPER_SIZE) == 0;
        assert_int_equal(got.generation, whole ? 7 : 6);
        assert_int_equal(got.promised, whole ? 14 : 13);
    }
    struct err e = {0};
    slots[0][100] ^= 1;
    slots[1][100] ^= 1;
    assert_int_equal(repl_super_choose(slots[0], slots[1], &got, &e), -1);
    assert_int_equal(e.code, ERR_DATA_LOSS);
}

static void blank(void **state)
{
    (void)state;
    uint8_t zero[REPL_SUPER_SIZE] = {0};
    struct repl_super got;
    assert_int_equal(repl_super_choose(zero, zero, &got, NULL), 0);
    assert_int_equal(got.generation, 0);
}

static void pages(void **state)
{
    (void)state;
    uint64_t entries[REPL_PAGE_ENTRIES], got[REPL_PAGE_ENTRIES];
    uint8_t block[REPL_SUPER_SIZE] = {0};
    assert_true(
        repl_page_decode(0, block, got)); /* never written: nothing was ever written there */
    assert_int_equal(got[0] | got[509], 0);
    for (uint64_t i = 0; i < REPL_PAGE_ENTRIES; i++)
        entries[i] = i % 5 ? repl_pos(3, i) : REPL_UNKNOWN;
    repl_page_encode(4, entries, block);
    assert_true(repl_page_decode(4, block, got));
    assert_memory_equal(entries, got, sizeof(got));
    assert_false(repl_page_decode(5, block, got)); /* another page's */
    assert_true(got[3] == REPL_UNKNOWN);
    block[4000] ^= 1;
    assert_false(repl_page_decode(4, block, got));
    for (uint64_t i = 0; i < REPL_PAGE_ENTRIES; i++)
        assert_true(got[i] == REPL_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_written), cmocka_unit_test(damage), cmocka_unit_test(crash),
        cmocka_unit_test(blank),      cmocka_unit_test(pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

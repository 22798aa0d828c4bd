/* Metadata on disk: layout, damage, and that a crash in the middle of a write leaves what was there before. */
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
                           .clean = true,
                           .store = {{5}},
                           .store_generation = 44,
                           .log_generation = 55};
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
    s.view.clients.n = 2;
    s.view.clients.at[1].id = 66;
    s.view.clients.at[1].owed = true;
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
    assert_true(got.store_generation == 44 && got.log_generation == 55 && got.store.bytes[0] == 5);
    assert_true(got.view.clients.n == 2 && got.view.clients.at[1].owed &&
                got.view.clients.at[1].id == 66);
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

static void slot_of(uint64_t generation, uint32_t promised, uint8_t slots[2][REPL_SUPER_SLOT])
{
    struct repl_super s = example(generation);
    s.promised = promised;
    repl_super_slot(&s, slots[generation % 2]);
}

/* Superblock 7 is written over 5 while 6 is there; any of its sectors may have arrived. Some of these sets, and all of them. */
static void torn_superblock(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= 2000; n++) {
        const unsigned all = (1 << REPL_SUPER_SECTORS) - 1;
        unsigned set = n == 2000 ? all : n * 40503 & all;
        uint8_t slots[2][REPL_SUPER_SLOT], next[2][REPL_SUPER_SLOT];
        struct repl_super got;
        slot_of(5, 12, slots);
        slot_of(6, 13, slots);
        slot_of(7, 14, next);
        for (int i = 0; i < REPL_SUPER_SECTORS; i++)
            if (set >> i & 1)
                memcpy(slots[1] + i * 512, next[1] + i * 512, 512);
        assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_GOOD);
        bool whole = set == all;
        assert_int_equal(got.generation, whole ? 7 : 6);
        assert_int_equal(got.promised, whole ? 14 : 13);
    }
}

/* A sector that is not what was written: the slot may have been the newer one, so the other is not trusted. */
static void damaged_superblock(void **state)
{
    (void)state;
    uint8_t slots[2][REPL_SUPER_SLOT];
    struct repl_super got;
    for (int newer = 0; newer < 2; newer++) {
        for (size_t at = 0; at < REPL_SUPER_SECTORS * 512; at += 97) {
            slot_of(5, 12, slots);
            slot_of(6, 13, slots);
            slots[newer ? 0 : 1][at] ^= 4;
            assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_DOUBT);
            assert_int_equal(got.generation, newer ? 5 : 6);
        }
        slot_of(5, 12, slots);
        slot_of(6, 13, slots);
        memset(slots[newer], 0, REPL_SUPER_SLOT); /* absence is damage */
        assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_DOUBT);
        memset(slots[newer ? 0 : 1], 0, 512);
        assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_BAD);
        assert_int_equal(got.generation, 0);
    }
}

/* The very first superblocks find their slots empty. */
static void first_superblocks(void **state)
{
    (void)state;
    uint8_t slots[2][REPL_SUPER_SLOT] = {{0}}, next[2][REPL_SUPER_SLOT];
    struct repl_super got;
    assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_NONE);
    assert_int_equal(got.generation, 0);
    slot_of(1, 12, next);
    memcpy(slots[1] + 512, next[1] + 512, 1024);
    assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_NONE);
    slot_of(1, 12, slots);
    assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_GOOD);
    slot_of(2, 13, next);
    memcpy(slots[0], next[0], 1024);
    assert_int_equal(repl_super_choose(slots[0], slots[1], &got), REPL_FOUND_GOOD);
    assert_int_equal(got.generation, 1);
}

static void knows_its_store(void **state)
{
    (void)state;
    struct repl_super s = {.store = {{7}}, .store_generation = 4};
    const struct uuid own = {{7}}, other = {{8}};
    assert_true(repl_super_knows(&s, &own, 4));
    assert_false(repl_super_knows(&s, &own, 5)); /* the metadata is an older copy */
    assert_false(repl_super_knows(&s, &own, 3)); /* the store is */
    assert_false(repl_super_knows(&s, &other, 4));
    s.stamping = true; /* a crash between the two */
    assert_true(repl_super_knows(&s, &own, 4) && repl_super_knows(&s, &own, 5));
    assert_false(repl_super_knows(&s, &own, 3) || repl_super_knows(&s, &own, 6));
}

static size_t log_of(uint64_t generation, uint32_t n, bool whole, uint8_t slots[2][REPL_LOG_SLOT])
{
    struct repl_log log = {.generation = generation, .store = {{7}}, .n = n};
    for (uint32_t i = 0; i < n; i++)
        log.extent[i] = i * 3 + (uint32_t)generation;
    return repl_log_encode(&log, whole, slots[generation % 2]);
}

/* The log's own writes: torn at any set of sectors, lost, or stale. */
static void activity_log(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 115, 116, 300, REPL_ACTIVE};
    const struct repl_super super = {.store = {{7}}, .log_generation = 6};
    for (size_t a = 0; a < 6; a++) {
        for (size_t b = 0; b < 6; b++) {
            uint8_t slots[2][REPL_LOG_SLOT], next[2][REPL_LOG_SLOT];
            memset(next, 0, sizeof(next));
            log_of(4, 0, true, slots);
            log_of(5, sizes[a], true, slots);
            log_of(6, sizes[b], true, slots);
            size_t sectors = log_of(7, sizes[a], false, next) / 512;
            for (size_t lost = 0; lost <= sectors;
                 lost++) { /* one sector did not arrive, or all did */
                uint8_t torn[2][REPL_LOG_SLOT];
                struct repl_log got;
                memcpy(torn, slots, sizeof(torn));
                for (size_t i = 0; i < sectors; i++)
                    if (i != lost)
                        memcpy(torn[1] + i * 512, next[1] + i * 512, 512);
                assert_int_equal(repl_log_choose(torn[0], torn[1], &super, &got), REPL_FOUND_GOOD);
                bool whole = lost == sectors;
                assert_int_equal(got.generation, whole ? 7 : 6);
                assert_int_equal(got.n, whole ? sizes[a] : sizes[b]);
                assert_true(!got.n || got.extent[got.n - 1] == (got.n - 1) * 3 + got.generation);
            }
        }
    }
}

/* Two starts in a row write the same generation, and both are torn. */
static void torn_twice(void **state)
{
    (void)state;
    const struct repl_super super = {.store = {{7}}, .log_generation = 6};
    uint8_t slots[2][REPL_LOG_SLOT], next[2][REPL_LOG_SLOT];
    struct repl_log got, other = {.generation = 7, .store = {{7}}, .n = 300};
    log_of(5, 300, true, slots);
    log_of(6, 300, true, slots);
    log_of(7, 300, false, next);
    memcpy(slots[1], next[1], 512);
    repl_log_encode(&other, false, next[1]);
    memcpy(slots[1] + 512, next[1] + 512, 4 * 512);
    assert_int_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_GOOD);
    assert_int_equal(got.generation, 6);
}

static void damaged_log(void **state)
{
    (void)state;
    struct repl_super super = {.store = {{7}}, .log_generation = 6};
    uint8_t slots[2][REPL_LOG_SLOT];
    struct repl_log got;
    log_of(5, 200, true, slots);
    log_of(6, 200, true, slots);
    slots[0][600] ^= 1;
    assert_int_not_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_GOOD);
    slots[0][600] ^= 1;
    memset(slots[0] + 512, 0, 512);
    assert_int_not_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_GOOD);
    log_of(6, 200, true, slots);
    assert_int_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_GOOD);
    super.log_generation = 7; /* it was put back from an earlier time */
    assert_int_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_BAD);
    super.log_generation = 6;
    super.store.bytes[0] = 8; /* another store's */
    assert_int_equal(repl_log_choose(slots[0], slots[1], &super, &got), REPL_FOUND_BAD);
}

static void pages(void **state)
{
    (void)state;
    const struct uuid own = {{7}}, other = {{8}};
    uint64_t entries[REPL_PAGE_ENTRIES], got[REPL_PAGE_ENTRIES];
    uint8_t block[REPL_SUPER_SIZE] = {0};
    assert_false(repl_page_decode(0, &own, block, got)); /* a page that is missing is damaged */
    assert_true(got[0] == REPL_UNKNOWN && got[REPL_PAGE_ENTRIES - 1] == REPL_UNKNOWN);
    for (uint64_t i = 0; i < REPL_PAGE_ENTRIES; i++)
        entries[i] = i % 5 ? repl_pos(3, i) : REPL_UNKNOWN;
    repl_page_encode(4, &own, 9, entries, block);
    assert_true(repl_page_decode(4, &own, block, got));
    assert_memory_equal(entries, got, sizeof(got));
    assert_false(repl_page_decode(5, &own, block, got)); /* another page's */
    assert_true(got[3] == REPL_UNKNOWN);
    assert_false(repl_page_decode(4, &other, block, got)); /* another replica's */
    block[4000] ^= 1;
    assert_false(repl_page_decode(4, &own, block, got));
    for (uint64_t i = 0; i < REPL_PAGE_ENTRIES; i++)
        assert_true(got[i] == REPL_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_written),        cmocka_unit_test(damage),
        cmocka_unit_test(torn_superblock),   cmocka_unit_test(damaged_superblock),
        cmocka_unit_test(first_superblocks), cmocka_unit_test(knows_its_store),
        cmocka_unit_test(activity_log),      cmocka_unit_test(damaged_log),
        cmocka_unit_test(torn_twice),        cmocka_unit_test(pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How a replica stops and starts: what it still knows, and which checksums at rest it trusts. */
#include "a_replica.h"

static bool stops(struct repl_replica *r)
{
    repl_replica_stop(r);
    for (int i = 0; i < 9 && !repl_replica_stopped(r); i++)
        repl_replica_turn(r, 9 * S + i);
    return repl_replica_stopped(r);
}

/* After a stop in order nothing is unknown and nothing is missing. */
static void stop(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, write_at(1, 0), page);
    repl_replica_turn(r, 3 * S);
    assert_true(stops(r));
    repl_replica_free(r);
    r = start();
    struct repl_replica_status st;
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 1));
    assert_true(last().flags & REPL_INTACT);
    assert_true(repl_replica_region(r, 0) == repl_pos(1, 1));
    repl_replica_free(r);
}

/* Also of one that misses something, and that nobody ever asked: it ends, and is not intact for that. */
static void stop_incomplete(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    world.sync_later = true;
    repl_replica_stop(r);
    bool stopped = false, syncing = false;
    for (int i = 0; i < 20 && !stopped; i++) { /* as a loop does: looked at after each turn */
        int before = world.syncs;
        if (syncing)
            repl_replica_meta_synced(r, 0);
        repl_replica_turn(r, 3 * S + i);
        syncing = world.syncs > before;
        stopped = repl_replica_stopped(r);
    }
    assert_true(stopped);
    repl_replica_free(r);
    world.sync_later = false;
    r = start();
    assert_false(last().flags & REPL_INTACT);
    repl_replica_free(r);
}

/* A target that waits for a promise is let go, too: what it wrote from then on would not be flushed. */
static void stop_closes_every_link(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    assert_int_equal(last().type, REPL_HELLO);
    repl_replica_stop(r);
    assert_int_equal(world.closed, 1);
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 42}, NULL);
    assert_true(stops(r));
    assert_int_equal(last().type, REPL_HELLO);
    assert_int_equal(on_disk().promised, 0);
    repl_replica_free(r);
}

/* What was rebuilt is in no active extent, and after a stop in order its checksums are trusted. */
static void stop_syncs_checksums(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 2}, NULL);
    give(r, (struct repl_msg){.type = REPL_BEGIN, .seq = repl_pos(1, 5), .count = 512}, NULL);
    give(r, (struct repl_msg){.type = REPL_DATA, .count = 512, .length = 512}, page);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.writes, 1);
    assert_int_equal(status_of(r).active, 0);
    int sums = world.sum_flushes;
    assert_true(stops(r));
    assert_int_equal(world.sum_flushes, sums + 1);
    repl_replica_free(r);
    world.later = true;
    r = start();
    assert_true(last().flags & REPL_INTACT);
    assert_int_equal(status_of(r).stale, 0);
    repl_replica_free(r);
}

/* Extents that were to leave the log are written again before their checksums are synced: then nothing else is to be synced. */
static void stop_after_retirement_in_vain(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    world.later = false;
    give(r, (struct repl_msg){.type = REPL_FLUSH}, NULL);
    repl_replica_turn(r, 3 * S);
    world.later = true;
    repl_replica_turn(r, 8 * S); /* nothing was written for long */
    assert_int_equal(world.waiting_n, 1);
    world.later = false;
    give(r, write_at(2, 4096), page);
    give(r, (struct repl_msg){.type = REPL_FLUSH}, NULL);
    repl_replica_turn(r, 8 * S);
    assert_true(on_disk().pos == repl_pos(1, 2));
    repl_replica_stored(r, world.waiting[0], 0);
    repl_replica_turn(r, 8 * S);
    assert_int_equal(status_of(r).active, 1);
    assert_true(stops(r));
    assert_int_equal(log_on_disk().n, 0);
    repl_replica_free(r);
}

/* While checksums may be stale nothing is compared with them, and no snapshot keeps them. */
static void stale_checksums(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    repl_replica_free(r);
    r = start(); /* as after a crash; the store answers later */
    assert_int_equal(status_of(r).stale, 2);
    int at = world.waiting_n;
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 42, .epoch = 2}, NULL);
    repl_replica_stored(r, world.waiting[at - 1], 0); /* one of them is made anew */
    world.log_later = false;
    repl_replica_turn(r, 3 * S);
    assert_int_equal(status_of(r).stale, 1);
    while (status_of(r).stale) {
        repl_replica_stored(r, world.waiting[world.waiting_n - 1], 0);
        repl_replica_turn(r, 3 * S);
    }
    assert_int_equal(world.resums, 2);
    repl_replica_free(r);
}

/* A mark says that what lies below it needs no comparison any more: it waits for checksums that may be stale there. */
static void mark_awaits_checksums(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 2}, NULL);
    give(r, (struct repl_msg){.type = REPL_BEGIN, .seq = repl_pos(1, 5), .count = 512}, NULL);
    give(r, (struct repl_msg){.type = REPL_SUMS, .seq = 9, .count = 512}, NULL);
    repl_replica_turn(r, 3 * S);
    world.later = true;
    give(r, (struct repl_msg){.type = REPL_DATA, .count = 512, .length = 512}, page);
    repl_replica_stored(r, world.waiting[0], -EIO); /* in no active extent */
    assert_int_equal(status_of(r).stale, 1);
    assert_int_equal(status_of(r).active, 0);
    repl_replica_open(r, 0);
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 43, .epoch = 2}, NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_PROMISED);
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 3, .epoch = 2}, NULL);
    int flushes = world.flushes;
    world.waiting_n = 0;
    give(r, (struct repl_msg){.type = REPL_FLUSH, .flags = REPL_MARK, .offset = 1, .epoch = 2},
         NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.flushes, flushes);
    assert_int_equal(world.waiting_n, 1);
    repl_replica_stored(r, world.waiting[0], 0); /* made anew */
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.flushes, flushes + 1);
    repl_replica_free(r);
}

/* A snapshot that comes when nothing is under way waits for checksums that may be stale all the same. */
static void snapshot_awaits_checksums(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    give(r, write_at(2, 0), page);
    give(r, (struct repl_msg){.type = REPL_SUMS, .seq = 9, .count = 4096}, NULL);
    repl_replica_stored(r, world.waiting[0],
                        -EIO); /* regions of active extents are in doubt again */
    world.later = false;
    assert_int_equal(status_of(r).stale, 2);
    repl_replica_open(r, 0);
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 43, .epoch = 2}, NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_PROMISED);
    assert_int_equal(status_of(r).stale, 2); /* they can wait, since sums were asked for just now */
    world.snapshots = 0;
    give(r, (struct repl_msg){.type = REPL_SNAP, .seq = 5, .epoch = 2}, NULL);
    assert_int_equal(world.snapshots, 0);
    repl_replica_turn(r, 3 * S);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(status_of(r).stale, 0);
    assert_int_equal(world.snapshots, 1);
    repl_replica_free(r);
}

/* What lies below a mark is not compared with others again, so what its checksums say of it must not be forgotten. */
static void checksums_below_mark(void **state)
{
    (void)state;
    for (int snap = 0; snap < 2; snap++) {
        setup();
        struct repl_replica *r = start();
        view_and_join(r, 1, 3 * S);
        give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 2}, NULL);
        for (uint64_t region = 1; region <= 9; region += 8)
            give(r,
                 (struct repl_msg){.type = REPL_BEGIN,
                                   .seq = repl_pos(1, 5),
                                   .offset = region << REGION,
                                   .count = 512},
                 NULL);
        int sums = world.sum_flushes;
        mark(r, 4, snap ? 77 : 0);
        assert_int_equal(world.sum_flushes, sums + 1);
        repl_replica_free(r);
        world.later = true;
        r = start(); /* as after a crash */
        assert_false(repl_replica_stale(r, 1 << REGION, 512));
        assert_true(repl_replica_stale(r, 9 << REGION, 512));
        repl_replica_free(r);
    }
}

/* A region of which nothing is known stays so until its rebuild ends: before, its new checksums are perhaps not durable. */
static void checksums_of_unknown_region(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    world.later = false;
    give(r, (struct repl_msg){.type = REPL_FLUSH}, NULL);
    repl_replica_turn(r, 3 * S);
    repl_replica_free(r);
    memset(world.meta + repl_log_offset(0), 0, REPL_LOG_SLOT);
    r = start();
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 42}, NULL);
    repl_replica_turn(r, 3 * S);
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 2}, NULL);
    for (uint64_t i = 1; i <= 5; i += 4) /* at its position, and above it */
        give(r,
             (struct repl_msg){
                 .type = REPL_BEGIN, .seq = repl_pos(1, i), .offset = i << REGION, .count = 512},
             NULL);
    repl_replica_turn(r, 3 * S);
    assert_true(on_disk().pos == repl_pos(1, 1));
    assert_true(entry_on_disk(1) == REPL_UNKNOWN);
    assert_true(entry_on_disk(5) == repl_pos(1, 5));
    give(r, (struct repl_msg){.type = REPL_DONE, .length = REPL_SUPER_SIZE}, block);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_DONE_OK);
    assert_true(entry_on_disk(1) == repl_pos(1, 5));
    repl_replica_free(r);
}

/* A crash while a damaged log is made anew: a good log beside pages of before would hide what was active. */
static void log_made_after_pages(void **state)
{
    static const uint8_t none[REPL_LOG_SLOT];
    (void)state;
    struct repl_replica *r = written_once();
    world.later = false;
    repl_replica_free(r);
    for (uint64_t i = 0; i < 2; i++)
        memset(world.meta + repl_log_offset(i), 0, REPL_LOG_SLOT);
    world.sync_later = true;
    r = start();
    assert_true(entry_on_disk(1) == REPL_UNKNOWN);
    for (uint64_t i = 0; i < 2; i++)
        assert_memory_equal(world.meta + repl_log_offset(i), none, sizeof(none));
    world.sync_later = false;
    repl_replica_meta_synced(r, 0);
    repl_replica_turn(r, 3 * S);
    for (uint64_t i = 0; i < 2; i++)
        assert_memory_not_equal(world.meta + repl_log_offset(i), none, sizeof(none));
    repl_replica_free(r);
}

/* The superblock that is left is of a time before the first view; the store is not. */
static void lost_without_view(void **state)
{
    (void)state;
    uint8_t before[REPL_SUPER_SLOT];
    setup();
    struct repl_replica *r = start();
    memcpy(before, world.meta + repl_super_offset(0), sizeof(before));
    view_and_join(r, 1, 3 * S);
    give(r, write_at(1, 0), page);
    repl_replica_turn(r, 3 * S);
    repl_replica_free(r);
    memcpy(world.meta + repl_super_offset(0), before, sizeof(before));
    memset(world.meta + repl_super_offset(1), 0, REPL_SUPER_SLOT);
    r = start();
    assert_int_equal(last().flags, REPL_BLANK | REPL_LOST);
    world.later = true;
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 43, .epoch = 2}, NULL);
    repl_replica_turn(r, 5 * S);
    give(r, (struct repl_msg){.type = REPL_VIEW, .epoch = 2, .length = REPL_SUPER_SIZE}, block);
    repl_replica_turn(r, 5 * S);
    assert_true(repl_replica_region(r, 0) == REPL_UNKNOWN);
    assert_true(repl_replica_stale(r, 0, 512));
    repl_replica_free(r);
}

/* A start is cut off before its superblock is durable, in each of its steps; a copy of the metadata is made then. */
static void copy_of_a_start_cut_off(void **state)
{
    (void)state;
    static uint8_t meta[sizeof(world.meta)];
    for (int stamped = 0; stamped < 2; stamped++) {
        setup();
        repl_replica_free(start());
        world.sync_later = true;
        struct repl_replica_config c = {.store_size = SIZE,
                                        .store = STORE,
                                        .store_generation = world.generation,
                                        .checked = true};
        struct repl_replica *r = repl_replica_new(&c, &ops, NULL);
        assert_int_equal(repl_replica_load(r, meta_read, NULL), 0);
        repl_replica_start(r, 0);
        repl_replica_turn(r, 0); /* notes that it is about to stamp the store */
        struct repl_super copy = on_disk();
        memcpy(meta, world.meta, sizeof(meta));
        assert_int_equal(copy.stamping, 1);
        if (stamped) {
            repl_replica_meta_synced(r, 0);
            repl_replica_turn(r, 0);
            memcpy(world.meta, meta, sizeof(meta)); /* what says so does not reach the disk */
        }
        assert_int_equal(world.generation, 1 + stamped);
        repl_replica_free(r);
        world.sync_later = false;
        repl_replica_free(start());
        assert_true(world.generation > (uint64_t)1 + (uint64_t)stamped);
        assert_false(repl_super_knows(&copy, &STORE, world.generation));
        struct repl_super now = on_disk();
        assert_true(repl_super_knows(&now, &STORE, world.generation));
    }
}

/* Where checksums are durable with the data, a crash leaves none stale: it vouches for what it reads at once. */
static void checksums_with_data(void **state)
{
    (void)state;
    for (int pool = 0; pool < 2; pool++) {
        setup();
        world.pool = pool;
        struct repl_replica *r = start();
        view_and_join(r, 1, 3 * S);
        give(r, write_at(1, 0), page);
        repl_replica_turn(r, 3 * S);
        repl_replica_free(r);
        world.later = true; /* also what makes checksums anew */
        r = start();
        assert_true(repl_replica_region(r, 0) == REPL_UNKNOWN);
        assert_int_equal(status_of(r).stale, pool ? 0 : 2);
        assert_int_equal(world.waiting_n, pool ? 0 : 1);
        world.later = false;
        if (pool) {
            view_and_join(r, 2, 3 * S);
            give(r, (struct repl_msg){.type = REPL_SUMS, .epoch = 2, .count = 4096}, NULL);
            assert_int_equal(last().type, REPL_SUMS_OK);
            assert_int_equal(last().flags, REPL_VOUCHED);
            assert_int_equal(world.unverified, 0);
        }
        repl_replica_free(r);
    }
}

/* A part of the store that cannot be read costs the answer, and nothing else. */
static void unreadable_part(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    give(r, (struct repl_msg){.type = REPL_READ, .seq = 1, .count = 512}, NULL);
    give(r, (struct repl_msg){.type = REPL_SUMS, .seq = 2, .count = 4096}, NULL);
    give(r, (struct repl_msg){.type = REPL_READ, .seq = 3, .offset = 8192, .count = 512}, NULL);
    assert_int_equal(world.waiting_n, 3);
    const uint8_t types[] = {REPL_READ_OK, REPL_SUMS_OK, REPL_READ_OK};
    for (int i = 0; i < 3; i++) {
        repl_replica_stored(r, world.waiting[i], i < 2 ? -EIO : 0);
        assert_int_equal(last().type, types[i]);
        assert_int_equal(last().flags & REPL_FAILED, i < 2 ? REPL_FAILED : 0);
        assert_int_equal(last().length, i < 2 ? 0 : 512);
    }
    assert_int_equal(world.closed, 0);
    assert_true(status_of(r).complete);
    assert_true(status_of(r).position == repl_pos(1, 1));
    repl_replica_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop),
        cmocka_unit_test(stop_incomplete),
        cmocka_unit_test(stop_closes_every_link),
        cmocka_unit_test(stop_syncs_checksums),
        cmocka_unit_test(stop_after_retirement_in_vain),
        cmocka_unit_test(stale_checksums),
        cmocka_unit_test(snapshot_awaits_checksums),
        cmocka_unit_test(mark_awaits_checksums),
        cmocka_unit_test(checksums_below_mark),
        cmocka_unit_test(checksums_of_unknown_region),
        cmocka_unit_test(log_made_after_pages),
        cmocka_unit_test(lost_without_view),
        cmocka_unit_test(copy_of_a_start_cut_off),
        cmocka_unit_test(checksums_with_data),
        cmocka_unit_test(unreadable_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

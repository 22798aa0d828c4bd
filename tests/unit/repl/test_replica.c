/* A replica by itself: promises, active extents, order, groups of flushes, damage. */
#include "a_replica.h"

/* The first write to an extent costs a write of the log, all of a batch together; the next ones cost nothing. */
static void active_extents(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    int syncs = world.syncs, logs = world.logs, writes = world.writes;
    assert_true(give(r, write_at(1, 0), page));
    assert_true(give(r, write_at(2, 6 << REGION), page));
    assert_int_equal(world.writes, writes); /* not before the log */
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.logs, logs + 1);
    assert_int_equal(world.syncs, syncs);
    assert_int_equal(world.writes, writes + 2);
    assert_int_equal(last().type, REPL_ACK);
    assert_int_equal(last().seq, 2);
    assert_int_equal(log_on_disk().n, 2);
    for (uint64_t i = 3; i < 10; i++)
        assert_true(give(r, write_at(i, (i % 2 << REGION) + i * 512), page));
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.logs, logs + 1);
    assert_int_equal(last().seq, 9);
    assert_true(repl_replica_region(r, 1) == repl_pos(1, 9));
    assert_true(entry_on_disk(0) == 0); /* the log says enough */
    /* Nothing was written for a while: the true entries are on disk, and the log is empty. */
    repl_replica_turn(r, 4 * S);
    assert_int_equal(log_on_disk().n, 2);
    repl_replica_turn(r, 7 * S);
    assert_int_equal(status_of(r).active, 0);
    assert_int_equal(log_on_disk().n, 0);
    assert_true(entry_on_disk(1) == repl_pos(1, 9) && entry_on_disk(6) == repl_pos(1, 2));
    /* The checkpoint moved the position on disk, too. */
    assert_true(on_disk().pos == repl_pos(1, 9));
    repl_replica_free(r);
}

/* A write waits for the log only if its own extent is not in it. */
static void only_who_needs_it_waits(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    world.later = false;
    world.log_later = true;
    int writes = world.writes, logs = world.logs;
    give(r, write_at(2, 8 << REGION), page);
    repl_replica_turn(r, 3 * S);
    give(r, write_at(3, 512), page);
    give(r, write_at(4, 10 << REGION), page);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.writes, writes + 1); /* 3 */
    assert_int_equal(world.logs, logs + 1);     /* one at a time */
    repl_replica_logged(r, 0);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.writes, writes + 2); /* 2 */
    assert_int_equal(world.logs, logs + 2);
    repl_replica_logged(r, 0);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.writes, writes + 3);
    repl_replica_free(r);
}

/* More extents than may be active: the longest untouched retire; where there is no room, writes are taken later. */
static void retire(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    for (uint64_t i = 1; i <= 5; i++) {
        give(r, write_at(i, (i - 1) * 2 << REGION), page);
        repl_replica_turn(r, 3 * S);
    }
    assert_int_equal(status_of(r).active, 3);
    assert_true(entry_on_disk(0) == repl_pos(1, 1) && entry_on_disk(2) == repl_pos(1, 2));
    struct repl_log log = log_on_disk();
    for (uint32_t i = 0; i < log.n; i++)
        assert_true(log.extent[i] >= 2);
    world.later = true; /* a write in every extent is under way */
    for (uint64_t i = 6; i <= 8; i++)
        assert_true(give(r, write_at(i, (i - 1) * 2 << REGION), page));
    repl_replica_turn(r, 3 * S);
    assert_int_equal(status_of(r).active, 6);
    assert_false(give(r, write_at(9, 0), page));
    while (world.waiting_n)
        repl_replica_stored(r, world.waiting[--world.waiting_n], 0);
    world.later = false;
    repl_replica_turn(r, 3 * S);
    repl_replica_turn(r, 3 * S);
    assert_true(give(r, write_at(9, 0), page));
    repl_replica_free(r);
}

/* Who writes in order finds the next extent active already. */
static void ahead(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    uint64_t at = (2 << REGION) - 1024;
    for (uint64_t i = 1; i <= 2; i++, at += 512) {
        give(r, write_at(i, at), page);
        repl_replica_turn(r, 3 * S);
    }
    int logs = world.logs, writes = world.writes;
    give(r, write_at(3, at), page);
    assert_int_equal(world.writes, writes + 1); /* at once */
    assert_int_equal(world.logs, logs);
    repl_replica_free(r);
}

/* After a crash a replica is at its durable position, and the regions of active extents are unknown. */
static void crash(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, write_at(1, 0), page);
    give(r, (struct repl_msg){.type = REPL_FLUSH}, NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().offset, 1);
    give(r, write_at(2, 1024), page);
    repl_replica_turn(r, 3 * S);
    struct repl_replica_status st;
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 2));
    repl_replica_free(r);
    r = start();
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 1));
    assert_int_equal(st.super->boot, 2);
    assert_int_equal(last().type, REPL_HELLO);
    assert_false(last().flags & REPL_INTACT);
    assert_true(repl_replica_region(r, 0) == REPL_UNKNOWN);
    assert_true(repl_replica_region(r, 1) == REPL_UNKNOWN); /* of the same extent */
    assert_true(repl_replica_region(r, 2) == 0);
    /* Their checksums are made anew; until then reads are not compared with them. */
    assert_int_equal(world.resums, 2);
    assert_int_equal(status_of(r).stale, 0);
    repl_replica_free(r);
}

/* Start anew with metadata that was damaged, or a store that is new; what the replica says of itself. */
static struct repl_replica *damaged(uint64_t offset, size_t size, bool store_new)
{
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, write_at(1, 0), page);
    give(r, (struct repl_msg){.type = REPL_FLUSH}, NULL);
    repl_replica_turn(r, 3 * S);
    repl_replica_free(r);
    memset(world.meta + offset, 0, size);
    return start_with(store_new);
}

static void assert_lost(struct repl_replica *r, bool lost, bool unknown)
{
    assert_int_equal(last().type, REPL_HELLO);
    assert_int_equal(!!(last().flags & REPL_LOST), lost);
    assert_int_equal(status_of(r).damaged != NULL, lost);
    assert_true(status_of(r).position == (lost ? 0 : repl_pos(1, 1)));
    assert_true((repl_replica_region(r, 9) == REPL_UNKNOWN) == unknown);
    repl_replica_free(r);
}

/* Whatever is missing, it never claims what it may not have. */
static void damage(void **state)
{
    (void)state;
    assert_lost(damaged(0, 0, false), false, false);
    assert_lost(damaged(repl_super_offset(0), REPL_SUPER_SLOT, false), true, true);
    assert_lost(damaged(repl_super_offset(1), REPL_SUPER_SLOT, false), true, true);
    assert_lost(damaged(repl_super_offset(0) + 512, 512, false), true, true);
    assert_lost(damaged(repl_log_offset(0), 512, false), false, true);
    assert_lost(damaged(repl_log_offset(0), 2 * REPL_LOG_SLOT, false), false, true);
    assert_lost(damaged(repl_page_offset(0), REPL_SUPER_SIZE, false), false, true);
    assert_lost(damaged(0, 0, true), true, false); /* its data was missing */
    /* It stays lost until it was rebuilt, whatever it is started with. */
    repl_replica_free(damaged(0, 0, true));
    struct repl_replica *r = start_with(false);
    assert_true(last().flags & REPL_LOST);
    view_and_join(r, 2, 3 * S);
    repl_replica_free(r);
    r = start_with(false);
    assert_false(last().flags & REPL_LOST);
    repl_replica_free(r);
}

/* A map whose pages are all full, so many that their bits fill a word but for one. */
static void full_pages(void **state)
{
    (void)state;
    setup();
    const uint64_t size = (uint64_t)(63 * REPL_PAGE_ENTRIES) << REGION;
    struct repl_super s = {.generation = 1, .store = STORE};
    s.view = (struct repl_view){.version = 1,
                                .size = size,
                                .rf = 1,
                                .flags = REPL_FORMED,
                                .region_shift = REGION,
                                .block_shift = 12,
                                .n = 1};
    s.view.member[0].flags = REPL_VOTER | REPL_OLD;
    repl_super_slot(&s, world.meta + repl_super_offset(1));
    struct repl_replica_config c = {.store_size = size, .store = STORE, .checked = true};
    struct repl_replica *r = repl_replica_new(&c, &ops, NULL);
    assert_int_equal(repl_replica_load(r, meta_read, NULL), 0);
    assert_true(repl_replica_region(r, 63 * REPL_PAGE_ENTRIES - 1) == REPL_UNKNOWN);
    repl_replica_free(r);
}

/* Each start, and each stop in order, gives metadata and store a new generation. */
static void generations(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    assert_int_equal(world.generation, 1);
    assert_true(repl_super_knows(&(struct repl_super){0}, &(struct uuid){{0}}, 0));
    struct repl_super s = on_disk();
    assert_true(repl_super_knows(&s, &STORE, 1) && !repl_super_knows(&s, &STORE, 0));
    repl_replica_free(r);
    r = start();
    assert_int_equal(world.generation, 2);
    repl_replica_stop(r);
    for (int i = 0; i < 5 && !repl_replica_stopped(r); i++)
        repl_replica_turn(r, 3 * S);
    assert_int_equal(world.generation, 3);
    s = on_disk();
    assert_true(repl_super_knows(&s, &STORE, 3) && !repl_super_knows(&s, &STORE, 2));
    repl_replica_free(r);
}

/* Overlapping requests wait for each other, others do not; a full pool says so; flushes come in groups. */
static void order(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    world.writes = 0;
    give(r, write_at(2, 0), page);
    give(r, (struct repl_msg){.type = REPL_READ, .seq = 1, .offset = 0, .count = 512}, NULL);
    give(r, write_at(3, 0), page);
    give(r, write_at(4, 1024), page);
    assert_int_equal(world.waiting_n, 2); /* writes 2 and 4 */
    for (int i = 0; i < 4; i++)
        assert_true(give(
            r, (struct repl_msg){.type = REPL_READ, .seq = 9, .offset = 0, .count = 512}, NULL));
    assert_false(
        give(r, (struct repl_msg){.type = REPL_READ, .seq = 9, .offset = 0, .count = 512}, NULL));
    repl_replica_stored(r, world.waiting[1], 0);
    repl_replica_turn(r, 3 * S);
    struct repl_replica_status st;
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 1)); /* 4 is done, 2 is not: the prefix stands */
    repl_replica_stored(r, world.waiting[0], 0);
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 2));
    assert_int_equal(world.waiting_n, 3); /* the read */
    repl_replica_stored(r, world.waiting[2], 0);
    repl_replica_stored(r, world.waiting[3], 0); /* write 3 */
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 4));
    repl_replica_free(r);
}

/* A DONE that waits for a write before it is not the end of the rebuild that a second JOIN begins. */
static void joined_again(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    struct repl_replica_status st;
    view_and_join(r, 1, 3 * S);
    world.later = true;
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 0, .offset = 2}, NULL);
    give(r, write_at(1, 0), page);
    repl_replica_turn(r, 3 * S);
    give(r, (struct repl_msg){.type = REPL_DONE, .length = REPL_SUPER_SIZE}, block);
    give(r, (struct repl_msg){.type = REPL_JOIN, .seq = 5, .offset = 3}, NULL);
    world.sent_n = 0;
    world.later = false;
    repl_replica_stored(r, world.waiting[0], 0);
    repl_replica_turn(r, 3 * S);
    for (int i = 0; i < world.sent_n; i++)
        assert_int_not_equal(world.sent[i].type, REPL_DONE_OK);
    repl_replica_status(r, &st);
    assert_true(st.super->pos == repl_pos(1, 0));
    repl_replica_free(r);
}

/* A store that cannot write is as if the replica had crashed. */
static void failing(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    give(r, write_at(2, 512), page);
    repl_replica_stored(r, world.waiting[0], -EIO);
    assert_int_equal(world.closed, 1);
    struct repl_replica_status st;
    repl_replica_status(r, &st);
    assert_true(st.position == repl_pos(1, 0));
    assert_false(st.complete);
    assert_true(repl_replica_region(r, 0) == REPL_UNKNOWN);
    repl_replica_free(r);
}

/* Epochs only rise; an answer to a ping is a promise for a while. */
static void promises(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 5, 3 * S);
    give(r, (struct repl_msg){.type = REPL_PING, .seq = 1, .epoch = 5}, NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_PONG);
    repl_replica_open(r, 1);
    struct repl_msg m = {.type = REPL_PROMISE, .seq = 43, .epoch = 5};
    repl_replica_input(r, 1, &m, NULL, 0, NULL);
    assert_int_equal(last().type, REPL_REFUSE); /* the epoch is another's */
    m.epoch = 6;
    repl_replica_input(r, 1, &m, NULL, 0, NULL);
    repl_replica_turn(r, 3 * S + S / 2);
    assert_int_not_equal(last().type, REPL_PROMISED);
    int64_t at = repl_replica_turn(r, 3 * S + S / 2);
    assert_true(at <= 4 * S);
    repl_replica_turn(r, 4 * S + 1);
    assert_int_equal(last().type, REPL_PROMISED);
    assert_int_equal(world.closed, 1); /* the old one */
    give(r, write_at(1, 0), page);     /* comes too late */
    assert_int_equal(world.writes, 0);
    repl_replica_free(r);
}

/* A lease begins when the ping is answered, not when the replica last did something. */
static void lease_from_answer(void **state)
{
    (void)state;
    setup();
    struct repl_replica *r = start();
    view_and_join(r, 1, 3 * S);
    give(r, (struct repl_msg){.type = REPL_PING, .seq = 1},
         NULL); /* at 9 s; before that nothing came */
    repl_replica_turn(r, 9 * S);
    assert_int_equal(last().type, REPL_PONG);
    repl_replica_open(r, 1);
    repl_replica_input(r, 1, &(struct repl_msg){.type = REPL_PROMISE, .seq = 43, .epoch = 2}, NULL,
                       0, NULL);
    repl_replica_turn(r, 9 * S + S / 2);
    assert_int_not_equal(last().type, REPL_PROMISED);
    repl_replica_turn(r, 10 * S + 1);
    assert_int_equal(last().type, REPL_PROMISED);
    repl_replica_free(r);
}

/* A new target is told nothing of the old one's writes: it would take them for its own. */
static void no_ack_before_join(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    give(r, (struct repl_msg){.type = REPL_FLUSH, .seq = 1}, NULL);
    repl_replica_turn(r, 3 * S);
    give(r, (struct repl_msg){.type = REPL_PROMISE, .seq = 43, .epoch = 2}, NULL);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_PROMISED);
    repl_replica_stored(r, world.waiting[0], 0);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(last().type, REPL_PROMISED);
    repl_replica_free(r);
}

/* A mark is of what was flushed with it, not of what was rebuilt meanwhile. */
static void marks(void **state)
{
    (void)state;
    struct repl_replica *r = written_once();
    for (int live = 0; live < 2; live++) {
        world.waiting_n = 0;
        mark(r, 4, live ? 0 : 77);
        mark(r, 9, live ? 0 : 77);
        assert_int_equal(world.waiting_n, 1);
        repl_replica_stored(r, world.waiting[0], 0);
        repl_replica_turn(r, 3 * S);
        assert_int_equal(live ? on_disk().mark_region : on_disk().snap_region, 4);
        assert_int_equal(world.waiting_n, 2);
        repl_replica_stored(r, world.waiting[1], 0);
        repl_replica_turn(r, 3 * S);
        assert_int_equal(live ? on_disk().mark_region : on_disk().snap_region, 9);
    }
    assert_int_equal(on_disk().snap_mark, 77);
    world.later = false;
    /* What is written after JOIN is not of the snapshot: not before its mark is gone, be the region hot or not. */
    int writes = world.writes;
    give(r, (struct repl_msg){.type = REPL_JOIN}, NULL);
    give(r, write_at(1, 0), page);
    assert_int_equal(world.writes, writes);
    assert_int_equal(on_disk().snap_mark, 77);
    repl_replica_turn(r, 3 * S);
    assert_int_equal(world.writes, writes + 1);
    assert_int_equal(on_disk().snap_mark, 0);
    assert_int_equal(on_disk().mark_region, 9);
    /* The rebuild of another one begins while a mark is being flushed: there will be none. */
    mark(r, 5, 77);
    assert_int_equal(on_disk().snap_mark, 77);
    world.later = true;
    world.waiting_n = 0;
    mark(r, 8, 77);
    mark(r, 0, 78);
    repl_replica_stored(r, world.waiting[0], 0);
    world.later = false;
    repl_replica_turn(r, 3 * S);
    assert_int_equal(on_disk().snap_mark, 0);
    repl_replica_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_extents),
        cmocka_unit_test(only_who_needs_it_waits),
        cmocka_unit_test(retire),
        cmocka_unit_test(ahead),
        cmocka_unit_test(crash),
        cmocka_unit_test(damage),
        cmocka_unit_test(full_pages),
        cmocka_unit_test(generations),
        cmocka_unit_test(order),
        cmocka_unit_test(failing),
        cmocka_unit_test(promises),
        cmocka_unit_test(joined_again),
        cmocka_unit_test(marks),
        cmocka_unit_test(lease_from_answer),
        cmocka_unit_test(no_ack_before_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Snapshots as a target gives them: names, limits, refusals. What they contain is the simulator's part.
 */
#include <stdio.h>

#include "a_target.h"

static int asked(int status)
{
    if (status == 0)
        pass(100 * MS);
    return status ? status : w.admin_status;
}

/* Snapshots: what is refused, and that all have one or nobody does. */
static void snapshots(void **state)
{
    (void)state;
    char long_name[REPL_SNAP_NAME + 1] = {0}, name[16];
    memset(long_name, 'x', REPL_SNAP_NAME);
    assert_int_equal(repl_target_snapshot(w.t, "", 1), -EINVAL);
    assert_int_equal(repl_target_snapshot(w.t, long_name, 1), -EINVAL);
    assert_int_equal(repl_target_snap_delete(w.t, "a"), -ENOENT);
    assert_int_equal(repl_target_revert(w.t, "a"), -ENOENT);
    w.full[2] = true;
    assert_int_equal(asked(repl_target_snapshot(w.t, "a", 1)), -EIO);
    assert_int_equal(repl_target_snaps(w.t)->n, 0);
    assert_int_equal(status().replica[0].held.n, 0); /* taken away again */
    w.full[2] = false;
    assert_int_equal(asked(repl_target_snapshot(w.t, "a", 1)), 0);
    assert_int_equal(repl_target_snapshot(w.t, "a", 1), -EEXIST);
    assert_int_equal(repl_target_snapshot(w.t, "b", 1), 0);
    assert_int_equal(repl_target_snapshot(w.t, "c", 1), -EBUSY);
    pass(100 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(status().replica[i].held.n, 2);
    assert_int_equal(repl_target_revert(w.t, "a"), -ENOTEMPTY);
    assert_int_equal(asked(repl_target_revert(w.t, "b")), 0);
    assert_int_equal(asked(repl_target_snap_delete(w.t, "b")), 0);
    assert_int_equal(asked(repl_target_revert(w.t, "a")), 0);
    for (int i = 1; i < REPL_SNAPS; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        assert_int_equal(asked(repl_target_snapshot(w.t, name, 1)), 0);
    }
    assert_int_equal(repl_target_snapshot(w.t, "more", 1), -ENOSPC);
    assert_string_equal(status().phase, "Healthy");
}

/* A region that is rebuilt after a revert, by entries that were asked for before it, has the revert's position. */
static void revert_in_rebuild(void **state)
{
    (void)state;
    assert_int_equal(asked(repl_target_snapshot(w.t, "a", 1)), 0);
    w.linked[2] = false;
    repl_target_close(w.t, 2);
    repl_replica_close(w.r[2], 0);
    for (uint64_t region = 0; region < 6; region += 5) {
        struct repl_io io = io_of(REPL_IO_WRITE, region << 16);
        repl_target_submit(w.t, &io);
        pass(50 * MS);
    }
    repl_target_set_rate(w.t, 1000000); /* one region after the other, with time in between */
    link_up(2);
    for (int k = 0; k < 100 && !w.begun; k++)
        pass(10 * MS);
    assert_int_equal(w.begun, 1);
    assert_int_equal(repl_target_revert(w.t, "a"), 0);
    pass(1000 * MS);
    assert_string_equal(status().phase, "Healthy");
    for (uint64_t region = 0; region < 6; region += 5)
        assert_true(repl_replica_region(w.r[2], region) >= repl_replica_region(w.r[0], region));
}

static int start_one_by_one(void **state)
{
    ahead = 1;
    int status = start(state);
    ahead = 0;
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(snapshots, start, stop),
        cmocka_unit_test_setup_teardown(revert_in_rebuild, start_one_by_one, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

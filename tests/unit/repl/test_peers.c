/*
 * Replicas that are slow, silent, full, or not who they say they are; and targets that ask for what cannot be.
 */
#include "a_target.h"

static void write_page(uint64_t at)
{
    struct repl_io io = io_of(REPL_IO_WRITE, at), flush = {.op = REPL_IO_FLUSH};
    int done = w.done;
    repl_target_submit(w.t, &io);
    settle();
    repl_target_submit(w.t, &flush);
    settle();
    assert_int_equal(w.done, done + 2);
}

/* Somebody on a link of its own greets as replica 0. */
static void greet(int link, uint32_t boot, uint64_t pos)
{
    uint8_t block[REPL_SUPER_SIZE];
    struct repl_super s = {.generation = 1, .boot = boot, .pos = pos};
    s.replica.bytes[0] = 1;
    repl_super_encode(&s, block);
    struct repl_msg m = {.type = REPL_HELLO, .seq = pos, .length = sizeof(block)};
    struct iovec iov = {block, sizeof(block)};
    w.linked[link] = true;
    repl_target_open(w.t, link);
    repl_target_input(w.t, link, &m, &iov, 1, NULL);
}

/* A copy of a replica that is connected is let go when it is older; else it is the replica itself, anew. */
static void copies(void **state)
{
    (void)state;
    write_page(0);
    write_page(4096);
    uint64_t durable = status().replica[0].checkpointed_io_seq;
    assert_int_equal(durable, repl_pos(status().epoch, 2));
    greet(3, 9, durable - 1); /* a folder that was copied when less was in it */
    assert_true(w.linked[0] && !w.linked[3]);
    greet(3, 0, durable); /* or before a start that it does not know of */
    assert_true(w.linked[0] && !w.linked[3]);
    pass(100 * MS);
    assert_string_equal(status().phase, "Healthy");
    greet(3, 2, durable);
    assert_true(!w.linked[0] && w.linked[3]);
}

/* The only replica: a copy of it that is older must not become the truth. */
static int start_one(void **state)
{
    (void)state;
    return start_n(1, 0);
}

static void copy_of_one(void **state)
{
    (void)state;
    write_page(0);
    uint32_t epoch = status().epoch;
    greet(3, 5, repl_pos(epoch, 0));
    pass(500 * MS);
    assert_int_equal(status().epoch, epoch);
    assert_string_equal(status().phase, "Healthy");
}

/* A connection that says nothing does not keep its place. */
static void silent(void **state)
{
    (void)state;
    w.linked[4] = true;
    repl_target_open(w.t, 4);
    pass(9000 * MS);
    assert_true(w.linked[4]);
    pass(2000 * MS);
    assert_false(w.linked[4]);
    assert_string_equal(status().phase, "Healthy");
}

/* A replica that freezes while it is rebuilt holds up nobody for long, however small the writes are. */
static void frozen_in_rebuild(void **state)
{
    (void)state;
    w.linked[2] = false;
    repl_target_close(w.t, 2);
    repl_replica_close(w.r[2], 0);
    write_page(0);
    link_up(2);
    for (int i = 0; i < 100 && strcmp(status().replica[2].mode, "Rebuilding") != 0; i++) {
        w.one_round = true;
        settle();
    }
    w.one_round = false;
    assert_string_equal(status().replica[2].mode, "Rebuilding");
    w.frozen[2] = true;
    static struct repl_io io[200]; /* the window has 64 */
    int64_t began = w.now;
    int done = w.done;
    for (int i = 0; i < 200; i++) {
        io[i] = io_of(REPL_IO_WRITE, 4096 * (uint64_t)i);
        repl_target_submit(w.t, &io[i]);
    }
    while (w.done < done + 200 && w.now - began < 5000 * MS)
        pass(10 * MS);
    assert_int_equal(w.done, done + 200);
    assert_true(w.now - began < 500 * MS);
}

/* A replica that is full is let go, the volume goes on, and when there is room it comes back. */
static void full_disk(void **state)
{
    (void)state;
    write_page(0);
    w.cannot_write[1] = true;
    write_page(8192);
    assert_string_equal(status().replica[1].mode, "Offline");
    assert_string_equal(status().phase, "Degraded");
    link_up(1); /* its rebuild fails in the same way */
    pass(100 * MS);
    assert_string_equal(status().replica[1].mode, "Offline");
    w.cannot_write[1] = false;
    link_up(1);
    pass(500 * MS);
    assert_string_equal(status().phase, "Healthy");
    assert_memory_equal(w.data[0], w.data[1], SIZE);
}

static void read_first(void)
{
    struct repl_io io = io_of(REPL_IO_READ, 0);
    int done = w.done;
    memset(page, 99, sizeof(page));
    repl_target_submit(w.t, &io);
    settle();
    assert_int_equal(w.done, done + 1);
    assert_int_equal(w.status, 0);
    for (size_t i = 0; i < sizeof(page); i++)
        assert_int_equal(page[i], 1);
}

/* A block that a store cannot read is read from another replica and written back; nobody is let go for it. */
static void unreadable_block(void **state)
{
    (void)state;
    w.pool = true;
    write_page(0);
    memset(w.reads, 0, sizeof(w.reads));
    read_first();
    int one = w.reads[1] ? 1 : w.reads[2] ? 2 : 0;
    w.rotten[one] = true;
    int64_t dropped = w.dropped_at;
    read_first();
    assert_int_equal(w.reads[one], 3); /* the read, the one again, and the end of what is mended */
    assert_false(w.rotten[one]);
    assert_string_equal(status().phase, "Healthy");
    assert_true(w.dropped_at == dropped);
    read_first();
}

/* A write to a part of it fails: the replica comes back, is compared there, and gets all of the block. */
static void part_of_unreadable_block(void **state)
{
    (void)state;
    w.pool = true;
    write_page(0);
    w.rotten[1] = true;
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    io.length = page_iov.iov_len = 512;
    int done = w.done;
    repl_target_submit(w.t, &io);
    settle();
    page_iov.iov_len = sizeof(page);
    assert_int_equal(w.done, done + 1);
    assert_int_equal(w.status, 0);
    assert_string_equal(status().replica[1].mode, "Offline");
    link_up(1);
    pass(500 * MS);
    assert_false(w.rotten[1]);
    assert_string_equal(status().phase, "Healthy");
    assert_memory_equal(w.data[0], w.data[1], SIZE);
}

/* A replica whose metadata cannot be written says nothing any more; what it had acknowledged is on the others. */
static void bad_meta(void **state)
{
    (void)state;
    write_page(0);
    w.bad_meta[1] = true;
    write_page(65536);
    pass(100 * MS);
    struct repl_replica_status st;
    repl_replica_status(w.r[1], &st);
    assert_true(st.failed);
    assert_string_equal(status().replica[1].mode, "Offline");
    w.bad_meta[1] = false;
    link_up(1);
    pass(1000 * MS);
    assert_string_equal(status().replica[1].mode, "Offline");
}

/* The volume grows while a replica is rebuilt: it gets the new part, too; one that cannot is let go. */
static void grows_in_rebuild(void **state)
{
    (void)state;
    assert_int_equal(repl_target_grow(w.t, (uint64_t)1 << 43), -EFBIG);
    assert_int_equal(repl_target_grow(w.t, SIZE - 512), -EINVAL);
    for (int can = 0; can < 2; can++) {
        w.linked[2] = false;
        repl_target_close(w.t, 2);
        repl_replica_close(w.r[2], 0);
        for (uint64_t at = 0; at < SIZE; at += 65536)
            write_page(at + 4096);
        link_up(2);
        w.one_round = true;
        for (int i = 0; i < 100 && strcmp(status().replica[2].mode, "Rebuilding") != 0; i++)
            settle();
        w.one_round = false;
        assert_string_equal(status().replica[2].mode, "Rebuilding");
        w.full[2] = !can;
        uint64_t size = status().size + 65536;
        assert_int_equal(repl_target_grow(w.t, size), 0);
        pass(100 * MS);
        assert_int_equal(w.admin_status, 0);
        assert_int_equal(status().size, size);
        write_page(size - 4096);
        pass(500 * MS);
        assert_string_equal(status().replica[2].mode, can ? "Healthy" : "Offline");
        w.full[2] = false;
        if (!can) {
            link_up(2);
            pass(1000 * MS);
        }
        assert_string_equal(status().phase, "Healthy");
        assert_memory_equal(w.data[0], w.data[2], size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies, start, stop),
        cmocka_unit_test_setup_teardown(copy_of_one, start_one, stop),
        cmocka_unit_test_setup_teardown(silent, start, stop),
        cmocka_unit_test_setup_teardown(frozen_in_rebuild, start, stop),
        cmocka_unit_test_setup_teardown(full_disk, start, stop),
        cmocka_unit_test_setup_teardown(unreadable_block, start, stop),
        cmocka_unit_test_setup_teardown(part_of_unreadable_block, start, stop),
        cmocka_unit_test_setup_teardown(bad_meta, start, stop),
        cmocka_unit_test_setup_teardown(grows_in_rebuild, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

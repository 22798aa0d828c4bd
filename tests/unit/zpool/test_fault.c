/*
 * Devices that misbehave: what they do is counted, mended where there is a copy, said where there is
 * none, and never ends the process.
 */
#include <pthread.h>

#include "zpool/zpooltest.h"

enum { ALL = ZPOOL_FAULT_READ | ZPOOL_FAULT_WRITE | ZPOOL_FAULT_SYNC };

static void fault(int disk, unsigned ops, enum zpool_fault_kind kind)
{
    static struct zpool_fault f;
    f = (struct zpool_fault){.path = disks[disk], .ops = ops, .kind = kind, .delay_ms = 200};
    zpool_fault_set(&f, 1);
}

static void no_fault(void)
{
    zpool_fault_set(NULL, 0);
}

static struct zpool *again(struct zpool *p, struct model *m)
{
    uint64_t guid = zpool_guid(p);
    model_close(m);
    assert_ok(zpool_export(p, &e) == 0);
    p = import_all(guid);
    model_open(m, p);
    return p;
}

/*
 * Reads with nothing in memory until ZFS has counted an error of the faulty side. One pass may count
 * none: ZFS picks the side of a mirror, and does not count the errors of its own read-ahead.
 */
static struct zpool *read_until_counted(struct zpool *p, struct model *m, unsigned ops,
                                        enum zpool_fault_kind kind)
{
    for (int64_t until = now_ms() + 60000; now_ms() < until;) {
        struct zpool_vdev side = *row_of(p, 1);
        if (side.read_errors + side.checksum_errors > 0)
            return p;
        no_fault();
        p = again(p, m);
        fault(1, ops, kind);
        model_verify(m);
    }
    fail_msg("no error of the faulty side was counted within a minute");
    return p;
}

static void mend(struct zpool *p)
{
    assert_ok(zpool_clear(p, &e) == 0);
    wait_for(all_whole(p) && row_of(p, -1)->state == ZPOOL_ONLINE);
    assert_ok(zpool_scrub(p, true, &e) == 0);
    wait_for(scan_is_over(p));
    assert_int_equal(status_of(p).scan.errors, 0);
}

/* One side of a mirror does everything wrong that a device can do. */
static void test_one_side(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned ops;
        enum zpool_fault_kind kind;
        bool cold;     /* read it back with nothing in memory */
        bool degraded; /* the device is given up */
    } table[] = {
        {"all fails", ALL, ZPOOL_FAULT_EIO, false, true},
        {"reads fail", ZPOOL_FAULT_READ, ZPOOL_FAULT_EIO, false, false},
        {"writes fail", ZPOOL_FAULT_WRITE, ZPOOL_FAULT_EIO, false, true},
        {"writes are lost", ZPOOL_FAULT_WRITE, ZPOOL_FAULT_LOSE, true, false},
        {"writes are torn", ZPOOL_FAULT_WRITE, ZPOOL_FAULT_TEAR, true, false},
        {"reads are corrupted", ZPOOL_FAULT_READ, ZPOOL_FAULT_CORRUPT, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        make_disks();
        struct zpool *p = create("mirror 0 1");
        struct model m = model_new(p);
        p = again(p, &m);
        fault(1, table[i].ops, table[i].kind);
        for (uint64_t page = 0; page < 500; page += 50) {
            model_write(&m, page, 20);
            assert_int_equal(flush(m.v), 0);
        }
        model_verify(&m);
        assert_ok(zpool_sync(p, &e) == 0);
        assert_true(zpool_fault_count() > 0);
        if (table[i].degraded) {
            wait_for(row_of(p, -1)->state == ZPOOL_DEGRADED);
            assert_true(row_of(p, 1)->behind);
        } else if (!table[i].cold) {
            p = read_until_counted(p, &m, table[i].ops, table[i].kind);
        }
        no_fault();
        if (table[i].cold)
            p = again(p, &m);
        model_verify(&m);
        mend(p);
        struct zpool_vdev other = *row_of(p, 0);
        assert_int_equal(other.read_errors + other.write_errors + other.checksum_errors, 0);
        /* The mended side alone has everything. */
        uint64_t guid = zpool_guid(p);
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);
        model_verify_without(&m, guid, 0);
        print_message("# %s\n", table[i].name);
    }
}

/* What is written to a disk is lost, and its syncs say so, once. */
static void forget(int disk)
{
    static struct zpool_fault rules[2];
    rules[0] = (struct zpool_fault){disks[disk], ZPOOL_FAULT_WRITE, ZPOOL_FAULT_LOSE};
    rules[1] = (struct zpool_fault){disks[disk], ZPOOL_FAULT_SYNC, ZPOOL_FAULT_EIO};
    zpool_fault_set(rules, 2);
}

/*
 * A device that forgets fails no flush while the others have everything, is written to no more, and gets
 * what it lacks when it is trusted again, also what ZFS takes for written.
 */
static void test_sync_fails(void **state)
{
    (void)state;
    static const char *const layouts[] = {"mirror 0 1", "raidz 0 1 2", "mirror 0 1 log 3"};
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        make_disks();
        struct zpool *p = create(layouts[i]);
        struct model m = model_new(p);
        bool log = strstr(layouts[i], "log");
        forget(log ? 3 : 1);
        model_write(&m, 0, 64);
        assert_int_equal(flush(m.v), 0);
        assert_true(zpool_fault_count() > 0);
        model_write(&m, 64, 1);
        assert_int_equal(flush(m.v), 0);
        assert_ok(zpool_sync(p, &e) == 0);
        if (!log)
            wait_for(row_of(p, -1)->state == ZPOOL_DEGRADED);
        no_fault();
        assert_ok(zpool_clear(p, &e) == 0);
        wait_for(all_whole(p) && row_of(p, -1)->state == ZPOOL_ONLINE);
        model_verify(&m);
        uint64_t guid = zpool_guid(p);
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);
        model_verify_without(&m, guid, 0);
        print_message("# %s\n", layouts[i]);
    }
}

static void *flush_thread(void *context)
{
    struct model *m = context;
    return (void *)(intptr_t)flush(m->v);
}

/* The only device fails: the pool is suspended, says so, and goes on when the device is back. */
static void test_suspended(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct model m = model_new(p);
    assert_ok(zpool_sync(p, &e) == 0);
    fault(0, ALL, ZPOOL_FAULT_EIO);
    model_write(&m, 0, 64); /* into memory */
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, flush_thread, &m), 0);
    wait_for(status_of(p).suspended);
    static char data[PAGE];
    assert_int_equal(run_io(m.v, ZPOOL_WRITE, 0, data, PAGE, false), EIO);
    assert_int_equal(run_io(m.v, ZPOOL_UNMAP, 0, NULL, MIB, false), EIO);
    assert_int_equal(flush(m.v), EIO);
    assert_refused(zpool_snapshot(p, "vol", "s", &e) == 0, "PoolSuspended");
    assert_refused(zpool_export(p, &e) == 0, "PoolSuspended");
    assert_refused(zpool_scrub(p, true, &e) == 0, "PoolSuspended");
    (void)zpool_clear(p, &e); /* too early: it is suspended again, or still */
    wait_for(status_of(p).suspended);
    no_fault();
    wait_for(zpool_clear(p, &e) == 0 && !status_of(p).suspended);
    void *result;
    pthread_join(t, &result);
    assert_int_equal((intptr_t)result, 0);
    assert_int_equal(flush(m.v), 0);
    model_write(&m, 70, 10);
    p = again(p, &m);
    model_verify(&m);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* How long a device has been silent is seen while it is. */
static void test_slow(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct model m = model_new(p);
    fault(0, ALL, ZPOOL_FAULT_SLOW);
    model_write(&m, 0, 1);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, flush_thread, &m), 0);
    wait_for(row_of(p, 0)->stuck_ms >= 20);
    no_fault();
    void *result;
    pthread_join(t, &result);
    assert_int_equal((intptr_t)result, 0);
    wait_for(row_of(p, 0)->stuck_ms == 0);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* Where in a disk's file this page is, or -1. */
static off_t find_page(int disk, uint64_t page, uint64_t generation)
{
    uint64_t wanted[PAGE / 8];
    static char data[MIB];
    fill_page(wanted, page, generation);
    int fd = open(disks[disk], O_RDONLY | O_CLOEXEC);
    off_t found = -1;
    for (off_t at = 4 * MIB; at < 128 * MIB && found < 0; at += MIB) {
        assert_int_equal(pread(fd, data, MIB, at), MIB);
        for (int i = 0; i < MIB && found < 0; i += PAGE)
            if (memcmp(data + i, wanted, PAGE) == 0)
                found = at + i;
    }
    close(fd);
    return found;
}

static void spoil(int disk, off_t at)
{
    int fd = open(disks[disk], O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "spoilt", 6, at + 100), 6);
    close(fd);
}

/* No copy: the block is an error, the rest is as it was, and writing all of it anew mends it. */
static void test_no_copy(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("stripe 0");
    struct model m = model_new(p);
    assert_ok(zpool_sync(p, &e) == 0);
    off_t at = find_page(0, 42, m.generations[42]);
    assert_true(at > 0);
    spoil(0, at);
    p = again(p, &m);
    static char data[PAGE];
    assert_int_equal(run_io(m.v, ZPOOL_READ, 42 * PAGE, data, PAGE, false), EIO);
    assert_int_equal(run_io(m.v, ZPOOL_READ, 20 * PAGE, data, PAGE, false), 0);
    /* Part of the block cannot be written, since the rest of it is not known. */
    assert_int_equal(run_io(m.v, ZPOOL_WRITE, 42 * PAGE + 512, data, 512, false), EIO);
    assert_int_equal(run_io(m.v, ZPOOL_UNMAP, 42 * PAGE + 512, NULL, 512, false), EIO);
    assert_true(row_of(p, 0)->checksum_errors > 0);
    assert_int_equal(row_of(p, -1)->state, ZPOOL_ONLINE);
    assert_ok(zpool_scrub(p, true, &e) == 0);
    wait_for(scan_is_over(p));
    assert_true(status_of(p).scan.errors > 0);
    assert_true(status_of(p).errors > 0);
    uint64_t block = zpool_volume_block_size(m.v) / PAGE;
    model_write(&m, 42 / block * block, block);
    model_verify(&m);
    p = again(p, &m);
    model_verify(&m);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* Hits at random places: what is read is right or an error, and nothing ends the process. */
static void test_hits(void **state)
{
    (void)state;
    enum { ROUNDS = 4, HITS = 1000 };
    uint64_t x = 99;
    unsigned refused = 0, wrong = 0, unread = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make_disks();
        struct zpool *p = create("stripe 0");
        uint64_t guid = zpool_guid(p);
        struct model m = model_new(p);
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);
        int fd = open(disks[0], O_RDWR | O_CLOEXEC);
        for (int i = 0; i < HITS; i++) {
            char junk[512];
            x = x * 6364136223846793005ULL + 1442695040888963407ULL;
            memset(junk, (int)(x >> 56), sizeof(junk));
            off_t at = (off_t)((x >> 20) % (128 * MIB / 512)) * 512;
            assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
        }
        close(fd);
        p = import_without(guid, NULL);
        m.v = p ? zpool_volume_open(p, "vol", false, &e) : NULL;
        refused += m.v == NULL;
        for (uint64_t page = 0; m.v && page < m.pages; page++) {
            uint64_t words[PAGE / 8], generation;
            int error = run_io(m.v, ZPOOL_READ, page * PAGE, words, PAGE, false);
            unread += error == EIO;
            assert_true(error == 0 || error == EIO);
            if (!error)
                wrong += !read_page(words, page, &generation) || generation != m.generations[page];
            if (page % 64 == 0) {
                error = run_io(m.v, ZPOOL_WRITE, page * PAGE + 512, words, 512, false);
                assert_true(error == 0 || error == EIO);
            }
        }
        if (m.v)
            flush(m.v);
        model_done(&m);
        if (p)
            assert_ok(zpool_export(p, &e) == 0);
    }
    print_message("# %u of %d did not come, %u pages could not be read\n", refused, ROUNDS, unread);
    assert_int_equal(wrong, 0);
    assert_true(unread + refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_side),  cmocka_unit_test(test_sync_fails),
        cmocka_unit_test(test_suspended), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_no_copy),   cmocka_unit_test(test_hits),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}

/*
 * Commands that touch the medium.
 */
#include "base/file.h"
#include "lab.h"

static const struct scsi_unit_config thin = {.thin = true};

#define CHECKED 0x02
enum {
    LBA = 0x052100,
    FIELD = 0x052400,
    OPCODE = 0x052000,
    LENGTH = 0x051a00,
    LIST = 0x052600,
    MISCOMPARE = 0x0e1d00,
    PROTECTED = 0x072700,
};

static void fill(struct lab *l, uint64_t lba, uint64_t blocks, int byte)
{
    memset(l->store.bytes + lba * l->block, byte, blocks * l->block);
}

/* Whether the medium holds blocks of this byte. */
static bool holds(struct lab *l, uint64_t lba, uint64_t blocks, int byte)
{
    for (uint64_t i = lba * l->block; i < (lba + blocks) * l->block; i++) {
        if (l->store.bytes[i] != byte)
            return false;
    }
    return true;
}

/* ---- each form of a command at its edges: status or sense, on units of 512 and of 4096 ---- */

static void test_edges(void **state)
{
    (void)state;
    static const struct {
        const char *cdb;
        unsigned expect;
    } cases[] = {
        /* READ: first, last, one too many, none, far too many, protection */
        {"08 00 0000 01 00", 0},
        {"08 00 0fff 01 00", 0},
        {"08 00 0fff 02 00", LBA},
        {"08 00 0f00 00 00", 0}, /* 256 */
        {"08 00 0f01 00 00", LBA},
        {"28 00 00000000 00 0001 00", 0},
        {"28 00 00000fff 00 0001 00", 0},
        {"28 00 00000fff 00 0002 00", LBA},
        {"28 00 00001000 00 0000 00", 0},
        {"28 00 00001001 00 0000 00", LBA},
        {"28 00 ffffffff 00 0001 00", LBA},
        {"28 20 00000000 00 0001 00", FIELD},
        {"28 18 00000000 00 0001 00", 0}, /* DPO, FUA */
        {"a8 00 00000ffe 00000002 00 00", 0},
        {"a8 00 00000ffe 00000003 00 00", LBA},
        {"a8 00 00000000 ffffffff 00 00", LBA},
        {"a8 40 00000000 00000001 00 00", FIELD},
        {"88 00 0000000000000fff 00000001 00 00", 0},
        {"88 00 ffffffffffffffff 00000001 00 00", LBA},
        {"88 00 0000000000000001 ffffffff 00 00", LBA},
        {"88 00 7fffffffffffffff ffffffff 00 00", LBA},
        {"88 80 0000000000000000 00000001 00 00", FIELD},
        {"88 00 0000000000001000 00000000 00 00", 0},
        {"88 00 0000000000001001 00000000 00 00", LBA},
        /* WRITE */
        {"0a 00 0fff 01 00", 0},
        {"0a 00 0fff 02 00", LBA},
        {"2a 00 00000fff 00 0001 00", 0},
        {"2a 00 00000fff 00 0002 00", LBA},
        {"2a 08 00000000 00 0001 00", 0},
        {"2a 20 00000000 00 0001 00", FIELD},
        {"aa 00 00000fff 00000001 00 00", 0},
        {"aa 00 00000fff 00000002 00 00", LBA},
        {"8a 00 0000000000000fff 00000001 00 00", 0},
        {"8a 00 0000000000000fff 00000002 00 00", LBA},
        /* WRITE AND VERIFY */
        {"2e 00 00000fff 00 0001 00", 0},
        {"2e 02 00000fff 00 0001 00", 0},
        {"2e 04 00000000 00 0001 00", FIELD}, /* BYTCHK 10b */
        {"2e 00 00000fff 00 0002 00", LBA},
        {"ae 02 00000ff0 00000010 00 00", 0},
        {"8e 02 0000000000000ff0 00000010 00 00", 0},
        {"8e 00 0000000000000ff0 00000011 00 00", LBA},
        /* VERIFY */
        {"2f 00 00000000 00 1000 00", 0}, /* the whole unit: nothing is transferred */
        {"2f 00 00000000 00 1001 00", LBA},
        {"2f 04 00000000 00 0001 00", FIELD},
        {"af 00 00000fff 00000002 00 00", LBA},
        {"8f 00 0000000000000000 00001000 00 00", 0},
        {"8f 20 0000000000000000 00000001 00 00", FIELD},
        /* PRE-FETCH, SYNCHRONIZE CACHE */
        {"34 00 00000000 00 0001 00", 0},
        {"34 02 00000fff 00 0002 00", LBA},
        {"90 00 0000000000000000 00000000 00 00", 0},
        {"90 00 0000000000001001 00000000 00 00", LBA},
        {"35 00 00000000 00 0000 00", 0},
        {"35 06 00000fff 00 0001 00", 0},
        {"35 00 00000fff 00 0002 00", LBA},
        {"91 00 0000000000000000 00000000 00 00", 0},
        {"91 00 0000000000001000 00000001 00 00", LBA},
        /* ORWRITE */
        {"8b 00 0000000000000fff 00000001 00 00", 0},
        {"8b 00 0000000000000fff 00000002 00 00", LBA},
        {"8b 20 0000000000000000 00000001 00 00", FIELD},
        {"8b 00 0000000000000000 00000000 00 00", 0},
        /* nothing of the kind */
        {"7f 00 00 00 00 00 00 00", OPCODE},
        {"ff", OPCODE},
        {"9e 11 0000000000000000 00000020 00 00", FIELD},   /* no such service action */
        {"9c 00 0000000000000000 0000 0001 00 00", OPCODE}, /* no atomic store */
    };
    for (uint32_t block = 512; block <= 4096; block *= 8) {
        struct lab l;
        lab_start(&l, (struct scsi_unit_config){.thin = true, .block_size = block});
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            unsigned got = lab(&l, l.a, cases[i].cdb, LAB_DATA);
            if (got != cases[i].expect)
                fail_msg("%s: %06x, not %06x, with blocks of %u", cases[i].cdb, got,
                         cases[i].expect, block);
        }
        lab_end(&l);
    }
}

static void test_read_and_write(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task k;
    lab_start(&l, thin);
    for (int i = 0; i < 16 * 512; i++)
        l.data[i] = (uint8_t)(i * 7);
    assert_int_equal(lab(&l, l.a, "2a 00 00000010 00 0010 00", 16 * 512), 0);
    assert_memory_equal(l.store.bytes + 0x10 * 512, l.data, 16 * 512);
    lab_in(&l, l.b, "88 00 0000000000000010 00000010 00 00", 16 * 512);
    assert_memory_equal(l.store.bytes + 0x10 * 512, l.data, 16 * 512);

    /* Less came than was to be written: whole blocks of it are. */
    memset(l.data, 0xaa, 1024);
    assert_int_equal(lab(&l, l.a, "2a 00 00000100 00 0002 00", 700), 0);
    assert_true(holds(&l, 0x100, 1, 0xaa) && holds(&l, 0x101, 1, 0));
    assert_int_equal(lab(&l, l.a, "2a 00 00000200 00 0002 00", 100), 0);
    assert_true(holds(&l, 0x200, 2, 0));

    /* There is less room than is to be read. */
    memset(&k, 0, sizeof(k));
    lab_cdb(&k.task, "28 00 00000100 00 0002 00");
    k.task.nexus = l.a;
    assert_true(scsi_task_begin(&k.task));
    memset(l.data, 0, 1024);
    k.in[0] = (struct iovec){l.data, 700};
    k.task.in = k.in;
    k.task.ins = 1;
    k.task.in_room = 700;
    k.task.done = lab_done;
    scsi_task_run(&k.task);
    assert_int_equal(k.done, 1);
    assert_int_equal(k.task.in_length, 700);
    assert_int_equal(l.data[511], 0xaa);
    assert_int_equal(l.data[512], 0);
    lab_end(&l);
}

static void test_durability(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    lab(&l, l.a, "2a 00 00000000 00 0001 00", 512);
    assert_int_equal(l.store.fuas, 0);
    lab(&l, l.a, "2a 08 00000000 00 0001 00", 512);
    assert_int_equal(l.store.fuas, 1);
    /* The cache is turned off: every write is durable when it is done. */
    memcpy(l.data, "\0\0\0\0\x08\x12\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    assert_int_equal(lab(&l, l.a, "15 10 0000 18 00", 24), 0);
    lab(&l, l.a, "2a 00 00000000 00 0001 00", 512);
    lab(&l, l.a, "0a 00 0000 01 00", 512);
    assert_int_equal(l.store.fuas, 3);
    lab_end(&l);
}

static void test_errors_of_the_store(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *cdb;
        unsigned expect;
    } cases[] = {
        {EIO, "28 00 00000007 00 0001 00", 0x031100},
        {EIO, "2a 00 00000007 00 0001 00", 0x030c00},
        {EIO, "35 00 00000000 00 0000 00", 0x030c00},
        {ENOSPC, "2a 00 00000007 00 0001 00", 0x072707},
        {EROFS, "2a 00 00000007 00 0001 00", 0x072700},
        {ETIMEDOUT, "28 00 00000007 00 0001 00", 0x040800},
        {EIO, "89 00 0000000000000007 000000 01 00 00", 0x031100},
        {EIO, "2f 02 00000007 00 0001 00", 0x031100},
        {EIO, "41 00 00000007 00 0001 00", 0x030c00},
        {EIO, "8b 00 0000000000000007 00000001 00 00", 0x031100},
    };
    struct lab l;
    lab_start(&l, thin);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        memset(l.data, 1, 1024);
        l.store.error = cases[i].error;
        bool same = strncmp(cases[i].cdb, "41", 2) == 0;
        assert_int_equal(lab(&l, l.a, cases[i].cdb, same ? 512 : 1024), cases[i].expect);
    }
    lab_end(&l);
}

static void test_verify(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task k;
    lab_start(&l, thin);
    fill(&l, 0, 2048, 0x5a);
    memset(l.data, 0x5a, 2048 * 512);
    assert_int_equal(lab(&l, l.a, "8f 02 0000000000000000 00000800 00 00", 2048 * 512), 0);
    assert_int_equal(lab(&l, l.a, "8f 06 0000000000000000 00000800 00 00", 512), 0); /* 11b */
    l.store.bytes[1000 * 512 + 77] = 0;
    lab_run(&l, &k, l.a, "8f 02 0000000000000000 00000800 00 00", 2048 * 512);
    assert_int_equal(lab_sense(&k.task), MISCOMPARE);
    assert_int_equal(lab_get(k.task.sense + 3, 4), 1000 * 512 + 77);
    assert_int_equal(lab(&l, l.a, "8f 06 0000000000000000 00000800 00 00", 512), MISCOMPARE);
    assert_int_equal(lab(&l, l.a, "8f 00 0000000000000000 00000800 00 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "8f 02 0000000000000000 00000800 00 00", 512), FIELD);
    lab_end(&l);
}

static void test_compare_and_write(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    fill(&l, 5, 4, 'x');
    memset(l.data, 'x', 4 * 512);
    memset(l.data + 4 * 512, 'y', 4 * 512);
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000005 000000 04 00 00", 8 * 512), 0);
    assert_true(holds(&l, 5, 4, 'y') && holds(&l, 4, 1, 0) && holds(&l, 9, 1, 0));
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000005 000000 04 00 00", 8 * 512), MISCOMPARE);
    /* Another amount of data than the CDB says. */
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000005 000000 04 00 00", 6 * 512), FIELD);
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000005 000000 04 00 00", 16 * 512), FIELD);
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000ffd 000000 04 00 00", 8 * 512), LBA);
    assert_int_equal(lab(&l, l.a, "89 00 0000000000000005 000000 00 00 00", 0), 0);
    assert_true(holds(&l, 5, 4, 'y'));
    lab_end(&l);
}

static void test_or_write(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    fill(&l, 8, 2, 0x0f);
    memset(l.data, 0xa0, 2 * 512);
    assert_int_equal(lab(&l, l.a, "8b 00 0000000000000008 00000002 00 00", 2 * 512), 0);
    assert_true(holds(&l, 8, 2, 0xaf) && holds(&l, 10, 1, 0));
    lab_end(&l);
}

static void test_write_same(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    memset(l.data, 7, 512);
    assert_int_equal(lab(&l, l.a, "41 00 00000001 00 0800 00", 512), 0);
    assert_true(holds(&l, 1, 0x800, 7) && holds(&l, 0, 1, 0) && holds(&l, 0x801, 1, 0));
    assert_int_equal(lab(&l, l.a, "93 00 0000000000000f00 00000000 00 00", 512),
                     0); /* to the end */
    assert_true(holds(&l, 0xf00, 0x100, 7));
    /* Zeroes, and unmapping. */
    assert_int_equal(lab(&l, l.a, "93 09 0000000000000010 00000010 00 00", 0), 0); /* NDOB, UNMAP */
    assert_true(holds(&l, 0x10, 0x10, 0) && l.store.unmapped[0x10] && !l.store.unmapped[0x20]);
    assert_int_equal(lab(&l, l.a, "93 19 0000000000000020 00000010 00 00", 0), 0); /* ANCHOR */
    assert_true(holds(&l, 0x20, 0x10, 0) && !l.store.unmapped[0x20]);
    assert_int_equal(lab(&l, l.a, "93 01 0000000000000030 00000010 00 00", 0), 0);
    assert_true(holds(&l, 0x30, 0x10, 0) && !l.store.unmapped[0x30]);
    memset(l.data, 0, 512);
    assert_int_equal(lab(&l, l.a, "41 08 00000040 00 0010 00", 512), 0);
    assert_true(holds(&l, 0x40, 0x10, 0) && l.store.unmapped[0x40]);
    memset(l.data, 9, 512); /* UNMAP wins over the data */
    assert_int_equal(lab(&l, l.a, "41 08 00000050 00 0010 00", 512), 0);
    assert_true(holds(&l, 0x50, 0x10, 0) && l.store.unmapped[0x50]);
    /* Refused. */
    assert_int_equal(lab(&l, l.a, "41 00 00000001 00 0001 00", 256), FIELD);
    assert_int_equal(lab(&l, l.a, "41 00 00000001 00 0001 00", 1024), FIELD);
    assert_int_equal(lab(&l, l.a, "93 10 0000000000000000 00000001 00 00", 512), FIELD);
    assert_int_equal(lab(&l, l.a, "93 20 0000000000000000 00000001 00 00", 512), FIELD);
    assert_int_equal(lab(&l, l.a, "93 00 0000000000000fff 00000002 00 00", 512), LBA);
    lab_end(&l);
    lab_start(&l, (struct scsi_unit_config){0});
    assert_int_equal(lab(&l, l.a, "41 08 00000040 00 0010 00", 512), FIELD); /* not thin */
    lab_end(&l);
}

/* An UNMAP parameter list of ranges {lba, blocks}; returns its length. */
static uint32_t unmap_list(uint8_t *p, const uint64_t (*ranges)[2], unsigned n)
{
    lab_put(p, 2, 6 + 16 * n);
    lab_put(p + 2, 2, 16 * n);
    for (unsigned i = 0; i < n; i++) {
        memset(p + 8 + 16 * i, 0, 16);
        lab_put(p + 8 + 16 * i, 8, ranges[i][0]);
        lab_put(p + 16 + 16 * i, 4, ranges[i][1]);
    }
    return 8 + 16 * n;
}

static void test_unmap(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    fill(&l, 0, LAB_BLOCKS, 1);
    uint32_t n = unmap_list(l.data, (const uint64_t[][2]){{0, 8}, {100, 0}, {200, 1}}, 3);
    assert_int_equal(n, 0x38);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0038 00", n), 0);
    assert_true(holds(&l, 0, 8, 0) && holds(&l, 8, 192, 1) && holds(&l, 200, 1, 0) &&
                holds(&l, 201, 1, 1));
    /* One range that is wrong, and nothing happens. */
    unmap_list(l.data, (const uint64_t[][2]){{300, 8}, {4096, 1}}, 2);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0028 00", 0x28), LBA);
    assert_true(holds(&l, 300, 8, 1));
    /* Lengths that contradict each other; lists that are cut. */
    unmap_list(l.data, (const uint64_t[][2]){{300, 8}}, 1);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0017 00", 0x17), LENGTH);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0007 00", 7), LENGTH);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0000 00", 0), 0);
    l.data[1] = 1;
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0018 00", 0x18), LENGTH);
    unmap_list(l.data, (const uint64_t[][2]){{0, 0}}, 1);
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0018 00", 0x18), 0);
    lab_end(&l);
    lab_start(&l, (struct scsi_unit_config){0});
    assert_int_equal(lab(&l, l.a, "42 00 00000000 00 0018 00", 0x18), OPCODE);
    lab_end(&l);
}

static void test_lba_status(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, thin);
    memset(l.store.unmapped + 8, 1, 8);
    const uint8_t *p = lab_in(&l, l.a, "9e 12 0000000000000000 00000100 00 00", 8 + 3 * 16);
    assert_int_equal(lab_get(p, 4), 4 + 3 * 16);
    assert_int_equal(lab_get(p + 8, 8), 0);
    assert_int_equal(lab_get(p + 16, 4), 8);
    assert_int_equal(p[20], 0);
    assert_int_equal(lab_get(p + 24, 8), 8);
    assert_int_equal(p[36], 1);
    assert_int_equal(lab_get(p + 40, 8), 16);
    assert_int_equal(lab_get(p + 48, 4), LAB_BLOCKS - 16);
    lab_in(&l, l.a, "9e 12 0000000000000009 00000018 00 00", 24);
    assert_int_equal(lab_get(l.data + 16, 4), 7);
    lab_in(&l, l.a, "9e 12 0000000000000009 00000004 00 00", 4);
    assert_int_equal(lab(&l, l.a, "9e 12 0000000000001000 00000018 00 00", 0), LBA);
    lab_end(&l);
}

static void test_write_atomic(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){.removable = true}); /* the lab's can do both */
    memset(l.data, 3, 8 * 512);
    assert_int_equal(lab(&l, l.a, "9c 00 0000000000000010 0000 0008 00 00", 8 * 512), 0);
    assert_true(holds(&l, 0x10, 8, 3));
    assert_int_equal(lab(&l, l.a, "9c 00 0000000000000010 0000 0009 00 00", 9 * 512), FIELD);
    assert_int_equal(lab(&l, l.a, "9c 00 0000000000000010 0001 0008 00 00", 8 * 512), FIELD);
    /* All or nothing: what did not arrive is not written in part. */
    memset(l.data, 4, 8 * 512);
    assert_int_equal(lab(&l, l.a, "9c 00 0000000000000010 0000 0008 00 00", 4 * 512), FIELD);
    assert_true(holds(&l, 0x10, 8, 3));
    lab_end(&l);
}

/* ---- what is exclusive ---- */

static void test_exclusive(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task write, compare, after, apart, reading;
    lab_start(&l, thin);
    l.store.held = true;
    memset(l.data, 0, 1024);
    lab_run(&l, &write, l.a, "2a 00 00000010 00 0001 00", 512);
    lab_run(&l, &compare, l.a, "89 00 0000000000000010 000000 01 00 00", 1024); /* waits for it */
    lab_run(&l, &after, l.b, "2a 00 00000010 00 0001 00", 512);                 /* waits for that */
    lab_run(&l, &reading, l.b, "28 00 00000010 00 0001 00", 0);
    assert_int_equal(l.store.ios, 1);
    lab_run(&l, &apart, l.b, "2a 00 00000020 00 0001 00", 512); /* in nobody's way */
    assert_int_equal(l.store.ios, 2);
    assert_true(lab_let_go(&l.store) && write.done && !compare.done);
    assert_int_equal(l.store.ios, 3); /* COMPARE AND WRITE reads */
    assert_true(lab_let_go(&l.store) && apart.done);
    assert_true(lab_let_go(&l.store) && !compare.done); /* and writes */
    assert_int_equal(l.store.ios, 4);
    assert_true(lab_let_go(&l.store) && compare.done && !after.done);
    assert_int_equal(compare.task.status, SCSI_GOOD);
    assert_int_equal(l.store.ios, 6); /* both that waited, now */
    assert_true(lab_let_go(&l.store) && lab_let_go(&l.store));
    assert_true(after.done && reading.done && !lab_let_go(&l.store));
    lab_end(&l);
}

static void test_abort(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task write, compare, reading;
    lab_start(&l, thin);
    l.store.held = true;
    lab_run(&l, &write, l.a, "2a 00 00000010 00 0001 00", 512);
    lab_run(&l, &compare, l.a, "89 00 0000000000000010 000000 01 00 00", 1024);
    lab_run(&l, &reading, l.b, "28 00 00000010 00 0001 00", 0);
    scsi_task_abort(&compare.task); /* it waits: at once */
    assert_int_equal(compare.done, 1);
    assert_int_equal(compare.task.status, SCSI_TASK_ABORTED);
    scsi_task_abort(&write.task); /* the store has it: in its time */
    assert_int_equal(write.done, 0);
    assert_true(lab_let_go(&l.store));
    assert_int_equal(write.task.status, SCSI_TASK_ABORTED);
    lab_run(&l, &write, l.a, "2a 00 00000010 00 0001 00", 512);
    scsi_unit_reset(l.unit, l.a);
    while (lab_let_go(&l.store))
        ;
    assert_int_equal(write.task.status, SCSI_TASK_ABORTED);
    assert_int_equal(reading.task.status, SCSI_TASK_ABORTED);
    l.store.held = false;
    assert_int_equal(lab(&l, l.a, "00", 0), 0x062903);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062903);
    assert_int_equal(lab(&l, l.b, "00", 0), 0);
    lab_end(&l);
}

/* ---- EXTENDED COPY ---- */

static uint32_t copy_list(struct lab *l, uint64_t from, uint64_t to, uint64_t blocks)
{
    uint8_t naa[8], *p = l->data;
    assert_int_equal(lab(l, l->a, "12 01 83 0400 00", 0), 0);
    memcpy(naa, l->data + 8, 8);
    memset(p, 0, 256);
    p[0] = 9;              /* list */
    lab_put(p + 2, 2, 32); /* targets */
    lab_put(p + 8, 4, 28); /* segments */
    p[16] = 0xe4;
    p[20] = 1;
    p[21] = 3;
    p[23] = 8;
    memcpy(p + 24, naa, 8);
    p[48] = 2;
    lab_put(p + 50, 2, 24);
    lab_put(p + 58, 2, blocks);
    lab_put(p + 60, 8, from);
    lab_put(p + 68, 8, to);
    return 16 + 32 + 28;
}

static void test_copy(void **state)
{
    (void)state;
    struct lab l;
    const char *copy = "83 00 0000000000000000 0000004c 00 00";
    lab_start(&l, thin);
    fill(&l, 0, 2000, 6);
    uint32_t n = copy_list(&l, 0, 2048, 1500);
    assert_int_equal(lab(&l, l.a, copy, n), 0);
    assert_true(holds(&l, 2048, 1500, 6) && holds(&l, 3548, 1, 0));
    const uint8_t *p = lab_in(&l, l.a, "84 00 09 00000000000000 00000040 00 00", 12);
    assert_int_equal(p[4], 1);
    assert_int_equal(lab_get(p + 5, 2), 1);
    assert_int_equal(lab_get(p + 8, 4), 750);
    assert_int_equal(lab(&l, l.a, "84 00 08 00000000000000 00000040 00 00", 0), FIELD);
    lab_in(&l, l.a, "84 03 00 00000000000000 00000040 00 00", 46);

    static const struct {
        unsigned byte, value, expect;
    } wrong[] = {
        {16, 0xe0, 0x052607}, /* a target of another kind */
        {48, 0x03, 0x052609}, /* a segment of another kind */
        {25, 0xff, 0x0a0d02}, /* a unit that is not this one */
        {53, 1, 0x0a0d02},    /* of a target that is not in the list */
        {67, 0xff, 0},        /* the source goes on later: still in range */
        {74, 0x20, 0x0a0000}, /* past the end */
        {3, 31, LENGTH},      /* lists that contradict their lengths */
        {11, 29, LENGTH},     {15, 1, LENGTH}, {51, 23, LENGTH},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        n = copy_list(&l, 0, 2048, 16);
        l.data[wrong[i].byte] = (uint8_t)wrong[i].value;
        assert_int_equal(lab(&l, l.a, copy, n), wrong[i].expect);
    }
    assert_int_equal(lab(&l, l.a, copy, 20), LENGTH);
    assert_int_equal(lab(&l, l.a, "83 00 0000000000000000 00000000 00 00", 0), 0);
    lab_end(&l);
}

/* ---- SANITIZE ---- */

static void test_sanitize(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task k;
    lab_start(&l, thin);
    fill(&l, 0, LAB_BLOCKS, 1);
    lab_put(l.data, 4, 0x01000004); /* once, a pattern of four bytes */
    memcpy(l.data + 4, "abcd", 4);
    assert_int_equal(lab(&l, l.a, "48 01 0000000000 0008 00", 8), 0);
    assert_memory_equal(l.store.bytes + 4095 * 512, "abcdabcd", 8);
    assert_int_equal(lab(&l, l.a, "48 02 0000000000 0000 00", 0), 0);
    assert_true(holds(&l, 0, LAB_BLOCKS, 0));
    static const struct {
        const char *cdb, *list;
        unsigned expect;
    } wrong[] = {
        {"48 01 0000000000 0004 00", "\x01\0\0\x04", FIELD},
        {"48 01 0000000000 0205 00", "\x01\0\x02\x01", FIELD},
        {"48 01 0000000000 0008 00", "\0\0\0\x04", LIST},
        {"48 01 0000000000 0008 00", "\x01\0\0\0", LIST},
        {"48 01 0000000000 0008 00", "\x01\0\x02\x04", LIST},
        {"48 02 0000000000 0008 00", "\x01\0\0\x04", FIELD},
        {"48 1f 0000000000 0008 00", "\x01\0\0\x04", FIELD},
        {"48 03 0000000000 0000 00", "\x01\0\0\x04", FIELD},
        {"48 00 0000000000 0000 00", "\x01\0\0\x04", FIELD},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        memcpy(l.data, wrong[i].list, 4);
        assert_int_equal(lab(&l, l.a, wrong[i].cdb, LAB_DATA), wrong[i].expect);
    }
    /* While it goes on hardly anything else is possible, and nothing stops it. */
    fill(&l, 0, LAB_BLOCKS, 1);
    l.store.held = true;
    lab_run(&l, &k, l.a, "48 02 0000000000 0000 00", 0);
    assert_int_equal(k.done, 0);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x02041b);
    assert_int_equal(lab(&l, l.b, "28 00 00000000 00 0001 00", 0), 0x02041b);
    assert_int_equal(lab(&l, l.b, "12 00 00 0060 00", 0), 0);
    scsi_task_abort(&k.task);
    assert_int_equal(k.done, 1);
    assert_int_equal(k.task.status, SCSI_TASK_ABORTED);
    scsi_unit_reset(l.unit, l.a);
    while (lab_let_go(&l.store))
        ;
    l.store.held = false;
    assert_true(holds(&l, 0, LAB_BLOCKS, 0));
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062903);
    assert_int_equal(lab(&l, l.b, "00", 0), 0);
    /* One that failed is known until the next, or until it is told to be forgotten. */
    lab(&l, l.a, "00", 0);
    l.store.error = EIO;
    assert_int_equal(lab(&l, l.a, "48 02 0000000000 0000 00", 0), 0x033103);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0x033103);
    assert_int_equal(lab(&l, l.a, "48 1f 0000000000 0000 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0);
    lab_end(&l);
}

/* What the end of the program cuts short is not forgotten. */
static void test_sanitize_interrupted(void **state)
{
    (void)state;
    char dir[] = "/tmp/orlop-sanitize-XXXXXX";
    struct err e;
    struct lab l;
    struct lab_task k;
    assert_non_null(mkdtemp(dir));
    const struct scsi_unit_config config = {.state_dir = dir};
    lab_start(&l, config);
    assert_true(scsi_unit_stop(l.unit));
    lab_end(&l);
    lab_start(&l, config);
    l.store.held = true;
    lab_run(&l, &k, l.a, "48 82 0000000000 0000 00", 0); /* IMMED */
    assert_int_equal(k.task.status, SCSI_GOOD);
    assert_false(scsi_unit_stop(l.unit));
    assert_true(lab_let_go(&l.store) && scsi_unit_stop(l.unit) && !lab_let_go(&l.store));
    lab_end(&l);
    lab_start(&l, config);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0x033103);
    assert_int_equal(lab(&l, l.a, "48 02 0000000000 0000 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0);
    lab_end(&l);
    lab_start(&l, config);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0);
    lab_end(&l);
    assert_int_equal(file_remove_tree(dir, &e), 0);
}

static void test_read_only(void **state)
{
    (void)state;
    static const char *const writes[] = {
        "0a 00 0000 01 00",
        "2a 00 00000000 00 0001 00",
        "aa 00 00000000 00000001 00 00",
        "8a 00 0000000000000000 00000001 00 00",
        "2e 00 00000000 00 0001 00",
        "41 00 00000000 00 0001 00",
        "42 00 00000000 00 0000 00",
        "8b 00 0000000000000000 00000001 00 00",
        "48 02 0000000000 0000 00",
        "83 00 0000000000000000 00000000 00 00",
    };
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){.read_only = true, .thin = true});
    for (size_t i = 0; i < ARRAY_SIZE(writes); i++)
        assert_int_equal(lab(&l, l.a, writes[i], 512), PROTECTED);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0);
    assert_int_equal(lab_in(&l, l.a, "1a 08 0a 00 ff 00", 16)[2], 0x90);
    lab_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),        cmocka_unit_test(test_read_and_write),
        cmocka_unit_test(test_durability),   cmocka_unit_test(test_errors_of_the_store),
        cmocka_unit_test(test_verify),       cmocka_unit_test(test_compare_and_write),
        cmocka_unit_test(test_or_write),     cmocka_unit_test(test_write_same),
        cmocka_unit_test(test_unmap),        cmocka_unit_test(test_lba_status),
        cmocka_unit_test(test_write_atomic), cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_abort),        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_sanitize),     cmocka_unit_test(test_sanitize_interrupted),
        cmocka_unit_test(test_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

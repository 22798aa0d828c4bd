/*
 * What a unit says of itself: INQUIRY, mode pages, capacity, reports, attentions, media.
 */
#include "lab.h"

enum { FIELD = 0x052400, LIST = 0x052600, LENGTH = 0x051a00, NO_MEDIUM = 0x023a00 };

static void test_inquiry(void **state)
{
    (void)state;
    struct lab l;
    lab_start_with(&l, (struct scsi_unit_config){.thin = true}); /* attentions do not hold it up */
    const uint8_t *p = lab_in(&l, l.a, "12 00 00 00ff 00", 96);
    assert_int_equal(p[0], 0);
    assert_int_equal(p[4], 91);
    assert_memory_equal(p + 8, "ORLOP   VOLUME          0001", 28);
    lab_in(&l, l.a, "12 00 00 0005 00", 5);
    lab_in(&l, l.a, "12 00 00 0000 00", 0);
    static const uint8_t pages[] = {0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2};
    p = lab_in(&l, l.a, "12 01 00 00ff 00", 4 + sizeof(pages));
    assert_memory_equal(p + 4, pages, sizeof(pages));
    p = lab_in(&l, l.a, "12 01 80 00ff 00", 4 + 5);
    assert_memory_equal(p, "\0\x80\0\x05lab-1", 9);
    p = lab_in(&l, l.a, "12 01 b0 00ff 00", 64);
    assert_int_equal(p[5], 255);
    assert_int_equal(lab_get(p + 8, 4), SCSI_TRANSFER_MAX / 512);
    assert_int_equal(lab_get(p + 20, 4), 1 << 20);
    assert_int_equal(lab_get(lab_in(&l, l.a, "12 01 b1 00ff 00", 64) + 4, 2), 1);
    assert_int_equal(lab_in(&l, l.a, "12 01 b2 00ff 00", 8)[5], 0xe6);
    assert_int_equal(lab(&l, l.a, "12 01 b9 00ff 00", 0), FIELD);
    assert_int_equal(lab(&l, l.a, "12 00 80 00ff 00", 0), FIELD);
    lab_end(&l);
    lab_start_with(&l, (struct scsi_unit_config){.removable = true});
    assert_int_equal(lab_in(&l, l.a, "12 00 00 00ff 00", 96)[1], 0x80);
    assert_int_equal(lab(&l, l.a, "12 01 b2 00ff 00", 0), FIELD);
    assert_int_equal(lab_get(lab_in(&l, l.a, "12 01 b0 00ff 00", 64) + 20, 4), 0);
    lab_end(&l);
}

static void test_other_units(void **state)
{
    (void)state;
    static const struct {
        const char *cdb;
        unsigned expect; /* sense; 0: answered */
    } cases[] = {
        {"12 00 00 0024 00", 0},
        {"a0 00 00 000000 00000010 00 00", 0},
        {"03 00 0000 12 00", 0},
        {"00", 0x052500},
        {"28 00 00000000 00 0001 00", 0x052500},
        {"12 01 00 0024 00", 0x052500},
    };
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct lab_task k = {.task = {.nexus = l.a, .lun = (uint64_t)1 << 48}};
        lab_cdb(&k.task, cases[i].cdb);
        if (scsi_task_begin(&k.task)) {
            k.in[0] = (struct iovec){l.data, k.task.in_wanted};
            k.task.in = k.in;
            k.task.ins = 1;
            k.task.in_room = k.task.in_wanted;
            k.task.done = lab_done;
            scsi_task_run(&k.task);
            assert_int_equal(k.done, 1);
        }
        assert_int_equal(lab_sense(&k.task), cases[i].expect);
        if (i == 0)
            assert_int_equal(l.data[0], 0x7f);
    }
    lab_end(&l);
}

static void test_capacity(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){.thin = true, .block_size = 4096});
    const uint8_t *p = lab_in(&l, l.a, "25 00 00000000 0000 00 00", 8);
    assert_int_equal(lab_get(p, 4), LAB_BLOCKS - 1);
    assert_int_equal(lab_get(p + 4, 4), 4096);
    p = lab_in(&l, l.a, "9e 10 0000000000000000 00000020 00 00", 32);
    assert_int_equal(lab_get(p, 8), LAB_BLOCKS - 1);
    assert_int_equal(lab_get(p + 8, 4), 4096);
    assert_int_equal(p[13], 0);
    assert_int_equal(p[14], 0xc0);
    lab_in(&l, l.a, "9e 10 0000000000000000 0000000c 00 00", 12);
    assert_int_equal(lab(&l, l.a, "25 00 00000001 0000 00 00", 0), FIELD);
    /* It grows: both are told, once. */
    l.store.store.size *= 2;
    scsi_unit_resized(l.unit);
    assert_int_equal(lab(&l, l.a, "00", 0), 0x062a09);
    assert_int_equal(lab(&l, l.a, "00", 0), 0);
    assert_int_equal(lab(&l, l.b, "28 00 00001fff 00 0001 00", 0), 0x062a09);
    assert_int_equal(lab(&l, l.b, "28 00 00001fff 00 0001 00", 0), 0);
    lab_end(&l);
}

static void test_attentions(void **state)
{
    (void)state;
    struct lab l;
    lab_start_with(&l, (struct scsi_unit_config){0});
    assert_int_equal(lab(&l, l.a, "12 00 00 0024 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "a0 00 00 000000 00000010 00 00", 0), 0);
    /* REQUEST SENSE takes it, as data. */
    const uint8_t *p = lab_in(&l, l.a, "03 00 0000 12 00", 18);
    assert_int_equal(p[2], 6);
    assert_int_equal(p[12], 0x29);
    p = lab_in(&l, l.a, "03 01 0000 12 00", 8); /* as descriptors: nothing more */
    assert_int_equal(p[0], 0x72);
    assert_int_equal(p[1], 0);
    assert_int_equal(lab(&l, l.a, "00", 0), 0);
    /* Several are told one after another, the heaviest first. */
    scsi_unit_reset(l.unit, l.a);
    scsi_unit_resized(l.unit);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062900);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062903);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062a09);
    assert_int_equal(lab(&l, l.b, "00", 0), 0);
    lab_end(&l);
}

static void test_mode_sense(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    const uint8_t *p = lab_in(&l, l.a, "1a 00 3f 00 ff 00", 4 + 8 + 12 + 20 + 12 + 12);
    assert_int_equal(p[0], 67);
    assert_int_equal(p[3], 8);
    assert_int_equal(lab_get(p + 4, 4), LAB_BLOCKS);
    assert_int_equal(lab_get(p + 9, 3), 512);
    p = lab_in(&l, l.a, "1a 08 08 00 ff 00", 4 + 20);
    assert_int_equal(p[4], 0x08);
    assert_int_equal(p[6], 0x04); /* WCE */
    p = lab_in(&l, l.a, "1a 08 48 00 ff 00", 4 + 20);
    assert_int_equal(p[6], 0x04); /* it can be changed */
    p = lab_in(&l, l.a, "5a 10 0a 00 000000 00ff 00", 8 + 16 + 12);
    assert_int_equal(lab_get(p, 2), 34);
    assert_int_equal(p[4], 1);
    assert_int_equal(lab_get(p + 8, 8), LAB_BLOCKS);
    lab_in(&l, l.a, "5a 08 3f ff 000000 00ff 00", 8 + 56);
    lab_in(&l, l.a, "1a 00 3f 00 03 00", 3);
    assert_int_equal(lab(&l, l.a, "1a 00 c8 00 ff 00", 0), 0x053900);
    assert_int_equal(lab(&l, l.a, "1a 00 02 00 ff 00", 0), FIELD);
    assert_int_equal(lab(&l, l.a, "1a 00 08 01 ff 00", 0), FIELD);
    lab_end(&l);
}

static void test_mode_select(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    /* Software write protection, by the page as it was read. */
    lab_in(&l, l.a, "1a 08 0a 00 ff 00", 16);
    l.data[0] = l.data[2] = 0;
    l.data[8] |= 0x08;
    assert_int_equal(lab(&l, l.a, "15 10 0000 10 00", 16), 0);
    assert_int_equal(lab(&l, l.b, "00", 0), 0x062a01);
    assert_int_equal(lab(&l, l.b, "2a 00 00000000 00 0001 00", 512), 0x072702);
    assert_int_equal(lab_in(&l, l.a, "1a 08 0a 00 ff 00", 16)[2], 0x90);
    /* Sense in descriptors from now on, by the longer form and with a block descriptor. */
    uint8_t list[8 + 8 + 12] = {
        [7] = 8, [14] = 2, [16] = 0x0a, [17] = 10, [18] = 4, [19] = 0x10, [24] = 0xff, [25] = 0xff};
    memcpy(l.data, list, sizeof(list));
    assert_int_equal(lab(&l, l.a, "55 10 0000000000 001c 00", sizeof(list)), 0);
    struct lab_task k;
    lab_run(&l, &k, l.a, "88 00 ffffffffffffffff 00000001 00 00", 0);
    assert_int_equal(k.task.sense[0], 0x72);
    assert_int_equal(lab_get(k.task.sense + 12, 8), UINT64_MAX);
    assert_int_equal(lab_sense(&k.task), 0x052100);

    static const struct {
        unsigned byte, value, expect;
    } wrong[] = {
        {16, 0x0b, LIST}, {17, 9, LIST}, {17, 11, LENGTH}, {19, 0x11, LIST}, {14, 4, LIST},
        {7, 200, LENGTH}, {7, 4, LIST},  {11, 7, LIST},    {18, 0x84, LIST},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        memcpy(l.data, list, sizeof(list));
        l.data[wrong[i].byte] = (uint8_t)wrong[i].value;
        assert_int_equal(lab(&l, l.a, "55 10 0000000000 001c 00", sizeof(list)), wrong[i].expect);
    }
    for (uint32_t n = 1; n < sizeof(list); n++) { /* cut anywhere */
        char cdb[40];
        snprintf(cdb, sizeof(cdb), "55 10 0000000000 %04x 00", n);
        memcpy(l.data, list, sizeof(list));
        assert_int_equal(lab(&l, l.a, cdb, n), n == 16 ? 0 : LENGTH);
    }
    assert_int_equal(lab(&l, l.a, "15 11 0000 10 00", 16), FIELD);
    assert_int_equal(lab(&l, l.a, "15 00 0000 10 00", 16), FIELD);
    assert_int_equal(lab(&l, l.a, "15 10 0000 00 00", 0), 0);
    /* A reset brings back what was. */
    scsi_unit_reset(l.unit, l.a);
    lab(&l, l.a, "00", 0);
    assert_int_equal(lab(&l, l.a, "2a 00 00000000 00 0001 00", 512), 0);
    lab_end(&l);
}

static void test_reports(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    const uint8_t *p = lab_in(&l, l.a, "a0 00 00 000000 00000040 00 00", 16);
    assert_int_equal(lab_get(p, 4), 8);
    assert_int_equal(lab_get(p + 8, 8), 0);
    lab_in(&l, l.a, "a0 00 01 000000 00000040 00 00", 8);
    assert_int_equal(lab(&l, l.a, "a0 00 00 000000 0000000f 00 00", 0), FIELD);
    assert_int_equal(lab(&l, l.a, "a0 00 07 000000 00000040 00 00", 0), FIELD);
    assert_int_equal(lab_in(&l, l.a, "a3 0d 00 000000 00000040 00 00", 4)[0], 0xda);

    /* One command: its usage. */
    p = lab_in(&l, l.a, "a3 0c 01 28 0000 00000040 00 00", 4 + 10);
    assert_int_equal(p[1], 3);
    assert_memory_equal(p + 4, "\x28\x18\xff\xff\xff\xff\x1f\xff\xff\x07", 10);
    p = lab_in(&l, l.a, "a3 0c 82 9e 0010 00000040 00 00", 4 + 16 + 12); /* and timeouts */
    assert_int_equal(p[1], 0x83);
    assert_int_equal(p[5], 0x10);
    assert_int_equal(lab_in(&l, l.a, "a3 0c 01 02 0000 00000040 00 00", 4)[1], 1);
    assert_int_equal(lab_in(&l, l.a, "a3 0c 01 42 0000 00000040 00 00", 4)[1], 1); /* not thin */
    assert_int_equal(lab_in(&l, l.a, "a3 0c 02 9e 0001 00000040 00 00", 4)[1], 1);
    assert_int_equal(lab(&l, l.a, "a3 0c 01 9e 0010 00000040 00 00", 0), FIELD);
    assert_int_equal(lab(&l, l.a, "a3 0c 02 28 0000 00000040 00 00", 0), FIELD);
    assert_int_equal(lab(&l, l.a, "a3 0c 04 28 0000 00000040 00 00", 0), FIELD);

    /* All: each of them is there when it is asked for alone. */
    struct lab_task k;
    lab_run(&l, &k, l.a, "a3 0c 00 00 0000 00010000 00 00", 0);
    uint32_t n = k.task.in_length;
    assert_int_equal(lab_get(l.data, 4), n - 4);
    uint8_t *all = mem_alloc(n);
    memcpy(all, l.data, n);
    unsigned count = 0;
    for (uint32_t at = 4; at < n; at += 8, count++) {
        char cdb[64];
        snprintf(cdb, sizeof(cdb), "a3 0c 03 %02x %04x 00000040 00 00", all[at],
                 (unsigned)lab_get(all + at + 2, 2));
        lab_run(&l, &k, l.a, cdb, 0);
        assert_int_equal(l.data[1], 3);
        assert_int_equal(lab_get(l.data + 2, 2), lab_get(all + at + 6, 2));
        assert_int_equal(l.data[4], all[at]);
    }
    assert_true(count > 50);
    free(all);
    lab_end(&l);
}

static void test_media(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){.removable = true});
    assert_int_equal(lab(&l, l.a, "1e 000000 01 00", 0), 0);          /* prevent */
    assert_int_equal(lab(&l, l.b, "1b 00 00 00 02 00", 0), 0x055302); /* eject */
    assert_int_equal(lab(&l, l.a, "1e 000000 00 00", 0), 0);
    assert_int_equal(lab(&l, l.b, "1b 00 00 00 02 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "00", 0), NO_MEDIUM);
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), NO_MEDIUM);
    assert_int_equal(lab(&l, l.a, "25 00 00000000 0000 00 00", 0), NO_MEDIUM);
    assert_int_equal(lab(&l, l.a, "12 00 00 0024 00", 0), 0);
    assert_int_equal(lab(&l, l.a, "1b 00 00 00 03 00", 0), 0); /* load */
    assert_int_equal(lab(&l, l.a, "28 00 00000000 00 0001 00", 0), 0);
    assert_int_equal(lab(&l, l.b, "28 00 00000000 00 0001 00", 0), 0x062800);
    assert_int_equal(lab(&l, l.a, "1b 00 00 00 00 00", 0), 0); /* stop: nothing stops */
    assert_int_equal(lab(&l, l.a, "1b 00 00 00 32 00", 0), 0); /* a power condition */
    assert_int_equal(lab(&l, l.a, "00", 0), 0);
    lab_end(&l);
    lab_start(&l, (struct scsi_unit_config){0});
    assert_int_equal(lab(&l, l.b, "1b 00 00 00 02 00", 0), FIELD);
    assert_int_equal(lab_in(&l, l.a, "37 00 1d 00000000 0040 00", 4)[1], 0x1d);
    assert_int_equal(lab_in(&l, l.a, "b7 0d 00000000 00000040 00 00", 8)[1], 0x0d);
    lab_end(&l);
}

static void test_config(void **state)
{
    (void)state;
    struct lab l;
    struct err e;
    lab_start(&l, (struct scsi_unit_config){0});
    struct store *s = &l.store.store;
    const struct scsi_unit_config wrong[] = {
        {.store = s, .block_size = 1024, .serial = "x"},
        {.store = s, .block_size = 0, .serial = "x"},
        {.store = s, .block_size = 512},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_null(scsi_unit_new(&wrong[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    lab_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inquiry),    cmocka_unit_test(test_other_units),
        cmocka_unit_test(test_capacity),   cmocka_unit_test(test_attentions),
        cmocka_unit_test(test_mode_sense), cmocka_unit_test(test_mode_select),
        cmocka_unit_test(test_reports),    cmocka_unit_test(test_media),
        cmocka_unit_test(test_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

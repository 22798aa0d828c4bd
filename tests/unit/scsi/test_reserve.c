/*
 * Reservations of both kinds, and what of them survives.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "lab.h"

enum { GOOD = 0, CONFLICT = 0x18, FIELD = 0x052400, LIST = 0x052600, LENGTH = 0x051a00 };
enum { REGISTER, RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT_ABORT, REGISTER_IGNORE, MOVE };
enum { WE = 1, EA = 3, WE_RO = 5, EA_RO = 6, WE_AR = 7, EA_AR = 8 };
enum { PREEMPTED = 0x062a03, RELEASED = 0x062a04, REGISTRATIONS = 0x062a05 };

#define READ_1  "28 00 00000000 00 0001 00"
#define WRITE_1 "2a 00 00000000 00 0001 00"

static unsigned pr_out(struct lab *l, struct scsi_nexus *n, unsigned action, unsigned type,
                       uint64_t key, uint64_t action_key, uint8_t flags)
{
    char cdb[48];
    snprintf(cdb, sizeof(cdb), "5f %02x %02x 0000 00000018 00", action, type);
    memset(l->data, 0, 24);
    lab_put(l->data, 8, key);
    lab_put(l->data + 8, 8, action_key);
    l->data[20] = flags;
    return lab(l, n, cdb, 24);
}

/* The type that is reserved, and the key of who holds it. */
static unsigned reserved(struct lab *l, uint64_t *ret_key)
{
    assert_int_equal(lab(l, l->a, "5e 01 0000000000 0100 00", 0), GOOD);
    if (lab_get(l->data + 4, 4) == 0)
        return 0;
    if (ret_key)
        *ret_key = lab_get(l->data + 8, 8);
    return l->data[21];
}

static unsigned keys(struct lab *l)
{
    assert_int_equal(lab(l, l->a, "5e 00 0000000000 0400 00", 0), GOOD);
    return (unsigned)lab_get(l->data + 4, 4) / 8;
}

static void register_both(struct lab *l)
{
    assert_int_equal(pr_out(l, l->a, REGISTER, 0, 0, 0xa, 0), GOOD);
    assert_int_equal(pr_out(l, l->b, REGISTER, 0, 0, 0xb, 0), GOOD);
}

static void test_register(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 5, 0xa, 0), CONFLICT); /* it has no key yet */
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0, 0), GOOD);
    assert_int_equal(keys(&l), 0);
    register_both(&l);
    assert_int_equal(keys(&l), 2);
    assert_int_equal(lab_get(l.data, 4), 3); /* generation: the one that did nothing counts too */
    assert_int_equal(lab_get(l.data + 8, 8), 0xa);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0xb, 0xc, 0), CONFLICT);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0xa, 0xc, 0), GOOD); /* another key */
    assert_int_equal(pr_out(&l, l.a, REGISTER_IGNORE, 0, 77, 0xd, 0), GOOD);
    assert_int_equal(keys(&l), 2);
    assert_int_equal(lab_get(l.data + 8, 8), 0xd);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0xd, 0, 0), GOOD);
    assert_int_equal(keys(&l), 1);
    /* What is not offered: other ports, all ports, state that survives. */
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 0x08), LIST);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 0x04), LIST);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 0x01), LIST);
    assert_int_equal(lab(&l, l.a, "5f 00 00 0000 00000017 00", 24), LENGTH);
    assert_int_equal(lab(&l, l.a, "5f 00 00 0000 00000019 00", 25), LENGTH);
    assert_int_equal(lab(&l, l.a, "5f 00 00 0000 00000018 00", 20), LENGTH);
    assert_int_equal(lab(&l, l.a, "5f 00 00 0000 ffffffff 00", 24), LENGTH);
    assert_int_equal(lab(&l, l.a, "5f 08 00 0000 00000018 00", 24), FIELD);
    assert_int_equal(lab(&l, l.a, "5e 04 0000000000 0400 00", 0), FIELD);
    assert_int_equal(keys(&l), 1);
    lab_end(&l);
}

/* Who may read and write: the holder, one who is registered, one who is not. */
static void test_access(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        bool registered_reads, registered_writes, other_reads;
    } cases[] = {
        {WE, true, false, true},    {EA, false, false, false}, {WE_RO, true, true, true},
        {EA_RO, true, true, false}, {WE_AR, true, true, true}, {EA_AR, true, true, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct lab l;
        lab_start(&l, (struct scsi_unit_config){0});
        register_both(&l);
        struct scsi_nexus *c = scsi_nexus_new(l.unit, "iqn.c,i,0x3", "iqn.t,t,0x0001", 1);
        assert_int_equal(lab(&l, c, "00", 0), 0x062900);
        assert_int_equal(pr_out(&l, l.a, RESERVE, cases[i].type, 0xa, 0, 0), GOOD);
        assert_int_equal(lab(&l, l.a, READ_1, 0), GOOD);
        assert_int_equal(lab(&l, l.a, WRITE_1, 512), GOOD);
        assert_int_equal(lab(&l, l.b, READ_1, 0), cases[i].registered_reads ? GOOD : CONFLICT);
        assert_int_equal(lab(&l, l.b, WRITE_1, 512), cases[i].registered_writes ? GOOD : CONFLICT);
        assert_int_equal(lab(&l, c, READ_1, 0), cases[i].other_reads ? GOOD : CONFLICT);
        assert_int_equal(lab(&l, c, WRITE_1, 512), CONFLICT);
        /* Always: */
        assert_int_equal(lab(&l, c, "12 00 00 0024 00", 0), GOOD);
        assert_int_equal(lab(&l, c, "00", 0), GOOD);
        assert_int_equal(lab(&l, c, "25 00 00000000 0000 00 00", 0), GOOD);
        assert_int_equal(lab(&l, c, "5e 00 0000000000 0400 00", 0), GOOD);
        /* Another type, another holder: */
        bool all = cases[i].type >= WE_AR;
        assert_int_equal(pr_out(&l, l.a, RESERVE, cases[i].type == WE ? EA : WE, 0xa, 0, 0),
                         CONFLICT);
        assert_int_equal(pr_out(&l, l.a, RESERVE, cases[i].type, 0xa, 0, 0), GOOD);
        assert_int_equal(pr_out(&l, l.b, RESERVE, cases[i].type, 0xb, 0, 0), all ? GOOD : CONFLICT);
        uint64_t key;
        assert_int_equal(reserved(&l, &key), cases[i].type);
        assert_int_equal(key, all ? 0 : 0xa);
        /* Released: those who are registered learn of it where they shared it. */
        assert_int_equal(pr_out(&l, l.a, RELEASE, cases[i].type == WE ? EA : WE, 0xa, 0, 0),
                         0x052604);
        assert_int_equal(pr_out(&l, l.a, RELEASE, cases[i].type, 0xa, 0, 0), GOOD);
        assert_int_equal(lab(&l, l.b, "00", 0), cases[i].type >= WE_RO ? RELEASED : GOOD);
        assert_int_equal(lab(&l, c, WRITE_1, 512), GOOD);
        scsi_nexus_free(c);
        lab_end(&l);
    }
}

static void test_reserve_rules(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    register_both(&l);
    assert_int_equal(pr_out(&l, l.a, RESERVE, WE, 0xb, 0, 0), CONFLICT); /* not its key */
    assert_int_equal(pr_out(&l, l.a, RESERVE, 2, 0xa, 0, 0), FIELD);     /* no such type */
    assert_int_equal(pr_out(&l, l.a, RESERVE, 9, 0xa, 0, 0), FIELD);
    assert_int_equal(pr_out(&l, l.a, RESERVE, 0x11, 0xa, 0, 0), FIELD); /* no such scope */
    assert_int_equal(pr_out(&l, l.a, RELEASE, WE, 0xa, 0, 0), GOOD);    /* of nothing */
    assert_int_equal(pr_out(&l, l.a, RESERVE, EA, 0xa, 0, 0), GOOD);
    assert_int_equal(pr_out(&l, l.b, RELEASE, EA, 0xb, 0, 0), GOOD); /* not the holder: nothing */
    assert_int_equal(reserved(&l, NULL), EA);
    /* The holder unregisters: the reservation goes; with all registrants it stays. */
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0xa, 0, 0), GOOD);
    assert_int_equal(reserved(&l, NULL), 0);
    assert_int_equal(lab(&l, l.b, "00", 0), GOOD);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 0), GOOD);
    assert_int_equal(pr_out(&l, l.a, RESERVE, EA_AR, 0xa, 0, 0), GOOD);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0xa, 0, 0), GOOD);
    assert_int_equal(reserved(&l, NULL), EA_AR);
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0xb, 0, 0), GOOD);
    assert_int_equal(reserved(&l, NULL), 0);
    /* It outlives the session of its holder, which finds it again. */
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 0), GOOD);
    assert_int_equal(pr_out(&l, l.a, RESERVE, EA, 0xa, 0, 0), GOOD);
    scsi_nexus_free(l.a);
    assert_int_equal(lab(&l, l.b, READ_1, 0), CONFLICT);
    l.a = scsi_nexus_new(l.unit, "iqn.a,i,0x00023d000001", "iqn.t,t,0x0001", 1);
    lab(&l, l.a, "00", 0);
    assert_int_equal(lab(&l, l.a, WRITE_1, 512), GOOD);
    scsi_unit_reset(l.unit, l.a); /* and a reset */
    lab(&l, l.b, "00", 0);
    assert_int_equal(lab(&l, l.b, READ_1, 0), CONFLICT);
    lab_end(&l);
}

static void test_clear_and_preempt(void **state)
{
    (void)state;
    struct lab l;
    struct lab_task k;
    lab_start(&l, (struct scsi_unit_config){0});
    register_both(&l);
    assert_int_equal(pr_out(&l, l.a, RESERVE, EA, 0xa, 0, 0), GOOD);
    assert_int_equal(pr_out(&l, l.b, CLEAR, 0, 0xb, 0, 0), GOOD);
    assert_int_equal(lab(&l, l.a, "00", 0), PREEMPTED);
    assert_int_equal(keys(&l) + reserved(&l, NULL), 0);

    register_both(&l); /* a registration is removed; there is no reservation */
    assert_int_equal(pr_out(&l, l.a, PREEMPT, EA, 0xa, 0xf, 0), CONFLICT);
    assert_int_equal(pr_out(&l, l.a, PREEMPT, EA, 0xa, 0, 0), LIST);
    assert_int_equal(pr_out(&l, l.a, PREEMPT, EA, 0xa, 0xb, 0), GOOD);
    assert_int_equal(lab(&l, l.b, "00", 0), REGISTRATIONS);
    assert_int_equal(keys(&l), 1);
    assert_int_equal(reserved(&l, NULL), 0);

    /* The holder is preempted while it writes: what it began is aborted. */
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0, 0xb, 0), GOOD);
    assert_int_equal(pr_out(&l, l.b, RESERVE, WE, 0xb, 0, 0), GOOD);
    l.store.held = true;
    lab_run(&l, &k, l.b, WRITE_1, 512);
    l.store.held = false;
    assert_int_equal(pr_out(&l, l.a, PREEMPT_ABORT, EA, 0xa, 0xb, 0), GOOD);
    assert_true(lab_let_go(&l.store));
    assert_int_equal(k.task.status, SCSI_TASK_ABORTED);
    uint64_t key;
    assert_int_equal(reserved(&l, &key), EA);
    assert_int_equal(key, 0xa);
    assert_int_equal(lab(&l, l.b, "00", 0), REGISTRATIONS);
    assert_int_equal(lab(&l, l.b, READ_1, 0), CONFLICT);

    /* All registrants: key 0 preempts everybody else. */
    assert_int_equal(pr_out(&l, l.a, RELEASE, EA, 0xa, 0, 0), GOOD);
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0, 0xb, 0), GOOD);
    assert_int_equal(pr_out(&l, l.b, RESERVE, WE_AR, 0xb, 0, 0), GOOD);
    assert_int_equal(pr_out(&l, l.a, PREEMPT, EA_RO, 0xa, 0, 0), GOOD);
    assert_int_equal(reserved(&l, &key), EA_RO);
    assert_int_equal(key, 0xa);
    assert_int_equal(keys(&l), 1);
    lab_end(&l);
}

static void test_move(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    register_both(&l);
    assert_int_equal(pr_out(&l, l.a, RESERVE, EA, 0xa, 0, 0), GOOD);
    memset(l.data, 0, 64);
    lab_put(l.data, 8, 0xa);
    lab_put(l.data + 8, 8, 0xe);
    l.data[17] = 0x02; /* UNREG */
    l.data[19] = 1;
    l.data[23] = 4 + 28;
    l.data[24] = 0x45;
    l.data[27] = 28;
    strcpy((char *)l.data + 28, "iqn.b,i,0x00023d000002");
    assert_int_equal(lab(&l, l.b, "5f 07 00 0000 00000038 00", 56), CONFLICT);
    assert_int_equal(lab(&l, l.a, "5f 07 00 0000 00000037 00", 55), LENGTH);
    assert_int_equal(lab(&l, l.a, "5f 07 00 0000 00000038 00", 56), GOOD);
    uint64_t key;
    assert_int_equal(reserved(&l, &key), EA);
    assert_int_equal(key, 0xe);
    assert_int_equal(keys(&l), 1);
    assert_int_equal(lab(&l, l.b, WRITE_1, 512), GOOD);
    assert_int_equal(lab(&l, l.a, WRITE_1, 512), CONFLICT);
    lab_end(&l);
}

static void test_full_status(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    register_both(&l);
    pr_out(&l, l.b, RESERVE, WE, 0xb, 0, 0);
    assert_int_equal(lab(&l, l.a, "5e 03 0000000000 0400 00", 0), GOOD);
    const uint8_t *p = l.data + 8;
    assert_int_equal(lab_get(p, 8), 0xa);
    assert_int_equal(p[12], 0);
    uint64_t more = lab_get(p + 20, 4);
    assert_int_equal(p[24], 0x45);
    assert_string_equal((const char *)p + 28, "iqn.a,i,0x00023d000001");
    p += 24 + more;
    assert_int_equal(lab_get(p, 8), 0xb);
    assert_int_equal(p[12], 1);
    assert_int_equal(p[13], WE);
    assert_int_equal(lab_get(l.data + 4, 4), 2 * (24 + more));
    assert_int_equal(lab_in(&l, l.a, "5e 02 0000000000 0400 00", 8)[4], 0xea);
    lab_in(&l, l.a, "5e 00 0000000000 0008 00", 8);
    lab_end(&l);
}

static void test_too_many(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    unsigned got = 0;
    for (int i = 0; i < 200 && !got; i++) {
        char name[64];
        snprintf(name, sizeof(name), "iqn.many,i,0x%d", i);
        struct scsi_nexus *n = scsi_nexus_new(l.unit, name, "iqn.t,t,0x0001", 1);
        lab(&l, n, "00", 0);
        got = pr_out(&l, n, REGISTER, 0, 0, (uint64_t)i + 1, 0);
        scsi_nexus_free(n);
    }
    assert_int_equal(got, 0x055504);
    assert_int_equal(keys(&l), 128);
    lab_end(&l);
}

/* ---- what survives ---- */

static void test_survives(void **state)
{
    (void)state;
    char dir[] = "/tmp/orlop-reserve-XXXXXX", path[80], gone[80];
    struct err e;
    struct lab l;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/reservations", dir);
    snprintf(gone, sizeof(gone), "%s-gone", dir);
    const struct scsi_unit_config config = {.state_dir = dir};
    lab_start(&l, config);
    assert_int_equal(pr_out(&l, l.a, REGISTER, 0, 0, 0xa, 1), GOOD);
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0, 0xb, 1), GOOD);
    assert_int_equal(pr_out(&l, l.b, RESERVE, EA, 0xb, 0, 0), GOOD);
    assert_int_equal(lab_in(&l, l.a, "5e 02 0000000000 0400 00", 8)[3], 0x81);
    lab_end(&l);
    lab_start(&l, config);
    uint64_t key;
    assert_int_equal(reserved(&l, &key), EA);
    assert_int_equal(key, 0xb);
    assert_int_equal(keys(&l), 2);
    assert_int_equal(lab(&l, l.a, READ_1, 0), CONFLICT);
    assert_int_equal(lab(&l, l.b, WRITE_1, 512), GOOD);
    /* What cannot be made durable does not happen. */
    assert_int_equal(rename(dir, gone), 0);
    assert_int_equal(pr_out(&l, l.b, RELEASE, EA, 0xb, 0, 0), 0x044400);
    assert_int_equal(reserved(&l, NULL), EA);
    assert_int_equal(rename(gone, dir), 0);
    /* A register without APTPL: from now on it does not. */
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0xb, 0xc, 0), GOOD);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0xc, 0xb, 1), GOOD);
    lab_end(&l);

    /* Damage is not guessed at: each byte that is another, and each cut. */
    _cleanup_(str_done) struct str whole = {0};
    assert_int_equal(file_read(path, 65536, &whole, &e), 0);
    struct store store = {.size = 1 << 20, .block_size = 512};
    struct scsi_unit_config again = {
        .store = &store, .block_size = 512, .serial = "lab-1", .state_dir = dir};
    for (size_t i = 0; i + 1 < whole.len; i++) {
        char kept = whole.p[i];
        whole.p[i] = (char)(kept ^ 1);
        int fd = open(path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, whole.p, i % 2 ? whole.len : i), i % 2 ? whole.len : i);
        close(fd);
        whole.p[i] = kept;
        assert_null(scsi_unit_new(&again, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
        assert_non_null(strstr(e.msg, path));
    }
    assert_int_equal(file_replace(path, whole.p, whole.len, 0600, &e), 0);
    again.serial = "another";
    assert_null(scsi_unit_new(&again, &e));
    assert_non_null(strstr(e.msg, "another volume"));
    assert_int_equal(file_remove_tree(dir, &e), 0);
}

/* ---- SPC-2 ---- */

static void test_spc2(void **state)
{
    (void)state;
    struct lab l;
    lab_start(&l, (struct scsi_unit_config){0});
    assert_int_equal(lab(&l, l.a, "16", 0), GOOD);
    assert_int_equal(lab(&l, l.a, "16", 0), GOOD);
    assert_int_equal(lab(&l, l.b, "16", 0), CONFLICT);
    assert_int_equal(lab(&l, l.b, "00", 0), CONFLICT);
    assert_int_equal(lab(&l, l.b, READ_1, 0), CONFLICT);
    assert_int_equal(lab(&l, l.b, "12 00 00 0024 00", 0), GOOD);
    assert_int_equal(lab(&l, l.b, "17", 0), GOOD); /* not its own: nothing */
    assert_int_equal(lab(&l, l.b, "00", 0), CONFLICT);
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0, 0xb, 0), CONFLICT);
    assert_int_equal(lab(&l, l.a, WRITE_1, 512), GOOD);
    assert_int_equal(lab(&l, l.a, "17", 0), GOOD);
    assert_int_equal(lab(&l, l.b, "00", 0), GOOD);
    /* It goes with a reset, and with the session. */
    assert_int_equal(lab(&l, l.a, "16", 0), GOOD);
    scsi_unit_reset(l.unit, l.b);
    lab(&l, l.b, "00", 0);
    assert_int_equal(lab(&l, l.b, "00", 0), GOOD);
    lab(&l, l.a, "00", 0);
    assert_int_equal(lab(&l, l.a, "16", 0), GOOD);
    scsi_nexus_free(l.a);
    l.a = NULL;
    assert_int_equal(lab(&l, l.b, "00", 0), GOOD);
    /* Beside a registration. */
    assert_int_equal(pr_out(&l, l.b, REGISTER, 0, 0, 0xb, 0), GOOD);
    assert_int_equal(lab(&l, l.b, "16", 0), GOOD);
    l.a = scsi_nexus_new(l.unit, "iqn.a,i,0x1", "iqn.t,t,0x0001", 1);
    lab(&l, l.a, "00", 0);
    assert_int_equal(lab(&l, l.a, "16", 0), CONFLICT);
    assert_int_equal(lab(&l, l.a, "00", 0), GOOD);
    lab_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_register),      cmocka_unit_test(test_access),
        cmocka_unit_test(test_reserve_rules), cmocka_unit_test(test_clear_and_preempt),
        cmocka_unit_test(test_move),          cmocka_unit_test(test_full_status),
        cmocka_unit_test(test_too_many),      cmocka_unit_test(test_survives),
        cmocka_unit_test(test_spc2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

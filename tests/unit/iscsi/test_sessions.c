#include "base/log.h"
#include "unit.h"
#include "wire.h"

static const uint8_t ready[6];

static void manage(struct wire *w, uint8_t function, uint32_t tag)
{
    uint8_t h[ISCSI_HEADER] = {ISCSI_TASK_REQUEST | ISCSI_IMMEDIATE,
                               (uint8_t)(ISCSI_FINAL | function)};
    be_put32(h + 16, w->itt++);
    be_put32(h + 20, tag);
    be_put32(h + 24, w->cmdsn);
    wire_send(w, h, NULL, 0);
}

static void turn_until_output(struct wire *w)
{
    while (!w->out.bytes)
        io_loop_turn(w->t->loop, -1);
}

/* Command numbers: outside of the window nothing happens, and the window opens again. */
static void test_window(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire w;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "fault:read=30ms;mem:", NULL);
    wire_open(&w, &t);
    w.cmdsn = 0xfffffff0; /* numbers wrap on the way */
    wire_enter(&w, "");
    wire_settle(&w);
    uint32_t sn = w.cmdsn;
    static const int off[] = {-1, -100, 128, 1000};
    for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
        w.cmdsn = sn + (uint32_t)off[i];
        wire_command(&w, h, ISCSI_FINAL, 0, ready, 6);
        wire_send(&w, h, NULL, 0);
        assert_false(wire_take(&w, h));
        assert_false(w.closed);
    }
    w.cmdsn = sn;
    for (int i = 0; i < 128; i++) { /* as many as fit; the store is slow */
        wire_rw(&w, h, false, ISCSI_FINAL, 0, 1);
        wire_send(&w, h, NULL, 0);
    }
    assert_false(wire_take(&w, h));
    assert_int_equal(iscsi_node_commands(t.node), 128);
    wire_rw(&w, h, false, ISCSI_FINAL, 0, 1); /* one too many */
    wire_send(&w, h, NULL, 0);
    assert_int_equal(iscsi_node_commands(t.node), 128);
    w.cmdsn--;
    uint32_t most = w.cmdsn - 1;
    for (int i = 0; i < 128; i++) {
        turn_until_output(&w);
        assert_true(wire_take(&w, h));
        assert_int_equal(be_get32(h + 28), w.cmdsn);                /* ExpCmdSN */
        assert_int_equal(be_get32(h + 32), most + 1 + (unsigned)i); /* MaxCmdSN grows */
    }
    wire_done(&w);
    wire_target_done(&t);
}

static void test_task_management(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire w, other;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "fault:read=20ms;mem:", NULL);
    wire_open(&w, &t);
    wire_enter(&w, "InitialR2T=No");
    wire_settle(&w);

    manage(&w, ISCSI_ABORT_TASK, 12345);
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_TASK_RESPONSE);
    assert_int_equal(h[2], ISCSI_TASK_UNKNOWN);
    manage(&w, ISCSI_REASSIGN, 1);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_NO_REASSIGN);
    manage(&w, ISCSI_CLEAR_ACA, 1);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_UNSUPPORTED);
    manage(&w, 77, 1);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_REJECTED);

    /* one that runs: the answer comes when it has left the store, and it has none of its own */
    wire_rw(&w, h, false, ISCSI_FINAL, 0, 1);
    wire_send(&w, h, NULL, 0);
    manage(&w, ISCSI_ABORT_TASK, iscsi_itt(h));
    turn_until_output(&w);
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_TASK_RESPONSE);
    assert_int_equal(h[2], ISCSI_TASK_COMPLETE);
    assert_int_equal(iscsi_node_commands(t.node), 0);
    assert_false(wire_take(&w, h));

    /* one that waits for data: at once; what still comes for it is dropped */
    wire_rw(&w, h, true, 0, 0, 4);
    wire_send(&w, h, "0123", 4);
    uint32_t itt = iscsi_itt(h);
    manage(&w, ISCSI_ABORT_TASK_SET, ISCSI_NO_TAG);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_COMPLETE);
    uint8_t out[ISCSI_HEADER] = {ISCSI_DATA_OUT, ISCSI_FINAL};
    be_put32(out + 16, itt);
    be_put32(out + 20, ISCSI_NO_TAG);
    wire_send(&w, out, "4567", 4);
    assert_false(wire_take(&w, h));
    assert_false(w.closed);

    /* a reset concerns all sessions */
    wire_open(&other, &t);
    wire_login(&other, 0x87, "InitiatorName=iqn.2026-01.test:o|TargetName=iqn.2026-01.io.orlop:v");
    assert_true(wire_take(&other, h));
    wire_settle(&other);
    for (int i = 0; i < 5; i++) {
        wire_rw(i % 2 ? &w : &other, h, false, ISCSI_FINAL, 0, 1);
        wire_send(i % 2 ? &w : &other, h, NULL, 0);
    }
    manage(&w, ISCSI_LUN_RESET, ISCSI_NO_TAG);
    turn_until_output(&w);
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_TASK_RESPONSE);
    assert_int_equal(iscsi_node_commands(t.node), 0);
    assert_int_equal(iscsi_node_stats(t.node)->aborts, 7);
    wire_command(&other, h, ISCSI_FINAL, 0, ready, 6); /* and all hear of it */
    wire_send(&other, h, NULL, 0);
    assert_true(wire_take(&other, h));
    assert_int_equal(h[3], SCSI_CHECK_CONDITION);
    assert_int_equal(other.data.p[2 + 12], 0x29);

    /* a cleared set too, and those hear of it who had something in it */
    wire_settle(&w);
    wire_settle(&other);
    wire_rw(&other, h, false, ISCSI_FINAL, 0, 1);
    wire_send(&other, h, NULL, 0);
    manage(&w, ISCSI_CLEAR_TASK_SET, ISCSI_NO_TAG);
    turn_until_output(&w);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_COMPLETE);
    assert_int_equal(iscsi_node_commands(t.node), 0);
    wire_command(&w, h, ISCSI_FINAL, 0, ready, 6);
    wire_send(&w, h, NULL, 0);
    assert_true(wire_take(&w, h) && h[3] == SCSI_GOOD);
    wire_command(&other, h, ISCSI_FINAL, 0, ready, 6);
    wire_send(&other, h, NULL, 0);
    assert_true(wire_take(&other, h));
    assert_int_equal(h[3], SCSI_CHECK_CONDITION);
    assert_int_equal(other.data.p[2 + 12], 0x2f);

    manage(&w, ISCSI_COLD_RESET, ISCSI_NO_TAG);
    assert_true(wire_take(&w, h) && h[2] == ISCSI_TASK_COMPLETE);
    assert_true(w.closed && other.closed);
    wire_done(&w);
    wire_done(&other);
    wire_target_done(&t);
}

/* The same initiator port again: the old session ends, and only then the new one begins. */
static void test_reinstatement(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire old, fresh;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "fault:write=30ms;mem:", NULL);
    wire_open(&old, &t);
    wire_enter(&old, "InitialR2T=No");
    wire_settle(&old);
    uint8_t data[512] = {1};
    wire_rw(&old, h, true, ISCSI_FINAL, 0, 1);
    wire_send(&old, h, data, 512);
    assert_int_equal(iscsi_node_commands(t.node), 1);
    wire_open(&fresh, &t);
    wire_login(&fresh, 0x87, WIRE_WHO);
    assert_true(old.closed && old.at_once);
    assert_false(wire_take(&fresh, h)); /* the old write is still with the store */
    turn_until_output(&fresh);
    assert_int_equal(iscsi_node_commands(t.node), 0);
    assert_true(wire_take(&fresh, h));
    assert_int_equal(be_get16(h + 36), 0);
    assert_int_equal(iscsi_node_sessions(t.node), 1);
    wire_done(&old);
    assert_int_equal(iscsi_node_sessions(t.node), 1);
    wire_settle(&fresh);

    /* a session has one connection: a second one is refused */
    struct wire second;
    wire_open(&second, &t);
    uint8_t login[ISCSI_HEADER] = {ISCSI_LOGIN_REQUEST | ISCSI_IMMEDIATE,
                                   0x87, [8] = 0x80, [15] = 1};
    static const char who[] = "InitiatorName=iqn.2026-01.test:i\0TargetName=iqn.2026-01.io.orlop:v";
    wire_send(&second, login, who, sizeof(who));
    assert_true(wire_take(&second, h));
    assert_int_equal(be_get16(h + 36), 0x0206);
    wire_done(&second);
    wire_done(&fresh);
    wire_target_done(&t);
}

/* Time: logins that do not come to an end, peers that are dead, data that does not come. */
static void test_time(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire w;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "mem:", NULL);
    wire_open(&w, &t);
    clock_manual_advance(&t.clock, 14 * CLOCK_SECOND);
    iscsi_conn_tick(w.conn);
    assert_false(w.closed);
    clock_manual_advance(&t.clock, 2 * CLOCK_SECOND);
    iscsi_conn_tick(w.conn);
    assert_true(w.closed);
    wire_done(&w);

    wire_open(&w, &t);
    wire_enter(&w, "InitialR2T=No");
    clock_manual_advance(&t.clock, 16 * CLOCK_SECOND);
    iscsi_conn_tick(w.conn);
    assert_true(wire_take(&w, h)); /* are you there? */
    assert_int_equal(iscsi_opcode(h), ISCSI_NOP_IN);
    assert_int_equal(iscsi_itt(h), ISCSI_NO_TAG);
    uint8_t pong[ISCSI_HEADER] = {ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL};
    be_put32(pong + 16, ISCSI_NO_TAG);
    memcpy(pong + 20, h + 20, 4);
    wire_send(&w, pong, NULL, 0);
    assert_false(wire_take(&w, h)); /* it is an answer, and gets none */
    iscsi_conn_tick(w.conn);
    assert_false(w.closed);
    clock_manual_advance(&t.clock, 16 * CLOCK_SECOND);
    iscsi_conn_tick(w.conn);
    assert_true(wire_take(&w, h));
    clock_manual_advance(&t.clock, 16 * CLOCK_SECOND);
    iscsi_conn_tick(w.conn);
    assert_true(w.closed); /* no */
    wire_done(&w);

    wire_open(&w, &t);
    wire_enter(&w, "InitialR2T=No");
    wire_settle(&w);
    wire_rw(&w, h, true, 0, 0, 4); /* more is promised, and does not come */
    wire_send(&w, h, "0123", 4);
    for (int i = 0; i < 8 && !w.closed; i++) {
        clock_manual_advance(&t.clock, 10 * CLOCK_SECOND);
        wire_send(&w, pong, NULL, 0); /* though it is alive */
        iscsi_conn_tick(w.conn);
    }
    assert_true(w.closed);
    wire_done(&w);
    wire_target_done(&t);
}

/* An initiator that does not fetch its answers is not read any more, and keeps nothing of others. */
static void test_back_pressure(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire w;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "mem:", NULL);
    wire_open(&w, &t);
    wire_enter(&w, "MaxRecvDataSegmentLength=262144");
    wire_settle(&w);
    for (int i = 0; i < 100; i++) { /* 100 x 128K */
        wire_rw(&w, h, false, ISCSI_FINAL, 0, 256);
        wire_send(&w, h, NULL, 0);
    }
    assert_true(w.out.bytes <= 3u << 20); /* most have not run yet */
    assert_true(io_pool_used(io_loop_pool(t.loop)) < 4u << 20);
    unsigned answers = 0;
    while (wire_take(&w, h)) {
        answers++;
        iscsi_conn_sent(w.conn);
    }
    assert_int_equal(answers, 100);
    /* questions without end */
    uint8_t nop[ISCSI_HEADER] = {ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL};
    char much[8000] = "";
    be_put32(nop + 20, ISCSI_NO_TAG);
    for (int i = 0; i < 2000 && !w.paused; i++)
        wire_send(&w, nop, much, sizeof(much));
    assert_true(w.paused);
    assert_true(w.out.bytes < 5u << 20);
    while (wire_take(&w, h))
        iscsi_conn_sent(w.conn);
    assert_false(w.paused);
    wire_done(&w);
    wire_target_done(&t);
}

static void test_the_rest(void **state)
{
    (void)state;
    struct wire_target t;
    struct wire w;
    uint8_t h[ISCSI_HEADER];
    wire_target_init(&t, "mem:", NULL);
    wire_open(&w, &t);
    wire_enter(&w, "");
    uint8_t nop[ISCSI_HEADER] = {ISCSI_NOP_OUT | ISCSI_IMMEDIATE, ISCSI_FINAL};
    be_put32(nop + 16, 99);
    wire_send(&w, nop, "hello", 5);
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_NOP_IN);
    assert_int_equal(iscsi_itt(h), 99);
    assert_string_equal(w.data.p, "hello");
    uint8_t snack[ISCSI_HEADER] = {ISCSI_SNACK, ISCSI_FINAL};
    wire_send(&w, snack, NULL, 0);
    assert_true(wire_take(&w, h));
    assert_int_equal(h[2], ISCSI_REJECT_SNACK);
    uint8_t odd[ISCSI_HEADER] = {0x1c, ISCSI_FINAL};
    wire_send(&w, odd, NULL, 0);
    assert_true(wire_take(&w, h));
    assert_int_equal(h[2], ISCSI_REJECT_UNSUPPORTED);

    iscsi_node_drain(t.node, 3); /* please log out; nobody new */
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_ASYNC);
    assert_int_equal(h[36], ISCSI_ASYNC_LOGOUT);
    assert_int_equal(be_get16(h + 42), 3);
    struct wire late;
    wire_open(&late, &t);
    wire_login(&late, 0x87, "InitiatorName=iqn.2026-01.test:l|TargetName=iqn.2026-01.io.orlop:v");
    assert_true(wire_take(&late, h));
    assert_int_equal(be_get16(h + 36), 0x0301);
    wire_done(&late);

    uint8_t recover[ISCSI_HEADER] = {ISCSI_LOGOUT_REQUEST | ISCSI_IMMEDIATE, ISCSI_FINAL | 2};
    wire_send(&w, recover, NULL, 0);
    assert_true(wire_take(&w, h));
    assert_int_equal(h[2], 2); /* there is no recovery of connections */
    assert_false(w.closed);
    uint8_t out[ISCSI_HEADER] = {ISCSI_LOGOUT_REQUEST | ISCSI_IMMEDIATE, ISCSI_FINAL};
    wire_send(&w, out, NULL, 0);
    assert_true(wire_take(&w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_LOGOUT_RESPONSE);
    assert_true(w.closed && !w.at_once);
    wire_done(&w);

    wire_target_done(&t);
    wire_target_init(&t, "mem:", NULL);
    wire_open(&w, &t);
    wire_login(&w, 0x87, "InitiatorName=iqn.2026-01.test:i|SessionType=Discovery");
    assert_true(wire_take(&w, h));
    uint8_t text[ISCSI_HEADER] = {ISCSI_TEXT_REQUEST | ISCSI_IMMEDIATE, ISCSI_FINAL};
    be_put32(text + 20, ISCSI_NO_TAG);
    wire_send(&w, text, "SendTargets=All", 16);
    assert_true(wire_take(&w, h));
    static const char list[] = "TargetName=iqn.2026-01.io.orlop:v\0TargetAddress=127.0.0.1:3260,1";
    assert_int_equal(w.data.len, sizeof(list));
    assert_memory_equal(w.data.p, list, sizeof(list));
    wire_done(&w);
    wire_target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),        cmocka_unit_test(test_task_management),
        cmocka_unit_test(test_reinstatement), cmocka_unit_test(test_time),
        cmocka_unit_test(test_back_pressure), cmocka_unit_test(test_the_rest),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

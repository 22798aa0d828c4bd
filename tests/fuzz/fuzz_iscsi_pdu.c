/*
 * Bytes of an initiator that is logged in. The first byte says how they are cut into pieces; the second
 * which digests are agreed on (with them, the fuzzer's bytes get right ones), and whether a session of
 * another initiator is there, which must not suffer.
 */
#include "base/log.h"
#include "fuzz.h"
#include "wire.h"

/* Whole PDUs as the fuzzer wrote their headers, with digests and as much data as there is. */
static void send_pdus(struct wire *w, const uint8_t *data, size_t size)
{
    while (size >= ISCSI_HEADER && !w->closed) {
        uint8_t h[ISCSI_HEADER];
        memcpy(h, data, sizeof(h));
        h[4] = 0;
        data += ISCSI_HEADER;
        size -= ISCSI_HEADER;
        size_t n = iscsi_data_length(h);
        n = n < size ? n : size;
        wire_send(w, h, data, (uint32_t)n);
        data += n;
        size -= n;
    }
}

static void check_other(struct wire *other)
{
    uint8_t h[ISCSI_HEADER];
    while (wire_take(other, h)) /* unit attentions may come, but no one ends it */
        CHECK(iscsi_opcode(h) != ISCSI_REJECT);
    if (other->closed)
        return; /* TARGET COLD RESET ends all */
    wire_settle(other);
    wire_rw(other, h, false, ISCSI_FINAL, 0, 1);
    wire_send(other, h, NULL, 0);
    while (!other->out.bytes)
        io_loop_turn(other->t->loop, 1000000);
    CHECK(wire_take(other, h));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_target t;
    struct wire w, other;
    if (size < 2)
        return 0;
    log_set_level(LOG_LEVEL_ERROR);
    wire_target_init(&t, data[1] & 8 ? "fault:any=1ms/2;mem:" : "mem:", NULL);
    wire_open(&w, &t);
    wire_enter(&w, data[1] & 1   ? "HeaderDigest=CRC32C|DataDigest=CRC32C|InitialR2T=No"
                   : data[1] & 2 ? "InitialR2T=No|FirstBurstLength=1024|MaxBurstLength=2048"
                                 : "InitialR2T=Yes|MaxRecvDataSegmentLength=512");
    w.header_digest = w.data_digest = data[1] & 1;
    bool with_other = data[1] & 4;
    wire_open(&other, &t);
    if (with_other) {
        wire_login(&other, 0x87,
                   "InitiatorName=iqn.2026-01.test:other|"
                   "TargetName=iqn.2026-01.io.orlop:v|SessionType=Normal");
        uint8_t h[ISCSI_HEADER];
        CHECK(wire_take(&other, h) && h[36] == 0);
    }
    if (data[1] & 1)
        send_pdus(&w, data + 2, size - 2);
    else
        wire_bytes(&w, data + 2, size - 2, data[0] * 8u + 1);
    if (!w.closed)
        iscsi_conn_tick(w.conn);
    CHECK(w.out.bytes < 256u << 20);
    if (with_other)
        check_other(&other);
    wire_done(&w);
    wire_done(&other);
    wire_target_done(&t);
    return 0;
}

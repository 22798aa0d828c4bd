#include "base/log.h"
#include "unit.h"
#include "wire.h"

struct pair {
    struct wire_target t;
    struct wire w;
};

static void enter(struct pair *p, const char *store, const char *keys)
{
    wire_target_init(&p->t, store, NULL);
    wire_open(&p->w, &p->t);
    wire_enter(&p->w, keys);
    p->w.header_digest = strstr(keys, "HeaderDigest=CRC32C");
    p->w.data_digest = strstr(keys, "DataDigest=CRC32C");
    wire_settle(&p->w);
}

static void leave(struct pair *p)
{
    wire_done(&p->w);
    wire_target_done(&p->t);
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 31 + i / 256 + seed);
}

/* All data of a read, over as many PDUs as it takes; the status of the last. */
static uint8_t collect(struct wire *w, uint32_t itt, struct str *data)
{
    uint8_t h[ISCSI_HEADER];
    uint32_t sn = 0;
    for (;;) {
        while (!w->out.bytes)
            io_loop_turn(w->t->loop, -1);
        assert_true(wire_take(w, h));
        if (iscsi_opcode(h) == ISCSI_RESPONSE)
            return h[3];
        assert_int_equal(iscsi_opcode(h), ISCSI_DATA_IN);
        assert_int_equal(iscsi_itt(h), itt);
        assert_int_equal(be_get32(h + 36), sn++);
        assert_int_equal(be_get32(h + 40), data->len);
        str_append_n(data, w->data.p, w->data.len);
        if (h[1] & ISCSI_DATA_STATUS) {
            assert_true(h[1] & ISCSI_FINAL);
            return h[3];
        }
        iscsi_conn_sent(w->conn);
    }
}

static void data_out(struct wire *w, uint32_t itt, uint32_t ttt, uint32_t sn, uint32_t offset,
                     const uint8_t *data, uint32_t n, bool final)
{
    uint8_t h[ISCSI_HEADER] = {ISCSI_DATA_OUT, final ? ISCSI_FINAL : 0};
    be_put32(h + 16, itt);
    be_put32(h + 20, ttt);
    be_put32(h + 36, sn);
    be_put32(h + 40, offset);
    wire_send(w, h, data + offset, n);
}

/* The initiator's side of a write: as much at once as was agreed on, then what is asked for. */
static void write_blocks(struct wire *w, uint32_t lba, uint16_t blocks, const uint8_t *data,
                         uint32_t immediate, uint32_t unsolicited, uint32_t segment)
{
    uint8_t h[ISCSI_HEADER];
    uint32_t length = blocks * 512u, sent = immediate < length ? immediate : length, sn = 0;
    uint32_t first = unsolicited < length ? unsolicited : length;
    wire_rw(w, h, true, sent < first ? 0 : ISCSI_FINAL, lba, blocks);
    uint32_t itt = iscsi_itt(h);
    wire_send(w, h, data, sent);
    while (sent < first) {
        uint32_t n = first - sent < segment ? first - sent : segment;
        data_out(w, itt, ISCSI_NO_TAG, sn++, sent, data, n, sent + n == first);
        sent += n;
    }
    for (;;) {
        while (!w->out.bytes)
            io_loop_turn(w->t->loop, -1);
        assert_true(wire_take(w, h));
        assert_int_equal(iscsi_itt(h), itt);
        if (iscsi_opcode(h) == ISCSI_RESPONSE)
            break;
        assert_int_equal(iscsi_opcode(h), ISCSI_R2T);
        uint32_t ttt = be_get32(h + 20), at = be_get32(h + 40), n = be_get32(h + 44);
        assert_int_equal(at, sent);
        sn = 0;
        for (uint32_t end = at + n; at < end;) {
            uint32_t part = end - at < segment ? end - at : segment;
            data_out(w, itt, ttt, sn++, at, data, part, at + part == end);
            at += part;
        }
        sent = at;
    }
    assert_int_equal(h[3], SCSI_GOOD);
    assert_int_equal(sent, length);
}

static void check_blocks(struct wire *w, uint32_t lba, uint16_t blocks, const uint8_t *data)
{
    uint8_t h[ISCSI_HEADER];
    _cleanup_(str_done) struct str got = {0};
    wire_rw(w, h, false, ISCSI_FINAL, lba, blocks);
    uint32_t itt = iscsi_itt(h);
    wire_send(w, h, NULL, 0);
    assert_int_equal(collect(w, itt, &got), SCSI_GOOD);
    assert_int_equal(got.len, blocks * 512u);
    assert_memory_equal(got.p, data, got.len);
}

/* Every way in which data can come and go, with every kind of agreement. */
static void test_transfers(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *store;
        uint32_t immediate, unsolicited, segment;
    } rows[] = {
        {"InitialR2T=No|FirstBurstLength=262144|MaxRecvDataSegmentLength=262144", "mem:", 1 << 30,
         1 << 30, 1 << 18},
        {"InitialR2T=No|ImmediateData=No|FirstBurstLength=65536", "mem:", 0, 65536, 8192},
        {"InitialR2T=Yes|ImmediateData=Yes|FirstBurstLength=4096|MaxBurstLength=16384",
         "mem:", 4096, 0, 512},
        {"InitialR2T=Yes|ImmediateData=No|MaxRecvDataSegmentLength=512", "mem:", 0, 0, 1000},
        {"HeaderDigest=CRC32C|DataDigest=CRC32C|InitialR2T=No", "mem:", 512, 4096, 777},
        {"DataDigest=CRC32C|InitialR2T=No|MaxRecvDataSegmentLength=1000",
         "fault:any=1ms/2;mem:", 512, 4096, 777},
    };
    static const uint16_t sizes[] = {1, 2, 7, 8, 9, 64, 256, 500};
    uint8_t *data = mem_alloc(500 * 512);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pair p;
        enter(&p, rows[i].store, rows[i].keys);
        for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
            fill(data, sizes[s] * 512u, (unsigned)(i * 16 + s));
            uint32_t lba = (uint32_t)s * 600;
            write_blocks(&p.w, lba, sizes[s], data, rows[i].immediate, rows[i].unsolicited,
                         rows[i].segment);
            check_blocks(&p.w, lba, sizes[s], data);
        }
        assert_int_equal(iscsi_node_commands(p.t.node), 0);
        leave(&p);
    }
    free(data);
}

/* The last Data-In carries the status, and residuals say what was not moved. */
static void test_residuals(void **state)
{
    (void)state;
    static const struct {
        uint8_t cdb[10], flags;
        uint32_t expected;
        uint8_t residual;
        uint32_t count;
    } rows[] = {
        {{0x28, [8] = 1}, ISCSI_CMD_READ, 512, 0, 0},
        {{0x28, [8] = 1}, ISCSI_CMD_READ, 1024, ISCSI_UNDERFLOW, 512},
        {{0x28, [8] = 2}, ISCSI_CMD_READ, 512, ISCSI_OVERFLOW, 512},
        {{0x28, [8] = 1}, ISCSI_CMD_READ, 0, ISCSI_OVERFLOW, 512},
        {{0x2a, [8] = 1}, ISCSI_CMD_WRITE, 512, 0, 0},
        {{0x2a, [8] = 1}, ISCSI_CMD_WRITE, 1024, ISCSI_UNDERFLOW, 512},
        {{0x12, [4] = 255}, ISCSI_CMD_READ, 255, ISCSI_UNDERFLOW, 255 - 96},
    };
    struct pair p;
    uint8_t h[ISCSI_HEADER], data[1024] = {0};
    enter(&p, "mem:", "InitialR2T=No");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool write = rows[i].flags & ISCSI_CMD_WRITE;
        wire_command(&p.w, h, ISCSI_FINAL | rows[i].flags, rows[i].expected, rows[i].cdb, 10);
        wire_send(&p.w, h, data, write ? rows[i].expected : 0);
        assert_true(wire_take(&p.w, h));
        bool with_data = iscsi_data_length(h) > 0;
        assert_int_equal(iscsi_opcode(h), with_data ? ISCSI_DATA_IN : ISCSI_RESPONSE);
        assert_int_equal(h[3], SCSI_GOOD);
        assert_int_equal(h[1] & (ISCSI_UNDERFLOW | ISCSI_OVERFLOW), rows[i].residual);
        assert_int_equal(be_get32(h + 44), rows[i].count);
        assert_false(wire_take(&p.w, h));
    }
    /* sense data comes in a response, with its length in front */
    static const uint8_t beyond[10] = {0x28, [2] = 0x7f, [8] = 1};
    wire_command(&p.w, h, ISCSI_FINAL | ISCSI_CMD_READ, 512, beyond, 10);
    wire_send(&p.w, h, NULL, 0);
    assert_true(wire_take(&p.w, h));
    assert_int_equal(iscsi_opcode(h), ISCSI_RESPONSE);
    assert_int_equal(h[3], SCSI_CHECK_CONDITION);
    assert_int_equal(be_get16((uint8_t *)p.w.data.p) + 2, p.w.data.len);
    leave(&p);
}

/* What breaks the protocol ends the connection, with a Reject before. */
static void test_violations(void **state)
{
    (void)state;
    enum {
        IMMEDIATE_UNAGREED,
        TOO_MUCH_IMMEDIATE,
        SEGMENT,
        UNSOLICITED,
        DATA_UNASKED,
        BEYOND_BURST,
        GAP,
        READ_WITH_DATA,
        LOGIN_AGAIN,
        CASES
    };
    for (int what = 0; what < CASES; what++) {
        struct pair p;
        uint8_t h[ISCSI_HEADER], *data = mem_zalloc(300 << 10);
        enter(&p, "mem:",
              what == IMMEDIATE_UNAGREED ? "ImmediateData=No|InitialR2T=Yes"
              : what == UNSOLICITED      ? "InitialR2T=Yes"
                                         : "InitialR2T=No|FirstBurstLength=1024");
        switch (what) {
        case IMMEDIATE_UNAGREED:
            wire_rw(&p.w, h, true, ISCSI_FINAL, 0, 1);
            wire_send(&p.w, h, data, 512);
            break;
        case TOO_MUCH_IMMEDIATE:
            wire_rw(&p.w, h, true, ISCSI_FINAL, 0, 4);
            wire_send(&p.w, h, data, 2048);
            break;
        case SEGMENT:
            wire_rw(&p.w, h, true, ISCSI_FINAL, 0, 600);
            wire_send(&p.w, h, data, 300 << 10);
            break;
        case UNSOLICITED:
            wire_rw(&p.w, h, true, 0, 0, 4);
            wire_send(&p.w, h, data, 512);
            break;
        case DATA_UNASKED: /* R2T is out for another tag */
            wire_rw(&p.w, h, true, ISCSI_FINAL, 0, 4);
            wire_send(&p.w, h, NULL, 0);
            wire_take(&p.w, h);
            data_out(&p.w, iscsi_itt(h), 0x1234, 0, 0, data, 512, true);
            break;
        case BEYOND_BURST:
            wire_rw(&p.w, h, true, 0, 0, 4);
            wire_send(&p.w, h, data, 512);
            data_out(&p.w, iscsi_itt(h), ISCSI_NO_TAG, 0, 512, data, 1024, true);
            break;
        case GAP:
            p.w.cmdsn += 3;
            wire_rw(&p.w, h, false, ISCSI_FINAL, 0, 1);
            wire_send(&p.w, h, NULL, 0);
            break;
        case READ_WITH_DATA:
            wire_rw(&p.w, h, false, ISCSI_FINAL, 0, 1);
            wire_send(&p.w, h, data, 512);
            break;
        default:
            wire_login(&p.w, 0x87, WIRE_WHO);
        }
        assert_true(p.w.closed);
        assert_true(wire_take(&p.w, h));
        assert_int_equal(iscsi_opcode(h), ISCSI_REJECT);
        assert_int_equal(p.w.data.len, ISCSI_HEADER);
        leave(&p);
        free(data);
    }
}

/* A lost or repeated piece of data fails the command; the connection goes on. */
static void test_order(void **state)
{
    (void)state;
    static const struct {
        uint32_t sn, offset;
    } rows[] = {{1, 512}, {0, 1024}, {27, 512}, {0xffffffff, 512}};
    uint8_t h[ISCSI_HEADER], data[2048] = {0};
    struct pair p;
    enter(&p, "mem:", "InitialR2T=No|FirstBurstLength=2048");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        wire_rw(&p.w, h, true, 0, 0, 3);
        wire_send(&p.w, h, data, 512);
        uint32_t itt = iscsi_itt(h);
        uint8_t out[ISCSI_HEADER] = {ISCSI_DATA_OUT, ISCSI_FINAL};
        be_put32(out + 16, itt);
        be_put32(out + 20, ISCSI_NO_TAG);
        be_put32(out + 36, rows[i].sn);
        be_put32(out + 40, rows[i].offset);
        wire_send(&p.w, out, data, 1024);
        assert_true(wire_take(&p.w, h));
        assert_int_equal(iscsi_opcode(h), ISCSI_RESPONSE);
        assert_int_equal(h[3], SCSI_CHECK_CONDITION);
        assert_int_equal(p.w.data.p[2 + 12], 0x4b);
        assert_false(p.w.closed);
    }
    fill(data, 512, 1);
    write_blocks(&p.w, 0, 1, data, 512, 0, 512);
    check_blocks(&p.w, 0, 1, data);
    leave(&p);
}

/* Wrong digests: of a header nothing can be trusted any more; of data, a Reject says so. */
static void test_digests(void **state)
{
    (void)state;
    for (int of_data = 0; of_data < 2; of_data++) {
        struct pair p;
        uint8_t h[ISCSI_HEADER], pdu[ISCSI_HEADER + 4 + 512 + 4] = {0};
        enter(&p, "mem:", "HeaderDigest=CRC32C|DataDigest=CRC32C|InitialR2T=No");
        wire_rw(&p.w, h, true, ISCSI_FINAL, 0, 1);
        be_put24(h + 5, 512);
        memcpy(pdu, h, sizeof(h));
        uint32_t crc = crc_32c(h, sizeof(h)) ^ (of_data ? 0 : 1);
        memcpy(pdu + ISCSI_HEADER, &crc, 4);
        crc = crc_32c(pdu + ISCSI_HEADER + 4, 512) ^ 1;
        memcpy(pdu + sizeof(pdu) - 4, &crc, 4);
        wire_bytes(&p.w, pdu, sizeof(pdu), 100);
        assert_true(p.w.closed);
        assert_int_equal(p.w.at_once, !of_data);
        assert_int_equal(wire_take(&p.w, h), of_data);
        if (of_data)
            assert_int_equal(h[2], ISCSI_REJECT_DATA_DIGEST);
        assert_int_equal(iscsi_node_stats(p.t.node)->digest_errors, 1);
        assert_int_equal(iscsi_node_stats(p.t.node)->classes[ISCSI_WRITES].count, 0);
        leave(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers),  cmocka_unit_test(test_residuals),
        cmocka_unit_test(test_violations), cmocka_unit_test(test_order),
        cmocka_unit_test(test_digests),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * An iSCSI connection without sockets: a target over memory, an initiator made of bytes. For unit tests
 * and fuzzers.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/str.h"
#include "io/loop.h"
#include "io/queue.h"
#include "iscsi/iscsi.h"
#include "iscsi/pdu.h"
#include "store/store.h"

enum { WIRE_SIZE = 4 << 20 };

struct wire_target {
    struct clock_manual clock;
    struct io_loop *loop;
    struct store *store;
    struct scsi_unit *unit;
    struct iscsi_node *node;
};

struct wire {
    struct wire_target *t;
    struct io_queue out;
    struct iscsi_conn *conn;
    bool closed, at_once, paused;
    bool header_digest, data_digest; /* what the bytes of this side have */
    uint32_t cmdsn, itt;
    struct str data; /* of the PDU taken last */
};

static void wire_flush(struct iscsi_conn *c)
{
    (void)c;
}

static void wire_close(struct iscsi_conn *c, bool at_once)
{
    struct wire *w = iscsi_conn_carrier(c);
    w->closed = true;
    w->at_once = at_once;
}

static void wire_pause(struct iscsi_conn *c, bool paused)
{
    struct wire *w = iscsi_conn_carrier(c);
    w->paused = paused;
}

static const struct iscsi_conn_ops wire_ops = {wire_flush, wire_close, wire_pause, wire_flush};

static inline void wire_target_init(struct wire_target *t, const char *store,
                                    const struct iscsi_auth *auth)
{
    *t = (struct wire_target){0};
    clock_manual_init(&t->clock, 0);
    t->loop = io_loop_new(IO_EPOLL, NULL);
    const struct store_options so = {.loop = t->loop, .size = WIRE_SIZE, .block_size = 512};
    t->store = store_open(store, &so, NULL);
    const struct scsi_unit_config uc = {.store = t->store,
                                        .block_size = 512,
                                        .vendor = "ORLOP",
                                        .product = "volume",
                                        .revision = "1",
                                        .serial = "wire",
                                        .thin = true};
    t->unit = scsi_unit_new(&uc, NULL);
    t->node = iscsi_node_new(io_loop_pool(t->loop), &t->clock.clock, NULL);
    const struct iscsi_target_config tc = {.name = "iqn.2026-01.io.orlop:v",
                                           .unit = t->unit,
                                           .auth = auth ? *auth : (struct iscsi_auth){0}};
    struct iscsi_target *target = iscsi_target_new(t->node, &tc, NULL);
    assert(target && t->unit && t->store);
    (void)target;
}

static inline void wire_target_done(struct wire_target *t)
{
    while (iscsi_node_sessions(t->node)) /* their tasks are still with the store */
        io_loop_turn(t->loop, 1000000);
    iscsi_node_free(t->node);
    scsi_unit_free(t->unit);
    store_close(t->store);
    io_loop_free(t->loop);
}

static inline void wire_open(struct wire *w, struct wire_target *t)
{
    *w = (struct wire){.t = t, .cmdsn = 1, .itt = 1};
    io_queue_init(&w->out, io_loop_pool(t->loop));
    w->conn = iscsi_conn_new(t->node, &w->out, &wire_ops, w, "127.0.0.1:3260", "127.0.0.1");
}

static inline void wire_done(struct wire *w)
{
    iscsi_conn_free(w->conn);
    io_queue_done(&w->out);
    str_done(&w->data);
}

/* Bytes, in pieces of at most so many, each in a buffer of its own. */
static inline void wire_bytes(struct wire *w, const uint8_t *bytes, size_t n, size_t piece)
{
    while (n && !w->closed) {
        struct io_buf *buf = io_buf_new(io_loop_pool(w->t->loop), IO_SMALL);
        size_t part = n < piece ? n : piece;
        part = part < IO_SMALL ? part : IO_SMALL;
        memcpy(buf->data, bytes, part);
        iscsi_conn_received(w->conn, buf, buf->data, part);
        io_buf_unref(buf);
        bytes += part;
        n -= part;
    }
    if (!w->closed)
        iscsi_conn_turn(w->conn);
}

/* A PDU: the header's length of data and digests are filled in. */
static inline void wire_send(struct wire *w, uint8_t *header, const void *data, uint32_t n)
{
    struct str bytes = {0};
    be_put24(header + 5, n);
    str_append_n(&bytes, header, ISCSI_HEADER);
    if (w->header_digest) {
        uint32_t crc = crc_32c(header, ISCSI_HEADER);
        str_append_n(&bytes, &crc, sizeof(crc));
    }
    if (n) {
        size_t at = bytes.len;
        str_append_n(&bytes, data, n);
        str_append_n(&bytes, "\0\0\0", iscsi_padding(n));
        if (w->data_digest) {
            uint32_t crc = crc_32c(bytes.p + at, bytes.len - at);
            str_append_n(&bytes, &crc, sizeof(crc));
        }
    }
    wire_bytes(w, (const uint8_t *)bytes.p, bytes.len, IO_SMALL);
    str_done(&bytes);
}

static inline void wire_read(struct wire *w, void *to, size_t n)
{
    uint8_t *at = to;
    while (n) {
        struct iovec iov;
        unsigned count = io_queue_peek(&w->out, &iov, 1);
        assert(count == 1);
        (void)count;
        size_t part = n < iov.iov_len ? n : iov.iov_len;
        memcpy(at, iov.iov_base, part);
        io_queue_drop(&w->out, part);
        at += part;
        n -= part;
    }
}

/* The next PDU of the target; false when there is none. Its data is in w->data. */
static inline bool wire_take(struct wire *w, uint8_t *header)
{
    str_clear(&w->data);
    if (!w->out.bytes)
        return false;
    wire_read(w, header, ISCSI_HEADER);
    uint32_t crc, n = iscsi_data_length(header);
    if (w->header_digest) {
        wire_read(w, &crc, sizeof(crc));
        assert(crc == crc_32c(header, ISCSI_HEADER));
    }
    if (n) {
        uint32_t padded = n + iscsi_padding(n);
        char *data = malloc(padded);
        wire_read(w, data, padded);
        if (w->data_digest) {
            wire_read(w, &crc, sizeof(crc));
            assert(crc == crc_32c(data, padded));
        }
        str_append_n(&w->data, data, n);
        free(data);
    }
    return true;
}

/* A login request; text has '|' where a NUL goes. */
static inline void wire_login(struct wire *w, uint8_t flags, const char *text)
{
    uint8_t h[ISCSI_HEADER] = {ISCSI_LOGIN_REQUEST | ISCSI_IMMEDIATE, flags};
    struct str keys = {0};
    for (const char *c = text; *c; c++)
        str_append_c(&keys, *c == '|' ? '\0' : *c);
    if (*text)
        str_append_c(&keys, '\0');
    h[8] = 0x80;
    be_put32(h + 16, 7);
    be_put32(h + 24, w->cmdsn);
    wire_send(w, h, str_get(&keys), (uint32_t)keys.len);
    str_done(&keys);
}

#define WIRE_WHO "InitiatorName=iqn.2026-01.test:i|TargetName=iqn.2026-01.io.orlop:v"

/* Logged in, with these keys besides; the answer is taken. */
static inline void wire_enter(struct wire *w, const char *more)
{
    struct str keys = {0};
    uint8_t h[ISCSI_HEADER];
    str_append(&keys, WIRE_WHO "|SessionType=Normal");
    if (*more)
        str_appendf(&keys, "|%s", more);
    wire_login(w, 0x87, keys.p); /* operational, to full feature */
    str_done(&keys);
    bool answered = wire_take(w, h);
    assert(answered && h[36] == 0 && h[1] == 0x87);
    (void)answered;
}

/* The header of a command; flags say R and W. */
static inline void wire_command(struct wire *w, uint8_t *h, uint8_t flags, uint32_t expected,
                                const uint8_t *cdb, size_t n)
{
    memset(h, 0, ISCSI_HEADER);
    h[0] = ISCSI_COMMAND;
    h[1] = flags;
    be_put32(h + 16, w->itt++);
    be_put32(h + 20, expected);
    be_put32(h + 24, w->cmdsn++);
    memcpy(h + 32, cdb, n);
}

/* READ (10) or WRITE (10). */
static inline void wire_rw(struct wire *w, uint8_t *h, bool write, uint8_t flags, uint32_t lba,
                           uint16_t blocks)
{
    uint8_t cdb[10] = {write ? 0x2a : 0x28};
    be_put32(cdb + 2, lba);
    be_put16(cdb + 7, blocks);
    wire_command(w, h, (uint8_t)(flags | (write ? ISCSI_CMD_WRITE : ISCSI_CMD_READ)), blocks * 512u,
                 cdb, sizeof(cdb));
}

/* TEST UNIT READY until there is no unit attention left. */
static inline void wire_settle(struct wire *w)
{
    static const uint8_t ready[6];
    uint8_t h[ISCSI_HEADER];
    for (int i = 0; i < 8; i++) {
        wire_command(w, h, ISCSI_FINAL, 0, ready, sizeof(ready));
        wire_send(w, h, NULL, 0);
        if (!wire_take(w, h) || h[3] == SCSI_GOOD)
            return;
    }
}

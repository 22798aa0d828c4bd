/*
 * What the PDUs that we send have in common: headers in the queue, sequence numbers, padding, digests.
 */
#include "base/crc.h"
#include "iscsi/impl.h"

uint8_t *iscsi_pdu_begin(struct iscsi_conn *c, enum iscsi_opcode opcode, uint8_t flags,
                         uint32_t data_length)
{
    uint8_t *h = io_queue_reserve(c->out, ISCSI_HEADER + (c->header_digest ? ISCSI_DIGEST : 0));
    memset(h, 0, ISCSI_HEADER);
    h[0] = (uint8_t)opcode;
    h[1] = flags;
    be_put24(h + 5, data_length);
    return h;
}

void iscsi_pdu_status(struct iscsi_conn *c, uint8_t *h, bool counts)
{
    const struct iscsi_session *s = c->session;
    be_put32(h + 24, c->stat_sn);
    if (counts)
        c->stat_sn++;
    be_put32(h + 28, s ? s->exp_cmdsn : c->exp_cmdsn);
    be_put32(h + 32, s ? iscsi_session_max_cmdsn(s) : c->exp_cmdsn);
}

static void put_digest(uint8_t *p, uint32_t crc)
{
    memcpy(p, &crc, sizeof(crc)); /* the one number that goes least byte first */
}

void iscsi_pdu_seal(struct iscsi_conn *c, uint8_t *h)
{
    if (c->header_digest)
        put_digest(h + ISCSI_HEADER, crc_32c(h, ISCSI_HEADER));
    c->ops->flush(c);
}

void iscsi_pdu_tail(struct iscsi_conn *c, uint32_t length, uint32_t crc)
{
    static const uint8_t zeroes[4];
    uint32_t padding = iscsi_padding(length);
    if (padding)
        memset(io_queue_reserve(c->out, padding), 0, padding);
    if (c->data_digest)
        put_digest(io_queue_reserve(c->out, ISCSI_DIGEST), crc_32c_more(crc, zeroes, padding));
}

void iscsi_pdu_text(struct iscsi_conn *c, const void *data, uint32_t n)
{
    if (!n)
        return;
    io_queue_copy(c->out, data, n);
    iscsi_pdu_tail(c, n, c->data_digest ? crc_32c(data, n) : 0);
}

void iscsi_conn_reject(struct iscsi_conn *c, enum iscsi_reject reason)
{
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_REJECT, ISCSI_FINAL, ISCSI_HEADER);
    h[2] = (uint8_t)reason;
    be_put32(h + 16, ISCSI_NO_TAG);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    iscsi_pdu_text(c, c->header, ISCSI_HEADER);
    iscsi_count(&c->node->stats.rejects, 1);
}

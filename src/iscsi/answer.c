/*
 * What a command is answered with: Data-In PDUs, of which the last carries the status where that needs
 * no sense data; otherwise a response.
 */
#include "base/crc.h"
#include "iscsi/impl.h"

struct residual {
    uint8_t flag;
    uint32_t count;
};

/* What the command would have moved, against what the initiator expected. */
static struct residual residual_of(const struct iscsi_task *t)
{
    uint32_t wanted = t->scsi.out_wanted ? t->scsi.out_wanted : t->scsi.in_wanted;
    uint32_t moved = t->scsi.out_wanted ? (t->write ? t->scsi.out_wanted : 0) : t->scsi.in_length;
    if (t->scsi.status == SCSI_GOOD && wanted > t->expected)
        return (struct residual){ISCSI_OVERFLOW, wanted - t->expected};
    if (t->refused || wanted > t->expected)
        moved = wanted > t->expected ? t->expected : 0;
    if (t->expected > moved)
        return (struct residual){ISCSI_UNDERFLOW, t->expected - moved};
    return (struct residual){0};
}

/* Where data-in is: vectors behind those of data-out. */
struct cursor {
    const struct iscsi_task *t;
    unsigned vector;
    uint32_t used;
};

static uint32_t add_data(struct iscsi_conn *c, struct cursor *at, uint32_t n)
{
    uint32_t crc = 0;
    while (n) {
        const struct iovec *v = &at->t->iov[at->vector];
        const uint8_t *data = (const uint8_t *)v->iov_base + at->used;
        uint32_t left = (uint32_t)v->iov_len - at->used, part = n < left ? n : left;
        io_queue_add(c->out, at->t->bufs[at->vector], data, part);
        if (c->data_digest)
            crc = crc_32c_more(crc, data, part);
        n -= part;
        at->used += part;
        if (at->used == v->iov_len) {
            at->vector++;
            at->used = 0;
        }
    }
    return crc;
}

/* All data-in; with the status in the last PDU where it can. */
static uint32_t send_data(struct iscsi_conn *c, struct iscsi_task *t, bool with_status,
                          const struct residual *residual)
{
    struct cursor at = {.t = t, .vector = t->outs};
    uint32_t left = t->scsi.in_length, offset = 0, sn = 0, burst = 0;
    while (left) {
        uint32_t n = left < c->params.max_send ? left : c->params.max_send;
        if (n > c->params.max_burst - burst)
            n = c->params.max_burst - burst;
        left -= n;
        burst += n;
        bool last = left == 0, status = last && with_status;
        uint8_t flags = last || burst == c->params.max_burst ? ISCSI_FINAL : 0;
        if (status)
            flags |= ISCSI_DATA_STATUS | residual->flag;
        uint8_t *h = iscsi_pdu_begin(c, ISCSI_DATA_IN, flags, n);
        be_put32(h + 16, t->itt);
        be_put32(h + 20, ISCSI_NO_TAG);
        iscsi_pdu_status(c, h, status);
        if (status) {
            h[3] = (uint8_t)t->scsi.status;
            be_put32(h + 44, residual->count);
        }
        be_put32(h + 36, sn++);
        be_put32(h + 40, offset);
        iscsi_pdu_seal(c, h);
        uint32_t crc = add_data(c, &at, n);
        iscsi_pdu_tail(c, n, crc);
        offset += n;
        if (flags & ISCSI_FINAL)
            burst = 0;
    }
    return sn;
}

static void send_response(struct iscsi_conn *c, const struct iscsi_task *t, uint32_t data_sn,
                          const struct residual *residual)
{
    uint32_t sense = t->scsi.sense_length ? t->scsi.sense_length + 2u : 0;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_RESPONSE, (uint8_t)(ISCSI_FINAL | residual->flag), sense);
    h[3] = (uint8_t)t->scsi.status;
    be_put32(h + 16, t->itt);
    iscsi_pdu_status(c, h, true);
    be_put32(h + 36, data_sn);
    be_put32(h + 44, residual->count);
    iscsi_pdu_seal(c, h);
    if (sense) {
        uint8_t text[2 + SCSI_SENSE_MAX];
        be_put16(text, t->scsi.sense_length);
        memcpy(text + 2, t->scsi.sense, t->scsi.sense_length);
        iscsi_pdu_text(c, text, sense);
    }
}

static enum iscsi_class class_of(const struct scsi_task *s)
{
    switch (s->cdb[0]) {
    case 0x08: /* READ (6), (10), (12), (16) */
    case 0x28:
    case 0xa8:
    case 0x88:
        return ISCSI_READS;
    case 0x0a: /* WRITE */
    case 0x2a:
    case 0xaa:
    case 0x8a:
        return ISCSI_WRITES;
    case 0x35: /* SYNCHRONIZE CACHE */
    case 0x91:
        return ISCSI_FLUSHES;
    default:
        return ISCSI_OTHERS;
    }
}

static void count(struct iscsi_session *s, const struct iscsi_task *t)
{
    enum iscsi_class class = class_of(&t->scsi);
    int64_t took = clock_mono_ns(s->node->clock) - t->began;
    uint64_t bytes = (uint64_t)t->kept + t->scsi.in_length;
    bool failed = t->scsi.status != SCSI_GOOD;
    iscsi_stats_add(&s->stats.classes[class], bytes, took, failed);
    iscsi_stats_add(&s->node->stats.classes[class], bytes, took, failed);
}

void iscsi_task_answer(struct iscsi_task *t)
{
    struct iscsi_conn *c = t->session->conn;
    struct residual residual = residual_of(t);
    uint32_t room = t->scsi.in_room;
    if (t->refused || t->scsi.in_length > room)
        t->scsi.in_length = t->refused ? 0 : room;
    iscsi_task_unnumber(t); /* so that this answer opens the window again */
    count(t->session, t);
    bool with_status = t->scsi.in_length && !t->scsi.sense_length;
    uint32_t data_sn = send_data(c, t, with_status, &residual);
    if (!with_status)
        send_response(c, t, data_sn, &residual);
    iscsi_task_free(t);
}

/*
 * SCSI commands and their data-out.
 *
 *     command, immediate data ──> unsolicited data, until F ──> R2T ──> solicited data, until F ──┐
 *             │                        up to FirstBurstLength    ^      up to MaxBurstLength      │
 *             └─ no more is wanted ──> ready                     └──────── more is wanted ────────┘
 *
 * Data comes in order (DataPDUInOrder and DataSequenceInOrder are Yes), so a task needs only to know
 * how much there is. Of what the initiator sends beyond what the command takes, nothing is kept.
 */
#include "iscsi/impl.h"

enum { IMMEDIATE_MAX = 32, AHS_EXTENDED_CDB = 1, INCOMPLETE_MAX = 16 << 20 };

static bool take_cdb(const struct iscsi_conn *c, struct scsi_task *scsi)
{
    memcpy(scsi->cdb, c->header + 32, 16);
    scsi->cdb_length = 16;
    for (uint32_t at = 0, n = iscsi_ahs_length(c->header); at + 4 <= n;) {
        const uint8_t *ahs = c->header + ISCSI_HEADER + at;
        uint32_t length = be_get16(ahs), whole = 3 + length;
        if (at + whole > n)
            return false;
        if (ahs[2] == AHS_EXTENDED_CDB) {
            if (length < 1 || length - 1 > SCSI_CDB_MAX - 16u)
                return false;
            memcpy(scsi->cdb + 16, ahs + 4, length - 1);
            scsi->cdb_length = (uint8_t)(16 + length - 1);
        }
        at += (whole + 3) & ~3u;
    }
    return true;
}

/* What the PDU itself says about its data; NULL when it is as agreed. */
static const char *check_command(const struct iscsi_conn *c)
{
    const struct iscsi_params *p = &c->params;
    uint32_t length = iscsi_data_length(c->header), expected = be_get32(c->header + 20);
    bool write = c->header[1] & ISCSI_CMD_WRITE, final = c->header[1] & ISCSI_FINAL;
    if (p->discovery)
        return "a command in a discovery session";
    if (length && !write)
        return "data with a command that writes nothing";
    if (length && !p->immediate_data)
        return "immediate data, which was not agreed on";
    if (length > p->first_burst || length > expected)
        return "more immediate data than was agreed on or announced";
    if (!final && write && p->initial_r2t)
        return "unsolicited data, which was not agreed on";
    return NULL;
}

static void fill_in(struct iscsi_conn *c, struct iscsi_task *t)
{
    const uint8_t *h = c->header;
    t->itt = iscsi_itt(h);
    t->expected = h[1] & (ISCSI_CMD_READ | ISCSI_CMD_WRITE) ? be_get32(h + 20) : 0;
    t->write = h[1] & ISCSI_CMD_WRITE;
    t->read = h[1] & ISCSI_CMD_READ;
    t->ordered = (h[1] & ISCSI_CMD_ATTR) == ISCSI_ATTR_ORDERED;
    t->unsolicited = t->write && !(h[1] & ISCSI_FINAL);
    t->cmdsn = be_get32(h + 24);
    t->began = t->progressed = clock_mono_ns(c->node->clock);
    t->scsi.nexus = c->session->nexus;
    t->scsi.lun = be_get64(h + 8);
    t->scsi.out_offered = t->write ? t->expected : 0;
    t->refused = !scsi_task_begin(&t->scsi);
    if (t->write && !t->refused)
        t->want = t->expected < t->scsi.out_wanted ? t->expected : t->scsi.out_wanted;
    iscsi_task_hash(t);
}

void iscsi_command_begin(struct iscsi_conn *c)
{
    struct iscsi_session *s = c->session;
    bool ignore;
    c->sink = SINK_DROP;
    const char *wrong = check_command(c);
    if (wrong) {
        iscsi_conn_violated(c, wrong);
        return;
    }
    if (!iscsi_session_take_cmdsn(c, &ignore) || ignore)
        return;
    if (iscsi_task_find(s, iscsi_itt(c->header)) ||
        s->commands >= c->node->limits.window + IMMEDIATE_MAX) {
        iscsi_conn_reject(c, ISCSI_REJECT_IN_PROGRESS);
        return;
    }
    struct iscsi_task *t = iscsi_task_new(s);
    memset(&t->scsi, 0, offsetof(struct scsi_task, io));
    if (!take_cdb(c, &t->scsi)) {
        iscsi_task_free(t);
        iscsi_conn_reject(c, ISCSI_REJECT_FIELD);
        return;
    }
    if (!iscsi_is_immediate(c->header)) {
        t->numbered = true;
        s->numbered++;
    }
    fill_in(c, t);
    c->task = t;
    c->sink = t->want ? SINK_TASK : SINK_DROP;
}

/* Asks for the next burst. */
static void ask(struct iscsi_conn *c, struct iscsi_task *t)
{
    uint32_t length = t->want - t->received;
    if (length > c->params.max_burst)
        length = c->params.max_burst;
    t->r2t_end = t->received + length;
    t->data_sn = 0;
    do
        t->ttt = ++t->session->ttt;
    while (t->ttt == ISCSI_NO_TAG);
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_R2T, ISCSI_FINAL, 0);
    be_put32(h + 8, (uint32_t)(t->scsi.lun >> 32));
    be_put32(h + 12, (uint32_t)t->scsi.lun);
    be_put32(h + 16, t->itt);
    be_put32(h + 20, t->ttt);
    iscsi_pdu_status(c, h, false);
    be_put32(h + 36, t->r2t_sn++);
    be_put32(h + 40, t->received);
    be_put32(h + 44, length);
    iscsi_pdu_seal(c, h);
}

static void go_on(struct iscsi_conn *c, struct iscsi_task *t)
{
    t->progressed = c->heard;
    if (t->unsolicited || t->r2t_end)
        return;
    if (t->received < t->want)
        ask(c, t);
    else
        iscsi_task_ready(t);
}

void iscsi_command_data(struct iscsi_conn *c)
{
    struct iscsi_task *t = c->task;
    if (!t)
        return;
    c->task = NULL;
    t->received = iscsi_data_length(c->header);
    go_on(c, t);
}

/* A PDU is missing or out of order: without recovery within a command (level 0) the command fails,
 * once what was announced has passed, and the connection lives. */
static void check_order(const struct iscsi_conn *c, struct iscsi_task *t)
{
    if (t->refused ||
        (be_get32(c->header + 36) == t->data_sn && be_get32(c->header + 40) == t->received))
        return;
    scsi_task_broken(&t->scsi);
    t->refused = true;
    t->want = 0;
}

/* NULL when data like this may come. */
static const char *check_data_out(const struct iscsi_conn *c, const struct iscsi_task *t)
{
    const uint8_t *h = c->header;
    uint32_t length = iscsi_data_length(h), ttt = be_get32(h + 20);
    uint64_t end = (uint64_t)t->received + length;
    bool final = h[1] & ISCSI_FINAL;
    if (ttt == ISCSI_NO_TAG ? !t->unsolicited : !t->r2t_end || ttt != t->ttt)
        return "data that was not asked for";
    if (t->unsolicited) {
        if (end > c->params.first_burst || end > t->expected)
            return "more unsolicited data than was agreed on or announced";
    } else if (end > t->r2t_end || (final && end != t->r2t_end)) {
        return "other data than was asked for";
    }
    if (c->session->out_bytes + length > INCOMPLETE_MAX && !c->session->running)
        return "too many commands whose data is incomplete";
    return NULL;
}

void iscsi_data_out_begin(struct iscsi_conn *c)
{
    c->sink = SINK_DROP;
    struct iscsi_task *t = iscsi_task_find(c->session, iscsi_itt(c->header));
    if (!t || t->state != TASK_DATA)
        return; /* of a task that was aborted */
    const char *wrong = check_data_out(c, t);
    if (wrong) {
        iscsi_conn_violated(c, wrong);
        return;
    }
    check_order(c, t);
    c->task = t;
    c->sink = t->want ? SINK_TASK : SINK_DROP;
}

void iscsi_data_out_end(struct iscsi_conn *c)
{
    struct iscsi_task *t = c->task;
    if (!t)
        return;
    c->task = NULL;
    t->received += iscsi_data_length(c->header);
    t->data_sn++;
    if (c->header[1] & ISCSI_FINAL) {
        t->unsolicited = false;
        t->r2t_end = 0;
    }
    go_on(c, t);
}

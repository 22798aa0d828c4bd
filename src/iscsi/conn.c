/*
 * A connection: bytes to PDUs, PDUs to whoever handles them, and what PDUs we send have in common.
 *
 *     header 48 ─> AHS, digest ─> [begin: where does the data go?] ─> data ─> padding, digest ─> [end]
 *
 * A header is copied together (48 bytes); data stays in the buffers it came in.
 */
#include "base/crc.h"
#include "base/log.h"
#include "iscsi/impl.h"

enum { OUT_HIGH = 4 << 20, OUT_LOW = 2 << 20 };

struct iscsi_conn *iscsi_conn_new(struct iscsi_node *node, struct io_queue *out,
                                  const struct iscsi_conn_ops *ops, void *carrier,
                                  const char *local, const char *peer)
{
    struct iscsi_conn *c = NEW(struct iscsi_conn);
    c->node = node;
    c->out = out;
    c->ops = ops;
    c->carrier = carrier;
    c->local = mem_strdup(local);
    c->peer = mem_strdup(peer);
    c->header_size = ISCSI_HEADER;
    c->first_login = true;
    c->began = c->heard = clock_mono_ns(node->clock);
    iscsi_params_init(&c->params);
    return c;
}

void *iscsi_conn_carrier(const struct iscsi_conn *c)
{
    return c->carrier;
}

static void stop_waiting(struct iscsi_conn *c)
{
    list_for_each(&c->node->sessions, s, struct iscsi_session, link) {
        if (s->waiting == c)
            s->waiting = NULL;
    }
}

void iscsi_conn_free(struct iscsi_conn *c)
{
    struct iscsi_session *s = c->session;
    c->closing = true;
    stop_waiting(c);
    if (s) {
        s->conn = NULL;
        c->session = NULL;
        iscsi_session_end(s);
    }
    str_done(&c->text);
    str_done(&c->text_request);
    str_done(&c->login_answer);
    free(c->local);
    free(c->peer);
    free(c);
}

void iscsi_conn_close(struct iscsi_conn *c, bool at_once)
{
    if (c->closing)
        return;
    c->closing = true;
    c->ops->close(c, at_once);
}

/* What we send. */

uint8_t *iscsi_pdu_begin(struct iscsi_conn *c, enum iscsi_opcode opcode, uint8_t flags,
                         uint32_t data_length)
{
    uint8_t *h = io_queue_reserve(c->out, ISCSI_HEADER + (c->header_digest ? ISCSI_DIGEST : 0));
    memset(h, 0, ISCSI_HEADER);
    h[0] = (uint8_t)opcode;
    h[1] = flags;
    iscsi_put24(h + 5, data_length);
    return h;
}

void iscsi_pdu_status(struct iscsi_conn *c, uint8_t *h, bool counts)
{
    const struct iscsi_session *s = c->session;
    iscsi_put32(h + 24, c->stat_sn);
    if (counts)
        c->stat_sn++;
    iscsi_put32(h + 28, s ? s->exp_cmdsn : c->exp_cmdsn);
    iscsi_put32(h + 32, s ? iscsi_session_max_cmdsn(s) : c->exp_cmdsn);
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
    iscsi_put32(h + 16, ISCSI_NO_TAG);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    iscsi_pdu_text(c, c->header, ISCSI_HEADER);
    iscsi_count(&c->node->stats.rejects, 1);
}

void iscsi_conn_violated(struct iscsi_conn *c, const char *what)
{
    if (c->closing)
        return;
    log_warn("iscsi connection ended", LOG_S("peer", c->peer), LOG_S("initiator", c->initiator),
             LOG_S("why", what));
    if (c->phase == PHASE_FULL)
        iscsi_conn_reject(c, ISCSI_REJECT_PROTOCOL);
    iscsi_conn_close(c, false);
}

/* NOP and logout. */

static void nop_out(struct iscsi_conn *c)
{
    if (iscsi_itt(c->header) == ISCSI_NO_TAG) { /* an answer, or only numbers */
        if (iscsi_get32(c->header + 20) == c->ping)
            c->ping = 0;
        return;
    }
    uint32_t n = (uint32_t)c->text.len;
    if (n > c->params.max_send)
        n = c->params.max_send;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_NOP_IN, ISCSI_FINAL, n);
    memcpy(h + 8, c->header + 8, 8);
    memcpy(h + 16, c->header + 16, 4);
    iscsi_put32(h + 20, ISCSI_NO_TAG);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    iscsi_pdu_text(c, str_get(&c->text), n);
}

static void ask_alive(struct iscsi_conn *c)
{
    c->ping = ++c->session->ttt ? c->session->ttt : 1;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_NOP_IN, ISCSI_FINAL, 0);
    iscsi_put32(h + 16, ISCSI_NO_TAG);
    iscsi_put32(h + 20, c->ping);
    iscsi_pdu_status(c, h, false);
    iscsi_pdu_seal(c, h);
}

static void logout(struct iscsi_conn *c)
{
    enum { CLOSE_SESSION, CLOSE_CONNECTION, RECOVER, NO_RECOVERY = 2, NO_CID = 1 };
    uint8_t reason = c->header[1] & 0x7f, answer = 0;
    if (reason == RECOVER)
        answer = NO_RECOVERY;
    else if (reason == CLOSE_CONNECTION && iscsi_get16(c->header + 20) != c->cid)
        answer = NO_CID;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_LOGOUT_RESPONSE, ISCSI_FINAL, 0);
    h[2] = answer;
    memcpy(h + 16, c->header + 16, 4);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    if (answer == 0) {
        log_info("iscsi logout", LOG_S("initiator", c->initiator), LOG_S("peer", c->peer));
        iscsi_conn_close(c, false);
    }
}

/* Receiving. */

/* PDUs that wait for their turn by CmdSN; immediate ones carry it too. */
static bool in_turn(struct iscsi_conn *c)
{
    bool ignore = false;
    return iscsi_session_take_cmdsn(c, &ignore) && !ignore;
}

/* The header is complete: is it one that may come now, and where does its data go? */
static void begin_full(struct iscsi_conn *c)
{
    c->sink = SINK_TEXT;
    switch (iscsi_opcode(c->header)) {
    case ISCSI_COMMAND:
        iscsi_command_begin(c);
        break;
    case ISCSI_DATA_OUT:
        iscsi_data_out_begin(c);
        break;
    default:
        break;
    }
}

static void end_full(struct iscsi_conn *c)
{
    switch (iscsi_opcode(c->header)) {
    case ISCSI_COMMAND:
        iscsi_command_data(c);
        break;
    case ISCSI_DATA_OUT:
        iscsi_data_out_end(c);
        break;
    case ISCSI_NOP_OUT:
        if (iscsi_itt(c->header) == ISCSI_NO_TAG || in_turn(c))
            nop_out(c);
        break;
    case ISCSI_TASK_REQUEST:
        if (in_turn(c))
            iscsi_manage_request(c);
        break;
    case ISCSI_TEXT_REQUEST:
        if (in_turn(c))
            iscsi_text_request(c);
        break;
    case ISCSI_LOGOUT_REQUEST:
        if (in_turn(c))
            logout(c);
        break;
    case ISCSI_SNACK:
        iscsi_conn_reject(c, ISCSI_REJECT_SNACK);
        break;
    case ISCSI_LOGIN_REQUEST:
        iscsi_conn_violated(c, "a login request in full feature phase");
        break;
    default:
        iscsi_conn_reject(c, ISCSI_REJECT_UNSUPPORTED);
        break;
    }
}

static bool check_header(struct iscsi_conn *c)
{
    uint32_t most = c->phase == PHASE_FULL ? c->params.max_recv : ISCSI_LOGIN_RECV;
    if (c->header_digest) {
        uint32_t is, size = c->header_size - ISCSI_DIGEST;
        memcpy(&is, c->header + size, sizeof(is));
        if (is != crc_32c(c->header, size)) {
            iscsi_count(&c->node->stats.digest_errors, 1);
            log_warn("iscsi header digest wrong", LOG_S("peer", c->peer));
            iscsi_conn_close(c, true); /* where the next PDU begins is not known any more */
            return false;
        }
    }
    if (iscsi_data_length(c->header) > most) {
        iscsi_conn_violated(c, "a data segment longer than MaxRecvDataSegmentLength");
        return false;
    }
    return true;
}

static void begin_pdu(struct iscsi_conn *c)
{
    if (!check_header(c))
        return;
    uint32_t length = iscsi_data_length(c->header);
    c->data_left = length;
    c->data_tail = length ? iscsi_padding(length) + (c->data_digest ? ISCSI_DIGEST : 0) : 0;
    c->tail_used = 0;
    c->crc = 0;
    c->task = NULL;
    str_clear(&c->text);
    if (c->phase == PHASE_FULL)
        begin_full(c);
    else if (iscsi_opcode(c->header) == ISCSI_LOGIN_REQUEST)
        c->sink = SINK_TEXT;
    else
        iscsi_conn_violated(c, "not a login request, before the login");
}

static bool check_data(struct iscsi_conn *c)
{
    if (!c->data_digest || !iscsi_data_length(c->header))
        return true;
    uint32_t padding = c->data_tail - ISCSI_DIGEST, is;
    memcpy(&is, c->tail + padding, sizeof(is));
    if (is == crc_32c_more(c->crc, c->tail, padding))
        return true;
    iscsi_count(&c->node->stats.digest_errors, 1);
    log_warn("iscsi data digest wrong", LOG_S("peer", c->peer));
    iscsi_conn_reject(c, ISCSI_REJECT_DATA_DIGEST);
    iscsi_conn_close(c, false);
    return false;
}

static void end_pdu(struct iscsi_conn *c)
{
    if (!check_data(c))
        return;
    if (c->phase == PHASE_FULL)
        end_full(c);
    else
        iscsi_login_request(c);
    c->header_used = 0;
    c->header_size = ISCSI_HEADER;
}

static void take_data(struct iscsi_conn *c, struct io_buf *buf, const uint8_t *data, uint32_t n)
{
    if (c->data_digest)
        c->crc = crc_32c_more(c->crc, data, n);
    if (c->sink == SINK_TASK)
        iscsi_task_keep(c->task, buf, data, n);
    else if (c->sink == SINK_TEXT)
        str_append_n(&c->text, data, n);
}

static uint32_t least(uint32_t a, size_t b)
{
    return b < a ? (uint32_t)b : a;
}

/* True when the header has become complete. */
static bool take_header(struct iscsi_conn *c, const uint8_t **data, size_t *n)
{
    uint32_t part = least(c->header_size - c->header_used, *n);
    memcpy(c->header + c->header_used, *data, part);
    *data += part;
    *n -= part;
    c->header_used += part;
    if (c->header_used == ISCSI_HEADER)
        c->header_size =
            ISCSI_HEADER + iscsi_ahs_length(c->header) + (c->header_digest ? ISCSI_DIGEST : 0);
    return c->header_used == c->header_size;
}

void iscsi_conn_received(struct iscsi_conn *c, struct io_buf *buf, const uint8_t *data, size_t n)
{
    while (n && !c->closing) {
        if (c->header_used < c->header_size) {
            if (!take_header(c, &data, &n))
                continue;
            begin_pdu(c);
        } else if (c->data_left) {
            uint32_t part = least(c->data_left, n);
            take_data(c, buf, data, part);
            c->data_left -= part;
            data += part;
            n -= part;
        } else {
            uint32_t part = least(c->data_tail - c->tail_used, n);
            memcpy(c->tail + c->tail_used, data, part);
            c->tail_used += part;
            data += part;
            n -= part;
        }
        if (!c->closing && c->header_used == c->header_size && !c->data_left &&
            c->tail_used == c->data_tail)
            end_pdu(c);
    }
}

void iscsi_conn_turn(struct iscsi_conn *c)
{
    c->heard = clock_mono_ns(c->node->clock);
    if (c->session && !c->closing)
        iscsi_session_run(c->session);
    iscsi_conn_settle(c);
}

void iscsi_conn_sent(struct iscsi_conn *c)
{
    if (c->session && !c->closing)
        iscsi_session_run(c->session);
    iscsi_conn_settle(c);
}

/* Reading stops while more is kept than the limits allow, as long as something will change that. */
void iscsi_conn_settle(struct iscsi_conn *c)
{
    const struct iscsi_session *s = c->session;
    bool full =
        c->out->bytes > (c->paused ? OUT_LOW : OUT_HIGH) ||
        (s && s->out_bytes > c->node->limits.session_out && (s->running || !list_empty(&s->ready)));
    if (full != c->paused && !c->closing) {
        c->paused = full;
        c->ops->pause(c, full);
    }
}

static bool stalled(const struct iscsi_conn *c, int64_t now)
{
    list_for_each(&c->session->tasks, t, struct iscsi_task, link) {
        if (t->state == TASK_DATA && now - t->progressed > c->node->limits.login_ns * 4)
            return true;
    }
    return false;
}

void iscsi_conn_tick(struct iscsi_conn *c)
{
    const struct iscsi_limits *l = &c->node->limits;
    int64_t now = clock_mono_ns(c->node->clock);
    if (c->closing) {
        if (now - c->heard > l->answer_ns)
            c->ops->close(c, true); /* it does not take what is left for it */
        return;
    }
    const char *why = NULL;
    if (c->phase != PHASE_FULL)
        why = now - c->began > l->login_ns ? "no login in time" : NULL;
    else if (!c->session)
        return;
    else if (c->ping && !c->paused && now - c->heard > l->idle_ns + l->answer_ns)
        why = "no answer to a NOP";
    else if (stalled(c, now))
        why = "no data for a command";
    else if (!c->ping && now - c->heard > l->idle_ns)
        ask_alive(c);
    if (why) {
        log_warn("iscsi connection ended", LOG_S("peer", c->peer), LOG_S("initiator", c->initiator),
                 LOG_S("why", why));
        iscsi_conn_close(c, true);
    }
}

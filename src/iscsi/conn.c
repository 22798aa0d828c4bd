/*
 * A connection: its life, its limits in time and memory, and the PDUs that are about itself.
 */
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

void iscsi_nop_out(struct iscsi_conn *c)
{
    if (iscsi_itt(c->header) == ISCSI_NO_TAG) { /* an answer, or only numbers */
        if (be_get32(c->header + 20) == c->ping)
            c->ping = 0;
        return;
    }
    uint32_t n = (uint32_t)c->text.len;
    if (n > c->params.max_send)
        n = c->params.max_send;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_NOP_IN, ISCSI_FINAL, n);
    memcpy(h + 8, c->header + 8, 8);
    memcpy(h + 16, c->header + 16, 4);
    be_put32(h + 20, ISCSI_NO_TAG);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    iscsi_pdu_text(c, str_get(&c->text), n);
}

static void ask_alive(struct iscsi_conn *c)
{
    c->ping = ++c->session->ttt ? c->session->ttt : 1;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_NOP_IN, ISCSI_FINAL, 0);
    be_put32(h + 16, ISCSI_NO_TAG);
    be_put32(h + 20, c->ping);
    iscsi_pdu_status(c, h, false);
    iscsi_pdu_seal(c, h);
}

void iscsi_logout(struct iscsi_conn *c)
{
    enum { CLOSE_SESSION, CLOSE_CONNECTION, RECOVER, NO_RECOVERY = 2, NO_CID = 1 };
    uint8_t reason = c->header[1] & 0x7f, answer = 0;
    if (reason == RECOVER)
        answer = NO_RECOVERY;
    else if (reason == CLOSE_CONNECTION && be_get16(c->header + 20) != c->cid)
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

/*
 * Task management. Tasks that are not with the unit yet end at once and silently. Those that are with
 * it end in their time, and the answer waits for the last of them, so that after it nothing of what was
 * aborted can still happen.
 */
#include "base/log.h"
#include "iscsi/impl.h"

static void answer(struct iscsi_conn *c, uint32_t itt, enum iscsi_task_answer code)
{
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_TASK_RESPONSE, ISCSI_FINAL, 0);
    h[2] = (uint8_t)code;
    be_put32(h + 16, itt);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
}

/* Is this task one that the function is about? */
static bool concerns(const struct iscsi_task *m, const struct iscsi_task *t)
{
    if (t->state == TASK_MANAGING || t->serial > m->upto)
        return false;
    if (m->function == ISCSI_ABORT_TASK)
        return t->session == m->session && t->itt == m->itt_aborted;
    if (m->whole_unit)
        return t->session->target == m->target;
    return t->session == m->session;
}

static bool some_left(const struct iscsi_task *m)
{
    list_for_each(&m->session->node->sessions, s, struct iscsi_session, link) {
        list_for_each(&s->tasks, t, struct iscsi_task, link) {
            if (concerns(m, t))
                return true;
        }
    }
    return false;
}

void iscsi_manage_check(struct iscsi_node *node)
{
    list_for_each_safe(&node->managing, m, struct iscsi_task, queued) {
        struct iscsi_session *s = m->session;
        if (some_left(m))
            continue;
        if (s->conn && !s->conn->closing)
            answer(s->conn, m->itt, ISCSI_TASK_COMPLETE);
        iscsi_task_free(m);
    }
}

static struct iscsi_task *next_to_abort(const struct iscsi_task *m)
{
    list_for_each(&m->session->node->sessions, s, struct iscsi_session, link) {
        list_for_each(&s->tasks, t, struct iscsi_task, link) {
            if (!t->aborted && concerns(m, t))
                return t;
        }
    }
    return NULL;
}

/* A task may end inside the abort, and others with it: hence the search from the start each time. */
static void abort_all(const struct iscsi_task *m)
{
    for (struct iscsi_task *t; (t = next_to_abort(m));) {
        iscsi_count(&t->session->node->stats.aborts, 1);
        if (t->session != m->session && m->function == ISCSI_CLEAR_TASK_SET)
            scsi_nexus_cleared(t->session->nexus); /* of a reset all are told */
        iscsi_task_abort(t);
    }
}

static void begin(struct iscsi_conn *c, uint8_t function, uint32_t itt_aborted)
{
    struct iscsi_session *s = c->session;
    struct iscsi_task *m = iscsi_task_new(s);
    m->state = TASK_MANAGING;
    m->itt = iscsi_itt(c->header);
    m->function = function;
    m->itt_aborted = itt_aborted;
    m->upto = m->serial;
    m->target = s->target;
    m->whole_unit = function == ISCSI_CLEAR_TASK_SET || function >= ISCSI_LUN_RESET;
    struct iscsi_node *node = c->node;
    abort_all(m);
    if (function >= ISCSI_LUN_RESET)
        scsi_unit_reset(s->target->unit, s->nexus);
    list_push(&node->managing, &m->queued); /* not before: tasks that end look there */
    iscsi_manage_check(node);
}

static void close_others(struct iscsi_conn *c)
{
    list_for_each(&c->node->sessions, s, struct iscsi_session, link) {
        if (s->conn && s->target == c->target)
            iscsi_conn_close(s->conn, s->conn != c);
    }
}

void iscsi_manage_request(struct iscsi_conn *c)
{
    uint8_t function = c->header[1] & 0x7f;
    uint32_t itt = iscsi_itt(c->header), aborted = be_get32(c->header + 20);
    if (!c->session->nexus) {
        iscsi_conn_violated(c, "task management in a discovery session");
        return;
    }
    bool wrong_lun = function <= ISCSI_LUN_RESET &&
                     !scsi_unit_is(c->session->target->unit, be_get64(c->header + 8));
    switch (function) {
    case ISCSI_ABORT_TASK:
        if (!iscsi_task_find(c->session, aborted))
            answer(c, itt, ISCSI_TASK_UNKNOWN);
        else
            begin(c, function, aborted);
        break;
    case ISCSI_ABORT_TASK_SET:
    case ISCSI_CLEAR_TASK_SET:
    case ISCSI_LUN_RESET:
    case ISCSI_WARM_RESET:
        if (wrong_lun)
            answer(c, itt, ISCSI_TASK_NO_LUN);
        else
            begin(c, function, 0);
        break;
    case ISCSI_COLD_RESET: /* as the power would: all sessions of the target end */
        begin(c, function, 0);
        close_others(c);
        break;
    case ISCSI_REASSIGN:
        answer(c, itt, ISCSI_TASK_NO_REASSIGN);
        break;
    default: /* CLEAR ACA: there is no ACA */
        answer(c, itt, function == ISCSI_CLEAR_ACA ? ISCSI_TASK_UNSUPPORTED : ISCSI_TASK_REJECTED);
        break;
    }
}

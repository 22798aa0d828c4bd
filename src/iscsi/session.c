/*
 * Sessions: identity, command numbers, and their end.
 *
 * The window: an initiator may send commands up to MaxCmdSN, which is ExpCmdSN + (what is free of the
 * window) - 1. It never goes back: a command that comes moves ExpCmdSN on and takes a place, so their
 * sum stays; one that ends gives the place back.
 */
#include <stdio.h>

#include "iscsi/impl.h"

struct iscsi_session *iscsi_session_find(struct iscsi_node *node, const struct iscsi_conn *c)
{
    list_for_each(&node->sessions, s, struct iscsi_session, link) {
        if (s->target == c->target && memcmp(s->isid, c->isid, sizeof(s->isid)) == 0 &&
            strcasecmp(s->initiator, c->initiator) == 0)
            return s;
    }
    return NULL;
}

static bool tsih_used(const struct iscsi_node *node, uint16_t tsih)
{
    list_for_each(&node->sessions, s, struct iscsi_session, link) {
        if (s->tsih == tsih)
            return true;
    }
    return tsih == 0;
}

static void make_nexus(struct iscsi_session *s)
{
    char initiator[ISCSI_NAME_MAX + 32], target[ISCSI_NAME_MAX + 32];
    const uint8_t *i = s->isid;
    snprintf(initiator, sizeof(initiator), "%s,i,0x%02x%02x%02x%02x%02x%02x", s->initiator, i[0],
             i[1], i[2], i[3], i[4], i[5]);
    snprintf(target, sizeof(target), "%s,t,0x%04x", s->target->name, PORTAL_GROUP);
    s->nexus = scsi_nexus_new(s->target->unit, initiator, target, PORTAL_GROUP);
}

struct iscsi_session *iscsi_session_new(struct iscsi_conn *c)
{
    struct iscsi_node *node = c->node;
    struct iscsi_session *s = NEW(struct iscsi_session);
    s->node = node;
    s->target = c->target;
    s->conn = c;
    memcpy(s->isid, c->isid, sizeof(s->isid));
    memcpy(s->initiator, c->initiator, sizeof(s->initiator));
    snprintf(s->address, sizeof(s->address), "%s", c->peer);
    do
        node->last_tsih++;
    while (tsih_used(node, node->last_tsih));
    s->tsih = node->last_tsih;
    s->exp_cmdsn = c->exp_cmdsn;
    s->since = clock_mono_ns(node->clock);
    list_init(&s->tasks);
    list_init(&s->ready);
    list_push(&node->sessions, &s->link);
    iscsi_count(&node->stats.sessions, 1);
    if (s->target)
        make_nexus(s);
    return s;
}

static void free_session(struct iscsi_session *s)
{
    struct iscsi_conn *waiting = s->waiting;
    if (s->nexus)
        scsi_nexus_free(s->nexus);
    list_unlink(&s->link);
    iscsi_count(&s->node->stats.sessions, (uint64_t)-1);
    free(s);
    if (waiting)
        iscsi_login_finish(waiting);
}

static struct iscsi_task *next_to_abort(const struct iscsi_session *s)
{
    list_for_each(&s->tasks, t, struct iscsi_task, link) {
        if (!t->aborted)
            return t;
    }
    return NULL;
}

void iscsi_session_end(struct iscsi_session *s)
{
    s->ending = true; /* tasks that end at once leave the rest to us */
    for (struct iscsi_task *t; (t = next_to_abort(s));) /* others may end with it: search anew */
        iscsi_task_abort(t);
    s->ending = false;
    if (list_empty(&s->tasks))
        free_session(s);
}

uint32_t iscsi_session_max_cmdsn(const struct iscsi_session *s)
{
    unsigned window = s->node->limits.window;
    return s->exp_cmdsn + (window > s->numbered ? window - s->numbered : 0) - 1;
}

bool iscsi_session_take_cmdsn(struct iscsi_conn *c, bool *ret_ignore)
{
    struct iscsi_session *s = c->session;
    uint32_t sn = be_get32(c->header + 24);
    *ret_ignore = false;
    if (iscsi_is_immediate(c->header))
        return true;
    if (iscsi_sn_before(sn, s->exp_cmdsn) || iscsi_sn_before(iscsi_session_max_cmdsn(s), sn)) {
        *ret_ignore = true; /* outside of the window, or a duplicate: RFC 7143, 4.2.2.1 */
        return true;
    }
    if (sn != s->exp_cmdsn) {
        iscsi_conn_violated(c, "a gap in CmdSN, which one connection cannot fill");
        return false;
    }
    s->exp_cmdsn++;
    return true;
}

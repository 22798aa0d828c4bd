/*
 * The login phase.
 *
 *     SECURITY ──T, authenticated──> OPERATIONAL ──T──> FULL
 *         └────────────────T, NSG=3, authenticated─────────^
 *
 * Each request carries keys; each gets an answer with ours. The initiator asks for the next stage with
 * T, and gets it once nothing of this one is open. A request in several PDUs (C) is read whole first.
 * What is wrong is answered with a status, then the connection is closed.
 */
#include <stdio.h>

#include "base/log.h"
#include "iscsi/impl.h"

enum { TRANSIT = 0x80, STAGE_SECURITY = 0, STAGE_OPERATIONAL = 1, STAGE_FULL = 3 };

/* Status class and detail. */
enum login_status {
    SUCCESS = 0x0000,
    INITIATOR_ERROR = 0x0200,
    AUTHENTICATION_FAILED = 0x0201,
    NOT_ALLOWED = 0x0202,
    NO_SUCH_TARGET = 0x0203,
    UNSUPPORTED_VERSION = 0x0205,
    TOO_MANY_CONNECTIONS = 0x0206,
    MISSING_PARAMETER = 0x0207,
    NO_SESSION = 0x020a,
    INVALID_DURING_LOGIN = 0x020b,
    TARGET_ERROR = 0x0300,
    UNAVAILABLE = 0x0301,
    OUT_OF_RESOURCES = 0x0302,
};

static void answer(struct iscsi_conn *c, uint8_t flags, enum login_status status,
                   const struct str *text)
{
    uint32_t n = text ? (uint32_t)text->len : 0;
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_LOGIN_RESPONSE, flags, n);
    memcpy(h + 8, c->isid, sizeof(c->isid));
    be_put16(h + 14, c->session ? c->session->tsih : c->tsih);
    be_put32(h + 16, c->login_itt);
    iscsi_pdu_status(c, h, true);
    h[36] = (uint8_t)(status >> 8);
    h[37] = (uint8_t)status;
    iscsi_pdu_seal(c, h);
    if (n)
        iscsi_pdu_text(c, text->p, n);
}

static void refuse(struct iscsi_conn *c, enum login_status status, const char *why)
{
    iscsi_count(&c->node->stats.login_failures, 1);
    log_warn("iscsi login refused", LOG_S("peer", c->peer), LOG_S("initiator", c->initiator),
             LOG_S("target", c->target ? c->target->name : NULL), LOG_S("why", why));
    answer(c, 0, status, NULL);
    iscsi_conn_close(c, false);
}

static struct iscsi_target *find_target(const struct iscsi_node *node, const char *name)
{
    list_for_each(&node->targets, t, struct iscsi_target, link) {
        if (strcasecmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

/* Who, and to what: keys of the first request. */

struct who {
    const char *initiator, *target, *type, *auth;
};

static bool allowed(const struct iscsi_target *t, const char *initiator)
{
    if (t->any_initiator)
        return true;
    vec_for_each(&t->initiators, it) {
        if (strcasecmp(*it, initiator) == 0)
            return true;
    }
    return false;
}

static bool take_who(struct iscsi_conn *c, const struct who *w)
{
    if (!w->initiator || !iscsi_name_valid(w->initiator)) {
        refuse(c, MISSING_PARAMETER, "no valid InitiatorName");
        return false;
    }
    snprintf(c->initiator, sizeof(c->initiator), "%s", w->initiator);
    c->params.discovery = w->type && str_eq(w->type, "Discovery");
    if (c->params.discovery)
        return true;
    if (!w->target) {
        refuse(c, MISSING_PARAMETER, "no TargetName");
        return false;
    }
    c->target = find_target(c->node, w->target);
    if (!c->target) {
        refuse(c, NO_SUCH_TARGET, "there is no such target");
        return false;
    }
    if (!allowed(c->target, c->initiator)) {
        refuse(c, NOT_ALLOWED, "this initiator is not allowed");
        return false;
    }
    return true;
}

/* Whose secret is asked for. Who may know what there is here is who may use it: targets that are served together
 * are one owner's. */
static const struct iscsi_auth *auth_of(const struct iscsi_conn *c)
{
    if (c->target)
        return &c->target->auth;
    list_for_each(&c->node->targets, t, struct iscsi_target, link) {
        if (t->auth.user)
            return &t->auth;
    }
    return NULL;
}

/* Whether CHAP is needed to go on. */
static bool needs_auth(const struct iscsi_conn *c)
{
    const struct iscsi_auth *auth = auth_of(c);
    return auth && auth->user;
}

static bool choose_auth(struct iscsi_conn *c, const char *offered, struct str *out)
{
    bool chap = iscsi_text_has(offered, "CHAP"), none = iscsi_text_has(offered, "None");
    if (needs_auth(c) ? !chap : !none) {
        refuse(c, AUTHENTICATION_FAILED,
               needs_auth(c) ? "CHAP is needed and was not offered" : "only CHAP was offered");
        return false;
    }
    iscsi_text_add(out, "AuthMethod", needs_auth(c) ? "CHAP" : "None");
    c->chose_auth = true;
    if (needs_auth(c))
        iscsi_chap_init(&c->chap, auth_of(c));
    else
        c->authenticated = true;
    return true;
}

static bool step_chap(struct iscsi_conn *c, struct str *out)
{
    if (!needs_auth(c) || !c->chose_auth || c->authenticated)
        return true;
    switch (iscsi_chap_step(&c->chap, out)) {
    case ISCSI_CHAP_FAILED:
        refuse(c, AUTHENTICATION_FAILED, "CHAP: wrong name, secret or algorithm");
        return false;
    case ISCSI_CHAP_DONE:
        c->authenticated = true;
        return true;
    default:
        return true;
    }
}

/* What we tell without being asked, once. */
static void declare(struct iscsi_conn *c, struct str *out)
{
    if (c->declared)
        return;
    c->declared = true;
    if (c->target) {
        iscsi_text_add_number(out, "TargetPortalGroupTag", PORTAL_GROUP);
        if (c->target->alias)
            iscsi_text_add(out, "TargetAlias", c->target->alias);
    }
}

/* Keys of a request; false after a refusal. */
static bool take_keys(struct iscsi_conn *c, unsigned stage, struct who *w, struct str *out)
{
    size_t at = 0;
    bool bad = false;
    const char *key, *value;
    while (iscsi_text_next(c->text.p, c->text.len, &at, &key, &value, &bad)) {
        if (strlen(value) > ISCSI_TEXT_MAX / 2)
            bad = true;
        if (bad)
            break;
        if (str_eq(key, "InitiatorName"))
            w->initiator = value;
        else if (str_eq(key, "TargetName"))
            w->target = value;
        else if (str_eq(key, "SessionType"))
            w->type = value;
        else if (str_eq(key, "AuthMethod"))
            w->auth = value;
        else if (stage == STAGE_SECURITY && iscsi_chap_key(&c->chap, key, value))
            continue;
        else {
            switch (iscsi_params_offer(&c->params, &c->seen, key, value, out)) {
            case ISCSI_KEY_UNKNOWN:
                iscsi_text_add(out, key, "NotUnderstood");
                break;
            case ISCSI_KEY_TWICE:
                bad = true;
                break;
            default:
                break;
            }
        }
        if (out->len > ISCSI_LOGIN_RECV - 512)
            bad = true;
    }
    if (bad)
        refuse(c, INITIATOR_ERROR, "keys that cannot be read, or one twice");
    return !bad;
}

/* The end: a session, when the one it replaces is gone. */

static void begin_session(struct iscsi_conn *c, uint8_t flags, struct str *text)
{
    c->login_flags = flags;
    str_clear(&c->login_answer);
    if (text->len)
        str_append_n(&c->login_answer, text->p, text->len);
    if (c->tsih) {
        refuse(c, TOO_MANY_CONNECTIONS, "a session has one connection only");
        return;
    }
    struct iscsi_session *old = c->params.discovery ? NULL : iscsi_session_find(c->node, c);
    if (!old && iscsi_node_sessions(c->node) >= c->node->limits.sessions) {
        refuse(c, OUT_OF_RESOURCES, "there are too many sessions");
        return;
    }
    if (!old) {
        iscsi_login_finish(c);
        return;
    }
    log_info("iscsi session reinstated", LOG_S("initiator", c->initiator), LOG_S("peer", c->peer));
    if (old->waiting)
        iscsi_conn_close(old->waiting, true);
    old->waiting = c;
    struct iscsi_conn *was = old->conn;
    if (was) {
        was->session = NULL;
        old->conn = NULL;
        iscsi_conn_close(was, true);
    }
    iscsi_session_end(old); /* comes back with iscsi_login_finish() */
}

void iscsi_login_finish(struct iscsi_conn *c)
{
    if (c->closing)
        return;
    iscsi_params_settle(&c->params);
    c->session = iscsi_session_new(c);
    answer(c, c->login_flags, SUCCESS, &c->login_answer);
    str_done(&c->login_answer);
    c->phase = PHASE_FULL;
    c->header_digest = c->params.header_digest;
    c->data_digest = c->params.data_digest;
    iscsi_count(&c->node->stats.logins, 1);
    log_info("iscsi login", LOG_S("initiator", c->initiator), LOG_S("peer", c->peer),
             LOG_S("target", c->target ? c->target->name : "(discovery)"),
             LOG_U("tsih", c->session->tsih), LOG_B("chap", needs_auth(c)),
             LOG_B("headerDigest", c->header_digest), LOG_B("dataDigest", c->data_digest));
    c->ops->logged_in(c);
}

static bool take_header(struct iscsi_conn *c)
{
    const uint8_t *h = c->header;
    c->login_itt = iscsi_itt(h);
    if (c->first_login) {
        memcpy(c->isid, h + 8, sizeof(c->isid));
        c->tsih = be_get16(h + 14);
        c->cid = be_get16(h + 20);
        c->exp_cmdsn = be_get32(h + 24);
        c->stat_sn = be_get32(h + 28);
    }
    if (h[3] != 0) { /* the least version that the initiator takes */
        refuse(c, UNSUPPORTED_VERSION, "a version of iSCSI that is not known");
        return false;
    }
    if (c->node->draining) {
        refuse(c, UNAVAILABLE, "the target is stopping");
        return false;
    }
    unsigned stage = h[1] >> 2 & 3;
    unsigned is = c->phase == PHASE_SECURITY ? STAGE_SECURITY : STAGE_OPERATIONAL;
    bool skips = c->first_login && stage == STAGE_OPERATIONAL;
    if (iscsi_ahs_length(h) || (stage != is && !skips) ||
        (!c->first_login && memcmp(c->isid, h + 8, sizeof(c->isid)) != 0)) {
        refuse(c, INVALID_DURING_LOGIN, "a request of another stage");
        return false;
    }
    return true;
}

void iscsi_login_request(struct iscsi_conn *c)
{
    if (!take_header(c))
        return;
    unsigned stage = c->header[1] >> 2 & 3, next = c->header[1] & 3;
    bool transit = c->header[1] & TRANSIT;
    if (c->text_request.len + c->text.len > ISCSI_TEXT_MAX) {
        refuse(c, INITIATOR_ERROR, "too many keys");
        return;
    }
    str_append_n(&c->text_request, str_get(&c->text), c->text.len);
    c->phase = stage == STAGE_SECURITY ? PHASE_SECURITY : PHASE_OPERATIONAL;
    if (c->header[1] & ISCSI_CONTINUE) { /* the rest comes in the next */
        answer(c, (uint8_t)(stage << 2), SUCCESS, NULL);
        c->first_login = false;
        return;
    }
    str_clear(&c->text);
    str_append_n(&c->text, str_get(&c->text_request), c->text_request.len);
    str_append_c(&c->text, '\0');
    str_clear(&c->text_request);

    struct who w = {0};
    _cleanup_(str_done) struct str out = {0};
    bool introduce = !*c->initiator;
    if (!take_keys(c, stage, &w, &out) || (introduce && !take_who(c, &w)))
        return;
    declare(c, &out);
    if (w.auth && !c->chose_auth && stage == STAGE_SECURITY && !choose_auth(c, w.auth, &out))
        return;
    if (stage == STAGE_SECURITY && !step_chap(c, &out))
        return;
    if (stage == STAGE_OPERATIONAL && needs_auth(c) && !c->authenticated) {
        refuse(c, AUTHENTICATION_FAILED, "CHAP is needed");
        return;
    }
    c->first_login = false;
    /* A stage ends when the initiator asks for that and we have nothing open in it. */
    if (transit && (next <= stage || next == 2)) {
        refuse(c, INITIATOR_ERROR, "a stage that does not follow");
        return;
    }
    if (stage == STAGE_SECURITY && needs_auth(c) && !c->authenticated)
        transit = false;
    if (stage == STAGE_OPERATIONAL && !c->told_recv) {
        iscsi_text_add_number(&out, "MaxRecvDataSegmentLength", c->params.max_recv);
        c->told_recv = true;
    }
    uint8_t flags = (uint8_t)(stage << 2);
    if (transit)
        flags = (uint8_t)(TRANSIT | stage << 2 | next);
    if (transit && next == STAGE_FULL) {
        begin_session(c, flags, &out);
        return;
    }
    if (transit)
        c->phase = PHASE_OPERATIONAL;
    answer(c, flags, SUCCESS, &out);
}

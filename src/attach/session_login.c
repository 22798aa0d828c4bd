/*
 * From nothing to a session that is ready: connect, log in, READ CAPACITY, and two pages of limits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/session_impl.h"
#include "base/log.h"

#define RETRY_CONTEXT (2 * CLOCK_SECOND)
#define LOGIN_TIME    (5 * CLOCK_SECOND) /* from the first packet to READY */

enum {
    TRANSFER_MOST = 1 << 20,
    SAME_MOST = 1 << 30,    /* bytes of one WRITE SAME where the target names no limit */
    ISID_NUMBER = 0x6f726c, /* any: the same for all sessions of an initiator */
};

static void become_ready(struct attach_session *s)
{
    s->state = READY;
    s->pause = 0;
    s->again_at = 0;
    s->heard = s->now;
    s->facts.logins++;
    s->facts.refused = ERR_OK;
    log_info("logged in", LOG_S("portal", s->o.portal), LOG_S("target", s->o.iqn),
             LOG_U("size", s->facts.size));
}

/* A page that the target does not have leaves the defaults. */
static void provisioning_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi;
    struct attach_session *s = private;
    struct scsi_task *t = data;
    struct scsi_inquiry_logical_block_provisioning *p =
        t && status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(t) : NULL;
    s->unmaps = p && p->lbpws;
    if (t)
        scsi_free_scsi_task(t);
    if (status == SCSI_STATUS_GOOD || status == SCSI_STATUS_CHECK_CONDITION)
        become_ready(s);
    else
        attach_lose(s, "the target does not say how it is provisioned");
}

static void limits_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    struct attach_session *s = private;
    struct scsi_task *t = data;
    struct scsi_inquiry_block_limits *l =
        t && status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(t) : NULL;
    uint32_t block = s->facts.block_size;
    s->transfer_most = TRANSFER_MOST;
    s->same_most = SAME_MOST;
    if (l && l->max_xfer_len && l->max_xfer_len < TRANSFER_MOST / block)
        s->transfer_most = l->max_xfer_len * block;
    if (l && l->max_ws_len && l->max_ws_len < SAME_MOST / block)
        s->same_most = l->max_ws_len * block;
    if (t)
        scsi_free_scsi_task(t);
    bool answered = status == SCSI_STATUS_GOOD || status == SCSI_STATUS_CHECK_CONDITION;
    if (!answered || !iscsi_inquiry_task(iscsi, (int)s->o.lun, 1,
                                         SCSI_INQUIRY_PAGECODE_LOGICAL_BLOCK_PROVISIONING, 255,
                                         provisioning_done, s))
        attach_lose(s, "the target does not say its limits");
}

static void capacity_learnt(struct attach_session *s, const struct scsi_readcapacity16 *rc)
{
    uint64_t size = (rc->returned_lba + 1) * rc->block_length;
    bool differs = !s->facts.known || size != s->facts.size;
    if (s->facts.known && rc->block_length != s->facts.block_size) {
        log_error("the block size has changed: this is another volume",
                  LOG_U("was", s->facts.block_size), LOG_U("is", rc->block_length));
        attach_lose(s, "the block size has changed");
        return;
    }
    if (differs)
        log_info("size", LOG_U("was", s->facts.size), LOG_U("is", size));
    s->facts.size = size;
    s->facts.block_size = rc->block_length;
    s->facts.known = true;
    if (differs)
        s->changed(s->context);
}

static void capacity_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    struct attach_session *s = private;
    struct scsi_task *t = data;
    struct scsi_readcapacity16 *rc =
        t && status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(t) : NULL;
    bool good = rc && rc->block_length >= 512 && rc->block_length <= 4096 &&
                !(rc->block_length & (rc->block_length - 1));
    bool again =
        t && status == SCSI_STATUS_CHECK_CONDITION && t->sense.key == SCSI_SENSE_UNIT_ATTENTION;
    s->rescanning = false;
    if (good)
        capacity_learnt(s, rc);
    if (t)
        scsi_free_scsi_task(t);
    if (again)
        attach_ask_capacity(s);
    else if (!good && s->state == ASKING)
        attach_lose(s, "the target does not say its size");
    else if (s->state == READY && !s->rescan) /* else it was asked for after this was on its way */
        attach_told(s, good ? 0 : EIO);
    else if (s->state == READY)
        return;
    else if (!s->lost &&
             !iscsi_inquiry_task(iscsi, (int)s->o.lun, 1, SCSI_INQUIRY_PAGECODE_BLOCK_LIMITS, 255,
                                 limits_done, s))
        attach_lose(s, "cannot ask for limits");
}

void attach_ask_capacity(struct attach_session *s)
{
    s->rescan = false;
    s->rescanning = true;
    if (!iscsi_readcapacity16_task(s->iscsi, (int)s->o.lun, capacity_done, s))
        attach_lose(s, "cannot ask for the size");
}

/* libiscsi has the status of a login in its text only: "...(513)" is 0x0201, authentication failed. */
static enum err_code refusal(struct attach_session *s)
{
    enum { INITIATOR_ERROR = 0x0200, NOT_FOUND = 0x0203, CLASS_MASK = 0xff00 };
    const char *text = iscsi_get_error(s->iscsi);
    const char *open = text ? strrchr(text, '(') : NULL;
    unsigned long status = open ? strtoul(open + 1, NULL, 10) : 0;
    if ((status & CLASS_MASK) != INITIATOR_ERROR)
        return ERR_OK;
    return status == NOT_FOUND ? ERR_NOT_FOUND : ERR_PERMISSION_DENIED;
}

static void login_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi, (void)data;
    struct attach_session *s = private;
    if (status != SCSI_STATUS_GOOD) {
        s->facts.refused = status == SCSI_STATUS_CANCELLED ? ERR_OK : refusal(s);
        attach_lose(s, "cannot log in");
        return;
    }
    s->state = ASKING;
    attach_ask_capacity(s);
}

static void connect_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)data;
    struct attach_session *s = private;
    if (status != SCSI_STATUS_GOOD) {
        attach_lose(s, "cannot connect");
        return;
    }
    s->state = LOGGING_IN;
    if (iscsi_login_async(iscsi, login_done, s))
        attach_lose(s, "cannot log in");
}

void attach_begin(struct attach_session *s)
{
    const struct attach_session_options *o = &s->o;
    struct iscsi_context *iscsi = s->iscsi = iscsi_create_context(o->initiator);
    if (!iscsi) {
        s->next_try = s->now + RETRY_CONTEXT;
        return;
    }
    s->state = CONNECTING;
    s->login_until = s->now + LOGIN_TIME;
    s->heard = s->now;
    s->facts.refused = ERR_OK;
    iscsi_set_targetname(iscsi, o->iqn);
    iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
    iscsi_set_header_digest(iscsi, ISCSI_HEADER_DIGEST_NONE);
    iscsi_set_isid_random(iscsi, ISID_NUMBER, o->lun);
    iscsi_set_noautoreconnect(iscsi, 1);
    if (o->chap_user)
        iscsi_set_initiator_username_pwd(iscsi, o->chap_user, o->chap_secret);
    if (o->mutual_user)
        iscsi_set_target_username_pwd(iscsi, o->mutual_user, o->mutual_secret);
    if (iscsi_connect_async(iscsi, o->portal, connect_done, s))
        attach_lose(s, "cannot connect");
}

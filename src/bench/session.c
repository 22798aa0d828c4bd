#include "bench/session.h"

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

struct bench_session {
    struct iscsi_context *iscsi;
    int lun;
    uint32_t block_size;
    int64_t reconnect_ns, seen; /* seen: when it was last logged in */
    bool lost;
    bool away; /* not logged in: it is being connected anew */
    unsigned reconnects;
};

_Static_assert(sizeof(struct scsi_iovec) <= sizeof(((struct bench_io *)0)->iov),
               "an I/O has room for libiscsi's vector");

static int fail(struct bench_session *s, const char *what, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "SessionFailed", "%s: %s", what, iscsi_get_error(s->iscsi));
}

int bench_session_check_url(const char *url, char *ret, size_t size, struct err *e)
{
    struct iscsi_context *c = iscsi_create_context("iqn.2026-01.io.orlop:bench");
    struct iscsi_url *u = iscsi_parse_full_url(c, url);
    if (u)
        snprintf(ret, size, "iscsi://%s/%s/%d", u->portal, u->target, u->lun);
    else
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidURL",
                "not the URL of a unit; write iscsi://HOST[:PORT]/TARGET/LUN");
    int result = u ? 0 : -1;
    if (u)
        iscsi_destroy_url(u);
    iscsi_destroy_context(c);
    return result;
}

/* Unit attentions come first: they are taken until it is ready. */
static int read_capacity(struct bench_session *s, uint64_t *ret_size, struct err *e)
{
    for (int tries = 0; tries < 10; tries++) {
        struct scsi_task *t = iscsi_readcapacity16_sync(s->iscsi, s->lun);
        struct scsi_readcapacity16 *rc =
            t && t->status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(t) : NULL;
        if (rc && rc->block_length) {
            s->block_size = rc->block_length;
            *ret_size = (rc->returned_lba + 1) * rc->block_length;
            scsi_free_scsi_task(t);
            return 0;
        }
        scsi_free_scsi_task(t);
    }
    /* Old targets have the short form only. */
    struct scsi_task *t = iscsi_readcapacity10_sync(s->iscsi, s->lun, 0, 0);
    struct scsi_readcapacity10 *rc =
        t && t->status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(t) : NULL;
    if (rc && rc->block_size) {
        s->block_size = rc->block_size;
        *ret_size = ((uint64_t)rc->lba + 1) * rc->block_size;
    }
    bool known = rc && rc->block_size;
    scsi_free_scsi_task(t);
    return known ? 0 : fail(s, "the capacity is not told", e);
}

static int log_in(struct bench_session *s, const struct bench_session_options *o, struct err *e)
{
    struct iscsi_url *u = iscsi_parse_full_url(s->iscsi, o->url);
    if (!u)
        return fail(s, "the URL is wrong", e);
    s->lun = u->lun;
    iscsi_set_targetname(s->iscsi, u->target);
    iscsi_set_session_type(s->iscsi, ISCSI_SESSION_NORMAL);
    iscsi_set_header_digest(s->iscsi, o->header_digest ? ISCSI_HEADER_DIGEST_CRC32C
                                                       : ISCSI_HEADER_DIGEST_NONE);
    iscsi_set_isid_random(s->iscsi, (uint32_t)getpid() & 0xffffff, o->number & 0xffff);
    iscsi_set_noautoreconnect(s->iscsi, 1);
    if (u->user[0])
        iscsi_set_initiator_username_pwd(s->iscsi, u->user, u->passwd);
    int result = iscsi_full_connect_sync(s->iscsi, u->portal, u->lun);
    iscsi_destroy_url(u);
    return result ? fail(s, "cannot log in", e) : 0;
}

struct bench_session *bench_session_new(const struct bench_session_options *o, uint64_t *ret_size,
                                        uint32_t *ret_block_size, struct err *e)
{
    struct bench_session *s = NEW(struct bench_session);
    s->iscsi = iscsi_create_context(o->initiator);
    s->reconnect_ns = o->reconnect_ns;
    if (log_in(s, o, e) < 0 || read_capacity(s, ret_size, e) < 0) {
        s->lost = true;
        bench_session_free(s);
        return NULL;
    }
    *ret_block_size = s->block_size;
    if (s->reconnect_ns) {
        iscsi_set_noautoreconnect(s->iscsi, 0);
        iscsi_set_reconnect_max_retries(s->iscsi, -1);
        iscsi_set_no_ua_on_reconnect(s->iscsi, 1);
    }
    return s;
}

void bench_session_free(struct bench_session *s)
{
    if (!s)
        return;
    iscsi_set_noautoreconnect(s->iscsi, 1);
    if (!s->lost)
        iscsi_logout_sync(s->iscsi);
    iscsi_destroy_context(s->iscsi);
    free(s);
}

/* A command that tells of something else than itself was not done: it is sent again, as initiators do. */
static void done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    struct bench_io *io = private;
    struct scsi_task *t = data;
    struct err e = {0};
    bool again =
        t && status == SCSI_STATUS_CHECK_CONDITION && t->sense.key == SCSI_SENSE_UNIT_ATTENTION;
    if (t)
        scsi_free_scsi_task(t);
    if (again && bench_session_submit(io->session, io, &e) == 0)
        return;
    io->done(io, status == SCSI_STATUS_GOOD ? NULL : iscsi_get_error(iscsi));
}

int bench_session_submit(struct bench_session *s, struct bench_io *io, struct err *e)
{
    uint64_t lba = io->offset / s->block_size;
    struct scsi_iovec iov = {.iov_base = io->data, .iov_len = io->length};
    struct scsi_iovec *place = memcpy(io->iov, &iov, sizeof(iov));
    struct scsi_task *t;
    io->session = s;
    switch (io->op) {
    case BENCH_READ:
        t = iscsi_read16_iov_task(s->iscsi, s->lun, lba, io->length, (int)s->block_size, 0, 0, 0, 0,
                                  0, done, io, place, 1);
        break;
    case BENCH_WRITE:
        t = iscsi_write16_iov_task(s->iscsi, s->lun, lba, NULL, io->length, (int)s->block_size, 0,
                                   0, io->fua, 0, 0, done, io, place, 1);
        break;
    default:
        t = iscsi_synchronizecache16_task(s->iscsi, s->lun, 0, 0, 0, 0, done, io);
        break;
    }
    return t ? 0 : fail(s, "cannot send a command", e);
}

int bench_session_fd(struct bench_session *s)
{
    return iscsi_get_fd(s->iscsi);
}

short bench_session_events(struct bench_session *s)
{
    return (short)iscsi_which_events(s->iscsi);
}

int bench_session_service(struct bench_session *s, short events, struct err *e)
{
    if (iscsi_service(s->iscsi, events) < 0) {
        s->lost = true;
        return fail(s, "the session is lost", e);
    }
    bool away = !iscsi_is_logged_in(s->iscsi);
    s->reconnects += s->away && !away;
    int64_t now = clock_mono_ns(clock_system());
    if (!away || !s->away)
        s->seen = now;
    s->away = away;
    if (away && s->reconnect_ns && now - s->seen > s->reconnect_ns) {
        s->lost = true;
        return err_set(e, ERR_UNAVAILABLE, "TargetGone", "the target has been away for %lld s",
                       (long long)(s->reconnect_ns / CLOCK_SECOND));
    }
    return 0;
}

unsigned bench_session_reconnects(const struct bench_session *s)
{
    return s->reconnects;
}

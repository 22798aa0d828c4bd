#include "attach/session.h"

#include <errno.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define MS             (CLOCK_SECOND / 1000)
#define RETRY_FIRST    (100 * MS)
#define RETRY_MOST     (2 * CLOCK_SECOND)
#define LOGIN_TIME     (5 * CLOCK_SECOND) /* from the first packet to READY */
#define SILENCE_NOP    (2 * CLOCK_SECOND) /* then it is asked whether it is alive */
#define SILENCE_MOST   (8 * CLOCK_SECOND) /* then the connection is given up */
#define AGAIN_TIME     (100 * MS)         /* until what a busy target refused is sent again */
#define LOGOUT_TIME_MS 1000

enum {
    TRANSFER_MOST = 1 << 20,
    ZERO_BYTES = 64 << 10,  /* written at a time where the target has no WRITE SAME */
    SAME_MOST = 1 << 30,    /* bytes of one WRITE SAME where the target names no limit */
    ISID_NUMBER = 0x6f726c, /* any: the same for all sessions of an initiator */
};

enum state { AWAY, CONNECTING, LOGGING_IN, ASKING, READY };

struct attach_session {
    struct attach_session_options o;
    struct iscsi_context *iscsi; /* NULL: AWAY */
    enum state state;
    bool lost; /* noticed in a callback: libiscsi is on the stack, so it is dropped later */
    struct list_link waiting, busy;
    void (*changed)(void *context);
    void *context;
    void (*told)(void *context, int error); /* who waits for a rescan */
    void *told_context;
    bool rescan, rescanning;
    struct attach_facts facts;
    int64_t now, next_try, pause, login_until, heard, away_since, again_at, fail_check;
    bool nop;
    bool unmaps, no_same;
    unsigned unsent;        /* commands that libiscsi was given since it last sent */
    uint32_t transfer_most; /* in bytes */
    uint64_t same_most;
};

_Static_assert(sizeof(struct scsi_iovec) <= sizeof(((struct attach_io *)0)->iov),
               "an I/O has room for libiscsi's vector");

static uint8_t zeroes[ZERO_BYTES];

static void remember(struct attach_session *s, const char *what)
{
    const char *why = s->iscsi ? iscsi_get_error(s->iscsi) : "";
    int n = snprintf(s->facts.last_error, sizeof(s->facts.last_error), "%s%s%s", what,
                     why && *why ? ": " : "", why ? why : "");
    while (n > 0 && n < (int)sizeof(s->facts.last_error) && s->facts.last_error[n - 1] == '\n')
        s->facts.last_error[--n] = 0;
}

/* The first thing that goes wrong is the reason; what follows from it is not. */
static void lose(struct attach_session *s, const char *what)
{
    if (!s->lost)
        remember(s, what);
    s->lost = true;
}

static void finish(struct attach_io *io, int error)
{
    struct attach_session *s = io->session;
    list_unlink(&io->link);
    if (error)
        s->facts.failed++;
    else
        s->facts.done[io->op]++;
    io->done(io, error);
}

static void told(struct attach_session *s, int error)
{
    void (*fn)(void *, int) = s->told;
    s->told = NULL;
    s->rescan = false;
    if (fn)
        fn(s->told_context, error);
}

/* Ends the connection; what was under way waits, in front of the others. */
static void drop(struct attach_session *s)
{
    bool was_ready = s->state == READY;
    struct iscsi_context *iscsi = TAKE_PTR(s->iscsi);
    s->lost = true; /* for the callbacks of what is cancelled */
    iscsi_destroy_context(iscsi);
    struct list_link all;
    list_init(&all);
    list_splice(&all, &s->busy);
    list_splice(&all, &s->waiting);
    list_splice(&s->waiting, &all);
    s->lost = s->nop = s->rescanning = false;
    s->state = AWAY;
    if (was_ready) {
        s->away_since = s->now;
        s->pause = 0;
        log_warn("session lost; I/O waits", LOG_S("why", s->facts.last_error));
    }
    s->next_try = s->now + s->pause;
    s->pause = s->pause ? s->pause * 2 : RETRY_FIRST;
    if (s->pause > RETRY_MOST)
        s->pause = RETRY_MOST;
    told(s, ENOTCONN);
}

/* I/O */

static void send_io(struct attach_io *io);

static void send_again(struct attach_io *io, bool at_once)
{
    struct attach_session *s = io->session;
    list_unlink(&io->link);
    list_push(&s->waiting, &io->link);
    if (at_once)
        s->again_at = s->now;
    else if (s->again_at <= s->now)
        s->again_at = s->now + AGAIN_TIME;
}

static int errno_of(const struct scsi_task *t)
{
    if (t->sense.key == SCSI_SENSE_DATA_PROTECTION)
        return t->sense.ascq == 0x2707 ? ENOSPC
                                       : EROFS; /* space allocation failed: the pool is full */
    return EIO;
}

static void check_condition(struct attach_io *io, const struct scsi_task *t)
{
    struct attach_session *s = io->session;
    bool same = io->op == ATTACH_UNMAP || io->op == ATTACH_ZERO;
    switch (t->sense.key) {
    case SCSI_SENSE_NO_SENSE:
    case SCSI_SENSE_RECOVERED_ERROR:
    case SCSI_SENSE_UNIT_ATTENTION:
        s->facts.attentions++;
        s->rescan |= t->sense.ascq == SCSI_SENSE_ASCQ_CAPACITY_DATA_HAS_CHANGED;
        send_again(io, true);
        return;
    case SCSI_SENSE_NOT_READY:
    case SCSI_SENSE_COMMAND_ABORTED:
        send_again(io, false);
        return;
    case SCSI_SENSE_ILLEGAL_REQUEST:
        if (same && !s->no_same && t->sense.ascq != SCSI_SENSE_ASCQ_LBA_OUT_OF_RANGE) {
            s->no_same = true; /* zeroes are written instead */
            send_again(io, true);
            return;
        }
        break;
    default:
        break;
    }
    log_error("the target failed an I/O", LOG_U("op", io->op), LOG_U("offset", io->offset + io->at),
              LOG_U("key", t->sense.key), LOG_U("ascq", (unsigned)t->sense.ascq));
    finish(io, errno_of(t));
}

static void io_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi;
    struct attach_io *io = private;
    struct attach_session *s = io->session;
    struct scsi_task *t = data;
    switch (status) {
    case SCSI_STATUS_GOOD:
        io->at += io->piece;
        if (io->at < io->length)
            send_io(io);
        else
            finish(io, 0);
        break;
    case SCSI_STATUS_CHECK_CONDITION:
        check_condition(io, t);
        break;
    case SCSI_STATUS_BUSY:
    case SCSI_STATUS_TASK_SET_FULL:
    case SCSI_STATUS_TASK_ABORTED:
    case SCSI_STATUS_ACA_ACTIVE:
        send_again(io, false);
        break;
    case SCSI_STATUS_CANCELLED:
    case SCSI_STATUS_ERROR:
    case SCSI_STATUS_TIMEOUT:
        lose(s, "the connection ended"); /* it stays on its list until drop() */
        break;
    default:
        log_error("the target refused an I/O", LOG_U("op", io->op), LOG_I("status", status));
        finish(io, EIO);
        break;
    }
    if (t)
        scsi_free_scsi_task(t);
}

static uint32_t piece_of(const struct attach_io *io, uint64_t most)
{
    uint64_t left = io->length - io->at;
    return (uint32_t)(left < most ? left : most);
}

static void send_io(struct attach_io *io)
{
    struct attach_session *s = io->session;
    uint32_t block = s->facts.block_size;
    uint64_t lba = (io->offset + io->at) / block;
    int lun = (int)s->o.lun;
    struct scsi_task *t = NULL;
    enum attach_op op = io->op;
    bool same = op == ATTACH_UNMAP || op == ATTACH_ZERO;
    struct scsi_iovec iov = {.iov_base = io->data ? io->data + io->at : NULL};
    if (same && s->no_same) {
        op = ATTACH_WRITE;
        iov.iov_base = zeroes;
    }
    io->piece =
        piece_of(io, op == ATTACH_READ || op == ATTACH_WRITE ? s->transfer_most : s->same_most);
    if (iov.iov_base == zeroes)
        io->piece = piece_of(io, ZERO_BYTES);
    iov.iov_len = io->piece;
    struct scsi_iovec *place = memcpy(io->iov, &iov, sizeof(iov));
    switch (op) {
    case ATTACH_READ:
        t = iscsi_read16_iov_task(s->iscsi, lun, lba, io->piece, (int)block, 0, 0, 0, 0, 0, io_done,
                                  io, place, 1);
        break;
    case ATTACH_WRITE:
        t = iscsi_write16_iov_task(s->iscsi, lun, lba, NULL, io->piece, (int)block, 0, 0, io->fua,
                                   0, 0, io_done, io, place, 1);
        break;
    case ATTACH_FLUSH:
        t = iscsi_synchronizecache16_task(s->iscsi, lun, 0, 0, 0, 0, io_done, io);
        break;
    default: /* with UNMAP the target may give the space back, and reads zeroes in any case */
        t = iscsi_writesame16_task(s->iscsi, lun, lba, zeroes, block, io->piece / block, 0,
                                   op == ATTACH_UNMAP && s->unmaps, 0, 0, io_done, io);
        break;
    }
    s->unsent++;
    if (!t) {
        lose(s, "cannot send a command");
        if (!list_is_linked(&io->link))
            list_push(&s->waiting, &io->link);
    }
}

/* Sends what waits, once the session is ready and what a busy target refused has rested. */
static void send_waiting(struct attach_session *s)
{
    if (s->state != READY || s->lost || s->now < s->again_at)
        return;
    struct list_link all;
    list_init(&all);
    list_splice(&all, &s->waiting);
    struct list_link *l;
    while ((l = list_take(&all))) {
        struct attach_io *io = container_of(l, struct attach_io, link);
        list_push(&s->busy, &io->link);
        if (!s->lost)
            send_io(io);
    }
}

void attach_session_submit(struct attach_session *s, struct attach_io *io)
{
    io->session = s;
    io->at = 0;
    io->since = s->now;
    list_init(&io->link);
    bool now = s->state == READY && !s->lost && list_empty(&s->waiting);
    list_push(now ? &s->busy : &s->waiting, &io->link);
    if (now)
        send_io(io);
}

/* Logging in, and learning what the volume is */

static void ask_capacity(struct attach_session *s);

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
        lose(s, "the target does not say how it is provisioned");
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
        lose(s, "the target does not say its limits");
}

static void capacity_learnt(struct attach_session *s, const struct scsi_readcapacity16 *rc)
{
    uint64_t size = (rc->returned_lba + 1) * rc->block_length;
    bool differs = !s->facts.known || size != s->facts.size;
    if (s->facts.known && rc->block_length != s->facts.block_size) {
        log_error("the block size has changed: this is another volume",
                  LOG_U("was", s->facts.block_size), LOG_U("is", rc->block_length));
        lose(s, "the block size has changed");
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
        ask_capacity(s);
    else if (!good && s->state == ASKING)
        lose(s, "the target does not say its size");
    else if (s->state == READY && !s->rescan) /* else it was asked for after this was on its way */
        told(s, good ? 0 : EIO);
    else if (s->state == READY)
        return;
    else if (!s->lost &&
             !iscsi_inquiry_task(iscsi, (int)s->o.lun, 1, SCSI_INQUIRY_PAGECODE_BLOCK_LIMITS, 255,
                                 limits_done, s))
        lose(s, "cannot ask for limits");
}

static void ask_capacity(struct attach_session *s)
{
    s->rescan = false;
    s->rescanning = true;
    if (!iscsi_readcapacity16_task(s->iscsi, (int)s->o.lun, capacity_done, s))
        lose(s, "cannot ask for the size");
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
        lose(s, "cannot log in");
        return;
    }
    s->state = ASKING;
    ask_capacity(s);
}

static void connect_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)data;
    struct attach_session *s = private;
    if (status != SCSI_STATUS_GOOD) {
        lose(s, "cannot connect");
        return;
    }
    s->state = LOGGING_IN;
    if (iscsi_login_async(iscsi, login_done, s))
        lose(s, "cannot log in");
}

static void begin(struct attach_session *s)
{
    const struct attach_session_options *o = &s->o;
    struct iscsi_context *iscsi = s->iscsi = iscsi_create_context(o->initiator);
    if (!iscsi) {
        s->next_try = s->now + RETRY_MOST;
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
        lose(s, "cannot connect");
}

struct attach_session *attach_session_new(const struct attach_session_options *o,
                                          void (*changed)(void *context), void *context)
{
    struct attach_session *s = NEW(struct attach_session);
    s->o = *o;
    s->changed = changed;
    s->context = context;
    list_init(&s->waiting);
    list_init(&s->busy);
    s->now = s->away_since = s->next_try = clock_mono_ns(clock_system());
    s->pause = RETRY_FIRST;
    return s;
}

void attach_session_assume(struct attach_session *s, uint64_t size, uint32_t block_size)
{
    s->facts.size = size;
    s->facts.block_size = block_size;
    s->facts.known = true;
}

static void logged_out(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi, (void)status, (void)data;
    *(bool *)private = true;
}

static void log_out(struct attach_session *s)
{
    bool out = false;
    int64_t until = clock_mono_ns(clock_system()) + LOGOUT_TIME_MS * MS;
    if (iscsi_logout_async(s->iscsi, logged_out, &out))
        return;
    while (!out && clock_mono_ns(clock_system()) < until) {
        struct pollfd p = {.fd = iscsi_get_fd(s->iscsi),
                           .events = (short)iscsi_which_events(s->iscsi)};
        if (poll(&p, 1, 50) < 0 || iscsi_service(s->iscsi, p.revents) < 0)
            break;
    }
    if (!out) /* while the variable that its callback sets is there */
        iscsi_destroy_context(TAKE_PTR(s->iscsi));
}

void attach_session_free(struct attach_session *s)
{
    if (!s)
        return;
    if (s->state == READY && !s->lost && list_empty(&s->busy))
        log_out(s);
    s->state = AWAY;
    if (s->iscsi)
        drop(s);
    while (!list_empty(&s->waiting))
        finish(container_of(s->waiting.next, struct attach_io, link), EIO);
    free(s);
}

void attach_session_rescan(struct attach_session *s, void (*fn)(void *context, int error),
                           void *context)
{
    if (s->told || s->state != READY || s->lost) {
        fn(context, s->told ? EBUSY : ENOTCONN);
        return;
    }
    s->told = fn;
    s->told_context = context;
    s->rescan = true;
}

const struct attach_facts *attach_session_facts(struct attach_session *s)
{
    s->facts.ready = s->state == READY && !s->lost;
    s->facts.away_ns = s->facts.ready ? 0 : s->now - s->away_since;
    return &s->facts;
}

void attach_session_count(const struct attach_session *s, unsigned *ret_waiting, unsigned *ret_busy)
{
    *ret_waiting = *ret_busy = 0;
    list_for_each(&s->waiting, io, struct attach_io, link)
        ++*ret_waiting;
    list_for_each(&s->busy, io, struct attach_io, link)
        ++*ret_busy;
}

int attach_session_fd(const struct attach_session *s)
{
    return s->iscsi ? iscsi_get_fd(s->iscsi) : -1;
}

short attach_session_events(const struct attach_session *s)
{
    return s->iscsi ? (short)iscsi_which_events(s->iscsi) : 0;
}

/* Time */

static void nop_done(struct iscsi_context *iscsi, int status, void *data, void *private)
{
    (void)iscsi, (void)data;
    struct attach_session *s = private;
    s->nop = false;
    if (status != SCSI_STATUS_GOOD)
        lose(s, "the connection ended");
}

static void look_at_silence(struct attach_session *s)
{
    if (s->state < READY) {
        if (s->now > s->login_until)
            lose(s, "the target does not answer");
        return;
    }
    int64_t silent = s->now - s->heard;
    if (silent > SILENCE_MOST) {
        lose(s, "the target has fallen silent");
    } else if (silent > SILENCE_NOP && !s->nop) {
        s->nop = true;
        if (iscsi_nop_out_async(s->iscsi, nop_done, NULL, 0, s))
            lose(s, "cannot ask whether the target is alive");
    }
}

/* What has waited for too long fails. What the target has for too long is taken from it first. */
static void fail_old(struct attach_session *s)
{
    if (!s->o.fail_after_ns || s->now < s->fail_check)
        return;
    s->fail_check = s->now + AGAIN_TIME;
    int64_t before = s->now - s->o.fail_after_ns;
    bool old = false;
    list_for_each(&s->busy, io, struct attach_io, link)
        old |= io->since < before;
    if (old && s->iscsi) {
        remember(s, "an I/O takes too long");
        drop(s);
    }
    list_for_each_safe(&s->waiting, io, struct attach_io, link)
        if (io->since < before)
            finish(io, EIO);
}

/* Many commands leave in few packets: libiscsi has a call for each header and each payload. */
static int exchange(struct attach_session *s, short events)
{
    bool sends = s->state == READY && iscsi_which_events(s->iscsi) & POLLOUT;
    bool cork = sends && s->unsent > 1;
    int fd = iscsi_get_fd(s->iscsi), on = 1, off = 0;
    if (events & POLLIN)
        s->heard = s->now;
    if (cork)
        setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
    int result = iscsi_service(s->iscsi, events | (sends ? POLLOUT : 0));
    s->unsent = 0;
    if (cork && result == 0 && !s->lost)
        setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
    return result;
}

int attach_session_service(struct attach_session *s, short events)
{
    s->now = clock_mono_ns(clock_system());
    if (!s->iscsi && s->now >= s->next_try)
        begin(s);
    if (s->iscsi && !s->lost && exchange(s, events) < 0)
        lose(s, "the connection ended");
    if (s->iscsi && !s->lost)
        look_at_silence(s);
    if (s->state == READY && !s->lost && s->rescan && !s->rescanning)
        ask_capacity(s);
    send_waiting(s);
    if (s->lost && s->iscsi)
        drop(s);
    fail_old(s);
    if (s->state == READY && !list_empty(&s->waiting))
        return AGAIN_TIME / MS;
    int64_t left = s->state == AWAY ? (s->next_try - s->now) / MS + 1 : 500;
    return (int)(left < 0 ? 0 : left > 500 ? 500 : left);
}

#include "attach/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "attach/session_impl.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRY_FIRST    (100 * MS)
#define RETRY_MOST     (2 * CLOCK_SECOND)
#define SILENCE_NOP    (2 * CLOCK_SECOND) /* then it is asked whether it is alive */
#define SILENCE_MOST   (8 * CLOCK_SECOND) /* then the connection is given up */
#define LOGOUT_TIME_MS 1000

static void remember(struct attach_session *s, const char *what)
{
    const char *why = s->iscsi ? iscsi_get_error(s->iscsi) : "";
    int n = snprintf(s->facts.last_error, sizeof(s->facts.last_error), "%s%s%s", what,
                     why && *why ? ": " : "", why ? why : "");
    while (n > 0 && n < (int)sizeof(s->facts.last_error) && s->facts.last_error[n - 1] == '\n')
        s->facts.last_error[--n] = 0;
}

/* The first thing that goes wrong is the reason; what follows from it is not. */
void attach_lose(struct attach_session *s, const char *what)
{
    if (!s->lost)
        remember(s, what);
    s->lost = true;
}

void attach_finish(struct attach_io *io, int error)
{
    struct attach_session *s = io->session;
    list_unlink(&io->link);
    if (error)
        s->facts.failed++;
    else
        s->facts.done[io->op]++;
    io->done(io, error);
}

void attach_told(struct attach_session *s, int error)
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
    attach_told(s, ENOTCONN);
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
        attach_finish(container_of(s->waiting.next, struct attach_io, link), EIO);
    free(s);
}

void attach_session_rescan(struct attach_session *s, void (*answer)(void *context, int error),
                           void *context)
{
    if (s->told || s->state != READY || s->lost) {
        answer(context, s->told ? EBUSY : ENOTCONN);
        return;
    }
    s->told = answer;
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
        attach_lose(s, "the connection ended");
}

static void look_at_silence(struct attach_session *s)
{
    if (s->state < READY) {
        if (s->now > s->login_until)
            attach_lose(s, "the target does not answer");
        return;
    }
    int64_t silent = s->now - s->heard;
    if (silent > SILENCE_MOST) {
        attach_lose(s, "the target has fallen silent");
    } else if (silent > SILENCE_NOP && !s->nop) {
        s->nop = true;
        if (iscsi_nop_out_async(s->iscsi, nop_done, NULL, 0, s))
            attach_lose(s, "cannot ask whether the target is alive");
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
            attach_finish(io, EIO);
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
        attach_begin(s);
    if (s->iscsi && !s->lost && exchange(s, events) < 0)
        attach_lose(s, "the connection ended");
    if (s->iscsi && !s->lost)
        look_at_silence(s);
    if (s->state == READY && !s->lost && s->rescan && !s->rescanning)
        attach_ask_capacity(s);
    attach_send_waiting(s);
    if (s->lost && s->iscsi)
        drop(s);
    fail_old(s);
    if (s->state == READY && !list_empty(&s->waiting))
        return AGAIN_TIME / MS;
    int64_t left = s->state == AWAY ? (s->next_try - s->now) / MS + 1 : 500;
    return (int)(left < 0 ? 0 : left > 500 ? 500 : left);
}

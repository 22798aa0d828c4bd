#include "attach/worker.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attach/control.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"

struct work {
    const struct attach_worker *w;
    struct attach_session *session;
    struct attach_file *file; /* NULL: the size is not known yet */
    struct attach_control *control;
    int stop;
};

int attach_shared_init(struct attach_shared *shared, struct err *e)
{
    shared->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return shared->ready_fd < 0 ? err_errno(e, errno, "eventfd") : 0;
}

static void changed(void *context)
{
    struct work *k = context;
    const struct attach_facts *facts = attach_session_facts(k->session);
    k->w->shared->block_size = facts->block_size;
    k->w->shared->size = facts->size;
    if (k->file)
        attach_file_changed(k->file);
}

/* The first login decides whether there is a volume at all; a successor knows that there is one. */
static int look_at_login(struct work *k, int64_t until, struct err *e)
{
    const struct attach_facts *facts = attach_session_facts(k->session);
    const struct attach_serve_options *o = k->w->o;
    if (facts->known) {
        k->file = attach_file_new(k->w->fuse, &k->w->shared->greeting, k->session, e);
        uint64_t one = 1;
        if (k->file && write(k->w->shared->ready_fd, &one, sizeof(one)) < 0)
            return err_errno(e, errno, "eventfd");
        return k->file ? 0 : -1;
    }
    if (facts->refused)
        return err_set(e, facts->refused, "LoginRefused", "%s refuses the login: %s",
                       o->session.portal, facts->last_error);
    if (clock_mono_ns(clock_system()) > until)
        return err_set(e, ERR_UNAVAILABLE, "TargetUnreachable", "%s, %s: %s", o->session.portal,
                       o->session.iqn, facts->last_error);
    return 0;
}

enum { AT_STOP, AT_FUSE, AT_SESSION, AT_CONTROL };

static int turn(struct work *k, int *timeout, struct err *e)
{
    struct pollfd p[AT_CONTROL + ATTACH_CONTROL_FDS] = {
        [AT_STOP] = {.fd = k->stop, .events = POLLIN},
        [AT_FUSE] = {.fd = k->file ? k->w->fuse : -1, .events = POLLIN},
        [AT_SESSION] = {.fd = attach_session_fd(k->session),
                        .events = attach_session_events(k->session)},
    };
    unsigned n = AT_CONTROL + attach_control_poll(k->control, p + AT_CONTROL);
    if (poll(p, n, *timeout) < 0 && errno != EINTR)
        return err_errno(e, errno, "poll");
    if (p[AT_STOP].revents)
        return 0;
    if (p[AT_FUSE].revents && !attach_file_service(k->file))
        return 0;
    *timeout = attach_session_service(k->session, p[AT_SESSION].revents);
    attach_control_service(k->control, p + AT_CONTROL, n - AT_CONTROL);
    return 1;
}

int attach_work(const struct attach_worker *w)
{
    struct work k = {.w = w};
    struct err *e = &w->shared->error;
    int64_t until = clock_mono_ns(clock_system()) + w->o->login_within_ns;
    if (stop_catch(&k.stop, e) < 0)
        return 1;
    k.session = attach_session_new(&w->o->session, changed, &k);
    if (w->shared->size) /* a predecessor has served it: whoever asks for the size need not wait */
        attach_session_assume(k.session, w->shared->size, w->shared->block_size);
    k.control = attach_control_new(w, k.session);
    int timeout = 0, result = 1;
    while (result > 0) {
        result = turn(&k, &timeout, e);
        if (result > 0 && !k.file && look_at_login(&k, until, e) < 0)
            result = -1;
    }
    attach_session_free(k.session);
    attach_control_free(k.control);
    attach_file_free(k.file);
    return result < 0 ? 1 : 0;
}

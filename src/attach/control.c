#include "attach/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/ask.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

enum { LINE_MOST = 64 };

struct client {
    struct attach_control *control;
    int fd; /* -1: free */
    char line[LINE_MOST];
    size_t length;
    bool waits; /* for a rescan */
};

struct attach_control {
    const struct attach_worker *w;
    struct attach_session *session;
    struct client clients[ATTACH_CLIENTS];
};

int attach_control_listen(const char *path, int *ret_fd, struct err *e)
{
    struct sockaddr_un address;
    int folder, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, errno, "socket");
    if (attach_address(path, &address, &folder, e) < 0) {
        close(fd);
        return -1;
    }
    unlink(path); /* of a predecessor, which is dead: the lock is ours */
    mode_t mask = umask(0177);
    int result = bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    close(folder);
    if (result < 0 || listen(fd, ATTACH_CLIENTS) < 0) {
        err_errno(e, errno, "%s", path);
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

struct attach_control *attach_control_new(const struct attach_worker *w,
                                          struct attach_session *session)
{
    struct attach_control *c = NEW(struct attach_control);
    c->w = w;
    c->session = session;
    for (unsigned i = 0; i < ATTACH_CLIENTS; i++)
        c->clients[i] = (struct client){.control = c, .fd = -1};
    return c;
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->length = 0;
}

void attach_control_free(struct attach_control *c)
{
    for (unsigned i = 0; i < ATTACH_CLIENTS; i++)
        hang_up(&c->clients[i]);
    free(c);
}

static json_t *status(const struct attach_control *c)
{
    const struct attach_facts *f = attach_session_facts(c->session);
    const struct attach_session_options *o = &c->w->o->session;
    unsigned waiting, busy;
    attach_session_count(c->session, &waiting, &busy);
    return json_pack(
        "{si si ss ss si ss sI sI sb sI ss si si si si sI sI sI sI sI sI sI}", "pid",
        (int)c->w->supervisor, "worker", (int)getpid(), "portal", o->portal, "target", o->iqn,
        "lun", (int)o->lun, "initiator", o->initiator, "size", (json_int_t)f->size, "blockSize",
        (json_int_t)f->block_size, "connected", f->ready, "awaySeconds",
        (json_int_t)(f->away_ns / CLOCK_SECOND), "lastError", f->last_error, "logins",
        (int)f->logins, "restarts", (int)c->w->shared->restarts, "waiting", (int)waiting, "busy",
        (int)busy, "attentions", (json_int_t)f->attentions, "failed", (json_int_t)f->failed,
        "reads", (json_int_t)f->done[ATTACH_READ], "writes", (json_int_t)f->done[ATTACH_WRITE],
        "flushes", (json_int_t)f->done[ATTACH_FLUSH], "unmaps", (json_int_t)f->done[ATTACH_UNMAP],
        "zeroes", (json_int_t)f->done[ATTACH_ZERO]);
}

/* What does not fit into the socket's buffer belongs to a client that does not read: it is let go. */
static void reply(struct client *c, json_t *value)
{
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    str_append_c(&text, '\n');
    json_decref(value);
    c->length = 0;
    if (send(c->fd, text.p, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text.len)
        hang_up(c);
}

static void rescanned(void *context, int error)
{
    struct client *c = context;
    c->waits = false;
    if (c->fd < 0)
        return;
    if (error)
        reply(c, json_pack("{ss++}", "error", "the size cannot be asked for now: ", strerror(error),
                           ""));
    else
        reply(c, status(c->control));
}

static void run(struct client *c)
{
    if (str_eq(c->line, "status")) {
        reply(c, status(c->control));
    } else if (str_eq(c->line, "rescan")) {
        c->waits = true;
        attach_session_rescan(c->control->session, rescanned, c);
    } else {
        reply(c, json_pack("{ss}", "error", "no such request: status and rescan are"));
    }
}

static void hear(struct client *c)
{
    ssize_t n = recv(c->fd, c->line + c->length, LINE_MOST - c->length, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            hang_up(c);
        return;
    }
    c->length += (size_t)n;
    char *end = memchr(c->line, '\n', c->length);
    if (end) {
        *end = 0;
        run(c);
    } else if (c->length == LINE_MOST) {
        hang_up(c);
    }
}

unsigned attach_control_poll(const struct attach_control *c, struct pollfd *p)
{
    p[0] = (struct pollfd){.fd = c->w->listener, .events = POLLIN};
    bool full = true;
    for (unsigned i = 0; i < ATTACH_CLIENTS; i++) {
        const struct client *client = &c->clients[i];
        p[1 + i] = (struct pollfd){.fd = client->waits ? -1 : client->fd, .events = POLLIN};
        full &= client->fd >= 0 || client->waits;
    }
    if (full)
        p[0].fd = -1;
    return ATTACH_CONTROL_FDS;
}

void attach_control_service(struct attach_control *c, const struct pollfd *p, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        if (p[i].revents && p[i].fd == c->clients[i - 1].fd)
            hear(&c->clients[i - 1]);
    if (!p[0].revents)
        return;
    int fd = accept4(c->w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (unsigned i = 0; fd >= 0 && i < ATTACH_CLIENTS; i++) {
        struct client *client = &c->clients[i];
        if (client->fd < 0 && !client->waits) {
            client->fd = fd;
            return;
        }
    }
    if (fd >= 0)
        close(fd);
}

/*
 * Connecting: the addresses of a host are tried in turn, each with its share of the time that is
 * left, so that one that swallows packets does not keep us from the next.
 */
#include "http/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/resolve.h"

enum {
    CONNECT_SECONDS = 10, /* for all of it, with the handshake */
    KEEPALIVE_SECONDS = 30,
    NAME_MAX_TEXT = INET6_ADDRSTRLEN + 16,
};

struct http_link {
    int fd;
    struct http_session *session; /* NULL: plain */
};

static int lost(struct err *e, int errnum)
{
    return err_set(e, ERR_UNAVAILABLE, "ConnectionLost", "the connection broke: %s",
                   strerror(errnum));
}

static void name_address(const struct http_address *a, char text[static NAME_MAX_TEXT])
{
    char host[INET6_ADDRSTRLEN], port[8];
    bool six = a->storage.ss_family == AF_INET6;
    if (getnameinfo((const void *)&a->storage, a->size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(text, NAME_MAX_TEXT, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
    else
        snprintf(text, NAME_MAX_TEXT, "its address");
}

static void set_options(int fd)
{
    const int on = 1, seconds = KEEPALIVE_SECONDS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
}

/* The error that connecting ended with; 0: it is connected. -1: *e. */
static int finish_connect(int fd, const struct http_wait *w, struct err *e)
{
    int errnum = 0;
    socklen_t size = sizeof(errnum);
    if (http_wait_for(w, fd, POLLOUT, e) < 0)
        return -1;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size);
    return errnum;
}

static int connect_to(struct http_link *l, const struct sockaddr *to, socklen_t size,
                      const char *name, const struct http_wait *w, struct err *e)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int errnum = 0;
    if (fd < 0)
        return err_errno(e, errno, "cannot make a socket for %s", name);
    if (to->sa_family != AF_UNIX)
        set_options(fd);
    if (connect(fd, to, size) < 0)
        errnum = errno == EINPROGRESS || errno == EINTR ? finish_connect(fd, w, e) : errno;
    if (errnum == 0) {
        l->fd = fd;
        return 0;
    }
    close(fd);
    if (errnum < 0)
        return err_prefix(e, "connecting to %s", name);
    return err_set(e, ERR_UNAVAILABLE, "NoConnection", "cannot connect to %s: %s", name,
                   strerror(errnum));
}

static int connect_unix(struct http_link *l, const char *path, const struct http_wait *w,
                        struct err *e)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(to.sun_path))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSocket",
                       "the path %s is too long for a socket", path);
    memcpy(to.sun_path, path, strlen(path));
    return connect_to(l, (const void *)&to, sizeof(to), path, w, e);
}

static int connect_host(struct http_link *l, const struct http_place *to, const struct http_wait *w,
                        struct err *e)
{
    struct http_addresses all;
    if (http_resolve(to->address ? to->address : to->url->host,
                     to->address ? to->address_port : to->url->port, w, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        char name[NAME_MAX_TEXT];
        int64_t share = http_wait_left(w, CONNECT_SECONDS * CLOCK_SECOND) / (int64_t)(all.n - i);
        const struct http_wait brief = http_wait_within(w, share);
        name_address(&all.p[i], name);
        if (connect_to(l, (const void *)&all.p[i].storage, all.p[i].size, name, &brief, e) == 0)
            return 0;
        if (http_wait_check(w, NULL) < 0)
            break;
    }
    return -1;
}

static int shake(struct http_link *l, const struct http_wait *w, struct err *e)
{
    enum http_io io;
    short events = POLLIN;
    while ((io = http_session_shake(l->session, &events, e)) != HTTP_IO_END) {
        if (io == HTTP_IO_FAILED || http_wait_check(w, e) < 0 ||
            (io == HTTP_IO_WAIT && http_wait_for(w, l->fd, events, e) < 0))
            return -1;
    }
    return 0;
}

int http_link_open(const struct http_place *to, struct http_trust *trust, const struct http_wait *w,
                   struct http_link **ret_link, struct err *e)
{
    _cleanup_(http_link_freep) struct http_link *l = NEW(struct http_link);
    const struct http_wait brief = http_wait_within(w, CONNECT_SECONDS * CLOCK_SECOND);
    l->fd = -1;
    if ((to->unix_socket ? connect_unix(l, to->unix_socket, &brief, e)
                         : connect_host(l, to, &brief, e)) < 0)
        return -1;
    if (to->url->tls && (http_session_new(trust, to->url->host, l->fd, &l->session, e) < 0 ||
                         shake(l, &brief, e) < 0))
        return -1;
    *ret_link = TAKE_PTR(l);
    return 0;
}

void http_link_free(struct http_link *l)
{
    if (l->session)
        http_session_free(l->session);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

static enum http_io result(ssize_t n, size_t *ret_n, struct err *e)
{
    *ret_n = n > 0 ? (size_t)n : 0;
    if (n >= 0)
        return HTTP_IO_SOME;
    if (errno == EAGAIN || errno == EINTR)
        return HTTP_IO_WAIT;
    lost(e, errno);
    return HTTP_IO_FAILED;
}

enum http_io http_link_read(struct http_link *l, char *buf, size_t max, size_t *ret_n,
                            struct err *e)
{
    if (l->session)
        return http_session_read(l->session, buf, max, ret_n, e);
    ssize_t n = recv(l->fd, buf, max, 0);
    enum http_io io = result(n, ret_n, e);
    return n == 0 ? HTTP_IO_END : io;
}

enum http_io http_link_write(struct http_link *l, const char *bytes, size_t n, size_t *ret_n,
                             struct err *e)
{
    if (l->session)
        return http_session_write(l->session, bytes, n, ret_n, e);
    return result(send(l->fd, bytes, n, MSG_NOSIGNAL), ret_n, e);
}

int http_link_wait(const struct http_link *l, const struct http_wait *w, bool writing,
                   struct err *e)
{
    return http_wait_for(w, l->fd, (short)(POLLIN | (writing ? POLLOUT : 0)), e);
}

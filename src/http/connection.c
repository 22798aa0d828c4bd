/*
 * Connections, and how long they may take to send a request. The library closes those on which
 * nothing happens; a client that sends a byte now and then would keep its connection, and with
 * enough of them everybody else out. So each connection knows since when it owes a request, and the
 * watcher shuts those that owe one for too long. Shutting a socket is harmless whatever the library
 * does with it: it sees the end of the connection and closes it. The library announces that before it
 * closes the socket, under the lock that the watcher holds, so the number is still the connection's.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "http/server_impl.h"
#include "http/tls.h"

struct http_connection {
    struct list_link link; /* in the server's list, under its lock */
    int fd;
    _Atomic int64_t owes; /* monotonic: since when; 0: its request is being answered */
    struct http_tls_connection *tls;
};

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static void begin(struct http_server *s, struct MHD_Connection *connection, void **context)
{
    struct http_connection *c = NEW(struct http_connection);
    c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->owes = now();
    pthread_mutex_lock(&s->lock);
    list_init(&c->link);
    list_push(&s->connections, &c->link);
    struct http_tls *tls = s->tls ? http_tls_ref(s->tls) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (tls)
        c->tls = http_tls_connection_new(
            tls,
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    http_tls_unref(tls);
    *context = c;
}

/* A connection begins, before its handshake if it has one, or has ended. */
void connection_changed(void *server, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = server;
    if (what != MHD_CONNECTION_NOTIFY_CLOSED) {
        begin(s, connection, context);
        return;
    }
    struct http_connection *c = *context;
    pthread_mutex_lock(&s->lock);
    list_unlink(&c->link);
    pthread_mutex_unlock(&s->lock);
    http_tls_connection_free(c->tls);
    free(c);
    *context = NULL;
}

static struct http_connection *of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void connection_owes(struct MHD_Connection *connection, bool owes)
{
    struct http_connection *c = of(connection);
    if (c)
        c->owes = owes ? now() : 0;
}

struct http_tls_connection *connection_tls(struct MHD_Connection *connection)
{
    const struct http_connection *c = of(connection);
    return c ? c->tls : NULL;
}

void connection_check(struct http_server *s)
{
    int64_t limit = now() - s->o.idle_seconds * CLOCK_SECOND;
    pthread_mutex_lock(&s->lock);
    list_for_each(&s->connections, c, struct http_connection, link) {
        int64_t owes = c->owes;
        if (owes && owes < limit)
            shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
}

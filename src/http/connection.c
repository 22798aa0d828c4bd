/*
 * Connections, and how long they may take to send a request. The library closes those on which
 * nothing happens; a client that sends a byte now and then would keep its connection, and with
 * enough of them everybody else out. So each connection knows since when it owes a request, and the
 * watcher shuts those that owe one for too long: a stranger, who has not sent the head of a request yet,
 * has only a few seconds, for his handshake too.
 *
 *     stranger ── the head of a request ──> known ── answered ──> owes the next
 *
 * Neither many strangers nor many known clients that owe a request keep others out. When strangers of one
 * address, or of all, are too many, one of them at random is shut for each that comes: who is not silent
 * needs a moment and mostly stays. When nearly all connections are taken, the one that has owed a request
 * for longest, and for a second at least, is shut. Those that wait for an answer, or watch, are never shut for others.
 *
 * Shutting a socket is harmless whatever the library
 * does with it: it sees the end of the connection and closes it. The library announces that before it
 * closes the socket, under the lock that the watcher holds, so the number is still the connection's.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/server_impl.h"
#include "http/tls.h"

enum { STRANGER_SECONDS = 10, ADDRESS_BYTES = 16 };
static const int64_t IDLE_NS = CLOCK_SECOND;

struct http_connection {
    struct list_link link; /* in the server's list, under its lock */
    int fd;
    unsigned char address[ADDRESS_BYTES]; /* the client's; of IPv4 the first four bytes */
    _Atomic bool known;                   /* it has sent the head of a request */
    bool shut;                            /* under the server's lock */
    _Atomic int64_t owes; /* monotonic: since when; 0: its request is being answered */
    struct http_tls_connection *tls;
};

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static void take_address(struct http_connection *c, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *at = info ? info->client_addr : NULL;
    if (at && at->sa_family == AF_INET)
        memcpy(c->address, &((const struct sockaddr_in *)(const void *)at)->sin_addr, 4);
    else if (at && at->sa_family == AF_INET6)
        memcpy(c->address, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr,
               ADDRESS_BYTES);
}

static void shut(struct http_connection *c)
{
    c->shut = true;
    shutdown(c->fd, SHUT_RDWR);
}

/* One of n, seen one after the other: each as likely as the others. */
static bool draw(unsigned n)
{
    return (unsigned)rand() % n == 0; /* NOLINT: nobody gains much by guessing it */
}

/* Makes room for one more, with the lock. */
static void make_room(struct http_server *s, const struct http_connection *next)
{
    unsigned all = 0, strangers = 0, alike = 0;
    struct http_connection *stranger = NULL, *like = NULL, *oldest = NULL;
    int64_t longest = now() - IDLE_NS; /* who is not idle yet is about to ask, or to be heard */
    list_for_each(&s->connections, c, struct http_connection, link) {
        int64_t owes = c->owes;
        if (c->shut)
            continue;
        all++;
        if (owes && owes < longest) {
            longest = owes;
            oldest = c;
        }
        if (c->known)
            continue;
        if (draw(++strangers))
            stranger = c;
        if (memcmp(c->address, next->address, ADDRESS_BYTES) == 0 && draw(++alike))
            like = c;
    }
    if (like && alike >= s->o.strangers_per_ip)
        shut(like);
    else if (stranger && strangers >= 4 * s->o.strangers_per_ip)
        shut(stranger);
    else if (oldest && all >= s->o.connections - s->o.connections / 8)
        shut(oldest);
}

static void begin(struct http_server *s, struct MHD_Connection *connection, void **context)
{
    struct http_connection *c = NEW(struct http_connection);
    take_address(c, connection);
    c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->owes = now();
    pthread_mutex_lock(&s->lock);
    list_init(&c->link);
    make_room(s, c);
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

void connection_asks(struct MHD_Connection *connection)
{
    struct http_connection *c = of(connection);
    if (c)
        c->known = true;
}

struct http_tls_connection *connection_tls(struct MHD_Connection *connection)
{
    const struct http_connection *c = of(connection);
    return c ? c->tls : NULL;
}

void connection_check(struct http_server *s)
{
    int64_t limit = now() - s->o.idle_seconds * CLOCK_SECOND;
    int64_t for_strangers = now() - STRANGER_SECONDS * CLOCK_SECOND;
    pthread_mutex_lock(&s->lock);
    list_for_each(&s->connections, c, struct http_connection, link) {
        int64_t owes = c->owes;
        if (owes && (owes < limit || (!c->known && owes < for_strangers)))
            shut(c);
    }
    pthread_mutex_unlock(&s->lock);
}

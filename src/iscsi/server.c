#include "iscsi/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/net.h"
#include "io/strangers.h"
#include "io/stream.h"

enum { ACCEPTS = 64, PEER_MAX = 64, STRANGERS = 256, STRANGERS_PER_ADDRESS = 128 };

static const int64_t PATIENCE = 5 * CLOCK_SECOND;

struct portal {
    struct io_watch watch;
    struct list_link link;
    struct iscsi_server *server;
};

struct connection {
    struct io_stream stream;
    struct list_link link;
    struct iscsi_server *server;
    struct iscsi_conn *conn;
    struct io_stranger peer; /* until it has logged in */
    bool logged_in;
};

struct iscsi_server {
    struct io_loop *loop;
    struct iscsi_node *node;
    struct iscsi_server_options o;
    struct list_link portals, connections;
    struct io_strangers strangers;
    unsigned count, logged_in;
    struct io_timer tick;
    bool worked; /* since the last tick */
    unsigned quiet;
    bool closing;
    void (*done)(void *context);
    void *context;
    struct io_deferred finish;
};

static struct connection *connection_of(struct io_stream *s)
{
    return container_of(s, struct connection, stream);
}

/* Connections. */

static void received(struct io_stream *stream, const struct io_slice *slices, unsigned n)
{
    struct connection *c = connection_of(stream);
    c->server->worked = true;
    for (unsigned i = 0; i < n; i++)
        iscsi_conn_received(c->conn, slices[i].buf, slices[i].data, slices[i].length);
    iscsi_conn_turn(c->conn);
}

static void sent(struct io_stream *stream)
{
    iscsi_conn_sent(connection_of(stream)->conn);
}

static void closed(struct io_stream *stream, int error)
{
    struct connection *c = connection_of(stream);
    struct iscsi_server *s = c->server;
    if (error)
        log_debug("iscsi connection lost", LOG_S("peer", c->peer.address),
                  LOG_S("why", strerror(error)));
    iscsi_conn_free(c->conn);
    io_strangers_leave(&c->peer);
    list_unlink(&c->link);
    s->count--;
    s->logged_in -= c->logged_in;
    free(c);
    if (s->closing && !s->count)
        io_loop_defer(s->loop, &s->finish);
}

static const struct io_stream_ops stream_ops = {
    .received = received,
    .sent = sent,
    .closed = closed,
};

static void conn_flush(struct iscsi_conn *conn)
{
    struct connection *c = iscsi_conn_carrier(conn);
    io_stream_flush(&c->stream);
}

static void conn_close(struct iscsi_conn *conn, bool at_once)
{
    struct connection *c = iscsi_conn_carrier(conn);
    if (at_once)
        io_stream_close(&c->stream);
    else
        io_stream_finish(&c->stream);
}

static void conn_pause(struct iscsi_conn *conn, bool paused)
{
    struct connection *c = iscsi_conn_carrier(conn);
    io_stream_pause(&c->stream, paused);
}

static unsigned from_address(const struct iscsi_server *s, const char *peer)
{
    unsigned n = 0;
    list_for_each(&s->connections, c, struct connection, link)
        n += c->logged_in && strcmp(c->peer.address, peer) == 0;
    return n;
}

/* A place is taken by who has logged in, not by who has connected. */
static void conn_logged_in(struct iscsi_conn *conn)
{
    struct connection *c = iscsi_conn_carrier(conn);
    struct iscsi_server *s = c->server;
    io_strangers_leave(&c->peer);
    if (s->logged_in >= s->o.connections ||
        from_address(s, c->peer.address) >= s->o.connections_per_address) {
        log_warn("iscsi connection refused: too many", LOG_S("peer", c->peer.address));
        io_stream_close(&c->stream);
        return;
    }
    c->logged_in = true;
    s->logged_in++;
    io_stream_widen(&c->stream);
}

static void dismiss(struct io_stranger *stranger, const char *why)
{
    struct connection *c = container_of(stranger, struct connection, peer);
    log_debug("iscsi connection ended before a login", LOG_S("peer", stranger->address),
              LOG_S("why", why));
    io_stream_close(&c->stream);
}

static const struct iscsi_conn_ops conn_ops = {
    .flush = conn_flush,
    .close = conn_close,
    .pause = conn_pause,
    .logged_in = conn_logged_in,
};

/* Accepting. */

static void local_name(int fd, char *text, size_t size)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);
    char address[INET6_ADDRSTRLEN] = "";
    getsockname(fd, (void *)&a, &n);
    net_address_text((void *)&a, address, sizeof(address));
    struct sockaddr_in in;
    memcpy(&in, &a, sizeof(in)); /* both families have the port in the same place */
    snprintf(text, size, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address,
             (unsigned)ntohs(in.sin_port));
}

static void take(struct iscsi_server *s, int fd, const struct sockaddr *address)
{
    char local[PEER_MAX + 16];
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    local_name(fd, local, sizeof(local));
    struct connection *c = NEW(struct connection);
    c->server = s;
    io_strangers_add(&s->strangers, &c->peer, address);
    c->conn = iscsi_conn_new(s->node, &c->stream.out, &conn_ops, c, local, c->peer.address);
    list_push(&s->connections, &c->link);
    s->count++;
    io_stream_start(&c->stream, s->loop, fd, &stream_ops);
}

static void acceptable(struct io_watch *watch)
{
    struct iscsi_server *s = container_of(watch, struct portal, watch)->server;
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage a;
        socklen_t n = sizeof(a);
        int fd = accept4(watch->fd, (void *)&a, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        take(s, fd, (void *)&a);
    }
}

static void portal_removed(struct io_watch *watch)
{
    struct portal *p = container_of(watch, struct portal, watch);
    close(watch->fd);
    free(p);
}

int iscsi_server_listen(struct iscsi_server *s, const char *address, uint16_t port,
                        uint16_t *ret_port, struct err *e)
{
    int fd;
    if (net_listen_again(address, port, &fd, ret_port, e) < 0)
        return -1;
    struct portal *p = NEW(struct portal);
    p->server = s;
    p->watch.readable = acceptable;
    p->watch.removed = portal_removed;
    list_push(&s->portals, &p->link);
    io_watch_add(s->loop, &p->watch, fd);
    return 0;
}

void iscsi_server_stop_listening(struct iscsi_server *s)
{
    list_for_each_safe(&s->portals, p, struct portal, link) {
        list_unlink(&p->link);
        io_watch_remove(&p->watch);
    }
}

/* Life. */

static void tick(struct io_timer *timer)
{
    struct iscsi_server *s = container_of(timer, struct iscsi_server, tick);
    list_for_each_safe(&s->connections, c, struct connection, link)
        iscsi_conn_tick(c->conn);
    /* What a burst needed goes back to the system when nothing has happened for a while. */
    s->quiet = s->worked ? 0 : s->quiet + 1;
    s->worked = false;
    if (s->quiet == 5)
        io_pool_trim(io_loop_pool(s->loop));
    io_timer_start(s->loop, timer, io_loop_now(s->loop) + CLOCK_SECOND);
}

static void finish(struct io_deferred *d)
{
    struct iscsi_server *s = container_of(d, struct iscsi_server, finish);
    void (*done)(void *context) = s->done;
    void *context = s->context;
    free(s);
    done(context);
}

struct iscsi_server *iscsi_server_new(struct io_loop *loop, struct iscsi_node *node,
                                      const struct iscsi_server_options *o)
{
    struct iscsi_server *s = NEW(struct iscsi_server);
    s->loop = loop;
    s->node = node;
    s->o = *o;
    list_init(&s->portals);
    list_init(&s->connections);
    s->finish.fn = finish;
    list_init(&s->finish.link);
    s->strangers = (struct io_strangers){.loop = loop,
                                         .most = STRANGERS,
                                         .most_per_address = STRANGERS_PER_ADDRESS,
                                         .patience = PATIENCE,
                                         .dismiss = dismiss};
    io_strangers_init(&s->strangers);
    s->tick.fn = tick;
    io_timer_start(loop, &s->tick, io_loop_now(loop) + CLOCK_SECOND);
    return s;
}

unsigned iscsi_server_connections(const struct iscsi_server *s)
{
    return s->count;
}

void iscsi_server_close(struct iscsi_server *s, void (*done)(void *context), void *context)
{
    s->closing = true;
    s->done = done;
    s->context = context;
    iscsi_server_stop_listening(s);
    io_timer_stop(s->loop, &s->tick);
    io_strangers_done(&s->strangers);
    list_for_each(&s->connections, c, struct connection, link)
        io_stream_close(&c->stream);
    if (!s->count)
        io_loop_defer(s->loop, &s->finish);
}

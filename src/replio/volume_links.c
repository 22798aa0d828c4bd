/*
 * The connections of a volume: strangers (io/strangers.h), and the links of replicas. A link has a slot of the core,
 * and only who has proved that he knows the volume's key gets one: the core never hears of anybody else.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "replio/volume_impl.h"

enum { STRANGERS = 64, STRANGERS_PER_ADDRESS = 32, ACCEPTS = 64 };

static const int64_t PATIENCE = 3 * CLOCK_SECOND;

/* The core's actions. */

void volume_send(void *context, int link, const struct repl_msg *m, const struct iovec *iov, int n,
                 struct repl_buf *owner)
{
    struct replio_volume *v = context;
    (void)owner; /* encrypted at once, so that nobody has to keep it */
    replio_send(&v->links[link]->conn, m, iov, (unsigned)n);
}

/* A connection ends: whose, from where, why. */
static void log_end(const struct link *l, const char *what, const char *why)
{
    char id[UUID_TEXT_MAX];
    struct uuid peer = repl_target_peer(l->volume->core, l->slot);
    log_info(what, LOG_S("replica", uuid_format(&peer, id)), LOG_S("address", l->peer.address),
             LOG_S("why", why));
}

void volume_close_link(void *context, int link, const char *why)
{
    struct replio_volume *v = context;
    struct link *l = v->links[link];
    log_end(l, "replica let go", why);
    l->open = false;
    replio_conn_close(&l->conn);
}

const char *replio_volume_address(const struct replio_volume *v, int link)
{
    return link >= 0 && link < (int)ARRAY_SIZE(v->links) && v->links[link]
               ? v->links[link]->peer.address
               : "";
}

/* Connections. */

/* He knows the key: from now on it is a replica's link, if there is a slot. */
static void conn_ready(struct replio_conn *c)
{
    struct link *l = container_of(c, struct link, conn);
    struct replio_volume *v = l->volume;
    io_strangers_leave(&l->peer);
    for (int i = 0; i < (int)ARRAY_SIZE(v->links) && !v->closing; i++) {
        if (v->links[i])
            continue;
        v->links[i] = l;
        l->slot = i;
        l->open = true;
        repl_target_time(v->core, io_loop_now(v->loop));
        repl_target_open(v->core, i);
        turn_soon(v);
        return;
    }
    replio_conn_close(c); /* the core lets go of links that say nothing: there will be room */
}

static bool take_frame(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov,
                       int n, struct repl_buf *owner)
{
    struct link *l = container_of(c, struct link, conn);
    repl_target_time(l->volume->core, io_loop_now(l->volume->loop));
    repl_target_input(l->volume->core, l->slot, m, iov, n, owner);
    return true;
}

static void batch_end(struct replio_conn *c)
{
    turn_soon(container_of(c, struct link, conn)->volume);
}

static void finish_when_gone(struct replio_volume *v)
{
    if (v->closing && !v->listening && !v->connections)
        io_loop_defer(v->loop, &v->finish);
}

static void conn_closed(struct replio_conn *c, const char *why)
{
    struct link *l = container_of(c, struct link, conn);
    struct replio_volume *v = l->volume;
    io_strangers_leave(&l->peer);
    if (l->open) {
        log_end(l, "replica's connection ended", why);
        repl_target_close(v->core, l->slot);
        turn_soon(v);
    }
    if (l->slot >= 0)
        v->links[l->slot] = NULL;
    else
        log_debug("stranger's connection ended", LOG_S("address", l->peer.address),
                  LOG_S("why", why));
    list_unlink(&l->link);
    v->connections--;
    free(l);
    finish_when_gone(v);
}

static void dismiss(struct io_stranger *s, const char *why)
{
    struct link *l = container_of(s, struct link, peer);
    log_debug("stranger let go", LOG_S("address", s->address), LOG_S("why", why));
    replio_conn_close(&l->conn);
}

static const struct replio_conn_ops conn_ops = {
    .ready = conn_ready, .frame = take_frame, .turn = batch_end, .closed = conn_closed};

static void take(struct replio_volume *v, int fd, const struct sockaddr *peer)
{
    int one = 1;
    struct link *l = NEW(struct link);
    *l = (struct link){.volume = v, .slot = -1, .conn = {.ops = &conn_ops, .volume = v->id}};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    io_strangers_add(&v->strangers, &l->peer, peer);
    list_push(&v->all, &l->link);
    v->connections++;
    replio_conn_start(&l->conn, v->loop, &v->payloads, fd, v->key, true);
}

static void acceptable(struct io_watch *watch)
{
    struct replio_volume *v = container_of(watch, struct replio_volume, watch);
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t size = sizeof(peer);
        int fd = accept4(watch->fd, (void *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        take(v, fd, (void *)&peer);
    }
}

static void unlistened(struct io_watch *watch)
{
    struct replio_volume *v = container_of(watch, struct replio_volume, watch);
    close(watch->fd);
    v->listening = false;
    finish_when_gone(v);
}

void volume_listen(struct replio_volume *v, int fd)
{
    v->strangers = (struct io_strangers){.loop = v->loop,
                                         .most = STRANGERS,
                                         .most_per_address = STRANGERS_PER_ADDRESS,
                                         .patience = PATIENCE,
                                         .dismiss = dismiss};
    io_strangers_init(&v->strangers);
    list_init(&v->all);
    v->watch.readable = acceptable;
    v->watch.removed = unlistened;
    v->listening = true;
    io_watch_add(v->loop, &v->watch, fd);
}

void volume_end_links(struct replio_volume *v)
{
    list_for_each(&v->all, l, struct link, link) {
        if (l->slot >= 0)
            io_stream_finish(&l->conn.stream); /* after the last word */
        else
            replio_conn_close(&l->conn);
    }
    io_watch_remove(&v->watch);
}

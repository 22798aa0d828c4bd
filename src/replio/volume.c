#include "replio/volume.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/net.h"
#include "replio/volume_impl.h"

enum { EVENT_MOST = 200 };

static void tell_ready(struct replio_volume *v)
{
    if (!v->ready || !v->serving)
        return;
    struct repl_status status;
    repl_target_status(v->core, &status);
    v->store.size = status.size - status.size % v->store.block_size;
    void (*ready)(void *context) = v->ready;
    v->ready = NULL;
    ready(v->ready_context);
}

/* Whoever is told may submit again: never from within an action of the core. */
static void settle(struct replio_volume *v)
{
    if (v->settling)
        return;
    v->settling = true;
    volume_tell(v);
    volume_tell_admin(v);
    tell_ready(v);
    v->settling = false;
}

/* Actions. */

static void send_frame(void *context, int link, const struct repl_msg *m, const struct iovec *iov,
                       int n, struct repl_buf *owner)
{
    struct replio_volume *v = context;
    replio_send(&v->links[link].conn, m, iov, (unsigned)n, owner);
}

/* A connection ends: whose, from where, why. */
static void log_end(const struct replio_volume *v, const struct link *l, const char *what,
                    const char *why)
{
    char id[UUID_TEXT_MAX];
    struct uuid peer = repl_target_peer(v->core, (int)(l - v->links));
    log_info(what, LOG_S("replica", uuid_format(&peer, id)), LOG_S("address", l->address),
             LOG_S("why", why));
}

static void close_link(void *context, int link, const char *why)
{
    struct replio_volume *v = context;
    struct link *l = &v->links[link];
    log_end(v, l, "replica let go", why);
    l->open = false;
    replio_conn_close(&l->conn);
}

__attribute__((format(printf, 2, 3))) static void say(char text[EVENT_MOST], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, EVENT_MOST, fmt, ap);
    va_end(ap);
}

static void event(void *context, enum repl_event what, uint64_t a, uint64_t b)
{
    struct replio_volume *v = context;
    char text[EVENT_MOST], id[UUID_TEXT_MAX];
    struct uuid peer = {0};
    if (what == REPL_EV_DROPPED || what == REPL_EV_MISMATCH || what == REPL_EV_INSYNC)
        peer = repl_target_peer(v->core, (int)a);
    uuid_format(&peer, id);
    switch (what) {
    case REPL_EV_EPOCH:
        say(text, "took epoch %llu", (unsigned long long)a);
        break;
    case REPL_EV_FENCED:
        say(text, "epoch %llu belongs to another target: this one ends", (unsigned long long)a);
        break;
    case REPL_EV_SERVING:
        v->serving = a != 0;
        say(text, "%s", a ? "serves I/O" : "too few replicas are in sync: I/O waits for them");
        break;
    case REPL_EV_DROPPED:
        say(text, "replica %s fell behind or was silent: the volume goes on without it", id);
        break;
    case REPL_EV_MAYBE_LOST:
        say(text, "replicas restarted at once: writes that were not flushed may be lost");
        break;
    case REPL_EV_MISMATCH:
        say(text, "replica %s differed at offset %llu and was mended", id, (unsigned long long)b);
        break;
    case REPL_EV_UNDECIDED:
        say(text, "replicas differ (%llu) at offset %llu and none has a majority",
            (unsigned long long)a, (unsigned long long)b);
        break;
    case REPL_EV_INSYNC:
        say(text, "replica %s has everything", id);
        break;
    case REPL_EV_FORCED:
        say(text, "a replica was taken out by force: %s",
            a ? "writes that were acknowledged may be lost with it"
              : "all that was acknowledged is on the others");
        break;
    }
    if (v->event)
        v->event(v->event_context, what, text);
    turn_soon(v);
}

static const struct repl_target_ops core_ops = {
    .send = send_frame,
    .close = close_link,
    .complete = volume_complete,
    .admin_done = volume_admin_done,
    .event = event,
};

const char *replio_volume_address(const struct replio_volume *v, int link)
{
    return link >= 0 && link < (int)ARRAY_SIZE(v->links) && v->links[link].used
               ? v->links[link].address
               : "";
}

void replio_volume_status(const struct replio_volume *v, struct repl_status *ret_status)
{
    repl_target_status(v->core, ret_status);
}

/* Connections. */

static bool take_frame(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov,
                       int n, struct repl_buf *owner)
{
    struct link *l = container_of(c, struct link, conn);
    repl_target_time(l->volume->core, io_loop_now(l->volume->loop));
    repl_target_input(l->volume->core, (int)(l - l->volume->links), m, iov, n, owner);
    return true;
}

static void batch_end(struct replio_conn *c)
{
    turn_soon(container_of(c, struct link, conn)->volume);
}

static void finish_when_gone(struct replio_volume *v)
{
    if (!v->closing || v->listening)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(v->links); i++) {
        if (v->links[i].used)
            return;
    }
    io_loop_defer(v->loop, &v->finish);
}

static void conn_closed(struct replio_conn *c, const char *why)
{
    struct link *l = container_of(c, struct link, conn);
    struct replio_volume *v = l->volume;
    l->used = false;
    if (l->open) {
        log_end(v, l, "replica's connection ended", why);
        repl_target_close(v->core, (int)(l - v->links));
    }
    l->open = false;
    turn_soon(v);
    finish_when_gone(v);
}

static const struct replio_conn_ops conn_ops = {
    .frame = take_frame, .turn = batch_end, .closed = conn_closed};

static void take(struct replio_volume *v, int fd)
{
    int one = 1;
    for (size_t i = 0; i < ARRAY_SIZE(v->links); i++) {
        struct link *l = &v->links[i];
        if (l->used)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        *l = (struct link){
            .volume = v, .used = true, .open = true, .conn = {.ops = &conn_ops, .volume = v->id}};
        struct sockaddr_storage peer = {0};
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (void *)&peer, &size) == 0)
            net_address_text((void *)&peer, l->address, sizeof(l->address));
        replio_conn_start(&l->conn, v->loop, &v->payloads, fd, v->key, true);
        repl_target_time(v->core, io_loop_now(v->loop));
        repl_target_open(v->core, (int)i);
        turn_soon(v);
        return;
    }
    close(fd); /* the core lets go of links that say nothing: there will be room */
}

static void acceptable(struct io_watch *watch)
{
    struct replio_volume *v = container_of(watch, struct replio_volume, watch);
    for (;;) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        take(v, fd);
    }
}

/* Life. */

static void take_turn(struct io_deferred *d)
{
    struct replio_volume *v = container_of(d, struct replio_volume, turn);
    int64_t next = repl_target_turn(v->core, io_loop_now(v->loop));
    io_timer_start(v->loop, &v->wake, next);
    settle(v);
}

static void wake(struct io_timer *timer)
{
    turn_soon(container_of(timer, struct replio_volume, wake));
}

static void free_now(struct replio_volume *v)
{
    io_timer_stop(v->loop, &v->wake);
    list_unlink(&v->turn.link);
    if (v->core)
        repl_target_free(v->core);
    replio_payloads_done(&v->payloads);
    free(v);
}

static void finish(struct io_deferred *d)
{
    struct replio_volume *v = container_of(d, struct replio_volume, finish);
    void (*closed)(void *context) = v->closed;
    void *context = v->closed_context;
    free_now(v);
    closed(context);
}

static void unlistened(struct io_watch *watch)
{
    struct replio_volume *v = container_of(watch, struct replio_volume, watch);
    close(watch->fd);
    v->listening = false;
    finish_when_gone(v);
}

static void end_by_store(struct store *s)
{
    (void)s; /* replio_volume_close() does it */
}

static const struct store_ops ops = {
    .name = "replicated",
    .submit = volume_submit,
    .client = volume_client,
    .grow = volume_grow,
    .close = end_by_store,
};

struct replio_volume *replio_volume_open(const struct replio_volume_options *o, struct err *e)
{
    int fd;
    uint16_t port;
    if (net_listen_again(o->listen, o->port, &fd, &port, e) < 0)
        return NULL;
    struct replio_volume *v = NEW(struct replio_volume);
    v->store = (struct store){
        .ops = &ops, .size = o->core.size, .block_size = o->block_size, .volatile_cache = true};
    v->loop = o->loop;
    v->port = port;
    v->key = o->key;
    v->id = o->core.volume;
    v->payloads.pool = io_loop_pool(o->loop);
    v->event = o->event;
    v->event_context = o->context;
    list_init(&v->complete);
    v->turn.fn = take_turn;
    list_init(&v->turn.link);
    v->finish.fn = finish;
    list_init(&v->finish.link);
    v->wake.fn = wake;
    v->core = repl_target_new(&o->core, &core_ops, v);
    v->watch.readable = acceptable;
    v->watch.removed = unlistened;
    v->listening = true;
    io_watch_add(v->loop, &v->watch, fd);
    turn_soon(v);
    return v;
}

struct store *replio_volume_store(struct replio_volume *v)
{
    return &v->store;
}

uint16_t replio_volume_port(const struct replio_volume *v)
{
    return v->port;
}

void replio_volume_on_ready(struct replio_volume *v, void (*ready)(void *context), void *context)
{
    v->ready = ready;
    v->ready_context = context;
    turn_soon(v);
}

void replio_volume_close(struct replio_volume *v, void (*done)(void *context), void *context)
{
    v->closing = true;
    v->closed = done;
    v->closed_context = context;
    repl_target_bye(v->core);
    for (size_t i = 0; i < ARRAY_SIZE(v->links); i++) {
        if (v->links[i].used)
            io_stream_finish(&v->links[i].conn.stream); /* after the last word */
    }
    io_watch_remove(&v->watch);
}

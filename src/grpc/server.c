/*
 * Sockets and the I/O thread: epoll over listeners, connections, and an eventfd by which workers say that
 * a call has something to send.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "grpc/impl.h"

enum { WORKERS = 16, CONNECTIONS = 256, EVENTS = 64, CHUNK = 64 * 1024 };

/* What an event of epoll is about, in the low bits of its pointer. */
enum { IS_WAKE, IS_LISTENER, IS_CONNECTION };
enum { TAG_BITS = 2 };

static uint64_t tag(const void *p, unsigned kind)
{
    return (uint64_t)(uintptr_t)p | kind;
}

void grpc_wake(struct grpc_server *s)
{
    uint64_t one = 1;
    if (write(s->wake, &one, sizeof(one)) < 0)
        log_warn("cannot wake the thread of gRPC", LOG_S("why", strerror(errno)));
}

/* Connections. */

/* Its memory stays until the turn is over: an event of the same turn may be its. */
static void end_connection(struct grpc_conn *c)
{
    struct grpc_server *s = c->listener->server;
    list_for_each_safe(&c->calls, it, struct grpc_call, conn_link)
        grpc_call_abandon(it);
    nghttp2_session_del(c->session);
    c->ended = true;
    list_unlink(&c->link);
    list_push(&s->dead, &c->link);
    s->n_connections--;
    close(c->fd);
    str_done(&c->out);
}

static void bury(struct grpc_server *s)
{
    for (struct list_link *l; (l = list_take(&s->dead));)
        free(container_of(l, struct grpc_conn, link));
}

static void want_events(struct grpc_conn *c)
{
    bool full = c->out.len > c->out_from;
    struct epoll_event event = {.events = EPOLLIN | (full ? (unsigned)EPOLLOUT : 0),
                                .data.u64 = tag(c, IS_CONNECTION)};
    epoll_ctl(c->listener->server->epoll, EPOLL_CTL_MOD, c->fd, &event);
}

/* Everything that can be sent now is; false: the connection is over. */
static bool flush(struct grpc_conn *c)
{
    for (;;) {
        if (c->out_from == c->out.len) {
            str_clear(&c->out);
            c->out_from = 0;
            if (!grpc_session_send(c))
                return false;
            if (!c->out.len)
                break;
        }
        ssize_t n = send(c->fd, c->out.p + c->out_from, c->out.len - c->out_from, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return false;
        c->out_from += (size_t)n;
    }
    want_events(c);
    return true;
}

static bool receive(struct grpc_conn *c)
{
    uint8_t bytes[CHUNK];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0 || !grpc_session_receive(c, bytes, (size_t)n))
        return false;
    list_unlink(&c->link);
    list_push(&c->listener->server->connections, &c->link);
    return true;
}

static void serve_connection(struct grpc_conn *c, uint32_t events)
{
    bool alive = !(events & (EPOLLERR | EPOLLHUP)) || (events & EPOLLIN);
    if (alive && (events & EPOLLIN))
        alive = receive(c);
    if (!alive || !flush(c))
        end_connection(c);
}

/* Room for one more: first one that never asked for anything goes, then one that is idle. */
static bool make_room(struct grpc_server *s)
{
    struct grpc_conn *victim = NULL;
    if (s->n_connections < s->o.connections)
        return true;
    list_for_each(&s->connections, it, struct grpc_conn, link) {
        if (!list_empty(&it->calls) || (victim && (it->asked || !victim->asked)))
            continue;
        victim = it;
    }
    if (victim)
        end_connection(victim);
    return victim;
}

static void take_connection(struct grpc_listener *l)
{
    struct grpc_server *s = l->server;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (!make_room(s)) {
        close(fd);
        return;
    }
    struct grpc_conn *c = NEW(struct grpc_conn);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag(c, IS_CONNECTION)};
    c->listener = l;
    c->fd = fd;
    list_init(&c->calls);
    list_push(&s->connections, &c->link);
    s->n_connections++;
    if (!grpc_session_new(c) || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 || !flush(c))
        end_connection(c);
}

/* The thread. */

/* The end does not wait for clients that do not read. */
static void cancel_streams(struct grpc_server *s)
{
    list_for_each(&s->connections, c, struct grpc_conn, link) {
        list_for_each(&c->calls, it, struct grpc_call, conn_link) {
            if (it->method && it->method->streams)
                grpc_call_cancel(it);
        }
    }
}

static void take_news(struct grpc_server *s)
{
    struct list_link *l;
    uint64_t count;
    if (read(s->wake, &count, sizeof(count)) < 0)
        count = 0;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool stopping = s->stopping;
        l = list_take(&s->news);
        pthread_mutex_unlock(&s->lock);
        if (stopping)
            cancel_streams(s);
        if (!l)
            return;
        struct grpc_call *call = container_of(l, struct grpc_call, news_link);
        struct grpc_conn *c = call->conn;
        grpc_session_answer(call);
        grpc_call_unref(call);
        if (c && !flush(c))
            end_connection(c);
    }
}

static bool is_ending(struct grpc_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool ending = s->ending;
    pthread_mutex_unlock(&s->lock);
    return ending;
}

/* Answers that the socket had no room for: a client that reads gets them. */
static void send_rest(struct grpc_conn *c)
{
    const struct timeval patience = {.tv_sec = 1};
    int flags = fcntl(c->fd, F_GETFL);
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 || !flush(c))
        end_connection(c);
}

static void *run(void *context)
{
    struct grpc_server *s = context;
    struct epoll_event events[EVENTS];
    while (!is_ending(s)) {
        int n = epoll_wait(s->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            void *p = (void *)(uintptr_t)(events[i].data.u64 >> TAG_BITS << TAG_BITS);
            switch (events[i].data.u64 & ((1 << TAG_BITS) - 1)) {
            case IS_WAKE:
                take_news(s);
                break;
            case IS_LISTENER:
                take_connection(p);
                break;
            default:
                if (!((struct grpc_conn *)p)->ended)
                    serve_connection(p, events[i].events);
            }
        }
        bury(s);
    }
    take_news(s);
    list_for_each_safe(&s->connections, it, struct grpc_conn, link)
        send_rest(it);
    bury(s);
    return NULL;
}

/* Setting up. */

struct grpc_server *grpc_server_new(const struct grpc_server_options *o, struct err *e)
{
    struct grpc_server *s = NEW(struct grpc_server);
    s->o = *o;
    s->o.workers = o->workers ? o->workers : WORKERS;
    s->o.connections = o->connections ? o->connections : CONNECTIONS;
    s->o.message_max = o->message_max ? o->message_max : GRPC_MESSAGE_MAX;
    list_init(&s->connections);
    list_init(&s->dead);
    list_init(&s->queue);
    list_init(&s->news);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag(NULL, IS_WAKE)};
    if (s->epoll >= 0 && s->wake >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &event) == 0)
        return s;
    err_errno(e, errno, "cannot make an event loop");
    grpc_server_free(s);
    return NULL;
}

int grpc_socket_address(const char *path, struct sockaddr_un *ret, struct err *e)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(ret->sun_path))
        return err_set(e, ERR_INVALID_ARGUMENT, "LongPath",
                       "the path of a socket has at most %zu bytes: %s", sizeof(ret->sun_path) - 1,
                       path);
    memcpy(ret->sun_path, path, strlen(path));
    return 0;
}

/* A socket whose process is gone refuses connections; others are in use. */
static int clear_stale(const char *path, const struct sockaddr_un *address, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_FAILED_PRECONDITION, "NotASocket", "%s is there and is no socket",
                       path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
                   errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    if (!refused)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "another program serves %s", path);
    return unlink(path) < 0 ? err_errno(e, errno, "cannot remove %s", path) : 0;
}

int grpc_server_listen(struct grpc_server *s, const char *path, unsigned mode,
                       const struct grpc_method *methods, void *context, struct err *e)
{
    struct sockaddr_un address;
    if (grpc_socket_address(path, &address, e) < 0 || clear_stale(path, &address, e) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t was = umask(0777); /* nobody may connect before the mode is set */
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    int error = errno;
    umask(was);
    struct grpc_listener *l = NEW(struct grpc_listener);
    *l = (struct grpc_listener){s, fd, mem_strdup(path), methods, context};
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag(l, IS_LISTENER)};
    if (!bound || chmod(path, mode) < 0 || listen(fd, SOMAXCONN) < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        err_errno(e, bound ? errno : error, "cannot listen at %s", path);
        if (fd >= 0)
            close(fd);
        free(l->path);
        free(l);
        return -1;
    }
    vec_push(&s->listeners, l);
    return 0;
}

int grpc_server_start(struct grpc_server *s, struct err *e)
{
    if (thread_start(&s->thread, "grpc", run, s, e) < 0)
        return -1;
    s->started = true;
    return 0;
}

void grpc_server_free(struct grpc_server *s)
{
    vec_for_each(&s->listeners, l) {
        if (s->epoll >= 0)
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, (*l)->fd, NULL);
        unlink((*l)->path);
    }
    grpc_workers_stop(s);
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->ending = true;
        pthread_mutex_unlock(&s->lock);
        grpc_wake(s);
        pthread_join(s->thread, NULL);
    }
    list_for_each_safe(&s->connections, it, struct grpc_conn, link)
        end_connection(it);
    bury(s);
    vec_for_each(&s->listeners, l) {
        close((*l)->fd);
        free((*l)->path);
        free(*l);
    }
    vec_done(&s->listeners);
    if (s->epoll >= 0)
        close(s->epoll);
    if (s->wake >= 0)
        close(s->wake);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    free(s);
}

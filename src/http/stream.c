#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/server_impl.h"

enum {
    STREAM_BLOCK = 16 << 10,
    CHECK_MS = 500
}; /* one read, for clients of HTTP/1.0; else the library's buffer */

struct http_stream *http_stream_ref(struct http_stream *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void http_stream_unref(struct http_stream *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void stream_resume_locked(struct http_stream *s)
{
    if (s->suspended) {
        s->suspended = false;
        MHD_resume_connection(s->connection);
    }
}

void http_stream_wake(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->woken = true;
    stream_resume_locked(s);
    pthread_mutex_unlock(&s->lock);
}

void http_stream_cut(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->gone = true;
    if (!s->over)
        shutdown(s->fd, SHUT_RDWR); /* the library sees the end, and closes it */
    stream_resume_locked(s);
    pthread_mutex_unlock(&s->lock);
}

/* True when the connection sleeps now; false when there is a reason to look again. */
static bool stream_sleep(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool sleeps = !s->woken && !s->gone && !s->server->stopping;
    if (sleeps) {
        MHD_suspend_connection(s->connection);
        s->suspended = true;
    }
    pthread_mutex_unlock(&s->lock);
    return sleeps;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct http_stream *s = cls;
    (void)pos;
    do {
        pthread_mutex_lock(&s->lock);
        s->woken = false;
        bool gone = s->gone;
        pthread_mutex_unlock(&s->lock);
        if (gone)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->server->stopping)
            return MHD_CONTENT_READER_END_OF_STREAM;
        ssize_t n = s->ops->read(s->context, buf, max);
        if (n)
            return n > 0 ? n : MHD_CONTENT_READER_END_OF_STREAM;
    } while (!stream_sleep(s));
    return 0;
}

static int stream_register(struct http_stream *s)
{
    struct http_server *server = s->server;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.fd = s->fd};
    pthread_mutex_lock(&server->lock);
    while (server->streams.len <= (size_t)s->fd)
        vec_push(&server->streams, NULL);
    server->streams.p[s->fd] = s;
    server->busy++;
    int r = epoll_ctl(server->epoll, EPOLL_CTL_ADD, s->fd, &event);
    pthread_mutex_unlock(&server->lock);
    return r;
}

static void stream_over(void *cls)
{
    struct http_stream *s = cls;
    struct http_server *server = s->server;
    pthread_mutex_lock(&server->lock);
    server->streams.p[s->fd] = NULL;
    epoll_ctl(server->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    pthread_mutex_unlock(&server->lock);

    pthread_mutex_lock(&s->lock);
    s->suspended = false; /* from here on a wake touches only the stream */
    s->over = true;
    pthread_mutex_unlock(&s->lock);

    s->ops->done(s->context);
    http_stream_unref(s);
    server_unbusy(server);
}

struct http_stream *http_reply_stream(struct http_request *r, unsigned status,
                                      const char *content_type, const struct http_stream_ops *ops,
                                      void *context)
{
    struct request *own = request_of(r);
    /* To HEAD the library would send the last, empty chunk, which the client takes for an answer. */
    bool head = str_eq(r->method, "HEAD");
    if (own->answered || head) {
        ops->done(context);
        if (head)
            http_reply(r, status, content_type, NULL, 0, NULL, NULL);
        return NULL;
    }
    struct http_stream *s = NEW(struct http_stream);
    s->server = own->server;
    s->connection = own->connection;
    s->fd = MHD_get_connection_info(own->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    s->ops = ops;
    s->context = context;
    s->refs = 2; /* the caller's and the response's */
    pthread_mutex_init(&s->lock, NULL);
    bool watched = stream_register(s) == 0;
    struct MHD_Response *response =
        watched ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, s,
                                                    stream_over)
                : NULL;
    /* There are two references, which the analyzer does not see. */
    if (!response)
        stream_over(s); /* gives up the response's */
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
    if (reply_queue(own, status, content_type, response))
        return s;
    if (!response)
        reply_text(own, MHD_HTTP_SERVICE_UNAVAILABLE, "too many watches: try again later");
    http_stream_unref(s);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    return NULL;
}

static void check_hang_up(struct http_server *server, int fd)
{
    pthread_mutex_lock(&server->lock);
    struct http_stream *s = server->streams.p[fd];
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    if (s && poll(&p, 1, 0) == 1) {
        pthread_mutex_lock(&s->lock);
        s->gone = true;
        stream_resume_locked(s);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&server->lock);
}

static void *watch(void *cls)
{
    struct http_server *s = cls;
    struct epoll_event events[64];
    int64_t checked = 0;
    for (;;) {
        int n = epoll_wait(s->epoll, events, ARRAY_SIZE(events), CHECK_MS);
        int64_t now = clock_mono_ns(clock_system());
        if (now - checked > CHECK_MS * (CLOCK_SECOND / 1000)) {
            connection_check(s);
            checked = now;
        }
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == s->stop_fd)
                return NULL;
            check_hang_up(s, events[i].data.fd);
        }
    }
}

int stream_watch_start(struct http_server *s, struct err *e)
{
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = s->stop_fd};
    if (s->epoll < 0 || s->stop_fd < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->stop_fd, &event) < 0)
        return err_errno(e, errno, "cannot watch the connections of an HTTP server");
    int errnum = pthread_create(&s->watcher, NULL, watch, s);
    return errnum ? err_errno(e, errnum, "cannot start a thread for an HTTP server") : 0;
}

void stream_watch_stop(struct http_server *s)
{
    eventfd_write(s->stop_fd, 1);
    pthread_join(s->watcher, NULL);
}

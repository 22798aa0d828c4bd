/*
 * libmicrohttpd owns sockets, threads and parsing; this file owns requests, streams and the watch
 * over sleeping connections.
 *
 * Who lives how long:
 * - A `struct request` from its request line until the library calls request_completed(). What it
 *   parsed and its body are freed already when the handler has returned: a watch may last for days.
 * - A `struct http_stream` while somebody has a reference. The server's own is held by the response
 *   and goes in stream_over(), which the library calls when it drops the response: after an
 *   orderly end, on an error, at stop, or at once when it does not take the response at all.
 *   Another thread touches the connection only to resume it: under the stream's lock, while
 *   `suspended` is set. stream_over() takes that lock and unsets it before the connection goes.
 *
 * The library takes a suspended connection out of its epoll set, so nobody would see the client
 * leave. Hence a thread of ours, the watcher, which waits for hang-ups on the sockets of all streams.
 * It knows them by number, in `streams`. A number it was told of may by then belong to another
 * connection; so it looks again, under the lock that stream_over() takes before the library closes
 * the socket.
 *
 * The library would panic at stop if a connection were still suspended. `stopping` is set before
 * http_server_stop() resumes each stream under its lock, and read under the same lock before a
 * stream suspends; so one of the two sees the other. Streams that register later see it too.
 *
 * A request whose handler defers is suspended likewise, and the pool has it: nobody else touches it
 * until its function has answered and the pool resumes the connection. The library then asks for the
 * request's next step, on its own thread, which hands over the answer that was kept. At stop the
 * pool finishes before the library is told; what comes later is not deferred but done at once.
 *
 * Connections are refused at stop by the accept policy, not by MHD_quiesce_daemon(), which with a
 * pool of epoll threads races with threads that leave the listening socket alone for a while.
 *
 * Locks, outermost first: server, stream, the library's. None is held while the handler or a
 * stream's operation runs.
 */
#include "http/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "http/listen.h"
#include "http/pool.h"
#include "http/target.h"

enum {
    DEFAULT_THREADS = 2,
    DEFAULT_DEFERRED_THREADS = 64,
    DEFAULT_BODY = 3 << 20,
    DEFAULT_HEADER = 64 << 10,
    LEAST_HEADER = 1024,
    DEFAULT_CONNECTIONS = 1024,
    DEFAULT_IDLE_SECONDS = 120,
    MOST_THREADS = 256,
    STREAM_BLOCK = 16 << 10, /* one read, for clients of HTTP/1.0; else the library's buffer */
    PARTS_BLOCK = 128 << 10, /* one read of an answer in parts */
    GRACE_SECONDS = 2,
};

struct http_server {
    struct http_server_options o; /* without address */
    struct MHD_Daemon *daemon;
    struct http_pool *pool;
    uint16_t port;
    int epoll, stop_fd; /* of the watcher */
    pthread_t watcher;
    _Atomic bool stopping; /* set once, under lock */

    pthread_mutex_t lock;
    pthread_cond_t idle;               /* busy became 0 */
    size_t busy;                       /* requests that reached the handler, and streams */
    VEC(struct http_stream *) streams; /* by socket; NULL where there is none */
};

struct header {
    const char *name, *value;
};

struct request {
    struct http_request pub;
    struct http_server *server;
    struct MHD_Connection *connection;
    struct arena arena;
    struct http_target target;
    struct str body;
    VEC(struct header) headers; /* of the answer; in the arena */
    size_t discarded;           /* bytes of a body that is too long */
    bool bad;                   /* the target; e says why */
    bool begun, too_long, busy, answered;
    struct err e;
    /* Of a handler that has deferred. */
    void (*deferred)(void *context, struct http_request *r);
    void *deferred_context;
    bool asleep;                   /* the connection is suspended: an answer is kept */
    struct MHD_Response *response; /* that one */
    unsigned status;
    _Atomic unsigned holds;                  /* the connection sleeps until there are none */
    struct MHD_Response *_Atomic overruling; /* instead of the answer that is kept */
    _Atomic unsigned overruling_status;
};

struct http_stream {
    struct http_server *server;        /* until it is over */
    struct MHD_Connection *connection; /* until it is over */
    int fd;
    const struct http_stream_ops *ops;
    void *context;
    _Atomic unsigned refs;

    pthread_mutex_t lock;
    bool suspended; /* the connection exists, and nobody has resumed it yet */
    bool woken;     /* since the last read began */
    bool gone;      /* the client */
};

static struct request *request_of(const struct http_request *r)
{
    return container_of(r, struct request, pub);
}

static void server_busy(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->busy++;
    pthread_mutex_unlock(&s->lock);
}

static void server_unbusy(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    if (--s->busy == 0)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

/* Answers. */

static bool is_token(const char *s)
{
    static const char also[] = "!#$%&'*+-.^_`|~";
    if (!*s)
        return false;
    for (; *s; s++) {
        bool alnum = (*s >= '0' && *s <= '9') || ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z');
        if (!alnum && !strchr(also, *s))
            return false;
    }
    return true;
}

static bool has_control(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return true;
    }
    return false;
}

bool http_reply_header(struct http_request *r, const char *name, const char *value)
{
    struct request *own = request_of(r);
    if (!is_token(name) || has_control(value))
        return false;
    struct header h = {arena_strdup(&own->arena, name), arena_strdup(&own->arena, value)};
    vec_push(&own->headers, h);
    return true;
}

/* Hands the response, of which it takes the reference, to the library. */
static bool queue(struct request *r, unsigned status, const char *content_type,
                  struct MHD_Response *response)
{
    if (!response)
        return false;
    if (content_type && !has_control(content_type))
        MHD_add_response_header(response, "Content-Type", content_type);
    vec_for_each(&r->headers, h)
        MHD_add_response_header(response, h->name, h->value);
    if (r->server->stopping)
        MHD_add_response_header(response, "Connection", "close");
    if (r->asleep && status >= 200 && status <= 999) {
        r->response = response;
        r->status = status;
        r->answered = true;
        return true;
    }
    r->answered = status >= 200 && MHD_queue_response(r->connection, status, response) == MHD_YES;
    MHD_destroy_response(response);
    return r->answered;
}

/* NULL, and the bytes are released, when there is no memory. */
static struct MHD_Response *response_of(const void *bytes, size_t size,
                                        void (*free_fn)(void *free_context), void *free_context)
{
    /* The library never writes to it. An empty buffer must not be NULL. */
    void *buffer = size ? (void *)(uintptr_t)bytes : (void *)(uintptr_t) "";
    struct MHD_Response *response =
        free_fn ? MHD_create_response_from_buffer_with_free_callback_cls(size, buffer, free_fn,
                                                                         free_context)
                : MHD_create_response_from_buffer(size, buffer, MHD_RESPMEM_PERSISTENT);
    if (!response && free_fn)
        free_fn(free_context);
    return response;
}

void http_reply(struct http_request *r, unsigned status, const char *content_type,
                const void *bytes, size_t size, void (*free_fn)(void *free_context),
                void *free_context)
{
    struct request *own = request_of(r);
    if (!own->answered)
        queue(own, status, content_type, response_of(bytes, size, free_fn, free_context));
    else if (free_fn)
        free_fn(free_context);
}

/* An answer of the server's own; text is copied. */
static void reply_text(struct request *r, unsigned status, const char *text)
{
    if (r->answered)
        return;
    char *line = mem_printf("%s\n", text);
    http_reply(&r->pub, status, "text/plain; charset=utf-8", line, strlen(line), free, line);
}

/* Streams. */

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

/* With the stream's lock. */
static void resume_locked(struct http_stream *s)
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
    resume_locked(s);
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
    if (queue(own, status, content_type, response))
        return s;
    if (!response)
        reply_text(own, MHD_HTTP_SERVICE_UNAVAILABLE, "too many watches: try again later");
    http_stream_unref(s);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    return NULL;
}

/* Answers in parts. */

struct parts {
    const struct http_stream_ops *ops;
    void *context;
};

static ssize_t parts_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct parts *p = cls;
    (void)pos;
    ssize_t n = p->ops->read(p->context, buf, max);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void parts_over(void *cls)
{
    struct parts *p = cls;
    p->ops->done(p->context);
    free(p);
}

void http_reply_parts(struct http_request *r, unsigned status, const char *content_type,
                      uint64_t size, const struct http_stream_ops *ops, void *context)
{
    struct request *own = request_of(r);
    struct parts *p = NEW(struct parts);
    p->ops = ops;
    p->context = context;
    struct MHD_Response *response = NULL;
    if (!own->answered)
        response = MHD_create_response_from_callback(size, PARTS_BLOCK, parts_read, p, parts_over);
    if (response)
        queue(own, status, content_type, response);
    else
        parts_over(p);
}

/* Requests. */

const char *http_request_query(const struct http_request *r, const char *name)
{
    return http_target_param(&request_of(r)->target, name);
}

const char *http_request_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(request_of(r)->connection, MHD_HEADER_KIND, name);
}

void http_defer(struct http_request *r, void (*fn)(void *context, struct http_request *r),
                void *context)
{
    struct request *own = request_of(r);
    own->deferred = fn;
    own->deferred_context = context;
}

void http_hold(struct http_request *r)
{
    atomic_fetch_add_explicit(&request_of(r)->holds, 1, memory_order_relaxed);
}

void http_release(struct http_request *r)
{
    struct request *own = request_of(r);
    struct MHD_Connection *connection = own->connection;
    if (atomic_fetch_sub_explicit(&own->holds, 1, memory_order_acq_rel) == 1)
        MHD_resume_connection(connection); /* from here on the request may be gone */
}

void http_overrule(struct http_request *r, unsigned status, const char *content_type,
                   const void *bytes, size_t size, void (*free_fn)(void *free_context),
                   void *free_context)
{
    struct request *own = request_of(r);
    struct MHD_Response *none = NULL;
    struct MHD_Response *response = response_of(bytes, size, free_fn, free_context);
    if (!response)
        return;
    if (content_type && !has_control(content_type))
        MHD_add_response_header(response, "Content-Type", content_type);
    if (atomic_compare_exchange_strong(&own->overruling, &none, response))
        own->overruling_status = status;
    else
        MHD_destroy_response(response);
}

/* Frees what only the handler needs. */
static void request_release(struct request *r)
{
    r->target = (struct http_target){0};
    arena_done(&r->arena);
    str_done(&r->body);
    vec_done(&r->headers);
}

static void request_drop_answers(struct request *r)
{
    if (r->overruling)
        MHD_destroy_response(r->overruling);
    if (r->response)
        MHD_destroy_response(r->response);
    r->overruling = r->response = NULL;
}

/* The library has the request line; what this returns is the request's context. */
static void *request_new(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct request *r = NEW(struct request);
    r->server = cls;
    r->connection = connection;
    r->bad = http_target_parse(&r->arena, uri ? uri : "", &r->target, &r->e) < 0;
    return r;
}

static void request_completed(void *cls, struct MHD_Connection *connection, void **context,
                              enum MHD_RequestTerminationCode why)
{
    struct request *r = *context;
    (void)cls, (void)connection, (void)why;
    if (!r)
        return;
    *context = NULL;
    request_drop_answers(r);
    request_release(r);
    if (r->busy)
        server_unbusy(r->server);
    free(r);
}

/* The headers are there. An answer now closes the connection, since no body is read. */
static void request_begin(struct request *r)
{
    const struct http_server_options *o = &r->server->o;
    if (r->server->stopping) {
        reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is stopping");
        return;
    }
    if (r->bad) {
        reply_text(r, MHD_HTTP_BAD_REQUEST, r->e.msg);
        return;
    }
    /* The library has checked that it is a number; one beyond unsigned long long is the largest. */
    const char *length = http_request_header(&r->pub, "Content-Length");
    unsigned long long declared = length ? strtoull(length, NULL, 10) : 0;
    if (declared <= o->body_bytes)
        return;
    /*
     * A client that is cut off while it sends may never see the answer: so what is a little too
     * long is read to its end, and not kept.
     */
    r->too_long = true;
    if (declared / 2 >= o->body_bytes || http_request_header(&r->pub, "Expect"))
        reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body of the request is too long");
}

static enum MHD_Result request_body(struct request *r, const char *bytes, size_t n)
{
    size_t limit = r->server->o.body_bytes;
    if (!r->too_long && n > limit - r->body.len) {
        r->too_long = true;
        r->discarded = r->body.len;
        str_done(&r->body);
    }
    if (!r->too_long) {
        str_append_n(&r->body, bytes, n);
        return MHD_YES;
    }
    r->discarded += n;
    return r->discarded / 2 <= limit ? MHD_YES : MHD_NO; /* no: closes the connection */
}

/* The handler's part ends. */
static void request_handled(struct request *r)
{
    reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "the request was not answered");
    request_release(r);
}

/* On a thread of the pool. */
static void request_deferred(void *context)
{
    struct request *r = context;
    r->deferred(r->deferred_context, &r->pub);
    request_handled(r);
    http_release(&r->pub);
}

static void request_defer(struct request *r)
{
    r->asleep = true;
    r->holds = 1;
    MHD_suspend_connection(r->connection);
    if (http_pool_run(r->server->pool, request_deferred, r))
        return;
    request_deferred(r); /* the server stops */
}

/* The connection was resumed and nobody but this thread has the request: the answer goes out. */
static void request_answer(struct request *r)
{
    r->asleep = false;
    if (r->overruling)
        MHD_queue_response(r->connection, r->overruling_status, r->overruling);
    else if (r->response)
        MHD_queue_response(r->connection, r->status, r->response);
    request_drop_answers(r);
}

static void request_handle(struct request *r, const char *method)
{
    struct http_server *s = r->server;
    if (r->too_long) {
        reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body of the request is too long");
        return;
    }
    server_busy(s);
    r->busy = true;
    r->pub.method = method;
    r->pub.path = r->target.path;
    r->pub.segments = r->target.segments;
    r->pub.n_segments = r->target.n_segments;
    r->pub.body = str_get(&r->body);
    r->pub.body_size = r->body.len;
    s->o.handle(s->o.context, &r->pub);
    if (r->deferred)
        request_defer(r);
    else
        request_handled(r);
}

/* Called with the headers, then with each piece of the body, at its end, and when resumed. */
static enum MHD_Result request_step(void *cls, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *n, void **context)
{
    struct request *r = *context;
    (void)cls, (void)connection, (void)url, (void)version;
    if (!r->begun) {
        r->begun = true;
        request_begin(r);
    } else if (*n) {
        size_t had = *n;
        *n = 0;
        return request_body(r, bytes, had);
    } else if (r->asleep) {
        request_answer(r);
    } else {
        request_handle(r, method);
    }
    return MHD_YES;
}

/* The target is decoded by us; the library's decoding would lose what "%2F" and "%00" were. */
static size_t leave_encoded(void *cls, struct MHD_Connection *connection, char *s)
{
    (void)cls, (void)connection;
    return strlen(s);
}

static enum MHD_Result accept_policy(void *cls, const struct sockaddr *address, socklen_t size)
{
    struct http_server *s = cls;
    (void)address, (void)size;
    return s->stopping ? MHD_NO : MHD_YES;
}

/* The watcher. */

static void check_hang_up(struct http_server *server, int fd)
{
    pthread_mutex_lock(&server->lock);
    struct http_stream *s = server->streams.p[fd];
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    if (s && poll(&p, 1, 0) == 1) {
        pthread_mutex_lock(&s->lock);
        s->gone = true;
        resume_locked(s);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&server->lock);
}

static void *watch(void *cls)
{
    struct http_server *s = cls;
    struct epoll_event events[64];
    for (;;) {
        int n = epoll_wait(s->epoll, events, ARRAY_SIZE(events), -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == s->stop_fd)
                return NULL;
            check_hang_up(s, events[i].data.fd);
        }
    }
}

/* Start and stop. */

static int server_watch(struct http_server *s, struct err *e)
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

static void server_unwatch(struct http_server *s)
{
    eventfd_write(s->stop_fd, 1);
    pthread_join(s->watcher, NULL);
}

/* Takes the listening socket, also when it fails. */
static int server_serve(struct http_server *s, int fd, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    s->daemon = MHD_start_daemon(
        flags, s->port, accept_policy, s, request_step, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_THREAD_POOL_SIZE, s->o.threads > 1 ? s->o.threads : 0, /* 0: one thread */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->o.header_bytes, MHD_OPTION_CONNECTION_LIMIT,
        s->o.connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, s->o.connections_per_ip,
        MHD_OPTION_CONNECTION_TIMEOUT, s->o.idle_seconds, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, request_new, s, MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, request_completed, s, MHD_OPTION_END);
    if (!s->daemon)
        return err_set(e, ERR_UNAVAILABLE, "HTTPServerFailed",
                       "cannot start an HTTP server on port %d: no memory, threads or files left",
                       s->port);
    return 0;
}

static int take_options(struct http_server *s, const struct http_server_options *o, struct err *e)
{
    s->o = *o;
    s->o.address = NULL;
    s->o.threads = o->threads ? o->threads : DEFAULT_THREADS;
    s->o.deferred_threads = o->deferred_threads ? o->deferred_threads : DEFAULT_DEFERRED_THREADS;
    s->o.body_bytes = o->body_bytes ? o->body_bytes : DEFAULT_BODY;
    s->o.header_bytes = o->header_bytes ? o->header_bytes : DEFAULT_HEADER;
    s->o.connections = o->connections ? o->connections : DEFAULT_CONNECTIONS;
    s->o.idle_seconds = o->idle_seconds ? o->idle_seconds : DEFAULT_IDLE_SECONDS;
    if (s->o.threads > MOST_THREADS)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server cannot have %u threads: write at most %d", s->o.threads,
                       MOST_THREADS);
    if (s->o.connections < s->o.threads)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server of %u threads cannot be limited to %u connections: write at "
                       "least one for each thread",
                       s->o.threads, s->o.connections);
    if (s->o.header_bytes < LEAST_HEADER)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidOption",
                       "an HTTP server cannot live with %zu bytes of headers: write at least %d",
                       s->o.header_bytes, LEAST_HEADER);
    return 0;
}

static void server_free(struct http_server *s)
{
    if (s->epoll >= 0)
        close(s->epoll);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    vec_done(&s->streams);
    http_pool_free(s->pool);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

DEFINE_CLEANUP(struct http_server *, server_free)

static struct http_server *server_new(void)
{
    struct http_server *s = NEW(struct http_server);
    s->epoll = s->stop_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->idle, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

int http_server_start(const struct http_server_options *o, struct http_server **ret_server,
                      struct err *e)
{
    _cleanup_(server_freep) struct http_server *s = server_new();
    int fd;
    if (take_options(s, o, e) < 0 ||
        http_listen(o->address ? o->address : "127.0.0.1", o->port, &fd, &s->port, e) < 0)
        return -1;
    s->pool = http_pool_new(s->o.deferred_threads);
    /* Signals are for the program's own threads. */
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int r = server_watch(s, e);
    if (r < 0) {
        close(fd);
    } else {
        r = server_serve(s, fd, e);
        if (r < 0)
            server_unwatch(s);
    }
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (r == 0)
        *ret_server = TAKE_PTR(s);
    return r;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += GRACE_SECONDS;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    vec_for_each(&s->streams, stream) {
        if (!*stream)
            continue;
        pthread_mutex_lock(&(*stream)->lock);
        resume_locked(*stream);
        pthread_mutex_unlock(&(*stream)->lock);
    }
    pthread_mutex_unlock(&s->lock);
    http_pool_stop(s->pool);
    pthread_mutex_lock(&s->lock);
    while (s->busy && pthread_cond_timedwait(&s->idle, &s->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&s->lock);
    MHD_stop_daemon(s->daemon);
    server_unwatch(s);
    server_free(s);
}

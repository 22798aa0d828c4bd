/*
 * libmicrohttpd owns sockets, threads and parsing; server.c, reply.c and stream.c own requests, their
 * answers, streams and the watch over sleeping connections.
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
 * A function that waits on a fiber has its connection suspended too; whoever wakes it resumes the
 * connection, and the library's thread runs it on, also when the client has left meanwhile. At stop these are waited for: what they wait for
 * is for whoever started the server to keep going until then.
 *
 * Connections are refused at stop by the accept policy, not by MHD_quiesce_daemon(), which with a
 * pool of epoll threads races with threads that leave the listening socket alone for a while.
 *
 * Locks, outermost first: server, stream, the library's. None is held while the handler or a
 * stream's operation runs.
 */
#include "http/server.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/net.h"
#include "http/options.h"
#include "http/server_impl.h"
#include "http/tls.h"

enum { GRACE_SECONDS = 2 };

static void set_busy(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->busy++;
    pthread_mutex_unlock(&s->lock);
}

void server_unbusy(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    if (--s->busy == 0)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

/* Requests. */

const char *http_request_query(const struct http_request *r, const char *name)
{
    return http_target_param(&request_of(r)->target, name);
}

const char *http_request_query_at(const struct http_request *r, const char *name, size_t n)
{
    const struct http_target *t = &request_of(r)->target;
    for (size_t i = 0; i < t->n_params; i++) {
        if (str_eq(t->params[i].name, name) && n-- == 0)
            return t->params[i].value;
    }
    return NULL;
}

const char *http_request_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(request_of(r)->connection, MHD_HEADER_KIND, name);
}

struct each_header {
    bool (*fn)(void *context, const char *name, const char *value);
    void *context;
};

static enum MHD_Result each_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct each_header *each = cls;
    (void)kind;
    return each->fn(each->context, name, value ? value : "") ? MHD_YES : MHD_NO;
}

void http_request_headers(const struct http_request *r,
                          bool (*fn)(void *context, const char *name, const char *value),
                          void *context)
{
    struct each_header each = {fn, context};
    MHD_get_connection_values(request_of(r)->connection, MHD_HEADER_KIND, each_header, &each);
}

const char *http_request_peer(const struct http_request *r, char buf[HTTP_PEER_MAX])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request_of(r)->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    buf[0] = '\0';
    if (info && info->client_addr)
        net_address_text(info->client_addr, buf, HTTP_PEER_MAX);
    return buf;
}

struct http_certificate http_request_certificate(const struct http_request *r)
{
    struct http_tls_connection *tls = connection_tls(request_of(r)->connection);
    return tls ? http_tls_certificate(tls) : (struct http_certificate){HTTP_CERTIFICATE_NONE};
}

void http_defer(struct http_request *r, void (*fn)(void *context, struct http_request *r),
                void *context)
{
    struct request *own = request_of(r);
    own->answer = fn;
    own->answer_context = context;
}

void http_call(struct http_request *r, void (*fn)(void *context, struct http_request *r),
               void *context)
{
    http_defer(r, fn, context);
    request_of(r)->on_fiber = true;
}

/* Frees what only the handler needs. */
static void request_release(struct request *r)
{
    r->target = (struct http_target){0};
    arena_done(&r->arena);
    str_done(&r->body);
    vec_done(&r->headers);
}

static void request_drop_answer(struct request *r)
{
    if (r->response)
        MHD_destroy_response(r->response);
    r->response = NULL;
}

/* The library has the request line; what this returns is the request's context. */
static void *request_new(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct request *r = NEW(struct request);
    r->server = cls;
    r->connection = connection;
    r->pub.target = arena_strdup(&r->arena, uri ? uri : "");
    r->bad = http_target_parse(&r->arena, uri ? uri : "", &r->target, &r->e) < 0;
    return r;
}

/* On the fiber. */
static void fiber_answer(void *context)
{
    struct request *r = context;
    r->answer(r->answer_context, &r->pub);
}

static void fiber_wake(void *context)
{
    struct request *r = context;
    if (r->gone)
        sem_post(&r->woken);
    else
        MHD_resume_connection(r->connection);
}

static void count_parked(struct http_server *s, int change)
{
    pthread_mutex_lock(&s->lock);
    s->parked += (size_t)change;
    if (!s->parked)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

/* The client has left and the library ends the request; what was begun for it is done. */
static void request_abandon(struct request *r)
{
    count_parked(r->server, -1);
    r->gone = r->answered = true;
    sem_init(&r->woken, 0, 0);
    while (!fiber_run(r->fiber)) {
        if (!fiber_park(r->fiber))
            continue;
        while (sem_wait(&r->woken) < 0)
            ;
    }
    sem_destroy(&r->woken);
}

static void request_completed(void *cls, struct MHD_Connection *connection, void **context,
                              enum MHD_RequestTerminationCode why)
{
    struct request *r = *context;
    (void)cls, (void)why;
    if (!r)
        return;
    *context = NULL;
    if (r->fiber)
        request_abandon(r);
    connection_owes(connection, true); /* the next */
    request_drop_answer(r);
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
    r->answer(r->answer_context, &r->pub);
    struct MHD_Connection *connection = r->connection;
    request_handled(r);
    MHD_resume_connection(connection); /* from here on the request may be gone */
}

static void request_defer(struct request *r)
{
    r->asleep = true;
    MHD_suspend_connection(r->connection);
    if (http_pool_run(r->server->pool, request_deferred, r))
        return;
    request_deferred(r); /* the server stops */
}

/* Runs the function until it waits, and has the connection sleep then, or until it is over. */
static void request_run(struct request *r)
{
    struct fiber *f = r->fiber ? r->fiber : fiber_new(fiber_answer, r, fiber_wake, r);
    r->fiber = NULL;
    if (fiber_run(f)) {
        request_handled(r);
        return;
    }
    r->fiber = f;
    count_parked(r->server, 1);
    MHD_suspend_connection(r->connection);
    if (!fiber_park(f))
        MHD_resume_connection(r->connection);
}

/* The connection was resumed and nobody but this thread has the request: the answer goes out. */
static void request_answer(struct request *r)
{
    r->asleep = false;
    if (r->response)
        MHD_queue_response(r->connection, r->pub.status, r->response);
    request_drop_answer(r);
}

static void request_handle(struct request *r, const char *method)
{
    struct http_server *s = r->server;
    if (r->too_long) {
        reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body of the request is too long");
        return;
    }
    set_busy(s);
    r->busy = true;
    connection_owes(r->connection, false);
    r->pub.method = method;
    r->pub.path = r->target.path;
    r->pub.segments = r->target.segments;
    r->pub.n_segments = r->target.n_segments;
    r->pub.body = str_get(&r->body);
    r->pub.body_size = r->body.len;
    s->o.handle(s->o.context, &r->pub);
    if (r->on_fiber)
        request_run(r);
    else if (r->answer)
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
    (void)cls, (void)url, (void)version;
    if (!r->begun) {
        r->begun = true;
        connection_asks(connection);
        request_begin(r);
    } else if (*n) {
        size_t had = *n;
        *n = 0;
        return request_body(r, bytes, had);
    } else if (r->fiber) {
        count_parked(r->server, -1);
        request_run(r);
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

int http_server_set_tls(struct http_server *s, const struct http_tls_options *o, struct err *e)
{
    struct http_tls *next, *last;
    if (http_tls_new(o, &next, e) < 0)
        return -1;
    pthread_mutex_lock(&s->lock);
    last = s->tls;
    s->tls = next;
    pthread_mutex_unlock(&s->lock);
    http_tls_unref(last);
    return 0;
}

/* Start and stop. */

/* Start and stop. */

/* Takes the listening socket, also when it fails. */
static int server_serve(struct http_server *s, int fd, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)HTTP_TLS_PRIORITY},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, http_tls_no_certificate()},
        {MHD_OPTION_END, 0, NULL},
    };
    if (s->tls)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    s->daemon = MHD_start_daemon(
        flags, s->port, accept_policy, s, request_step, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_THREAD_POOL_SIZE, s->o.threads > 1 ? s->o.threads : 0, /* 0: one thread */
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->o.header_bytes, MHD_OPTION_CONNECTION_LIMIT,
        s->o.connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, s->o.connections_per_ip,
        MHD_OPTION_CONNECTION_TIMEOUT, s->o.idle_seconds, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, request_new, s, MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, request_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changed, s, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!s->daemon)
        return err_set(e, ERR_UNAVAILABLE, "HTTPServerFailed",
                       "cannot start an HTTP server on port %d: no memory, threads or files left",
                       s->port);
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
    http_tls_unref(s->tls);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

DEFINE_CLEANUP(struct http_server *, server_free)

static struct http_server *server_new(void)
{
    struct http_server *s = NEW(struct http_server);
    s->epoll = s->stop_fd = -1;
    list_init(&s->connections);
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
    if (http_options_take(o, &s->o, e) < 0 || (o->tls && http_tls_new(o->tls, &s->tls, e) < 0) ||
        net_listen(s->o.address, o->port, &fd, &s->port, e) < 0)
        return -1;
    s->o.address = NULL; /* the caller's, like tls */
    s->o.tls = NULL;
    s->pool = http_pool_new(s->o.deferred_threads);
    /* Signals are for the program's own threads. */
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int r = stream_watch_start(s, e);
    if (r < 0) {
        close(fd);
    } else {
        r = server_serve(s, fd, e);
        if (r < 0)
            stream_watch_stop(s);
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
        stream_resume_locked(*stream);
        pthread_mutex_unlock(&(*stream)->lock);
    }
    pthread_mutex_unlock(&s->lock);
    http_pool_stop(s->pool);
    pthread_mutex_lock(&s->lock);
    while (s->parked || s->busy) {
        if (s->parked) /* the library may not be stopped before */
            pthread_cond_wait(&s->idle, &s->lock);
        else if (pthread_cond_timedwait(&s->idle, &s->lock, &until) != 0)
            break;
    }
    pthread_mutex_unlock(&s->lock);
    MHD_stop_daemon(s->daemon);
    stream_watch_stop(s);
    server_free(s);
}

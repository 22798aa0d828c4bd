/*
 * A call from its last byte to its answer: what is wrong with the request is answered at once, by the
 * I/O thread; the rest waits for a worker, which unpacks, handles, packs.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "grpc/impl.h"

enum {
    QUEUE_MAX = 1024,           /* calls that wait for a worker */
    UNFOLDED_MAX = 64 << 20,    /* bytes that a request takes as structs */
    OUT_MAX = GRPC_MESSAGE_MAX, /* bytes of a stream that wait for a slow client */
};

struct grpc_call *grpc_call_new(struct grpc_conn *c, int32_t stream)
{
    struct grpc_call *call = NEW(struct grpc_call);
    call->server = c->listener->server;
    call->listener = c->listener;
    call->conn = c;
    list_push(&c->calls, &call->conn_link);
    call->stream = stream;
    call->deadline = INT64_MAX;
    call->refs = 1;
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->drained, NULL);
    list_init(&call->queue_link);
    list_init(&call->news_link);
    return call;
}

static void call_free(struct grpc_call *call)
{
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->drained);
    arena_done(&call->arena);
    str_done(&call->path);
    str_done(&call->verb);
    str_done(&call->type);
    str_done(&call->body);
    str_done(&call->out);
    free(call);
}

void grpc_call_unref(struct grpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    unsigned left = --call->refs;
    pthread_mutex_unlock(&call->lock);
    if (!left)
        call_free(call);
}

void grpc_call_cancel(struct grpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    atomic_store(&call->cancelled, true);
    pthread_cond_broadcast(&call->drained);
    pthread_mutex_unlock(&call->lock);
}

void grpc_call_abandon(struct grpc_call *call)
{
    grpc_call_cancel(call);
    list_unlink(&call->conn_link);
    call->conn = NULL;
    grpc_call_unref(call);
}

/* For handlers. */

void *grpc_context(const struct grpc_call *c)
{
    return c->listener->context;
}

struct arena *grpc_arena(struct grpc_call *c)
{
    return &c->arena;
}

int64_t grpc_deadline(const struct grpc_call *c)
{
    return c->deadline;
}

bool grpc_cancelled(const struct grpc_call *c)
{
    return atomic_load(&c->cancelled) || clock_mono_ns(clock_system()) >= c->deadline;
}

/* Tells the I/O thread, which takes a reference over. */
static void tell(struct grpc_call *call)
{
    struct grpc_server *s = call->server;
    pthread_mutex_lock(&s->lock);
    bool is_new = !list_is_linked(&call->news_link);
    if (is_new) {
        list_push(&s->news, &call->news_link);
        pthread_mutex_lock(&call->lock);
        call->refs++;
        pthread_mutex_unlock(&call->lock);
    }
    pthread_mutex_unlock(&s->lock);
    if (is_new)
        grpc_wake(s);
}

static void put_message(struct grpc_call *call, const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    _cleanup_free_ uint8_t *bytes = mem_alloc(n + 1);
    grpc_put_prefix(&call->out, n);
    protobuf_c_message_pack(message, bytes);
    str_append_n(&call->out, bytes, n);
}

int grpc_send(struct grpc_call *c, const ProtobufCMessage *message, struct err *e)
{
    pthread_mutex_lock(&c->lock);
    while (c->out.len - c->out_from > OUT_MAX && !atomic_load(&c->cancelled))
        pthread_cond_wait(&c->drained, &c->lock);
    bool gone = atomic_load(&c->cancelled);
    if (!gone)
        put_message(c, message);
    pthread_mutex_unlock(&c->lock);
    if (gone)
        return err_set(e, ERR_CANCELLED, "Cancelled", "the client has gone");
    tell(c);
    return 0;
}

/* The end of a call: with a message if `message` is given, and the status. */
static void end_call(struct grpc_call *call, const ProtobufCMessage *message,
                     const struct err *status)
{
    pthread_mutex_lock(&call->lock);
    if (message)
        put_message(call, message);
    call->status = *status;
    call->ended = true;
    pthread_mutex_unlock(&call->lock);
}

/* Unpacking: into the call's arena, up to a limit. */

static void *arena_allocate(void *context, size_t size)
{
    struct arena *a = context;
    return a->total + size > UNFOLDED_MAX ? NULL : arena_alloc(a, size);
}

static void arena_free(void *context, void *p)
{
    (void)context;
    (void)p;
}

static ProtobufCMessage *unpack(struct grpc_call *call, struct err *e)
{
    ProtobufCAllocator allocator = {arena_allocate, arena_free, &call->arena};
    const uint8_t *bytes;
    size_t n;
    int whole = grpc_take_message(&call->body, 0, call->server->o.message_max, &bytes, &n, e);
    if (whole < 0)
        return NULL;
    if (!whole || n + GRPC_PREFIX != call->body.len) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                "the request has to be one whole message: it has %zu bytes", call->body.len);
        return NULL;
    }
    ProtobufCMessage *m = protobuf_c_message_unpack(call->method->request, &allocator, n, bytes);
    if (!m)
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the request is no %s",
                call->method->request->name);
    return m;
}

static void run_call(struct grpc_call *call)
{
    struct err e = {0};
    const struct grpc_method *m = call->method;
    const ProtobufCMessage *request = unpack(call, &e);
    ProtobufCMessage *response =
        m->streams ? NULL : arena_alloc(&call->arena, m->response->sizeof_message);
    if (response)
        protobuf_c_message_init(m->response, response);
    int status = request ? m->handle(call, request, response, &e) : -1;
    if (status < 0 && e.code == ERR_OK) /* a handler that forgot to say why */
        err_set(&e, ERR_INTERNAL, "NoReason", "%s failed without a reason", m->path);
    if (status >= 0)
        e = (struct err){0};
    end_call(call, status < 0 ? NULL : response, &e);
}

/* Workers. */

static void *work(void *context)
{
    struct grpc_server *s = context;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (list_empty(&s->queue) && !s->stopping) {
            s->idle++;
            pthread_cond_wait(&s->work, &s->lock);
            s->idle--;
        }
        struct list_link *l = list_take(&s->queue);
        if (!l)
            break;
        struct grpc_call *call = container_of(l, struct grpc_call, queue_link);
        s->queued--;
        s->busy++;
        pthread_mutex_unlock(&s->lock);
        run_call(call);
        tell(call);
        grpc_call_unref(call);
        pthread_mutex_lock(&s->lock);
        s->busy--;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* With the lock: there is one more to do. */
static void want_worker(struct grpc_server *s)
{
    pthread_t thread;
    struct err e = {0};
    if (s->queued <= s->idle || s->workers >= s->o.workers) {
        pthread_cond_signal(&s->work);
        return;
    }
    if (thread_start(&thread, "grpc-worker", work, s, &e) < 0) {
        log_warn("there is no thread for a call: it waits", LOG_ERR(&e));
        return;
    }
    s->workers++;
    vec_push(&s->threads, thread);
}

void grpc_workers_stop(struct grpc_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    grpc_wake(s);
    vec_for_each(&s->threads, t)
        pthread_join(*t, NULL);
    vec_done(&s->threads);
}

/* Requests. */

static const struct grpc_method *find_method(const struct grpc_listener *l, const char *path)
{
    for (const struct grpc_method *m = l->methods; m->path; m++) {
        if (str_eq(m->path, path))
            return m;
    }
    return NULL;
}

static int check_request(struct grpc_call *call, struct err *e)
{
    if (call->too_large)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "TooLarge", "the request has more than %zu bytes",
                       call->server->o.message_max);
    if (!str_eq(str_get(&call->verb), "POST"))
        return err_set(e, ERR_UNIMPLEMENTED, "BadMethod", "gRPC is called with POST");
    call->method = find_method(call->listener, str_get(&call->path));
    if (!call->method)
        return err_set(e, ERR_UNIMPLEMENTED, "UnknownMethod", "there is no method %s here",
                       str_get(&call->path));
    return 0;
}

void grpc_call_dispatch(struct grpc_call *call)
{
    struct grpc_server *s = call->server;
    struct err e = {0};
    call->dispatched = true;
    if (check_request(call, &e) < 0) {
        end_call(call, NULL, &e);
        grpc_session_answer(call);
        return;
    }
    pthread_mutex_lock(&s->lock);
    bool room = s->queued < QUEUE_MAX && !s->stopping;
    if (room) {
        pthread_mutex_lock(&call->lock);
        call->refs++;
        pthread_mutex_unlock(&call->lock);
        list_push(&s->queue, &call->queue_link);
        s->queued++;
        want_worker(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (room)
        return;
    err_set(&e, ERR_UNAVAILABLE, "Busy",
            "%u calls wait already, or the program ends: try again later", QUEUE_MAX);
    end_call(call, NULL, &e);
    grpc_session_answer(call);
}

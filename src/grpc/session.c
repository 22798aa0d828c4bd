/*
 * HTTP/2 of one connection, through nghttp2; all on the I/O thread.
 *
 *     HEADERS ─> call ─ DATA ─> body ─ END_STREAM ─> dispatch ... answer ─> HEADERS, DATA, trailers
 *                                                                       └─> trailers alone: an error
 *
 * nghttp2's own checks of HTTP's rules are off, since clients of unix sockets name them in :authority in
 * ways that are no authority (the path as it is; nothing). What gRPC needs is checked in call.c.
 */
#include <stdio.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "grpc/impl.h"

enum { HEADERS_MAX = 16 * 1024, STREAMS_MAX = 100, WINDOW = 1 << 20 };

static struct grpc_call *find_call(struct grpc_conn *c, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(c->session, stream);
}

/* The answer. */

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), sizeof(n) - 1, strlen(v),            \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }

struct trailers {
    char code[8];
    struct str message;
};

static size_t fill_trailers(const struct err *status, struct trailers *t, nghttp2_nv nv[2])
{
    snprintf(t->code, sizeof(t->code), "%d", (int)status->code);
    nv[0] = (nghttp2_nv)NV("grpc-status", t->code);
    if (!status->code)
        return 1;
    grpc_encode_message(status->msg, &t->message);
    nv[1] = (nghttp2_nv)NV("grpc-message", str_get(&t->message));
    return 2;
}

/* Bytes of the answer; at its end the trailers. */
static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)user;
    struct grpc_call *call = source->ptr;
    pthread_mutex_lock(&call->lock);
    size_t left = call->out.len - call->out_from, n = left < length ? left : length;
    bool ended = call->ended && n == left;
    call->waits = !n && !ended;
    if (n) {
        memcpy(buf, call->out.p + call->out_from, n);
        call->out_from += n;
    }
    if (call->out_from == call->out.len) {
        str_clear(&call->out);
        call->out_from = 0;
    }
    pthread_cond_broadcast(&call->drained);
    pthread_mutex_unlock(&call->lock);
    if (!n && !ended)
        return NGHTTP2_ERR_DEFERRED;
    if (ended) {
        nghttp2_nv nv[2];
        struct trailers t = {0};
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, stream, nv, fill_trailers(&call->status, &t, nv));
        str_done(&t.message);
    }
    return (ssize_t)n;
}

/* An error before the first message: everything in one HEADERS frame. */
static void answer_alone(struct grpc_call *call)
{
    struct trailers t = {0};
    nghttp2_nv nv[4] = {NV(":status", "200"), NV("content-type", "application/grpc")};
    size_t n = fill_trailers(&call->status, &t, nv + 2);
    nghttp2_submit_response(call->conn->session, call->stream, nv, 2 + n, NULL);
    str_done(&t.message);
}

/* One that is no gRPC client gets an answer that it understands. */
static void answer_http(struct grpc_call *call, const char *status)
{
    const nghttp2_nv nv[] = {NV(":status", status)};
    nghttp2_submit_response(call->conn->session, call->stream, nv, 1, NULL);
}

void grpc_session_answer(struct grpc_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool alone = call->ended && !call->out.len && !call->responded;
    bool waits = call->waits;
    call->waits = false;
    pthread_mutex_unlock(&call->lock);
    if (!call->conn)
        return;
    if (call->responded) {
        if (waits)
            nghttp2_session_resume_data(call->conn->session, call->stream);
        return;
    }
    call->responded = true;
    if (alone && call->status.code) {
        answer_alone(call);
        return;
    }
    const nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc")};
    const nghttp2_data_provider data = {.source = {.ptr = call}, .read_callback = read_answer};
    nghttp2_submit_response(call->conn->session, call->stream, nv, 2, &data);
}

/* The request. */

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct grpc_conn *c = user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct grpc_call *call = grpc_call_new(c, frame->hd.stream_id);
    c->asked = true;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static bool is_named(const uint8_t *name, size_t n, const char *wanted)
{
    return n == strlen(wanted) && memcmp(name, wanted, n) == 0;
}

static void set_text(struct str *to, const uint8_t *value, size_t n)
{
    str_clear(to);
    str_append_n(to, value, n);
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_n, const uint8_t *value, size_t n, uint8_t flags, void *user)
{
    (void)flags;
    struct grpc_call *call = find_call(user, frame->hd.stream_id);
    int64_t ns;
    (void)session;
    if (!call || call->dispatched)
        return 0;
    call->header_bytes += name_n + n + 32;
    if (call->header_bytes > HEADERS_MAX)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
    if (is_named(name, name_n, ":path"))
        set_text(&call->path, value, n);
    else if (is_named(name, name_n, ":method"))
        set_text(&call->verb, value, n);
    else if (is_named(name, name_n, "content-type"))
        set_text(&call->type, value, n);
    else if (is_named(name, name_n, "grpc-timeout") &&
             grpc_parse_timeout((const char *)value, n, &ns)) {
        int64_t now = clock_mono_ns(clock_system());
        call->deadline = ns < INT64_MAX - now ? now + ns : INT64_MAX;
    }
    return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t n, void *user)
{
    struct grpc_call *call = find_call(user, stream);
    (void)session;
    (void)flags;
    if (!call || call->dispatched)
        return 0;
    if (call->too_large || n > call->server->o.message_max + GRPC_PREFIX - call->body.len) {
        call->too_large = true;
        str_done(&call->body);
        return 0;
    }
    str_append_n(&call->body, bytes, n);
    return 0;
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct grpc_call *call = find_call(user, frame->hd.stream_id);
    if (!call || call->dispatched)
        return 0;
    if (strncasecmp(str_get(&call->type), "application/grpc", 16) != 0) {
        call->dispatched = call->responded = true;
        answer_http(call, "415");
        return 0;
    }
    grpc_call_dispatch(call);
    return 0;
}

static int close_stream(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
    struct grpc_call *call = find_call(user, stream);
    (void)code;
    if (!call)
        return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    grpc_call_abandon(call);
    return 0;
}

/* The connection. */

bool grpc_session_new(struct grpc_conn *c)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX},
    };
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
        abort(); /* memory */
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close_stream);
    int status = nghttp2_session_server_new2(&c->session, callbacks, c, option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return status == 0 &&
           nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) ==
               0 &&
           nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 4 * WINDOW) == 0;
}

bool grpc_session_receive(struct grpc_conn *c, const uint8_t *bytes, size_t n)
{
    return nghttp2_session_mem_recv(c->session, bytes, n) >= 0;
}

bool grpc_session_send(struct grpc_conn *c)
{
    const uint8_t *bytes;
    enum { MOST = 256 * 1024 }; /* the rest when the socket has taken this */
    while (c->out.len - c->out_from < MOST) {
        ssize_t n = nghttp2_session_mem_send(c->session, &bytes);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        str_append_n(&c->out, bytes, (size_t)n);
    }
    return c->out.len > c->out_from || nghttp2_session_want_read(c->session) ||
           nghttp2_session_want_write(c->session);
}

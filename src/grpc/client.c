/*
 * The client: one request, one connection, on the caller's thread.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "grpc/impl.h"

struct asking {
    const struct grpc_request *r;
    int (*each)(void *context, const ProtobufCMessage *message, struct err *e);
    void *context;
    size_t message_max;
    int64_t deadline;
    int fd;
    nghttp2_session *session;
    struct str request;
    size_t sent;
    struct str body;
    size_t taken; /* bytes of the body that were messages */
    bool closed;  /* the stream */
    bool answered;
    enum err_code code; /* of grpc-status */
    int http;           /* of :status; 0: none came */
    struct str message;
    struct err failure; /* of each(), or of what came */
};

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)stream;
    (void)user;
    struct asking *a = source->ptr;
    size_t left = a->request.len - a->sent, n = left < length ? left : length;
    memcpy(buf, a->request.p + a->sent, n);
    a->sent += n;
    if (n == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static bool is_named(const uint8_t *name, size_t n, const char *wanted)
{
    return n == strlen(wanted) && memcmp(name, wanted, n) == 0;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_n, const uint8_t *value, size_t n, uint8_t flags, void *user)
{
    struct asking *a = user;
    const char *text = (const char *)value;
    (void)session;
    (void)frame;
    (void)flags;
    if (is_named(name, name_n, "grpc-status")) {
        a->answered = true;
        a->code = grpc_parse_status(text, n);
    } else if (is_named(name, name_n, "grpc-message")) {
        str_clear(&a->message);
        grpc_decode_message(text, n, &a->message);
    } else if (is_named(name, name_n, ":status")) {
        a->http = atoi(text);
    }
    return 0;
}

static int take_messages(struct asking *a, struct err *e)
{
    const uint8_t *bytes;
    size_t n;
    int whole = 0;
    while (a->body.len > a->taken &&
           (whole = grpc_take_message(&a->body, a->taken, a->message_max, &bytes, &n, e)) > 0) {
        ProtobufCMessage *m = protobuf_c_message_unpack(a->r->response, NULL, n, bytes);
        int status =
            m ? a->each(a->context, m, e)
              : err_set(e, ERR_INTERNAL, "BadAnswer", "the answer is no %s", a->r->response->name);
        if (m)
            protobuf_c_message_free_unpacked(m, NULL);
        if (status < 0)
            return -1;
        a->taken += GRPC_PREFIX + n;
    }
    if (a->taken == a->body.len) {
        str_clear(&a->body);
        a->taken = 0;
    }
    return whole < 0 ? -1 : 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t n, void *user)
{
    struct asking *a = user;
    (void)session;
    (void)flags;
    (void)stream;
    if (a->failure.code)
        return 0;
    str_append_n(&a->body, bytes, n);
    if (take_messages(a, &a->failure) < 0) {
        a->closed = true;
        return 0;
    }
    return 0;
}

static int close_stream(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
    struct asking *a = user;
    (void)session;
    (void)stream;
    (void)code;
    a->closed = true;
    return 0;
}

static int make_session(struct asking *a, struct err *e)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        abort(); /* memory */
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close_stream);
    int status = nghttp2_session_client_new(&a->session, callbacks, a);
    nghttp2_session_callbacks_del(callbacks);
    return status == 0 ? 0 : err_set(e, ERR_INTERNAL, "HTTP2", "%s", nghttp2_strerror(status));
}

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), sizeof(n) - 1, strlen(v),            \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }

static int submit(struct asking *a, struct err *e)
{
    size_t n = protobuf_c_message_get_packed_size(a->r->message);
    _cleanup_free_ uint8_t *bytes = mem_alloc(n + 1);
    char timeout[16] = "";
    protobuf_c_message_pack(a->r->message, bytes);
    grpc_put_prefix(&a->request, n);
    str_append_n(&a->request, bytes, n);
    if (a->r->timeout_ns > 0)
        grpc_format_timeout(a->r->timeout_ns, timeout);
    const nghttp2_nv nv[] = {
        NV(":method", "POST"),     NV(":scheme", "http"),
        NV(":path", a->r->path),   NV(":authority", "localhost"),
        NV("te", "trailers"),      NV("content-type", "application/grpc"),
        NV("user-agent", "orlop"), NV("grpc-timeout", timeout),
    };
    const nghttp2_data_provider data = {.source = {.ptr = a}, .read_callback = read_request};
    int status = nghttp2_submit_settings(a->session, NGHTTP2_FLAG_NONE, NULL, 0);
    if (status == 0)
        status = nghttp2_submit_request(a->session, NULL, nv, ARRAY_SIZE(nv) - !*timeout, &data, a);
    return status < 0 ? err_set(e, ERR_INTERNAL, "HTTP2", "%s", nghttp2_strerror(status)) : 0;
}

static int lost(const struct asking *a, const char *why, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "NoAnswer", "%s at %s: %s", a->r->path, a->r->socket, why);
}

/* Waits until the socket is ready for `events`. */
static int await(const struct asking *a, short events, struct err *e)
{
    struct pollfd p = {.fd = a->fd, .events = events};
    for (;;) {
        int64_t left = a->deadline == INT64_MAX
                           ? -1
                           : (a->deadline - clock_mono_ns(clock_system()) + 999999) / 1000000;
        if (a->deadline != INT64_MAX && left <= 0)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout", "%s at %s did not answer in time",
                           a->r->path, a->r->socket);
        int n = poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "cannot wait for %s", a->r->socket);
    }
}

static int send_all(struct asking *a, struct err *e)
{
    const uint8_t *bytes;
    for (;;) {
        ssize_t n = nghttp2_session_mem_send(a->session, &bytes);
        if (n < 0)
            return lost(a, nghttp2_strerror((int)n), e);
        if (n == 0)
            return 0;
        while (n > 0) {
            ssize_t did = send(a->fd, bytes, (size_t)n, MSG_NOSIGNAL);
            if (did < 0 && errno != EAGAIN && errno != EINTR)
                return lost(a, strerror(errno), e);
            if (did < 0 && await(a, POLLOUT, e) < 0)
                return -1;
            bytes += did > 0 ? did : 0;
            n -= did > 0 ? did : 0;
        }
    }
}

static int receive(struct asking *a, struct err *e)
{
    uint8_t bytes[16 * 1024];
    if (await(a, POLLIN, e) < 0)
        return -1;
    ssize_t n = recv(a->fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return lost(a, n < 0 ? strerror(errno) : "the connection was closed", e);
    ssize_t status = nghttp2_session_mem_recv(a->session, bytes, (size_t)n);
    return status < 0 ? lost(a, nghttp2_strerror((int)status), e) : 0;
}

static int converse(struct asking *a, struct err *e)
{
    if (submit(a, e) < 0)
        return -1;
    while (!a->closed) {
        if (send_all(a, e) < 0 || (!a->closed && receive(a, e) < 0))
            return -1;
    }
    if (a->failure.code) {
        *e = a->failure;
        return -1;
    }
    if (!a->answered)
        return err_set(e, ERR_UNAVAILABLE, "NoAnswer", "%s at %s: HTTP status %d without a code",
                       a->r->path, a->r->socket, a->http);
    if (a->code)
        return err_set(e, a->code, err_code_name(a->code), "%s", str_get(&a->message));
    return 0;
}

static int dial(struct asking *a, struct err *e)
{
    struct sockaddr_un address;
    if (grpc_socket_address(a->r->socket, &address, e) < 0)
        return -1;
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        return err_errno(e, errno, "cannot make a socket");
    while (connect(a->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno != EAGAIN && errno != EINTR) /* EAGAIN: its queue is full */
            return lost(a, strerror(errno), e);
        if (clock_mono_ns(clock_system()) >= a->deadline)
            return lost(a, "nobody accepts connections", e);
        poll(NULL, 0, 10);
    }
    return 0;
}

int grpc_ask_stream(const struct grpc_request *r,
                    int (*each)(void *context, const ProtobufCMessage *message, struct err *e),
                    void *context, struct err *e)
{
    struct asking a = {.r = r, .each = each, .context = context, .fd = -1, .deadline = INT64_MAX};
    a.message_max = r->message_max ? r->message_max : GRPC_MESSAGE_MAX;
    if (r->timeout_ns > 0)
        a.deadline = clock_mono_ns(clock_system()) + r->timeout_ns;
    int status = dial(&a, e) < 0 || make_session(&a, e) < 0 || converse(&a, e) < 0 ? -1 : 0;
    nghttp2_session_del(a.session);
    if (a.fd >= 0)
        close(a.fd);
    str_done(&a.request);
    str_done(&a.body);
    str_done(&a.message);
    return status;
}

static int keep_bytes(void *context, const ProtobufCMessage *message, struct err *e)
{
    struct str *kept = context;
    if (kept->cap)
        return err_set(e, ERR_INTERNAL, "BadAnswer", "more than one answer came");
    size_t n = protobuf_c_message_get_packed_size(message);
    _cleanup_free_ uint8_t *bytes = mem_alloc(n + 1);
    protobuf_c_message_pack(message, bytes);
    bytes[n] = 0;
    str_append_n(kept, bytes, n + 1); /* so that an empty one counts */
    return 0;
}

ProtobufCMessage *grpc_ask(const struct grpc_request *r, struct err *e)
{
    _cleanup_(str_done) struct str kept = {0};
    if (grpc_ask_stream(r, keep_bytes, &kept, e) < 0)
        return NULL;
    ProtobufCMessage *m =
        kept.len ? protobuf_c_message_unpack(r->response, NULL, kept.len - 1, (uint8_t *)kept.p)
                 : NULL;
    if (!m)
        err_set(e, ERR_INTERNAL, "BadAnswer", "%s answered without a message", r->path);
    return m;
}

#include "http/server_impl.h"

enum { PARTS_BLOCK = 128 << 10 }; /* one read of an answer in parts */

bool http_reply_header(struct http_request *r, const char *name, const char *value)
{
    struct request *own = request_of(r);
    if (!http_is_token(name) || http_has_control(value))
        return false;
    struct header h = {arena_strdup(&own->arena, name), arena_strdup(&own->arena, value)};
    vec_push(&own->headers, h);
    return true;
}

bool reply_queue(struct request *r, unsigned status, const char *content_type,
                 struct MHD_Response *response)
{
    if (!response)
        return false;
    if (content_type && !http_has_control(content_type))
        MHD_add_response_header(response, "Content-Type", content_type);
    vec_for_each(&r->headers, h)
        MHD_add_response_header(response, h->name, h->value);
    if (r->server->stopping)
        MHD_add_response_header(response, "Connection", "close");
    if (r->asleep && status >= 200 && status <= 999) {
        r->response = response;
        r->pub.status = status;
        r->answered = true;
        return true;
    }
    r->answered = status >= 200 && MHD_queue_response(r->connection, status, response) == MHD_YES;
    MHD_destroy_response(response);
    if (r->answered)
        r->pub.status = status;
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
    if (own->answered) {
        if (own->gone)
            r->status = status; /* what it would have been, for logs */
        if (free_fn)
            free_fn(free_context);
        return;
    }
    if (reply_queue(own, status, content_type, response_of(bytes, size, free_fn, free_context)))
        r->reply_size = size;
}

void reply_text(struct request *r, unsigned status, const char *text)
{
    if (r->answered)
        return;
    char *line = mem_printf("%s\n", text);
    http_reply(&r->pub, status, "text/plain; charset=utf-8", line, strlen(line), free, line);
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
    if (response && reply_queue(own, status, content_type, response))
        r->reply_size = (size_t)size;
    else if (!response)
        parts_over(p);
}

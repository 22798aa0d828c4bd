/*
 * Answers compressed on their way out, a block at a time: what is in memory of one is the state of the
 * compressor and a block, however long it is.
 */
#include <strings.h>
#include <zlib.h>

#include "http/server_impl.h"

enum {
    BLOCK = 16 << 10,
    LEVEL = 1, /* the rest costs more than it saves */
    /* An eighth of a megabyte for the compressor; the window of 16 KiB is enough for what repeats. */
    WINDOW_BITS = 14,
    GZIP_WRAPPER = 16,
    MEM_LEVEL = 7,
};

struct gzip {
    z_stream z;
    const struct http_stream_ops *ops;
    void *context;
    bool read_all, written_all;
    char block[BLOCK];
};

/* Bytes that are there already, as something to read. */
struct bytes {
    const char *p;
    size_t left;
    void (*free_fn)(void *free_context);
    void *free_context;
};

bool http_request_accepts_gzip(const struct http_request *r)
{
    const char *p = http_request_header(r, "Accept-Encoding");
    for (size_t n; p && *p; p += n) {
        p += strspn(p, ", \t");
        n = strcspn(p, ",");
        size_t name = strcspn(p, ",; \t");
        if (name == 4 && strncasecmp(p, "gzip", name) == 0) {
            const char *q = memchr(p, '=', n);
            return !q || strtod(q + 1, NULL) > 0;
        }
    }
    return false;
}

static ssize_t gzip_read(void *context, char *buf, size_t max)
{
    struct gzip *g = context;
    unsigned room = max < UINT32_MAX ? (unsigned)max : UINT32_MAX;
    g->z.next_out = (Bytef *)buf;
    g->z.avail_out = room;
    while (!g->written_all && g->z.avail_out == room) {
        if (!g->z.avail_in && !g->read_all) {
            ssize_t n = g->ops->read(g->context, g->block, sizeof(g->block));
            g->read_all = n <= 0;
            g->z.next_in = (Bytef *)g->block;
            g->z.avail_in = n > 0 ? (unsigned)n : 0;
        }
        int status = deflate(&g->z, g->read_all ? Z_FINISH : Z_NO_FLUSH);
        if (status == Z_STREAM_END)
            g->written_all = true;
        else if (status != Z_OK)
            return -1;
    }
    return g->z.avail_out < room ? (ssize_t)(room - g->z.avail_out) : -1;
}

static void gzip_done(void *context)
{
    struct gzip *g = context;
    deflateEnd(&g->z);
    g->ops->done(g->context);
    free(g);
}

void http_reply_gzip_stream(struct http_request *r, unsigned status, const char *content_type,
                            const struct http_stream_ops *ops, void *context)
{
    static const struct http_stream_ops compressed = {gzip_read, gzip_done};
    struct gzip *g = NEW(struct gzip);
    g->ops = ops;
    g->context = context;
    if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_WRAPPER, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        gzip_done(g); /* no memory */
        http_reply(r, 500, NULL, NULL, 0, NULL, NULL);
        return;
    }
    http_reply_header(r, "Content-Encoding", "gzip");
    http_reply_header(r, "Vary", "Accept-Encoding");
    http_stream_unref(http_reply_stream(r, status, content_type, &compressed, g));
}

static ssize_t bytes_read(void *context, char *buf, size_t max)
{
    struct bytes *b = context;
    size_t n = b->left < max ? b->left : max;
    memcpy(buf, b->p, n);
    b->p += n;
    b->left -= n;
    return n ? (ssize_t)n : -1;
}

static void bytes_done(void *context)
{
    struct bytes *b = context;
    if (b->free_fn)
        b->free_fn(b->free_context);
    free(b);
}

void http_reply_gzip(struct http_request *r, unsigned status, const char *content_type,
                     const void *bytes, size_t size, void (*free_fn)(void *free_context),
                     void *free_context)
{
    static const struct http_stream_ops ops = {bytes_read, bytes_done};
    struct bytes *b = NEW(struct bytes);
    *b = (struct bytes){bytes, size, free_fn, free_context};
    http_reply_gzip_stream(r, status, content_type, &ops, b);
}

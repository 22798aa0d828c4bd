/*
 * An HTTP/1.1 response, read from bytes as they come. It does no I/O.
 *
 *     status line, headers --> no body: HEAD, 204, 304 ----------------.
 *          ^      |       '--> Content-Length bytes -------------------+--> complete
 *          '------'        '-> chunks, trailers -----------------------+
 *            1xx            '> everything until the connection ends ---'
 *
 * Whatever a server sends, memory stays bounded: heads and trailers together are at most
 * HTTP_HEAD_MAX bytes, extensions of chunks are counted and dropped, and a body is not kept here but
 * handed on. What could be read in two ways is refused: lengths that differ, a length beside chunks,
 * codings other than chunked, folded lines, signs and spaces in numbers. The code is INTERNAL, reason
 * InvalidResponse; for a response that was cut off, UNAVAILABLE and ConnectionLost.
 */
#pragma once

#include "http/client.h"

enum {
    HTTP_HEAD_MAX = 64 << 10,
    HTTP_EXTENSION_MAX = 4 << 10, /* of one chunk */
};

enum http_reader_state {
    HTTP_READ_STATUS,
    HTTP_READ_HEADER,
    HTTP_READ_LENGTH,     /* `left` bytes of a body are to come */
    HTTP_READ_CLOSE,      /* a body of unknown length */
    HTTP_READ_SIZE,       /* digits of a chunk's size */
    HTTP_READ_EXTENSION,  /* up to the end of that line */
    HTTP_READ_SIZE_END,   /* its line feed */
    HTTP_READ_CHUNK,      /* `left` bytes of a chunk */
    HTTP_READ_CHUNK_END,  /* the line end behind it: carriage return */
    HTTP_READ_CHUNK_END2, /* and line feed */
    HTTP_READ_TRAILER,
    HTTP_READ_COMPLETE,
};

struct http_reader {
    struct http_response *response; /* its body is not touched */
    bool head;                      /* the request was one: no body */
    enum http_reader_state state;
    bool keep;       /* the connection may be used again after this */
    bool chunked;    /* what the headers said */
    int64_t length;  /* -1: they did not */
    uint64_t left;   /* see the states */
    unsigned digits; /* of a chunk's size */
    size_t budget;   /* bytes that heads and trailers may still have */
    size_t extension;
    unsigned warnings;
    struct str line; /* that is not complete yet; nothing while a body comes */
};

void http_reader_init(struct http_reader *r, bool head, struct http_response *response);
void http_reader_done(struct http_reader *r);
/*
 * Takes bytes up to the next piece of the body, or up to the end of the response, and says how many
 * in *ret_used. *ret_body is the piece, *ret_n bytes of what was given, or none. Not after the end.
 */
int http_reader_feed(struct http_reader *r, const char *bytes, size_t n, size_t *ret_used,
                     const char **ret_body, size_t *ret_n, struct err *e);
/* The connection has ended, in order. */
int http_reader_end(struct http_reader *r, struct err *e);

static inline bool http_reader_complete(const struct http_reader *r)
{
    return r->state == HTTP_READ_COMPLETE;
}

/* The status and headers are known. */
static inline bool http_reader_has_head(const struct http_reader *r)
{
    return r->state > HTTP_READ_HEADER;
}

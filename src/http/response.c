#include "http/response.h"

#include <stdio.h>

#include "http/target.h"

enum {
    LONGEST_PAUSE = 3600, /* seconds that a server may ask for */
    MOST_WARNINGS = 16,
    SIZE_DIGITS = 15, /* of a chunk's size: fits in any case */
};

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_INTERNAL, "InvalidResponse", "the server's answer is no HTTP: %s", why);
}

/* Where a response begins: after the request, and after each 1xx. */
static void begin_head(struct http_reader *r)
{
    r->state = HTTP_READ_STATUS;
    r->keep = true;
    r->chunked = false;
    r->length = -1;
    r->warnings = 0;
    r->response->status = r->response->retry_after = 0;
    r->response->content_type[0] = '\0';
    str_clear(&r->response->warnings);
}

void http_reader_init(struct http_reader *r, bool head, struct http_response *response)
{
    *r = (struct http_reader){.response = response, .head = head, .budget = HTTP_HEAD_MAX};
    begin_head(r);
}

void http_reader_done(struct http_reader *r)
{
    str_done(&r->line);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits alone; -1 for anything else and for more than fits. */
static int64_t parse_number(const char *text)
{
    int64_t value = 0;
    if (!*text || strlen(text) > 18)
        return -1;
    for (; *text; text++) {
        if (!is_digit(*text))
            return -1;
        value = value * 10 + (*text - '0');
    }
    return value;
}

static int take_status(struct http_reader *r, const char *line, struct err *e)
{
    if (!str_starts_with(line, "HTTP/1.") || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
        return refuse(e, "it does not begin with HTTP/1.1");
    const char *code = line + 9;
    if (!is_digit(code[0]) || !is_digit(code[1]) || !is_digit(code[2]) ||
        (code[3] && code[3] != ' ') || code[0] == '0')
        return refuse(e, "there is no status in its first line");
    r->keep = line[7] == '1';
    r->response->status =
        (unsigned)((code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0'));
    r->state = HTTP_READ_HEADER;
    return 0;
}

static int take_length(struct http_reader *r, const char *value, struct err *e)
{
    int64_t length = parse_number(value);
    if (length < 0)
        return refuse(e, "its Content-Length is none");
    if (r->length >= 0 && r->length != length)
        return refuse(e, "it has two lengths");
    r->length = length;
    return 0;
}

static int take_coding(struct http_reader *r, const char *value, struct err *e)
{
    if (r->chunked || strcasecmp(value, "chunked") != 0)
        return refuse(e, "its Transfer-Encoding is not 'chunked'");
    r->chunked = true;
    return 0;
}

static int take_connection(struct http_reader *r, const char *value, struct err *e)
{
    (void)e;
    for (size_t n; *value; value += n) {
        value += strspn(value, ", \t");
        n = strcspn(value, ", \t");
        if (n == 5 && strncasecmp(value, "close", n) == 0)
            r->keep = false;
    }
    return 0;
}

static int take_type(struct http_reader *r, const char *value, struct err *e)
{
    (void)e;
    snprintf(r->response->content_type, sizeof(r->response->content_type), "%s", value);
    return 0;
}

static int take_retry(struct http_reader *r, const char *value, struct err *e)
{
    (void)e;
    int64_t seconds = parse_number(value); /* dates are not read */
    if (seconds > 0)
        r->response->retry_after = (unsigned)(seconds < LONGEST_PAUSE ? seconds : LONGEST_PAUSE);
    return 0;
}

static int take_warning(struct http_reader *r, const char *value, struct err *e)
{
    (void)e;
    if (r->warnings++ < MOST_WARNINGS)
        str_appendf(&r->response->warnings, "%s\n", value);
    return 0;
}

static int take_header(struct http_reader *r, char *line, struct err *e)
{
    static const struct {
        const char *name;
        int (*take)(struct http_reader *r, const char *value, struct err *e);
    } table[] = {
        {"Connection", take_connection},    {"Content-Length", take_length},
        {"Content-Type", take_type},        {"Retry-After", take_retry},
        {"Transfer-Encoding", take_coding}, {"Warning", take_warning},
    };
    char *value = strchr(line, ':');
    if (!value)
        return refuse(e, "a header is none");
    *value++ = '\0';
    if (!http_is_token(line)) /* also a line that begins with a space, which would go on */
        return refuse(e, "a header's name is none");
    value += strspn(value, " \t");
    size_t n = strlen(value);
    while (n > 0 && strchr(" \t", value[n - 1]))
        value[--n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (strcasecmp(line, table[i].name) == 0)
            return table[i].take(r, value, e);
    }
    return 0;
}

/* The empty line behind the headers: what comes now? */
static int end_head(struct http_reader *r, struct err *e)
{
    unsigned status = r->response->status;
    if (status == 101)
        return refuse(e, "it changes the protocol, which nobody asked for");
    if (status / 100 == 1) {
        begin_head(r);
        return 0;
    }
    if (r->chunked && r->length >= 0)
        return refuse(e, "it has a length and is chunked");
    if (r->head || status == 204 || status == 304 || (!r->chunked && r->length == 0)) {
        r->state = HTTP_READ_COMPLETE;
    } else if (r->chunked) {
        r->state = HTTP_READ_SIZE;
        r->left = r->digits = 0;
    } else if (r->length > 0) {
        r->state = HTTP_READ_LENGTH;
        r->left = (uint64_t)r->length;
    } else {
        r->state = HTTP_READ_CLOSE;
        r->keep = false;
    }
    str_done(&r->line); /* a watch may last for days */
    return 0;
}

static int take_line(struct http_reader *r, struct err *e)
{
    char *line = r->line.p;
    if (strlen(line) != r->line.len)
        return refuse(e, "there is a NUL in a header");
    for (const char *c = line; *c; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(e, "there is a control character in a header");
    }
    if (r->state == HTTP_READ_STATUS)
        return take_status(r, line, e);
    if (*line)
        return r->state == HTTP_READ_HEADER ? take_header(r, line, e) : 0;
    if (r->state == HTTP_READ_HEADER)
        return end_head(r, e);
    str_done(&r->line);
    r->state = HTTP_READ_COMPLETE;
    return 0;
}

/* Of a head or trailer: up to the end of one line. */
static int feed_line(struct http_reader *r, const char *bytes, size_t n, size_t *ret_used,
                     struct err *e)
{
    const char *end = memchr(bytes, '\n', n);
    size_t take = end ? (size_t)(end - bytes) + 1 : n;
    if (take > r->budget)
        return refuse(e, "its headers are too long");
    r->budget -= take;
    *ret_used = take;
    str_append_n(&r->line, bytes, end ? take - 1 : take);
    if (!end)
        return 0;
    if (r->line.len > 0 && r->line.p[r->line.len - 1] == '\r')
        str_truncate(&r->line, r->line.len - 1);
    if (!r->line.p)
        str_append(&r->line, "");
    int status = take_line(r, e);
    str_clear(&r->line);
    return status;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of a chunk, what is not its content: one byte. */
static int feed_framing(struct http_reader *r, char c, struct err *e)
{
    int digit = hex_digit(c);
    switch (r->state) {
    case HTTP_READ_SIZE:
        if (digit >= 0) {
            if (++r->digits > SIZE_DIGITS)
                return refuse(e, "the size of a chunk is too large");
            r->left = r->left * 16 + (uint64_t)digit;
            return 0;
        }
        if (r->digits == 0 || !strchr("\r; \t", c) || !c)
            return refuse(e, "the size of a chunk is no number");
        r->extension = 0;
        r->state = c == '\r' ? HTTP_READ_SIZE_END : HTTP_READ_EXTENSION;
        return 0;
    case HTTP_READ_EXTENSION:
        if (++r->extension > HTTP_EXTENSION_MAX)
            return refuse(e, "the extension of a chunk is too long");
        if (c == '\n')
            return refuse(e, "the size of a chunk does not end with CR LF");
        if (c == '\r')
            r->state = HTTP_READ_SIZE_END;
        return 0;
    case HTTP_READ_SIZE_END:
        if (c != '\n')
            return refuse(e, "the size of a chunk does not end with CR LF");
        r->state = r->left ? HTTP_READ_CHUNK : HTTP_READ_TRAILER;
        return 0;
    default:
        if (c != (r->state == HTTP_READ_CHUNK_END ? '\r' : '\n'))
            return refuse(e, "a chunk is longer than its size");
        r->left = r->digits = 0;
        r->state = r->state == HTTP_READ_CHUNK_END ? HTTP_READ_CHUNK_END2 : HTTP_READ_SIZE;
        return 0;
    }
}

static void feed_body(struct http_reader *r, size_t n, size_t *ret_n)
{
    if (r->state != HTTP_READ_CLOSE) {
        n = n < r->left ? n : (size_t)r->left;
        r->left -= n;
        if (r->left == 0)
            r->state = r->state == HTTP_READ_LENGTH ? HTTP_READ_COMPLETE : HTTP_READ_CHUNK_END;
    }
    *ret_n = n;
}

int http_reader_feed(struct http_reader *r, const char *bytes, size_t n, size_t *ret_used,
                     const char **ret_body, size_t *ret_n, struct err *e)
{
    size_t used = 0;
    *ret_n = 0;
    while (used < n && *ret_n == 0 && !http_reader_complete(r)) {
        size_t step = 1;
        switch (r->state) {
        case HTTP_READ_STATUS:
        case HTTP_READ_HEADER:
        case HTTP_READ_TRAILER:
            if (feed_line(r, bytes + used, n - used, &step, e) < 0)
                return -1;
            break;
        case HTTP_READ_LENGTH:
        case HTTP_READ_CLOSE:
        case HTTP_READ_CHUNK:
            *ret_body = bytes + used;
            feed_body(r, n - used, &step);
            *ret_n = step;
            break;
        default:
            if (feed_framing(r, bytes[used], e) < 0)
                return -1;
        }
        used += step;
    }
    *ret_used = used;
    return 0;
}

int http_reader_end(struct http_reader *r, struct err *e)
{
    if (r->state != HTTP_READ_CLOSE && r->state != HTTP_READ_COMPLETE)
        return err_set(e, ERR_UNAVAILABLE, "ConnectionLost",
                       "the server closed the connection before its answer was complete");
    r->state = HTTP_READ_COMPLETE;
    return 0;
}

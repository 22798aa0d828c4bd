/*
 * A client that is written down to the byte, so that tests can be as slow, greedy or rude as they
 * need. Nothing blocks longer than CLIENT_SECONDS; then the test fails.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit.h"

enum { CLIENT_SECONDS = 60, CLIENT_HEADERS = 4096 };

struct client {
    int fd;
    char in[65536]; /* received and not used yet */
    size_t start, end;
};

struct reply {
    unsigned status;
    char headers[CLIENT_HEADERS]; /* lines that end with "\n" */
    bool chunked;
    long length; /* -1 when not said */
    struct str body;
};

static inline void reply_done(struct reply *r)
{
    str_done(&r->body);
}

static inline struct client *client_new(uint16_t port)
{
    struct client *c = mem_alloc(sizeof(*c));
    c->start = c->end = 0;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c->fd >= 0);
    struct timeval t = {.tv_sec = CLIENT_SECONDS};
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(c->fd, (const void *)&in, sizeof(in)), 0);
    return c;
}

static inline void client_free(struct client *c)
{
    close(c->fd);
    free(c);
}

DEFINE_CLEANUP(struct client *, client_free)

/* False when the server has closed. */
static inline bool client_try_send(struct client *c, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
            return false;
        assert_true(sent > 0);
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

static inline void client_send(struct client *c, const char *text)
{
    assert_true(client_try_send(c, text, strlen(text)));
}

__attribute__((format(printf, 2, 3))) static inline void client_sendf(struct client *c,
                                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    client_send(c, text);
}

static inline void client_get(struct client *c, const char *target)
{
    client_sendf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
}

/* False when the connection was closed, or reset. Anything else that goes wrong fails the test. */
static inline bool client_fill(struct client *c)
{
    if (c->start == c->end)
        c->start = c->end = 0;
    assert_true(c->end < sizeof(c->in));
    ssize_t n = recv(c->fd, c->in + c->end, sizeof(c->in) - c->end, 0);
    if (n < 0 && errno == ECONNRESET)
        return false;
    assert_true(n >= 0); /* EAGAIN: nothing came for too long */
    c->end += (size_t)n;
    return n > 0;
}

static inline bool client_closed(struct client *c)
{
    return c->start == c->end && !client_fill(c);
}

/* True when something, or the end, can be read now. */
static inline bool client_readable(struct client *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    return c->start < c->end || poll(&p, 1, 0) == 1;
}

static inline char client_byte(struct client *c)
{
    if (c->start == c->end)
        assert_true(client_fill(c));
    return c->in[c->start++];
}

/* A line without its CRLF. */
static inline void client_line(struct client *c, char *line, size_t size)
{
    size_t n = 0;
    for (char b; (b = client_byte(c)) != '\n'; line[n++] = b)
        assert_true(n + 1 < size);
    assert_true(n > 0 && line[n - 1] == '\r');
    line[n - 1] = '\0';
}

static inline void client_head(struct client *c, struct reply *ret)
{
    char line[1024];
    client_line(c, line, sizeof(line));
    assert_int_equal(sscanf(line, "HTTP/1.%*1d %u", &ret->status), 1);
    ret->length = -1;
    ret->chunked = false;
    size_t n = 0;
    ret->headers[0] = '\0';
    for (;;) {
        client_line(c, line, sizeof(line));
        if (!line[0])
            break;
        n += (size_t)snprintf(ret->headers + n, sizeof(ret->headers) - n, "%s\n", line);
        assert_true(n < sizeof(ret->headers));
        if (strncasecmp(line, "Content-Length: ", 16) == 0)
            ret->length = strtol(line + 16, NULL, 10);
        if (strcasecmp(line, "Transfer-Encoding: chunked") == 0)
            ret->chunked = true;
    }
}

/* Appends one chunk; false for the last, which is empty. */
static inline bool client_chunk(struct client *c, struct str *s)
{
    char line[64];
    client_line(c, line, sizeof(line));
    unsigned long n = strtoul(line, NULL, 16);
    for (unsigned long i = 0; i < n; i++)
        str_append_c(s, client_byte(c));
    client_line(c, line, sizeof(line));
    assert_string_equal(line, "");
    return n > 0;
}

static inline void client_reply(struct client *c, struct reply *ret)
{
    client_head(c, ret);
    str_clear(&ret->body);
    if (ret->chunked) {
        while (client_chunk(c, &ret->body))
            ;
    } else {
        assert_true(ret->length >= 0);
        for (long i = 0; i < ret->length; i++)
            str_append_c(&ret->body, client_byte(c));
    }
}

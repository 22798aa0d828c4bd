/*
 * A small HTTP/1.1 server: of the API, of metrics and of webhooks.
 *
 * A few threads serve all connections. A request is read whole, then its connection's thread calls
 * the handler, which answers before it returns, by bytes or by a stream, or leaves that to a
 * function: on a fiber of the same thread, where it may wait by park_wait(), or deferred to a thread
 * of another pool, where it may block. A handler that blocks holds up the other connections of its
 * thread; a function that waits on its fiber or was deferred, or a client that is slow, holds up
 * nobody, as long as fewer than `deferred_threads` are deferred.
 *
 *     request line, headers, body --> handle() --+--> http_reply()         bytes, keep-alive
 *                           http_call()  |       +--> http_reply_stream()  chunks, see below
 *                          http_defer()  |       '--> neither              500
 *                                        '--> fn(), the same
 *
 * The request and all it gives stay valid until the handler, or the function that answers for it,
 * returns. A connection that waits for such a function sleeps; that its client has left is noticed
 * when there is an answer to send.
 *
 * What is refused before the handler sees it: a target that is no path, is badly encoded, contains
 * NUL or is no UTF-8 (400), headers that are too long (431, or 414 when it is the target), a body
 * that is too long (413; of what is declared far too long, or with "Expect: 100-continue", not a
 * byte is read, otherwise at most twice the limit), anything after http_server_stop() (503).
 * Methods are passed on whatever they are. To HEAD the handler answers as to GET; the body of the
 * answer is not sent. More connections than the limit wait until one closes; more than the limit
 * per address are closed at once.
 *
 * With TLS (1.2 or 1.3) clients may show a certificate, and the handler asks who they are. Without,
 * a server listens on loopback only.
 *
 * A stream is read on its connection's pool thread until it has nothing, then the connection sleeps
 * until http_stream_wake(). What one read returns is sent at once, as one chunk.
 *
 *              read() > 0: send, read again
 *                  .--.
 *                  |  v     0, not woken since           wake, hang-up, stop
 *     reply -->   reading  ---------------->  sleeping  ---------------------> reading
 *                    | -1, hang-up, cannot send, stop
 *                    v
 *                  done()   exactly once
 *
 * Guaranteed of a stream:
 * - A wake that begins after read() began leads to another read(), if only to one: wakes are not
 *   counted. So whoever makes data available and then wakes loses nothing.
 * - read() is not called before the handler has returned, never twice at a time, not after done().
 * - done() is called once however the connection ends, and before http_server_stop() returns.
 * - A client that closes or resets its connection, or only stops sending (shutdown), is noticed
 *   at once, also while the stream sleeps, and the stream ends. One that vanishes without a word is
 *   noticed by TCP within about a minute. One that stays but does not read is cut off after the
 *   idle time-out; sleeping itself never times out.
 * - The handle is counted: http_stream_wake() may be called from any thread, at any time, also
 *   from read() and done() and after the server was stopped, by whoever holds a reference. It
 *   takes no lock that is held while read(), done() or handle() run, so callers may hold their own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

enum { HTTP_PEER_MAX = 46 }; /* the longest IPv6 address and a NUL */

struct http_server;
struct http_stream;

struct http_request {
    const char *method;
    const char *target; /* as it was sent: for logs */
    const char *path;   /* the same without the query */
    /*
     * What lies between the slashes of the path, each decoded by itself: "%2F" is a slash inside a
     * segment. "/" has none; "/a/" has two, "a" and "". No segment contains NUL. Those of the
     * target "*" are none.
     */
    const char *const *segments;
    size_t n_segments;
    const char *body; /* never NULL, and a NUL behind it */
    size_t body_size;
    /* What was answered, for logs; 0 until then. Of a stream the size is 0. */
    unsigned status;
    size_t reply_size;
};

/* As PEM; copied. */
struct http_tls_options {
    const char *chain;     /* the server's certificate, then those between it and its authority */
    const char *key;       /* its private key */
    const char *client_ca; /* whose client certificates are valid; NULL: clients are not asked */
};

struct http_server_options {
    const char *address;       /* numeric IPv4 or IPv6; NULL is 127.0.0.1; "::" is both families */
    uint16_t port;             /* 0 is any that is free */
    unsigned threads;          /* 0 is 2 */
    unsigned deferred_threads; /* at most; 0 is 64 */
    /* Limits; 0 is the default. */
    size_t body_bytes;    /* 3 MiB */
    size_t header_bytes;  /* 64 KiB, about: target, headers and bookkeeping together; >= 1024 */
    unsigned connections; /* 1024; each thread has its share of them */
    unsigned connections_per_ip; /* none */
    unsigned strangers_per_ip;   /* 128 that have sent no request yet; of all, four times that */
    unsigned idle_seconds;       /* 120: without a byte in or out, or for one request */
    const struct http_tls_options *tls; /* NULL: plain HTTP, on a loopback address */
    void (*handle)(void *context, struct http_request *r);
    void *context;
};

int http_server_start(const struct http_server_options *o, struct http_server **ret_server,
                      struct err *e);
uint16_t http_server_port(const struct http_server *s);
/*
 * Other certificates, for connections that begin from now on; those that are open go on with what
 * they began with. The server must have been started with TLS.
 */
int http_server_set_tls(struct http_server *s, const struct http_tls_options *o, struct err *e);
/*
 * Takes no more requests, ends all streams, lets running handlers finish and their answers leave
 * (those that clients do not fetch within two seconds are cut), frees the server. Not to be called
 * from a handler or a stream. NULL is ignored.
 */
void http_server_stop(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_stop)

/*
 * The following are for the handler, or the function that it defers to, until it returns; all they
 * give lives that long.
 */

/*
 * Has fn answer in place of the handler, later and where it may block. To be called once, by the
 * handler, which then neither answers nor uses the request any more.
 */
void http_defer(struct http_request *r, void (*fn)(void *context, struct http_request *r),
                void *context);

/*
 * The same, at once and on this thread, on a stack of its own: where it may wait by park_wait()
 * (base/fiber.h), and in no other way.
 */
void http_call(struct http_request *r, void (*fn)(void *context, struct http_request *r),
               void *context);

/* The first parameter of that name, decoded ('+' is a space); "" for "?name"; NULL when missing. */
const char *http_request_query(const struct http_request *r, const char *name);
/* The same for the n-th of that name, from 0; NULL when there are no more. */
const char *http_request_query_at(const struct http_request *r, const char *name, size_t n);
/* The first header of that name, upper or lower case; NULL when missing. */
const char *http_request_header(const struct http_request *r, const char *name);

/* Calls fn with each header of the request, in order, until it returns false. */
void http_request_headers(const struct http_request *r,
                          bool (*fn)(void *context, const char *name, const char *value),
                          void *context);

/* The client's address, "192.0.2.1" or "2001:db8::1"; "" when it is not known. */
const char *http_request_peer(const struct http_request *r, char buf[HTTP_PEER_MAX]);

enum http_certificate_state {
    HTTP_CERTIFICATE_NONE,    /* the client has shown none */
    HTTP_CERTIFICATE_VALID,   /* one of the client authority's, and it has the key */
    HTTP_CERTIFICATE_INVALID, /* of somebody else, too old, or not for clients */
};

struct http_certificate {
    enum http_certificate_state state;
    /* Of a valid one: its subject, and SHA-256 of it all in hexadecimal. */
    const char *common_name;          /* NULL: it has none */
    const char *const *organizations; /* ends with NULL */
    const char *fingerprint;
};

/* What the client has shown. */
struct http_certificate http_request_certificate(const struct http_request *r);

/*
 * Adds a header to the answer that follows. False, and nothing added, when the name is no token or
 * the value contains control characters.
 */
bool http_reply_header(struct http_request *r, const char *name, const char *value);

/*
 * Answers with these bytes, which are not copied: they must stay as they are until free_fn, if any,
 * is called with free_context, once, on any thread, perhaps before this returns. content_type may be
 * NULL. Status is 200 to 999; any other is answered with 500. After the first answer to a request
 * further ones are only released.
 */
void http_reply(struct http_request *r, unsigned status, const char *content_type,
                const void *bytes, size_t size, void (*free_fn)(void *free_context),
                void *free_context);

struct http_stream_ops {
    /* Fills at most max bytes and returns how many; 0: none now, wait for a wake; -1: the end. */
    ssize_t (*read)(void *context, char *buf, size_t max);
    void (*done)(void *context);
};

/*
 * Answers with a stream; ops must live as long as it. Returns a reference for http_stream_wake(), to
 * be given back with http_stream_unref(). NULL when nothing will be read, and done() has then been
 * called: the method is HEAD, there was an answer already, the status is not 200 to 999, or the
 * connection cannot be watched (then the client gets 503).
 */
struct http_stream *http_reply_stream(struct http_request *r, unsigned status,
                                      const char *content_type, const struct http_stream_ops *ops,
                                      void *context) __attribute__((warn_unused_result));

/*
 * Answers with so many bytes, which are read when the client takes them: long answers that need not
 * be in memory. read() must return at least 1 until it has given them all, and -1 only if it cannot;
 * the client then sees that the answer was cut. done() is called once, also when nothing is read.
 */
void http_reply_parts(struct http_request *r, unsigned status, const char *content_type,
                      uint64_t size, const struct http_stream_ops *ops, void *context);

/* gzip.c: the same compressed, for clients that take it; their size is not known before. */
bool http_request_accepts_gzip(const struct http_request *r);
void http_reply_gzip(struct http_request *r, unsigned status, const char *content_type,
                     const void *bytes, size_t size, void (*free_fn)(void *free_context),
                     void *free_context);
/* What read() gives until it returns -1; it has always something. */
void http_reply_gzip_stream(struct http_request *r, unsigned status, const char *content_type,
                            const struct http_stream_ops *ops, void *context);

void http_stream_wake(struct http_stream *s);
/* Ends it though the client does not read: the connection is shut. */
void http_stream_cut(struct http_stream *s);
struct http_stream *http_stream_ref(struct http_stream *s);
void http_stream_unref(struct http_stream *s); /* NULL is ignored */

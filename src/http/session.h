/*
 * TLS of a client, over a socket that is connected and does not block.
 *
 * What it trusts and who it is never changes. A server's certificate must be signed by one of the
 * given authorities, or without any by one of the system's, be valid now, for a server, and for the
 * host's name or address. Sessions are not resumed: that would pass over those checks, and
 * connections are kept anyway.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

struct http_trust;
struct http_session;

/* What became of an attempt to read or write. */
enum http_io {
    HTTP_IO_FAILED = -1, /* *e says why */
    HTTP_IO_SOME,        /* something moved: bytes, perhaps none of ours */
    HTTP_IO_WAIT,        /* not now: wait for the socket */
    HTTP_IO_END,         /* the peer has ended it, in order */
};

/*
 * PEM, each may be NULL. `anybody`: no server's certificate is looked at. Any number of threads may use
 * it.
 */
int http_trust_new(const char *ca, const char *certificate, const char *key, bool anybody,
                   struct http_trust **ret_trust, struct err *e);
void http_trust_free(struct http_trust *t);
DEFINE_CLEANUP(struct http_trust *, http_trust_free)

/* Of one thread at a time, like a connection. The trust must live as long. */
int http_session_new(struct http_trust *t, const char *host, int fd,
                     struct http_session **ret_session, struct err *e);
void http_session_free(struct http_session *s); /* says goodbye, if that goes without waiting */
/* A step of the handshake, until HTTP_IO_END. HTTP_IO_WAIT is for *ret_events. */
enum http_io http_session_shake(struct http_session *s, short *ret_events, struct err *e);
enum http_io http_session_read(struct http_session *s, char *buf, size_t max, size_t *ret_n,
                               struct err *e);
/* After HTTP_IO_WAIT the next call must be for the same bytes. */
enum http_io http_session_write(struct http_session *s, const char *bytes, size_t n, size_t *ret_n,
                                struct err *e);

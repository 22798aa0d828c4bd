/*
 * A connection to a server, plain or with TLS. Its socket never blocks; who has to wait does so with
 * a http_wait. Of one thread at a time.
 */
#pragma once

#include "http/session.h"
#include "http/url.h"
#include "http/wait.h"

struct http_link;

/* Where to connect. Exactly one of the first three counts, in this order. */
struct http_place {
    const char *unix_socket;
    const char *address; /* numeric, with its port */
    uint16_t address_port;
    const struct http_url *url; /* its host is what a certificate must be for, in any case */
};

/* Connected, the handshake done. `trust` is used, and must live as long, when the URL says https. */
int http_link_open(const struct http_place *to, struct http_trust *trust, const struct http_wait *w,
                   struct http_link **ret_link, struct err *e);
void http_link_free(struct http_link *l);
DEFINE_CLEANUP(struct http_link *, http_link_free)

enum http_io http_link_read(struct http_link *l, char *buf, size_t max, size_t *ret_n,
                            struct err *e);
/* After HTTP_IO_WAIT the next call must be for the same bytes. */
enum http_io http_link_write(struct http_link *l, const char *bytes, size_t n, size_t *ret_n,
                             struct err *e);
/* Until it can be read, or for `writing` also written. */
int http_link_wait(const struct http_link *l, const struct http_wait *w, bool writing,
                   struct err *e);

/*
 * A small HTTP/1.1 client: of webhooks, and of the API itself.
 *
 * A client is made for one set of credentials (whom to trust, who to be) and keeps connections to
 * the servers it talked to, so that the next request needs no handshake: some sixteen, each until it
 * is found closed or was not used for a minute, which the next request finds out. Any thread may use
 * it; each request runs on the caller's thread and has a connection of its own while it runs.
 *
 *     http_client_send() --> status and body, at most `limit` bytes
 *                       '--> receive(), piece by piece: a watch, for as long as it lasts
 *
 * A server may close a kept connection just when the next request goes there. When nothing of an
 * answer has come, that request is sent once more on a new connection, provided that it cannot have
 * arrived (nothing of it was written) or that it may arrive twice: GET, HEAD and OPTIONS. All others
 * fail with UNAVAILABLE, for the caller to find out what became of them.
 *
 * Deadlines and cancels hold at any time: while a name is looked up, while connecting, in the
 * handshake, while writing and reading. Connecting takes ten seconds at most in any case.
 *
 * What it never does: follow a redirect, use a proxy or a .netrc file, whatever the environment
 * says; speak anything but http and https; accept a certificate that the given authorities, or
 * without any the system's, did not sign for the name in the URL, unless told to by any_server.
 *
 * Errors are those of the way: a response of any status is a success here. Codes:
 *
 *     INVALID_ARGUMENT     the URL, a header or a certificate of ours is not one
 *     UNAVAILABLE          no connection, or it broke: nobody knows whether the request arrived
 *     UNAUTHENTICATED      the server's certificate is not trusted, or ours not taken
 *     DEADLINE_EXCEEDED    no answer in time
 *     RESOURCE_EXHAUSTED   the answer is longer than the limit
 *     INTERNAL             what came is no HTTP, see response.h
 *     CANCELLED            http_cancel_fire()
 *     whatever receive() set
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct http_client;
struct http_cancel;

struct http_client_options {
    /* PEM; NULL: none. They are copied. */
    const char *ca;          /* the only authorities to trust; NULL: the system's */
    const char *certificate; /* ours, and its key */
    const char *key;
    const char *token;       /* sent as "Authorization: Bearer" */
    const char *user_agent;  /* NULL: orlop's own */
    const char *unix_socket; /* connect there, whatever host the URL names */
    /*
     * Take whoever answers for the server, and send no credentials: to ask a stranger for what can be
     * proven in another way.
     */
    bool any_server;
};

struct http_client *http_client_new(const struct http_client_options *o, struct err *e);
/* No request may be under way. */
void http_client_free(struct http_client *c);
DEFINE_CLEANUP(struct http_client *, http_client_free)
/* For requests from now on: another token, or none. At any time. */
int http_client_set_token(struct http_client *c, const char *token, struct err *e);

struct http_exchange {
    const char *method; /* NULL: GET */
    const char *url;    /* http:// or https:// */
    const char *const
        *headers;     /* "Name: value", ends with NULL; may be NULL. Not those of framing */
    const void *body; /* NULL: none */
    size_t body_size;
    int64_t timeout_ns; /* from now to the last byte; 0: none */
    int64_t idle_ns;    /* without a byte from the server or to it; 0: none */
    size_t limit;       /* of the body that is kept; 0: 4 MiB */
    /* Connect there instead of to the URL's host and port, whose name still counts; NULL. */
    const char *address; /* numeric */
    uint16_t port;
    /*
     * Gets the body of a 2xx response as it comes, on the caller's thread, and not kept; others are
     * kept as usual. The response's head is there by then. -1 with *e ends the request. May be NULL.
     */
    int (*receive)(void *context, const char *bytes, size_t n, struct err *e);
    void *context;
    struct http_cancel *cancel; /* may be NULL */
};

struct http_response {
    unsigned status;
    char content_type[128];
    unsigned retry_after; /* seconds, at most an hour; 0: it did not say */
    struct str warnings;  /* values of Warning headers, each with a line end; at most 16 */
    struct str body;
};

/* *ret_response is zeroed or left from an earlier call; http_response_done() is due either way. */
int http_client_send(struct http_client *c, const struct http_exchange *x,
                     struct http_response *ret_response, struct err *e);
void http_response_done(struct http_response *r);

/* Ends requests from another thread: all that have it, and any that is given it later. */
struct http_cancel *http_cancel_new(void);
void http_cancel_free(struct http_cancel *c); /* not while a request has it */
DEFINE_CLEANUP(struct http_cancel *, http_cancel_free)
void http_cancel_fire(struct http_cancel *c);

/*
 * TLS of a server: what it shows and whom it trusts, and what a connection's client has shown.
 *
 * Credentials never change; a server takes another set for the connections that begin from then on,
 * while those that are open keep theirs. Clients are asked for a certificate and need not have one;
 * one that is not valid does not end the handshake: the handler gets to know and answers.
 */
#pragma once

#include "http/server.h"

struct http_tls;
struct http_tls_connection;

/* Versions and ciphers, in GnuTLS' words: TLS 1.2 and 1.3 with forward secrecy. */
#define HTTP_TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:%SERVER_PRECEDENCE"

/* Counted; any thread. */
int http_tls_new(const struct http_tls_options *o, struct http_tls **ret_tls, struct err *e);
struct http_tls *http_tls_ref(struct http_tls *t);
void http_tls_unref(struct http_tls *t); /* NULL is ignored */

/* Before the handshake; `session` is GnuTLS'. It keeps a reference to the credentials. */
struct http_tls_connection *http_tls_connection_new(struct http_tls *t, void *session);
void http_tls_connection_free(struct http_tls_connection *c);
/*
 * What the client has shown; what that points to lives as long as the connection. Looks at the
 * certificate once and at its end every time. One caller at a time.
 */
struct http_certificate http_tls_certificate(struct http_tls_connection *c);

/* For HTTPS_CERT_CALLBACK: never called, since each connection has credentials of its own. */
void *http_tls_no_certificate(void);

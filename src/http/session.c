#include "http/session.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/resolve.h"

/* TLS 1.2 and 1.3 with forward secrecy, as our servers speak. */
#define PRIORITY "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA"

struct http_trust {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    pthread_mutex_t lock;
    bool anybody;  /* needs no authority */
    bool complete; /* the authorities are there; the system's are many, and read when needed */
};

struct http_session {
    gnutls_session_t tls;
    char *host; /* the library keeps pointers to these */
    gnutls_typed_vdata_st wanted[2];
};

/* The library does not take const text. */
static gnutls_datum_t text_of(const char *pem)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)pem, .size = (unsigned)strlen(pem)};
}

static int take_own(struct http_trust *t, const char *certificate, const char *key, struct err *e)
{
    if (!certificate && !key)
        return 0;
    if (!certificate || !key)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                       "a client's certificate and its key go together: there is no %s",
                       key ? "certificate" : "key");
    gnutls_datum_t chain = text_of(certificate), secret = text_of(key);
    int r = gnutls_certificate_set_x509_key_mem2(t->credentials, &chain, &secret,
                                                 GNUTLS_X509_FMT_PEM, NULL, 0);
    return r >= 0 ? 0
                  : err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                            "cannot use the client's certificate and key: %s", gnutls_strerror(r));
}

static int take_authorities(struct http_trust *t, const char *ca, struct err *e)
{
    if (!ca)
        return 0;
    gnutls_datum_t text = text_of(ca);
    int r = gnutls_certificate_set_x509_trust_mem(t->credentials, &text, GNUTLS_X509_FMT_PEM);
    t->complete = true;
    return r > 0 ? 0
                 : err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                           "cannot trust the given authority: %s",
                           r < 0 ? gnutls_strerror(r) : "there is no certificate in it");
}

int http_trust_new(const char *ca, const char *certificate, const char *key, bool anybody,
                   struct http_trust **ret_trust, struct err *e)
{
    _cleanup_(http_trust_freep) struct http_trust *t = NEW(struct http_trust);
    pthread_mutex_init(&t->lock, NULL);
    if (gnutls_certificate_allocate_credentials(&t->credentials) < 0 ||
        gnutls_priority_init2(&t->priority, PRIORITY, NULL, GNUTLS_PRIORITY_INIT_DEF_APPEND) < 0)
        abort(); /* out of memory */
    if (take_authorities(t, ca, e) < 0 || take_own(t, certificate, key, e) < 0)
        return -1;
    t->anybody = anybody;
    t->complete |= anybody;
    *ret_trust = TAKE_PTR(t);
    return 0;
}

void http_trust_free(struct http_trust *t)
{
    gnutls_certificate_free_credentials(t->credentials);
    gnutls_priority_deinit(t->priority);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static int complete(struct http_trust *t, struct err *e)
{
    pthread_mutex_lock(&t->lock);
    int r = t->complete ? 1 : gnutls_certificate_set_x509_system_trust(t->credentials);
    t->complete |= r > 0;
    pthread_mutex_unlock(&t->lock);
    return r > 0 ? 0
                 : err_set(e, ERR_UNAUTHENTICATED, "UntrustedServer",
                           "the system has no authorities to trust: name one, or install "
                           "ca-certificates");
}

int http_session_new(struct http_trust *t, const char *host, int fd,
                     struct http_session **ret_session, struct err *e)
{
    static const unsigned char protocol[] = "http/1.1";
    const gnutls_datum_t alpn = {.data = (unsigned char *)(uintptr_t)protocol,
                                 .size = sizeof(protocol) - 1};
    if (complete(t, e) < 0)
        return -1;
    struct http_session *s = NEW(struct http_session);
    if (gnutls_init(&s->tls,
                    GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0)
        abort(); /* out of memory */
    s->host = mem_strdup(host);
    s->wanted[0] =
        (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)s->host};
    s->wanted[1] =
        (gnutls_typed_vdata_st){.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER};
    gnutls_priority_set(s->tls, t->priority);
    gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, t->credentials);
    gnutls_alpn_set_protocols(s->tls, &alpn, 1, 0);
    if (!http_is_address(host))
        gnutls_server_name_set(s->tls, GNUTLS_NAME_DNS, host, strlen(host));
    if (!t->anybody)
        gnutls_session_set_verify_cert2(s->tls, s->wanted, 2, 0);
    gnutls_transport_set_int(s->tls, fd);
    gnutls_handshake_set_timeout(s->tls, GNUTLS_INDEFINITE_TIMEOUT); /* whoever waits knows */
    *ret_session = s;
    return 0;
}

void http_session_free(struct http_session *s)
{
    gnutls_bye(s->tls, GNUTLS_SHUT_WR);
    gnutls_deinit(s->tls);
    free(s->host);
    free(s);
}

/* In the words of clients in Go, which users of kubectl have seen. */
static int untrusted(const struct http_session *s, struct err *e)
{
    static const struct {
        unsigned status;
        const char *text;
    } table[] = {
        {GNUTLS_CERT_SIGNER_NOT_FOUND, "certificate signed by unknown authority"},
        {GNUTLS_CERT_REVOKED, "certificate was revoked"},
        {GNUTLS_CERT_EXPIRED, "certificate has expired"},
        {GNUTLS_CERT_NOT_ACTIVATED, "certificate is not yet valid"},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "certificate specifies an incompatible key usage"},
        {GNUTLS_CERT_UNEXPECTED_OWNER, "certificate is not valid for"},
        {UINT32_MAX, "certificate is not acceptable"},
    };
    unsigned status = gnutls_session_get_verify_cert_status(s->tls);
    size_t i = 0;
    while (!(table[i].status & status) && i < ARRAY_SIZE(table) - 1)
        i++;
    bool name = table[i].status == GNUTLS_CERT_UNEXPECTED_OWNER;
    return err_set(e, ERR_UNAUTHENTICATED, "UntrustedServer",
                   "tls: failed to verify certificate: x509: %s%s%s", table[i].text,
                   name ? " " : "", name ? s->host : "");
}

static int alerted(const struct http_session *s, struct err *e)
{
    gnutls_alert_description_t alert = gnutls_alert_get(s->tls);
    const char *name = gnutls_alert_get_name(alert);
    bool ours = false;
    switch (alert) {
    case GNUTLS_A_BAD_CERTIFICATE:
    case GNUTLS_A_UNSUPPORTED_CERTIFICATE:
    case GNUTLS_A_CERTIFICATE_REVOKED:
    case GNUTLS_A_CERTIFICATE_EXPIRED:
    case GNUTLS_A_CERTIFICATE_UNKNOWN:
    case GNUTLS_A_CERTIFICATE_REQUIRED:
    case GNUTLS_A_UNKNOWN_CA:
    case GNUTLS_A_ACCESS_DENIED:
        ours = true;
        break;
    default:
        break;
    }
    return err_set(e, ours ? ERR_UNAUTHENTICATED : ERR_UNAVAILABLE,
                   ours ? "CertificateRefused" : "TLSFailed", "tls: the server says: %s",
                   name ? name : "something unknown");
}

static enum http_io result(const struct http_session *s, ssize_t code, struct err *e)
{
    switch (code) {
    case GNUTLS_E_AGAIN:
        return HTTP_IO_WAIT;
    case GNUTLS_E_INTERRUPTED:
    case GNUTLS_E_REHANDSHAKE: /* which we may pass over, and do */
    case GNUTLS_E_WARNING_ALERT_RECEIVED:
        return HTTP_IO_SOME;
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
        untrusted(s, e);
        return HTTP_IO_FAILED;
    case GNUTLS_E_FATAL_ALERT_RECEIVED:
        alerted(s, e);
        return HTTP_IO_FAILED;
    case GNUTLS_E_PREMATURE_TERMINATION:
    case GNUTLS_E_PULL_ERROR:
    case GNUTLS_E_PUSH_ERROR:
        err_set(e, ERR_UNAVAILABLE, "ConnectionLost", "the server closed the connection");
        return HTTP_IO_FAILED;
    default:
        err_set(e, ERR_UNAVAILABLE, "TLSFailed", "tls: %s", gnutls_strerror((int)code));
        return HTTP_IO_FAILED;
    }
}

enum http_io http_session_shake(struct http_session *s, short *ret_events, struct err *e)
{
    int r = gnutls_handshake(s->tls);
    if (r == GNUTLS_E_SUCCESS)
        return HTTP_IO_END;
    *ret_events = gnutls_record_get_direction(s->tls) ? POLLOUT : POLLIN;
    return result(s, r, e);
}

enum http_io http_session_read(struct http_session *s, char *buf, size_t max, size_t *ret_n,
                               struct err *e)
{
    ssize_t n = gnutls_record_recv(s->tls, buf, max);
    *ret_n = n > 0 ? (size_t)n : 0;
    if (n == 0)
        return HTTP_IO_END;
    return n > 0 ? HTTP_IO_SOME : result(s, n, e);
}

enum http_io http_session_write(struct http_session *s, const char *bytes, size_t n, size_t *ret_n,
                                struct err *e)
{
    ssize_t sent = gnutls_record_send(s->tls, bytes, n);
    *ret_n = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 ? HTTP_IO_SOME : result(s, sent, e);
}

#include "http/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/str.h"

enum { MOST_ORGANIZATIONS = 256, LONGEST_NAME = 1024, FINGERPRINT = 32 };

struct http_tls {
    gnutls_certificate_credentials_t credentials;
    bool asks; /* clients for certificates */
    _Atomic unsigned refs;
};

struct http_tls_connection {
    struct http_tls *tls;
    gnutls_session_t session;
    bool known; /* what follows is set */
    time_t until;
    struct http_certificate shown;
    struct arena arena;
};

struct http_tls *http_tls_ref(struct http_tls *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void http_tls_unref(struct http_tls *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    free(t);
}

DEFINE_CLEANUP(struct http_tls *, http_tls_unref)

/* The library does not take const text. */
static gnutls_datum_t text_of(const char *pem)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)pem, .size = (unsigned)strlen(pem)};
}

int http_tls_new(const struct http_tls_options *o, struct http_tls **ret_tls, struct err *e)
{
    _cleanup_(http_tls_unrefp) struct http_tls *t = NEW(struct http_tls);
    t->refs = 1;
    if (gnutls_certificate_allocate_credentials(&t->credentials) < 0)
        abort(); /* out of memory */
    gnutls_datum_t chain = text_of(o->chain), key = text_of(o->key);
    int r = gnutls_certificate_set_x509_key_mem2(t->credentials, &chain, &key, GNUTLS_X509_FMT_PEM,
                                                 NULL, 0);
    if (r < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                       "cannot serve TLS with this certificate and key: %s", gnutls_strerror(r));
    if (o->client_ca) {
        gnutls_datum_t ca = text_of(o->client_ca);
        r = gnutls_certificate_set_x509_trust_mem(t->credentials, &ca, GNUTLS_X509_FMT_PEM);
        if (r <= 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                           "cannot trust the authority of clients: %s",
                           r < 0 ? gnutls_strerror(r) : "there is no certificate in it");
        t->asks = true;
    }
    *ret_tls = TAKE_PTR(t);
    return 0;
}

struct http_tls_connection *http_tls_connection_new(struct http_tls *t, void *session)
{
    static const unsigned char protocol[] = "http/1.1";
    struct http_tls_connection *c = NEW(struct http_tls_connection);
    const gnutls_datum_t alpn = {.data = (unsigned char *)(uintptr_t)protocol,
                                 .size = sizeof(protocol) - 1};
    c->tls = http_tls_ref(t);
    c->session = session;
    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, t->credentials);
    gnutls_alpn_set_protocols(c->session, &alpn, 1, 0);
    gnutls_certificate_server_set_request(c->session,
                                          t->asks ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
    /* No list of authorities: clients would keep back certificates of one that is in its place. */
    gnutls_certificate_send_x509_rdn_sequence(c->session, 1);
    return c;
}

void http_tls_connection_free(struct http_tls_connection *c)
{
    if (!c)
        return;
    http_tls_unref(c->tls);
    arena_done(&c->arena);
    free(c);
}

/* A part of the subject; NULL when there is none. False when it is unfit to be a name. */
static bool subject_part(struct http_tls_connection *c, gnutls_x509_crt_t crt, const char *oid,
                         unsigned place, const char **ret_text)
{
    char text[LONGEST_NAME];
    size_t n = sizeof(text);
    int r = gnutls_x509_crt_get_dn_by_oid(crt, oid, place, 0, text, &n);
    *ret_text = NULL;
    if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return true;
    if (r < 0 || strnlen(text, n) != n)
        return false;
    *ret_text = arena_copy(&c->arena, text, n);
    return true;
}

static bool read_subject(struct http_tls_connection *c, gnutls_x509_crt_t crt)
{
    struct http_certificate *p = &c->shown;
    const char **organizations =
        arena_alloc(&c->arena, (MOST_ORGANIZATIONS + 1) * sizeof(organizations[0]));
    if (!subject_part(c, crt, GNUTLS_OID_X520_COMMON_NAME, 0, &p->common_name))
        return false;
    unsigned n = 0;
    do {
        if (n > MOST_ORGANIZATIONS ||
            !subject_part(c, crt, GNUTLS_OID_X520_ORGANIZATION_NAME, n, &organizations[n]))
            return false;
    } while (organizations[n++]);
    p->organizations = organizations;
    return true;
}

static void set_fingerprint(struct http_tls_connection *c, gnutls_x509_crt_t crt)
{
    uint8_t digest[FINGERPRINT];
    size_t n = sizeof(digest);
    char *text = arena_alloc(&c->arena, 2 * sizeof(digest) + 1);
    if (gnutls_x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256, digest, &n) < 0)
        abort(); /* out of memory */
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    c->shown.fingerprint = text;
}

/* The client's certificate, if it is one that the server trusts for clients. */
static bool read_certificate(struct http_tls_connection *c, const gnutls_datum_t *der)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0;
    gnutls_x509_crt_t crt;
    if (gnutls_certificate_verify_peers(c->session, &purpose, 1, &status) < 0 || status)
        return false;
    if (gnutls_x509_crt_init(&crt) < 0)
        abort(); /* out of memory */
    bool fine = gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) >= 0 && read_subject(c, crt);
    if (fine) {
        set_fingerprint(c, crt);
        c->until = gnutls_x509_crt_get_expiration_time(crt);
    }
    gnutls_x509_crt_deinit(crt);
    return fine;
}

struct http_certificate http_tls_certificate(struct http_tls_connection *c)
{
    if (!c->known) {
        unsigned n = 0;
        const gnutls_datum_t *certs = gnutls_certificate_get_peers(c->session, &n);
        c->shown.state = HTTP_CERTIFICATE_NONE;
        if (certs && n)
            c->shown.state =
                read_certificate(c, &certs[0]) ? HTTP_CERTIFICATE_VALID : HTTP_CERTIFICATE_INVALID;
        c->known = true;
    }
    if (c->shown.state == HTTP_CERTIFICATE_VALID && time(NULL) > c->until)
        c->shown.state = HTTP_CERTIFICATE_INVALID; /* it was valid when the connection began */
    return c->shown;
}

static int no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
                          const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                          gnutls_pcert_st **chain, unsigned *n_chain, gnutls_privkey_t *key)
{
    (void)session, (void)names, (void)n_names, (void)algorithms, (void)n_algorithms;
    (void)chain, (void)n_chain, (void)key;
    return -1;
}

void *http_tls_no_certificate(void)
{
    return (void *)(uintptr_t)no_certificate;
}

/*
 * TLS as clients see it: who is let in, what the handler gets to know of them, and certificates that
 * are replaced while connections live.
 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "http/certs.h"
#include "http/site.h"

static struct site *tls_site(unsigned idle_seconds)
{
    struct http_tls_options tls = tls_of(&server, &ours);
    return site_new(
        &(struct http_server_options){.threads = 2, .tls = &tls, .idle_seconds = idle_seconds});
}

/* A client. */

struct peer {
    struct client *tcp;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    char in[4096];
    size_t n;
};

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

static void peer_free(struct peer *p)
{
    gnutls_deinit(p->session);
    gnutls_certificate_free_credentials(p->credentials);
    client_free(p->tcp);
    free(p);
}

DEFINE_CLEANUP(struct peer *, peer_free)

#define _peer_ __attribute__((unused)) _cleanup_(peer_freep) struct peer

/* Connected, the handshake not begun. */
static struct peer *peer_open(uint16_t port, const struct pair *own, const char *priority)
{
    struct peer *p = NEW(struct peer);
    p->tcp = client_new(port);
    assert_int_equal(gnutls_init(&p->session, GNUTLS_CLIENT), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(&p->credentials), 0);
    gnutls_datum_t ca = datum(ours.cert.p);
    gnutls_certificate_set_x509_trust_mem(p->credentials, &ca, GNUTLS_X509_FMT_PEM);
    if (own) {
        gnutls_datum_t cert = datum(own->cert.p), key = datum(own->key.p);
        assert_int_equal(
            gnutls_certificate_set_x509_key_mem(p->credentials, &cert, &key, GNUTLS_X509_FMT_PEM),
            0);
    }
    gnutls_credentials_set(p->session, GNUTLS_CRD_CERTIFICATE, p->credentials);
    assert_int_equal(gnutls_priority_set_direct(p->session, priority, NULL), 0);
    gnutls_server_name_set(p->session, GNUTLS_NAME_DNS, "localhost", 9);
    gnutls_transport_set_int(p->session, p->tcp->fd);
    return p;
}

static int peer_handshake(struct peer *p)
{
    int r;
    do
        r = gnutls_handshake(p->session);
    while (r < 0 && !gnutls_error_is_fatal(r));
    return r;
}

static struct peer *peer_new(uint16_t port, const struct pair *own)
{
    struct peer *p = peer_open(port, own, "NORMAL");
    int r = peer_handshake(p);
    if (r < 0)
        fail_msg("%s", gnutls_strerror(r));
    return p;
}

/* 0: the server's certificate is one of that authority's. */
static unsigned peer_verifies(struct peer *p)
{
    unsigned status = 0;
    assert_int_equal(gnutls_certificate_verify_peers3(p->session, "localhost", &status), 0);
    return status;
}

static void peer_send(struct peer *p, const char *text)
{
    assert_int_equal(gnutls_record_send(p->session, text, strlen(text)), strlen(text));
}

/* Reads until the text is there, or the end; false then. */
static bool peer_sees(struct peer *p, const char *text)
{
    for (;;) {
        p->in[p->n] = '\0';
        if (strstr(p->in, text))
            return true;
        assert_true(p->n + 1 < sizeof(p->in));
        ssize_t n = gnutls_record_recv(p->session, p->in + p->n, sizeof(p->in) - 1 - p->n);
        if (n == GNUTLS_E_INTERRUPTED || n == GNUTLS_E_AGAIN)
            continue;
        if (n <= 0)
            return false;
        p->n += (size_t)n;
    }
}

/* What /peer says of this client. */
static void peer_is(struct peer *p, const char *expected)
{
    peer_send(p, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    p->n = 0;
    assert_true(peer_sees(p, "\r\n\r\n127.0.0.1 "));
    const char *is = strstr(p->in, "\r\n\r\n127.0.0.1 ") + strlen("\r\n\r\n127.0.0.1 ");
    if (!peer_sees(p, expected))
        fail_msg("'%s', not '%s'", is, expected);
    assert_string_equal(is, expected);
}

static void test_clients(void **state)
{
    static const struct {
        const struct pair *own;
        const char *priority, *is;
    } table[] = {
        {NULL, "NORMAL", "none"},
        {&admin, "NORMAL", "admin system:masters second"},
        {&admin, "NORMAL:-VERS-ALL:+VERS-TLS1.2", "admin system:masters second"},
        {&admin, "NORMAL:-VERS-ALL:+VERS-TLS1.3", "admin system:masters second"},
        {&stranger, "NORMAL", "invalid"},
        {&expired, "NORMAL", "invalid"},
        {&server, "NORMAL", "invalid"}, /* not for clients */
    };
    (void)state;
    _cleanup_(site_freep) struct site *t = tls_site(0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _peer_ *p = peer_open(t->port, table[i].own, table[i].priority);
        assert_int_equal(peer_handshake(p), 0);
        assert_int_equal(peer_verifies(p), 0);
        peer_is(p, table[i].is);
        peer_is(p, table[i].is);
    }
}

static void test_old_versions(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = tls_site(0);
    _peer_ *p = peer_open(t->port, NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.1:+SHA1:%COMPAT");
    /* It is the server that ends it, with or without a word. */
    int r = peer_handshake(p);
    assert_true(r == GNUTLS_E_PREMATURE_TERMINATION || r == GNUTLS_E_FATAL_ALERT_RECEIVED);
    _peer_ *q = peer_new(t->port, NULL);
    peer_is(q, "none");
}

static void test_wrong_authority(void **state)
{
    (void)state;
    struct pair other = {0};
    issue(&theirs, (struct pki_request){.common_name = "server"}, &other);
    struct http_tls_options tls = tls_of(&other, NULL);
    _cleanup_(site_freep) struct site *t =
        site_new(&(struct http_server_options){.threads = 1, .tls = &tls});
    pair_done(&other); /* the server has its own copy */
    _peer_ *p = peer_new(t->port, &admin);
    assert_int_not_equal(peer_verifies(p), 0);
    peer_is(p, "none"); /* it was not asked */
}

/* Others may reach it. */
static void test_addresses(void **state)
{
    static const char *const table[] = {"0.0.0.0", "::"};
    (void)state;
    struct http_tls_options tls = tls_of(&server, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
            close(fd);
        else if (strchr(table[i], ':'))
            continue; /* a machine without IPv6 */
        _cleanup_(site_freep) struct site *t =
            site_new(&(struct http_server_options){.address = table[i], .threads = 1, .tls = &tls});
        _peer_ *p = peer_new(t->port, NULL);
        peer_is(p, "none");
    }
}

static void test_rotation(void **state)
{
    (void)state;
    struct pair next = {0};
    struct err e = {0};
    issue(&theirs, (struct pki_request){.common_name = "server"}, &next);
    struct http_tls_options tls = tls_of(&next, &theirs), bad = tls_of(&next, &theirs);
    bad.key = admin.key.p;
    _cleanup_(site_freep) struct site *t = tls_site(0);
    _peer_ *early = peer_new(t->port, &admin), *waiting = peer_open(t->port, &admin, "NORMAL");
    peer_is(early, "admin system:masters second");

    assert_int_equal(http_server_set_tls(t->server, &bad, &e), -1);
    assert_string_equal(e.reason, "InvalidCertificate");
    bad = tls;
    bad.client_ca = "no certificate";
    assert_int_equal(http_server_set_tls(t->server, &bad, &e), -1);
    _peer_ *same = peer_new(t->port, NULL);
    assert_int_equal(peer_verifies(same), 0);

    assert_int_equal(http_server_set_tls(t->server, &tls, &e), 0);
    pair_done(&next);
    peer_is(early, "admin system:masters second");
    /* It may have been accepted before or after. */
    assert_int_equal(peer_handshake(waiting), 0);
    _peer_ *late = peer_new(t->port, &admin), *other = peer_new(t->port, &stranger);
    assert_int_not_equal(peer_verifies(late), 0);
    peer_is(late, "invalid");
    peer_is(other, "admin system:masters second");
    peer_is(early, "admin system:masters second");
}

/* A certificate that ends while its connection lives. */
static void test_expiry(void **state)
{
    (void)state;
    struct pair brief = {0};
    issue(&ours,
          (struct pki_request){.use = PKI_CLIENT, .common_name = "brief", .until = time(NULL) + 2},
          &brief);
    _cleanup_(site_freep) struct site *t = tls_site(0);
    _peer_ *p = peer_new(t->port, &brief);
    pair_done(&brief);
    bool valid;
    do {
        peer_send(p, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
        p->n = 0;
        assert_true(peer_sees(p, "\r\n\r\n"));
        valid = strstr(p->in, "Content-Length: 15\r\n"); /* "127.0.0.1 brief" */
        assert_true(peer_sees(p, valid ? "127.0.0.1 brief" : "127.0.0.1 invalid"));
        poll(NULL, 0, 20);
    } while (valid);
}

static void test_silence(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = tls_site(1);
    /* No handshake, half of one, and what is none. */
    static const char half[] = "\x16\x03\x01\x02\x00\x01";
    _cleanup_(client_freep) struct client *a = client_new(t->port), *b = client_new(t->port),
                                          *c = client_new(t->port);
    assert_true(client_try_send(b, half, sizeof(half) - 1));
    client_send(c, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    struct client *const all[] = {a, b, c};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        while (client_fill(all[i])) /* an alert, perhaps */
            ;
    }
    assert_int_equal(get(t, &t->handled), 0);
    /* A handshake and no request. */
    _peer_ *p = peer_new(t->port, NULL);
    assert_false(peer_sees(p, "never"));
}

static void test_stream(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = tls_site(0);
    _peer_ *p = peer_new(t->port, &admin);
    peer_send(p, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(t, &t->opened, 1);
    _cleanup_(feed_freep) struct feed *feed = t->feed;
    feed_make(feed, 2);
    assert_true(peer_sees(p, "0\n1\n"));
    feed_make(feed, 1);
    assert_true(peer_sees(p, "2\n"));
    /* Other certificates are no reason to end it. */
    struct http_tls_options tls = tls_of(&server, &theirs);
    assert_int_equal(http_server_set_tls(t->server, &tls, NULL), 0);
    feed_make(feed, 1);
    assert_true(peer_sees(p, "3\n"));
    shutdown(p->tcp->fd, SHUT_RDWR);
    wait_for(t, &t->done, 1);
}

/* A client that does not read; and one that is there when the server stops. */
static void test_stop(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = tls_site(0);
    _peer_ *p = peer_new(t->port, NULL), *half = peer_open(t->port, NULL, "NORMAL"),
           *idle = peer_new(t->port, NULL);
    peer_send(p, "GET /stream?endless HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(t, &t->opened, 1);
    struct feed *feed = t->feed;
    site_stop(t);
    assert_int_equal(t->done, 1);
    feed_free(feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_old_versions),
        cmocka_unit_test(test_wrong_authority),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

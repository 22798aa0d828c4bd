/*
 * TLS as servers see it: whom a client trusts, what it says when it does not, and who it is.
 */
#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "http/certs.h"
#include "http/client.h"
#include "http/raw_server.h"
#include "http/site.h"

static struct site *site_with(const struct pair *own)
{
    struct http_tls_options tls = tls_of(own, &ours);
    return site_new(&(struct http_server_options){.threads = 2, .tls = &tls});
}

static struct http_client *client_with(const struct ca *ca, const struct pair *own)
{
    struct err e = {0};
    struct http_client_options o = {.ca = ca ? ca->cert.p : NULL,
                                    .certificate = own ? own->cert.p : NULL,
                                    .key = own ? own->key.p : NULL};
    struct http_client *c = http_client_new(&o, &e);
    if (!c)
        fail_msg("%s", e.msg);
    return c;
}

/* "200 body" or "CODE message" */
static const char *ask(struct http_client *c, const char *host, uint16_t port, const char *path)
{
    static char text[1200];
    char url[128];
    struct http_response r = {0};
    struct err e = {0};
    snprintf(url, sizeof(url), "https://%s:%u%s", host, port, path);
    bool named = !str_eq(host, "127.0.0.1") && !str_eq(host, "localhost");
    struct http_exchange x = {.url = url,
                              .timeout_ns = 30 * CLOCK_SECOND,
                              .address = named ? "127.0.0.1" : NULL,
                              .port = port};
    if (http_client_send(c, &x, &r, &e) == 0) {
        snprintf(text, sizeof(text), "%u %s", r.status, str_get(&r.body));
    } else {
        assert_true(str_starts_with(e.msg, url));
        snprintf(text, sizeof(text), "%s %s", err_code_name(e.code), e.msg + strlen(url) + 2);
    }
    http_response_done(&r);
    return text;
}

#define _client_ _cleanup_(http_client_freep) struct http_client

static void test_who_we_are(void **state)
{
    (void)state;
    static const struct {
        const struct pair *own;
        const char *is;
    } table[] = {
        {NULL, "200 127.0.0.1 none"},
        {&admin, "200 127.0.0.1 admin system:masters second"},
        {&stranger, "200 127.0.0.1 invalid"},
        {&expired, "200 127.0.0.1 invalid"},
    };
    _cleanup_(site_freep) struct site *t = site_with(&server);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _client_ *c = client_with(&ours, table[i].own);
        for (int k = 0; k < 3; k++)
            assert_string_equal(ask(c, "127.0.0.1", t->port, "/peer"), table[i].is);
    }
}

static void test_whom_we_trust(void **state)
{
    (void)state;
    struct pair late = {0}, soon = {0}, foreign = {0};
    int64_t now = time(NULL);
    issue(&ours, (struct pki_request){.common_name = "late", .until = now - 10}, &late);
    issue(&ours, (struct pki_request){.common_name = "soon", .from = now + 1000}, &soon);
    issue(&theirs, (struct pki_request){.common_name = "foreign"}, &foreign);
    const struct {
        const struct pair *own;
        const struct ca *ca;
        const char *host, *is;
    } table[] = {
        {&server, &ours, "127.0.0.1", "200 static"},
        {&server, &ours, "localhost", "200 static"},
        {&server, &ours, "LOCALHOST", "200 static"},
        {&foreign, &theirs, "localhost", "200 static"},
        {&server, &theirs, "localhost", "certificate signed by unknown authority"},
        {&foreign, &ours, "localhost", "certificate signed by unknown authority"},
        {&server, NULL, "localhost", "certificate signed by unknown authority"},
        {&server, &ours, "other.test", "certificate is not valid for other.test"},
        {&server, &ours, "127.0.0.2", "certificate is not valid for 127.0.0.2"},
        {&late, &ours, "localhost", "certificate has expired"},
        {&soon, &ours, "localhost", "certificate is not yet valid"},
        {&admin, &ours, "admin", "certificate specifies an incompatible key usage"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(site_freep) struct site *t = site_with(table[i].own);
        _client_ *c = client_with(table[i].ca, NULL);
        const char *got = ask(c, table[i].host, t->port, "/static");
        /* a machine may be without authorities; then nobody is trusted either */
        if (!table[i].ca && strstr(got, "UNAUTHENTICATED the system has no authorities"))
            continue;
        char refused[200];
        snprintf(refused, sizeof(refused),
                 "UNAUTHENTICATED tls: failed to verify certificate: x509: %s", table[i].is);
        assert_string_equal(got, str_starts_with(table[i].is, "200") ? table[i].is : refused);
        assert_int_equal(get(t, &t->handled), str_starts_with(table[i].is, "200"));
    }
    pair_done(&late);
    pair_done(&soon);
    pair_done(&foreign);
}

static void test_bad_credentials(void **state)
{
    (void)state;
    const struct http_client_options table[] = {
        {.ca = "nothing"},
        {.ca = ""},
        {.certificate = admin.cert.p},
        {.key = admin.key.p},
        {.certificate = admin.cert.p, .key = server.key.p},
        {.certificate = "nothing", .key = admin.key.p},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_null(http_client_new(&table[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void test_no_tls_there(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *plain = site_new(NULL);
    _client_ *c = client_with(&ours, NULL);
    assert_true(str_starts_with(ask(c, "127.0.0.1", plain->port, "/"), "UNAVAILABLE "));
}

static int take_number(void *context, const char *bytes, size_t n, struct err *e)
{
    struct str *text = context;
    str_append_n(text, bytes, n);
    return strstr(text->p, "99\n") ? err_set(e, ERR_ABORTED, "Enough", "enough") : 0;
}

static void *make_numbers(void *context)
{
    struct site *t = context;
    wait_for(t, &t->opened, 1);
    for (int i = 0; i < 100; i++)
        feed_make(t->feed, 1);
    return NULL;
}

static void test_stream(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_with(&server);
    _client_ *c = client_with(&ours, &admin);
    _cleanup_(str_done) struct str text = {0};
    char url[64];
    struct http_response r = {0};
    struct err e = {0};
    pthread_t maker;
    assert_int_equal(pthread_create(&maker, NULL, make_numbers, t), 0);
    snprintf(url, sizeof(url), "https://localhost:%u/stream", t->port);
    struct http_exchange x = {.url = url, .receive = take_number, .context = &text};
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_ABORTED);
    assert_string_equal(e.msg, "enough");
    assert_true(str_starts_with(text.p, "0\n1\n2\n"));
    pthread_join(maker, NULL);
    wait_for(t, &t->done, 1);
    feed_free(t->feed);
    http_response_done(&r);
}

/* A body of many records, both ways. */
static void test_long_body(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_with(&server);
    _client_ *c = client_with(&ours, NULL);
    size_t size = 900000;
    _cleanup_free_ char *body = mem_alloc(size);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)('a' + i % 23);
    char url[64];
    struct http_response r = {0};
    struct err e = {0};
    snprintf(url, sizeof(url), "https://localhost:%u/echo", t->port);
    struct http_exchange x = {.method = "POST", .url = url, .body = body, .body_size = size};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(http_client_send(c, &x, &r, &e), 0);
        assert_int_equal(r.body.len, size + strlen("POST echo| q=- h=- "));
        assert_memory_equal(r.body.p + r.body.len - size, body, size);
    }
    http_response_done(&r);
}

/* A server of the library's own, for what ours never does. */
struct strict {
    int listener;
    uint16_t port;
    const char *priority, *answer;
    bool asks, bye;
    pthread_t thread;
};

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

static void *strict_run(void *context)
{
    struct strict *s = context;
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    gnutls_datum_t cert = datum(server.cert.p), key = datum(server.key.p), ca = datum(ours.cert.p);
    gnutls_certificate_allocate_credentials(&credentials);
    gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
    gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NO_SIGNAL);
    gnutls_priority_set_direct(session, s->priority, NULL);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    if (s->asks)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(session, NULL, 0);
    if (!s->asks)
        gnutls_session_set_verify_function(session, NULL);
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    gnutls_transport_set_int(session, fd);
    int r;
    do
        r = gnutls_handshake(session);
    while (r < 0 && !gnutls_error_is_fatal(r));
    char in[1000];
    if (r == 0 && gnutls_record_recv(session, in, sizeof(in)) > 0) {
        gnutls_record_send(session, s->answer, strlen(s->answer));
        if (s->bye)
            gnutls_bye(session, GNUTLS_SHUT_WR);
    } else if (r < 0) {
        gnutls_alert_send_appropriate(session, r);
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, in, sizeof(in), 0) > 0) /* so that what was sent is not lost by a reset */
        ;
    close(fd);
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    return NULL;
}

static void test_strict_servers(void **state)
{
    (void)state;
    static const char sized[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static const char unsized[] = "HTTP/1.1 200 OK\r\n\r\nok";
    static const char v12[] = "NORMAL:-VERS-ALL:+VERS-TLS1.2";
    static const char v13[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3";
    const struct {
        const char *priority, *answer;
        bool asks, bye;
        const struct pair *own;
        const char *is;
    } table[] = {
        {v12, sized, false, true, NULL, "200 ok"},
        {v13, sized, false, true, NULL, "200 ok"},
        {v13, sized, false, false, NULL, "200 ok"},
        /* a body that ends with the connection must end in order: else somebody cut it */
        {v12, unsized, false, true, NULL, "200 ok"},
        {v13, unsized, false, true, NULL, "200 ok"},
        {v12, unsized, false, false, NULL, "UNAVAILABLE the server closed the connection"},
        {v13, unsized, false, false, NULL, "UNAVAILABLE the server closed the connection"},
        {v12, sized, true, true, &admin, "200 ok"},
        {v13, sized, true, true, &admin, "200 ok"},
        {v12, sized, true, true, NULL, "UNAVAILABLE tls: the server says: "}, /* not why */
        {v13, sized, true, true, NULL, "UNAUTHENTICATED tls: the server says: "},
        {v12, sized, true, true, &stranger, "UNAVAILABLE tls: the server says: "},
        {v13, sized, true, true, &stranger, "UNAUTHENTICATED tls: the server says: "},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.1:+SHA1:%COMPAT", sized, false, true, NULL,
         "UNAVAILABLE tls: "},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", sized, false, true, NULL,
         "UNAVAILABLE tls: "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct strict s = {.priority = table[i].priority,
                           .answer = table[i].answer,
                           .asks = table[i].asks,
                           .bye = table[i].bye};
        s.listener = raw_listen(8, &s.port);
        assert_int_equal(pthread_create(&s.thread, NULL, strict_run, &s), 0);
        struct http_client *c = client_with(&ours, table[i].own);
        const char *got = ask(c, "localhost", s.port, "/");
        http_client_free(c);
        pthread_join(s.thread, NULL);
        close(s.listener);
        if (!str_starts_with(got, table[i].is))
            fail_msg("%zu: %s", i, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_we_are),      cmocka_unit_test(test_whom_we_trust),
        cmocka_unit_test(test_bad_credentials), cmocka_unit_test(test_no_tls_there),
        cmocka_unit_test(test_stream),          cmocka_unit_test(test_long_body),
        cmocka_unit_test(test_strict_servers),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

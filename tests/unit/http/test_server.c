#include "http/site.h"

enum { PIPELINED = 1000, BODY_LIMIT = 10000 };

static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *request, *body;
        unsigned status;
    } table[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET  q=- h=- ", 200},
        {"GET /a/b?q=1 HTTP/1.1\r\nHost: x\r\nX-TEST: y\r\n\r\n", "GET a|b| q=1 h=y ", 200},
        {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "POST a| q=- h=- hello",
         200},
        {"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
         "PUT a| q=- h=- hello", 200},
        {"FROB /a HTTP/1.1\r\nHost: x\r\n\r\n", "FROB a| q=- h=- ", 200},
        {"DELETE /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "DELETE a| q=- h=- {}",
         200},
        {"GET /teapot HTTP/1.1\r\nHost: x\r\n\r\n", "GET teapot| q=- h=- ", 418},
        {"GET /empty HTTP/1.1\r\nHost: x\r\n\r\n", "", 200},
        {"GET /static HTTP/1.1\r\nHost: x\r\n\r\n", "static", 200},
        {"GET http://x/a?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET a| q= h=- ", 200},
        {"GET /a%2Fb/c%20d?q=%26+%2B HTTP/1.1\r\nHost: x\r\n\r\n", "GET a/b|c d| q=& + h=- ", 200},
        {"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", "the request was not answered\n", 500},
        {"GET /badstatus HTTP/1.1\r\nHost: x\r\n\r\n", "the request was not answered\n", 500},
        {"GET /badstream HTTP/1.1\r\nHost: x\r\n\r\n", "the request was not answered\n", 500},
        {"GET /twice HTTP/1.1\r\nHost: x\r\n\r\n", "GET twice| q=- h=- ", 200},
    };
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    /* each on a connection of its own, then all on one that is kept */
    _cleanup_(client_freep) struct client *kept = client_new(t->port);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(table); i++) {
        size_t k = i % ARRAY_SIZE(table);
        struct client *own = i == k ? client_new(t->port) : NULL;
        struct client *c = own ? own : kept;
        _cleanup_(reply_done) struct reply r = {0};
        client_send(c, table[k].request);
        client_reply(c, &r);
        assert_int_equal(r.status, table[k].status);
        assert_string_equal(str_get(&r.body), table[k].body);
        if (own)
            client_free(own);
    }
    site_stop(t);
    assert_int_equal(get(t, &t->handled), 2 * ARRAY_SIZE(table));
    /* all echoes, and the second answer of "twice" */
    assert_int_equal(get(t, &t->freed), 2 * (ARRAY_SIZE(table) - 4 + 1));
}

static void test_refused_targets(void **state)
{
    (void)state;
    static const char *const table[] = {"/a%00b", "/%zz", "/%ff", "/?q=%0", "frob", "/a?%00=1"};
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(client_freep) struct client *c = client_new(t->port);
        _cleanup_(reply_done) struct reply r = {0};
        client_get(c, table[i]);
        client_reply(c, &r);
        assert_int_equal(r.status, 400);
        assert_true(client_closed(c));
    }
    site_stop(t);
    assert_int_equal(get(t, &t->handled), 0);
}

static void test_head_and_headers(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(client_freep) struct client *c = client_new(t->port);
    _cleanup_(reply_done) struct reply r = {0};
    client_send(c, "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
    client_head(c, &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.length, strlen("HEAD a| q=- h=- "));
    /* no body came: the next reply follows */
    client_get(c, "/headers");
    client_reply(c, &r);
    assert_string_equal(str_get(&r.body), "GET headers| q=- h=- ");
    assert_non_null(strstr(r.headers, "X-One: first\n"));
    assert_non_null(strstr(r.headers, "Content-Type: text/plain\n"));
    assert_null(strstr(r.headers, "Evil"));
    assert_null(strstr(r.headers, "Bad"));

    /* a stream that only its headers are wanted of is over at once */
    client_send(c, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    client_head(c, &r);
    assert_int_equal(r.status, 200);
    wait_for(t, &t->done, 1);
    client_get(c, "/a");
    client_reply(c, &r);
    assert_string_equal(str_get(&r.body), "GET a| q=- h=- ");
    feed_free(t->feed);
}

static void test_pipeline(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(client_freep) struct client *c = client_new(t->port);
    _cleanup_(str_done) struct str all = {0};
    for (unsigned i = 0; i < PIPELINED; i++)
        str_appendf(&all, "POST /%u HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", i);
    client_send(c, all.p);
    for (unsigned i = 0; i < PIPELINED; i++) {
        _cleanup_(reply_done) struct reply r = {0};
        char expected[64];
        snprintf(expected, sizeof(expected), "POST %u| q=- h=- abc", i);
        client_reply(c, &r);
        assert_string_equal(str_get(&r.body), expected);
    }
}

static void test_body_limit(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t sent;
        bool chunked;
        unsigned status; /* 0: closed without an answer */
    } table[] = {
        {"Content-Length: 10000\r\n", 10000, false, 200},
        {"Content-Length: 10001\r\n", 10001, false, 413},
        {"Content-Length: 19999\r\n", 19999, false, 413},
        {"Content-Length: 20000\r\n", 0, false, 413}, /* before a byte of it was sent */
        {"Content-Length: 99999999999999\r\n", 0, false, 413},
        {"Content-Length: 10001\r\nExpect: 100-continue\r\n", 0, false, 413},
        {"Transfer-Encoding: chunked\r\n", 10000, true, 200},
        {"Transfer-Encoding: chunked\r\n", 10001, true, 413},
        {"Transfer-Encoding: chunked\r\n", 1000000, true, 0},
    };
    _cleanup_(site_freep) struct site *t =
        site_new(&(struct http_server_options){.threads = 1, .body_bytes = BODY_LIMIT});
    _cleanup_free_ char *body = mem_alloc(1000000);
    memset(body, 'x', 1000000);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(client_freep) struct client *c = client_new(t->port);
        _cleanup_(reply_done) struct reply r = {0};
        client_sendf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n", table[i].header);
        if (table[i].chunked)
            client_sendf(c, "%zx\r\n", table[i].sent);
        bool sent = client_try_send(c, body, table[i].sent) &&
                    (!table[i].chunked || client_try_send(c, "\r\n0\r\n\r\n", 7));
        if (table[i].status == 0) {
            assert_true(client_closed(c));
            continue;
        }
        assert_true(sent);
        client_reply(c, &r);
        assert_int_equal(r.status, table[i].status);
        if (r.status == 200)
            assert_int_equal(r.body.len, strlen("POST  q=- h=- ") + table[i].sent);
    }
    site_stop(t);
    assert_int_equal(get(t, &t->handled), 2);
}

static void test_header_limit(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t =
        site_new(&(struct http_server_options){.threads = 1, .header_bytes = 4096});
    static const char *const table[] = {"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ", "GET /"};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(client_freep) struct client *c = client_new(t->port);
        _cleanup_(reply_done) struct reply r = {0};
        char xs[4097];
        memset(xs, 'x', sizeof(xs) - 1);
        xs[sizeof(xs) - 1] = '\0';
        client_send(c, table[i]);
        client_send(c, xs);
        client_reply(c, &r);
        assert_int_equal(r.status, i ? 414 : 431);
        assert_true(client_closed(c));
    }
    assert_int_equal(get(t, &t->handled), 0);
}

static void test_connection_limits(void **state)
{
    (void)state;
    _cleanup_(reply_done) struct reply r = {0};
    {
        /* beyond the limit one waits until another leaves */
        _cleanup_(site_freep) struct site *t =
            site_new(&(struct http_server_options){.threads = 1, .connections = 2});
        struct client *c[3];
        for (size_t i = 0; i < 3; i++) {
            c[i] = client_new(t->port);
            client_get(c[i], "/a");
            if (i < 2)
                client_reply(c[i], &r);
        }
        client_get(c[0], "/a");
        client_reply(c[0], &r);
        assert_false(client_readable(c[2]));
        assert_int_equal(get(t, &t->handled), 3);
        client_free(c[0]);
        client_reply(c[2], &r);
        assert_int_equal(r.status, 200);
        client_free(c[1]);
        client_free(c[2]);
    }
    {
        _cleanup_(site_freep) struct site *t = site_new(&(struct http_server_options){
            .threads = 2, .connections = 100, .connections_per_ip = 2});
        _cleanup_(client_freep) struct client *a = client_new(t->port);
        client_get(a, "/a");
        client_reply(a, &r);
        _cleanup_(client_freep) struct client *b = client_new(t->port);
        client_get(b, "/a");
        client_reply(b, &r);
        _cleanup_(client_freep) struct client *c = client_new(t->port);
        assert_true(client_closed(c));
        client_get(a, "/a");
        client_reply(a, &r);
        assert_int_equal(r.status, 200);
    }
}

static void test_slow_client(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(&(struct http_server_options){.threads = 1});
    _cleanup_(client_freep) struct client *slow = client_new(t->port);
    _cleanup_(client_freep) struct client *deaf = client_new(t->port);
    _cleanup_(client_freep) struct client *other = client_new(t->port);
    _cleanup_(reply_done) struct reply r = {0};
    client_get(deaf, "/stream?endless"); /* and never reads */
    wait_for(t, &t->opened, 1);
    static const char request[] = "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    for (const char *p = request; *p; p++) {
        client_try_send(slow, p, 1);
        client_get(other, "/a");
        client_reply(other, &r);
        assert_int_equal(r.status, 200);
    }
    client_reply(slow, &r);
    assert_string_equal(str_get(&r.body), "POST slow| q=- h=- abc");
    client_free(TAKE_PTR(deaf));
    wait_for(t, &t->done, 1);
    feed_free(t->feed);
}

static void *stop(void *context)
{
    site_stop(context);
    return NULL;
}

static void test_stop_waits_for_handlers(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(client_freep) struct client *c = client_new(t->port);
    t->hold = true; /* before any request */
    client_get(c, "/hold");
    wait_for(t, &t->handled, 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop, t), 0);
    pthread_mutex_lock(&t->lock);
    t->hold = false;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    _cleanup_(reply_done) struct reply r = {0};
    client_reply(c, &r);
    assert_string_equal(str_get(&r.body), "GET hold| q=- h=- ");
    pthread_join(thread, NULL);
    assert_true(client_closed(c));
    assert_int_equal(get(t, &t->freed), 1);
}

static void test_start_failures(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    const struct {
        struct http_server_options o;
        enum err_code code;
    } table[] = {
        {{.address = "localhost"}, ERR_INVALID_ARGUMENT},
        {{.address = ""}, ERR_INVALID_ARGUMENT},
        {{.address = "1.2.3.4.5"}, ERR_INVALID_ARGUMENT},
        {{.address = "0.0.0.0"}, ERR_INVALID_ARGUMENT}, /* plain HTTP for others */
        {{.address = "::"}, ERR_INVALID_ARGUMENT},
        {{.address = "::ffff:10.0.0.1"}, ERR_INVALID_ARGUMENT},
        {{.tls = &(struct http_tls_options){"no chain", "no key", NULL}}, ERR_INVALID_ARGUMENT},
        {{.threads = 1000}, ERR_INVALID_ARGUMENT},
        {{.threads = 4, .connections = 3}, ERR_INVALID_ARGUMENT},
        {{.header_bytes = 100}, ERR_INVALID_ARGUMENT},
        {{.port = t->port}, ERR_OK}, /* in use: the code follows from errno */
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct http_server *s = NULL;
        struct err e = {0};
        struct http_server_options o = table[i].o;
        o.handle = handle;
        assert_int_equal(http_server_start(&o, &s, &e), -1);
        assert_null(s);
        assert_true(e.msg[0]);
        if (table[i].code)
            assert_int_equal(e.code, table[i].code);
    }
    http_server_stop(NULL);
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const table[] = {"127.0.0.1", "::ffff:127.0.0.1"};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
            close(fd);
        else if (strchr(table[i], ':'))
            continue; /* a machine without IPv6 */
        _cleanup_(site_freep) struct site *t =
            site_new(&(struct http_server_options){.address = table[i], .threads = 1});
        _cleanup_(client_freep) struct client *c = client_new(t->port);
        _cleanup_(reply_done) struct reply r = {0};
        client_get(c, "/a");
        client_reply(c, &r);
        assert_int_equal(r.status, 200);
    }
}

/* A byte now and then is no request: the connection goes. */
static void test_request_that_never_ends(void **state)
{
    (void)state;
    struct http_server_options limits = {.threads = 1, .idle_seconds = 1};
    _cleanup_(site_freep) struct site *t = site_new(&limits);
    _cleanup_(client_freep) struct client *slow = client_new(t->port);
    _cleanup_(client_freep) struct client *other = client_new(t->port);
    _cleanup_(reply_done) struct reply r = {0};
    client_send(slow, "GET /a HTTP/1.1\r\nHost: x\r\nX: ");
    unsigned sent = 0;
    for (; !client_readable(slow) && client_try_send(slow, "x", 1); sent++) {
        struct timespec pause = {0, 20 * 1000 * 1000}; /* that is how such a client is */
        nanosleep(&pause, NULL);
        if (sent % 10 == 0) { /* one that does send requests stays */
            client_get(other, "/a");
            client_reply(other, &r);
            assert_int_equal(r.status, 200);
        }
        assert_true(sent < 1000);
    }
    assert_true(sent > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_refused_targets),
        cmocka_unit_test(test_head_and_headers),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_body_limit),
        cmocka_unit_test(test_header_limit),
        cmocka_unit_test(test_connection_limits),
        cmocka_unit_test(test_slow_client),
        cmocka_unit_test(test_request_that_never_ends),
        cmocka_unit_test(test_stop_waits_for_handlers),
        cmocka_unit_test(test_start_failures),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

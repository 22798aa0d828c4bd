#include "base/clock.h"
#include "http/client.h"
#include "http/site.h"

enum { MILLISECOND = 1000000 };

static struct http_client *plain(void)
{
    struct err e = {0};
    struct http_client *c = http_client_new(&(struct http_client_options){0}, &e);
    assert_non_null(c);
    return c;
}

static const char *url(const struct site *t, const char *path)
{
    static char text[256];
    snprintf(text, sizeof(text), "http://127.0.0.1:%u%s", t->port, path);
    return text;
}

static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *header, *sent, *body;
        unsigned status;
    } table[] = {
        {NULL, "/a/b?q=1", NULL, NULL, "GET a|b| q=1 h=- ", 200},
        {"POST", "/a", "X-Test: y", "hello", "POST a| q=- h=y hello", 200},
        {"PUT", "/a", NULL, "", "PUT a| q=- h=- ", 200},
        {"DELETE", "/a", NULL, NULL, "DELETE a| q=- h=- ", 200},
        {"DELETE", "/a", NULL, "{}", "DELETE a| q=- h=- {}", 200},
        {"PATCH", "/teapot", NULL, "x", "PATCH teapot| q=- h=- x", 418},
        {"HEAD", "/a", NULL, NULL, "", 200},
        {"GET", "/empty", NULL, NULL, "", 200},
        {"GET", "/none", NULL, NULL, "the request was not answered\n", 500},
    };
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct http_response r = {0};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        struct http_exchange x = {.method = table[i].method,
                                  .url = url(t, table[i].path),
                                  .headers = (const char *const[]){table[i].header, NULL},
                                  .body = table[i].sent,
                                  .body_size = table[i].sent ? strlen(table[i].sent) : 0,
                                  .timeout_ns = 30 * CLOCK_SECOND};
        assert_int_equal(http_client_send(c, &x, &r, &e), 0);
        assert_int_equal(r.status, table[i].status);
        assert_string_equal(str_get(&r.body), table[i].body);
    }
    http_response_done(&r);
}

static void test_failures(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    uint16_t port = t->port;
    _cleanup_(http_client_freep) struct http_client *c = plain();
    char refused[64];
    site_stop(t);
    snprintf(refused, sizeof(refused), "http://127.0.0.1:%u/", port);
    const struct {
        const char *url, *header;
        enum err_code code;
    } table[] = {
        {refused, NULL, ERR_UNAVAILABLE},
        {"ftp://127.0.0.1/", NULL, ERR_INVALID_ARGUMENT},
        {"file:///etc/passwd", NULL, ERR_INVALID_ARGUMENT},
        {"http://", NULL, ERR_INVALID_ARGUMENT},
        {"", NULL, ERR_INVALID_ARGUMENT},
        {"http://no-such-host.invalid/", NULL, ERR_UNAVAILABLE},
        {refused, "X-Evil: a\r\nY: b", ERR_INVALID_ARGUMENT},
        {refused, "nothing", ERR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        struct http_response r = {0};
        struct http_exchange x = {.url = table[i].url,
                                  .headers = (const char *const[]){table[i].header, NULL},
                                  .timeout_ns = 30 * CLOCK_SECOND};
        assert_int_equal(http_client_send(c, &x, &r, &e), -1);
        assert_string_equal(err_code_name(e.code), err_code_name(table[i].code));
        http_response_done(&r);
    }
}

static void test_limit(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct http_response r = {0};
    struct err e = {0};
    struct http_exchange x = {.url = url(t, "/static"), .limit = 6};
    assert_int_equal(http_client_send(c, &x, &r, &e), 0);
    assert_string_equal(str_get(&r.body), "static");
    assert_string_equal(r.content_type, "text/plain");
    x.limit = 5;
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    /* the client is as good as before */
    x.limit = 0;
    assert_int_equal(http_client_send(c, &x, &r, &e), 0);
    http_response_done(&r);
}

static void test_deadline(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct http_response r = {0};
    struct err e = {0};
    t->hold = true;
    int64_t start = clock_mono_ns(clock_system());
    struct http_exchange x = {.url = url(t, "/hold"), .timeout_ns = 50 * MILLISECOND};
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    assert_true(clock_mono_ns(clock_system()) - start >= 50 * MILLISECOND);
    pthread_mutex_lock(&t->lock);
    t->hold = false;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    http_response_done(&r);
}

struct lines {
    struct site *site;
    struct str text;
    unsigned stop_after; /* lines; then an error */
    unsigned seen;
};

static int take_lines(void *context, const char *bytes, size_t n, struct err *e)
{
    struct lines *l = context;
    str_append_n(&l->text, bytes, n);
    for (size_t i = 0; i < n; i++)
        l->seen += bytes[i] == '\n';
    if (l->stop_after && l->seen >= l->stop_after)
        return err_set(e, ERR_ABORTED, "Enough", "enough");
    if (l->seen == 3)
        feed_finish(l->site->feed);
    return 0;
}

static void *make_three(void *context)
{
    struct site *t = context;
    wait_for(t, &t->opened, 1);
    for (int i = 0; i < 3; i++)
        feed_make(t->feed, 1);
    return NULL;
}

static void test_stream(void **state)
{
    (void)state;
    for (unsigned stop = 0; stop < 2; stop++) {
        _cleanup_(site_freep) struct site *t = site_new(NULL);
        _cleanup_(http_client_freep) struct http_client *c = plain();
        struct lines lines = {.site = t, .stop_after = stop};
        struct http_response r = {0};
        struct err e = {0};
        pthread_t maker;
        assert_int_equal(pthread_create(&maker, NULL, make_three, t), 0);
        struct http_exchange x = {
            .url = url(t, "/stream"), .receive = take_lines, .context = &lines};
        int status = http_client_send(c, &x, &r, &e);
        pthread_join(maker, NULL);
        assert_int_equal(status, stop ? -1 : 0);
        if (stop)
            assert_int_equal(e.code, ERR_ABORTED);
        else
            assert_string_equal(lines.text.p, "0\n1\n2\n");
        assert_int_equal(r.body.len, 0);
        wait_for(t, &t->done, 1);
        str_done(&lines.text);
        http_response_done(&r);
        feed_free(t->feed);
    }
}

static void test_idle(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct lines lines = {.site = t};
    struct http_response r = {0};
    struct err e = {0};
    struct http_exchange x = {.url = url(t, "/stream"),
                              .idle_ns = 50 * MILLISECOND,
                              .receive = take_lines,
                              .context = &lines};
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    wait_for(t, &t->done, 1);
    http_response_done(&r);
    feed_free(t->feed);
}

struct canceller {
    struct site *site;
    struct http_cancel *cancel;
};

static void *fire(void *context)
{
    struct canceller *f = context;
    wait_for(f->site, &f->site->opened, 1);
    http_cancel_fire(f->cancel);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    _cleanup_(http_cancel_freep) struct http_cancel *cancel = http_cancel_new();
    struct lines lines = {.site = t};
    struct http_response r = {0};
    struct err e = {0};
    struct canceller f = {t, cancel};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fire, &f), 0);
    struct http_exchange x = {
        .url = url(t, "/stream"), .receive = take_lines, .context = &lines, .cancel = cancel};
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    pthread_join(thread, NULL);
    /* and whoever comes later with it */
    x.url = url(t, "/a");
    assert_int_equal(http_client_send(c, &x, &r, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    wait_for(t, &t->done, 1);
    http_response_done(&r);
    feed_free(t->feed);
}

/* A name that no DNS knows, at an address of our choice; the environment's proxy is not asked. */
static void test_address_and_proxy(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct http_response r = {0};
    struct err e = {0};
    struct http_exchange x = {
        .url = "http://hook.default.svc:443/a", .address = "127.0.0.1", .port = t->port};
    assert_int_equal(http_client_send(c, &x, &r, &e), 0);
    assert_string_equal(str_get(&r.body), "GET a| q=- h=- ");
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    http_response_done(&r);
}

enum { THREADS = 6, EACH = 50 };

struct many {
    struct http_client *client;
    const char *url;
    unsigned good;
};

static void *send_many(void *context)
{
    struct many *m = context;
    struct http_response r = {0};
    for (int i = 0; i < EACH; i++) {
        struct http_exchange x = {.url = m->url, .timeout_ns = 60 * CLOCK_SECOND};
        m->good += http_client_send(m->client, &x, &r, NULL) == 0 && r.status == 200;
    }
    http_response_done(&r);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(http_client_freep) struct http_client *c = plain();
    struct many many[THREADS];
    pthread_t threads[THREADS];
    const char *where = url(t, "/a");
    for (int i = 0; i < THREADS; i++) {
        many[i] = (struct many){c, where, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &many[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(many[i].good, EACH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_limit),    cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_idle),
        cmocka_unit_test(test_cancel),   cmocka_unit_test(test_address_and_proxy),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <pthread.h>
#include <time.h>

#include "base/fiber.h"
#include "http/raw_client.h"
#include "http/server.h"

enum { MANY = 40, FEW_THREADS = 3 };

/* Somebody at the gate. */
struct visitor {
    struct visitor *next;
    struct park park;
};

/* A server whose answers wait at a gate: on fibers, or deferred. */
struct place {
    struct http_server *server;
    bool fibers;
    struct visitor *visitors;
    uint16_t port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;                 /* the gate */
    unsigned waiting, handled; /* at the gate; behind it */
};

static void await(struct place *p, const unsigned *value, unsigned least)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLIENT_SECONDS;
    pthread_mutex_lock(&p->lock);
    int r = 0;
    while (*value < least && r == 0)
        r = pthread_cond_timedwait(&p->changed, &p->lock, &until);
    pthread_mutex_unlock(&p->lock);
    assert_int_equal(r, 0);
}

static void gate(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    p->waiting++;
    pthread_cond_broadcast(&p->changed);
    if (!p->open) {
        struct visitor v = {.next = p->visitors};
        park_init(&v.park);
        p->visitors = &v;
        pthread_mutex_unlock(&p->lock);
        park_wait(&v.park);
        pthread_mutex_lock(&p->lock);
    }
    p->handled++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void open_gate(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    p->open = true;
    while (p->visitors) {
        struct visitor *v = p->visitors;
        p->visitors = v->next;
        park_wake(&v->park);
    }
    pthread_mutex_unlock(&p->lock);
}

static ssize_t read_end(void *context, char *buf, size_t max)
{
    unsigned *left = context;
    if (*left == 0)
        return -1;
    memset(buf, 'z', max > 1 ? 1 : max);
    --*left;
    return 1;
}

static void end_done(void *context)
{
    free(context);
}

static void deferred(void *context, struct http_request *r)
{
    static const struct http_stream_ops ops = {read_end, end_done};
    struct place *p = context;
    const char *what = r->segments[0];
    gate(p);
    if (str_eq(what, "none"))
        return;
    if (str_eq(what, "stream")) {
        unsigned *left = mem_zalloc(sizeof(*left));
        *left = 3;
        http_stream_unref(http_reply_stream(r, 200, "text/plain", &ops, left));
        return;
    }
    /* the request is as it was */
    const char *q = http_request_query(r, "q"), *h = http_request_header(r, "X-Test");
    http_reply_header(r, "X-Reply", "yes");
    char *text = mem_printf("%s %s %s %.*s", r->method, q ? q : "-", h ? h : "-", (int)r->body_size,
                            r->body);
    http_reply(r, 200, "text/plain", text, strlen(text), free, text);
}

static void handle(void *context, struct http_request *r)
{
    if (str_eq(r->segments[0], "now"))
        http_reply(r, 200, "text/plain", "now", 3, NULL, NULL);
    else if (((struct place *)context)->fibers)
        http_call(r, deferred, context);
    else
        http_defer(r, deferred, context);
}

static bool fibers; /* of the places that the tests make */

static struct place *place_new(unsigned deferred_threads)
{
    struct place *p = NEW(struct place);
    p->fibers = fibers;
    struct err e = {0};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    struct http_server_options o = {
        .threads = 1, .deferred_threads = deferred_threads, .handle = handle, .context = p};
    if (http_server_start(&o, &p->server, &e) < 0)
        fail_msg("%s", e.msg);
    p->port = http_server_port(p->server);
    return p;
}

static void place_free(struct place *p)
{
    http_server_stop(p->server);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

DEFINE_CLEANUP(struct place *, place_free)

static void assert_reply(struct client *c, unsigned status, const char *body)
{
    _cleanup_(reply_done) struct reply r = {0};
    client_reply(c, &r);
    assert_int_equal(r.status, status);
    assert_string_equal(str_get(&r.body), body);
}

static void test_request_stays(void **state)
{
    (void)state;
    _cleanup_(place_freep) struct place *p = place_new(0);
    _cleanup_(client_freep) struct client *c = client_new(p->port);
    for (unsigned i = 0; i < 3; i++) { /* keep-alive goes on */
        client_send(c, "POST /x?q=a%20b HTTP/1.1\r\nHost: x\r\nX-Test: t\r\n"
                       "Content-Length: 5\r\n\r\nhello");
        await(p, &p->waiting, i + 1);
        if (i == 0)
            assert_false(client_readable(c));
        open_gate(p);
        _cleanup_(reply_done) struct reply r = {0};
        client_reply(c, &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(str_get(&r.body), "POST a b t hello");
        assert_non_null(strstr(r.headers, "X-Reply: yes\n"));
    }
    client_get(c, "/none");
    assert_reply(c, 500, "the request was not answered\n");
    client_get(c, "/stream");
    assert_reply(c, 200, "zzz");
    client_send(c, "HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
    struct reply head = {0};
    client_head(c, &head);
    assert_int_equal(head.status, 200);
    client_get(c, "/now");
    assert_reply(c, 200, "now");
}

/* One thread serves all connections; what is deferred blocks neither it nor each other. */
static void test_nobody_is_held_up(void **state)
{
    (void)state;
    _cleanup_(place_freep) struct place *p = place_new(MANY);
    struct client *blocked[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        blocked[i] = client_new(p->port);
        client_get(blocked[i], "/x");
    }
    await(p, &p->waiting, MANY); /* all at once */
    _cleanup_(client_freep) struct client *c = client_new(p->port);
    client_get(c, "/now");
    assert_reply(c, 200, "now");
    open_gate(p);
    for (unsigned i = 0; i < MANY; i++) {
        assert_reply(blocked[i], 200, "GET - - ");
        client_free(blocked[i]);
    }
}

/* More than there are threads: they wait, and each gets its turn. */
static void test_more_than_threads(void **state)
{
    (void)state;
    _cleanup_(place_freep) struct place *p = place_new(FEW_THREADS);
    struct client *clients[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        clients[i] = client_new(p->port);
        client_get(clients[i], "/x");
    }
    await(p, &p->waiting, FEW_THREADS);
    _cleanup_(client_freep) struct client *c = client_new(p->port);
    client_get(c, "/now");
    assert_reply(c, 200, "now");
    assert_int_equal(p->waiting, FEW_THREADS);
    open_gate(p);
    for (unsigned i = 0; i < MANY; i++) {
        assert_reply(clients[i], 200, "GET - - ");
        client_free(clients[i]);
    }
    assert_int_equal(p->handled, MANY);
}

static void test_client_leaves(void **state)
{
    (void)state;
    _cleanup_(place_freep) struct place *p = place_new(0);
    for (unsigned i = 0; i < MANY; i++) {
        struct client *c = client_new(p->port);
        client_get(c, i % 2 ? "/x" : "/stream");
        await(p, &p->waiting, i + 1);
        struct linger reset = {.l_onoff = 1}; /* every other without a word of farewell */
        if (i % 4 > 1)
            setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_free(c);
    }
    open_gate(p);
    await(p, &p->handled, MANY);
    _cleanup_(client_freep) struct client *c = client_new(p->port);
    client_get(c, "/x");
    assert_reply(c, 200, "GET - - ");
}

static void *stop(void *context)
{
    struct place *p = context;
    http_server_stop(p->server);
    return NULL;
}

/* Stopping waits for what is deferred, and its answer still leaves. */
static void test_stop(void **state)
{
    (void)state;
    struct place *p = place_new(1);
    struct client *first = client_new(p->port), *second = client_new(p->port);
    client_get(first, "/x");
    client_get(second, "/x"); /* deferred, it has no thread yet */
    await(p, &p->waiting, fibers ? 2 : 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop, p), 0);
    assert_false(client_readable(first));
    open_gate(p);
    assert_reply(first, 200, "GET - - ");
    pthread_join(thread, NULL);
    client_free(first);
    client_free(second);
    p->server = NULL;
    place_free(p);
}

static int on_fibers(void **state)
{
    (void)state;
    fibers = true;
    return 0;
}

#define ON_FIBER(test)                                                                             \
    {                                                                                              \
#test " on a fiber", test, on_fibers, NULL, NULL                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_stays),
        cmocka_unit_test(test_nobody_is_held_up),
        cmocka_unit_test(test_more_than_threads),
        cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_stop),
        ON_FIBER(test_request_stays),
        ON_FIBER(test_nobody_is_held_up),
        ON_FIBER(test_client_leaves),
        ON_FIBER(test_stop),
    };
    return cmocka_run_group_tests_name("defer", tests, NULL, NULL);
}

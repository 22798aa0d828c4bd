#include "http/site.h"

enum { MANY = 1000, IDLE_STREAMS = 200, LEAVERS = 50 };

static void *make_some(void *context)
{
    struct feed *f = context;
    for (unsigned i = 0; i < MANY / 4; i++)
        feed_make(f, 1);
    return NULL;
}

/* What is received must be 0 to n - 1, each once, in order. */
static void check_numbers(const struct str *s, unsigned n)
{
    _cleanup_(str_done) struct str expected = {0};
    for (unsigned i = 0; i < n; i++)
        str_appendf(&expected, "%u\n", i);
    assert_string_equal(str_get(s), str_get(&expected));
}

static void test_stream_wakes(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(str_done) struct str got = {0};
    struct feed *f;
    /* the head is there before there is anything to read */
    _cleanup_(client_freep) struct client *c = stream_new(t, "/stream", &f);
    /* one at a time: a wake that is lost leaves both sides waiting */
    for (unsigned i = 0; i < MANY; i++) {
        feed_make(f, 1);
        assert_true(client_chunk(c, &got));
    }
    check_numbers(&got, MANY);
    /* four threads as fast as they can */
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_some, f), 0);
    while (!str_ends_with(str_get(&got), "\n1999\n"))
        assert_true(client_chunk(c, &got));
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    feed_finish(f);
    assert_false(client_chunk(c, &got));
    check_numbers(&got, 2 * MANY);
    wait_for(t, &t->done, 1);
    feed_free(f);

    /* the connection is good for another request */
    _cleanup_(reply_done) struct reply r = {0};
    client_get(c, "/a");
    client_reply(c, &r);
    assert_int_equal(r.status, 200);
}

/* The wake comes between a read that found nothing and the sleep that should follow. */
static void test_late_wakes(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    struct feed *f;
    struct client *c = stream_new(t, "/stream?late", &f);
    _cleanup_(str_done) struct str got = {0};
    for (unsigned i = 0; i < FEED_LATE; i++)
        assert_true(client_chunk(c, &got));
    check_numbers(&got, FEED_LATE);
    client_free(c);
    wait_for(t, &t->done, 1);
    feed_free(f);
}

static void test_stream_of_http_1_0(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    _cleanup_(client_freep) struct client *c = client_new(t->port);
    struct reply r = {0};
    client_send(c, "GET /stream HTTP/1.0\r\n\r\n");
    client_head(c, &r);
    assert_false(r.chunked);
    wait_for(t, &t->opened, 1);
    _cleanup_(feed_freep) struct feed *f = t->feed;
    feed_make(f, 2);
    for (const char *p = "0\n1\n"; *p; p++)
        assert_int_equal(client_byte(c), *p);
    feed_finish(f);
    assert_true(client_closed(c));
}

static void test_idle_streams_and_stop(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    struct client *c[IDLE_STREAMS];
    struct feed *f[IDLE_STREAMS];
    for (size_t i = 0; i < IDLE_STREAMS; i++)
        c[i] = stream_new(t, "/stream", &f[i]);
    /* those that sleep do not hinder others */
    _cleanup_(client_freep) struct client *other = client_new(t->port);
    _cleanup_(reply_done) struct reply r = {0};
    client_get(other, "/a");
    client_reply(other, &r);
    feed_make(f[7], 1);
    _cleanup_(str_done) struct str got = {0};
    assert_true(client_chunk(c[7], &got));
    assert_int_equal(get(t, &t->done), 0);

    site_stop(t);
    assert_int_equal(get(t, &t->done), IDLE_STREAMS);
    for (size_t i = 0; i < IDLE_STREAMS; i++) {
        /* an orderly end, not a cut */
        assert_false(client_chunk(c[i], &got));
        assert_true(client_closed(c[i]));
        client_free(c[i]);
        http_stream_wake(f[i]->stream); /* of a server that is no more */
        feed_free(f[i]);
    }
}

static void test_client_leaves(void **state)
{
    (void)state;
    enum { CLOSE, RESET, SHUTDOWN, WAYS };
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    unsigned done = 0;
    for (size_t i = 0; i < 2 * WAYS; i++) {
        /* asleep, and with its connection full */
        bool endless = i >= WAYS;
        struct feed *f;
        struct client *c = stream_new(t, endless ? "/stream?endless" : "/stream", &f);
        size_t way = i % WAYS;
        struct linger linger = {.l_onoff = 1};
        if (way == RESET)
            setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        if (way == SHUTDOWN && !endless) {
            shutdown(c->fd, SHUT_WR);
            wait_for(t, &t->done, ++done);
            client_free(c);
        } else {
            client_free(c);
            wait_for(t, &t->done, ++done);
        }
        http_stream_wake(f->stream);
        feed_free(f);
    }
    site_stop(t);
    assert_int_equal(get(t, &t->done), done);
}

static void *wake_until_over(void *context)
{
    struct feed *f = context;
    for (bool over = false; !over;) {
        feed_make(f, 1);
        pthread_mutex_lock(&f->site->lock);
        over = f->over;
        pthread_mutex_unlock(&f->site->lock);
    }
    http_stream_wake(f->stream);
    return NULL;
}

static void test_wakes_while_client_leaves(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(NULL);
    for (size_t i = 0; i < LEAVERS; i++) {
        pthread_t threads[2];
        struct feed *f;
        struct client *c = stream_new(t, "/stream", &f);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, wake_until_over, f), 0);
        _cleanup_(str_done) struct str got = {0};
        assert_true(client_chunk(c, &got));
        if (i == LEAVERS - 1)
            site_stop(t); /* and while the server leaves */
        client_free(c);
        for (size_t k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
        feed_free(f);
    }
    assert_int_equal(get(t, &t->done), LEAVERS);
}

/* Returns when the server, of one thread, can send no more to a client that does not read. */
static void fill_connection(struct site *t, const struct feed *f)
{
    _cleanup_(client_freep) struct client *other = client_new(t->port);
    _cleanup_(reply_done) struct reply r = {0};
    /* the thread serves all that is ready in turn: who got nothing in five rounds was not ready */
    for (unsigned reads = 0, same = 0; same < 5;) {
        client_get(other, "/a");
        client_reply(other, &r);
        pthread_mutex_lock(&t->lock);
        same = reads == f->reads ? same + 1 : 0;
        reads = f->reads;
        pthread_mutex_unlock(&t->lock);
    }
}

static void test_stop_with_deaf_client(void **state)
{
    (void)state;
    _cleanup_(site_freep) struct site *t = site_new(&(struct http_server_options){.threads = 1});
    struct feed *f;
    struct client *c = stream_new(t, "/stream?endless", &f);
    fill_connection(t, f);
    /* half a request is no reason to wait either */
    _cleanup_(client_freep) struct client *half = client_new(t->port);
    client_send(half, "GET / HTT");
    site_stop(t);
    assert_int_equal(get(t, &t->done), 1);
    feed_free(f);
    client_free(c);
    assert_true(client_closed(half));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_wakes),
        cmocka_unit_test(test_late_wakes),
        cmocka_unit_test(test_stream_of_http_1_0),
        cmocka_unit_test(test_idle_streams_and_stop),
        cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_wakes_while_client_leaves),
        cmocka_unit_test(test_stop_with_deaf_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

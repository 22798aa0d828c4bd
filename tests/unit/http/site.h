/*
 * A server for tests: what it answers follows from the first segment of the path, and it counts what
 * happens to requests, answers and streams.
 */
#pragma once

#include <pthread.h>
#include <time.h>

#include "http/raw_client.h"
#include "http/server.h"

/* What the handler sees and what becomes of its answers. */
struct site {
    struct http_server *server;
    uint16_t port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned handled, freed, opened, done;
    bool hold;         /* requests of /hold wait while it is set */
    struct feed *feed; /* the last that was opened */
};

enum { FEED_LATE = 100 };

/* A stream of numbers, one a line. The test frees it. */
struct feed {
    struct site *site;
    struct http_stream *stream;
    unsigned made, sent; /* under the site's lock, like all that follows */
    unsigned reads;
    unsigned late; /* so many times a number is made when a read has just found none */
    bool finished, over, endless;
};

static inline void wait_for(struct site *t, const unsigned *value, unsigned least)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLIENT_SECONDS;
    pthread_mutex_lock(&t->lock);
    int r = 0;
    while (*value < least && r == 0)
        r = pthread_cond_timedwait(&t->changed, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(r, 0);
}

static inline void count(struct site *t, unsigned *value)
{
    pthread_mutex_lock(&t->lock);
    ++*value;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static inline unsigned get(struct site *t, const unsigned *value)
{
    pthread_mutex_lock(&t->lock);
    unsigned n = *value;
    pthread_mutex_unlock(&t->lock);
    return n;
}

static inline ssize_t feed_read(void *context, char *buf, size_t max)
{
    struct feed *f = context;
    ssize_t n = 0;
    pthread_mutex_lock(&f->site->lock);
    assert_false(f->over);
    f->reads++;
    if (f->endless) {
        memset(buf, 'x', max);
        n = (ssize_t)max;
    }
    while (!f->endless && f->sent < f->made && max - (size_t)n > 16)
        n += snprintf(buf + n, max - (size_t)n, "%u\n", f->sent++);
    if (n == 0 && f->finished)
        n = -1;
    bool late = n == 0 && f->late > 0;
    f->late -= late;
    f->made += late;
    pthread_mutex_unlock(&f->site->lock);
    if (late)
        http_stream_wake(f->stream);
    return n;
}

static inline void feed_done(void *context)
{
    struct feed *f = context;
    pthread_mutex_lock(&f->site->lock);
    assert_false(f->over);
    f->over = true;
    f->site->done++;
    pthread_cond_broadcast(&f->site->changed);
    pthread_mutex_unlock(&f->site->lock);
}

static const struct http_stream_ops feed_ops = {.read = feed_read, .done = feed_done};

static inline void feed_open(struct site *t, struct http_request *r)
{
    struct feed *f = NEW(struct feed);
    f->site = t;
    f->endless = http_request_query(r, "endless");
    f->late = http_request_query(r, "late") ? FEED_LATE : 0;
    f->stream = http_reply_stream(r, 200, "text/plain", &feed_ops, f);
    assert_int_equal(f->stream == NULL, str_eq(r->method, "HEAD"));
    pthread_mutex_lock(&t->lock);
    t->feed = f;
    t->opened++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static inline void feed_make(struct feed *f, unsigned n)
{
    pthread_mutex_lock(&f->site->lock);
    f->made += n;
    pthread_mutex_unlock(&f->site->lock);
    http_stream_wake(f->stream);
}

static inline void feed_finish(struct feed *f)
{
    pthread_mutex_lock(&f->site->lock);
    f->finished = true;
    pthread_mutex_unlock(&f->site->lock);
    http_stream_wake(f->stream);
}

static inline void feed_free(struct feed *f)
{
    http_stream_unref(f->stream);
    free(f);
}

DEFINE_CLEANUP(struct feed *, feed_free)

struct answer {
    struct site *site;
    struct str text;
};

static inline void answer_free(void *context)
{
    struct answer *a = context;
    count(a->site, &a->site->freed);
    str_done(&a->text);
    free(a);
}

static inline void answer(struct site *t, struct http_request *r, unsigned status, struct str *text)
{
    struct answer *a = NEW(struct answer);
    a->site = t;
    a->text = *text;
    *text = (struct str){0};
    http_reply(r, status, "text/plain", a->text.p, a->text.len, answer_free, a);
}

/* "METHOD seg|seg| q=... h=... body" */
static inline void echo(struct site *t, struct http_request *r, unsigned status)
{
    _cleanup_(str_done) struct str s = {0};
    const char *q = http_request_query(r, "q"), *h = http_request_header(r, "x-test");
    str_appendf(&s, "%s ", r->method);
    for (size_t i = 0; i < r->n_segments; i++)
        str_appendf(&s, "%s|", r->segments[i]);
    str_appendf(&s, " q=%s h=%s ", q ? q : "-", h ? h : "-");
    str_append_n(&s, r->body, r->body_size);
    assert_int_equal(r->body[r->body_size], '\0');
    answer(t, r, status, &s);
}

/* "ADDRESS none", "ADDRESS invalid", "ADDRESS name organization organization" */
static inline void tell_peer(struct site *t, struct http_request *r)
{
    _cleanup_(str_done) struct str s = {0};
    char address[HTTP_PEER_MAX];
    struct http_certificate shown = http_request_certificate(r);
    str_append(&s, http_request_peer(r, address));
    if (shown.state == HTTP_CERTIFICATE_VALID) {
        assert_int_equal(strlen(shown.fingerprint), 64);
        str_appendf(&s, " %s", shown.common_name ? shown.common_name : "-");
        for (const char *const *o = shown.organizations; *o; o++)
            str_appendf(&s, " %s", *o);
    } else {
        str_append(&s, shown.state == HTTP_CERTIFICATE_NONE ? " none" : " invalid");
    }
    answer(t, r, 200, &s);
}

static inline void hold(struct site *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->hold)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static inline void handle(void *context, struct http_request *r)
{
    struct site *t = context;
    const char *what = r->n_segments ? r->segments[0] : "";
    count(t, &t->handled);
    if (str_eq(what, "none"))
        return;
    if (str_eq(what, "hold"))
        hold(t);
    if (str_eq(what, "stream")) {
        feed_open(t, r);
    } else if (str_eq(what, "peer")) {
        tell_peer(t, r);
    } else if (str_eq(what, "empty")) {
        http_reply(r, 200, NULL, NULL, 0, NULL, NULL);
    } else if (str_eq(what, "static")) {
        http_reply(r, 200, "text/plain", "static", 6, NULL, NULL);
    } else if (str_eq(what, "badstatus")) {
        echo(t, r, 99);
    } else if (str_eq(what, "badstream")) {
        struct feed f = {.site = t};
        assert_null(http_reply_stream(r, 1000, NULL, &feed_ops, &f));
        assert_true(f.over);
    } else if (str_eq(what, "headers")) {
        assert_true(http_reply_header(r, "X-One", "first"));
        assert_true(http_reply_header(r, "X-Two", ""));
        assert_false(http_reply_header(r, "X-Bad", "a\r\nX-Evil: 1"));
        assert_false(http_reply_header(r, "X Bad", "a"));
        assert_false(http_reply_header(r, "", "a"));
        echo(t, r, 200);
    } else {
        echo(t, r, str_eq(what, "teapot") ? 418 : 200);
    }
    if (str_eq(what, "twice")) {
        echo(t, r, 201);
        struct feed f = {.site = t};
        assert_null(http_reply_stream(r, 200, NULL, &feed_ops, &f));
        assert_true(f.over);
    }
}

static inline struct site *site_new(const struct http_server_options *limits)
{
    struct site *t = NEW(struct site);
    struct err e = {0};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    struct http_server_options o = limits ? *limits : (struct http_server_options){.threads = 2};
    o.handle = handle;
    o.context = t;
    if (http_server_start(&o, &t->server, &e) < 0)
        fail_msg("%s", e.msg);
    t->port = http_server_port(t->server);
    assert_true(t->port > 0);
    return t;
}

static inline void site_stop(struct site *t)
{
    http_server_stop(t->server);
    t->server = NULL;
}

static inline void site_free(struct site *t)
{
    site_stop(t);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

DEFINE_CLEANUP(struct site *, site_free)

/* A client whose stream has begun, and the stream's other end. */
static inline struct client *stream_new(struct site *t, const char *target, struct feed **ret_feed)
{
    unsigned opened = get(t, &t->opened);
    struct client *c = client_new(t->port);
    struct reply r = {0};
    client_get(c, target);
    client_head(c, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.chunked);
    wait_for(t, &t->opened, opened + 1);
    *ret_feed = t->feed;
    return c;
}

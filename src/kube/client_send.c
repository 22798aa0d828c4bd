/*
 * Attempts: what is tried again, when, and for how long. See client.h for the rules.
 */
#include <stdio.h>

#include "kube/backoff.h"
#include "kube/client_impl.h"

enum { AGAIN_MS = 100, AGAIN_MOST_MS = 5000, JITTER_MS = 100, MILLISECOND = 1000000 };

/* Who is asked, and with which headers; all that changes from attempt to attempt. */
struct attempt {
    char *url, *token, *content_type;
    const char *headers[4];
    struct http_exchange exchange;
};

static void attempt_done(struct attempt *a)
{
    if (a->token)
        explicit_bzero(a->token, strlen(a->token));
    free(a->token);
    free(a->url);
    free(a->content_type);
}

static void attempt_init(struct attempt *a, struct kube_client *c, struct kube_call *call,
                         const char *method, const char *path, const char *content_type)
{
    size_t n = 0;
    *a = (struct attempt){0};
    a->url = mem_printf("%s%s", c->server, path);
    a->token = kube_token_get(&c->token, clock_mono_ns(c->clock));
    a->headers[n++] = "Accept: application/json";
    if (a->token)
        a->headers[n++] = a->token;
    if (content_type)
        a->headers[n++] = a->content_type = mem_printf("Content-Type: %s", content_type);
    a->exchange = (struct http_exchange){.method = method,
                                         .url = a->url,
                                         .headers = a->headers,
                                         .address = c->address,
                                         .port = c->port,
                                         .cancel = call->cancel};
}

static void count(struct kube_client *c, const char *method, unsigned status)
{
    char code[16] = "<error>";
    if (!c->metrics)
        return;
    if (status)
        snprintf(code, sizeof(code), "%u", status);
    metrics_add(metrics_at(c->requests, METRICS_VALUES(code, method, c->host)), 1);
}

static bool is_good(unsigned status)
{
    return status >= 200 && status < 300;
}

/* One attempt; 0 with a 2xx, else *e. ret->status is 0 when there was no answer. */
static int attempt_send(struct attempt *a, struct kube_client *c, struct http_response *ret,
                        struct err *e)
{
    int64_t begin = clock_mono_ns(c->clock);
    int status = http_client_send(c->http, &a->exchange, ret, e);
    if (status < 0) {
        ret->status = 0;
        if (e->code == ERR_INTERNAL) /* what came is no HTTP: whoever answers is not the server */
            e->code = ERR_UNAVAILABLE;
    }
    count(c, a->exchange.method, ret->status);
    kube_warnings_log(&c->warnings, str_get(&ret->warnings), a->url);
    if (c->metrics && !a->exchange.receive)
        metrics_observe(metrics_at(c->durations, METRICS_VALUES(a->exchange.method, c->host)),
                        (double)(clock_mono_ns(c->clock) - begin) / CLOCK_SECOND);
    if (status == 0 && !is_good(ret->status))
        return kube_status_error(ret->status, str_get(&ret->body), ret->body.len, e);
    return status;
}

/* A token of the bucket, or -1 when there is none before the deadline. */
static int take_token(struct kube_client *c, struct kube_call *call, int64_t deadline,
                      struct err *e)
{
    int64_t now = clock_mono_ns(c->clock);
    pthread_mutex_lock(&c->lock);
    int64_t full = (c->full_ns > now ? c->full_ns : now) + c->interval_ns;
    int64_t wait = full - now - c->burst_ns;
    bool late = wait > 0 && now + wait >= deadline;
    if (!late)
        c->full_ns = full;
    pthread_mutex_unlock(&c->lock);
    if (late)
        return err_set(e, ERR_DEADLINE_EXCEEDED, "ClientRateLimited",
                       "too many requests of our own are waiting for the server");
    return kube_call_sleep(c, call, wait, e);
}

/* Whether the server certainly did nothing, or it does not matter. r->status 0: no answer, but why. */
static bool may_repeat(const struct kube_request *q, const struct http_response *r,
                       const struct err *why)
{
    static const char *const unsent[] = {"NoConnection",      "UnknownHost", "TooManyLookups",
                                         "ConnectionRefused", "Unreachable", NULL};
    bool reads = str_eq(q->method, "GET");
    if (r->status == 0)
        return why->code == ERR_UNAVAILABLE && (reads || str_in(why->reason, unsent));
    if (r->status == 429 || (r->status == 503 && r->retry_after))
        return true;
    return reads && r->status >= 500 && r->status != 501;
}

int kube_send(struct kube_client *c, struct kube_call *call, const struct kube_request *q,
              struct http_response *ret_response, struct err *e)
{
    struct err ignored;
    struct kube_backoff backoff = {(int64_t)AGAIN_MS * MILLISECOND,
                                   (int64_t)AGAIN_MOST_MS * MILLISECOND};
    int64_t deadline = clock_mono_ns(c->clock) + c->deadline_ns;
    bool renewed = false;
    _cleanup_(str_done) struct str body = {0};
    if (!e)
        e = &ignored;
    if (q->body)
        json_format(q->body, &body);
    for (;;) {
        if (take_token(c, call, deadline, e) < 0)
            return -1;
        _cleanup_(attempt_done) struct attempt a;
        attempt_init(&a, c, call, q->method, q->path, q->content_type);
        a.exchange.body = q->body ? str_get(&body) : NULL;
        a.exchange.body_size = body.len;
        a.exchange.limit = q->limit ? q->limit : JSON_MAX_BYTES;
        int64_t left = deadline - clock_mono_ns(c->clock);
        a.exchange.timeout_ns = left > 0 ? left : 1;
        if (attempt_send(&a, c, ret_response, e) == 0)
            return 0;
        kube_call_note(c, call, e);
        int64_t now = clock_mono_ns(c->clock), delay = 0;
        if (ret_response->status == 401 && !renewed &&
            kube_token_refused(&c->token, a.token, now)) {
            renewed = true;
        } else if (may_repeat(q, ret_response, e)) {
            delay = kube_backoff_next(&backoff);
            if (ret_response->retry_after)
                delay = ret_response->retry_after * CLOCK_SECOND +
                        (int64_t)kube_random(JITTER_MS) * MILLISECOND;
        } else {
            return -1;
        }
        if (now + delay >= deadline)
            return -1;
        if (kube_call_sleep(c, call, delay, e) < 0)
            return -1;
    }
}

json_t *kube_send_json(struct kube_client *c, const struct kube_request *q, struct err *e)
{
    struct http_response r = {0};
    struct err why;
    json_t *value = NULL;
    struct kube_call *call = kube_call_begin(c);
    if (kube_send(c, call, q, &r, e) == 0) {
        value = json_parse(str_get(&r.body), r.body.len, NULL, &why);
        if (!json_is_object(value)) {
            json_decref(value);
            value = NULL;
            err_set(e, ERR_UNAVAILABLE, "InvalidAnswer",
                    "the answer of %s to %s %s is no JSON object", c->server, q->method, q->path);
        }
    }
    kube_call_end(c, call);
    http_response_done(&r);
    return value;
}

int kube_stream(struct kube_client *c, struct kube_call *call, const struct kube_stream *s,
                struct kube_answer *ret_answer, struct err *e)
{
    struct http_response r = {0};
    _cleanup_(attempt_done) struct attempt a;
    attempt_init(&a, c, call, "GET", s->path, NULL);
    a.exchange.timeout_ns = s->timeout_ns;
    a.exchange.idle_ns = s->idle_ns;
    a.exchange.receive = s->receive;
    a.exchange.context = s->context;
    int status = attempt_send(&a, c, &r, e);
    *ret_answer = (struct kube_answer){r.status, r.retry_after};
    if (r.status == 401)
        kube_token_refused(&c->token, a.token, clock_mono_ns(c->clock));
    if (status < 0)
        kube_call_note(c, call, e);
    http_response_done(&r);
    return status;
}

/*
 * The server and its keeper: a thread that sees to certificates and configuration, starts the server
 * when it has a certificate for the first time, and tries again what fails. So a cluster that does not
 * let us write a Secret costs the webhook and nothing else of the program.
 */
#include <stdlib.h>

#include "admission/impl.h"
#include "admission/review.h"
#include "base/thread.h"
#include "kube/resource.h"

#define NAME "orlop-webhook"

enum {
    BODY_BYTES = 8 << 20, /* an object may be 1.5 MiB, and a review has two */
    CONNECTIONS = 256,
    IDLE_SECONDS = 60,
    DEFERRED = 16,
};

static const int64_t TICK_NS = 10 * CLOCK_SECOND, LOOKUP_NS = 4 * CLOCK_SECOND;

struct admission {
    struct admission_options o; /* its texts are owned */
    struct kube_client *client;
    struct api_lookup lookup;
    struct http_server *http; /* of the keeper alone */
    struct admission_certificates certificates;
    struct metrics_family *reviews;
    struct metrics_series *expiry;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;       /* with the lock */
    bool serves;     /* with the lock: and is configured */
    struct err last; /* with the lock: why not */
};

/* Requests. */

static void reply(struct http_request *r, unsigned status, const char *type, struct str *text)
{
    size_t size = text->len;
    char *bytes = str_take(text);
    http_reply(r, status, type, bytes, size, free, bytes);
}

static void reply_text(struct http_request *r, unsigned status, const char *message)
{
    struct str text = {0};
    str_appendf(&text, "%s\n", message);
    reply(r, status, "text/plain; charset=utf-8", &text);
}

static void validate(void *context, struct http_request *r)
{
    struct admission *a = context;
    const struct admission_judge judge = {
        .lookup = &a->lookup, .fulfil = admission_fulfil, .context = a->client};
    struct admission_verdict verdict = {0};
    struct err e = {0};
    json_auto_t *answer = admission_review(&judge, r->body, r->body_size, &verdict, &e);
    if (!answer) {
        bool theirs = e.code == ERR_INVALID_ARGUMENT;
        metrics_add(metrics_at(a->reviews, METRICS_VALUES("", "", theirs ? "bad" : "error")), 1);
        log_warn("a review was not answered", LOG_ERR(&e));
        json_clean_message(&e);
        reply_text(r, theirs ? 400 : 500, e.msg);
        return;
    }
    metrics_add(
        metrics_at(a->reviews, METRICS_VALUES(verdict.kind ? verdict.kind->kind : "other",
                                              verdict.operation, verdict.allowed ? "yes" : "no")),
        1);
    struct str text = {0};
    json_format(answer, &text);
    reply(r, 200, "application/json", &text);
}

/* What can be asked, and how; a mutating webhook would be another line. */
static const struct {
    const char *method, *path;
    void (*answer)(void *context, struct http_request *r);
} paths[] = {
    {"POST", "/validate", validate},
};

static void handle(void *context, struct http_request *r)
{
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (str_eq(paths[i].path, r->path) && str_eq(paths[i].method, r->method)) {
            http_defer(r, paths[i].answer, context);
            return;
        }
    }
    bool health = str_eq(r->path, "/healthz");
    reply_text(r, health ? 200 : 404, health ? "ok" : "ask with POST /validate");
}

/* The keeper. */

static int serve(struct admission *a, const struct admission_certificates *c, struct err *e)
{
    const struct http_tls_options tls = {.chain = str_get(&c->leaf.chain),
                                         .key = str_get(&c->leaf.key)};
    if (a->http && str_eq(str_get(&a->certificates.leaf.chain), str_get(&c->leaf.chain)))
        return 0;
    if (a->http)
        return http_server_set_tls(a->http, &tls, e);
    struct http_server_options o = {
        .address = a->o.address ? a->o.address : "::",
        .port = (uint16_t)a->o.port,
        .deferred_threads = DEFERRED,
        .body_bytes = BODY_BYTES,
        .connections = CONNECTIONS,
        .idle_seconds = IDLE_SECONDS,
        .tls = &tls,
        .handle = handle,
        .context = a,
    };
    int r = http_server_start(&o, &a->http, e);
    if (r < 0 && !a->o.address) { /* a machine without IPv6 */
        o.address = "0.0.0.0";
        r = http_server_start(&o, &a->http, e);
    }
    if (r < 0)
        return -1;
    log_info("serves the webhook", LOG_I("port", http_server_port(a->http)));
    return 0;
}

/* Serves with these certificates from now on; takes them over. */
static int serve_with(struct admission *a, struct admission_certificates *c, struct err *e)
{
    if (serve(a, c, e) < 0)
        return -1;
    admission_certificates_done(&a->certificates);
    a->certificates = *c;
    *c = (struct admission_certificates){0};
    return 0;
}

/* Certificates, then the server, and only then that others are told to ask it. */
static int tick(struct admission *a, struct err *e)
{
    _cleanup_(admission_certificates_done) struct admission_certificates now = {0};
    bool changed = false;
    if (admission_certificates_read(a->client, &a->o, &now, e) < 0 || serve_with(a, &now, e) < 0)
        return -1;
    metrics_set(a->expiry, a->certificates.expiry);
    if (admission_configure(a->client, &a->o, str_get(&a->certificates.bundle), &changed, e) < 0)
        return -1;
    if (changed)
        log_info("the webhook is configured", LOG_S("configuration", a->o.name));
    return 0;
}

static void *keep(void *context)
{
    struct admission *a = context;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        struct err e = {0};
        pthread_mutex_unlock(&a->lock);
        int r = tick(a, &e);
        if (r < 0)
            log_warn("the webhook is not as it should be; it is tried again", LOG_ERR(&e));
        pthread_mutex_lock(&a->lock);
        a->serves = r == 0;
        a->last = e;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (a->o.tick_ns ? a->o.tick_ns : TICK_NS) / CLOCK_SECOND;
        if (!a->stop)
            pthread_cond_timedwait(&a->changed, &a->lock, &until);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static int check(void *context, struct err *e)
{
    struct admission *a = context;
    pthread_mutex_lock(&a->lock);
    bool serves = a->serves;
    if (!serves)
        err_set(e, ERR_UNAVAILABLE, "NotServing", "%s",
                a->last.msg[0] ? a->last.msg : "it has not begun yet");
    pthread_mutex_unlock(&a->lock);
    return serves ? 0 : -1;
}

static void admission_free(struct admission *a)
{
    http_server_stop(a->http);
    if (a->client)
        kube_client_free(a->client);
    admission_certificates_done(&a->certificates);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    const char *const texts[] = {a->o.ns, a->o.name, a->o.service, a->o.url, a->o.address};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free((char *)texts[i]);
    free(a);
}

/* Nobody is told to ask any more before nobody answers. */
static void stop(void *context)
{
    struct admission *a = context;
    struct err e = {0};
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    if (a->o.remove_on_stop && admission_unconfigure(a->client, &a->o, &e) < 0)
        log_error("the webhook's configuration is left behind", LOG_S("configuration", a->o.name),
                  LOG_ERR(&e));
    admission_free(a);
}

static char *copy(const char *text, const char *fallback)
{
    return text || fallback ? mem_strdup(text ? text : fallback) : NULL;
}

static void copy_options(const struct admission_options *o, struct admission_options *ret)
{
    *ret = *o;
    ret->ns = copy(o->ns, "openebs");
    ret->name = copy(o->name, NAME);
    ret->service = copy(o->service, NAME);
    ret->url = copy(o->url, NULL);
    ret->address = copy(o->address, NULL);
}

int admission_start(struct kube_manager *m, const struct admission_options *o, struct err *e)
{
    struct admission *a = NEW(struct admission);
    struct metrics *metrics = kube_manager_metrics(m);
    pthread_condattr_t monotonic;
    copy_options(o, &a->o);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    a->reviews = metrics_counter(metrics, "orlop_webhook_reviews_total",
                                 "Requests for admission, and what was answered.",
                                 METRICS_LABELS("kind", "operation", "allowed"));
    a->expiry = metrics_at(metrics_gauge(metrics, "orlop_webhook_certificate_expiry_seconds",
                                         "When the server's certificate ends, in Unix time.", NULL),
                           NULL);
    const struct kube_client_options client = {.config = o->config,
                                               .field_manager = "orlop-webhook",
                                               .deadline_ns = LOOKUP_NS,
                                               .metrics = metrics};
    a->client = kube_client_new(&client, e);
    a->lookup = (struct api_lookup){admission_get, admission_list, a->client};
    if (!a->client || thread_start(&a->thread, "webhook", keep, a, e) < 0) {
        admission_free(a);
        return -1;
    }
    kube_manager_add_check(m, "webhook", check, a);
    kube_manager_on_stop(m, stop, a);
    return 0;
}

int admission_remove(struct kube_client *client, const struct admission_options *o, struct err *e)
{
    const struct kube_resource secrets = kube_resource("v1", "Secret");
    struct admission_options own = *o;
    own.name = o->name ? o->name : NAME;
    if (admission_unconfigure(client, &own, e) < 0)
        return -1;
    return kube_delete(client, &secrets, o->ns ? o->ns : "openebs", own.name, NULL, e);
}

#include "kube/client.h"

#include <assert.h>
#include <time.h>

#include "kube/client_impl.h"

enum { QPS = 100, BURST = 200, DEADLINE_SECONDS = 30, MANAGER_MAX = 128 };

static void init_lock(struct kube_client *c)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->woken, &attr);
    pthread_condattr_destroy(&attr);
    list_init(&c->calls);
    list_init(&c->spare);
}

static void init_metrics(struct kube_client *c, struct metrics *m)
{
    static const double seconds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
    c->metrics = m;
    if (!m)
        return;
    c->requests =
        metrics_counter(m, "rest_client_requests_total",
                        "Requests to the API, by status code (<error>: none), method and host.",
                        METRICS_LABELS("code", "method", "host"));
    c->durations = metrics_histogram(m, "rest_client_request_duration_seconds",
                                     "How long requests to the API took, watches left out.",
                                     METRICS_LABELS("verb", "host"), seconds, ARRAY_SIZE(seconds));
}

struct kube_client *kube_client_new(const struct kube_client_options *o, struct err *e)
{
    const struct kube_config *config = o->config;
    if (!*o->field_manager || strlen(o->field_manager) > MANAGER_MAX) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidFieldManager", "a field manager has 1 to %d bytes",
                MANAGER_MAX);
        return NULL;
    }
    _cleanup_free_ char *agent = mem_printf("%s/%s", o->field_manager, ORLOP_VERSION);
    struct http_client *http =
        http_client_new(&(struct http_client_options){.ca = config->ca,
                                                      .certificate = config->certificate,
                                                      .key = config->key,
                                                      .user_agent = agent},
                        e);
    if (!http)
        return NULL;
    struct kube_client *c = NEW(struct kube_client);
    c->http = http;
    c->server = mem_strdup(config->server);
    c->host = mem_strdup(strstr(config->server, "://") + 3);
    c->ns = mem_strdup(config->ns);
    c->manager = mem_strdup(o->field_manager);
    if (config->address) {
        c->address = mem_strdup(config->address);
        c->port = (uint16_t)strtoul(strrchr(config->server, ':') + 1, NULL, 10);
    }
    c->clock = o->clock ? o->clock : clock_system();
    c->deadline_ns = o->deadline_ns ? o->deadline_ns : DEADLINE_SECONDS * CLOCK_SECOND;
    c->interval_ns = CLOCK_SECOND / (o->qps ? o->qps : QPS);
    c->burst_ns = c->interval_ns * (o->burst ? o->burst : BURST);
    kube_token_init(&c->token, config, clock_mono_ns(c->clock));
    kube_warnings_init(&c->warnings);
    init_lock(c);
    init_metrics(c, o->metrics);
    return c;
}

static void call_free(struct kube_call *call)
{
    http_cancel_free(call->cancel);
    free(call);
}

void kube_client_free(struct kube_client *c)
{
    assert(list_empty(&c->calls));
    list_for_each_safe(&c->spare, call, struct kube_call, link)
        call_free(call);
    http_client_free(c->http);
    kube_token_done(&c->token);
    kube_warnings_done(&c->warnings);
    pthread_cond_destroy(&c->woken);
    pthread_mutex_destroy(&c->lock);
    char *const all[] = {c->server, c->address, c->ns, c->manager, c->host};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(all[i]);
    free(c);
}

const char *kube_client_namespace(const struct kube_client *c)
{
    return c->ns;
}

const char *kube_client_server(const struct kube_client *c)
{
    return c->server;
}

static void cancel(struct kube_call *call)
{
    call->cancelled = true;
    http_cancel_fire(call->cancel);
}

void kube_client_stop(struct kube_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopped = true;
    list_for_each(&c->calls, call, struct kube_call, link)
        cancel(call);
    pthread_cond_broadcast(&c->woken);
    pthread_mutex_unlock(&c->lock);
}

struct kube_call *kube_call_begin(struct kube_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct kube_call *call = list_first(&c->spare, struct kube_call, link);
    if (call) {
        list_unlink(&call->link);
    } else {
        call = NEW(struct kube_call);
        list_init(&call->link);
        call->cancel = http_cancel_new();
    }
    call->last.code = ERR_OK;
    if (c->stopped)
        cancel(call);
    list_push(&c->calls, &call->link);
    pthread_mutex_unlock(&c->lock);
    return call;
}

void kube_call_end(struct kube_client *c, struct kube_call *call)
{
    pthread_mutex_lock(&c->lock);
    list_unlink(&call->link);
    if (!call->cancelled) {
        list_push_front(&c->spare, &call->link);
        call = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    if (call)
        call_free(call); /* what was fired stays so */
}

void kube_call_cancel(struct kube_client *c, struct kube_call *call)
{
    pthread_mutex_lock(&c->lock);
    cancel(call);
    pthread_cond_broadcast(&c->woken);
    pthread_mutex_unlock(&c->lock);
}

bool kube_call_is_cancelled(struct kube_client *c, struct kube_call *call)
{
    pthread_mutex_lock(&c->lock);
    bool cancelled = call->cancelled;
    pthread_mutex_unlock(&c->lock);
    return cancelled;
}

int kube_call_sleep(struct kube_client *c, struct kube_call *call, int64_t ns, struct err *e)
{
    int64_t end = clock_mono_ns(clock_system()) + ns;
    struct timespec until = {.tv_sec = end / CLOCK_SECOND, .tv_nsec = end % CLOCK_SECOND};
    int r = 0;
    pthread_mutex_lock(&c->lock);
    while (!call->cancelled && ns > 0 && r == 0)
        r = pthread_cond_timedwait(&c->woken, &c->lock, &until);
    bool cancelled = call->cancelled;
    pthread_mutex_unlock(&c->lock);
    return cancelled ? err_set(e, ERR_CANCELLED, "Cancelled", "the client was stopped") : 0;
}

void kube_call_note(struct kube_client *c, struct kube_call *call, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    call->last = *e;
    pthread_mutex_unlock(&c->lock);
}

void kube_call_last(struct kube_client *c, struct kube_call *call, struct err *ret_e)
{
    pthread_mutex_lock(&c->lock);
    *ret_e = call->last;
    pthread_mutex_unlock(&c->lock);
}

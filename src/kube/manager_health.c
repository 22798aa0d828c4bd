/*
 * What a manager says of itself over HTTP, in the words of Kubernetes' own programs.
 */
#include <stdlib.h>

#include "base/str.h"
#include "kube/manager_impl.h"

enum { THREADS = 1, CONNECTIONS = 64, BODY_BYTES = 1024 };

static void reply(struct http_request *r, unsigned status, const char *type, struct str *text)
{
    http_reply_header(r, "X-Content-Type-Options", "nosniff");
    size_t size = text->len;
    char *bytes = str_take(text);
    http_reply(r, status, type, bytes, size, free, bytes);
}

static void reply_text(struct http_request *r, unsigned status, struct str *text)
{
    reply(r, status, "text/plain; charset=utf-8", text);
}

static bool is_excluded(const struct http_request *r, const char *name)
{
    const char *value;
    for (size_t i = 0; (value = http_request_query_at(r, "exclude", i)); i++) {
        if (str_eq(value, name))
            return true;
    }
    return false;
}

static void reply_one(const struct manager_check *check, struct http_request *r)
{
    struct err e = {0};
    struct str text = {0};
    bool good = check->run(check->context, &e) == 0;
    if (good)
        str_append(&text, "ok");
    else
        str_appendf(&text, "internal server error: %s\n", e.msg);
    reply_text(r, good ? 200 : 500, &text);
}

static void reply_not_found(struct http_request *r)
{
    struct str text = {0};
    str_append(&text, "404 page not found\n");
    reply_text(r, 404, &text);
}

static void reply_all(struct kube_manager *m, struct http_request *r, const char *endpoint,
                      bool alive)
{
    struct str text = {0};
    bool good = true;
    vec_for_each(&m->checks, check) {
        struct err e = {0};
        if (alive && !check->alive)
            continue;
        if (is_excluded(r, check->name)) {
            str_appendf(&text, "[+]%s excluded: ok\n", check->name);
        } else if (check->run(check->context, &e) == 0) {
            str_appendf(&text, "[+]%s ok\n", check->name);
        } else {
            str_appendf(&text, "[-]%s failed: %s\n", check->name, e.msg);
            good = false;
        }
    }
    if (good && !http_request_query(r, "verbose")) {
        str_clear(&text);
        str_append(&text, "ok");
    } else {
        str_appendf(&text, "%s check %s\n", endpoint, good ? "passed" : "failed");
    }
    reply_text(r, good ? 200 : 500, &text);
}

static void serve_health(struct kube_manager *m, struct http_request *r)
{
    const char *endpoint = r->segments[0];
    bool alive = !str_eq(endpoint, "readyz");
    if (r->n_segments == 1) {
        reply_all(m, r, endpoint, alive);
        return;
    }
    vec_for_each(&m->checks, check) {
        if (r->n_segments == 2 && str_eq(check->name, r->segments[1]) && (check->alive || !alive)) {
            reply_one(check, r);
            return;
        }
    }
    reply_not_found(r);
}

static void serve(void *context, struct http_request *r)
{
    struct kube_manager *m = context;
    static const char *const health[] = {"healthz", "livez", "readyz", NULL};
    struct str text = {0};
    if (!str_eq(r->method, "GET") && !str_eq(r->method, "HEAD")) {
        http_reply_header(r, "Allow", "GET, HEAD");
        str_append(&text, "405 method not allowed\n");
        reply_text(r, 405, &text);
    } else if (r->n_segments && str_in(r->segments[0], health)) {
        serve_health(m, r);
    } else if (r->n_segments == 1 && str_eq(r->segments[0], "metrics")) {
        metrics_format(m->metrics, &text);
        reply(r, 200, METRICS_CONTENT_TYPE, &text);
    } else {
        reply_not_found(r);
    }
}

int manager_health_start(struct kube_manager *m, struct err *e)
{
    if (m->health_port < 0)
        return 0;
    const struct http_server_options o = {
        .address = m->health_address,
        .port = (uint16_t)m->health_port,
        .threads = THREADS,
        .deferred_threads = THREADS,
        .body_bytes = BODY_BYTES,
        .connections = CONNECTIONS,
        .handle = serve,
        .context = m,
    };
    return http_server_start(&o, &m->health, e);
}

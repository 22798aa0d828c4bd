/*
 * How a webhook is reached and what it answers. Errors are worded like the original's, since people
 * search for these words.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/clock.h"
#include "k8s/apiserver/webhook_impl.h"

enum { RESPONSE_MAX = 4 << 20, SHOWN = 300 };

struct target {
    char *url;                      /* without the time-out */
    char address[INET6_ADDRSTRLEN]; /* "": as the URL says */
    uint16_t port;
};

static bool is_address(const char *text)
{
    struct in6_addr any;
    return text && (inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1);
}

static json_t *stored(struct apiserver_registry *g, const char *collection, const char *key)
{
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        apiserver_store_get(g->store, collection, key);
    return o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
}

/* The port of a service that has that number; NULL. Borrowed. */
static const json_t *service_port(const json_t *service, json_int_t number)
{
    size_t i;
    json_t *port;
    json_array_foreach(json_at(service, "spec", "ports"), i, port) {
        if (json_integer_value(json_object_get(port, "port")) == number)
            return port;
    }
    return NULL;
}

/* The port of a subset that a service's port leads to: that of the same name, or the only one. */
static json_int_t subset_port(const json_t *subset, const json_t *port)
{
    const char *name = json_str(port, "name");
    const json_t *ports = json_object_get(subset, "ports");
    size_t i;
    json_t *item;
    json_array_foreach(ports, i, item) {
        if (str_eq(json_text(item, "name"), name ? name : ""))
            return json_integer_value(json_object_get(item, "port"));
    }
    return json_array_size(ports) == 1
               ? json_integer_value(json_object_get(json_array_get(ports, 0), "port"))
               : 0;
}

/* A ready address behind the service. */
static bool endpoint(const json_t *endpoints, const json_t *port, struct target *t)
{
    size_t i;
    json_t *subset;
    json_array_foreach(json_object_get(endpoints, "subsets"), i, subset) {
        const char *ip = json_str(json_array_get(json_object_get(subset, "addresses"), 0), "ip");
        json_int_t number = subset_port(subset, port);
        if (!is_address(ip) || number < 1 || number > UINT16_MAX)
            continue;
        snprintf(t->address, sizeof(t->address), "%s", ip);
        t->port = (uint16_t)number;
        return true;
    }
    return false;
}

static int resolve_service(struct apiserver_registry *g, const json_t *reference, struct target *t,
                           struct err *e)
{
    const char *namespace = json_str(reference, "namespace"), *name = json_str(reference, "name");
    const char *path = json_str(reference, "path");
    json_int_t number = json_integer_value(json_object_get(reference, "port"));
    number = number ? number : 443;
    t->url = mem_printf("https://%s.%s.svc:%d%s", name, namespace, (int)number,
                        path && *path ? path : "/");
    _cleanup_free_ char *key = mem_printf("%s/%s", namespace, name);
    json_auto_t *service = stored(g, "/services", key);
    if (!service)
        return err_set(e, ERR_NOT_FOUND, "NotFound", "service \"%s\" not found", name);
    const json_t *port = service_port(service, number);
    if (!port)
        return err_set(e, ERR_NOT_FOUND, "NotFound", "service \"%s\" has no port %d", name,
                       (int)number);
    json_auto_t *endpoints = stored(g, "/endpoints", key);
    if (endpoint(endpoints, port, t))
        return 0;
    const char *own = json_str(json_object_get(service, "spec"), "clusterIP");
    if (!endpoints && is_address(own)) {
        snprintf(t->address, sizeof(t->address), "%s", own);
        t->port = (uint16_t)number;
        return 0;
    }
    return err_set(e, ERR_UNAVAILABLE, "NoEndpoints", "no endpoints available for service \"%s\"",
                   name);
}

static int resolve(const struct webhook *h, struct apiserver_registry *g, struct target *t,
                   struct err *e)
{
    const json_t *config = json_object_get(h->spec, "clientConfig");
    const char *url = json_str(config, "url");
    if (!url)
        return resolve_service(g, json_object_get(config, "service"), t, e);
    t->url = mem_strdup(url);
    return 0;
}

/* What a client library says of an HTTP status. */
static int status_failed(const struct http_response *r, struct err *e)
{
    static const struct {
        unsigned status;
        const char *text;
    } known[] = {
        {401, "the server has asked for the client to provide credentials"},
        {403, "forbidden"},
        {404, "the server could not find the requested resource"},
        {405, "the server does not allow this method on the requested resource"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504, "the server was unable to return a response in the time allotted, but may still be "
              "processing the request"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (known[i].status == r->status)
            return err_set(e, ERR_INTERNAL, "InternalError", "%s", known[i].text);
    }
    const char *body = str_get(&r->body);
    if (r->status >= 500 && *body)
        return err_set(
            e, ERR_INTERNAL, "InternalError",
            "an error on the server (\"%.*s\") has prevented the request from succeeding",
            (int)str_cut(body, SHOWN), body);
    return err_set(
        e, ERR_INTERNAL, "InternalError",
        "the server responded with the status code %u but did not return more information",
        r->status);
}

static int post(const struct webhook *h, const struct target *t, const json_t *review,
                int64_t timeout_ns, struct http_response *response, struct err *e)
{
    _cleanup_(str_done) struct str body = {0};
    json_format(review, &body);
    _cleanup_free_ char *url =
        mem_printf("%s%ctimeout=%llds", t->url, strchr(t->url, '?') ? '&' : '?',
                   (long long)(h->timeout_ns / CLOCK_SECOND));
    struct http_exchange x = {
        .method = "POST",
        .url = url,
        .headers = (const char *const[]){"Content-Type: application/json",
                                         "Accept: application/json, */*", NULL},
        .body = body.p,
        .body_size = body.len,
        .timeout_ns = timeout_ns,
        .limit = RESPONSE_MAX + 4 * body.len, /* a conversion gives back what it got */
        .address = *t->address ? t->address : NULL,
        .port = t->port,
    };
    struct err why = {0};
    if (http_client_send(h->client, &x, response, &why) == 0)
        return response->status / 100 == 2 ? 0 : status_failed(response, e);
    const char *text = why.msg;
    if (why.code == ERR_DEADLINE_EXCEEDED)
        text = "context deadline exceeded";
    else if (str_starts_with(text, url) && str_starts_with(text + strlen(url), ": "))
        text += strlen(url) + 2;
    return err_set(e, ERR_INTERNAL, "InternalError", "Post \"%s\": %s", url, text);
}

static int bad_response(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad_response(struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, ERR_INTERNAL, "InternalError", fmt, ap);
    va_end(ap);
    json_clean_message(e);
    return -1;
}

static int check_patch(const json_t *response, bool mutating, struct err *e)
{
    const char *patch = json_str(response, "patch"), *type = json_str(response, "patchType");
    if (!mutating) /* the original ignores it as well */
        return 0;
    if (patch && *patch && !type)
        return bad_response(e, "webhook returned response.patch but not response.patchType");
    if (type && (!patch || !*patch))
        return bad_response(e, "webhook returned response.patchType but not response.patch");
    if (type && !str_eq(type, "JSONPatch"))
        return bad_response(e, "invalid response.patchType value of %.100s", type);
    return 0;
}

/* The response in the answer; a new reference. */
static json_t *check_answer(const struct http_response *answer, const json_t *review, bool mutating,
                            struct err *e)
{
    struct err why = {0};
    json_auto_t *value = json_parse(str_get(&answer->body), answer->body.len, NULL, &why);
    if (!value) {
        bad_response(e, "the answer is no JSON: %s", why.msg);
        return NULL;
    }
    const char *kind = json_str(value, "kind"), *version = json_str(value, "apiVersion");
    if (!kind || !version || !str_eq(kind, "AdmissionReview") ||
        !str_eq(version, "admission.k8s.io/v1")) {
        bad_response(e,
                     "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
                     "%.100s, Kind=%.100s",
                     version ? version : "", kind ? kind : "");
        return NULL;
    }
    json_t *response = json_object_get(value, "response");
    if (!json_is_object(response)) {
        bad_response(e, "webhook response was absent");
        return NULL;
    }
    const char *uid = json_str(response, "uid");
    const char *expected = json_str(json_object_get(review, "request"), "uid");
    if (!uid || !str_eq(uid, expected)) {
        bad_response(e, "expected response.uid=\"%s\", got \"%.100s\"", expected, uid ? uid : "");
        return NULL;
    }
    return check_patch(response, mutating, e) < 0 ? NULL : json_incref(response);
}

json_t *webhook_send(const struct webhook *h, struct apiserver_registry *g, const json_t *body,
                     struct err *e)
{
    struct target t = {0};
    struct http_response answer = {0};
    json_t *value = NULL;
    if (!h->client)
        *e = h->err;
    else if (resolve(h, g, &t, e) == 0 && post(h, &t, body, h->timeout_ns, &answer, e) == 0)
        value = json_parse(str_get(&answer.body), answer.body.len, NULL, e);
    free(t.url);
    http_response_done(&answer);
    return value;
}

static bool speaks_v1(const struct webhook *h)
{
    size_t i;
    json_t *version;
    json_array_foreach(json_object_get(h->spec, "admissionReviewVersions"), i, version) {
        if (json_is_string(version) && str_eq(json_string_value(version), "v1"))
            return true;
    }
    return false;
}

int webhook_call(const struct webhook *h, struct apiserver_registry *g, const json_t *review,
                 bool mutating, int64_t timeout_ns, json_t **ret_response, struct err *e)
{
    struct target t = {0};
    struct http_response answer = {0};
    struct err why = h->err;
    json_t *response = NULL;
    const char *step = "failed to call webhook";
    if (!speaks_v1(h)) {
        err_set(&why, ERR_INTERNAL, "InternalError",
                "webhook does not accept known AdmissionReview versions (v1)");
    } else if (h->client && resolve(h, g, &t, &why) == 0 &&
               post(h, &t, review, timeout_ns, &answer, &why) == 0) {
        step = "received invalid webhook response";
        response = check_answer(&answer, review, mutating, &why);
    }
    free(t.url);
    http_response_done(&answer);
    if (!response)
        return err_set(e, ERR_INTERNAL, "InternalError", "failed calling webhook \"%s\": %s: %s",
                       h->name, step, why.msg);
    *ret_response = response;
    return 0;
}

/*
 * Requests: what was asked, who answers, and how answers are written. Runs on the HTTP server's
 * threads; everything it touches is thread-safe or the request's own.
 */
#include "k8s/apiserver/serve.h"

#include "k8s/apiserver/authz.h"
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/span.h"
#include "k8s/apiserver/status.h"
#include "k8s/apiserver/webhook.h"

enum {
    EVENT_TTL = 3600,      /* seconds */
    FIBER_BODY = 64 << 10, /* bytes */
    CONVERTERS = 16,       /* threads, at most */
};

void call_reply_bytes(struct call *c, unsigned status, const char *type, const void *bytes,
                      size_t size, void (*free_fn)(void *context), void *context)
{
    if (size > CALL_GZIP_BYTES && http_request_accepts_gzip(c->http))
        http_reply_gzip(c->http, status, type, bytes, size, free_fn, context);
    else
        http_reply(c->http, status, type, bytes, size, free_fn, context);
}

void call_reply_text(struct call *c, unsigned status, const char *type, struct str *text)
{
    size_t size = text->len;
    char *bytes = str_take(text);
    call_headers(c);
    call_reply_bytes(c, status, type, bytes, size, free, bytes);
}

void call_reply_json(struct call *c, unsigned status, const json_t *value)
{
    struct str text = {0};
    json_format(value, &text);
    str_append_c(&text, '\n');
    call_reply_text(c, status, "application/json", &text);
}

void call_fail(struct call *c)
{
    if (c->notes.status) { /* whoever refused has words of their own */
        json_int_t own = json_integer_value(json_object_get(c->notes.status, "code"));
        call_reply_json(c, (unsigned)own, c->notes.status);
        return;
    }
    struct apiserver_about about = {c->path.kind, c->path.gv, c->path.name, c->path.namespace};
    unsigned code;
    json_auto_t *status =
        apiserver_status(&c->err, &c->report, c->path.kind ? &about : NULL, &code);
    apiserver_status_code(&c->err, &c->audit.why);
    if (code == 429)
        http_reply_header(c->http, "Retry-After", "1");
    call_reply_json(c, code, status);
}

void call_collection(const struct call *c, struct str *ret_collection, struct str *ret_prefix)
{
    apiserver_collection(c->path.kind, ret_collection);
    if (*c->path.namespace)
        str_appendf(ret_prefix, "%s/", c->path.namespace);
}

/* Objects of a kind with a schema are selected by the fields that it names. */
static int check_fields(const struct api_kind *kind, const struct api_field_selector *s,
                        struct err *e)
{
    static const char *const always[] = {"metadata.name", "metadata.namespace", NULL};
    for (size_t i = 0; kind->schema && i < s->terms.len; i++) {
        const char *path = s->terms.p[i].path;
        if (!str_in(path, always) && !(kind->selectable && str_in(path, kind->selectable)))
            return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "field label not supported: %s",
                           path);
    }
    return 0;
}

int call_selection(struct call *c, struct selection *ret_selection)
{
    *ret_selection = (struct selection){0};
    const char *labels = http_request_query(c->http, "labelSelector");
    const char *fields = http_request_query(c->http, "fieldSelector");
    if ((labels && api_selector_parse(labels, &ret_selection->labels, &c->err) < 0) ||
        (fields && api_field_selector_parse(fields, &ret_selection->fields, &c->err) < 0)) {
        c->err.reason = "BadRequest";
        selection_done(ret_selection);
        return -1;
    }
    if (check_fields(c->path.kind, &ret_selection->fields, &c->err) < 0) {
        selection_done(ret_selection);
        return -1;
    }
    const struct api_field_selector *f = &ret_selection->fields;
    ret_selection->name = api_field_selector_exact(f, "metadata.name");
    ret_selection->namespace = api_field_selector_exact(f, "metadata.namespace");
    ret_selection->by_label = labels && *labels;
    vec_for_each(&f->terms, term) {
        bool known =
            str_eq(term->path, "metadata.name") || str_eq(term->path, "metadata.namespace");
        ret_selection->by_value |= !known || term->differs;
    }
    ret_selection->any = ret_selection->by_label || f->terms.len;
    return 0;
}

void selection_done(struct selection *s)
{
    api_selector_done(&s->labels);
    api_field_selector_done(&s->fields);
}

bool selection_may_match(const struct selection *s, const struct apiserver_object *o)
{
    const char *slash = strchr(o->key, '/');
    const char *name = slash ? slash + 1 : o->key;
    size_t namespace_size = slash ? (size_t)(slash - o->key) : 0;
    if (s->name && !str_eq(s->name, name))
        return false;
    return !s->namespace || (strlen(s->namespace) == namespace_size &&
                             memcmp(s->namespace, o->key, namespace_size) == 0);
}

/* As little of the object is looked at as the selectors need. */
bool selection_matches(const struct selection *s, const struct apiserver_object *o)
{
    if (!s->any)
        return true;
    if (!selection_may_match(s, o))
        return false;
    if (s->by_label) {
        struct apiserver_span metadata = apiserver_span_member(o->bytes, o->size, "metadata");
        struct apiserver_span text =
            metadata.p ? apiserver_span_member(metadata.p, metadata.size, "labels") : metadata;
        json_auto_t *labels = text.p ? json_parse(text.p, text.size, NULL, NULL) : NULL;
        if (!api_selector_matches(&s->labels, labels))
            return false;
    }
    if (!s->by_value)
        return true;
    json_auto_t *object = json_parse(o->bytes, o->size, NULL, NULL);
    return api_field_selector_matches(&s->fields, object);
}

/* Who is counted as one: a user, or whoever has the same address. Administrators are not counted. */
static int limit(struct call *c)
{
    char peer[HTTP_PEER_MAX];
    _cleanup_free_ char *client = NULL;
    if (apiserver_user_in(c->user, "system:unauthenticated"))
        client = mem_printf("address %s", http_request_peer(c->http, peer));
    else if (!apiserver_user_in(c->user, "system:masters"))
        client = mem_printf("user %s", c->user->name);
    return apiserver_limit_begin(c->server->limits, client, &c->err);
}

/* May they, and is there such a thing: in that order, so that strangers learn nothing. */
static void dispatch(struct call *c)
{
    const char *watch = http_request_query(c->http, "watch");
    bool watching = watch && !str_eq(watch, "false") && !str_eq(watch, "0");
    struct err missing = {0};
    c->known = apiserver_path_parse(c->kinds->all, c->http->method, c->http->path,
                                    strlen(c->http->path), watching, &c->path, &missing) == 0;
    if (apiserver_authorize(c) < 0) {
        call_fail(c);
    } else if (!c->known) {
        c->err = missing;
        c->path.kind = NULL; /* the kind is there, what was asked of it is not */
        call_fail(c);
    } else if (c->path.asked == APISERVER_ASKED_OBJECTS) {
        call_objects(c);
    } else {
        call_description(c);
    }
}

static void answer(void *context, struct http_request *http)
{
    struct apiserver *a = context;
    struct call c = {.server = a, .http = http, .kinds = apiserver_kinds_get(&a->registry)};
    call_begin(&c);
    call_audit_begin(&c);
    if (apiserver_authenticate(&c) < 0 || limit(&c) < 0) {
        call_fail(&c);
    } else {
        dispatch(&c);
        apiserver_limit_end(c.server->limits);
    }
    call_audit_end(&c);
    call_end(&c);
    str_done(&c.reason);
    api_report_done(&c.report);
    apiserver_notes_done(&c.notes);
    apiserver_user_unref(c.user);
    apiserver_user_unref(c.real);
    apiserver_kinds_unref(c.kinds);
}

/* Whether it may have to wait for a conversion webhook. */
static bool may_convert(struct apiserver *a, const struct http_request *http)
{
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *k = apiserver_kinds_get(&a->registry);
    if (!k->converts || http->n_segments < 2 || !str_eq(http->segments[0], "apis"))
        return false;
    for (const struct api_kind *const *kind = k->all; *kind; kind++) {
        if ((*kind)->conversion && str_eq(api_kind_canonical(*kind)->group, http->segments[1]))
            return true;
    }
    return false;
}

/* Whether it looks at the disk, which may take its time: where it failed, by writing to it. */
static bool asks_for_disk(const struct http_request *http)
{
    return str_starts_with(http->path, "/readyz") || str_starts_with(http->path, "/healthz");
}

/*
 * What only reads is answered at once. A write waits for the disk, on a fiber; if anything else is to
 * be waited for, on a thread of its own: webhooks, the lock that a namespace's end takes, much to
 * read.
 */
static void handle(void *context, struct http_request *http)
{
    struct apiserver *a = context;
    bool reads = str_eq(http->method, "GET") || str_eq(http->method, "HEAD");
    bool waits = may_convert(a, http) || asks_for_disk(http);
    if (reads && !waits)
        answer(context, http);
    else if (waits || str_eq(http->method, "DELETE") || http->body_size > FIBER_BODY ||
             apiserver_webhooks_any(a->registry.store))
        http_defer(http, answer, context);
    else
        http_call(http, answer, context);
}

/* The namespaces that are always there. */
static int make_namespaces(struct apiserver *a, struct err *e)
{
    static const char *const names[] = {"default", "kube-system", "kube-public", "kube-node-lease",
                                        NULL};
    const struct api_kind *kind = api_kind_find("v1", "Namespace", NULL);
    for (const char *const *name = names; *name; name++) {
        struct api_report report = {0};
        struct apiserver_request r = {.kind = kind};
        json_auto_t *object = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind",
                                        "Namespace", "metadata", "name", *name);
        struct apiserver_object *o = apiserver_create(&a->registry, &r, object, &report, e);
        api_report_done(&report);
        if (!o && e->code != ERR_ALREADY_EXISTS)
            return -1;
        apiserver_object_unref(o);
    }
    return 0;
}

static void changed(void *context, struct apiserver_object *const *objects, size_t n)
{
    struct apiserver *a = context;
    watch_changed(a, objects, n);
    apiserver_follow_wake(a->follow);
}

/* The objects that are always there; they are many, so they are made durable in one go. */
static int make_defaults(struct apiserver *a, struct err *e)
{
    if (apiserver_store_relax(a->registry.store, e) < 0 || make_namespaces(a, e) < 0 ||
        apiserver_rbac_bootstrap(&a->registry, e) < 0)
        return -1;
    apiserver_rbac_aggregation.resync(a);
    return apiserver_store_settle(a->registry.store, e);
}

static void committed(void *context, size_t changes, int64_t ns, const struct err *error)
{
    struct apiserver *a = context;
    apiserver_metrics_commit(a->metrics, changes, ns, error);
    apiserver_health_commit(&a->health, error);
}

struct apiserver_store_options apiserver_store_settings(const char *key_file)
{
    static const char *const sealed[] = {"/secrets", NULL};
    return (struct apiserver_store_options){.key_file = key_file, .sealed = sealed};
}

/* Everything that needs the store. */
static int open_all(struct apiserver *a, const struct apiserver_options *o, struct err *e)
{
    struct apiserver_store_options store = apiserver_store_settings(o->key_file);
    if (apiserver_store_open(o->store, &store, &a->registry.store, e) < 0)
        return -1;
    a->store_path = mem_strdup(o->store);
    apiserver_metrics_store(a->metrics, a->registry.store, o->store);
    apiserver_store_on_commit(a->registry.store, committed, a);
    a->registry.rbac = apiserver_rbac_new(a->registry.store);
    a->limits = apiserver_limits_new(&o->limits, a->registry.clock);
    if (make_defaults(a, e) < 0 || apiserver_audit_open(&o->audit, &a->audit, e) < 0)
        return -1;
    apiserver_metrics_audit(a->metrics, a->audit);
    a->registry.webhooks = apiserver_webhooks_new(a->metrics); /* not for what was made above */
    return o->control ? apiserver_control_start(o->control, a->registry.store, &a->control, e) : 0;
}

int apiserver_start(const struct apiserver_options *options, struct apiserver **ret_server,
                    struct err *e)
{
    struct apiserver *a = NEW(struct apiserver);
    a->registry.clock = options->clock ? options->clock : clock_system();
    a->registry.rules = apiserver_rules_new(&options->features);
    a->event_ttl_ns = (options->event_ttl ? options->event_ttl : EVENT_TTL) * CLOCK_SECOND;
    if (options->pods) {
        a->pods = mem_strdup(options->pods);
        a->logs = (struct pod_log_source){pod_log_open_file, a->pods};
    }
    a->metrics = apiserver_metrics_new();
    a->converters = http_pool_new(CONVERTERS);
    apiserver_health_init(&a->health);
    a->plain_http = options->plain_http;
    if (options->only_kubernetes)
        apiserver_kinds_only_kubernetes();
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->registry.kinds_lock, NULL);
    pthread_mutex_init(&a->shared_lock, NULL);
    struct http_server_options http = {
        .address = options->address, .port = options->port, .handle = handle, .context = a};
    struct apiserver_certificates_options certificates = {
        .folder = options->pki,
        .kubeconfig = options->kubeconfig,
        .controller = options->controller,
        .address = options->address,
        .names = options->names,
        .plain_http = options->plain_http,
        .clock = a->registry.clock,
    };
    if (rules_service_range(a->registry.rules, options->service_range, e) < 0 ||
        open_all(a, options, e) < 0 ||
        apiserver_certificates_open(&certificates, &a->certificates, e) < 0 ||
        (options->token_file &&
         apiserver_token_file_open(options->token_file, &a->token_file, e) < 0)) {
        apiserver_stop(a);
        return -1;
    }
    a->announced = apiserver_store_revision(a->registry.store);
    apiserver_store_on_change(a->registry.store, changed, a); /* followers write at once */
    apiserver_follow_start(a);
    if (apiserver_certificates_start_http(a->certificates, &http, &a->http, e) < 0) {
        apiserver_stop(a);
        return -1;
    }
    apiserver_health_started(&a->health);
    *ret_server = a;
    return 0;
}

uint16_t apiserver_port(const struct apiserver *a)
{
    return http_server_port(a->http);
}

void apiserver_stop(struct apiserver *a)
{
    apiserver_health_stopping(&a->health);
    apiserver_certificates_leave_http(a->certificates);
    http_server_stop(a->http);
    http_pool_stop(a->converters);
    http_pool_free(a->converters);
    pod_log_follow_free(a->log_follow);
    apiserver_follow_stop(a->follow);
    apiserver_audit_close(a->audit);
    apiserver_limits_free(a->limits);
    apiserver_rbac_free(a->registry.rbac);
    apiserver_control_stop(a->control);
    apiserver_webhooks_free(a->registry.webhooks);
    definitions_free(a->definitions);
    apiserver_kinds_set(&a->registry, NULL, 0);
    pthread_mutex_destroy(&a->registry.kinds_lock);
    if (a->registry.store)
        apiserver_store_close(a->registry.store);
    apiserver_metrics_free(a->metrics);
    apiserver_health_done(&a->health);
    free(a->store_path);
    apiserver_token_file_free(a->token_file);
    apiserver_jwt_cache_done(&a->tokens);
    apiserver_certificates_close(a->certificates);
    map_for_each(&a->watches, it)
        free(it->value);
    map_done(&a->watches);
    for (size_t i = 0; i < SHARED_TEXTS; i++)
        pieces_text_unref(a->shared[i].text);
    pthread_mutex_destroy(&a->shared_lock);
    pthread_mutex_destroy(&a->lock);
    apiserver_rules_free(a->registry.rules);
    free(a->pods);
    free(a);
}

/*
 * Requests: what was asked, who answers, and how answers are written. Runs on the HTTP server's
 * threads; everything it touches is thread-safe or the request's own.
 */
#include "apiserver/serve.h"

#include "apiserver/authn.h"
#include "apiserver/authz.h"
#include "apiserver/serve_impl.h"
#include "apiserver/span.h"
#include "apiserver/status.h"

void call_reply_text(struct call *c, unsigned status, const char *type, struct str *text)
{
    size_t size = text->len;
    char *bytes = str_take(text);
    http_reply(c->http, status, type, bytes, size, free, bytes);
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
    struct apiserver_about about = {c->path.kind, c->path.gv, c->path.name};
    unsigned code;
    json_auto_t *status =
        apiserver_status(&c->err, &c->report, c->path.kind ? &about : NULL, &code);
    call_reply_json(c, code, status);
}

void call_collection(const struct call *c, struct str *ret_collection, struct str *ret_prefix)
{
    apiserver_collection(c->path.kind, ret_collection);
    if (*c->path.namespace)
        str_appendf(ret_prefix, "%s/", c->path.namespace);
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

static void answer(void *context, struct http_request *http)
{
    struct call c = {.server = context, .http = http};
    const char *watch = http_request_query(http, "watch");
    bool watching = watch && !str_eq(watch, "false") && !str_eq(watch, "0");
    if (apiserver_authenticate(&c) < 0 ||
        apiserver_path_parse(api_kinds, http->method, http->path, strlen(http->path), watching,
                             &c.path, &c.err) < 0 ||
        apiserver_authorize(&c) < 0)
        call_fail(&c);
    else if (c.path.asked == APISERVER_ASKED_OBJECTS)
        call_objects(&c);
    else
        call_description(&c);
    api_report_done(&c.report);
}

/* What only reads is answered at once; a write waits for the disk, and perhaps for webhooks. */
static void handle(void *context, struct http_request *http)
{
    if (str_eq(http->method, "GET") || str_eq(http->method, "HEAD"))
        answer(context, http);
    else
        http_defer(http, answer, context);
}

/* The namespaces that are always there. */
static int make_namespaces(struct apiserver *a, struct err *e)
{
    static const char *const names[] = {"default", "kube-system", NULL};
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

int apiserver_start(const struct apiserver_options *options, struct apiserver **ret_server,
                    struct err *e)
{
    struct apiserver *a = NEW(struct apiserver);
    a->registry.clock = clock_system();
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->shared_lock, NULL);
    struct http_server_options http = {
        .address = options->address, .port = options->port, .handle = handle, .context = a};
    if (apiserver_store_open(options->store, NULL, &a->registry.store, e) < 0 ||
        make_namespaces(a, e) < 0) {
        apiserver_stop(a);
        return -1;
    }
    a->announced = apiserver_store_revision(a->registry.store);
    a->follow = apiserver_follow_start(a);
    apiserver_store_on_change(a->registry.store, changed, a);
    apiserver_follow_wake(a->follow); /* what changed before */
    if (http_server_start(&http, &a->http, e) < 0) {
        apiserver_stop(a);
        return -1;
    }
    *ret_server = a;
    return 0;
}

uint16_t apiserver_port(const struct apiserver *a)
{
    return http_server_port(a->http);
}

void apiserver_stop(struct apiserver *a)
{
    http_server_stop(a->http);
    apiserver_follow_stop(a->follow);
    if (a->registry.store)
        apiserver_store_close(a->registry.store);
    map_for_each(&a->documents, it) {
        str_done(it->value);
        free(it->value);
    }
    map_done(&a->documents);
    map_for_each(&a->watches, it)
        free(it->value);
    map_done(&a->watches);
    for (size_t i = 0; i < SHARED_TEXTS; i++)
        str_done(&a->shared[i].text);
    pthread_mutex_destroy(&a->shared_lock);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/*
 * Watches. A watch has a place in the history, the revision up to which its client knows
 * everything. Whenever it is read it sends what came since; when there is nothing it sleeps, and
 * every change wakes all watches, which look for themselves.
 *
 * With a selector, an object that no longer matches is deleted as far as the client can see, and
 * one that begins to match is added.
 */
#include <inttypes.h>

#include "apiserver/serve_impl.h"
#include "apiserver/status.h"

enum { EVENTS_AT_ONCE = 200 };

struct watch {
    struct list_link link; /* in the server's list, under its lock */
    struct apiserver *server;
    struct http_stream *stream; /* NULL until the reply is made */
    struct call call;           /* kind, version, namespace and user; its request is gone */
    struct selection selection;
    struct str collection, prefix;
    uint64_t revision;
    struct str out; /* encoded and not sent */
    size_t sent;
    bool ended;
    struct call_record record;
    bool counted; /* as open */
};

static void append_event(struct watch *w, const char *type, const struct apiserver_object *o)
{
    apiserver_metrics_events(w->server->metrics, &w->call.path, 1);
    str_appendf(&w->out, "{\"type\":\"%s\",\"object\":", type);
    call_append_object(&w->call, o, &w->out);
    str_append(&w->out, "}\n");
}

static void append_bookmark(struct watch *w)
{
    char version[128];
    str_appendf(
        &w->out,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":"
        "{\"resourceVersion\":\"%" PRIu64
        "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
        w->call.path.kind->kind, api_version_text(w->call.path.gv, version), w->revision);
}

static void append_error(struct watch *w, const struct err *e)
{
    unsigned code;
    json_auto_t *status = apiserver_status(e, NULL, NULL, &code);
    str_append(&w->out, "{\"type\":\"ERROR\",\"object\":");
    json_format(status, &w->out);
    str_append(&w->out, "}\n");
    w->ended = true;
}

static void append_change(struct watch *w, const struct apiserver_event *event)
{
    if (w->prefix.len && !str_starts_with(event->object->key, w->prefix.p))
        return;
    bool is = event->change != APISERVER_DELETED && selection_matches(&w->selection, event->object);
    /* A previous state that is no longer known may have matched; a needless DELETED harms nobody. */
    bool was = event->change != APISERVER_CREATED &&
               (!event->previous || selection_matches(&w->selection, event->previous));
    if (is)
        append_event(w, was ? "MODIFIED" : "ADDED", event->object);
    else if (was)
        append_event(w, "DELETED", event->object);
}

/* What came since; nothing when there is nothing. */
static void catch_up(struct watch *w)
{
    struct apiserver_events events;
    struct err e = {0};
    str_clear(&w->out);
    w->sent = 0;
    while (!w->out.len && !w->ended) {
        uint64_t before = w->revision;
        if (apiserver_store_events(w->server->registry.store, str_get(&w->collection), w->revision,
                                   EVENTS_AT_ONCE, &events, &e) < 0) {
            append_error(w, &e);
        } else {
            vec_for_each(&events.events, event)
                append_change(w, event);
            w->revision = events.revision;
        }
        apiserver_events_done(&events);
        if (w->revision == before)
            break;
    }
}

/* Follows the kinds in service; false when there is no such kind any more. */
static bool renew_kind(struct call *c)
{
    struct apiserver_kinds *now = apiserver_kinds_get(&c->server->registry);
    const struct api_kind *kind = NULL;
    if (now == c->kinds) {
        apiserver_kinds_unref(now);
        return true;
    }
    kind = apiserver_kinds_find(now, c->path.gv, c->path.kind->plural);
    if (!kind) {
        apiserver_kinds_unref(now);
        return false;
    }
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        if (str_eq(gv->group, c->path.gv->group) && str_eq(gv->version, c->path.gv->version)) {
            c->path.gv = gv;
            break;
        }
    }
    c->path.kind = kind;
    apiserver_kinds_unref(c->kinds);
    c->kinds = now;
    return true;
}

static ssize_t read_watch(void *context, char *buf, size_t max)
{
    struct watch *w = context;
    if (w->sent == w->out.len) {
        if (w->ended)
            return -1;
        bool served = renew_kind(&w->call);
        catch_up(w);
        if (!served && !w->out.len)
            return -1; /* and all its objects are gone */
    }
    size_t n = w->out.len - w->sent;
    if (n > max)
        n = max;
    if (n)
        memcpy(buf, w->out.p + w->sent, n);
    w->sent += n;
    w->record.bytes += n;
    return (ssize_t)n;
}

static void watch_done(void *context)
{
    struct watch *w = context;
    pthread_mutex_lock(&w->server->lock);
    list_unlink(&w->link);
    pthread_mutex_unlock(&w->server->lock);
    http_stream_unref(w->stream);
    if (w->counted) {
        apiserver_metrics_watch(w->server->metrics, &w->call.path, -1);
        call_record_finish(&w->record);
    }
    apiserver_user_unref(w->call.user);
    selection_done(&w->selection);
    apiserver_kinds_unref(w->call.kinds);
    str_done(&w->collection);
    str_done(&w->prefix);
    str_done(&w->out);
    free(w);
}

void watch_wake_all(void *server, uint64_t revision)
{
    struct apiserver *a = server;
    (void)revision;
    pthread_mutex_lock(&a->lock);
    list_for_each(&a->watches, w, struct watch, link)
        http_stream_wake(w->stream);
    pthread_mutex_unlock(&a->lock);
}

/* The present as ADDED events, for a client that knows nothing yet. */
static int append_present(struct watch *w, struct err *e)
{
    struct apiserver_list list;
    struct apiserver_list_options all = {.prefix = w->prefix.len ? w->prefix.p : NULL};
    if (apiserver_store_list(w->server->registry.store, str_get(&w->collection), &all, &list, e) <
        0)
        return -1;
    vec_for_each(&list.objects, o) {
        if (selection_matches(&w->selection, *o))
            append_event(w, "ADDED", *o);
    }
    w->revision = list.revision;
    apiserver_list_done(&list);
    return 0;
}

static bool is_true(const struct call *c, const char *parameter)
{
    const char *value = http_request_query(c->http, parameter);
    return value && (str_eq(value, "true") || str_eq(value, "1"));
}

void call_watch(struct call *c)
{
    static const struct http_stream_ops ops = {read_watch, watch_done};
    struct watch *w = NEW(struct watch);
    w->server = c->server;
    w->call = (struct call){.server = c->server,
                            .user = apiserver_user_ref(c->user),
                            .kinds = apiserver_kinds_ref(c->kinds),
                            .path = c->path};
    list_init(&w->link);
    call_collection(c, &w->collection, &w->prefix);
    const char *revision = http_request_query(c->http, "resourceVersion");
    w->revision = revision ? strtoull(revision, NULL, 10) : 0;
    bool initial = is_true(c, "sendInitialEvents");
    if (call_selection(c, &w->selection) < 0 ||
        ((initial || !w->revision) && append_present(w, &c->err) < 0)) {
        call_fail(c);
        watch_done(w);
        return;
    }
    if (initial)
        append_bookmark(w);
    w->record = call_record(c);
    w->record.path = &w->call.path;
    w->record.status = 200;
    call_record_own(&w->record);
    apiserver_metrics_watch(c->server->metrics, &c->path, 1);
    c->streaming = w->counted = true; /* from here on watch_done() has the last word */
    struct http_stream *stream = http_reply_stream(c->http, 200, "application/json", &ops, w);
    if (!stream)
        return; /* watch_done() has been called */
    pthread_mutex_lock(&c->server->lock);
    w->stream = stream;
    list_push(&c->server->watches, &w->link);
    pthread_mutex_unlock(&c->server->lock);
    http_stream_wake(stream); /* what changed before it was in the list */
}

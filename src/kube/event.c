/*
 * Threads: callers put notes into a bounded list and go on; one thread takes them out, in order,
 * thinks about each (event_memory) and writes. What the API does not take is dropped: events are for
 * people, and nothing may depend on them.
 */
#include "kube/event.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "base/thread.h"
#include "kube/event_impl.h"

enum { WAITING_MAX = 256, MESSAGE_MAX = 1024, NAME_MAX_BYTES = 200 };
static const int64_t last_wait_ns = 5 * CLOCK_SECOND;

struct note {
    struct list_link link;
    json_t *about;    /* an ObjectReference */
    const char *type; /* a literal */
    char *reason, *message;
    int64_t at;
};

struct kube_recorder {
    struct kube_client *client;
    struct kube_resource resource;
    char *component, *host;
    const struct clock *clock;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* notes came, the last one was written, or it is time to stop */
    struct list_link notes;
    size_t waiting, dropped;
    bool busy, stopping, late; /* the thread runs; it is to end; without writing any more */
    /* The thread's own. */
    struct event_memory memory;
    int64_t last_name; /* in names, which are times */
};

static void note_free(struct note *n)
{
    json_decref(n->about);
    free(n->reason);
    free(n->message);
    free(n);
}

/* Callers. */

static void copy_text(json_t *to, const char *key, const json_t *from, const char *from_key)
{
    const char *text = json_str(from, from_key);
    if (text && *text)
        json_object_set_new(to, key, json_string(text));
}

static json_t *make_reference(const json_t *about)
{
    static const char *const inside[] = {"namespace", "name", "uid", "resourceVersion"};
    const json_t *metadata = json_object_get(about, "metadata");
    json_t *reference = json_object();
    copy_text(reference, "kind", about, "kind");
    for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
        copy_text(reference, inside[i], metadata ? metadata : about, inside[i]);
    copy_text(reference, "apiVersion", about, "apiVersion");
    copy_text(reference, "fieldPath", about, "fieldPath");
    return reference;
}

static void record(struct kube_recorder *r, const json_t *about, const char *type,
                   const char *reason, const char *fmt, va_list ap)
{
    if (!r)
        return;
    struct note *n = NEW(struct note);
    list_init(&n->link);
    n->about = make_reference(about);
    n->type = type;
    n->reason = mem_strdup(reason);
    n->message = mem_vprintf(fmt, ap);
    n->message[str_cut(n->message, MESSAGE_MAX)] = '\0';
    n->at = clock_real_ns(r->clock);
    pthread_mutex_lock(&r->lock);
    bool taken = !r->stopping && r->waiting < WAITING_MAX;
    if (taken) {
        list_push(&r->notes, &n->link);
        r->waiting++;
        pthread_cond_broadcast(&r->changed);
    } else {
        r->dropped++;
    }
    pthread_mutex_unlock(&r->lock);
    if (!taken)
        note_free(n);
}

void kube_event_normal(struct kube_recorder *r, const json_t *about, const char *reason,
                       const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(r, about, "Normal", reason, fmt, ap);
    va_end(ap);
}

void kube_event_warning(struct kube_recorder *r, const json_t *about, const char *reason,
                        const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(r, about, "Warning", reason, fmt, ap);
    va_end(ap);
}

/* The writer. */

static json_t *format_time(int64_t ns)
{
    char text[RFC3339_MAX];
    return json_string(rfc3339_format(rfc3339_from_ns(ns), RFC3339_SECONDS, text));
}

/* In the namespace of what it is about; of what has none, in "default". */
static const char *namespace_of(const struct note *n)
{
    const char *ns = json_str(n->about, "namespace");
    return ns ? ns : "default";
}

static char *make_name(struct kube_recorder *r, const struct note *n)
{
    const char *name = json_str(n->about, "name");
    r->last_name = n->at > r->last_name ? n->at : r->last_name + 1;
    return mem_printf("%.*s.%llx", NAME_MAX_BYTES, name ? name : "event",
                      (unsigned long long)r->last_name);
}

static int create(struct kube_recorder *r, const struct note *n, struct event_entry *entry,
                  const char *message, struct err *e)
{
    _cleanup_free_ char *name = make_name(r, n);
    json_auto_t *event = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:O, s:s, s:s, s:{s:s, s:s}, s:o, s:o, s:I, s:s, s:s, s:s}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace", namespace_of(n),
        "involvedObject", n->about, "reason", n->reason, "message", message, "source", "component",
        r->component, "host", r->host, "firstTimestamp", format_time(entry->first), "lastTimestamp",
        format_time(n->at), "count", (json_int_t)entry->count, "type", n->type,
        "reportingComponent", r->component, "reportingInstance", r->host);
    if (!event)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadText", "a text of the event is no UTF-8");
    json_auto_t *made = kube_create(r->client, &r->resource, event, NULL, e);
    if (!made)
        return -1;
    free(entry->name);
    entry->name = TAKE_PTR(name);
    return 0;
}

static int raise_count(struct kube_recorder *r, const struct note *n,
                       const struct event_entry *entry, const char *message, struct err *e)
{
    json_auto_t *patch = json_pack("{s:I, s:o, s:s}", "count", (json_int_t)entry->count,
                                   "lastTimestamp", format_time(n->at), "message", message);
    json_auto_t *now = kube_patch(r->client, &r->resource, namespace_of(n), entry->name,
                                  KUBE_MERGE_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

/* Which object, whatever its version. */
static void append_object(const struct note *n, struct str *out)
{
    static const char *const keys[] = {"apiVersion", "kind",      "namespace",
                                       "name",       "fieldPath", "uid"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        str_appendf(out, "%s%s", i ? "/" : "", json_text(n->about, keys[i]));
    }
}

static void write_note(struct kube_recorder *r, const struct note *n)
{
    _cleanup_(str_done) struct str object = {0};
    append_object(n, &object);
    _cleanup_free_ char *what = mem_printf("%s|%s", n->type, n->reason);
    bool combined;
    struct event_entry *entry =
        event_memory_see(&r->memory, str_get(&object), what, n->message, n->at, &combined);
    if (!entry)
        return;
    _cleanup_free_ char *message =
        mem_printf("%s%s", combined ? "(combined from similar events): " : "", n->message);
    message[str_cut(message, MESSAGE_MAX)] = '\0';
    struct err e = {0};
    int status = entry->name ? raise_count(r, n, entry, message, &e) : -1;
    if (!entry->name || (status < 0 && e.code == ERR_NOT_FOUND)) /* events expire */
        status = create(r, n, entry, message, &e);
    if (status < 0 && e.code != ERR_CANCELLED)
        log_warn("cannot write an event", LOG_S("reason", n->reason),
                 LOG_S("object", str_get(&object)), LOG_S("event", n->message), LOG_ERR(&e));
}

static void *run(void *context)
{
    struct kube_recorder *r = context;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct list_link *link = list_take(&r->notes);
        if (!link && r->stopping)
            break;
        if (!link) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        r->waiting--;
        bool late = r->late;
        size_t dropped = r->dropped;
        r->dropped = 0;
        pthread_mutex_unlock(&r->lock);
        struct note *n = container_of(link, struct note, link);
        if (!late)
            write_note(r, n);
        note_free(n);
        if (dropped)
            log_warn("events came too fast and were dropped", LOG_U("count", dropped));
        pthread_mutex_lock(&r->lock);
    }
    r->busy = false;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

struct kube_recorder *kube_recorder_new(struct kube_client *client, const char *component,
                                        const char *host, const struct clock *clock, struct err *e)
{
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof(name) - 1);
    struct kube_recorder *r = NEW(struct kube_recorder);
    r->client = client;
    r->resource = kube_resource("v1", "Event");
    r->component = mem_strdup(component);
    r->host = mem_strdup(host ? host : name);
    r->clock = clock ? clock : clock_system();
    r->busy = true;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    list_init(&r->notes);
    event_memory_init(&r->memory);
    if (thread_start(&r->thread, "events", run, r, e) == 0)
        return r;
    r->busy = false;
    kube_recorder_free(r);
    return NULL;
}

/* The time of the machine, whatever the recorder's clock: it is patience with a server. */
static void finish(struct kube_recorder *r)
{
    const struct clock *clock = clock_system();
    int64_t until = clock_mono_ns(clock) + last_wait_ns;
    pthread_mutex_lock(&r->lock);
    bool running = r->busy;
    r->stopping = true;
    pthread_cond_broadcast(&r->changed);
    while (r->busy && clock_wait(clock, &r->changed, &r->lock, until))
        ;
    bool late = r->late = r->busy;
    pthread_mutex_unlock(&r->lock);
    if (late)
        kube_client_stop(r->client);
    if (running)
        pthread_join(r->thread, NULL);
}

void kube_recorder_free(struct kube_recorder *r)
{
    finish(r);
    event_memory_done(&r->memory);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r->component);
    free(r->host);
    free(r);
}

#include "kube/reflector.h"

#include <malloc.h>
#include <stdio.h>

#include "base/log.h"
#include "kube/backoff.h"
#include "kube/client_impl.h"
#include "kube/lines.h"
#include "kube/object.h"

enum {
    PAGE = 500,
    STALL_SECONDS = 180,
    WATCH_SECONDS = 300, /* and as many again at random: servers shed load when they restart */
    SLACK_SECONDS = 30,  /* that a server may take longer */
    LEAST_MS = 100,      /* between two attempts */
    MOST_SECONDS = 30,
    MISSING_SECONDS = 10, /* between two looks for a kind that the server has not yet */
    BRIEF_MS = 1000,      /* a watch that ends sooner and without an event did not work */
    EVENT_MAX_BYTES = 4 << 20,
    REFUSALS = 3,        /* answers to a watch in a row that make a list worth trying */
    TRIM_OBJECTS = 1000, /* a list of so many leaves memory worth giving back */
    MILLISECOND = 1000000,
};

/* What is to be done next. */
enum next { NEXT_LIST, NEXT_WATCH, NEXT_STOP };

struct kube_reflector {
    struct kube_reflector_options o;
    struct kube_client *client;
    struct kube_call *call;
    pthread_t thread;
    bool running;
    struct kube_backoff backoff;
    int64_t failed_ns;  /* when it last went wrong, monotonic */
    struct str version; /* up to which all is known */
    unsigned refusals;
    bool missing; /* the server has no such kind, which is optional */
    struct {      /* of the list or the watch that is under way */
        size_t objects;
        uint64_t events; /* bookmarks too */
        bool error;      /* an event that says that it cannot go on */
    } now;
    struct metrics_family *lists, *watches, *failures, *events;
};

static void count(struct kube_reflector *r, struct metrics_family *f, const char *what)
{
    const char *resource = r->o.resource.plural;
    if (!f)
        return;
    metrics_add(metrics_at(f, what ? METRICS_VALUES(resource, what) : METRICS_VALUES(resource)), 1);
}

static void init_metrics(struct kube_reflector *r, struct metrics *m)
{
    if (!m)
        return;
    const char *const *one = METRICS_LABELS("resource");
    r->lists = metrics_counter(m, "reflector_lists_total", "Lists that were begun.", one);
    r->watches = metrics_counter(m, "reflector_watches_total", "Watches that were begun.", one);
    r->failures = metrics_counter(m, "reflector_failures_total",
                                  "Lists and watches that went wrong, by the error's reason.",
                                  METRICS_LABELS("resource", "reason"));
    r->events = metrics_counter(m, "reflector_events_total", "Events of watches, by type.",
                                METRICS_LABELS("resource", "type"));
}

struct kube_reflector *kube_reflector_new(const struct kube_reflector_options *o)
{
    struct kube_reflector *r = NEW(struct kube_reflector);
    r->o = *o;
    r->client = o->client;
    if (!r->o.clock)
        r->o.clock = r->client->clock;
    if (!r->o.page)
        r->o.page = PAGE;
    if (!r->o.stall_ns)
        r->o.stall_ns = STALL_SECONDS * CLOCK_SECOND;
    r->backoff.least_ns = (int64_t)LEAST_MS * MILLISECOND;
    r->backoff.most_ns = o->backoff_max_ns ? o->backoff_max_ns : MOST_SECONDS * CLOCK_SECOND;
    init_metrics(r, o->metrics);
    r->call = kube_call_begin(r->client);
    return r;
}

void kube_reflector_free(struct kube_reflector *r)
{
    kube_call_end(r->client, r->call);
    str_done(&r->version);
    free(r);
}

static int64_t now_ns(const struct kube_reflector *r)
{
    return clock_mono_ns(r->o.clock);
}

/* Something that cannot be right. */
static int doubt(struct kube_reflector *r, const char *reason, const char *what, struct err *e)
{
    return err_set(e, ERR_DATA_LOSS, reason, "of %s: %s", r->o.resource.plural, what);
}

/* Whether b is before a, as far as one can tell: versions that are no numbers have no order. */
static bool goes_back(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (!n || !m || strspn(a, "0123456789") != n || strspn(b, "0123456789") != m || *a == '0' ||
        *b == '0')
        return false;
    return m != n ? m < n : strcmp(b, a) < 0;
}

static void set_version(struct kube_reflector *r, const char *version)
{
    str_clear(&r->version);
    str_append(&r->version, version);
}

/* Whether an object can be one of this collection. */
static int check_object(struct kube_reflector *r, const json_t *object, struct err *e)
{
    const char *api_version = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
    if (!api_version || !kind || !str_eq(api_version, r->o.resource.api_version) ||
        !str_eq(kind, r->o.resource.kind))
        return doubt(r, "OtherKind", "what came is of another kind", e);
    return 0;
}

static int check_place(struct kube_reflector *r, const json_t *object, struct err *e)
{
    const char *ns = kube_namespace(object);
    if (r->o.resource.namespaced != (*ns != '\0') || (r->o.ns && !str_eq(ns, r->o.ns)))
        return doubt(r, "OtherNamespace", "what came is of another namespace", e);
    return 0;
}

static int on_page(void *context, const json_t *items, struct err *e)
{
    struct kube_reflector *r = context;
    size_t i;
    const json_t *item;
    json_array_foreach(items, i, item) {
        if (check_place(r, item, e) < 0)
            return -1;
    }
    r->now.objects += json_array_size(items);
    return r->o.ops->page(r->o.context, items, e);
}

static int list(struct kube_reflector *r, struct err *e)
{
    _cleanup_(str_done) struct str version = {0};
    struct kube_query query = {.labels = r->o.labels, .fields = r->o.fields, .limit = r->o.page};
    count(r, r->lists, NULL);
    r->now.objects = 0;
    r->o.ops->begin(r->o.context);
    if (kube_list_each(r->client, r->call, &r->o.resource, r->o.ns, &query, on_page, r, &version,
                       e) < 0) {
        r->o.ops->begin(r->o.context); /* forget it now rather than when the server is back */
        return -1;
    }
    set_version(r, str_get(&version));
    r->missing = false;
    r->o.ops->replace(r->o.context);
    /* Trees of pages and what they replaced lie between the objects that stay. */
    if (r->now.objects >= TRIM_OBJECTS)
        malloc_trim(0);
    return 0;
}

static int on_event(struct kube_reflector *r, const char *type, const json_t *object, struct err *e)
{
    static const char *const types[] = {
        [KUBE_ADDED] = "ADDED", [KUBE_MODIFIED] = "MODIFIED", [KUBE_DELETED] = "DELETED"};
    const char *version = kube_version(object);
    if (check_object(r, object, e) < 0)
        return -1;
    if (!*version || goes_back(str_get(&r->version), version))
        return doubt(r, "OutOfOrder", "an event is older than one before it", e);
    if (str_eq(type, "BOOKMARK")) {
        set_version(r, version);
        return 0;
    }
    if (check_place(r, object, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (!str_eq(type, types[i]))
            continue;
        if (r->o.ops->event(r->o.context, (enum kube_event)i, object, e) < 0)
            return -1;
        set_version(r, version);
        return 0;
    }
    return doubt(r, "UnknownEvent", "an event is of a type that does not exist", e);
}

static int on_line(void *context, const char *text, size_t n, struct err *e)
{
    struct kube_reflector *r = context;
    struct err why = {0};
    json_auto_t *event = json_parse(text, n, NULL, &why);
    const char *type = json_str(event, "type");
    const json_t *object = json_object_get(event, "object");
    if (!type || !json_is_object(object))
        return doubt(r, "InvalidEvent", event ? "an event has no type or object" : why.msg, e);
    if (str_eq(type, "ERROR")) {
        count(r, r->events, "ERROR");
        r->now.error = true;
        return kube_status_json_error(object, 500, e);
    }
    if (on_event(r, type, object, e) < 0)
        return -1;
    count(r, r->events, type);
    r->now.events++;
    r->refusals = 0;
    return 0;
}

static int on_bytes(void *context, const char *bytes, size_t n, struct err *e)
{
    return kube_lines_feed(context, bytes, n, e);
}

static void watch_path(const struct kube_reflector *r, unsigned seconds, struct str *path)
{
    char timeout[16];
    snprintf(timeout, sizeof(timeout), "%u", seconds);
    kube_path_append(path, &r->o.resource, r->o.ns, NULL, NULL);
    kube_path_query(path, "watch", "true");
    kube_path_query(path, "allowWatchBookmarks", "true");
    kube_path_query(path, "resourceVersion", str_get(&r->version));
    kube_path_query(path, "timeoutSeconds", timeout);
    kube_path_query(path, "labelSelector", r->o.labels);
    kube_path_query(path, "fieldSelector", r->o.fields);
}

static int watch(struct kube_reflector *r, struct kube_answer *ret_answer, struct err *e)
{
    unsigned seconds = WATCH_SECONDS + (unsigned)kube_random(WATCH_SECONDS);
    struct kube_lines lines = {.limit = EVENT_MAX_BYTES, .line = on_line, .context = r};
    _cleanup_(str_done) struct str path = {0};
    count(r, r->watches, NULL);
    r->now.events = 0;
    r->now.error = false;
    watch_path(r, seconds, &path);
    struct kube_stream stream = {.path = path.p,
                                 .timeout_ns = (seconds + SLACK_SECONDS) * CLOCK_SECOND,
                                 .idle_ns = r->o.stall_ns,
                                 .receive = on_bytes,
                                 .context = &lines};
    int status = kube_stream(r->client, r->call, &stream, ret_answer, e);
    kube_lines_done(&lines);
    return status;
}

/* Waits as long as is due after a failure; longer if the server asked for it, within reason. */
static enum next after_failure(struct kube_reflector *r, const char *what, unsigned retry_after,
                               const struct err *why, enum next next)
{
    int64_t now = now_ns(r);
    if (why->code == ERR_CANCELLED || kube_call_is_cancelled(r->client, r->call))
        return NEXT_STOP;
    if (r->failed_ns && now - r->failed_ns > 2 * r->backoff.most_ns)
        kube_backoff_reset(&r->backoff);
    r->failed_ns = now;
    kube_call_note(r->client, r->call, why);
    count(r, r->failures, why->reason);
    int64_t delay = kube_backoff_next(&r->backoff), asked = retry_after * CLOCK_SECOND;
    if (asked > delay)
        delay = asked < r->backoff.most_ns ? asked : r->backoff.most_ns;
    log_warn("cannot follow a collection", LOG_S("resource", r->o.resource.plural),
             LOG_S("doing", what), LOG_I("again_ms", delay / MILLISECOND), LOG_ERR(why));
    return kube_call_sleep(r->client, r->call, delay, NULL) < 0 ? NEXT_STOP : next;
}

/*
 * There is no such kind, and there need not be. That is an answer only as long as there never was one: a
 * server that is just starting may not know yet what it has.
 */
static enum next none_yet(struct kube_reflector *r)
{
    if (!r->version.len && !r->missing) {
        r->missing = true;
        r->o.ops->replace(r->o.context);
    }
    int64_t pause = r->backoff.most_ns < MISSING_SECONDS * CLOCK_SECOND
                        ? r->backoff.most_ns
                        : MISSING_SECONDS * CLOCK_SECOND;
    return kube_call_sleep(r->client, r->call, pause, NULL) < 0 ? NEXT_STOP : NEXT_LIST;
}

/* Who may not read it is told that before it is told that there is no such kind. */
static bool is_missing(struct kube_reflector *r, const struct err *e)
{
    return e->code == ERR_NOT_FOUND ||
           (e->code == ERR_PERMISSION_DENIED && !kube_serves(r->client, r->o.resource.api_version));
}

static enum next list_once(struct kube_reflector *r)
{
    struct err e = {0};
    if (list(r, &e) < 0)
        return r->o.resource.optional && is_missing(r, &e)
                   ? none_yet(r)
                   : after_failure(r, "list", 0, &e, NEXT_LIST);
    kube_call_note(r->client, r->call, &(struct err){0});
    r->refusals = 0;
    return NEXT_WATCH;
}

/* Errors after which it is not known what was missed: those that we set ourselves, and 410. */
static bool is_doubt(const struct err *e)
{
    return e->code == ERR_DATA_LOSS || e->code == ERR_OUT_OF_RANGE ||
           e->code == ERR_INVALID_ARGUMENT || str_eq(e->reason, "LineTooLong");
}

static enum next watch_once(struct kube_reflector *r)
{
    struct err e = {0};
    struct kube_answer answer = {0};
    int64_t begin = now_ns(r);
    int status = watch(r, &answer, &e);
    bool brief = now_ns(r) - begin < (int64_t)BRIEF_MS * MILLISECOND;
    if (status < 0 && is_doubt(&e))
        return after_failure(r, "watch", 0, &e, NEXT_LIST);
    if (r->now.events > 0 || (!brief && status == 0)) {
        /* It worked until it ended. */
        kube_call_note(r->client, r->call, &(struct err){0});
        int64_t pause = status < 0 || brief ? r->backoff.least_ns : 0;
        return kube_call_sleep(r->client, r->call, pause, NULL) < 0 ? NEXT_STOP : NEXT_WATCH;
    }
    if (status == 0)
        err_set(&e, ERR_UNAVAILABLE, "WatchTooShort", "the watch of %s ended at once",
                r->o.resource.plural);
    /* Whoever answers and never lets us watch may have forgotten what our version means. */
    if (answer.status || r->now.error)
        r->refusals++;
    return after_failure(r, "watch", answer.retry_after, &e,
                         r->refusals >= REFUSALS ? NEXT_LIST : NEXT_WATCH);
}

static void *run(void *context)
{
    struct kube_reflector *r = context;
    enum next next = NEXT_LIST;
    while (next != NEXT_STOP)
        next = next == NEXT_LIST ? list_once(r) : watch_once(r);
    r->o.ops->end(r->o.context);
    return NULL;
}

bool kube_reflector_missing(const struct kube_reflector *r)
{
    return r->missing;
}

int kube_reflector_start(struct kube_reflector *r, struct err *e)
{
    int status = pthread_create(&r->thread, NULL, run, r);
    if (status != 0)
        return err_errno(e, status, "cannot start a thread to follow %s", r->o.resource.plural);
    r->running = true;
    return 0;
}

void kube_reflector_stop(struct kube_reflector *r)
{
    kube_call_cancel(r->client, r->call);
    if (r->running)
        pthread_join(r->thread, NULL);
    r->running = false;
}

void kube_reflector_last(struct kube_reflector *r, struct err *ret_e)
{
    kube_call_last(r->client, r->call, ret_e);
}

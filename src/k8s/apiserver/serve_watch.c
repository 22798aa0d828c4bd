/*
 * Watches. A watch has a place in the history, the revision up to which its client knows
 * everything. Whenever it is read it sends what came since; when there is nothing it sleeps.
 *
 * Watches are kept by collection, and a change wakes those that it concerns. `behind` is the first
 * such change since a watch last looked, `announced` the last of all changes; so a watch of a
 * collection in which nothing happens is as far as everybody else, however long it has slept and
 * whatever the history has forgotten meanwhile.
 *
 *     known up to ───────── behind ──────── announced
 *                 nothing  │ look here on
 *
 * Once a second the followers' thread wakes watches whose time has come: for a bookmark, which tells
 * the client how far it is, or to end.
 *
 * With a selector, an object that no longer matches is deleted as far as the client can see, and
 * one that begins to match is added.
 *
 * What a watch sends is references to what is stored, or encoded once for all that send the same
 * (pieces.h): a client that does not read costs a few words. It pins what it has not read; so one that
 * makes no progress while many bytes of changes pass by is cut off. Its client asks again.
 *
 * Where a webhook has to convert the objects, what is due is made on a thread that may wait, and the
 * connection's thread finds it when it is woken. Meanwhile it leaves the watch alone:
 *
 *     idle ── read(), something is due ──> working ── made, woken ──> idle
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/apiserver/status.h"

enum {
    EVENTS_AT_ONCE = 200,
    OUT_BYTES = 64 << 10, /* enough for one read: more is encoded by the next */
    BOOKMARK_SECONDS = 55,
    BOOKMARK_JITTER_SECONDS = 10,
    LEAST_SECONDS = 1800,  /* a watch that says nothing ends after this, and up to as long again */
    WATCHES_OF_USER = 512, /* of the 1,024 connections that there are; not of administrators */
    SLOW_BYTES = 16 << 20, /* of changes that a watch may not have looked at, */
    SLOW_SECONDS = 5,      /* when it has not got on for so long */
    TRIM_SECONDS = 5,      /* between two times that memory is given back */
};

struct watch {
    struct list_link link; /* in the list of its collection, under the server's lock */
    struct apiserver *server;
    struct http_stream *stream; /* NULL until the reply is made */
    struct apiserver_kinds *kinds;
    struct apiserver_path path; /* points into the kinds, and so does the form */
    struct form form;
    struct selection selection;
    struct str collection, prefix;
    uint64_t revision;
    struct apiserver_list present; /* to be sent as ADDED first */
    size_t next;                   /* of it */
    bool bookmarks, initial_end;   /* wanted; and one is due after the present */
    bool headed;                   /* a Table's columns were sent */
    struct pieces out;             /* not sent yet */
    bool ended;
    _Atomic bool working; /* a converter has it: only that may touch it */
    unsigned refs;        /* atomic: the stream's, and the converter's */
    struct call_record record;
    bool counted; /* as open */
    char *user;   /* who watches; NULL: somebody who may have as many as they like */

    uint64_t behind;                     /* under the server's lock; 0: nothing is */
    size_t missed;                       /* the same: bytes of changes since it looked */
    _Atomic int64_t progress_ns;         /* monotonic: when it was last read */
    _Atomic int64_t bookmark_ns, end_ns; /* monotonic: when the next is due */
};

static int64_t now(const struct watch *w)
{
    return clock_mono_ns(w->server->registry.clock);
}

static int64_t seconds(uint64_t n)
{
    return (int64_t)(n < INT32_MAX ? n : INT32_MAX) * CLOCK_SECOND;
}

/* Up to n, so that not everybody does the same thing at the same time. */
static uint64_t jitter(uint64_t n)
{
    uint64_t random = (uint64_t)(uint32_t)rand(); /* NOLINT: nobody gains by guessing it */
    return random % (n + 1);
}

static void append_event(struct watch *w, const char *head, const struct apiserver_object *o)
{
    apiserver_metrics_events(w->server->metrics, &w->path, 1);
    pieces_add_literal(&w->out, head);
    if (form_is_stored(&w->form, o))
        pieces_add_object(&w->out, o);
    else
        pieces_add_text(&w->out, watch_shared(w->server, &w->form, o, !w->headed));
    w->headed = true;
    pieces_add_literal(&w->out, "}\n");
}

/* Text of this watch alone. */
static void append_text(struct watch *w, const struct str *text)
{
    pieces_add_text(&w->out, pieces_text_new(text));
}

static void append_bookmark(struct watch *w, bool initial_end)
{
    _cleanup_(str_done) struct str text = {0};
    str_append(&text, "{\"type\":\"BOOKMARK\",\"object\":");
    form_append_bookmark(&w->form, w->revision, initial_end, !w->headed, &text);
    w->headed = true;
    str_append(&text, "}\n");
    append_text(w, &text);
    w->bookmark_ns = now(w) + seconds(BOOKMARK_SECONDS + jitter(BOOKMARK_JITTER_SECONDS));
}

static void append_error(struct watch *w, const struct err *e)
{
    unsigned code;
    json_auto_t *status = apiserver_status(e, NULL, NULL, &code);
    _cleanup_(str_done) struct str text = {0};
    str_append(&text, "{\"type\":\"ERROR\",\"object\":");
    json_format(status, &text);
    str_append(&text, "}\n");
    append_text(w, &text);
    w->ended = true;
}

#define ADDED    "{\"type\":\"ADDED\",\"object\":"
#define MODIFIED "{\"type\":\"MODIFIED\",\"object\":"
#define DELETED  "{\"type\":\"DELETED\",\"object\":"

/* With objects that are in the version that is watched; `previous` may be NULL. */
static void append_selected(struct watch *w, enum apiserver_change change,
                            const struct apiserver_object *o,
                            const struct apiserver_object *previous)
{
    bool is = change != APISERVER_DELETED && selection_matches(&w->selection, o);
    /* A previous state that is no longer known may have matched; a needless DELETED harms nobody. */
    bool was =
        change != APISERVER_CREATED && (!previous || selection_matches(&w->selection, previous));
    if (is)
        append_event(w, was ? MODIFIED : ADDED, o);
    else if (was)
        append_event(w, DELETED, o);
}

static void append_converted(struct watch *w, const struct apiserver_event *event)
{
    struct apiserver_object *both[] = {apiserver_object_ref(event->object), NULL};
    struct err e = {0};
    size_t n = 1;
    if (event->previous && w->selection.any)
        both[n++] = apiserver_object_ref(event->previous);
    if (apiserver_convert(w->path.kind, both, n, &e) < 0)
        append_error(w, &e);
    else
        append_selected(w, event->change, both[0], both[1] ? both[1] : event->previous);
    apiserver_object_unref(both[0]);
    apiserver_object_unref(both[1]);
}

static void append_change(struct watch *w, const struct apiserver_event *event)
{
    if (w->ended || (w->prefix.len && !str_starts_with(event->object->key, w->prefix.p)))
        return;
    if (!w->path.kind->conversion)
        append_selected(w, event->change, event->object, event->previous);
    else if (selection_may_match(&w->selection, event->object))
        append_converted(w, event);
}

static void append_present(struct watch *w)
{
    while (w->next < w->present.objects.len && w->out.bytes < OUT_BYTES)
        append_event(w, ADDED, w->present.objects.p[w->next++]);
    if (w->next < w->present.objects.len)
        return;
    apiserver_list_done(&w->present);
    w->next = 0;
    if (w->initial_end)
        append_bookmark(w, true);
    w->initial_end = false;
}

/* Passes over what does not concern this watch; false when there is nothing else. */
static bool skip(struct watch *w)
{
    pthread_mutex_lock(&w->server->lock);
    bool concerned = w->behind != 0;
    uint64_t known = concerned ? w->behind - 1 : w->server->announced;
    w->behind = 0;
    w->missed = 0;
    pthread_mutex_unlock(&w->server->lock);
    if (known > w->revision)
        w->revision = known;
    return concerned;
}

static void append_changes(struct watch *w)
{
    while (!w->out.bytes && !w->ended) {
        struct apiserver_events events;
        struct err e = {0};
        uint64_t before = w->revision;
        if (apiserver_store_events(w->server->registry.store, str_get(&w->collection), w->revision,
                                   EVENTS_AT_ONCE, &events, &e) < 0) {
            append_error(w, &e);
        } else {
            bool all = true;
            vec_for_each(&events.events, event) {
                all = w->out.bytes < OUT_BYTES;
                if (!all)
                    break;
                append_change(w, event);
                w->revision = event->object->revision;
            }
            if (all)
                w->revision = events.revision;
        }
        apiserver_events_done(&events);
        if (w->revision == before)
            return;
    }
    pthread_mutex_lock(&w->server->lock);
    if (!w->behind) /* there may be more than fits */
        w->behind = w->revision + 1;
    pthread_mutex_unlock(&w->server->lock);
}

/* What is due by now; nothing when there is nothing. */
static void catch_up(struct watch *w)
{
    if (w->present.objects.len || w->initial_end)
        append_present(w);
    if (!w->out.bytes && skip(w))
        append_changes(w);
    if (w->out.bytes)
        return;
    bool over = now(w) >= w->end_ns;
    if (w->bookmarks && (over || now(w) >= w->bookmark_ns))
        append_bookmark(w, false);
    w->ended |= over;
}

/* Follows the kinds in service; false when there is no such kind any more. */
static bool renew_kind(struct watch *w)
{
    struct apiserver_kinds *now_served = apiserver_kinds_get(&w->server->registry);
    const struct api_kind *kind = NULL;
    if (now_served != w->kinds)
        kind = apiserver_kinds_find(now_served, w->path.gv, w->path.kind->plural);
    if (!kind) {
        bool same = now_served == w->kinds;
        apiserver_kinds_unref(now_served);
        return same;
    }
    const struct api_group_version *gv = kind->versions;
    while (gv->group &&
           !(str_eq(gv->group, w->path.gv->group) && str_eq(gv->version, w->path.gv->version)))
        gv++;
    w->form.gv = w->path.gv = gv;
    w->form.table.kind = w->path.kind = kind;
    apiserver_kinds_unref(w->kinds);
    w->kinds = now_served;
    return true;
}

static void watch_unref(struct watch *w)
{
    if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    http_stream_unref(w->stream);
    apiserver_kinds_unref(w->kinds);
    apiserver_list_done(&w->present);
    selection_done(&w->selection);
    str_done(&w->collection);
    str_done(&w->prefix);
    pieces_done(&w->out);
    free(w->user);
    free(w);
}

/* On a thread that may wait. */
static void work(void *context)
{
    struct watch *w = context;
    catch_up(w);
    w->working = false;
    http_stream_wake(w->stream);
    watch_unref(w);
}

/* Whether there may be something to make. */
static bool is_due(struct watch *w)
{
    pthread_mutex_lock(&w->server->lock);
    bool behind = w->behind != 0;
    pthread_mutex_unlock(&w->server->lock);
    return behind || w->present.objects.len || w->initial_end || now(w) >= w->end_ns ||
           (w->bookmarks && now(w) >= w->bookmark_ns);
}

/* Has what is due made by somebody who may wait, if anything is. */
static void hand_over(struct watch *w)
{
    if (!is_due(w))
        return;
    w->working = true;
    __atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED);
    if (http_pool_run(w->server->converters, work, w))
        return;
    w->working = false; /* the server stops, or there are no threads: a client comes again */
    w->ended = true;
    __atomic_sub_fetch(&w->refs, 1, __ATOMIC_RELAXED); /* the stream has one still */
}

/* What is due, here or elsewhere; false when it is not there yet. */
static bool prepare_more(struct watch *w)
{
    bool served = renew_kind(w);
    if (w->path.kind->conversion)
        hand_over(w);
    else
        catch_up(w);
    if (w->working)
        return false;
    w->ended |= !served && !w->out.bytes; /* and all its objects are gone */
    return true;
}

static ssize_t read_watch(void *context, char *buf, size_t max)
{
    struct watch *w = context;
    w->progress_ns = now(w);
    if (w->working || (!w->out.bytes && !w->ended && !prepare_more(w)))
        return 0;
    if (!w->out.bytes && w->ended)
        return -1;
    size_t n = pieces_read(&w->out, buf, max);
    w->record.bytes += n;
    return (ssize_t)n;
}

static void watch_done(void *context)
{
    struct watch *w = context;
    pthread_mutex_lock(&w->server->lock);
    list_unlink(&w->link);
    pthread_mutex_unlock(&w->server->lock);
    w->server->watches_ended++;
    if (w->counted) {
        apiserver_metrics_watch(w->server->metrics, &w->path, -1);
        call_record_finish(&w->record);
    }
    watch_unref(w);
}

/* The watches of a collection; with the server's lock. */
static struct list_link *watches_of(struct apiserver *a, const char *collection, bool create)
{
    struct list_link *list = map_get(&a->watches, collection);
    if (!list && create) {
        list = NEW(struct list_link);
        list_init(list);
        map_set(&a->watches, collection, list);
    }
    return list;
}

/* Whether it is to be cut off: it does not read, and more and more happens meanwhile. */
static bool is_slow(struct watch *w, size_t changed)
{
    w->missed += changed;
    return w->missed > SLOW_BYTES && now(w) - w->progress_ns > seconds(SLOW_SECONDS);
}

void watch_changed(struct apiserver *a, struct apiserver_object *const *objects, size_t n)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < n; i++) {
        struct list_link *list = watches_of(a, objects[i]->collection, false);
        a->announced = objects[i]->revision;
        if (!list)
            continue;
        list_for_each(list, w, struct watch, link) {
            if ((w->prefix.len && !str_starts_with(objects[i]->key, w->prefix.p)) ||
                !selection_may_match(&w->selection, objects[i]))
                continue;
            if (is_slow(w, objects[i]->size))
                http_stream_cut(w->stream);
            if (w->behind)
                continue;
            w->behind = objects[i]->revision;
            http_stream_wake(w->stream);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

void watch_wake_all(struct apiserver *a)
{
    pthread_mutex_lock(&a->lock);
    map_for_each(&a->watches, it) {
        list_for_each((struct list_link *)it->value, w, struct watch, link)
            http_stream_wake(w->stream);
    }
    pthread_mutex_unlock(&a->lock);
}

/* What watches had that are over goes back to the system. */
static void give_back(struct apiserver *a, int64_t at)
{
    if (!a->watches_ended || at < a->trimmed_ns + seconds(TRIM_SECONDS))
        return;
    a->watches_ended = 0;
    a->trimmed_ns = at;
    malloc_trim(0);
}

/* Wakes those whose time has come. */
static void tick(struct apiserver *a)
{
    int64_t at = clock_mono_ns(a->registry.clock);
    if (at < a->ticked_ns + CLOCK_SECOND / 2)
        return;
    a->ticked_ns = at;
    watch_shared_trim(a);
    give_back(a, at);
    pthread_mutex_lock(&a->lock);
    map_for_each(&a->watches, it) {
        list_for_each((struct list_link *)it->value, w, struct watch, link) {
            if (at >= w->end_ns || (w->bookmarks && at >= w->bookmark_ns))
                http_stream_wake(w->stream);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

static void resync(struct apiserver *a)
{
    (void)a;
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    (void)a, (void)event;
}

const struct apiserver_follower watch_follower = {"watches", resync, changed, tick};

/* What there is now, for a client that knows nothing yet. */
static int list_present(struct watch *w, struct err *e)
{
    struct apiserver_list_options all = {.prefix = w->prefix.len ? w->prefix.p : NULL};
    if (apiserver_store_list(w->server->registry.store, str_get(&w->collection), &all, &w->present,
                             e) < 0 ||
        apiserver_convert(w->path.kind, w->present.objects.p, w->present.objects.len, e) < 0)
        return -1;
    size_t kept = 0;
    vec_for_each(&w->present.objects, o) {
        if (selection_matches(&w->selection, *o))
            w->present.objects.p[kept++] = *o;
        else
            apiserver_object_unref(*o);
    }
    w->present.objects.len = kept;
    w->revision = w->present.revision;
    return 0;
}

static int prepare(struct watch *w, struct call *c)
{
    struct list_options o = {0};
    int status = call_list_options(c, true, &o);
    str_done(&o.token.after);
    if (status < 0 || call_selection(c, &w->selection) < 0 || call_form(c, &w->form) < 0)
        return -1;
    call_collection(c, &w->collection, &w->prefix);
    w->revision = o.revision;
    w->bookmarks = o.bookmarks;
    w->bookmark_ns = now(w) + seconds(BOOKMARK_SECONDS + jitter(BOOKMARK_JITTER_SECONDS));
    w->end_ns = now(w) + seconds(o.timeout_seconds ? o.timeout_seconds
                                                   : LEAST_SECONDS + jitter(LEAST_SECONDS));
    bool asked = o.initial == INITIAL_SEND;
    w->initial_end = w->bookmarks && (asked || !o.given);
    if (asked || (o.initial == INITIAL_UNSET && !o.revision))
        return list_present(w, &c->err);
    w->initial_end = false;
    if (!o.revision)
        w->revision = apiserver_store_revision(c->server->registry.store);
    return 0;
}

/* Nobody has all connections: under the server's lock, as the lists are. */
static bool has_too_many(struct apiserver *a, const char *user)
{
    unsigned n = 0;
    if (!user)
        return false;
    pthread_mutex_lock(&a->lock);
    map_for_each(&a->watches, it) {
        list_for_each((struct list_link *)it->value, w, struct watch, link)
            n += w->user && str_eq(w->user, user);
    }
    pthread_mutex_unlock(&a->lock);
    return n >= WATCHES_OF_USER;
}

static int check_number(struct watch *w, struct call *c)
{
    if (!apiserver_user_in(c->user, "system:masters"))
        w->user = mem_strdup(c->user->name);
    return has_too_many(c->server, w->user)
               ? err_set(&c->err, ERR_RESOURCE_EXHAUSTED, "TooManyRequests",
                         "too many watches of this user, please try again later.")
               : 0;
}

void call_watch(struct call *c)
{
    static const struct http_stream_ops ops = {read_watch, watch_done};
    struct watch *w = NEW(struct watch);
    w->refs = 1;
    w->server = c->server;
    w->kinds = apiserver_kinds_ref(c->kinds);
    w->path = c->path;
    list_init(&w->link);
    if (check_number(w, c) < 0 || prepare(w, c) < 0) {
        call_fail(c);
        watch_done(w);
        return;
    }
    w->record = call_record(c);
    w->record.path = &w->path;
    w->record.status = 200;
    call_record_own(&w->record);
    apiserver_metrics_watch(c->server->metrics, &c->path, 1);
    c->streaming = w->counted = true; /* from here on watch_done() has the last word */
    call_headers(c);
    w->progress_ns = now(w);
    w->behind = w->revision + 1; /* what came before it is in the list */
    struct http_stream *stream = http_reply_stream(c->http, 200, "application/json", &ops, w);
    if (!stream)
        return; /* watch_done() has been called */
    pthread_mutex_lock(&c->server->lock);
    w->stream = stream;
    list_push(watches_of(c->server, str_get(&w->collection), true), &w->link);
    if (!w->behind)
        w->behind = w->revision + 1;
    pthread_mutex_unlock(&c->server->lock);
    http_stream_wake(stream);
}

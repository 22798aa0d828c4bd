/*
 * Events are kept for a while after they were last written, and then dropped.
 *
 * All live equally long, so those that were written first end first: a queue in the order of
 * writing, in which an event that is written again stands twice and only its last place counts. At
 * start the times that events carry say when they were written; from then on nobody asks the wall clock.
 */
#include "base/rfc3339.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

enum { MOST_AT_ONCE = 200 };

struct written {
    char *key;
    uint64_t revision;
    int64_t ends; /* monotonic */
};

struct event_ttl {
    VEC(struct written) queue; /* from `first` on */
    size_t first;
    int64_t ttl;
    const struct clock *clock;
};

static int64_t time_of(const json_t *parent, const char *key)
{
    const char *text = json_str(parent, key);
    struct timespec t;
    return text && rfc3339_parse(text, &t, NULL) == 0 ? rfc3339_to_ns(t) : 0;
}

/* The latest time that an event knows of, on the wall clock. */
static int64_t last_written(const json_t *event)
{
    int64_t times[] = {time_of(json_object_get(event, "metadata"), "creationTimestamp"),
                       time_of(event, "lastTimestamp"), time_of(event, "eventTime"),
                       time_of(json_object_get(event, "series"), "lastObservedTime")};
    int64_t last = 0;
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        last = times[i] > last ? times[i] : last;
    return last;
}

static void push(struct event_ttl *t, const struct apiserver_object *o, int64_t since)
{
    vec_push(&t->queue, (struct written){mem_strdup(o->key), o->revision,
                                         since > INT64_MAX - t->ttl ? INT64_MAX : since + t->ttl});
}

static void see(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    struct event_ttl *t = context;
    json_auto_t *event = self_parse(o);
    int64_t age = clock_real_ns(t->clock) - last_written(event);
    push(t, o, clock_mono_ns(t->clock) - (age > 0 ? age : 0));
}

static int by_end(const void *a, const void *b)
{
    const struct written *x = a, *y = b;
    return x->ends < y->ends ? -1 : x->ends > y->ends;
}

static enum self_result expire(struct apiserver *a, const struct written *w)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(&api_event, &collection);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        apiserver_store_get(a->registry.store, str_get(&collection), w->key);
    if (!o || o->revision != w->revision)
        return SELF_DONE; /* written again, it stands further back */
    return self_delete(&a->registry, &api_event, o, APISERVER_PROPAGATE_BACKGROUND);
}

static void tick(struct apiserver *a)
{
    struct event_ttl *t = a->events;
    int64_t now = clock_mono_ns(a->registry.clock);
    for (int n = 0; n < MOST_AT_ONCE && t->first < t->queue.len; n++) {
        struct written *w = &t->queue.p[t->first];
        if (w->ends > now || expire(a, w) != SELF_DONE)
            break;
        free(w->key);
        t->first++;
    }
    if (t->first * 2 > t->queue.len) { /* move the rest to the front, now and then */
        t->queue.len -= t->first;
        if (t->queue.len)
            memmove(t->queue.p, t->queue.p + t->first, t->queue.len * sizeof(*t->queue.p));
        t->first = 0;
    }
}

static void stop(struct apiserver *a)
{
    struct event_ttl *t = a->events;
    if (!t)
        return;
    for (size_t i = t->first; i < t->queue.len; i++)
        free(t->queue.p[i].key);
    vec_done(&t->queue);
    free(t);
    a->events = NULL;
}

static void resync(struct apiserver *a)
{
    stop(a);
    struct event_ttl *t = a->events = NEW(struct event_ttl);
    t->ttl = a->event_ttl_ns;
    t->clock = a->registry.clock;
    self_each(&a->registry, &api_event, NULL, see, t);
    if (t->queue.len)
        qsort(t->queue.p, t->queue.len, sizeof(*t->queue.p), by_end);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    if (event->change != APISERVER_DELETED &&
        apiserver_kind_of(&a->registry, event->object->collection) == &api_event)
        push(a->events, event->object, clock_mono_ns(a->registry.clock));
}

const struct apiserver_follower event_ttl_follower = {"events", resync, changed, tick, stop};

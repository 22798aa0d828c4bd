/*
 * The store's memory: sorted collections, and the ring of the last changes.
 *
 *     history:   first ┌───┬───┬───┬───┐   count events; each revision follows the one before it,
 *                      │ 7 │ 8 │ 9 │10 │   so the event of revision r is at r - oldest
 *                      └───┴───┴───┴───┘ <- the store's revision
 *
 * The past of a collection is its present with the later changes undone, newest first: a change of
 * a key is undone by putting its previous object back, or nothing if it was created by it.
 */
#include <inttypes.h>

#include "base/str.h"
#include "k8s/apiserver/store_impl.h"

struct apiserver_object *apiserver_object_ref(struct apiserver_object *o)
{
    __atomic_add_fetch(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void apiserver_object_unref(struct apiserver_object *o)
{
    if (o && __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(o);
}

struct collection *store_collection(struct apiserver_store *s, const char *name, bool create)
{
    struct collection *c = map_get(&s->collections, name);
    if (!c && create) {
        c = NEW(struct collection);
        c->name = mem_strdup(name);
        map_set(&s->collections, name, c);
    }
    return c;
}

bool store_find(const struct collection *c, const char *key, size_t *ret_at)
{
    size_t low = 0, high = c->objects.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->objects.p[middle]->key, key);
        if (order == 0) {
            *ret_at = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_at = low;
    return false;
}

static void insert(struct collection *c, size_t at, struct apiserver_object *o)
{
    vec_push(&c->objects, NULL);
    memmove(c->objects.p + at + 1, c->objects.p + at, (c->objects.len - 1 - at) * sizeof(void *));
    c->objects.p[at] = o;
}

static void event_done(struct apiserver_event *event)
{
    apiserver_object_unref(event->object);
    apiserver_object_unref(event->previous);
}

/* What an event keeps in memory, and on disk, that would be gone without it. */
static size_t event_bytes(const struct apiserver_event *event)
{
    const struct apiserver_object *dead = event->change == APISERVER_DELETED ? event->object : NULL;
    return (event->previous ? sizeof(*event->previous) + event->previous->size : 0) +
           (dead ? sizeof(*dead) + dead->size : 0);
}

static void forget_oldest(struct apiserver_store *s)
{
    struct apiserver_event *oldest = &s->history[s->first];
    if (oldest->previous)
        vec_push(&s->obsolete, oldest->previous->revision);
    if (oldest->change == APISERVER_DELETED)
        vec_push(&s->obsolete, oldest->object->revision);
    s->bytes -= event_bytes(oldest);
    event_done(oldest);
    s->first = (s->first + 1) % s->capacity;
    s->count--;
}

void store_remember(struct apiserver_store *s, struct apiserver_event event)
{
    if (s->count == s->capacity)
        forget_oldest(s);
    s->history[(s->first + s->count++) % s->capacity] = event;
    s->bytes += event_bytes(&event);
    while (s->bytes > s->most_bytes && s->count > 1)
        forget_oldest(s);
}

uint64_t store_horizon(const struct apiserver_store *s)
{
    return s->revision - s->count;
}

void store_publish(struct apiserver_store *s, enum apiserver_change change,
                   struct apiserver_object *object)
{
    struct collection *c = store_collection(s, object->collection, true);
    struct apiserver_object *previous = NULL;
    size_t at;
    bool found = store_find(c, object->key, &at);
    if (found)
        previous = c->objects.p[at]; /* the collection's reference goes to the history */
    if (change == APISERVER_DELETED) {
        c->objects.len--;
        memmove(c->objects.p + at, c->objects.p + at + 1, (c->objects.len - at) * sizeof(void *));
    } else if (found) {
        c->objects.p[at] = apiserver_object_ref(object);
    } else {
        insert(c, at, apiserver_object_ref(object));
    }
    s->revision = object->revision;
    atomic_store_explicit(&c->last_change, object->revision, memory_order_release);
    store_remember(s, (struct apiserver_event){change, object, previous});
}

void store_memory_done(struct apiserver_store *s)
{
    for (size_t i = 0; i < s->count; i++)
        event_done(&s->history[(s->first + i) % s->capacity]);
    free(s->history);
    vec_done(&s->obsolete);
    map_for_each(&s->collections, it) {
        struct collection *c = it->value;
        vec_for_each(&c->objects, o)
            apiserver_object_unref(*o);
        vec_done(&c->objects);
        free(c->name);
        free(c);
    }
    map_done(&s->collections);
}

/* The event at a place counted from the oldest. */
static const struct apiserver_event *event_at(const struct apiserver_store *s, size_t i)
{
    return &s->history[(s->first + i) % s->capacity];
}

/* How many of the oldest events are not after the revision; false when some that are have gone. */
static bool history_after(const struct apiserver_store *s, uint64_t revision, size_t *ret_first)
{
    uint64_t known = store_horizon(s);
    if (revision < known)
        return false;
    *ret_first = revision > s->revision ? s->count : (size_t)(revision - known);
    return true;
}

static int expired(const struct apiserver_store *s, uint64_t revision, struct err *e)
{
    return err_set(e, ERR_OUT_OF_RANGE, "Expired",
                   "too old resource version: %" PRIu64 " (%" PRIu64 ")", revision,
                   store_horizon(s));
}

struct apiserver_object *apiserver_store_get(struct apiserver_store *s, const char *collection,
                                             const char *key)
{
    pthread_rwlock_rdlock(&s->memory);
    const struct collection *c = store_collection(s, collection, false);
    size_t at;
    struct apiserver_object *o =
        c && store_find(c, key, &at) ? apiserver_object_ref(c->objects.p[at]) : NULL;
    pthread_rwlock_unlock(&s->memory);
    return o;
}

static bool in_range(const char *key, const struct apiserver_list_options *options)
{
    return (!options->prefix || str_starts_with(key, options->prefix)) &&
           (!options->after || strcmp(key, options->after) > 0);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct apiserver_object *const *)a)->key,
                  (*(struct apiserver_object *const *)b)->key);
}

/* Adds to the list or counts, past the limit. */
static void take(struct apiserver_list *l, struct apiserver_object *o, size_t limit)
{
    if (!limit || l->objects.len < limit)
        vec_push(&l->objects, apiserver_object_ref(o));
    else
        l->remaining++;
}

static void list_present(const struct collection *c, const struct apiserver_list_options *options,
                         struct apiserver_list *ret)
{
    const char *from = options->after ? options->after : options->prefix ? options->prefix : "";
    if (options->prefix && strcmp(from, options->prefix) < 0)
        from = options->prefix;
    size_t at;
    for (store_find(c, from, &at); at < c->objects.len; at++) {
        struct apiserver_object *o = c->objects.p[at];
        if (options->prefix && !str_starts_with(o->key, options->prefix))
            break;
        if (in_range(o->key, options))
            take(ret, o, options->limit);
    }
}

/* The present with every change since undone: the first change of a key since then decides. */
static void list_past(const struct apiserver_store *s, const struct collection *c, size_t since,
                      const struct apiserver_list_options *options, struct apiserver_list *ret)
{
    struct map changed = {0};
    VEC(struct apiserver_object *) objects = {0};
    for (size_t i = since; i < s->count; i++) {
        const struct apiserver_event *event = event_at(s, i);
        const char *key = event->object->key;
        if (event->object->collection != c->name || !in_range(key, options) ||
            map_has(&changed, key))
            continue;
        map_set(&changed, key, (void *)event);
        if (event->previous)
            vec_push(&objects, event->previous);
    }
    vec_for_each(&c->objects, o) {
        if (in_range((*o)->key, options) && !map_has(&changed, (*o)->key))
            vec_push(&objects, *o);
    }
    if (objects.len)
        qsort(objects.p, objects.len, sizeof(*objects.p), by_key);
    vec_for_each(&objects, o)
        take(ret, *o, options->limit);
    vec_done(&objects);
    map_done(&changed);
}

int apiserver_store_list(struct apiserver_store *s, const char *collection,
                         const struct apiserver_list_options *options,
                         struct apiserver_list *ret_list, struct err *e)
{
    *ret_list = (struct apiserver_list){0};
    pthread_rwlock_rdlock(&s->memory);
    const struct collection *c = store_collection(s, collection, false);
    size_t since;
    int status = 0;
    ret_list->revision = options->revision ? options->revision : s->revision;
    if (!options->revision || options->revision == s->revision) {
        if (c)
            list_present(c, options, ret_list);
    } else if (!history_after(s, options->revision, &since)) {
        status = expired(s, options->revision, e);
    } else if (c) {
        list_past(s, c, since, options, ret_list);
    }
    pthread_rwlock_unlock(&s->memory);
    ret_list->more = ret_list->remaining > 0;
    return status;
}

void apiserver_list_done(struct apiserver_list *l)
{
    vec_for_each(&l->objects, o)
        apiserver_object_unref(*o);
    vec_done(&l->objects);
}

int apiserver_store_events(struct apiserver_store *s, const char *collection, uint64_t after,
                           size_t limit, struct apiserver_events *ret_events, struct err *e)
{
    *ret_events = (struct apiserver_events){.revision = after};
    pthread_rwlock_rdlock(&s->memory);
    size_t i;
    if (!history_after(s, after, &i)) {
        int status = expired(s, after, e);
        pthread_rwlock_unlock(&s->memory);
        return status;
    }
    for (; i < s->count && (!limit || ret_events->events.len < limit); i++) {
        struct apiserver_event event = *event_at(s, i);
        ret_events->revision = event.object->revision;
        if (collection && strcmp(event.object->collection, collection) != 0)
            continue;
        apiserver_object_ref(event.object);
        if (event.previous)
            apiserver_object_ref(event.previous);
        vec_push(&ret_events->events, event);
    }
    pthread_rwlock_unlock(&s->memory);
    return 0;
}

void apiserver_events_done(struct apiserver_events *l)
{
    vec_for_each(&l->events, event)
        event_done(event);
    vec_done(&l->events);
}

uint64_t apiserver_store_revision(struct apiserver_store *s)
{
    pthread_rwlock_rdlock(&s->memory);
    uint64_t revision = s->revision;
    pthread_rwlock_unlock(&s->memory);
    return revision;
}

const _Atomic uint64_t *apiserver_store_last_change(struct apiserver_store *s,
                                                    const char *collection)
{
    pthread_rwlock_wrlock(&s->memory);
    struct collection *c = store_collection(s, collection, true);
    pthread_rwlock_unlock(&s->memory);
    return &c->last_change;
}

void apiserver_store_count(struct apiserver_store *s, struct apiserver_store_counts *ret_counts)
{
    *ret_counts = (struct apiserver_store_counts){0};
    pthread_rwlock_rdlock(&s->memory);
    ret_counts->revision = s->revision;
    map_for_each(&s->collections, it) {
        const struct collection *c = it->value;
        vec_push(&ret_counts->collections,
                 (struct apiserver_collection_count){c->name, c->objects.len});
    }
    pthread_rwlock_unlock(&s->memory);
}

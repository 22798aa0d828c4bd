#include "kube/informer.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "kube/cache.h"
#include "kube/reflector.h"
#include "metrics/metrics.h"

struct kube_informer {
    struct kube_reflector *reflector;
    char *ns, *labels, *fields;
    struct kube_resource resource;
    VEC(struct kube_handler) handlers; /* complete before the start */
    struct map pending;             /* key -> entry, of a list that is not complete; its thread's */
    struct metrics_series *objects; /* NULL: not counted */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* synced, or nobody is there to become it; monotonic */
    struct cache cache;     /* under the lock; changed by the reflector's thread alone */
    bool synced, served, ended;
};

static void forget_pending(struct kube_informer *i)
{
    map_for_each(&i->pending, it)
        cache_entry_free(it->value);
    map_done(&i->pending);
}

/* Handlers, without the lock: they may look things up. */
static void tell(struct kube_informer *i, const struct kube_object *old,
                 const struct kube_object *now)
{
    if (old && now && !str_eq(old->uid, now->uid)) {
        tell(i, old, NULL); /* one is gone and another has its name */
        old = NULL;
    }
    vec_for_each(&i->handlers, h)
        h->changed(h->context, old, now);
}

/* On the reflector's thread. */

static void on_begin(void *context)
{
    forget_pending(context);
}

static bool is_same(const struct kube_object *a, const struct kube_object *b)
{
    return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

/* The entry of an item; the object that is in the cache already, where it is the same. */
static struct cache_entry *entry_of(struct kube_informer *i, const json_t *item, struct err *e)
{
    struct kube_object *o = kube_object_new(item, e);
    if (!o)
        return NULL;
    struct kube_object *known = cache_get(&i->cache, o->key); /* only we change it */
    if (known && is_same(known, o)) {
        kube_object_unref(o);
        o = kube_object_ref(known);
    }
    return cache_entry_new(&i->cache, o, item);
}

static int on_page(void *context, const json_t *items, struct err *e)
{
    struct kube_informer *i = context;
    size_t n;
    const json_t *item;
    json_array_foreach(items, n, item) {
        struct cache_entry *entry = entry_of(i, item, e);
        if (!entry)
            return -1;
        struct cache_entry *twice = map_set(&i->pending, entry->object->key, entry);
        if (twice) {
            cache_entry_free(twice);
            return err_set(e, ERR_DATA_LOSS, "InvalidAnswer", "the list of %s has '%s' twice",
                           i->resource.plural, entry->object->key);
        }
    }
    return 0;
}

static void set_synced(struct kube_informer *i)
{
    pthread_mutex_lock(&i->lock);
    i->synced = true;
    i->served = !kube_reflector_missing(i->reflector);
    pthread_cond_broadcast(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

static void count_objects(struct kube_informer *i)
{
    if (i->objects)
        metrics_set(i->objects, (int64_t)i->cache.entries.count);
}

static void on_replace(void *context)
{
    struct kube_informer *i = context;
    pthread_mutex_lock(&i->lock);
    cache_swap(&i->cache, &i->pending);
    pthread_mutex_unlock(&i->lock);
    count_objects(i);
    map_for_each(&i->pending, it) {
        struct cache_entry *old = it->value;
        if (!map_has(&i->cache.entries, it->key))
            tell(i, old->object, NULL);
    }
    map_for_each(&i->cache.entries, it) {
        const struct cache_entry *now = it->value, *old = map_get(&i->pending, it->key);
        if (!old || old->object != now->object)
            tell(i, old ? old->object : NULL, now->object);
    }
    forget_pending(i);
    set_synced(i);
}

static int on_event(void *context, enum kube_event type, const json_t *object, struct err *e)
{
    struct kube_informer *i = context;
    struct kube_object *o = kube_object_new(object, e);
    if (!o)
        return -1;
    struct kube_object *known = cache_get(&i->cache, o->key);
    if (type != KUBE_DELETED && known && str_eq(known->resource_version, o->resource_version)) {
        bool same = is_same(known, o);
        if (!same)
            err_set(e, ERR_DATA_LOSS, "OutOfOrder", "'%s' of %s changed and its version did not",
                    o->key, i->resource.plural);
        kube_object_unref(o);
        return same ? 0 : -1;
    }
    struct cache_entry *entry =
        type == KUBE_DELETED ? NULL : cache_entry_new(&i->cache, kube_object_ref(o), object);
    pthread_mutex_lock(&i->lock);
    struct cache_entry *old = cache_set(&i->cache, o->key, entry);
    pthread_mutex_unlock(&i->lock);
    count_objects(i);
    if (old || entry)
        tell(i, old ? old->object : NULL, entry ? o : NULL);
    cache_entry_free(old);
    kube_object_unref(o);
    return 0;
}

static void on_end(void *context)
{
    struct kube_informer *i = context;
    pthread_mutex_lock(&i->lock);
    i->ended = true;
    pthread_cond_broadcast(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

static const struct kube_reflector_ops ops = {on_begin, on_page, on_replace, on_event, on_end};

/* From outside. */

static char *copy(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

struct kube_informer *kube_informer_new(const struct kube_informer_options *o, struct err *e)
{
    struct kube_informer *i = NEW(struct kube_informer);
    pthread_condattr_t attr;
    pthread_mutex_init(&i->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&i->changed, &attr);
    pthread_condattr_destroy(&attr);
    i->resource = o->resource;
    i->ns = o->ns && *o->ns ? mem_strdup(o->ns) : NULL;
    i->labels = copy(o->labels);
    i->fields = copy(o->fields);
    if (o->metrics)
        i->objects =
            metrics_at(metrics_gauge(o->metrics, "informer_objects", "Objects that are cached.",
                                     METRICS_LABELS("resource")),
                       METRICS_VALUES(o->resource.plural));
    i->reflector =
        kube_reflector_new(&(struct kube_reflector_options){.client = o->client,
                                                            .resource = o->resource,
                                                            .ns = i->ns,
                                                            .labels = i->labels,
                                                            .fields = i->fields,
                                                            .page = o->page,
                                                            .stall_ns = o->stall_ns,
                                                            .backoff_max_ns = o->backoff_max_ns,
                                                            .clock = o->clock,
                                                            .metrics = o->metrics,
                                                            .ops = &ops,
                                                            .context = i});
    for (const struct kube_index *x = o->indexes; x && x->name; x++) {
        if (kube_informer_add_index(i, x) < 0) {
            err_set(e, ERR_INVALID_ARGUMENT, "InvalidIndex",
                    "the index '%s' is there already, or there are too many", x->name);
            kube_informer_free(i);
            return NULL;
        }
    }
    return i;
}

void kube_informer_add_handler(struct kube_informer *i, struct kube_handler h)
{
    vec_push(&i->handlers, h);
}

int kube_informer_add_index(struct kube_informer *i, const struct kube_index *index)
{
    return cache_add_index(&i->cache, index);
}

int kube_informer_start(struct kube_informer *i, struct err *e)
{
    return kube_reflector_start(i->reflector, e);
}

void kube_informer_stop(struct kube_informer *i)
{
    kube_reflector_stop(i->reflector);
    on_end(i); /* also when it never began */
}

void kube_informer_free(struct kube_informer *i)
{
    kube_reflector_free(i->reflector);
    forget_pending(i);
    cache_done(&i->cache);
    vec_done(&i->handlers);
    pthread_cond_destroy(&i->changed);
    pthread_mutex_destroy(&i->lock);
    free(i->ns);
    free(i->labels);
    free(i->fields);
    free(i);
}

bool kube_informer_synced(const struct kube_informer *i)
{
    struct kube_informer *me = (struct kube_informer *)i;
    pthread_mutex_lock(&me->lock);
    bool synced = me->synced;
    pthread_mutex_unlock(&me->lock);
    return synced;
}

bool kube_informer_served(const struct kube_informer *i)
{
    struct kube_informer *me = (struct kube_informer *)i;
    pthread_mutex_lock(&me->lock);
    bool served = me->served;
    pthread_mutex_unlock(&me->lock);
    return served;
}

int kube_informer_wait(struct kube_informer *i, int64_t timeout_ns, struct err *e)
{
    int64_t end = clock_mono_ns(clock_system()) + timeout_ns;
    struct timespec until = {.tv_sec = end / CLOCK_SECOND, .tv_nsec = end % CLOCK_SECOND};
    int r = 0;
    pthread_mutex_lock(&i->lock);
    while (!i->synced && !i->ended && r == 0)
        r = pthread_cond_timedwait(&i->changed, &i->lock, &until);
    bool synced = i->synced, ended = i->ended;
    pthread_mutex_unlock(&i->lock);
    if (synced)
        return 0;
    if (ended)
        return err_set(e, ERR_CANCELLED, "Cancelled", "nobody follows %s any more",
                       i->resource.plural);
    struct err last = {0};
    kube_reflector_last(i->reflector, &last);
    return err_set(e, ERR_DEADLINE_EXCEEDED, "NotSynced", "%s could not be listed in time: %s",
                   i->resource.plural, last.code ? last.msg : "the server has not answered");
}

struct kube_object *kube_informer_get_key(struct kube_informer *i, const char *key)
{
    pthread_mutex_lock(&i->lock);
    struct kube_object *o = cache_get(&i->cache, key);
    if (o)
        kube_object_ref(o);
    pthread_mutex_unlock(&i->lock);
    return o;
}

struct kube_object *kube_informer_get(struct kube_informer *i, const char *ns, const char *name)
{
    if (!ns || !*ns)
        return kube_informer_get_key(i, name);
    _cleanup_free_ char *key = mem_printf("%s/%s", ns, name);
    return kube_informer_get_key(i, key);
}

void kube_informer_list(struct kube_informer *i, const char *ns, struct kube_objects *ret_list)
{
    pthread_mutex_lock(&i->lock);
    map_for_each(&i->cache.entries, it) {
        struct kube_object *o = ((struct cache_entry *)it->value)->object;
        if (!ns || str_eq(o->ns, ns))
            vec_push(ret_list, kube_object_ref(o));
    }
    pthread_mutex_unlock(&i->lock);
}

void kube_informer_find(struct kube_informer *i, const char *index, const char *value,
                        struct kube_objects *ret_list)
{
    pthread_mutex_lock(&i->lock);
    cache_find(&i->cache, index, value, ret_list);
    pthread_mutex_unlock(&i->lock);
}

json_t *kube_informer_json(struct kube_informer *i, const char *ns, const char *name, struct err *e)
{
    _cleanup_(kube_object_unrefp) struct kube_object *o = kube_informer_get(i, ns, name);
    if (o)
        return kube_object_json(o);
    err_set(e, ERR_NOT_FOUND, "NotFound", "there is no %s '%s%s%s'", i->resource.kind, ns ? ns : "",
            ns && *ns ? "/" : "", name);
    return NULL;
}

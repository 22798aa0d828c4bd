/*
 * Garbage collection: what nobody owns any more is deleted, and deletions reach what the deleted
 * object owns, as its finalizers say.
 *
 *     all owners gone          the object is deleted
 *     some owners gone         the references to those are removed
 *     owner: foregroundDeletion   its dependents are deleted; when none that blocks is left, the
 *                              finalizer goes
 *     owner: orphan            its dependents forget it, then the finalizer goes
 *
 * An owner is there when the object of that kind and name, in the dependent's own namespace or of
 * the whole cluster, has the uid that the reference says. One that never was there is gone. An owner
 * whose kind is not served may be anywhere: it counts as there.
 *
 * The index says what to look at; what is done is decided by what the store has at that moment, and
 * fails when it has changed. So nothing is lost by a crash: at start everything that has owners, or
 * one of the two finalizers, is looked at again.
 */
#include "k8s/apiserver/gc_index.h"
#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"

enum { MOST_AT_ONCE = 500 };
static const int64_t RETRY_NS = 2 * CLOCK_SECOND;

struct gc {
    struct gc_index index;
    struct map waiting; /* uid of an owner that waits for its dependents -> its id, owned */
    struct map queue;   /* ids to look at */
    struct map later;   /* ids that could not be dealt with */
    int64_t retry_at;
};

static char *id_of(const struct apiserver_object *o)
{
    return mem_printf("%s %s", o->collection, o->key);
}

static void enqueue(struct map *queue, const char *id)
{
    static char there;
    map_set(queue, id, &there);
}

static void enqueue_dependents(struct gc *gc, const char *uid)
{
    const struct map *ids = gc_index_dependents(&gc->index, uid);
    if (!ids)
        return;
    map_for_each(ids, it)
        enqueue(&gc->queue, it->key);
}

/* Owners that wait for the object may have waited for nothing else. */
static void enqueue_waiting_owners(struct gc *gc, const char *id)
{
    const struct gc_node *node = gc_index_node(&gc->index, id);
    if (!node)
        return;
    vec_for_each(&node->owners, o) {
        const char *owner = map_get(&gc->waiting, o->uid);
        if (owner)
            enqueue(&gc->queue, owner);
    }
}

static void set_owners(struct gc *gc, const char *id, const json_t *references)
{
    enqueue_waiting_owners(gc, id);
    if (gc_index_set(&gc->index, id, references) && references)
        enqueue(&gc->queue, id);
}

static void see_deletion(struct gc *gc, const char *id, const json_t *metadata)
{
    const char *uid = json_str(metadata, "uid");
    if (!uid || !json_object_get(metadata, "deletionTimestamp"))
        return;
    if (registry_has_finalizer(metadata, APISERVER_FOREGROUND_FINALIZER)) {
        if (!map_has(&gc->waiting, uid)) {
            map_set(&gc->waiting, uid, mem_strdup(id));
            enqueue_dependents(gc, uid);
        }
        enqueue(&gc->queue, id);
    } else {
        free(map_remove(&gc->waiting, uid));
    }
    if (registry_has_finalizer(metadata, APISERVER_ORPHAN_FINALIZER))
        enqueue(&gc->queue, id);
}

static void see(struct gc *gc, const struct apiserver_object *o)
{
    _cleanup_free_ char *id = id_of(o);
    /* Most objects have neither: looking for the words is far cheaper than reading the object. */
    if (!strstr(o->bytes, "\"ownerReferences\"") && !strstr(o->bytes, "\"deletionTimestamp\"")) {
        if (gc_index_node(&gc->index, id))
            set_owners(gc, id, NULL);
        return;
    }
    json_auto_t *object = self_parse(o);
    const json_t *metadata = json_object_get(object, "metadata");
    set_owners(gc, id, json_object_get(metadata, "ownerReferences"));
    see_deletion(gc, id, metadata);
}

static void gone(struct gc *gc, const struct apiserver_object *o)
{
    _cleanup_free_ char *id = id_of(o);
    set_owners(gc, id, NULL);
    if (!gc->index.dependents.count && !gc->waiting.count)
        return;
    json_auto_t *object = self_parse(o);
    const char *uid = json_str(json_at(object, "metadata"), "uid");
    if (!uid)
        return;
    enqueue_dependents(gc, uid);
    free(map_remove(&gc->waiting, uid));
}

/* An object that is looked at. */
struct subject {
    struct apiserver_registry *g;
    struct gc *gc;
    const struct api_kind *kind;
    struct apiserver_object *stored;
    json_t *object;
    json_t *metadata; /* of the object */
    const char *uid;
};

static void subject_done(struct subject *s)
{
    json_decref(s->object);
    apiserver_object_unref(s->stored);
}

/* False when it is gone, or of a kind that is not served any more. */
static bool subject_find(struct gc *gc, struct apiserver_registry *g, const char *id,
                         struct subject *ret)
{
    const char *space = strchr(id, ' ');
    _cleanup_free_ char *collection = mem_strndup(id, (size_t)(space - id));
    *ret = (struct subject){.g = g, .gc = gc, .kind = apiserver_kind_of(g, collection)};
    ret->stored = ret->kind ? apiserver_store_get(g->store, collection, space + 1) : NULL;
    ret->object = ret->stored ? self_parse(ret->stored) : NULL;
    ret->metadata = json_object_get(ret->object, "metadata");
    ret->uid = json_str(ret->metadata, "uid");
    if (ret->uid)
        return true;
    subject_done(ret);
    return false;
}

static enum self_result remove_finalizer(struct subject *s, const char *finalizer)
{
    registry_remove_finalizer(s->metadata, finalizer);
    return self_update(s->g, s->kind, s->stored, s->object, APISERVER_MAIN);
}

/* Removes the references to some uids (a map's keys). */
static enum self_result remove_references(struct subject *s, const struct map *uids)
{
    json_t *references = json_object_get(s->metadata, "ownerReferences");
    for (size_t i = json_array_size(references); i-- > 0;) {
        const char *uid = json_str(json_array_get(references, i), "uid");
        if (uid && map_has(uids, uid))
            json_array_remove(references, i);
    }
    if (!json_array_size(references))
        json_object_del(s->metadata, "ownerReferences");
    return self_update(s->g, s->kind, s->stored, s->object, APISERVER_MAIN);
}

/* Its dependents forget it, then it may go. */
static enum self_result orphan(struct subject *s)
{
    const struct map *ids = gc_index_dependents(&s->gc->index, s->uid);
    struct map uids = {0};
    enum self_result result = SELF_DONE;
    enqueue(&uids, s->uid);
    if (ids) {
        map_for_each(ids, it) {
            struct subject dependent;
            if (!subject_find(s->gc, s->g, it->key, &dependent))
                continue;
            if (remove_references(&dependent, &uids) != SELF_DONE)
                result = SELF_AGAIN;
            subject_done(&dependent);
        }
    }
    map_done(&uids);
    return result == SELF_DONE ? remove_finalizer(s, APISERVER_ORPHAN_FINALIZER) : result;
}

enum owner { OWNER_GONE, OWNER_THERE, OWNER_WAITING };

static enum owner find_owner(struct subject *s, const json_t *reference)
{
    const char *version = json_str(reference, "apiVersion"), *name = json_str(reference, "name");
    const char *kind_name = json_str(reference, "kind"), *uid = json_str(reference, "uid");
    const struct api_kind *kind =
        version && kind_name ? apiserver_kind_find(s->g, version, kind_name) : NULL;
    _cleanup_free_ char *namespace = self_namespace(s->stored->key);
    bool wide = kind && kind->flags & API_CLUSTER_SCOPED;
    if (!kind || !name || !uid || (!wide && !namespace))
        return OWNER_THERE;
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    struct apiserver_request r = {.kind = kind, .namespace = wide ? NULL : namespace};
    apiserver_collection(kind, &collection);
    apiserver_key(&r, name, &key);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        apiserver_store_get(s->g->store, str_get(&collection), str_get(&key));
    json_auto_t *object = o ? self_parse(o) : NULL;
    const json_t *metadata = json_object_get(object, "metadata");
    const char *its_uid = json_str(metadata, "uid");
    if (!its_uid || !str_eq(its_uid, uid))
        return OWNER_GONE;
    return json_object_get(metadata, "deletionTimestamp") &&
                   registry_has_finalizer(metadata, APISERVER_FOREGROUND_FINALIZER)
               ? OWNER_WAITING
               : OWNER_THERE;
}

/* In a ring of owners that wait for each other, none would ever go. */
static bool is_in_ring(const struct subject *s)
{
    const struct map *ids = gc_index_dependents(&s->gc->index, s->uid);
    map_for_each(&s->gc->waiting, it) {
        if (ids && map_has(ids, it->value))
            return true;
    }
    return false;
}

/* None of its owners wants it: deletes it, the way that its own dependents call for. */
static enum self_result delete_with(struct subject *s, bool owner_waits)
{
    bool has_dependents = gc_index_dependents(&s->gc->index, s->uid) != NULL;
    if (!owner_waits || !has_dependents)
        return self_delete(s->g, s->kind, s->stored, APISERVER_PROPAGATE_AS_IS);
    if (is_in_ring(s)) {
        bool changed = false;
        size_t i;
        json_t *reference;
        json_array_foreach(json_object_get(s->metadata, "ownerReferences"), i, reference) {
            changed |= json_is_true(json_object_get(reference, "blockOwnerDeletion"));
            json_object_set_new(reference, "blockOwnerDeletion", json_false());
        }
        if (changed) {
            self_update(s->g, s->kind, s->stored, s->object, APISERVER_MAIN);
            return SELF_AGAIN; /* and then it is deleted, as it is by then */
        }
    }
    return self_delete(s->g, s->kind, s->stored, APISERVER_PROPAGATE_FOREGROUND);
}

static enum self_result look_at_owners(struct subject *s)
{
    struct map unneeded = {0};
    bool there = false, waiting = false;
    size_t i;
    json_t *reference;
    const json_t *references = json_object_get(s->metadata, "ownerReferences");
    json_array_foreach(references, i, reference) {
        enum owner owner = find_owner(s, reference);
        there |= owner == OWNER_THERE;
        waiting |= owner == OWNER_WAITING;
        if (owner != OWNER_THERE)
            enqueue(&unneeded, json_str(reference, "uid"));
    }
    enum self_result result = SELF_DONE;
    if (unneeded.count && there)
        result = remove_references(s, &unneeded);
    else if (unneeded.count)
        result = delete_with(s, waiting);
    map_done(&unneeded);
    return result;
}

static enum self_result look_at(struct subject *s)
{
    if (!json_object_get(s->metadata, "deletionTimestamp"))
        return look_at_owners(s);
    if (registry_has_finalizer(s->metadata, APISERVER_ORPHAN_FINALIZER))
        return orphan(s);
    if (registry_has_finalizer(s->metadata, APISERVER_FOREGROUND_FINALIZER) &&
        !gc_index_is_blocked(&s->gc->index, s->uid))
        return remove_finalizer(s, APISERVER_FOREGROUND_FINALIZER);
    return SELF_DONE;
}

static void tick(struct apiserver *a)
{
    struct gc *gc = a->gc;
    int64_t now = clock_mono_ns(a->registry.clock);
    if (now >= gc->retry_at) {
        map_for_each(&gc->later, it)
            enqueue(&gc->queue, it->key);
        map_done(&gc->later);
        gc->later = (struct map){0};
        gc->retry_at = now + RETRY_NS;
    }
    struct map work = gc->queue;
    gc->queue = (struct map){0};
    size_t n = 0;
    map_for_each(&work, it) {
        struct subject s;
        if (n++ >= MOST_AT_ONCE) { /* others want to go on, too */
            enqueue(&gc->queue, it->key);
            continue;
        }
        if (!subject_find(gc, &a->registry, it->key, &s))
            continue;
        if (look_at(&s) != SELF_DONE)
            enqueue(&gc->later, it->key);
        subject_done(&s);
    }
    map_done(&work);
    if (gc->queue.count)
        apiserver_follow_wake(a->follow);
}

static void stop(struct apiserver *a)
{
    struct gc *gc = a->gc;
    if (!gc)
        return;
    gc_index_done(&gc->index);
    map_for_each(&gc->waiting, it)
        free(it->value);
    map_done(&gc->waiting);
    map_done(&gc->queue);
    map_done(&gc->later);
    free(gc);
    a->gc = NULL;
}

static void see_one(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    see(context, o);
}

static void resync(struct apiserver *a)
{
    stop(a);
    a->gc = NEW(struct gc);
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set =
        apiserver_kinds_get(&a->registry);
    for (const struct api_kind *const *k = set->all; *k; k++) {
        if (!((*k)->flags & (API_REVIEW | API_SIBLING)))
            self_each(&a->registry, *k, NULL, see_one, a->gc);
    }
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    if (event->change == APISERVER_DELETED)
        gone(a->gc, event->object);
    else
        see(a->gc, event->object);
}

const struct apiserver_follower gc_follower = {"gc", resync, changed, tick, stop};

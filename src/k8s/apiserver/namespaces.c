/*
 * Namespaces that are deleted are emptied: every object in one is deleted, of every kind, and when
 * the last is gone (finalizers may keep some for long) the namespace goes too. Meanwhile its
 * conditions say what is left.
 *
 * Nothing new comes into such a namespace (rules_namespace.c), so one look that finds it empty is
 * enough.
 */
#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

struct namespaces {
    struct map going; /* names of those that are deleted -> &dirty or &clean */
    int64_t retry_at;
};

static char dirty, clean;
static const int64_t RETRY_NS = 5 * CLOCK_SECOND;

/* What is left of a namespace. */
struct rest {
    struct apiserver_registry *g;
    size_t total;
    size_t of_kind;
    struct map finalizers; /* name -> size_t, owned: how many objects have it */
    struct str kinds;      /* "pods. has 2 resource instances, ..." */
};

static void count_finalizers(struct rest *rest, const json_t *metadata)
{
    size_t i;
    json_t *finalizer;
    json_array_foreach(json_object_get(metadata, "finalizers"), i, finalizer) {
        const char *name = json_string_value(finalizer);
        size_t *n = name ? map_get(&rest->finalizers, name) : NULL;
        if (name && !n) {
            n = NEW(size_t);
            map_set(&rest->finalizers, name, n);
        }
        if (n)
            (*n)++;
    }
}

static void delete_one(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    struct rest *rest = context;
    if (!self_is_deleted(o))
        self_delete(rest->g, kind, o, APISERVER_PROPAGATE_BACKGROUND);
}

static void count_one(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    struct rest *rest = context;
    json_auto_t *object = self_parse(o);
    rest->of_kind++;
    count_finalizers(rest, json_object_get(object, "metadata"));
}

static void empty(struct rest *rest, const char *namespace)
{
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set = apiserver_kinds_get(rest->g);
    for (const struct api_kind *const *k = set->all; *k; k++) {
        if ((*k)->flags & (API_CLUSTER_SCOPED | API_REVIEW | API_SIBLING))
            continue;
        self_each(rest->g, *k, namespace, delete_one, rest);
        rest->of_kind = 0;
        self_each(rest->g, *k, namespace, count_one, rest);
        rest->total += rest->of_kind;
        if (rest->of_kind)
            str_appendf(&rest->kinds, "%s%s.%s has %zu resource instances",
                        rest->kinds.len ? ", " : "", (*k)->plural, api_kind_canonical(*k)->group,
                        rest->of_kind);
    }
}

static void rest_done(struct rest *rest)
{
    map_for_each(&rest->finalizers, it)
        free(it->value);
    map_done(&rest->finalizers);
    str_done(&rest->kinds);
}

/* Sets one condition; the time of the last transition changes with its status only. */
static void set_condition(json_t *conditions, const char *now, const char *type, bool status,
                          const char *reason, const char *message)
{
    json_t *condition = NULL, *each;
    size_t i;
    json_array_foreach(conditions, i, each) {
        const char *its_type = json_str(each, "type");
        if (its_type && str_eq(its_type, type))
            condition = each;
    }
    if (!condition) {
        condition = json_pack("{s:s}", "type", type);
        json_array_append_new(conditions, condition);
    }
    const char *was = json_str(condition, "status"), *is = status ? "True" : "False";
    if (!was || !str_eq(was, is))
        json_object_set_new(condition, "lastTransitionTime", json_string(now));
    json_object_set_new(condition, "status", json_string(is));
    json_object_set_new(condition, "reason", json_string(reason));
    json_object_set_new(condition, "message", json_string(message));
}

static void set_conditions(const struct apiserver_registry *g, json_t *status,
                           const struct rest *rest)
{
    char now[RFC3339_MAX];
    registry_now(g, now);
    json_t *list = json_array_at(status, "conditions");
    set_condition(list, now, "NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
                  "All resources successfully discovered");
    set_condition(list, now, "NamespaceDeletionGroupVersionParsingFailure", false,
                  "ParsedGroupVersions", "All legacy kube types successfully parsed");
    set_condition(list, now, "NamespaceDeletionContentFailure", false, "ContentDeleted",
                  "All content successfully deleted, may be waiting on finalization");
    _cleanup_(str_done) struct str text = {0};
    str_appendf(&text, "Some resources are remaining: %s", str_get(&rest->kinds));
    set_condition(list, now, "NamespaceContentRemaining", rest->total > 0,
                  rest->total ? "SomeResourcesRemain" : "ContentRemoved",
                  rest->total ? str_get(&text) : "All content successfully removed");
    str_clear(&text);
    map_for_each(&rest->finalizers, it)
        str_appendf(&text, "%s%s in %zu resource instances",
                    text.len ? ", " : "Some content in the namespace has finalizers remaining: ",
                    it->key, *(const size_t *)it->value);
    set_condition(list, now, "NamespaceFinalizersRemaining", text.len > 0,
                  text.len ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
                  text.len ? str_get(&text) : "All content-preserving finalizers finished");
}

/* One step towards its end. */
static enum self_result step(struct apiserver_registry *g, const char *name)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(&api_namespace, &collection);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        apiserver_store_get(g->store, str_get(&collection), name);
    json_auto_t *object = o ? self_parse(o) : NULL;
    json_t *finalizers = json_object_get(json_object_get(object, "spec"), "finalizers");
    if (!json_array_size(finalizers))
        return SELF_DONE; /* ours is done */
    struct rest rest = {.g = g};
    empty(&rest, name);
    enum self_result result;
    if (rest.total) {
        json_t *status = json_object_get(object, "status");
        set_conditions(g, status, &rest);
        result = self_update(g, &api_namespace, o, object, APISERVER_STATUS);
    } else {
        for (size_t i = json_array_size(finalizers); i-- > 0;) {
            const char *finalizer = json_string_value(json_array_get(finalizers, i));
            if (finalizer && str_eq(finalizer, "kubernetes"))
                json_array_remove(finalizers, i);
        }
        result = self_update(g, &api_namespace, o, object, APISERVER_FINALIZE);
    }
    rest_done(&rest);
    return result;
}

static void tick(struct apiserver *a)
{
    struct namespaces *n = a->namespaces;
    int64_t now = clock_mono_ns(a->registry.clock);
    bool retry = now >= n->retry_at; /* what failed may be possible now */
    if (retry)
        n->retry_at = now + RETRY_NS;
    map_for_each(&n->going, it) {
        if (it->value == &clean && !retry)
            continue;
        it->value = &clean;
        if (step(&a->registry, it->key) != SELF_DONE)
            n->retry_at = now + CLOCK_SECOND;
    }
}

static void see(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    struct namespaces *n = context;
    if (self_is_deleted(o))
        map_set(&n->going, o->key, &dirty);
}

static void stop(struct apiserver *a)
{
    if (!a->namespaces)
        return;
    map_done(&a->namespaces->going);
    free(a->namespaces);
    a->namespaces = NULL;
}

static void resync(struct apiserver *a)
{
    stop(a);
    a->namespaces = NEW(struct namespaces);
    self_each(&a->registry, &api_namespace, NULL, see, a->namespaces);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    struct namespaces *n = a->namespaces;
    if (apiserver_kind_of(&a->registry, event->object->collection) == &api_namespace) {
        if (event->change == APISERVER_DELETED)
            map_remove(&n->going, event->object->key);
        else if (!map_has(&n->going, event->object->key)) /* else it is our own note of progress */
            see(n, &api_namespace, event->object);
        return;
    }
    if (!n->going.count)
        return;
    _cleanup_free_ char *namespace = self_namespace(event->object->key);
    if (namespace && map_has(&n->going, namespace))
        map_set(&n->going, namespace, &dirty);
}

const struct apiserver_follower namespaces_follower = {"namespaces", resync, changed, tick, stop};

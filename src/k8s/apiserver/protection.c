/*
 * Claims and volumes that are used stay, though they are deleted: the finalizers that
 * rules_storage.c gives them go when no pod uses the claim and no claim has the volume.
 */
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

struct protection {
    struct map claims, volumes; /* keys of those that are deleted and protected */
    bool dirty;
    int64_t retry_at;
};

static const int64_t RETRY_NS = 5 * CLOCK_SECOND;

struct user {
    const char *claim; /* its name */
    bool found;
};

static bool mounts(const json_t *pod, const char *claim)
{
    size_t i;
    json_t *volume;
    json_array_foreach(json_at(pod, "spec", "volumes"), i, volume) {
        const char *name = json_str(json_object_get(volume, "persistentVolumeClaim"), "claimName");
        if (name && str_eq(name, claim))
            return true;
    }
    return false;
}

/* A pod uses its claims from when it has a node until it has ended. */
static void look_at_pod(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    static const char *const ended[] = {"Succeeded", "Failed", NULL};
    struct user *user = context;
    if (user->found || !strstr(o->bytes, "\"persistentVolumeClaim\""))
        return;
    json_auto_t *pod = self_parse(o);
    const char *node = json_str(json_object_get(pod, "spec"), "nodeName");
    const char *phase = json_str(json_object_get(pod, "status"), "phase");
    user->found = node && *node && !(phase && str_in(phase, ended)) && mounts(pod, user->claim);
}

static bool claim_is_used(struct apiserver_registry *g, const struct apiserver_object *o,
                          const json_t *claim)
{
    _cleanup_free_ char *namespace = self_namespace(o->key);
    struct user user = {.claim = json_text(claim, "metadata", "name")};
    self_each(g, &api_pod, namespace, look_at_pod, &user);
    return user.found;
}

static bool volume_is_used(struct apiserver_registry *g, const struct apiserver_object *o,
                           const json_t *volume)
{
    (void)g;
    (void)o;
    return str_eq(json_text(volume, "status", "phase"), "Bound");
}

static const struct protected
{
    const struct api_kind *kind;
    const char *finalizer;
    bool (*is_used)(struct apiserver_registry * g, const struct apiserver_object *o,
                    const json_t *object);
}
protected[] = {
    {&api_persistent_volume_claim, RULES_CLAIM_FINALIZER, claim_is_used},
    {&api_persistent_volume, RULES_VOLUME_FINALIZER, volume_is_used},
};

static void release(struct apiserver_registry *g, const struct protected *p, struct map *keys)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(p->kind, &collection);
    map_for_each(keys, it) {
        _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
            apiserver_store_get(g->store, str_get(&collection), it->key);
        json_auto_t *object = o ? self_parse(o) : NULL;
        json_t *metadata = json_object_get(object, "metadata");
        if (!registry_has_finalizer(metadata, p->finalizer)) {
            map_remove(keys, it->key);
        } else if (!p->is_used(g, o, object)) {
            registry_remove_finalizer(metadata, p->finalizer);
            if (self_update(g, p->kind, o, object, APISERVER_MAIN) == SELF_DONE)
                map_remove(keys, it->key);
        }
    }
}

static void tick(struct apiserver *a)
{
    struct protection *p = a->protection;
    int64_t now = clock_mono_ns(a->registry.clock);
    if (!p->dirty && now < p->retry_at)
        return;
    p->dirty = false;
    p->retry_at = now + RETRY_NS;
    release(&a->registry, &protected[0], &p -> claims);
    release(&a->registry, &protected[1], &p -> volumes);
}

static void see(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    struct protection *p = context;
    if (!self_is_deleted(o))
        return;
    map_set(kind == &api_persistent_volume ? &p->volumes : &p->claims, o->key, p);
    p->dirty = true;
}

static void stop(struct apiserver *a)
{
    if (!a->protection)
        return;
    map_done(&a->protection->claims);
    map_done(&a->protection->volumes);
    free(a->protection);
    a->protection = NULL;
}

static void resync(struct apiserver *a)
{
    stop(a);
    a->protection = NEW(struct protection);
    for (size_t i = 0; i < ARRAY_SIZE(protected); i++)
        self_each(&a->registry, protected[i].kind, NULL, see, a->protection);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    const struct api_kind *kind = apiserver_kind_of(&a->registry, event->object->collection);
    struct protection *p = a->protection;
    if (kind == &api_pod)
        p->dirty |= p->claims.count > 0;
    else if (event->change != APISERVER_DELETED &&
             (kind == &api_persistent_volume || kind == &api_persistent_volume_claim))
        see(p, kind, event->object);
}

const struct apiserver_follower protection_follower = {"protection", resync, changed, tick, stop};

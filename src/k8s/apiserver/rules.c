#include "k8s/apiserver/rules.h"

struct apiserver_rules *apiserver_rules_new(const struct apiserver_features *features)
{
    struct apiserver_rules *rules = NEW(struct apiserver_rules);
    if (features)
        rules->features = *features;
    pthread_rwlock_init(&rules->namespaces, NULL);
    pthread_mutex_init(&rules->lock, NULL);
    list_init(&rules->reservations);
    list_init(&rules->flights);
    pthread_mutex_init(&rules->addresses.lock, NULL);
    list_init(&rules->addresses.reserved);
    rules_service_range(rules, NULL, NULL);
    return rules;
}

void apiserver_rules_free(struct apiserver_rules *rules)
{
    if (!rules)
        return;
    pthread_mutex_destroy(&rules->addresses.lock);
    pthread_mutex_destroy(&rules->lock);
    pthread_rwlock_destroy(&rules->namespaces);
    free(rules);
}

struct apiserver_object *rules_find(struct apiserver_registry *g, const struct api_kind *kind,
                                    const char *namespace, const char *name)
{
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    struct apiserver_request r = {.kind = kind, .namespace = namespace};
    apiserver_collection(kind, &collection);
    apiserver_key(&r, name, &key);
    return apiserver_store_get(g->store, str_get(&collection), str_get(&key));
}

json_t *rules_get(struct apiserver_registry *g, const struct api_kind *kind, const char *namespace,
                  const char *name)
{
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        rules_find(g, kind, namespace, name);
    return o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
}

bool rules_concern(const struct apiserver_admission *a, const struct api_kind *kind)
{
    return a->request->kind == kind && a->request->subresource == APISERVER_MAIN;
}

const char *rules_name(const struct apiserver_admission *a)
{
    const char *name = json_str(json_at(a->object ? a->object : a->old, "metadata"), "name");
    return name ? name : "";
}

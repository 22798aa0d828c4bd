#include "kube/pair.h"

void kube_pair_init(struct kube_pair *p, struct kube_manager *m, const char *first,
                    const char *second, const char *kind)
{
    const char *const versions[KUBE_PAIR] = {first, second};
    for (size_t i = 0; i < KUBE_PAIR; i++) {
        p->resources[i] = kube_resource(versions[i], kind);
        p->resources[i].optional = true;
        p->informers[i] = kube_manager_informer(m, p->resources[i], NULL, NULL, NULL);
    }
}

void kube_pair_add_index(struct kube_pair *p, const struct kube_index *index)
{
    for (size_t i = 0; i < KUBE_PAIR; i++)
        kube_informer_add_index(p->informers[i], index);
}

void kube_pair_watch(struct kube_pair *p, struct kube_controller *c, struct kube_source source)
{
    for (size_t i = 0; i < KUBE_PAIR; i++) {
        source.informer = p->informers[i];
        kube_controller_watch(c, source);
    }
}

/* Of two names of one object the first group's counts, be it found by this value there or not. */
static bool is_known(struct kube_pair *p, const struct kube_object *o)
{
    _cleanup_(kube_object_unrefp) struct kube_object *first =
        kube_informer_get(p->informers[0], NULL, o->name);
    return first && str_eq(first->uid, o->uid);
}

void kube_pair_find(struct kube_pair *p, const char *index, const char *value,
                    struct kube_objects *ret_list)
{
    kube_informer_find(p->informers[0], index, value, ret_list);
    _cleanup_(kube_objects_done) struct kube_objects second = {0};
    kube_informer_find(p->informers[1], index, value, &second);
    for (size_t i = 0; i < second.len; i++) {
        if (!is_known(p, second.p[i]))
            vec_push(ret_list, kube_object_ref(second.p[i]));
    }
}

struct kube_object *kube_pair_get(struct kube_pair *p, const char *name)
{
    struct kube_object *o = kube_informer_get(p->informers[0], NULL, name);
    return o ? o : kube_informer_get(p->informers[1], NULL, name);
}

json_t *kube_pair_json(struct kube_pair *p, const char *name)
{
    _cleanup_(kube_object_unrefp) struct kube_object *o = kube_pair_get(p, name);
    return o ? kube_object_json(o) : NULL;
}

const struct kube_resource *kube_pair_of(const struct kube_pair *p, const json_t *object)
{
    const char *version = json_str(object, "apiVersion");
    return &p->resources[version && str_eq(version, p->resources[1].api_version)];
}

static bool is_of(const struct kube_resource *r, const char *group)
{
    size_t n = strlen(group);
    return strncmp(r->api_version, group, n) == 0 && r->api_version[n] == '/';
}

const struct kube_resource *kube_pair_prefer(const struct kube_pair *p, const char *group)
{
    size_t i = is_of(&p->resources[1], group);
    return &p->resources[kube_informer_served(p->informers[i]) ? i : !i];
}

bool kube_pair_served(const struct kube_pair *p, const char *group)
{
    for (size_t i = 0; i < KUBE_PAIR; i++) {
        if ((!group || is_of(&p->resources[i], group)) && kube_informer_served(p->informers[i]))
            return true;
    }
    return false;
}

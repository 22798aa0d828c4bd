#include "controllers/topolvm/lvs.h"

#include "controllers/topolvm/capacity.h"

static const char *const versions[TOPOLVM_GROUPS] = {TOPOLVM_LEGACY "/v1", TOPOLVM_GROUP "/v1"};

void topolvm_lvs_init(struct topolvm_lvs *l, struct kube_manager *m)
{
    for (size_t i = 0; i < TOPOLVM_GROUPS; i++) {
        l->resources[i] = kube_resource(versions[i], "LogicalVolume");
        l->resources[i].optional = true;
        l->informers[i] = kube_manager_informer(m, l->resources[i], NULL, NULL, NULL);
    }
}

void topolvm_lvs_add_index(struct topolvm_lvs *l, const struct kube_index *index)
{
    for (size_t i = 0; i < TOPOLVM_GROUPS; i++)
        kube_informer_add_index(l->informers[i], index);
}

void topolvm_lvs_watch(struct topolvm_lvs *l, struct kube_controller *c, struct kube_source source)
{
    for (size_t i = 0; i < TOPOLVM_GROUPS; i++) {
        source.informer = l->informers[i];
        kube_controller_watch(c, source);
    }
}

/* Of two names of one object the first group's counts, be it found by this value there or not. */
static bool is_known(struct topolvm_lvs *l, const struct kube_object *o)
{
    _cleanup_(kube_object_unrefp) struct kube_object *first =
        kube_informer_get(l->informers[0], NULL, o->name);
    return first && str_eq(first->uid, o->uid);
}

void topolvm_lvs_find(struct topolvm_lvs *l, const char *index, const char *value,
                      struct kube_objects *ret_list)
{
    kube_informer_find(l->informers[0], index, value, ret_list);
    _cleanup_(kube_objects_done) struct kube_objects second = {0};
    kube_informer_find(l->informers[1], index, value, &second);
    for (size_t i = 0; i < second.len; i++) {
        if (!is_known(l, second.p[i]))
            vec_push(ret_list, kube_object_ref(second.p[i]));
    }
}

struct kube_object *topolvm_lvs_get(struct topolvm_lvs *l, const char *name)
{
    struct kube_object *o = kube_informer_get(l->informers[0], NULL, name);
    return o ? o : kube_informer_get(l->informers[1], NULL, name);
}

json_t *topolvm_lvs_json(struct topolvm_lvs *l, const char *name)
{
    _cleanup_(kube_object_unrefp) struct kube_object *o = topolvm_lvs_get(l, name);
    return o ? kube_object_json(o) : NULL;
}

json_t *topolvm_lvs_ask(struct topolvm_lvs *l, struct kube_client *client, const char *name,
                        struct err *e)
{
    json_t *lv = kube_get(client, &l->resources[0], NULL, name, e);
    return lv || e->code != ERR_NOT_FOUND ? lv : kube_get(client, &l->resources[1], NULL, name, e);
}

const struct kube_resource *topolvm_lvs_of(const struct topolvm_lvs *l, const json_t *lv)
{
    const char *version = json_str(lv, "apiVersion");
    return &l->resources[version && str_eq(version, versions[1])];
}

const struct kube_resource *topolvm_lvs_for(const struct topolvm_lvs *l, const char *provisioner)
{
    size_t i = str_eq(provisioner, TOPOLVM_GROUP);
    return &l->resources[kube_informer_served(l->informers[i]) ? i : !i];
}

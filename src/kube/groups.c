#include "kube/groups.h"

#include "base/map.h"
#include "kube/object.h"

/* In caches. */

void kube_groups_init(struct kube_groups *g, struct kube_manager *m, const char *first,
                      const char *second, const char *kind)
{
    kube_groups_init_some(g, m, first, second, kind, NULL, NULL);
}

void kube_groups_init_some(struct kube_groups *g, struct kube_manager *m, const char *first,
                           const char *second, const char *kind, const char *ns, const char *labels)
{
    const char *const versions[KUBE_GROUPS] = {first, second};
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        g->resources[i] = kube_resource(versions[i], kind);
        g->resources[i].optional = true;
        g->informers[i] = kube_manager_informer(m, g->resources[i], ns, labels, NULL);
    }
}

void kube_groups_add_index(struct kube_groups *g, const struct kube_index *index)
{
    for (size_t i = 0; i < KUBE_GROUPS; i++)
        kube_informer_add_index(g->informers[i], index);
}

void kube_groups_watch(struct kube_groups *g, struct kube_controller *c, struct kube_source source)
{
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        source.informer = g->informers[i];
        kube_controller_watch(c, source);
    }
}

/* Of two names of one object the first group's counts, be it found by this value there or not. */
static bool is_known(struct kube_groups *g, const struct kube_object *o)
{
    _cleanup_(kube_object_unrefp) struct kube_object *first =
        kube_informer_get(g->informers[0], g->resources[0].namespaced ? o->ns : NULL, o->name);
    return first && str_eq(first->uid, o->uid);
}

/* Appends those of the second group that the first has not. */
static void add_others(struct kube_groups *g, const struct kube_objects *second,
                       struct kube_objects *ret_list)
{
    for (size_t i = 0; i < second->len; i++) {
        if (!is_known(g, second->p[i]))
            vec_push(ret_list, kube_object_ref(second->p[i]));
    }
}

void kube_groups_list(struct kube_groups *g, struct kube_objects *ret_list)
{
    _cleanup_(kube_objects_done) struct kube_objects second = {0};
    kube_informer_list(g->informers[0], NULL, ret_list);
    kube_informer_list(g->informers[1], NULL, &second);
    add_others(g, &second, ret_list);
}

void kube_groups_find(struct kube_groups *g, const char *index, const char *value,
                      struct kube_objects *ret_list)
{
    _cleanup_(kube_objects_done) struct kube_objects second = {0};
    kube_informer_find(g->informers[0], index, value, ret_list);
    kube_informer_find(g->informers[1], index, value, &second);
    add_others(g, &second, ret_list);
}

struct kube_object *kube_groups_get(struct kube_groups *g, const char *ns, const char *name)
{
    struct kube_object *o = kube_informer_get(g->informers[0], ns, name);
    return o ? o : kube_informer_get(g->informers[1], ns, name);
}

json_t *kube_groups_json(struct kube_groups *g, const char *ns, const char *name)
{
    _cleanup_(kube_object_unrefp) struct kube_object *o = kube_groups_get(g, ns, name);
    return o ? kube_object_json(o) : NULL;
}

int kube_groups_is_first(struct kube_groups *g, struct kube_client *c, const json_t *object,
                         struct err *e)
{
    const struct kube_resource *r = &g->resources[0];
    const char *ns = r->namespaced ? kube_namespace(object) : NULL, *name = kube_name(object);
    if (kube_groups_of(g, object) == r || !kube_informer_served(g->informers[0]))
        return 0;
    _cleanup_(kube_object_unrefp) struct kube_object *first =
        kube_informer_get(g->informers[0], ns, name);
    if (first && str_eq(first->uid, kube_uid(object)))
        return 1;
    struct err why = {0};
    json_auto_t *there = kube_get(c, r, ns, name, &why);
    if (there || why.code == ERR_NOT_FOUND)
        return there && str_eq(kube_uid(there), kube_uid(object));
    *e = why;
    return -1;
}

const struct kube_resource *kube_groups_of(const struct kube_groups *g, const json_t *object)
{
    const char *version = json_str(object, "apiVersion");
    return &g->resources[version && str_eq(version, g->resources[1].api_version)];
}

static bool is_of(const struct kube_resource *r, const char *group)
{
    size_t n = strlen(group);
    return strncmp(r->api_version, group, n) == 0 && r->api_version[n] == '/';
}

const struct kube_resource *kube_groups_prefer(const struct kube_groups *g, const char *group)
{
    size_t i = is_of(&g->resources[1], group);
    return &g->resources[kube_informer_served(g->informers[i]) ? i : !i];
}

bool kube_groups_served(const struct kube_groups *g, const char *group)
{
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        if ((!group || is_of(&g->resources[i], group)) && kube_informer_served(g->informers[i]))
            return true;
    }
    return false;
}

/* Of the server. */

enum { VERSION_MAX = 128 };

static struct kube_resource resource_in(const struct api_kind *kind,
                                        const struct api_group_version *gv, char buf[VERSION_MAX])
{
    return (struct kube_resource){.api_version = api_version_text(gv, buf),
                                  .kind = kind->kind,
                                  .plural = kind->plural,
                                  .namespaced = !(kind->flags & API_CLUSTER_SCOPED)};
}

/* Items of lists need not say what they are. */
static void say_where(json_t *object, const struct kube_resource *r)
{
    json_object_set_new(object, "apiVersion", json_string(r->api_version));
    json_object_set_new(object, "kind", json_string(r->kind));
}

json_t *kube_get_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                     const char *name, struct err *e)
{
    char buf[VERSION_MAX];
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        const struct kube_resource r = resource_in(kind, gv, buf);
        struct err why = {0};
        json_t *found = kube_get(c, &r, ns, name, &why);
        if (found) {
            say_where(found, &r);
            return found;
        }
        if (gv == kind->versions || why.code != ERR_NOT_FOUND)
            *e = why; /* of several that are not there, the first is the name that people know */
        if (why.code != ERR_NOT_FOUND)
            return NULL;
    }
    return NULL;
}

json_t *kube_list_any(struct kube_client *c, const struct api_kind *kind, const char *ns,
                      const struct kube_query *q, struct err *e)
{
    char buf[VERSION_MAX];
    json_auto_t *all = json_array();
    struct map seen = {0};
    struct err missing = {0}, why = {0};
    bool served = false;
    for (const struct api_group_version *gv = kind->versions; gv->group && !why.code; gv++) {
        const struct kube_resource r = resource_in(kind, gv, buf);
        size_t i;
        json_t *item;
        json_auto_t *items = kube_list(c, &r, ns, q, &why);
        served |= items != NULL;
        if (!items && why.code == ERR_NOT_FOUND) {
            missing = why;
            why = (struct err){0};
        }
        json_array_foreach(items, i, item) {
            if (map_set(&seen, kube_uid(item), all))
                continue;
            say_where(item, &r);
            json_array_append(all, item);
        }
    }
    map_done(&seen);
    if (!why.code && !served)
        why = missing;
    if (!why.code)
        return json_incref(all);
    *e = why;
    return NULL;
}

struct kube_resource kube_resource_of(const json_t *object)
{
    return kube_resource(json_str(object, "apiVersion"), json_str(object, "kind"));
}

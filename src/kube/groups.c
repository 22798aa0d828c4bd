#include "kube/groups.h"

#include "base/map.h"
#include "kube/object.h"

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

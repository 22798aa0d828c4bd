/*
 * Other objects, asked of the API at the moment they are needed: a rule about claims must not be
 * judged by a cache that has not heard of the last one.
 *
 * A kind that has two groups (openebs.io and cstor.openebs.io) may be two definitions in a cluster, or
 * one collection under two names; so both are asked, and each object counts once.
 */
#include "admission/impl.h"
#include "api/admit.h"
#include "base/map.h"

static json_t *normal(const struct api_kind *kind, const json_t *object)
{
    return kind->flags & API_BUILTIN ? json_incref((json_t *)object) : api_read(kind, object);
}

static struct kube_resource resource_of(const struct api_kind *kind,
                                        const struct api_group_version *gv, char buf[128])
{
    return (struct kube_resource){.api_version = api_version_text(gv, buf),
                                  .kind = kind->kind,
                                  .plural = kind->plural,
                                  .namespaced = !(kind->flags & API_CLUSTER_SCOPED)};
}

json_t *admission_get(void *context, const struct api_kind *kind, const char *namespace,
                      const char *name, struct err *e)
{
    struct kube_client *client = context;
    char buf[128];
    for (const struct api_group_version *gv = kind->versions; gv->group; gv++) {
        const struct kube_resource r = resource_of(kind, gv, buf);
        struct err why = {0};
        json_auto_t *found = kube_get(client, &r, namespace, name, &why);
        if (found)
            return normal(kind, found);
        if (why.code != ERR_NOT_FOUND) {
            err_set(e, why.code, why.reason, "%s %s: %s", kind->kind, name, why.msg);
            return NULL;
        }
    }
    return NULL;
}

json_t *admission_list(void *context, const struct api_kind *kind, const char *namespace,
                       struct err *e)
{
    struct kube_client *client = context;
    json_auto_t *all = json_array();
    struct map seen = {0};
    struct err why = {0};
    char buf[128];
    for (const struct api_group_version *gv = kind->versions; gv->group && !why.code; gv++) {
        const struct kube_resource r = resource_of(kind, gv, buf);
        json_auto_t *items = kube_list(client, &r, namespace, NULL, &why);
        if (!items && why.code == ERR_NOT_FOUND)
            why = (struct err){0}; /* the cluster has not this group */
        size_t i;
        json_t *item;
        json_array_foreach(items, i, item) {
            if (!map_set(&seen, kube_uid(item), all))
                json_array_append_new(all, normal(kind, item));
        }
    }
    map_done(&seen);
    if (!why.code)
        return json_incref(all);
    err_set(e, why.code, why.reason, "%s: %s", kind->plural, why.msg);
    return NULL;
}

void admission_fulfil(void *context, const json_t *wish)
{
    struct kube_client *client = context;
    const struct kube_resource r = kube_resource("openebs.io/v1alpha1", json_str(wish, "kind"));
    struct err e = {0};
    json_auto_t *is = *kube_version(wish) ? kube_update(client, &r, wish, NULL, &e)
                                          : kube_create(client, &r, wish, NULL, &e);
    if (!is)
        log_info("left to the controller", LOG_S("object", kube_name(wish)), LOG_ERR(&e));
}

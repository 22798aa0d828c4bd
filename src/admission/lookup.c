/*
 * Other objects, asked of the API at the moment they are needed: a rule about claims must not be
 * judged by a cache that has not heard of the last one.
 *
 * A kind that has two groups (openebs.io and cstor.openebs.io) may be two definitions in a cluster, or
 * one collection under two names; so both are asked, and each object counts once.
 */
#include "admission/impl.h"
#include "api/admit.h"
#include "kube/groups.h"

static json_t *normal(const struct api_kind *kind, const json_t *object)
{
    return kind->flags & API_BUILTIN ? json_incref((json_t *)object) : api_read(kind, object);
}

json_t *admission_get(void *context, const struct api_kind *kind, const char *namespace,
                      const char *name, struct err *e)
{
    struct err why = {0};
    json_auto_t *found = kube_get_any(context, kind, namespace, name, &why);
    if (found)
        return normal(kind, found);
    if (why.code != ERR_NOT_FOUND)
        err_set(e, why.code, why.reason, "%s %s: %s", kind->kind, name, why.msg);
    return NULL;
}

json_t *admission_list(void *context, const struct api_kind *kind, const char *namespace,
                       struct err *e)
{
    struct err why = {0};
    json_auto_t *found = kube_list_any(context, kind, namespace, NULL, &why);
    if (!found && why.code != ERR_NOT_FOUND) {
        err_set(e, why.code, why.reason, "%s: %s", kind->plural, why.msg);
        return NULL;
    }
    json_t *all = json_array(), *item;
    size_t i;
    json_array_foreach(found, i, item)
        json_array_append_new(all, normal(kind, item));
    return all;
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

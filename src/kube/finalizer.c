#include "base/str.h"
#include "kube/condition.h"

static size_t find(const json_t *finalizers, const char *finalizer)
{
    size_t i = 0, n = json_array_size(finalizers);
    for (; i < n; i++) {
        const char *it = json_string_value(json_array_get(finalizers, i));
        if (it && str_eq(it, finalizer))
            break;
    }
    return i;
}

bool kube_finalizer_has(const json_t *object, const char *finalizer)
{
    const json_t *all = json_at(object, "metadata", "finalizers");
    return find(all, finalizer) < json_array_size(all);
}

/* Makes the list of finalizers this one, unless the object has changed meanwhile. */
static int write_list(struct kube_client *c, const struct kube_resource *r, json_t **object,
                      json_t *finalizers, struct err *e)
{
    json_auto_t *patch = json_pack("{s:{s:s,s:O}}", "metadata", "resourceVersion",
                                   kube_version(*object), "finalizers", finalizers);
    const char *ns = kube_namespace(*object);
    json_t *now =
        kube_patch(c, r, *ns ? ns : NULL, kube_name(*object), KUBE_MERGE_PATCH, patch, NULL, e);
    if (!now)
        return -1;
    json_decref(*object);
    *object = now;
    return 0;
}

/* A list of the caller's own. */
static json_t *list_of(const json_t *object)
{
    const json_t *all = json_at(object, "metadata", "finalizers");
    return json_is_array(all) ? json_copy((json_t *)all) : json_array();
}

int kube_finalizer_add(struct kube_client *c, const struct kube_resource *r, json_t **object,
                       const char *finalizer, struct err *e)
{
    if (kube_finalizer_has(*object, finalizer))
        return 0;
    json_auto_t *list = list_of(*object);
    json_array_append_new(list, json_string(finalizer));
    return write_list(c, r, object, list, e);
}

int kube_finalizer_remove(struct kube_client *c, const struct kube_resource *r, json_t **object,
                          const char *finalizer, struct err *e)
{
    if (!kube_finalizer_has(*object, finalizer))
        return 0;
    json_auto_t *list = list_of(*object);
    json_array_remove(list, find(list, finalizer));
    struct err why = {0};
    if (write_list(c, r, object, list, &why) == 0 || why.code == ERR_NOT_FOUND)
        return 0; /* an object that is gone has none */
    if (e)
        *e = why;
    return -1;
}

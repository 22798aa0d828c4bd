#include "k8s/apiserver/definition_cleanup.h"

#include "base/log.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/kinds/kinds.h"

bool definition_has_cleanup(const json_t *definition)
{
    size_t i;
    json_t *finalizer;
    const json_t *finalizers = json_at(definition, "metadata", "finalizers");
    json_array_foreach(finalizers, i, finalizer) {
        if (str_eq(json_string_value(finalizer), api_custom_resource_definition.cleanup))
            return true;
    }
    return false;
}

/* True when the object is gone. */
static bool delete_object(struct apiserver_registry *g, const struct api_kind *kind,
                          const struct apiserver_object *o)
{
    const char *slash = strrchr(o->key, '/');
    _cleanup_free_ char *namespace = slash ? mem_strndup(o->key, (size_t)(slash - o->key)) : NULL;
    struct apiserver_request r = {.user = &apiserver_self,
                                  .kind = kind,
                                  .namespace = namespace,
                                  .name = slash ? slash + 1 : o->key};
    bool gone = false;
    struct err e = {0};
    apiserver_object_unref(apiserver_delete(g, &r, &gone, &e));
    return gone || e.code == ERR_NOT_FOUND;
}

size_t definition_delete_objects(struct apiserver_registry *g, const struct api_kind *kind,
                                 const char *group, const char *plural)
{
    const struct api_group_version gv[] = {{group, "v1"}, {0}};
    const struct api_kind unserved = {.kind = plural,
                                      .plural = plural,
                                      .singular = plural,
                                      .versions = gv,
                                      .fields = api_type_and_meta};
    kind = kind ? kind : &unserved;
    struct apiserver_list list;
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(kind, &collection);
    if (apiserver_store_list(g->store, str_get(&collection), &(struct apiserver_list_options){0},
                             &list, NULL) < 0)
        return 1;
    size_t left = 0;
    vec_for_each(&list.objects, o)
        left += !delete_object(g, kind, *o);
    apiserver_list_done(&list);
    return left;
}

void definition_release(struct apiserver_registry *g, const char *name)
{
    struct err e = {0};
    struct api_report report = {0};
    struct apiserver_request r = {.user = &apiserver_self,
                                  .kind = &api_custom_resource_definition,
                                  .name = name,
                                  .unknown = API_UNKNOWN_IGNORE};
    struct apiserver_object *now = registry_current(g, &r, &e);
    json_auto_t *object = now ? json_parse(now->bytes, now->size, NULL, &e) : NULL;
    json_t *finalizers = json_object_get(json_object_get(object, "metadata"), "finalizers");
    apiserver_object_unref(now);
    for (size_t i = json_array_size(finalizers); i-- > 0;) {
        if (str_eq(json_string_value(json_array_get(finalizers, i)),
                   api_custom_resource_definition.cleanup))
            json_array_remove(finalizers, i);
    }
    if (object)
        apiserver_object_unref(apiserver_update(g, &r, object, &report, &e));
    if (e.code != ERR_OK && e.code != ERR_ABORTED && e.code != ERR_NOT_FOUND)
        log_warn("cannot end the deletion of a definition", LOG_S("name", name), LOG_ERR(&e));
    api_report_done(&report);
}

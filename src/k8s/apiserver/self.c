#include "k8s/apiserver/self.h"

#include "base/log.h"

json_t *self_parse(const struct apiserver_object *o)
{
    return json_parse(o->bytes, o->size, NULL, NULL);
}

bool self_is_deleted(const struct apiserver_object *o)
{
    if (!strstr(o->bytes, "\"deletionTimestamp\"")) /* cheaper than reading the object */
        return false;
    json_auto_t *object = self_parse(o);
    return json_at(object, "metadata", "deletionTimestamp") != NULL;
}

char *self_namespace(const char *key)
{
    const char *slash = strchr(key, '/');
    return slash ? mem_strndup(key, (size_t)(slash - key)) : NULL;
}

void self_each(struct apiserver_registry *g, const struct api_kind *kind, const char *namespace,
               void (*fn)(void *context, const struct api_kind *kind, struct apiserver_object *o),
               void *context)
{
    _cleanup_(str_done) struct str collection = {0}, prefix = {0};
    apiserver_collection(kind, &collection);
    if (namespace)
        str_appendf(&prefix, "%s/", namespace);
    struct apiserver_list_options options = {.prefix = namespace ? str_get(&prefix) : NULL};
    struct apiserver_list list;
    if (apiserver_store_list(g->store, str_get(&collection), &options, &list, NULL) == 0) {
        vec_for_each(&list.objects, o)
            fn(context, kind, *o);
    }
    apiserver_list_done(&list);
}

/* A request for an object, and the result of it. */
struct own {
    char *namespace;
    struct apiserver_request r;
};

static void own_done(struct own *own)
{
    free(own->namespace);
}

static struct own own_request(const struct api_kind *kind, const struct apiserver_object *o)
{
    const char *slash = strchr(o->key, '/');
    struct own own = {.namespace = self_namespace(o->key)};
    own.r = (struct apiserver_request){
        .kind = kind,
        .namespace = own.namespace,
        .name = slash ? slash + 1 : o->key,
        .unknown = API_UNKNOWN_IGNORE,
        .revision = o->revision,
    };
    return own;
}

static enum self_result result(const struct own *own, struct apiserver_object *o,
                               const struct err *e, const char *what)
{
    bool done = o || e->code == ERR_NOT_FOUND;
    if (!done && !str_eq(e->reason, "Conflict"))
        log_warn(what, LOG_S("kind", own->r.kind->kind), LOG_S("namespace", own->r.namespace),
                 LOG_S("name", own->r.name), LOG_ERR(e));
    apiserver_object_unref(o);
    return done ? SELF_DONE : SELF_AGAIN;
}

enum self_result self_delete(struct apiserver_registry *g, const struct api_kind *kind,
                             const struct apiserver_object *o,
                             enum apiserver_propagation propagation)
{
    _cleanup_(own_done) struct own own = own_request(kind, o);
    struct err e = {0};
    bool gone;
    own.r.propagation = propagation;
    struct apiserver_object *deleted = apiserver_delete(g, &own.r, &gone, &e);
    return result(&own, deleted, &e, "cannot delete an object that nobody needs");
}

enum self_result self_update(struct apiserver_registry *g, const struct api_kind *kind,
                             const struct apiserver_object *o, json_t *object,
                             enum apiserver_subresource subresource)
{
    _cleanup_(own_done) struct own own = own_request(kind, o);
    struct api_report report = {0};
    struct err e = {0};
    own.r.subresource = subresource;
    struct apiserver_object *stored = apiserver_is_status(subresource)
                                          ? apiserver_update_status(g, &own.r, object, &report, &e)
                                          : apiserver_update(g, &own.r, object, &report, &e);
    api_report_done(&report);
    return result(&own, stored, &e, "cannot update an object");
}

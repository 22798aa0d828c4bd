/*
 * /finalize of a namespace: the one way to change the finalizers in its spec.
 */
#include "k8s/apiserver/serve_impl.h"

void call_finalize(struct call *c)
{
    struct apiserver_request r = call_request(c);
    json_auto_t *body = call_body_object(c);
    json_auto_t *finalizers = json_incref((json_t *)json_at(body, "spec", "finalizers"));
    struct apiserver_object *o = NULL;
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(r.kind, &collection);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *there =
        apiserver_store_get(c->server->registry.store, str_get(&collection), c->path.name);
    json_auto_t *object = there ? json_parse(there->bytes, there->size, NULL, NULL) : NULL;
    if (body && !object) {
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "not found");
    } else if (body) {
        const char *revision = json_str(json_at(body, "metadata"), "resourceVersion");
        json_t *spec = json_object_at(object, "spec");
        if (finalizers)
            json_object_set(spec, "finalizers", finalizers);
        else
            json_object_del(spec, "finalizers");
        if (revision && *revision)
            json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                                json_string(revision));
        o = apiserver_update(&c->server->registry, &r, object, &c->report, &c->err);
    }
    call_reply_object(c, 200, o);
}

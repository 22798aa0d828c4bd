/*
 * Requests about one object.
 */
#include <stdio.h>

#include "kube/client_impl.h"
#include "kube/object.h"

/* Names come from users and from annotations: none may lead to another path. */
static int check_place(const struct kube_resource *r, const char *ns, const char *name,
                       struct err *e)
{
    bool bad = !name || !*name || str_eq(name, ".") || str_eq(name, "..");
    if (bad)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidName", "'%s' names no %s", name ? name : "",
                       r->kind);
    if (r->namespaced && (!ns || !*ns || str_eq(ns, ".") || str_eq(ns, "..")))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidName",
                       "the %s '%s' needs a namespace, and '%s' is none", r->kind, name,
                       ns ? ns : "");
    return 0;
}

json_t *kube_get(struct kube_client *c, const struct kube_resource *r, const char *ns,
                 const char *name, struct err *e)
{
    _cleanup_(str_done) struct str path = {0};
    if (check_place(r, ns, name, e) < 0)
        return NULL;
    kube_path_append(&path, r, ns, name, NULL);
    return kube_send_json(c, &(struct kube_request){.method = "GET", .path = path.p}, e);
}

static void append_write(struct str *path, const struct kube_client *c, const struct kube_write *w)
{
    kube_path_query(path, "fieldManager", c->manager);
    kube_path_query(path, "dryRun", w && w->dry_run ? "All" : NULL);
    kube_path_query(path, "force", w && w->force ? "true" : NULL);
}

static json_t *send_object(struct kube_client *c, const struct kube_resource *r, const char *method,
                           const json_t *object, const struct kube_write *w, struct err *e)
{
    _cleanup_(str_done) struct str path = {0};
    const char *sub = w ? w->subresource : NULL, *name = kube_name(object);
    bool create = str_eq(method, "POST");
    /* A name may be left to the server by generateName. */
    if (check_place(r, kube_namespace(object), create && !sub ? "x" : name, e) < 0)
        return NULL;
    kube_path_append(&path, r, kube_namespace(object), create && !sub ? NULL : name, sub);
    append_write(&path, c, w);
    return kube_send_json(
        c,
        &(struct kube_request){
            .method = method, .path = path.p, .body = object, .content_type = "application/json"},
        e);
}

json_t *kube_create(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e)
{
    return send_object(c, r, "POST", object, w, e);
}

json_t *kube_update(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e)
{
    return send_object(c, r, "PUT", object, w, e);
}

json_t *kube_patch(struct kube_client *c, const struct kube_resource *r, const char *ns,
                   const char *name, enum kube_patch type, const json_t *patch,
                   const struct kube_write *w, struct err *e)
{
    static const char *const types[] = {
        [KUBE_JSON_PATCH] = "application/json-patch+json",
        [KUBE_MERGE_PATCH] = "application/merge-patch+json",
        [KUBE_STRATEGIC_PATCH] = "application/strategic-merge-patch+json",
        [KUBE_APPLY] = "application/apply-patch+yaml",
    };
    _cleanup_(str_done) struct str path = {0};
    if (check_place(r, ns, name, e) < 0)
        return NULL;
    kube_path_append(&path, r, ns, name, w ? w->subresource : NULL);
    append_write(&path, c, w);
    return kube_send_json(
        c,
        &(struct kube_request){
            .method = "PATCH", .path = path.p, .body = patch, .content_type = types[type]},
        e);
}

static json_t *delete_options(const struct kube_delete *o)
{
    json_t *options = json_pack("{ss ss}", "apiVersion", "v1", "kind", "DeleteOptions");
    if (!o)
        return options;
    if (o->uid || o->resource_version) {
        json_t *conditions = json_object();
        if (o->uid)
            json_object_set_new(conditions, "uid", json_string(o->uid));
        if (o->resource_version)
            json_object_set_new(conditions, "resourceVersion", json_string(o->resource_version));
        json_object_set_new(options, "preconditions", conditions);
    }
    if (o->propagation)
        json_object_set_new(options, "propagationPolicy", json_string(o->propagation));
    if (o->grace_seconds >= 0)
        json_object_set_new(options, "gracePeriodSeconds", json_integer(o->grace_seconds));
    if (o->dry_run)
        json_object_set_new(options, "dryRun", json_pack("[s]", "All"));
    return options;
}

int kube_delete(struct kube_client *c, const struct kube_resource *r, const char *ns,
                const char *name, const struct kube_delete *o, struct err *e)
{
    _cleanup_(str_done) struct str path = {0};
    struct err why = {0};
    if (check_place(r, ns, name, e) < 0)
        return -1;
    kube_path_append(&path, r, ns, name, NULL);
    json_auto_t *options = delete_options(o);
    json_auto_t *answer = kube_send_json(c,
                                         &(struct kube_request){.method = "DELETE",
                                                                .path = path.p,
                                                                .body = options,
                                                                .content_type = "application/json"},
                                         &why);
    if (answer || why.code == ERR_NOT_FOUND)
        return 0;
    if (e)
        *e = why;
    return -1;
}

int kube_raw(struct kube_client *c, const char *method, const char *path, const json_t *body,
             struct str *ret_body, struct err *e)
{
    struct http_response r = {0};
    struct kube_call *call = kube_call_begin(c);
    int status = kube_send(c, call,
                           &(struct kube_request){.method = method,
                                                  .path = path,
                                                  .body = body,
                                                  .content_type = body ? "application/json" : NULL},
                           &r, e);
    kube_call_end(c, call);
    if (status == 0 && ret_body)
        str_append_n(ret_body, str_get(&r.body), r.body.len);
    http_response_done(&r);
    return status;
}

bool kube_serves(struct kube_client *c, const char *version)
{
    struct err e = {0};
    _cleanup_free_ char *path =
        mem_printf("%s/%s", strchr(version, '/') ? "/apis" : "/api", version);
    return kube_raw(c, "GET", path, NULL, NULL, &e) == 0 || e.code != ERR_NOT_FOUND;
}

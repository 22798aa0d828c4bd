/*
 * What a webhook is sent.
 */
#include "api/convert.h"
#include "k8s/apiserver/webhook_impl.h"

const char *webhook_operation(const struct apiserver_admission *a)
{
    static const char *const names[] = {[APISERVER_OP_CREATE] = "CREATE",
                                        [APISERVER_OP_UPDATE] = "UPDATE",
                                        [APISERVER_OP_DELETE] = "DELETE"};
    return names[a->operation];
}

/* An object, in whichever form, in a version. New reference. */
static json_t *in_version(const struct api_kind *kind, const json_t *object,
                          const struct api_group_version *gv)
{
    json_t *normal = api_read(kind, object);
    if (gv != api_kind_canonical(kind) && gv == &kind->versions[kind->published]) {
        struct api_report ignored = {0};
        json_t *published = api_convert(kind, normal, API_FORM_PUBLISHED, &ignored);
        api_report_done(&ignored);
        json_decref(normal);
        return published;
    }
    char text[128];
    json_object_set_new(normal, "apiVersion", json_string(api_version_text(gv, text)));
    return normal;
}

static json_t *group_version_kind(const struct api_group_version *gv, const char *key,
                                  const char *value)
{
    return json_pack("{s:s,s:s,s:s}", "group", gv->group, "version", gv->version, key, value);
}

static json_t *user_info(const struct apiserver_user *user)
{
    json_t *info = json_pack("{s:s}", "username", user->name), *groups = json_array();
    if (user->uid)
        json_object_set_new(info, "uid", json_string(user->uid));
    for (const char *const *group = user->groups; group && *group; group++)
        json_array_append_new(groups, json_string(*group));
    json_object_set_new(info, "groups", groups);
    if (user->extra)
        json_object_set(info, "extra", (json_t *)user->extra);
    return info;
}

static json_t *options_of(const struct apiserver_admission *a)
{
    static const char *const kinds[] = {[APISERVER_OP_CREATE] = "CreateOptions",
                                        [APISERVER_OP_UPDATE] = "UpdateOptions",
                                        [APISERVER_OP_DELETE] = "DeleteOptions"};
    json_t *options =
        json_pack("{s:s,s:s}", "kind", kinds[a->operation], "apiVersion", "meta.k8s.io/v1");
    if (a->request->dry_run)
        json_object_set_new(options, "dryRun", json_pack("[s]", "All"));
    return options;
}

static json_t *object_or_null(const struct api_kind *kind, const json_t *object,
                              const struct api_group_version *gv)
{
    return object ? in_version(kind, object, gv) : json_null();
}

json_t *webhook_review(const struct apiserver_admission *a, const struct api_group_version *gv,
                       const char *uid)
{
    const struct apiserver_request *r = a->request;
    const struct api_group_version *asked = r->gv ? r->gv : api_kind_canonical(r->kind);
    const char *below = apiserver_subresource_text(r->subresource);
    const char *name =
        json_str(json_object_get(a->object ? a->object : a->old, "metadata"), "name");
    json_t *request = json_object();
    json_object_set_new(request, "uid", json_string(uid));
    json_object_set_new(request, "kind", group_version_kind(gv, "kind", r->kind->kind));
    json_object_set_new(request, "resource", group_version_kind(gv, "resource", r->kind->plural));
    if (*below)
        json_object_set_new(request, "subResource", json_string(below));
    json_object_set_new(request, "requestKind", group_version_kind(asked, "kind", r->kind->kind));
    json_object_set_new(request, "requestResource",
                        group_version_kind(asked, "resource", r->kind->plural));
    if (*below)
        json_object_set_new(request, "requestSubResource", json_string(below));
    if (name)
        json_object_set_new(request, "name", json_string(name));
    if (r->namespace)
        json_object_set_new(request, "namespace", json_string(r->namespace));
    json_object_set_new(request, "operation", json_string(webhook_operation(a)));
    json_object_set_new(request, "userInfo", user_info(r->user ? r->user : &apiserver_self));
    json_object_set_new(request, "object", object_or_null(r->kind, a->object, gv));
    json_object_set_new(request, "oldObject", object_or_null(r->kind, a->old, gv));
    json_object_set_new(request, "dryRun", json_boolean(r->dry_run));
    json_object_set_new(request, "options", options_of(a));
    return json_pack("{s:s,s:s,s:o}", "kind", "AdmissionReview", "apiVersion",
                     "admission.k8s.io/v1", "request", request);
}

/*
 * Patches: what is stored, changed as the patch says, and then an update like any other. When
 * somebody else was faster, the patch is applied to what they left, unless it names the revision
 * that it is for.
 */
#include "json/patch.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/schema/smp.h"

static json_t *apply(const struct apiserver_request *r, enum apiserver_patch_type type,
                     const json_t *stored, const json_t *patch, struct err *e)
{
    switch (type) {
    case APISERVER_JSON_PATCH:
        return json_patch_apply(stored, patch, e);
    case APISERVER_MERGE_PATCH:
        if (!json_is_object(patch)) {
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "a merge patch must be an object");
            return NULL;
        }
        return json_merge_patch(stored, patch, e);
    case APISERVER_STRATEGIC_PATCH:
        if (!(r->kind->flags & API_BUILTIN)) {
            err_set(e, ERR_INVALID_ARGUMENT, "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types "
                    "include: application/json-patch+json, application/merge-patch+json, "
                    "application/apply-patch+yaml");
            return NULL;
        }
        return json_smp_apply(stored, patch, &api_smp_schema, api_smp_root(r->kind), e);
    case APISERVER_APPLY_PATCH:
        break;
    }
    return NULL;
}

/* What a patch cannot do is the request's fault, whichever way it failed. */
static void as_bad_request(enum apiserver_patch_type type, struct err *e)
{
    if (type == APISERVER_JSON_PATCH && e->code != ERR_INVALID_ARGUMENT)
        e->reason = "Invalid";
    else if (!str_eq(e->reason, "UnsupportedMediaType"))
        e->reason = "BadRequest";
    e->code = ERR_INVALID_ARGUMENT;
}

/* What a patch is applied to. Only a JSON patch can look at managedFields, which are costly. */
static json_t *base(const struct api_kind *kind, const struct apiserver_object *there,
                    enum apiserver_patch_type type, struct err *e)
{
    _cleanup_(str_done) struct str managed = {0};
    json_t *object = registry_read(kind, there, &managed, e);
    if (object && managed.len && type == APISERVER_JSON_PATCH)
        json_object_set_new(json_object_get(object, "metadata"), "managedFields",
                            json_parse(managed.p, managed.len, NULL, e));
    return object;
}

struct apiserver_object *apiserver_patch(struct apiserver_registry *g,
                                         const struct apiserver_request *r,
                                         enum apiserver_patch_type type, const json_t *patch,
                                         bool status, struct api_report *report, struct err *e)
{
    const json_t *named = json_at(patch, "metadata", "resourceVersion");
    for (int tries = REGISTRY_RACES;; tries--) {
        _cleanup_(apiserver_object_unrefp) struct apiserver_object *there =
            registry_current(g, r, e);
        json_auto_t *stored = there ? base(r->kind, there, type, e) : NULL;
        if (!stored)
            return NULL;
        json_auto_t *patched = apply(r, type, stored, patch, e);
        if (!patched) {
            as_bad_request(type, e);
            return NULL;
        }
        if (!json_is_object(patched)) {
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the patch leaves no object");
            return NULL;
        }
        json_auto_t *own = json_deep_copy(patched); /* it shares parts with what is stored */
        api_report_clear(report);
        struct apiserver_object *o = status ? apiserver_update_status(g, r, own, report, e)
                                            : apiserver_update(g, r, own, report, e);
        if (o || !str_eq(e->reason, "Conflict") || named || !tries)
            return o;
    }
}

#include <inttypes.h>

#include "apiserver/admission.h"
#include "apiserver/registry_impl.h"
#include "base/rfc3339.h"

/* Marks an object that its finalizers still hold. */
static void mark_deleted(const struct apiserver_registry *g, json_t *metadata)
{
    char time[RFC3339_MAX];
    registry_now(g, time);
    json_object_set_new(metadata, "deletionTimestamp", json_string(time));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(0));
    registry_bump_generation(metadata);
}

static void add_finalizer(json_t *metadata, const char *finalizer)
{
    json_t *list = json_object_get(metadata, "finalizers");
    if (!list) {
        list = json_array();
        json_object_set_new(metadata, "finalizers", list);
    }
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value) {
        if (str_eq(json_string_value(value), finalizer))
            return;
    }
    json_array_append_new(list, json_string(finalizer));
}

struct apiserver_object *apiserver_delete(struct apiserver_registry *g,
                                          const struct apiserver_request *r, bool *ret_gone,
                                          struct err *e)
{
    *ret_gone = false;
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *there = registry_current(g, r, e);
    json_auto_t *object = there ? json_parse(there->bytes, there->size, NULL, e) : NULL;
    if (!object)
        return NULL;
    json_t *metadata = json_object_get(object, "metadata");
    const char *uid = json_str(metadata, "uid");
    if ((r->uid && (!uid || !str_eq(r->uid, uid))) ||
        (r->revision && r->revision != there->revision)) {
        err_set(e, ERR_ABORTED, "Conflict",
                "Precondition failed: %s \"%s\" is not the object that was meant: uid %s, revision "
                "%" PRIu64,
                r->kind->plural, r->name, uid ? uid : "", there->revision);
        return NULL;
    }
    struct apiserver_admission a = {
        .registry = g, .request = r, .operation = APISERVER_OP_DELETE, .old = object};
    if (apiserver_admission_mutate(&a, e) < 0 || apiserver_admission_validate(&a, e) < 0)
        return NULL;
    if (r->finalizer)
        add_finalizer(metadata, r->finalizer);
    if (r->kind->cleanup && !json_object_get(metadata, "deletionTimestamp"))
        add_finalizer(metadata, r->kind->cleanup);
    if (!json_array_size(json_object_get(metadata, "finalizers"))) {
        *ret_gone = true;
        return registry_write(g, r, APISERVER_DELETED, r->name, there->revision, object, e);
    }
    if (json_object_get(metadata, "deletionTimestamp"))
        return apiserver_object_ref(there); /* it was asked for before */
    mark_deleted(g, metadata);
    return registry_write(g, r, APISERVER_UPDATED, r->name, there->revision, object, e);
}

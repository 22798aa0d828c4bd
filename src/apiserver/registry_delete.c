#include <inttypes.h>

#include "apiserver/admission.h"
#include "apiserver/registry_impl.h"
#include "base/rfc3339.h"

enum { TRIES = 5 };

bool registry_is_held(const struct api_kind *kind, const json_t *object)
{
    return json_array_size(json_at(object, "metadata", "finalizers")) ||
           (kind->flags & API_FINALIZE && json_array_size(json_at(object, "spec", "finalizers")));
}

/* Where a finalizer is in the list; its length when it is not there. */
static size_t find(const json_t *list, const char *finalizer)
{
    size_t i = 0, n = json_array_size(list);
    for (; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && str_eq(text, finalizer))
            break;
    }
    return i;
}

bool registry_has_finalizer(const json_t *metadata, const char *finalizer)
{
    const json_t *list = json_object_get(metadata, "finalizers");
    return find(list, finalizer) < json_array_size(list);
}

void registry_remove_finalizer(json_t *metadata, const char *finalizer)
{
    json_t *list = json_object_get(metadata, "finalizers");
    json_array_remove(list, find(list, finalizer));
    if (list && !json_array_size(list))
        json_object_del(metadata, "finalizers");
}

static void add_finalizer(json_t *metadata, const char *finalizer)
{
    json_t *list = json_object_get(metadata, "finalizers");
    if (!list) {
        list = json_array();
        json_object_set_new(metadata, "finalizers", list);
    }
    json_array_append_new(list, json_string(finalizer));
}

/* The finalizer is there or not as it should be; whether that changed anything. */
static bool set_finalizer(json_t *metadata, const char *finalizer, bool wanted)
{
    if (registry_has_finalizer(metadata, finalizer) == wanted)
        return false;
    if (wanted)
        add_finalizer(metadata, finalizer);
    else
        registry_remove_finalizer(metadata, finalizer);
    return true;
}

static bool set_propagation(json_t *metadata, enum apiserver_propagation p)
{
    if (p == APISERVER_PROPAGATE_AS_IS)
        return false;
    bool orphans =
        set_finalizer(metadata, APISERVER_ORPHAN_FINALIZER, p == APISERVER_PROPAGATE_ORPHAN);
    bool foreground = set_finalizer(metadata, APISERVER_FOREGROUND_FINALIZER,
                                    p == APISERVER_PROPAGATE_FOREGROUND);
    return orphans || foreground;
}

/* Marks an object that its finalizers still hold. */
static void mark_deleted(const struct apiserver_registry *g, const struct api_kind *kind,
                         json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    char time[RFC3339_MAX];
    registry_now(g, time);
    json_object_set_new(metadata, "deletionTimestamp", json_string(time));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(0));
    registry_bump_generation(metadata);
    if (!(kind->flags & API_FINALIZE))
        return;
    json_t *status = json_object_get(object, "status");
    if (!status) {
        status = json_object();
        json_object_set_new(object, "status", status);
    }
    json_object_set_new(status, "phase", json_string("Terminating"));
}

static int check_preconditions(const struct apiserver_request *r, const char *uid,
                               uint64_t revision, struct err *e)
{
    if (r->uid && !str_eq(r->uid, uid))
        return err_set(e, ERR_ABORTED, "Conflict",
                       "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                       r->uid, uid);
    if (r->revision && r->revision != revision)
        return err_set(e, ERR_ABORTED, "Conflict",
                       "Precondition failed: ResourceVersion in precondition: %" PRIu64
                       ", ResourceVersion in object meta: %" PRIu64,
                       r->revision, revision);
    return 0;
}

/*
 * What admission sees of an object: in the version that was asked for. What the server deletes of
 * its own accord it deletes also when nobody can convert it.
 */
static json_t *seen(const struct apiserver_registry *g, const struct apiserver_request *r,
                    const struct apiserver_object *there, json_t *object, struct err *e)
{
    _cleanup_(str_done) struct str unused = {0};
    if (!r->kind->conversion || !g->webhooks || !r->user || r->user == &apiserver_self)
        return json_incref(object);
    return registry_read(r->kind, there, &unused, e);
}

static struct apiserver_object *try_delete(struct apiserver_registry *g,
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
    if (check_preconditions(r, uid ? uid : "", there->revision, e) < 0)
        return NULL;
    json_auto_t *shown = seen(g, r, there, object, e);
    if (!shown)
        return NULL;
    _cleanup_(apiserver_admission_release) struct apiserver_admission a = {
        .registry = g, .request = r, .operation = APISERVER_OP_DELETE, .old = shown};
    if (apiserver_admission_mutate(&a, e) < 0 || apiserver_admission_validate(&a, e) < 0 ||
        apiserver_admission_hold(&a, e) < 0)
        return NULL;
    bool changed = set_propagation(metadata, r->propagation);
    if (r->kind->cleanup && !json_object_get(metadata, "deletionTimestamp"))
        changed |= set_finalizer(metadata, r->kind->cleanup, true);
    if (!registry_is_held(r->kind, object)) {
        *ret_gone = true;
        return registry_write(g, r, APISERVER_DELETED, r->name, there->revision, object, e);
    }
    bool again = json_object_get(metadata, "deletionTimestamp") != NULL;
    if (again && !changed)
        return apiserver_object_ref(there); /* it was asked for before */
    if (!again)
        mark_deleted(g, r->kind, object);
    return registry_write(g, r, APISERVER_UPDATED, r->name, there->revision, object, e);
}

struct apiserver_object *apiserver_delete(struct apiserver_registry *g,
                                          const struct apiserver_request *r, bool *ret_gone,
                                          struct err *e)
{
    for (int tries = TRIES;;
         tries--) { /* what somebody changed meanwhile is deleted all the same */
        struct apiserver_object *o = try_delete(g, r, ret_gone, e);
        if (o || !str_eq(e->reason, "Conflict") || r->revision || !tries)
            return o;
    }
}

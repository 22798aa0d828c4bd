#include <inttypes.h>

#include "base/rfc3339.h"
#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/registry_impl.h"

enum { TRIES = 5 };

static const int64_t century = (int64_t)100 * 365 * 24 * 3600; /* in seconds; longer is not said */

static int64_t grace_of(const json_t *metadata)
{
    return json_integer_value(json_object_get(metadata, "deletionGracePeriodSeconds"));
}

bool registry_is_held(const struct api_kind *kind, const json_t *object)
{
    return grace_of(json_object_get(object, "metadata")) > 0 ||
           json_array_size(json_at(object, "metadata", "finalizers")) ||
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
    json_t *list = json_array_at(metadata, "finalizers");
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

static void set_deletion(json_t *metadata, struct timespec from, int64_t grace)
{
    char text[RFC3339_MAX];
    from.tv_sec += grace < century ? grace : century;
    rfc3339_format(from, RFC3339_SECONDS, text);
    json_object_set_new(metadata, "deletionTimestamp", json_string(text));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(grace));
}

/* Marks an object that something still holds, or that others are to see the end of. */
static void mark_deleted(const struct apiserver_registry *g, const struct api_kind *kind,
                         json_t *object, int64_t grace)
{
    json_t *metadata = json_object_get(object, "metadata");
    set_deletion(metadata, rfc3339_from_ns(clock_real_ns(g->clock)), grace);
    registry_bump_generation(metadata);
    if (!(kind->flags & API_FINALIZE))
        return;
    json_t *status = json_object_at(object, "status");
    json_object_set_new(status, "phase", json_string("Terminating"));
}

/* A deletion that is not the first: whether the object gets less time than it had. */
static bool shorten(json_t *metadata, const struct apiserver_request *r)
{
    int64_t before = grace_of(metadata);
    struct timespec t;
    if (!r->has_grace || r->grace >= before ||
        rfc3339_parse(json_str(metadata, "deletionTimestamp"), &t, NULL) < 0)
        return false;
    t.tv_sec -= before < century ? before : century;
    set_deletion(metadata, t, r->grace);
    return true;
}

/* How long the object gets when it is deleted now. */
static int64_t grace_for(const struct apiserver_request *r, const json_t *object)
{
    int64_t own = r->kind->grace ? r->kind->grace(object) : -1;
    if (own < 0)
        return 0;
    return r->has_grace ? r->grace : own;
}

/* Sets what the deletion says of the object; whether that changed anything. */
static bool set_deleted(const struct apiserver_registry *g, const struct apiserver_request *r,
                        json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    bool changed = set_propagation(metadata, r->propagation);
    if (json_object_get(metadata, "deletionTimestamp"))
        return shorten(metadata, r) || changed;
    if (r->kind->cleanup)
        changed |= set_finalizer(metadata, r->kind->cleanup, true);
    if (!registry_is_held(r->kind, object) && !r->kind->grace)
        return changed;
    mark_deleted(g, r->kind, object, grace_for(r, object));
    return true;
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
    if (check_preconditions(r, json_text(metadata, "uid"), there->revision, e) < 0)
        return NULL;
    json_auto_t *shown = seen(g, r, there, object, e);
    if (!shown)
        return NULL;
    _cleanup_(apiserver_admission_release) struct apiserver_admission a = {
        .registry = g, .request = r, .operation = APISERVER_OP_DELETE, .old = shown};
    if (apiserver_admission_mutate(&a, e) < 0 || apiserver_admission_validate(&a, e) < 0 ||
        apiserver_admission_hold(&a, e) < 0)
        return NULL;
    bool changed = set_deleted(g, r, object);
    if (!registry_is_held(r->kind, object)) {
        *ret_gone = true;
        return registry_write(g, r, APISERVER_DELETED, r->name, there->revision, object, e);
    }
    if (!changed)
        return apiserver_object_ref(there); /* it was asked for before */
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

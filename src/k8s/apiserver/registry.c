#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/rfc3339.h"
#include "base/uuid.h"
#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/managed.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"

enum { SUFFIX = 5, NAME_MAX_PREFIX = 58, TRIES = 8 };

void registry_now(const struct apiserver_registry *g, char buf[RFC3339_MAX])
{
    rfc3339_format(rfc3339_from_ns(clock_real_ns(g->clock)), RFC3339_SECONDS, buf);
}

/* The namespace of the path rules; the object may repeat it but not contradict it. */
static int set_namespace(const struct apiserver_request *r, json_t *metadata, struct err *e)
{
    const char *own = json_str(metadata, "namespace");
    if (r->kind->flags & API_CLUSTER_SCOPED || !r->namespace)
        return 0;
    if (own && *own && !str_eq(own, r->namespace))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request: \"%s\", not \"%s\"",
                       own, r->namespace);
    json_object_set_new(metadata, "namespace", json_string(r->namespace));
    return 0;
}

/* A prefix and five letters and digits that cannot spell anything. */
static void generate_name(json_t *metadata)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *prefix = json_str(metadata, "generateName");
    unsigned char random[SUFFIX];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        abort();
    char name[NAME_MAX_PREFIX + SUFFIX + 1];
    int n = snprintf(name, sizeof(name), "%.*s", NAME_MAX_PREFIX, prefix);
    for (int i = 0; i < SUFFIX; i++)
        name[n++] = alphabet[random[i] % (sizeof(alphabet) - 1)];
    name[n] = '\0';
    json_object_set_new(metadata, "name", json_string(name));
}

static bool has_name(const json_t *metadata)
{
    const char *name = json_str(metadata, "name");
    return name && *name;
}

int registry_invalid(const struct apiserver_request *r, const json_t *object,
                     const struct api_report *report, struct err *e)
{
    const struct api_problem *p = report->problems.len ? &report->problems.p[0] : NULL;
    return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "%s \"%s\" is invalid: %s: %s",
                   r->kind->kind, json_text(object, "metadata", "name"), p ? p->path : "",
                   p ? p->message : "");
}

/* Objects are kept in one version, whichever they came in; conversions look at what they have. */
static void set_version(const struct api_kind *kind, json_t *object)
{
    char text[128];
    const struct api_group_version *gv =
        kind->conversion ? api_kind_canonical(kind) : api_kind_stored(kind);
    json_object_set_new(object, "apiVersion", json_string(api_version_text(gv, text)));
}

/* What is written of an object that was admitted: what it was converted to, as far as that goes. */
static json_t *stored_form(const struct apiserver_admission *a)
{
    static const char *const open[] = {"labels", "annotations", NULL};
    if (!a->converted || a->converted == a->object)
        return json_incref(a->object);
    json_t *form = json_copy(a->converted);
    json_t *metadata = json_copy(json_object_get(a->object, "metadata"));
    for (const char *const *key = open; *key; key++) {
        const json_t *map = json_at(a->converted, "metadata", *key);
        if (map)
            json_object_set(metadata, *key, (json_t *)map);
        else
            json_object_del(metadata, *key);
    }
    json_object_set_new(form, "metadata", metadata);
    return form;
}

/* What the kind itself says of an object. The rules of our own kinds may be somebody else's to ask. */
static bool admit_kind(const struct apiserver_admission *a)
{
    const struct api_kind *kind = a->request->kind;
    const struct apiserver_rules *rules = a->registry->rules;
    if (!rules || !rules->features.no_rules || kind->flags & API_BUILTIN || kind->schema)
        return api_admit(kind, a->object, a->old, a->request->unknown, a->report);
    return api_admit_form(kind, a->object, a->request->unknown, a->report) && !a->report->errors;
}

/* Everything that is asked before a write. */
static int admit(struct apiserver_admission *a, struct err *e)
{
    const struct apiserver_request *r = a->request;
    if (apiserver_admission_mutate(a, e) < 0)
        return -1;
    if (!admit_kind(a))
        return registry_invalid(r, a->object, a->report, e);
    set_version(r->kind, a->object);
    if (apiserver_admission_validate(a, e) < 0)
        return -1;
    if (a->report->errors)
        return registry_invalid(r, a->object, a->report, e);
    if (r->kind->conversion) { /* it may take its time, so before anything is held */
        a->converted = apiserver_convert_json(r->kind, a->object, api_kind_stored(r->kind), e);
        if (!a->converted)
            return -1;
    }
    return apiserver_admission_hold(a, e);
}

static json_t *metadata_of(json_t *object, struct err *e)
{
    json_t *metadata = json_object_at(object, "metadata");
    if (json_is_object(metadata))
        return metadata;
    err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "metadata must be an object");
    return NULL;
}

/* Metadata of a new object that is the server's to set. */
static void set_identity(const struct apiserver_registry *g, json_t *metadata)
{
    static const char *const cleared[] = {"deletionTimestamp", "deletionGracePeriodSeconds",
                                          "selfLink", NULL};
    for (const char *const *key = cleared; *key; key++)
        json_object_del(metadata, *key);
    char text[UUID_TEXT_MAX], time[RFC3339_MAX];
    struct uuid uuid = uuid_random();
    registry_now(g, time);
    json_object_set_new(metadata, "uid", json_string(uuid_format(&uuid, text)));
    json_object_set_new(metadata, "creationTimestamp", json_string(time));
    json_object_set_new(metadata, "generation", json_integer(1));
}

struct apiserver_object *apiserver_create(struct apiserver_registry *g,
                                          const struct apiserver_request *r, json_t *object,
                                          struct api_report *report, struct err *e)
{
    json_t *metadata = metadata_of(object, e);
    if (!metadata || set_namespace(r, metadata, e) < 0)
        return NULL;
    const char *revision = json_str(metadata, "resourceVersion");
    if (revision && *revision) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                "resourceVersion should not be set on objects to be created");
        return NULL;
    }
    const char *prefix = json_str(metadata, "generateName");
    bool generated = !has_name(metadata) && prefix && *prefix;
    if (generated)
        generate_name(metadata);
    set_identity(g, metadata);
    if (r->kind->flags & API_STATUS)
        json_object_del(object, "status");
    _cleanup_(apiserver_admission_release) struct apiserver_admission a = {
        .registry = g,
        .request = r,
        .operation = APISERVER_OP_CREATE,
        .object = object,
        .report = report,
    };
    if (admit(&a, e) < 0 || managed_create(g, r, object, e) < 0)
        return NULL;
    metadata = json_object_get(object, "metadata");
    for (int tries = TRIES;; tries--) {
        json_auto_t *form = stored_form(&a);
        struct apiserver_object *o =
            registry_write(g, r, APISERVER_CREATED, json_str(metadata, "name"), 0, form, e);
        if (o)
            apiserver_admission_follow(&a);
        if (o || !generated || e->code != ERR_ALREADY_EXISTS || !tries)
            return o;
        generate_name(metadata);
    }
}

struct apiserver_object *registry_current(struct apiserver_registry *g,
                                          const struct apiserver_request *r, struct err *e)
{
    _cleanup_(str_done) struct str collection = {0}, key = {0};
    apiserver_collection(r->kind, &collection);
    apiserver_key(r, r->name, &key);
    struct apiserver_object *o = apiserver_store_get(g->store, str_get(&collection), str_get(&key));
    if (!o)
        err_set(e, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found", r->kind->plural, r->name);
    return o;
}

/* The update must be of the object that is there, as it is there, if it says so. */
static int check_preconditions(const struct apiserver_request *r, const json_t *metadata,
                               const json_t *stored, uint64_t revision, struct err *e)
{
    const char *name = json_str(metadata, "name"), *uid = json_str(metadata, "uid");
    if (name && *name && !str_eq(name, r->name))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "the name of the object (%s) does not match the name on the URL (%s)", name,
                       r->name);
    const char *stored_uid = json_str(stored, "uid");
    if (uid && *uid && stored_uid && !str_eq(uid, stored_uid))
        return err_set(e, ERR_ABORTED, "Conflict",
                       "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid,
                       stored_uid);
    const char *seen = json_str(metadata, "resourceVersion");
    if (seen && *seen && !str_eq(seen, "0") && strtoull(seen, NULL, 10) != revision)
        return registry_outdated(r, r->name, e);
    return 0;
}

/* What is the server's stays as it was. */
static void keep_identity(json_t *metadata, const json_t *stored)
{
    static const char *const kept[] = {"name",
                                       "uid",
                                       "creationTimestamp",
                                       "generation",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       NULL};
    for (const char *const *key = kept; *key; key++) {
        json_t *value = json_object_get(stored, *key);
        if (value)
            json_object_set(metadata, *key, value);
        else
            json_object_del(metadata, *key);
    }
    json_object_del(metadata, "resourceVersion");
}

/* Whether anything but metadata and a status that is kept apart differs. */
static bool spec_differs(const struct api_kind *kind, const json_t *a, const json_t *b)
{
    json_auto_t *x = json_copy((json_t *)a), *y = json_copy((json_t *)b);
    static const char *const apart[] = {"metadata", "apiVersion", "status", NULL};
    bool all = kind->schema && !(kind->flags & API_STATUS);
    for (const char *const *key = apart; *key; key++) {
        if (all && str_eq(*key, "status"))
            continue;
        json_object_del(x, *key);
        json_object_del(y, *key);
    }
    return !json_equal(x, y);
}

void registry_bump_generation(json_t *metadata)
{
    json_int_t generation = json_integer_value(json_object_get(metadata, "generation"));
    json_object_set_new(metadata, "generation", json_integer(generation + 1));
}

/* Whether an object is what is stored, whichever revision that has. */
static bool is_stored(const json_t *object, const json_t *stored)
{
    json_auto_t *before = json_copy((json_t *)stored);
    json_object_set_new(before, "metadata", json_copy(json_object_get(stored, "metadata")));
    json_object_del(json_object_get(before, "metadata"), "resourceVersion");
    return json_equal(before, object);
}

/*
 * Writes what an update came to: nothing, a change, or the end of a deleted object. `managed` is
 * what is stored of managedFields.
 */
static struct apiserver_object *write_update(const struct apiserver_admission *a,
                                             const char *managed, struct apiserver_object *there,
                                             struct err *e)
{
    struct apiserver_registry *g = a->registry;
    const struct apiserver_request *r = a->request;
    json_t *object = a->object;
    const json_t *stored = a->old;
    bool converts = r->kind->conversion;
    json_t *metadata = json_object_get(object, "metadata");
    enum managed_start start = managed_begin_update(r, object, managed);
    if (spec_differs(r->kind, object, stored))
        registry_bump_generation(metadata);
    if (json_object_get(metadata, "deletionTimestamp") && !registry_is_held(r->kind, object)) {
        _cleanup_(str_done) struct str again = {0};
        json_auto_t *last =
            converts ? registry_load(there, &again, e) : json_copy((json_t *)stored);
        if (!last)
            return NULL;
        json_object_set_new(last, "metadata", json_copy(json_object_get(last, "metadata")));
        managed_keep(last, managed);
        managed_keep(object, managed);
        return registry_write_end(g, r, there, object, last, e);
    }
    _cleanup_(str_done) struct str unused = {0};
    json_auto_t *before = r->kind->schema && !converts ? registry_load(there, &unused, NULL)
                                                       : json_incref((json_t *)stored);
    if (is_stored(object, before) && managed_is_stored(r, start, managed) &&
        (!converts || apiserver_conversion_current(r->kind, there)))
        return apiserver_object_ref(there);
    if (managed_update(g, r, object, stored, start, managed, e) < 0)
        return NULL;
    json_auto_t *form = stored_form(a);
    return registry_write(g, r, APISERVER_UPDATED, r->name, there->revision, form, e);
}

/* What the server changes of its own accord it takes as it is stored. */
static int convert_request(const struct apiserver_request *r, json_t *object, struct err *e)
{
    if (!r->kind->conversion)
        return 0;
    json_auto_t *converted =
        apiserver_convert_json(r->kind, object, api_kind_canonical(r->kind), e);
    if (!converted)
        return -1;
    if (converted != object) {
        json_object_clear(object);
        json_object_update(object, converted);
    }
    return 0;
}

static struct apiserver_object *update(struct apiserver_registry *g,
                                       const struct apiserver_request *r, json_t *object,
                                       bool status_only, struct api_report *report, struct err *e)
{
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *there = registry_current(g, r, e);
    json_t *metadata = there && convert_request(r, object, e) == 0 ? metadata_of(object, e) : NULL;
    _cleanup_(str_done) struct str managed = {0};
    json_auto_t *stored = there ? registry_read(r->kind, there, &managed, e) : NULL;
    const json_t *stored_metadata = json_object_get(stored, "metadata");
    if (!metadata || !stored || set_namespace(r, metadata, e) < 0 ||
        check_preconditions(r, metadata, stored_metadata, there->revision, e) < 0)
        return NULL;
    if (status_only) { /* the stored object, with the status that was sent */
        json_auto_t *status = json_incref(json_object_get(object, "status"));
        json_object_clear(object);
        json_object_update(object, stored);
        json_object_set_new(object, "metadata", json_deep_copy(stored_metadata));
        metadata = json_object_get(object, "metadata");
        if (status)
            json_object_set(object, "status", status);
        else
            json_object_del(object, "status");
    } else if (r->kind->flags & API_STATUS && r->subresource != APISERVER_BINDING) {
        json_object_del(object, "status");
        if (json_object_get(stored, "status"))
            json_object_set(object, "status", json_object_get(stored, "status"));
    }
    keep_identity(metadata, stored_metadata);
    json_auto_t *own = json_deep_copy(object); /* parts are shared with what is stored */
    json_object_clear(object);
    json_object_update(object, own);
    _cleanup_(apiserver_admission_release) struct apiserver_admission a = {
        .registry = g,
        .request = r,
        .operation = APISERVER_OP_UPDATE,
        .object = object,
        .old = stored,
        .report = report,
    };
    struct apiserver_object *o =
        admit(&a, e) < 0 ? NULL : write_update(&a, str_get(&managed), there, e);
    if (o)
        apiserver_admission_follow(&a);
    return o;
}

/*
 * An update that names no revision is for whatever is there: when somebody else was faster, it is
 * for what they left.
 */
static struct apiserver_object *update_latest(struct apiserver_registry *g,
                                              const struct apiserver_request *r, json_t *object,
                                              bool status_only, struct api_report *report,
                                              struct err *e)
{
    const char *seen = json_str(json_at(object, "metadata"), "resourceVersion");
    if (seen && *seen && !str_eq(seen, "0"))
        return update(g, r, object, status_only, report, e);
    for (int tries = REGISTRY_RACES;; tries--) {
        json_auto_t *own = tries ? json_deep_copy(object) : json_incref(object);
        struct apiserver_object *o = update(g, r, own, status_only, report, e);
        if (o || !tries || e->code != ERR_ABORTED || !str_eq(e->reason, "Conflict"))
            return o;
        api_report_clear(report);
    }
}

struct apiserver_object *apiserver_update(struct apiserver_registry *g,
                                          const struct apiserver_request *r, json_t *object,
                                          struct api_report *report, struct err *e)
{
    return update_latest(g, r, object, false, report, e);
}

struct apiserver_object *apiserver_update_status(struct apiserver_registry *g,
                                                 const struct apiserver_request *r, json_t *object,
                                                 struct api_report *report, struct err *e)
{
    return update_latest(g, r, object, true, report, e);
}

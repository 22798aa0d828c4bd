/*
 * The follower of CustomResourceDefinitions. It keeps what it knows of each, gives them their names,
 * puts their kinds in service and takes them out again.
 *
 *     created ──> names? ──> kinds in service ──> status: Established       (in this order)
 *     deleted ──> nothing can be created ──> objects deleted ──> finalizer off ──> out of service
 *
 * Invariants: a definition that says Established is in service, or served by a table; a change that
 * concerns neither its spec nor its names nor its deletion makes no new set of kinds; where there
 * are no definitions nothing is kept.
 *
 * A definition of a kind that has a table changes nothing but itself: the table goes on serving the
 * kind, and its objects stay when the definition goes.
 */
#include "base/log.h"
#include "k8s/apiserver/admission.h"
#include "k8s/apiserver/definition_cleanup.h"
#include "k8s/apiserver/definition_names.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

#define SETTLE (CLOCK_SECOND / 2)

static const char collection[] = "apiextensions.k8s.io/customresourcedefinitions";

/* What is known of one definition. */
struct known {
    struct apiserver_object *object; /* as it was when it was last looked at */
    json_int_t generation;
    char *group, *plural, *uid;
    json_t *accepted; /* names */
    bool established, terminating, refused;
    bool seen;           /* in the list that is looked at */
    bool stale;          /* its status may have to be written */
    int64_t empty_since; /* when none of its objects was left, of a deleted one; 0: not yet */
    const struct api_kind *table;            /* that serves it; NULL: none */
    struct apiserver_definition *definition; /* in service; NULL: not */
};

struct definitions {
    struct map known; /* by name */
    bool dirty;       /* a definition has changed since */
    bool waiting;     /* objects of a deleted one still have finalizers */
};

static void known_free(struct known *k)
{
    apiserver_object_unref(k->object);
    apiserver_definition_unref(k->definition);
    json_decref(k->accepted);
    free(k->group);
    free(k->plural);
    free(k->uid);
    free(k);
}

void definitions_free(struct definitions *d)
{
    if (!d)
        return;
    map_for_each(&d->known, it)
        known_free(it->value);
    map_done(&d->known);
    free(d);
}

/* The kind of the tables that has this plural in this group; NULL. */
static const struct api_kind *find_table(const char *group, const char *plural)
{
    for (const struct api_kind *const *k = apiserver_kinds_tables(); *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            if (str_eq(gv->group, group) && str_eq((*k)->plural, plural))
                return *k;
        }
    }
    return NULL;
}

/* The names that nobody else has left to it. */
static struct apiserver_names accept_names(struct definitions *d, const struct known *own,
                                           const json_t *object)
{
    struct apiserver_taken taken = {0};
    const json_t *requested = json_at(object, "spec", "names");
    const char *kind = json_str(requested, "kind");
    apiserver_taken_add_tables(&taken, own->group, own->plural);
    if (own->table && !str_eq(own->table->kind, kind ? kind : ""))
        map_set(&taken.kinds, kind ? kind : "", d);
    map_for_each(&d->known, it) {
        const struct known *other = it->value;
        if (other != own && other->accepted && str_eq(other->group, own->group))
            apiserver_taken_add(&taken, other->accepted);
    }
    struct apiserver_names names =
        apiserver_names_accept(requested, json_at(object, "status", "acceptedNames"), &taken);
    apiserver_taken_done(&taken);
    return names;
}

static json_t *parse(const struct known *k)
{
    return json_parse(k->object->bytes, k->object->size, NULL, NULL);
}

/* Compiles a definition anew; what cannot be compiled is not served. */
static void compile(struct apiserver *a, struct known *k, const json_t *object)
{
    struct err e = {0};
    apiserver_definition_unref(k->definition);
    k->definition = apiserver_definition_new(&a->registry, k->object, object, k->accepted, &e);
    if (!k->definition)
        log_warn("definition cannot be served", LOG_S("name", k->object->key), LOG_ERR(&e));
}

/* Forgets what was deleted and made again meanwhile. */
static void identify(struct known *k, const json_t *object)
{
    const char *uid = json_str(json_object_get(object, "metadata"), "uid");
    if (k->uid && uid && str_eq(k->uid, uid))
        return;
    const char *group = json_str(json_object_get(object, "spec"), "group");
    const char *plural = json_str(json_at(object, "spec", "names"), "plural");
    free(k->uid);
    free(k->group);
    free(k->plural);
    k->uid = mem_strdup(uid ? uid : "");
    k->group = mem_strdup(group ? group : "");
    k->plural = mem_strdup(plural ? plural : "");
    k->table = find_table(k->group, k->plural);
    k->generation = 0;
    k->established = false;
}

/* Learns what a definition says now; true when the kinds in service change. */
static bool learn(struct apiserver *a, struct definitions *d, struct known *k, const json_t *object)
{
    identify(k, object);
    const json_t *conditions = json_at(object, "status", "conditions");
    json_int_t generation = json_integer_value(json_at(object, "metadata", "generation"));
    bool terminating = json_at(object, "metadata", "deletionTimestamp");
    struct apiserver_names names = accept_names(d, k, object);
    bool same = k->accepted && json_equal(k->accepted, names.accepted) &&
                k->generation == generation && k->terminating == terminating;
    json_decref(k->accepted);
    k->accepted = names.accepted;
    k->generation = generation;
    k->terminating = terminating;
    k->refused = names.conflict;
    bool established = apiserver_condition_is_true(conditions, "Established") || !names.conflict;
    same &= k->established == established;
    k->established = established;
    if (same || k->table)
        return false;
    bool served = k->definition;
    if (k->established) {
        compile(a, k, object);
    } else {
        apiserver_definition_unref(k->definition);
        k->definition = NULL;
    }
    return served || k->definition;
}

/* Those that are new to us keep the names that they were given in an earlier life. */
static struct known *meet(struct definitions *d, struct apiserver_object *o)
{
    struct known *k = NEW(struct known);
    k->object = apiserver_object_ref(o);
    json_auto_t *object = parse(k);
    identify(k, object);
    k->accepted = json_incref((json_t *)json_at(object, "status", "acceptedNames"));
    k->stale = true;
    map_set(&d->known, o->key, k);
    return k;
}

/* Drops those that are gone; true when one of them was in service. */
static bool forget(struct definitions *d, bool *ret_freed)
{
    bool changed = false;
    map_for_each(&d->known, it) {
        struct known *k = it->value;
        if (k->seen) {
            k->seen = false;
            continue;
        }
        *ret_freed = true;
        changed |= k->definition != NULL;
        map_remove(&d->known, k->object->key);
        known_free(k);
    }
    return changed;
}

/* Looks at every definition; true when the kinds in service change. */
static bool scan(struct apiserver *a, struct definitions *d)
{
    struct apiserver_list list;
    bool freed = false;
    if (apiserver_store_list(a->registry.store, collection, &(struct apiserver_list_options){0},
                             &list, NULL) < 0)
        return false;
    vec_for_each(&list.objects, o) {
        struct known *k = map_get(&d->known, (*o)->key);
        if (!k)
            k = meet(d, *o);
        k->seen = true;
        if (k->object->revision == (*o)->revision)
            continue;
        apiserver_object_unref(k->object);
        k->object = apiserver_object_ref(*o);
        k->stale = true;
    }
    bool changed = forget(d, &freed);
    vec_for_each(&list.objects, o) {
        struct known *k = map_get(&d->known, (*o)->key);
        k->stale |= freed && k->refused;
        json_auto_t *object = k->stale ? parse(k) : NULL;
        if (object)
            changed |= learn(a, d, k, object);
    }
    apiserver_list_done(&list);
    return changed;
}

static void put_in_service(struct apiserver *a, struct definitions *d)
{
    VEC(struct apiserver_definition *) all = {0};
    map_for_each(&d->known, it) {
        struct known *k = it->value;
        if (k->definition)
            vec_push(&all, k->definition);
    }
    apiserver_kinds_set(&a->registry, all.p, all.len);
    vec_done(&all);
    watch_wake_all(a); /* those of kinds that have gone end */
}

/* Sets conditions and names; false when the status says it all already. */
static bool set_status(struct apiserver *a, struct definitions *d, const struct known *k,
                       json_t *object)
{
    char now[RFC3339_MAX];
    registry_now(&a->registry, now);
    json_t *status = json_object_at(object, "status");
    json_auto_t *before = json_deep_copy(status);
    struct apiserver_names names = accept_names(d, k, object);
    apiserver_condition_set(status, "NamesAccepted", !names.conflict,
                            names.conflict ? names.conflict : "NoConflicts",
                            names.conflict ? names.message : "no conflicts found", now);
    json_object_set_new(status, "acceptedNames", names.accepted);
    bool broken = k->established && !k->table && !k->definition;
    if (broken)
        apiserver_condition_set(status, "Established", false, "NotServed",
                                "its schema cannot be served", now);
    else if (k->established)
        apiserver_condition_set(
            status, "Established", true, "InitialNamesAccepted",
            k->table ? "the initial names have been accepted; the server has this kind built in"
                     : "the initial names have been accepted",
            now);
    else
        apiserver_condition_set(status, "Established", false, "NotAccepted",
                                "not all names are accepted", now);
    if (k->terminating)
        apiserver_condition_set(status, "Terminating", true, "InstanceDeletionInProgress",
                                "CustomResource deletion is in progress", now);
    return !json_equal(before, status);
}

/* Somebody else's change is in the way: it is a change, so there will be another look. */
static void write_status(struct apiserver *a, struct definitions *d, struct known *k)
{
    json_auto_t *object = k->stale ? parse(k) : NULL;
    k->stale = false;
    if (!object || !set_status(a, d, k, object))
        return;
    struct err e = {0};
    struct api_report report = {0};
    struct apiserver_request r = {.user = &apiserver_self,
                                  .kind = &api_custom_resource_definition,
                                  .name = k->object->key,
                                  .subresource = APISERVER_STATUS,
                                  .unknown = API_UNKNOWN_IGNORE};
    apiserver_object_unref(apiserver_update_status(&a->registry, &r, object, &report, &e));
    if (e.code != ERR_OK && e.code != ERR_ABORTED && e.code != ERR_NOT_FOUND) {
        log_warn("cannot write the status of a definition", LOG_S("name", k->object->key),
                 LOG_ERR(&e));
        k->stale = d->dirty = e.code != ERR_INVALID_ARGUMENT; /* another time */
    }
    api_report_done(&report);
}

/*
 * Whether the objects are gone for good: a create that was admitted before the deletion may still be
 * on its way to the disk, so it takes a second look some time later.
 */
static bool is_empty(struct apiserver *a, struct known *k)
{
    int64_t now = clock_mono_ns(a->registry.clock);
    const struct api_kind *kind = k->definition && k->definition->n ? k->definition->kinds : NULL;
    if (definition_delete_objects(&a->registry, kind, k->group, k->plural) > 0) {
        k->empty_since = 0;
        return false;
    }
    if (!k->empty_since)
        k->empty_since = now;
    return now - k->empty_since >= SETTLE;
}

static void clean_up(struct apiserver *a, struct definitions *d)
{
    d->waiting = false;
    map_for_each(&d->known, it) {
        struct known *k = it->value;
        if (!k->terminating)
            continue;
        json_auto_t *object = parse(k);
        if (!definition_has_cleanup(object))
            continue;
        if (k->table || is_empty(a, k))
            definition_release(&a->registry, k->object->key);
        else
            d->waiting = true;
    }
}

static void reconcile(struct apiserver *a)
{
    struct definitions *d = a->definitions;
    if (d && d->dirty) {
        d->dirty = false;
        if (scan(a, d))
            put_in_service(a, d);
        map_for_each(&d->known, it)
            write_status(a, d, it->value);
        d->waiting = true;
    }
    if (d && d->waiting)
        clean_up(a, d);
    if (d && !d->known.count) {
        definitions_free(d);
        a->definitions = NULL;
    }
}

static void touch(struct apiserver *a)
{
    if (!a->definitions)
        a->definitions = NEW(struct definitions);
    a->definitions->dirty = true;
}

static void resync(struct apiserver *a)
{
    touch(a);
    reconcile(a);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    if (str_eq(event->object->collection, collection))
        touch(a);
}

int apiserver_definitions_admit(struct apiserver_admission *a, struct err *e)
{
    const struct apiserver_request *r = a->request;
    if (a->operation != APISERVER_OP_CREATE || !r->kind->schema)
        return 0;
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *now =
        apiserver_kinds_get(a->registry);
    const struct api_kind *kind =
        apiserver_kinds_find(now, api_kind_canonical(r->kind), r->kind->plural);
    if (kind && !(kind->flags & API_TERMINATING))
        return 0;
    return err_set(e, ERR_UNIMPLEMENTED, "MethodNotAllowed",
                   "create not allowed while custom resource definition is terminating");
}

const struct apiserver_follower apiserver_follow_definitions = {
    .name = "definitions",
    .resync = resync,
    .changed = changed,
    .tick = reconcile,
};

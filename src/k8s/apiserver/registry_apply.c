/*
 * Server-side apply: who applies says what it wants to be so, and owns that.
 *
 *     stored + configuration ──merge──> merged
 *     merged − (owned before, not wanted now, nobody else's) ──> pruned ──> an update like any other
 *     what differs between stored and pruned and is somebody else's ──> conflict, or taken over
 *
 * The configuration is put into normal form, so that it names fields as the stored object does, but
 * gets no defaults: what the server fills in is nobody's. What comes of it gets them before it is
 * compared with what is stored, which has them: else a list that is one field would seem to differ
 * whenever something is filled in inside.
 *
 * kubectl moves objects from client-side apply to this one: what its annotation says was applied,
 * and still holds, is no conflict for the manager "kubectl", and the annotation is kept up to date
 * as long as it is there.
 */
#include "api/default.h"
#include "api/normalize.h"
#include "k8s/apiserver/managed.h"
#include "k8s/apiserver/registry_impl.h"

enum { TRIES = 5 };

static const char last_applied[] = "kubectl.kubernetes.io/last-applied-configuration";

struct apply {
    const struct apiserver_registry *g;
    const struct apiserver_request *r;
    struct arena arena;
    json_t *config;  /* in normal form */
    json_t *client;  /* what kubectl's annotation says; NULL */
    json_t *applied; /* what comes of it; shares nothing */
    struct managed managed;
    struct api_report *report;
};

/* What of a configuration counts here, checked and in normal form. */
static json_t *read_config(const struct apiserver_request *r, const json_t *given, bool status,
                           struct arena *a, struct api_report *report, struct err *e)
{
    json_auto_t *config = json_deep_copy(given);
    json_t *metadata = json_object_at(config, "metadata");
    const char *name = json_str(metadata, "name");
    if (!json_is_object(metadata))
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "metadata must be an object");
    else if (name && *name && !str_eq(name, r->name))
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                "the name of the object (%s) does not match the name on the URL (%s)", name,
                r->name);
    else if (json_object_get(metadata, "managedFields") &&
             !json_is_null(json_object_get(metadata, "managedFields")))
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "metadata.managedFields must be nil");
    else {
        json_object_set_new(metadata, "name", json_string(r->name));
        api_normalize(r->kind, config, report);
        if (report->errors) {
            registry_invalid(r, config, report, e);
            return NULL;
        }
        if (!status && r->kind->flags & API_STATUS)
            json_object_del(config, "status");
        return typed_check(a, r->kind, config, e) < 0 ? NULL : json_incref(config);
    }
    return NULL;
}

/* Of what is applied to /status only the status counts. */
static void keep_status(json_t *config)
{
    static const char *const kept[] = {"apiVersion", "kind", "status", NULL};
    static const char *const kept_metadata[] = {"name", "namespace", "uid", "resourceVersion",
                                                NULL};
    const char *key;
    json_t *value, *metadata = json_object_get(config, "metadata");
    void *next;
    json_object_foreach_safe(config, next, key, value) {
        if (value != metadata && !str_in(key, kept))
            json_object_del(config, key);
    }
    json_object_foreach_safe(metadata, next, key, value) {
        if (!str_in(key, kept_metadata))
            json_object_del(metadata, key);
    }
}

/* What was owned before, is not wanted now and is nobody else's goes, and what it alone held. */
static json_t *prune(struct apply *p, const json_t *merged, const struct fieldset *last)
{
    struct arena *a = &p->arena;
    const struct api_kind *kind = p->r->kind;
    const struct fieldset *owned = NULL;
    vec_for_each(&p->managed.entries, entry)
        owned = fieldset_union(a, owned, entry->fields);
    last = typed_named(a, kind, last);
    owned = typed_named(a, kind, owned);
    if (fieldset_contains(owned, last))
        return json_incref((json_t *)merged);

    const struct fieldset *all = typed_named(a, kind, typed_set(a, kind, merged));
    json_auto_t *without_last = typed_remove(a, kind, merged, last);
    const struct fieldset *rest = typed_named(a, kind, typed_set(a, kind, without_last));
    json_auto_t *with_owned =
        typed_remove(a, kind, merged, fieldset_difference(a, all, fieldset_union(a, rest, owned)));
    rest = typed_named(a, kind, typed_set(a, kind, with_owned));
    const struct fieldset *gone = fieldset_intersection(a, fieldset_difference(a, all, rest), last);
    return typed_remove(a, kind, merged, gone);
}

/* What kubectl applied on its side and is still so. */
static const struct fieldset *applied_by_client(struct apply *p, const json_t *live)
{
    struct arena *a = &p->arena;
    const char *text = json_str(json_at(live, "metadata", "annotations"), last_applied);
    p->client = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
    if (!json_is_object(p->client))
        return NULL;
    struct api_report ignored = {0};
    api_normalize(p->r->kind, p->client, &ignored);
    api_report_done(&ignored);
    struct typed_changes c = typed_compare(a, p->r->kind, p->client, live);
    const struct fieldset *set = typed_set(a, p->r->kind, p->client);
    set = fieldset_difference(a, set, c.added);
    set = fieldset_difference(a, set, c.modified);
    return fieldset_difference(a, set, c.removed);
}

/* "kubectl" with subresource "status" using v1: who is in the way. */
static void append_manager(const struct managed_entry *entry, struct str *out)
{
    str_append(out, "conflict with ");
    fieldset_quote(entry->manager, out);
    if (*entry->subresource)
        str_appendf(out, " with subresource \"%s\"", entry->subresource);
    if (!entry->applied)
        str_appendf(out, " using %s", entry->version);
}

struct conflict {
    struct api_report *report;
    const char *message;
};

static void add_conflict(void *context, const char *path)
{
    const struct conflict *c = context;
    api_report_owned(c->report, path, c->message);
}

static int compare_managers(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    return strcmp(x->manager, y->manager);
}

/* Reports what others own of the fields that would change. */
static int check_conflicts(struct apply *p, const json_t *live, const struct fieldset *taken,
                           struct err *e)
{
    const struct fieldset *allowed = NULL;
    if (str_eq(p->r->manager, "kubectl"))
        allowed = applied_by_client(p, live);
    qsort(p->managed.entries.p, p->managed.entries.len, sizeof(struct managed_entry),
          compare_managers);
    const struct managed_entry *mine = managed_find(&p->managed, p->r, true);
    vec_for_each(&p->managed.entries, entry) {
        const struct fieldset *theirs = fieldset_intersection(&p->arena, entry->fields, taken);
        theirs = fieldset_difference(&p->arena, theirs, allowed);
        if (entry == mine || !theirs)
            continue;
        _cleanup_(str_done) struct str message = {0};
        append_manager(entry, &message);
        struct conflict c = {p->report, str_get(&message)};
        fieldset_paths(theirs, add_conflict, &c);
    }
    if (!p->report->errors)
        return 0;
    return err_set(e, ERR_ABORTED, "Conflict", "Apply failed with %u conflict%s", p->report->errors,
                   p->report->errors == 1 ? "" : "s");
}

/* What belongs to nobody when the first apply comes was there before it. */
static void own_before_first(struct apply *p, const json_t *live)
{
    struct apiserver_request before = *p->r;
    before.manager = "before-first-apply";
    before.subresource = APISERVER_MAIN;
    struct managed_entry entry = managed_entry_of(&p->arena, p->g, &before, false);
    entry.fields = typed_compare(&p->arena, p->r->kind, NULL, live).added;
    vec_push(&p->managed.entries, entry);
}

/* Gives everybody what is theirs now; false when that is what they had. */
static bool move_ownership(struct apply *p, const struct typed_changes *changes,
                           const struct fieldset *taken, const struct fieldset *last)
{
    struct managed_entry *mine = managed_find(&p->managed, p->r, true);
    const struct fieldset *lost = fieldset_union(&p->arena, taken, changes->removed);
    bool moved = lost || !fieldset_equal(mine->fields, last);
    vec_for_each(&p->managed.entries, entry) {
        if (entry != mine)
            entry->fields = fieldset_difference(&p->arena, entry->fields, lost);
    }
    if (moved)
        mine->time = managed_entry_of(&p->arena, p->g, p->r, true).time;
    managed_drop_empty(&p->managed);
    return moved;
}

/*
 * Finds the object that comes of the configuration. The result is the list of its owners; NULL with
 * conflicts in the report.
 */
static json_t *apply(struct apply *p, const json_t *live, const char *list, struct err *e)
{
    struct arena *a = &p->arena;
    managed_read(a, list, &p->managed);
    if (!p->managed.entries.len)
        own_before_first(p, live);
    struct managed_entry *mine = managed_find(&p->managed, p->r, true);
    const struct fieldset *last = mine ? mine->fields : NULL;
    if (!mine) {
        vec_push(&p->managed.entries, managed_entry_of(a, p->g, p->r, true));
        mine = &vec_last(&p->managed.entries);
    }
    mine->fields = typed_set(a, p->r->kind, p->config);

    json_auto_t *merged = typed_merge(a, p->r->kind, live, p->config);
    json_auto_t *pruned = prune(p, merged, last);
    p->applied = json_deep_copy(pruned);
    api_default(p->r->kind, p->applied);
    struct typed_changes changes = typed_compare(a, p->r->kind, live, p->applied);
    const struct fieldset *taken = fieldset_union(a, changes.added, changes.modified);
    if (!p->r->force && check_conflicts(p, live, taken, e) < 0)
        return NULL;
    if (!move_ownership(p, &changes, taken, last))
        return *list ? json_string_nocheck(list) : json_null();
    return managed_value(&p->managed, e);
}

/* Keeps kubectl's annotation up to date where it is. */
static void update_annotation(const struct apiserver_request *r, json_t *object,
                              const json_t *config)
{
    json_t *annotations = (json_t *)json_at(object, "metadata", "annotations");
    const char *text = json_str(annotations, last_applied);
    if (!str_eq(r->manager, "kubectl") || !text || !*text)
        return;
    json_auto_t *applied = json_deep_copy(config);
    json_object_del((json_t *)json_at(applied, "metadata", "annotations"), last_applied);
    _cleanup_(str_done) struct str out = {0};
    json_format(applied, &out);
    str_append_c(&out, '\n');
    json_object_set_new(annotations, last_applied, json_string(str_get(&out)));
}

static void apply_done(struct apply *p)
{
    managed_done(&p->managed);
    json_decref(p->config);
    json_decref(p->client);
    json_decref(p->applied);
    arena_done(&p->arena);
}

static struct apiserver_object *apply_new(struct apiserver_registry *g, struct apply *p,
                                          struct err *e)
{
    const char *uid = json_str(json_object_get(p->config, "metadata"), "uid");
    if (uid && *uid) {
        err_set(e, ERR_ABORTED, "Conflict",
                "uid mismatch: the provided object specified uid %s, and no existing object was "
                "found",
                uid);
        return NULL;
    }
    struct managed_entry mine = managed_entry_of(&p->arena, g, p->r, true);
    mine.fields = typed_set(&p->arena, p->r->kind, p->config);
    if (mine.fields)
        vec_push(&p->managed.entries, mine);
    struct apiserver_request r = *p->r;
    json_auto_t *managed = managed_value(&p->managed, e);
    if (!managed)
        return NULL;
    r.managed = managed;
    json_auto_t *object = json_deep_copy(p->config);
    return apiserver_create(g, &r, object, p->report, e);
}

static struct apiserver_object *apply_to(struct apiserver_registry *g, struct apply *p,
                                         const json_t *given, const json_t *live, const char *list,
                                         bool status, bool *ret_again, struct err *e)
{
    json_auto_t *managed = apply(p, live, list, e);
    if (!managed)
        return NULL;
    managed_done(&p->managed); /* it borrows from what changes now */
    struct apiserver_request r = *p->r;
    r.managed = managed;
    if (!status)
        update_annotation(&r, p->applied, given);
    *ret_again = true;
    return status ? apiserver_update_status(g, &r, p->applied, p->report, e)
                  : apiserver_update(g, &r, p->applied, p->report, e);
}

struct apiserver_object *apiserver_apply(struct apiserver_registry *g,
                                         const struct apiserver_request *r, const json_t *config,
                                         bool status, bool *ret_created, struct api_report *report,
                                         struct err *e)
{
    const json_t *named = json_at(config, "metadata", "resourceVersion");
    for (int tries = TRIES;; tries--) {
        _cleanup_(apply_done) struct apply p = {.g = g, .r = r, .report = report};
        api_report_clear(report);
        p.config = read_config(r, config, status, &p.arena, report, e);
        if (!p.config)
            return NULL;
        if (status)
            keep_status(p.config);
        _cleanup_(apiserver_object_unrefp) struct apiserver_object *there =
            registry_current(g, r, e);
        _cleanup_(str_done) struct str list = {0};
        json_auto_t *live = there ? registry_read(r->kind, there, &list, e) : NULL;
        bool again = false; /* somebody else was faster */
        struct apiserver_object *o = NULL;
        *ret_created = !there;
        if (live)
            o = apply_to(g, &p, config, live, str_get(&list), status, &again, e);
        else if (!there && !status)
            o = apply_new(g, &p, e);
        if (o || !tries || named || (there && !live) ||
            !(*ret_created ? str_eq(e->reason, "AlreadyExists")
                           : again && str_eq(e->reason, "Conflict")))
            return o;
    }
}

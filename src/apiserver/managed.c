#include "apiserver/managed.h"

#include "apiserver/registry_impl.h"

void managed_done(struct managed *m)
{
    vec_done(&m->entries);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_str(object, key);
    return text ? text : "";
}

int managed_decode(struct arena *a, const json_t *list, struct managed *ret_managed, struct err *e)
{
    size_t i;
    json_t *item;
    *ret_managed = (struct managed){0};
    json_array_foreach((json_t *)list, i, item) {
        const char *operation = text_of(item, "operation");
        struct managed_entry entry = {
            .manager = text_of(item, "manager"),
            .version = text_of(item, "apiVersion"),
            .subresource = text_of(item, "subresource"),
            .time = text_of(item, "time"),
            .applied = str_eq(operation, "Apply"),
        };
        const json_t *fields = json_object_get(item, "fieldsV1");
        if (!entry.applied && !str_eq(operation, "Update"))
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "operation must be `Apply` or `Update`");
        else if (!*entry.version)
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "apiVersion must not be empty");
        else if (!str_eq(text_of(item, "fieldsType"), "FieldsV1"))
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "fieldsType must be FieldsV1");
        else if (!fields || fieldset_decode(a, fields, &entry.fields, e) == 0) {
            vec_push(&ret_managed->entries, entry);
            continue;
        }
        managed_done(ret_managed);
        return err_prefix(e, "metadata.managedFields[%zu]", i);
    }
    return 0;
}

/* Kubernetes' order: by operation, time and the rest. Times are all of one form. */
static int compare_entries(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    if (x->applied != y->applied)
        return x->applied ? -1 : 1;
    int order = strcmp(x->time, y->time);
    if (!order)
        order = strcmp(x->manager, y->manager);
    if (!order)
        order = strcmp(x->version, y->version);
    return order ? order : strcmp(x->subresource, y->subresource);
}

static void append_member(struct str *out, const char *name, const char *value)
{
    str_append_c(out, ',');
    fieldset_quote(name, out);
    str_append_c(out, ':');
    fieldset_quote(value, out);
}

static void encode_entry(const struct managed_entry *entry, struct str *out)
{
    str_append(out, "{\"manager\":");
    fieldset_quote(entry->manager, out);
    append_member(out, "operation", entry->applied ? "Apply" : "Update");
    append_member(out, "apiVersion", entry->version);
    if (*entry->time)
        append_member(out, "time", entry->time);
    str_append(out, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    fieldset_encode(entry->fields, out);
    if (*entry->subresource)
        append_member(out, "subresource", entry->subresource);
    str_append_c(out, '}');
}

int managed_encode(struct managed *m, struct str *out, struct err *e)
{
    if (m->entries.len > 1)
        qsort(m->entries.p, m->entries.len, sizeof(*m->entries.p), compare_entries);
    size_t start = out->len;
    str_append_c(out, '[');
    vec_for_each(&m->entries, entry) {
        if (entry > m->entries.p)
            str_append_c(out, ',');
        encode_entry(entry, out);
        if (out->len - start > MANAGED_MAX_BYTES)
            return err_set(e, ERR_INVALID_ARGUMENT, "RequestEntityTooLarge",
                           "metadata.managedFields would be more than %d bytes: the object has too "
                           "many fields, or too many managers own them",
                           MANAGED_MAX_BYTES);
    }
    str_append_c(out, ']');
    return 0;
}

/* Without a name it is the server's own doing. */
static const char *manager_of(const struct apiserver_request *r)
{
    return r->manager ? r->manager : "orlop-apiserver";
}

struct managed_entry *managed_find(struct managed *m, const struct apiserver_request *r,
                                   bool applied)
{
    const char *subresource = apiserver_subresource_text(r->subresource);
    vec_for_each(&m->entries, entry) {
        if (entry->applied == applied && str_eq(entry->manager, manager_of(r)) &&
            str_eq(entry->subresource, subresource))
            return entry;
    }
    return NULL;
}

struct managed_entry managed_entry_of(struct arena *a, const struct apiserver_registry *g,
                                      const struct apiserver_request *r, bool applied)
{
    char time[RFC3339_MAX] = "", version[128];
    if (r->subresource != APISERVER_SCALE) /* of which Kubernetes keeps no time */
        registry_now(g, time);
    return (struct managed_entry){
        .manager = manager_of(r),
        .version = arena_strdup(a, api_version_text(api_kind_canonical(r->kind), version)),
        .subresource = apiserver_subresource_text(r->subresource),
        .time = arena_strdup(a, time),
        .applied = applied,
    };
}

void managed_drop_empty(struct managed *m)
{
    size_t n = 0;
    vec_for_each(&m->entries, entry) {
        if (entry->fields)
            m->entries.p[n++] = *entry;
    }
    m->entries.len = n;
}

json_t *managed_value(struct managed *m, struct err *e)
{
    if (!m->entries.len)
        return json_null();
    _cleanup_(str_done) struct str text = {0};
    return managed_encode(m, &text, e) < 0 ? NULL : json_stringn_nocheck(text.p, text.len);
}

/* `value` NULL is null. */
static void set_list(json_t *object, json_t *value)
{
    json_t *metadata = json_object_get(object, "metadata");
    if (!value || json_is_null(value))
        json_object_del(metadata, "managedFields");
    else
        json_object_set(metadata, "managedFields", value);
}

/*
 * The object without what the request cannot change: nobody owns it for having sent it, or for the
 * server having filled it in.
 */
static json_t *own_part(const struct apiserver_request *r, const json_t *object)
{
    if (!(r->kind->flags & API_STATUS) || r->subresource != APISERVER_MAIN)
        return json_incref((json_t *)object);
    json_t *part = json_copy((json_t *)object);
    json_object_del(part, "status");
    return part;
}

int managed_create(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, struct err *e)
{
    if (r->managed) {
        set_list(object, r->managed);
        return 0;
    }
    struct arena arena = {0};
    struct managed m = {0};
    struct managed_entry entry = managed_entry_of(&arena, g, r, false);
    json_auto_t *part = own_part(r, object);
    entry.fields = typed_compare(&arena, r->kind, NULL, part).added;
    if (entry.fields)
        vec_push(&m.entries, entry);
    json_auto_t *list = managed_value(&m, e);
    if (list)
        set_list(object, list);
    managed_done(&m);
    arena_done(&arena);
    return list ? 0 : -1;
}

/* [{}] says that there shall be no owners. */
static bool is_reset(const json_t *list)
{
    return json_array_size(list) == 1 && json_is_object(json_array_get(list, 0)) &&
           !json_object_size(json_array_get(list, 0));
}

/* Whether a client's list can be taken for what it says. */
static bool is_sound(const json_t *list)
{
    struct arena arena = {0};
    struct managed m;
    struct err e;
    bool sound = managed_decode(&arena, list, &m, &e) == 0 && m.entries.len > 0;
    managed_done(&m);
    arena_done(&arena);
    return sound;
}

void managed_begin_update(const struct apiserver_request *r, json_t *object, const json_t *stored)
{
    json_t *own = json_object_get(json_object_get(object, "metadata"), "managedFields");
    json_t *before = json_object_get(json_object_get(stored, "metadata"), "managedFields");
    bool may = r->subresource == APISERVER_MAIN;
    if (r->managed)
        set_list(object, r->managed);
    else if (may && is_reset(own))
        set_list(object, NULL);
    else if (!may || !own || (before && json_equal(own, before)) || !is_sound(own))
        set_list(object, before);
}

static const char ancient[] = "ancient-changes";

static int compare_ages(const void *a, const void *b)
{
    const struct managed_entry *x = a, *y = b;
    if (x->applied != y->applied) /* updates first */
        return x->applied ? 1 : -1;
    bool first = str_eq(x->manager, ancient), second = str_eq(y->manager, ancient);
    if (first != second)
        return first ? -1 : 1;
    int order = strcmp(x->time, y->time);
    return order ? order : strcmp(x->manager, y->manager);
}

/* Too many updaters: the oldest become one. All are of one version, unless a client said else. */
static void cap_updaters(struct arena *a, struct managed *m)
{
    size_t updaters = 0;
    vec_for_each(&m->entries, entry)
        updaters += !entry->applied;
    if (updaters <= MANAGED_MAX_UPDATERS)
        return;
    qsort(m->entries.p, m->entries.len, sizeof(*m->entries.p), compare_ages);
    struct managed_entry *bucket = &m->entries.p[0];
    for (size_t i = 1; i <= updaters - MANAGED_MAX_UPDATERS; i++) {
        struct managed_entry *entry = &m->entries.p[i];
        bucket->fields = fieldset_union(a, bucket->fields, entry->fields);
        bucket->time = entry->time;
        entry->fields = NULL;
    }
    bucket->manager = ancient;
    bucket->subresource = "";
    managed_drop_empty(m);
}

static void move_ownership(struct arena *a, const struct apiserver_registry *g,
                           const struct apiserver_request *r, const struct typed_changes *changes,
                           struct managed *m)
{
    const struct fieldset *taken = fieldset_union(a, changes->added, changes->modified);
    const struct fieldset *lost = fieldset_union(a, taken, changes->removed);
    vec_for_each(&m->entries, entry)
        entry->fields = fieldset_difference(a, entry->fields, lost);
    if (taken) {
        struct managed_entry mine = managed_entry_of(a, g, r, false);
        struct managed_entry *before = managed_find(m, r, false);
        mine.fields = fieldset_union(a, before ? before->fields : NULL, taken);
        if (before)
            *before = mine;
        else
            vec_push(&m->entries, mine);
    }
    managed_drop_empty(m);
    cap_updaters(a, m);
}

int managed_update(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, const json_t *stored, struct err *e)
{
    json_t *before = json_object_get(json_object_get(object, "metadata"), "managedFields");
    if (r->managed || !before)
        return 0;
    struct arena arena = {0};
    struct managed m;
    struct err unreadable; /* then nobody can be told from it who owns what */
    json_auto_t *was = own_part(r, stored), *is = own_part(r, object); /* sets borrow from them */
    if (managed_decode(&arena, before, &m, &unreadable) == 0) {
        struct typed_changes changes = typed_compare(&arena, r->kind, was, is);
        move_ownership(&arena, g, r, &changes, &m);
    }
    json_auto_t *list = managed_value(&m, e);
    managed_done(&m); /* it borrows from the list before */
    arena_done(&arena);
    if (list)
        set_list(object, list);
    return list ? 0 : -1;
}

#include "k8s/apiserver/managed.h"

#include "k8s/apiserver/registry_impl.h"

void managed_done(struct managed *m)
{
    vec_done(&m->entries);
    json_decref(m->list);
    m->list = NULL;
}

/* Goes behind `text`, if that is here. */
static bool skip(const char **at, const char *text)
{
    if (!str_starts_with(*at, text))
        return false;
    *at += strlen(text);
    return true;
}

/* A member that encode_entry() wrote. */
static const char *read_member(struct arena *a, const char **at, const char *name)
{
    return skip(at, name) ? fieldset_read_string(a, at) : NULL;
}

/* What encode_entry() wrote; -1 for all else. */
static int read_entry(struct arena *a, const char **at, struct managed_entry *ret_entry)
{
    *ret_entry = (struct managed_entry){
        .manager = read_member(a, at, "{\"manager\":"),
        .time = "",
        .subresource = "",
    };
    const char *operation = read_member(a, at, ",\"operation\":");
    ret_entry->version = read_member(a, at, ",\"apiVersion\":");
    if (!ret_entry->manager || !operation || !ret_entry->version)
        return -1;
    ret_entry->applied = str_eq(operation, "Apply");
    if (skip(at, ",\"time\":"))
        ret_entry->time = fieldset_read_string(a, at);
    if (!ret_entry->time || !skip(at, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":") ||
        fieldset_read(a, at, &ret_entry->fields) < 0)
        return -1;
    if (skip(at, ",\"subresource\":"))
        ret_entry->subresource = fieldset_read_string(a, at);
    return ret_entry->subresource && skip(at, "}") ? 0 : -1;
}

/* What managed_encode() wrote. */
static int read_entries(struct arena *a, const char *at, struct managed *ret_managed)
{
    if (!skip(&at, "["))
        return -1;
    while (!skip(&at, "]")) {
        struct managed_entry entry;
        if ((ret_managed->entries.len && !skip(&at, ",")) || read_entry(a, &at, &entry) < 0)
            return -1;
        vec_push(&ret_managed->entries, entry);
    }
    return *at ? -1 : 0;
}

void managed_read(struct arena *a, const char *text, struct managed *ret_managed)
{
    *ret_managed = (struct managed){0};
    if (!*text || read_entries(a, text, ret_managed) == 0)
        return;
    managed_done(ret_managed); /* somebody else wrote it */
    json_auto_t *list = json_parse(text, strlen(text), NULL, NULL);
    struct err unreadable;
    if (list && managed_decode(a, list, ret_managed, &unreadable) == 0)
        ret_managed->list = json_incref(list);
}

int managed_decode(struct arena *a, const json_t *list, struct managed *ret_managed, struct err *e)
{
    size_t i;
    json_t *item;
    *ret_managed = (struct managed){0};
    json_array_foreach((json_t *)list, i, item) {
        const char *operation = json_text(item, "operation");
        struct managed_entry entry = {
            .manager = json_text(item, "manager"),
            .version = json_text(item, "apiVersion"),
            .subresource = json_text(item, "subresource"),
            .time = json_text(item, "time"),
            .applied = str_eq(operation, "Apply"),
        };
        const json_t *fields = json_object_get(item, "fieldsV1");
        if (!entry.applied && !str_eq(operation, "Update"))
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "operation must be `Apply` or `Update`");
        else if (i >= MANAGED_MAX_ENTRIES)
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "too many entries");
        else if (!*entry.version)
            err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "apiVersion must not be empty");
        else if (!str_eq(json_text(item, "fieldsType"), "FieldsV1"))
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
        if (out->len - start > MANAGED_MAX_BYTES || m->entries.len > MANAGED_MAX_ENTRIES)
            return err_set(e, ERR_INVALID_ARGUMENT, "RequestEntityTooLarge",
                           "metadata.managedFields would be more than %d bytes or %d entries: the "
                           "object has too many fields, or too many managers own them",
                           MANAGED_MAX_BYTES, MANAGED_MAX_ENTRIES);
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

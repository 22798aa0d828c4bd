#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/registry_impl.h"

void apiserver_collection(const struct api_kind *kind, struct str *ret_name)
{
    str_appendf(ret_name, "%s/%s", api_kind_canonical(kind)->group, kind->plural);
}

void apiserver_key(const struct apiserver_request *r, const char *name, struct str *ret_key)
{
    if (r->namespace)
        str_appendf(ret_key, "%s/", r->namespace);
    str_append(ret_key, name);
}

static void append_member(struct str *out, const char *key, const json_t *value)
{
    json_auto_t *name = json_string(key);
    str_append_c(out, ',');
    json_format(name, out);
    str_append_c(out, ':');
    json_format(value, out);
}

/*
 * The text of an object around the digits of its revision. What the server looks for in it comes
 * first, so that it is found without reading the rest, and nothing inside the object can be taken
 * for it:
 *
 *     {"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"
 *     ","managedFields":[...],...},...}
 *
 * managedFields can be there as text already (managed.h).
 */
void registry_encode(const json_t *object, struct str *head, struct str *tail)
{
    static const char *const first[] = {"apiVersion", "kind", "metadata", NULL};
    const char *key;
    json_t *value, *metadata = json_object_get(object, "metadata");
    str_append(head, "{\"apiVersion\":");
    json_format(json_object_get(object, "apiVersion"), head);
    append_member(head, "kind", json_object_get(object, "kind"));
    str_append(head, ",\"metadata\":{\"resourceVersion\":\"");
    str_append_c(tail, '"');
    const json_t *managed = json_object_get(metadata, "managedFields");
    if (managed)
        str_append(tail, ",\"managedFields\":");
    if (json_is_string(managed))
        str_append_n(tail, json_string_value(managed), json_string_length(managed));
    else if (managed)
        json_format(managed, tail);
    json_object_foreach(metadata, key, value) {
        if (!str_eq(key, "resourceVersion") && value != managed)
            append_member(tail, key, value);
    }
    str_append_c(tail, '}');
    json_object_foreach((json_t *)object, key, value) {
        if (!str_in(key, first))
            append_member(tail, key, value);
    }
    str_append_c(tail, '}');
}

/* The byte behind a JSON list of which `at` is the first; NULL when it does not end. */
static const char *end_of_list(const char *at, const char *end)
{
    unsigned depth = 0;
    for (; at < end; at++) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++)
                at += *at == '\\';
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if ((*at == ']' || *at == '}') && --depth == 0) {
            return at + 1;
        }
    }
    return NULL;
}

/* Where managedFields begin, as registry_encode() puts them; NULL. */
static const char *find_managed(const char *at)
{
    static const char *const before[] = {"{\"apiVersion\":\"", "\",\"kind\":\"",
                                         "\",\"metadata\":{\"resourceVersion\":\"",
                                         "\",\"managedFields\":"};
    for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
        if (!str_starts_with(at, before[i]))
            return NULL;
        at += strlen(before[i]);
        if (i < ARRAY_SIZE(before) - 1)
            at += strcspn(at, "\"\\");
    }
    return at;
}

json_t *registry_load(const struct apiserver_object *o, struct str *ret_managed, struct err *e)
{
    const char *start = find_managed(o->bytes);
    const char *end = start && *start == '[' ? end_of_list(start, o->bytes + o->size) : NULL;
    if (end) {
        _cleanup_(str_done) struct str rest = {0};
        str_append_n(&rest, o->bytes, (size_t)(start - o->bytes));
        str_append(&rest, "null"); /* in its place, and cheap */
        str_append_n(&rest, end, (size_t)(o->bytes + o->size - end));
        json_t *object = json_parse(rest.p, rest.len, NULL, e);
        json_object_del(json_object_get(object, "metadata"), "managedFields");
        str_append_n(ret_managed, start, (size_t)(end - start));
        return object;
    }
    json_t *object = json_parse(o->bytes, o->size, NULL, e);
    json_t *metadata = json_object_get(object, "metadata");
    json_t *managed = json_object_get(metadata, "managedFields");
    if (managed) {
        json_format(managed, ret_managed);
        json_object_del(metadata, "managedFields");
    }
    return object;
}

json_t *registry_read(const struct api_kind *kind, const struct apiserver_object *o,
                      struct str *ret_managed, struct err *e)
{
    json_t *stored = registry_load(o, ret_managed, e);
    if (!stored || !kind->schema)
        return stored;
    if (kind->conversion) {
        json_auto_t *kept = stored;
        stored = apiserver_convert_json(kind, kept, api_kind_canonical(kind), e);
        if (!stored)
            return NULL;
    }
    json_t *read = api_read(kind, stored);
    char text[128];
    json_object_set_new(read, "apiVersion",
                        json_string(api_version_text(api_kind_canonical(kind), text)));
    json_decref(stored);
    return read;
}

int registry_outdated(const struct apiserver_request *r, const char *name, struct err *e)
{
    return err_set(e, ERR_ABORTED, "Conflict",
                   "Operation cannot be fulfilled on %s \"%s\": the object has been modified; "
                   "please apply your changes to the latest version and try again",
                   r->kind->plural, name);
}

struct apiserver_object *registry_write(struct apiserver_registry *g,
                                        const struct apiserver_request *r,
                                        enum apiserver_change change, const char *name,
                                        uint64_t expected, const json_t *object, struct err *e)
{
    _cleanup_(str_done) struct str collection = {0}, key = {0}, head = {0}, tail = {0};
    apiserver_collection(r->kind, &collection);
    apiserver_key(r, name, &key);
    registry_encode(object, &head, &tail);
    if (r->dry_run) { /* everything but the change itself; a create can still be refused */
        struct apiserver_object *there =
            apiserver_store_get(g->store, str_get(&collection), str_get(&key));
        if (change == APISERVER_CREATED && there) {
            apiserver_object_unref(there);
            err_set(e, ERR_ALREADY_EXISTS, "AlreadyExists", "%s \"%s\" already exists",
                    r->kind->plural, name);
            return NULL;
        }
        uint64_t revision = there ? there->revision : 0;
        apiserver_object_unref(there);
        return apiserver_object_new(r->kind->plural, str_get(&key), revision, head.p, head.len,
                                    tail.p, tail.len);
    }
    struct apiserver_write w = {
        .change = change,
        .collection = str_get(&collection),
        .key = str_get(&key),
        .expected = expected,
        .head = head.p,
        .head_size = head.len,
        .tail = tail.p,
        .tail_size = tail.len,
    };
    struct apiserver_object *stored = NULL;
    if (apiserver_store_write(g->store, &w, &stored, e) == 0)
        return stored;
    if (e->code == ERR_ABORTED)
        registry_outdated(r, name, e);
    return NULL;
}

struct apiserver_object *registry_write_end(struct apiserver_registry *g,
                                            const struct apiserver_request *r,
                                            const struct apiserver_object *there,
                                            const json_t *object, const json_t *stored,
                                            struct err *e)
{
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *gone =
        registry_write(g, r, APISERVER_DELETED, r->name, there->revision, stored, e);
    if (!gone)
        return NULL;
    _cleanup_(str_done) struct str head = {0}, tail = {0};
    registry_encode(object, &head, &tail);
    return apiserver_object_new(gone->collection, gone->key, gone->revision, head.p, head.len,
                                tail.p, tail.len);
}

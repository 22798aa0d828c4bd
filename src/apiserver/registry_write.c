#include "apiserver/registry_impl.h"

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

/*
 * The text of an object around the digits of its revision: {"metadata":{...,"resourceVersion":" and
 * ",...}. Written member by member, so that nothing inside the object can be taken for that place.
 * managedFields can be there as text already (managed.h).
 */
static void encode(const json_t *object, struct str *head, struct str *tail)
{
    const char *key, *meta_key;
    json_t *value, *meta_value;
    struct str *out = head;
    str_append_c(out, '{');
    bool first = true;
    json_object_foreach((json_t *)object, key, value) {
        json_auto_t *name = json_string(key);
        str_append(out, first ? "" : ",");
        first = false;
        json_format(name, out);
        str_append_c(out, ':');
        if (!str_eq(key, "metadata")) {
            json_format(value, out);
            continue;
        }
        str_append(out, "{\"resourceVersion\":\"");
        out = tail;
        str_append_c(out, '"');
        json_object_foreach(value, meta_key, meta_value) {
            if (str_eq(meta_key, "resourceVersion"))
                continue;
            json_auto_t *meta_name = json_string(meta_key);
            str_append_c(out, ',');
            json_format(meta_name, out);
            str_append_c(out, ':');
            if (str_eq(meta_key, "managedFields") && json_is_string(meta_value))
                str_append_n(out, json_string_value(meta_value), json_string_length(meta_value));
            else
                json_format(meta_value, out);
        }
        str_append_c(out, '}');
    }
    str_append_c(out, '}');
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
    encode(object, &head, &tail);
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
    encode(object, &head, &tail);
    return apiserver_object_new(gone->collection, gone->key, gone->revision, head.p, head.len,
                                tail.p, tail.len);
}

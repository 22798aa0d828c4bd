/*
 * Values: from JSON as its type says, elements of lists and members of maps. What is JSON stays JSON
 * until somebody looks at it.
 */
#include "base/base64.h"
#include "k8s/cel/impl.h"

const char *const cel_type_names[CEL_TYPES] = {
    [CEL_DYN] = "dyn",
    [CEL_NULL] = "null_type",
    [CEL_BOOL] = "bool",
    [CEL_INT] = "int",
    [CEL_UINT] = "uint",
    [CEL_DOUBLE] = "double",
    [CEL_STRING] = "string",
    [CEL_BYTES] = "bytes",
    [CEL_LIST] = "list",
    [CEL_MAP] = "map",
    [CEL_TIMESTAMP] = "google.protobuf.Timestamp",
    [CEL_DURATION] = "google.protobuf.Duration",
    [CEL_TYPE] = "type",
    [CEL_OPTIONAL] = "optional_type",
    [CEL_QUANTITY] = "kubernetes.Quantity",
    [CEL_URL] = "kubernetes.URL",
    [CEL_IP] = "net.IP",
    [CEL_CIDR] = "net.CIDR",
    [CEL_SEMVER] = "kubernetes.Semver",
    [CEL_AUTHORIZER] = "kubernetes.authorization.Authorizer",
    [CEL_PATH_CHECK] = "kubernetes.authorization.PathCheck",
    [CEL_GROUP_CHECK] = "kubernetes.authorization.GroupCheck",
    [CEL_RESOURCE_CHECK] = "kubernetes.authorization.ResourceCheck",
    [CEL_DECISION] = "kubernetes.authorization.Decision",
};

static bool from_bytes(struct cel_run *r, const json_t *json, struct cel_value *ret)
{
    _cleanup_(str_done) struct str bytes = {0};
    if (!base64_parse(json_string_value(json), json_string_length(json), BASE64_STD, &bytes))
        return cel_fail(r, "Invalid byte formatted string %.100s", json_string_value(json));
    *ret = (struct cel_value){
        .type = CEL_BYTES, .text = {arena_copy(&r->arena, str_get(&bytes), bytes.len), bytes.len}};
    return cel_spend_bytes(r, bytes.len);
}

static bool from_string(struct cel_run *r, const json_t *json, const struct cel_decl *decl,
                        struct cel_value *ret)
{
    const char *text = json_string_value(json);
    *ret = (struct cel_value){.type = CEL_STRING, .text = {text, json_string_length(json)}};
    switch (decl->type) {
    case CEL_TIMESTAMP:
        ret->type = CEL_TIMESTAMP;
        return cel_time_parse(text, decl->date, &ret->time) ||
               cel_fail(r, "Invalid %s formatted string %.100s", decl->date ? "date" : "date-time",
                        text);
    case CEL_DURATION:
        ret->type = CEL_DURATION;
        return cel_duration_parse(text, true, &ret->integer) ||
               cel_fail(r, "Invalid duration %.100s", text);
    case CEL_BYTES:
        return from_bytes(r, json, ret);
    default:
        return true;
    }
}

bool cel_from_json(struct cel_run *r, const json_t *json, const struct cel_decl *decl,
                   struct cel_value *ret)
{
    struct cel_list *list;
    struct cel_map *map;
    *ret = (struct cel_value){.type = CEL_NULL};
    if (!decl)
        decl = &cel_decls[CEL_DYN];
    switch (json ? json_typeof(json) : JSON_NULL) {
    case JSON_NULL:
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = cel_make_bool(json_is_true(json));
        return true;
    case JSON_INTEGER:
        *ret = cel_make_int(json_integer_value(json));
        if (decl->type == CEL_DOUBLE)
            *ret = (struct cel_value){.type = CEL_DOUBLE, .real = (double)json_integer_value(json)};
        return true;
    case JSON_REAL:
        *ret = (struct cel_value){.type = CEL_DOUBLE, .real = json_real_value(json)};
        if (decl->type == CEL_INT && json_real_is_whole(json_real_value(json), (json_int_t[]){0}))
            *ret = cel_make_int((int64_t)json_real_value(json));
        return true;
    case JSON_STRING:
        return from_string(r, json, decl, ret);
    case JSON_ARRAY:
        list = arena_new(&r->arena, struct cel_list);
        *list = (struct cel_list){.n = json_array_size(json), .json = json, .decl = decl};
        *ret = (struct cel_value){.type = CEL_LIST, .list = list};
        return true;
    case JSON_OBJECT:
        map = arena_new(&r->arena, struct cel_map);
        *map = (struct cel_map){.n = json_object_size(json), .json = json, .decl = decl};
        *ret = (struct cel_value){.type = CEL_MAP, .map = map};
        return true;
    }
    return true;
}

bool cel_list_at(struct cel_run *r, const struct cel_list *l, size_t i, struct cel_value *ret)
{
    if (!l->items)
        return cel_from_json(r, json_array_get(l->json, i), l->decl->element, ret);
    *ret = l->items[i];
    return true;
}

/* The type of a member: an object's fields have each its own. */
static const struct cel_decl *member_decl(const struct cel_decl *d, const char *key)
{
    for (size_t i = 0; d->object && i < d->n_fields; i++) {
        if (str_eq(d->fields[i].key, key))
            return d->fields[i].decl;
    }
    return d->object ? NULL : d->element;
}

bool cel_map_next(struct cel_run *r, const struct cel_map *m, size_t i, void **it,
                  struct cel_pair *ret)
{
    if (m->pairs) {
        *ret = m->pairs[i];
        return true;
    }
    json_t *json = (json_t *)m->json;
    *it = *it ? json_object_iter_next(json, *it) : json_object_iter(json);
    const char *key = json_object_iter_key(*it);
    size_t n = json_object_iter_key_len(*it);
    ret->key = (struct cel_value){.type = CEL_STRING, .text = {key, n}};
    return cel_from_json(r, json_object_iter_value(*it), member_decl(m->decl, key), &ret->value);
}

int cel_map_find(struct cel_run *r, const struct cel_map *m, const struct cel_value *key,
                 struct cel_value *ret)
{
    if (!m->pairs) {
        const json_t *json =
            key->type == CEL_STRING ? json_object_getn(m->json, key->text.p, key->text.n) : NULL;
        if (!json)
            return 0;
        return cel_from_json(r, json, member_decl(m->decl, key->text.p), ret) ? 1 : -1;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (cel_equal(r, &m->pairs[i].key, key)) {
            *ret = m->pairs[i].value;
            return 1;
        }
        if (r->failure)
            return -1;
    }
    return 0;
}

int cel_map_field(struct cel_run *r, const struct cel_map *m, const char *name,
                  struct cel_value *ret)
{
    if (m->decl->object) {
        const struct cel_field *f = cel_field_find(m->decl, name);
        const json_t *json = f ? json_object_get(m->json, f->key) : NULL;
        return !json ? 0 : cel_from_json(r, json, f->decl, ret) ? 1 : -1;
    }
    struct cel_value key = {.type = CEL_STRING, .text = {name, strlen(name)}};
    return cel_map_find(r, m, &key, ret);
}

struct cel_value cel_make_list(struct cel_run *r, const struct cel_value *items, size_t n)
{
    struct cel_list *l = arena_new(&r->arena, struct cel_list);
    struct cel_value *own = arena_alloc(&r->arena, (n + 1) * sizeof(*own));
    if (n)
        memcpy(own, items, n * sizeof(*own));
    *l = (struct cel_list){.n = n, .items = own, .decl = &cel_decls[CEL_LIST]};
    return (struct cel_value){.type = CEL_LIST, .list = l};
}

struct cel_value cel_make_string(struct cel_run *r, const char *p, size_t n)
{
    return (struct cel_value){.type = CEL_STRING, .text = {arena_copy(&r->arena, p, n), n}};
}

struct cel_value cel_make_type(enum cel_type t)
{
    return (struct cel_value){.type = CEL_TYPE,
                              .text = {cel_type_names[t], strlen(cel_type_names[t])}};
}

struct cel_value cel_make_optional(struct cel_run *r, const struct cel_value *inner)
{
    struct cel_value *own = NULL;
    if (inner) {
        own = arena_new(&r->arena, struct cel_value);
        *own = *inner;
    }
    return (struct cel_value){.type = CEL_OPTIONAL, .inner = own};
}

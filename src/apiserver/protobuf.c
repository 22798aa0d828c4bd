#include "apiserver/protobuf.h"

#include <stdint.h>

#include "base/mem.h"

enum { DEPTH = 16, MOST_VALUES = 100000 };

enum field_type {
    FIELD_STRING,
    FIELD_STRINGS, /* a list */
    FIELD_INT,
    FIELD_OBJECT,
    FIELD_MAP, /* of strings */
};

struct field {
    unsigned number;
    const char *name; /* NULL ends a table */
    enum field_type type;
    const struct field *fields;
};

static const struct field metadata[] = {
    {1, "name", FIELD_STRING},
    {2, "generateName", FIELD_STRING},
    {3, "namespace", FIELD_STRING},
    {5, "uid", FIELD_STRING},
    {6, "resourceVersion", FIELD_STRING},
    {11, "labels", FIELD_MAP},
    {12, "annotations", FIELD_MAP},
    {0},
};

static const struct field map_entry[] = {{1, "key", FIELD_STRING}, {2, "value", FIELD_STRING}, {0}};

static const struct field self_subject_review[] = {{1, "metadata", FIELD_OBJECT, metadata}, {0}};

static const struct field token_review_spec[] = {
    {1, "token", FIELD_STRING}, {2, "audiences", FIELD_STRINGS}, {0}};

static const struct field token_review[] = {
    {1, "metadata", FIELD_OBJECT, metadata}, {2, "spec", FIELD_OBJECT, token_review_spec}, {0}};

static const struct field bound_object[] = {
    {1, "kind", FIELD_STRING},
    {2, "apiVersion", FIELD_STRING},
    {3, "name", FIELD_STRING},
    {4, "uid", FIELD_STRING},
    {0},
};

static const struct field token_request_spec[] = {
    {1, "audiences", FIELD_STRINGS},
    {3, "boundObjectRef", FIELD_OBJECT, bound_object},
    {4, "expirationSeconds", FIELD_INT},
    {0},
};

static const struct field token_request[] = {
    {1, "metadata", FIELD_OBJECT, metadata}, {2, "spec", FIELD_OBJECT, token_request_spec}, {0}};

/* The kinds that can come in this form. */
static const struct {
    const char *version, *kind;
    const struct field *fields;
} messages[] = {
    {"authentication.k8s.io/v1", "SelfSubjectReview", self_subject_review},
    {"authentication.k8s.io/v1", "TokenReview", token_review},
    {"authentication.k8s.io/v1", "TokenRequest", token_request},
};

struct reader {
    const uint8_t *p, *end;
    size_t *values; /* how many more there may be in all */
};

static bool read_varint(struct reader *r, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
        uint8_t byte = *r->p++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* One field: its number, and its value as a number or as bytes. */
struct value {
    unsigned number;
    bool is_bytes;
    uint64_t integer;
    struct reader bytes;
};

static bool read_value(struct reader *r, struct value *ret_value)
{
    enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };
    uint64_t tag, size = 0;
    if (!*r->values || !read_varint(r, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    --*r->values;
    *ret_value = (struct value){.number = (unsigned)(tag >> 3)};
    switch (tag & 7) {
    case VARINT:
        return read_varint(r, &ret_value->integer);
    case BYTES:
        ret_value->is_bytes = true;
        if (!read_varint(r, &size))
            return false;
        break;
    case FIXED64:
        size = 8;
        break;
    case FIXED32:
        size = 4;
        break;
    default:
        return false;
    }
    if (size > (size_t)(r->end - r->p))
        return false;
    ret_value->bytes = (struct reader){r->p, r->p + size, r->values};
    r->p += size;
    return true;
}

static bool read_message(struct reader r, const struct field *fields, json_t *object, int depth);

static json_t *text_of(const struct value *v)
{
    return v->is_bytes ? json_stringn((const char *)v->bytes.p, (size_t)(v->bytes.end - v->bytes.p))
                       : NULL; /* also for what is no UTF-8 */
}

/* The member of that name, made if it is missing. */
static json_t *member(json_t *object, const char *name, json_t *(*make)(void))
{
    json_t *value = json_object_get(object, name);
    if (!value) {
        value = make();
        json_object_set_new(object, name, value);
    }
    return value;
}

static bool put_entry(const struct value *v, json_t *map)
{
    json_auto_t *entry = json_object();
    if (!v->is_bytes || !read_message(v->bytes, map_entry, entry, 1))
        return false;
    const char *key = json_str(entry, "key"), *value = json_str(entry, "value");
    return json_object_set_new(map, key ? key : "", json_string(value ? value : "")) == 0;
}

static bool put_value(const struct field *f, const struct value *v, json_t *object, int depth)
{
    if (f->type == FIELD_STRING && v->is_bytes && v->bytes.p == v->bytes.end)
        return true;
    switch (f->type) {
    case FIELD_STRING:
        return json_object_set_new(object, f->name, text_of(v)) == 0;
    case FIELD_STRINGS:
        return json_array_append_new(member(object, f->name, json_array), text_of(v)) == 0;
    case FIELD_INT:
        return !v->is_bytes &&
               json_object_set_new(object, f->name, json_integer((json_int_t)v->integer)) == 0;
    case FIELD_OBJECT:
        return v->is_bytes &&
               read_message(v->bytes, f->fields, member(object, f->name, json_object), depth - 1);
    case FIELD_MAP:
        return put_entry(v, member(object, f->name, json_object));
    }
    return false;
}

static bool read_message(struct reader r, const struct field *fields, json_t *object, int depth)
{
    struct value v;
    if (depth <= 0)
        return false;
    while (r.p < r.end) {
        if (!read_value(&r, &v))
            return false;
        const struct field *f = fields;
        while (f->name && f->number != v.number)
            f++;
        if (f->name && !put_value(f, &v, object, depth))
            return false;
    }
    return true;
}

static json_t *damaged(struct err *e)
{
    err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the body is no object in protobuf");
    return NULL;
}

json_t *apiserver_protobuf_decode(const void *bytes, size_t size, struct err *e)
{
    static const char magic[4] = "k8s";
    static const struct field type_meta[] = {
        {1, "apiVersion", FIELD_STRING}, {2, "kind", FIELD_STRING}, {0}};
    static const struct field unknown[] = {{1, "type", FIELD_OBJECT, type_meta}, {0}};
    size_t values = MOST_VALUES;
    struct reader r = {bytes, (const uint8_t *)bytes + size, &values}, raw = {.values = &values};
    json_auto_t *envelope = json_object(), *object = json_object();
    if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0)
        return damaged(e);
    r.p += sizeof(magic);
    if (!read_message(r, unknown, envelope, DEPTH))
        return damaged(e);
    for (struct value v; r.p < r.end && read_value(&r, &v);) {
        if (v.number == 2 && v.is_bytes)
            raw = v.bytes;
    }
    const char *version = json_str(json_object_get(envelope, "type"), "apiVersion");
    const char *kind = json_str(json_object_get(envelope, "type"), "kind");
    size_t i = 0;
    while (i < ARRAY_SIZE(messages) && !(version && kind && str_eq(version, messages[i].version) &&
                                         str_eq(kind, messages[i].kind)))
        i++;
    if (i == ARRAY_SIZE(messages)) {
        err_set(e, ERR_INVALID_ARGUMENT, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json");
        return NULL;
    }
    if (raw.p && !read_message(raw, messages[i].fields, object, DEPTH))
        return damaged(e);
    json_object_set_new(object, "kind", json_string(kind));
    json_object_set_new(object, "apiVersion", json_string(version));
    return json_incref(object);
}

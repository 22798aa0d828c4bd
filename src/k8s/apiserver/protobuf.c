#include "k8s/apiserver/protobuf.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/rfc3339.h"

enum { MOST_VALUES = 100000, MOST_DEPTH = 16 };
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static const char magic[4] = "k8s";

typedef const struct api_message_field field;

/* What is left of a message. */
struct input {
    const unsigned char *p, *end;
};

struct decoder {
    size_t values;
    unsigned depth;
    struct err *e;
};

static int broken(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the protobuf body is broken: %s", what);
}

static bool read_varint(struct input *in, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && in->p < in->end; shift += 7) {
        unsigned char byte = *in->p++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* One field as it is on the wire. */
struct item {
    uint64_t number;
    enum wire wire;
    uint64_t value;      /* of a varint */
    struct input inside; /* of bytes */
};

static bool read_item(struct input *in, struct item *ret)
{
    uint64_t tag;
    if (!read_varint(in, &tag) || tag >> 3 == 0)
        return false;
    *ret = (struct item){.number = tag >> 3, .wire = (enum wire)(tag & 7)};
    size_t left;
    switch (ret->wire) {
    case VARINT:
        return read_varint(in, &ret->value);
    case FIXED64:
    case FIXED32:
        left = ret->wire == FIXED64 ? 8 : 4;
        if ((size_t)(in->end - in->p) < left)
            return false;
        in->p += left;
        return true;
    case BYTES:
        if (!read_varint(in, &ret->value) || ret->value > (size_t)(in->end - in->p))
            return false;
        ret->inside = (struct input){in->p, in->p + ret->value};
        in->p += ret->value;
        return true;
    }
    return false; /* groups, which nobody writes any more */
}

/* The first and second field of a message as they come last; those of other types do not count. */
static bool read_pair(struct input in, enum wire wire, struct item *ret_first,
                      struct item *ret_second)
{
    *ret_first = *ret_second = (struct item){0};
    for (struct item item; in.p < in.end;) {
        if (!read_item(&in, &item))
            return false;
        if (item.number == 1 && item.wire == wire)
            *ret_first = item;
        else if (item.number == 2 && item.wire == wire)
            *ret_second = item;
    }
    return true;
}

static json_t *decode_string(struct input in, struct err *e)
{
    size_t n = (size_t)(in.end - in.p);
    json_t *value = n && memchr(in.p, '\0', n) ? NULL : json_stringn((const char *)in.p, n);
    if (!value)
        broken(e, "a string is no UTF-8 text");
    return value;
}

static json_t *decode_time(struct input in, enum rfc3339_digits digits, struct err *e)
{
    /* Years 1 to 9999. */
    static const int64_t first = -62135596800, last = 253402300799;
    struct item seconds, nanos;
    char text[RFC3339_MAX];
    if (!read_pair(in, VARINT, &seconds, &nanos) || (int64_t)seconds.value < first ||
        (int64_t)seconds.value > last || nanos.value > 999999999) {
        broken(e, "a time is none");
        return NULL;
    }
    struct timespec t = {.tv_sec = (time_t)seconds.value, .tv_nsec = (long)nanos.value};
    return json_string(rfc3339_format(t, digits, text));
}

static json_t *decode_json(struct input in, struct err *e)
{
    struct item raw, other;
    if (!read_pair(in, BYTES, &raw, &other)) {
        broken(e, "a value is cut off");
        return NULL;
    }
    return json_parse((const char *)raw.inside.p, (size_t)(raw.inside.end - raw.inside.p), NULL, e);
}

static json_t *decode_base64(struct input in)
{
    _cleanup_(str_done) struct str text = {0};
    base64_format(in.p, (size_t)(in.end - in.p), BASE64_STD, &text);
    return json_string(str_get(&text));
}

static json_t *decode_quantity(struct input in, struct err *e)
{
    struct item text, other;
    if (!read_pair(in, BYTES, &text, &other)) {
        broken(e, "a quantity is cut off");
        return NULL;
    }
    return text.inside.p == text.inside.end ? json_string("0") : decode_string(text.inside, e);
}

static json_t *decode_int_or_string(struct input in, struct err *e)
{
    struct item type = {0}, number = {0}, text = {0};
    for (struct item item; in.p < in.end;) {
        if (!read_item(&in, &item)) {
            broken(e, "a number or word is cut off");
            return NULL;
        }
        if (item.number == 1 && item.wire == VARINT)
            type = item;
        else if (item.number == 2 && item.wire == VARINT)
            number = item;
        else if (item.number == 3 && item.wire == BYTES)
            text = item;
    }
    return type.value ? decode_string(text.inside, e) : json_integer((json_int_t)number.value);
}

static int decode_fields(struct decoder *d, struct input in, field *fields, json_t *object);

/* One entry of a map. */
static int decode_entry(struct decoder *d, struct input in, field *f, json_t *map)
{
    static field items[] = {
        {"items", 1, API_MESSAGE_STRING, .repeated = true},
        {0},
    };
    struct item key, value;
    if (!read_pair(in, BYTES, &key, &value))
        return broken(d->e, "a map is cut off");
    json_auto_t *name = decode_string(key.inside, d->e);
    json_auto_t *content = NULL;
    if (f->kind == API_MESSAGE_MAP) {
        content = decode_string(value.inside, d->e);
    } else if (f->kind == API_MESSAGE_BYTES_MAP) {
        content = decode_base64(value.inside);
    } else if (f->kind == API_MESSAGE_QUANTITIES) {
        content = decode_quantity(value.inside, d->e);
    } else {
        json_auto_t *lists = json_object();
        if (decode_fields(d, value.inside, items, lists) == 0)
            content = json_object_get(lists, "items") ? json_incref(json_object_get(lists, "items"))
                                                      : json_array();
    }
    if (!name || !content)
        return -1;
    return json_object_set(map, json_string_value(name), content);
}

/* A value that is a message, list or map of its own; `there` is what was decoded of it before. */
static json_t *decode_bytes(struct decoder *d, struct input in, field *f, json_t *there)
{
    switch (f->kind) {
    case API_MESSAGE_STRING:
        return decode_string(in, d->e);
    case API_MESSAGE_TIME:
        return decode_time(in, RFC3339_SECONDS, d->e);
    case API_MESSAGE_MICRO_TIME:
        return decode_time(in, RFC3339_MICRO, d->e);
    case API_MESSAGE_JSON:
        return decode_json(in, d->e);
    case API_MESSAGE_BYTES:
        return decode_base64(in);
    case API_MESSAGE_QUANTITY:
        return decode_quantity(in, d->e);
    case API_MESSAGE_INT_OR_STRING:
        return decode_int_or_string(in, d->e);
    case API_MESSAGE_MESSAGE:
    case API_MESSAGE_MAP:
    case API_MESSAGE_BYTES_MAP:
    case API_MESSAGE_QUANTITIES:
    case API_MESSAGE_LISTS: {
        json_auto_t *object = there && !f->repeated ? json_incref(there) : json_object();
        int status = f->kind == API_MESSAGE_MESSAGE ? decode_fields(d, in, f->fields, object)
                                                    : decode_entry(d, in, f, object);
        return status < 0 ? NULL : json_incref(object);
    }
    case API_MESSAGE_INLINE: /* handled where the object is known */
    case API_MESSAGE_BOOL:
    case API_MESSAGE_INT:
        break;
    }
    broken(d->e, "a field has the wrong type");
    return NULL;
}

/* What Go writes though nobody set it. */
static bool says_nothing(field *f, const struct item *item)
{
    bool empty = item->wire == VARINT ? item->value == 0 : item->inside.p == item->inside.end;
    if (f->keep || f->repeated || !empty)
        return false;
    return f->kind != API_MESSAGE_MESSAGE;
}

static int decode_field(struct decoder *d, const struct item *item, field *f, json_t *object)
{
    bool number = f->kind == API_MESSAGE_BOOL || f->kind == API_MESSAGE_INT;
    if (item->wire != (number ? VARINT : BYTES))
        return broken(d->e, "a field has the wrong type");
    if (++d->values > MOST_VALUES)
        return broken(d->e, "it has too many values");
    if (f->kind == API_MESSAGE_INLINE)
        return decode_fields(d, item->inside, f->fields, object);
    if (says_nothing(f, item)) {
        json_object_del(object, f->name);
        return 0;
    }
    json_t *there = json_object_get(object, f->name), *value;
    if (number)
        value = f->kind == API_MESSAGE_BOOL ? json_boolean(item->value != 0)
                                            : json_integer((json_int_t)item->value);
    else
        value = decode_bytes(d, item->inside, f, there);
    if (!value)
        return -1;
    if (!f->repeated)
        return json_object_set_new(object, f->name, value);
    if (!there) {
        there = json_array();
        json_object_set_new(object, f->name, there);
    }
    return json_array_append_new(there, value);
}

static int decode_fields(struct decoder *d, struct input in, field *fields, json_t *object)
{
    if (++d->depth > MOST_DEPTH)
        return broken(d->e, "it is too deep");
    for (struct item item; in.p < in.end;) {
        if (!read_item(&in, &item))
            return broken(d->e, "a field is cut off");
        field *f = fields;
        while (f->number && f->number != item.number)
            f++;
        if (f->number && decode_field(d, &item, f, object) < 0)
            return -1;
    }
    d->depth--;
    return 0;
}

/* The envelope: typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2, contentEncoding = 3. */
static int read_envelope(struct input in, json_t **ret_version, json_t **ret_kind,
                         struct input *ret_raw, struct err *e)
{
    struct item type = {0}, raw = {0}, version, kind;
    for (struct item item; in.p < in.end;) {
        if (!read_item(&in, &item))
            return broken(e, "the envelope is cut off");
        if (item.number == 1 && item.wire == BYTES)
            type = item;
        else if (item.number == 2 && item.wire == BYTES)
            raw = item;
        else if (item.number == 3 && item.inside.p != item.inside.end)
            return broken(e, "its content is encoded in some way");
    }
    if (!read_pair(type.inside, BYTES, &version, &kind))
        return broken(e, "its type is cut off");
    *ret_version = decode_string(version.inside, e);
    *ret_kind = decode_string(kind.inside, e);
    *ret_raw = raw.inside;
    return *ret_version && *ret_kind ? 0 : -1;
}

json_t *apiserver_protobuf_parse(const void *bytes, size_t size, struct err *e)
{
    json_auto_t *version = NULL, *kind = NULL;
    struct input raw = {0}, in = {bytes, (const unsigned char *)bytes + size};
    if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0) {
        broken(e, "it does not begin as one of Kubernetes does");
        return NULL;
    }
    in.p += sizeof(magic);
    if (read_envelope(in, &version, &kind, &raw, e) < 0)
        return NULL;
    field *fields = api_message_find(json_string_value(version), json_string_value(kind));
    if (!fields) {
        err_set(
            e, ERR_UNIMPLEMENTED, "UnsupportedMediaType",
            "the body of the request is a %.100s of %.100s in protobuf, which this server takes "
            "for few kinds only: send application/json",
            json_string_value(kind), json_string_value(version));
        return NULL;
    }
    json_auto_t *object =
        json_pack("{s:O,s:O,s:{}}", "apiVersion", version, "kind", kind, "metadata");
    struct decoder d = {.e = e};
    return decode_fields(&d, raw, fields, object) < 0 ? NULL : json_incref(object);
}

/* Encoding. */

static void write_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_append_c(out, (char)(value | 0x80));
    str_append_c(out, (char)value);
}

static void write_number(struct str *out, unsigned number, uint64_t value)
{
    write_varint(out, (uint64_t)number << 3 | VARINT);
    write_varint(out, value);
}

static void write_bytes(struct str *out, unsigned number, const void *bytes, size_t n)
{
    write_varint(out, (uint64_t)number << 3 | BYTES);
    write_varint(out, n);
    str_append_n(out, bytes, n);
}

static int wrong_type(field *f, struct err *e)
{
    return err_set(e, ERR_INTERNAL, "InternalError", "%s cannot be encoded as protobuf", f->name);
}

static int encode_fields(const json_t *object, field *fields, struct str *out, struct err *e);

static int encode_time(field *f, const json_t *value, struct str *out, struct err *e)
{
    struct timespec t;
    _cleanup_(str_done) struct str inside = {0};
    if (rfc3339_parse(json_string_value(value), &t, e) < 0)
        return -1;
    write_number(&inside, 1, (uint64_t)t.tv_sec);
    write_number(&inside, 2, (uint64_t)t.tv_nsec);
    write_bytes(out, f->number, inside.p, inside.len);
    return 0;
}

static int encode_map(field *f, const json_t *map, struct str *out, struct err *e)
{
    const char *key;
    json_t *value, *text;
    size_t i;
    json_object_foreach((json_t *)map, key, value) {
        _cleanup_(str_done) struct str entry = {0}, items = {0};
        write_bytes(&entry, 1, key, strlen(key));
        if (f->kind == API_MESSAGE_MAP && json_is_string(value)) {
            write_bytes(&entry, 2, json_string_value(value), json_string_length(value));
        } else if (f->kind == API_MESSAGE_QUANTITIES && json_is_string(value)) {
            write_bytes(&items, 1, json_string_value(value), json_string_length(value));
            write_bytes(&entry, 2, str_get(&items), items.len);
        } else if (f->kind == API_MESSAGE_BYTES_MAP && json_is_string(value) &&
                   base64_parse(json_string_value(value), json_string_length(value), BASE64_STD,
                                &items)) {
            write_bytes(&entry, 2, str_get(&items), items.len);
        } else if (f->kind == API_MESSAGE_LISTS && json_is_array(value)) {
            json_array_foreach(value, i, text)
                write_bytes(&items, 1, json_string_value(text), json_string_length(text));
            write_bytes(&entry, 2, str_get(&items), items.len);
        } else {
            return wrong_type(f, e);
        }
        write_bytes(out, f->number, entry.p, entry.len);
    }
    return 0;
}

static int encode_inside(field *f, const json_t *value, struct str *out, struct err *e)
{
    _cleanup_(str_done) struct str inside = {0}, text = {0};
    if (f->kind == API_MESSAGE_JSON) {
        json_format(value, &text);
        write_bytes(&inside, 1, text.p, text.len);
    } else if (encode_fields(value, f->fields, &inside, e) < 0) {
        return -1;
    }
    write_bytes(out, f->number, str_get(&inside), inside.len);
    return 0;
}

static int encode_base64(field *f, const json_t *value, struct str *out, struct err *e)
{
    _cleanup_(str_done) struct str bytes = {0};
    if (!base64_parse(json_string_value(value), json_string_length(value), BASE64_STD, &bytes))
        return wrong_type(f, e);
    write_bytes(out, f->number, str_get(&bytes), bytes.len);
    return 0;
}

/* A quantity as text, or a number, or a word. */
static int encode_loose(field *f, const json_t *value, struct str *out, struct err *e)
{
    _cleanup_(str_done) struct str inside = {0}, text = {0};
    bool quantity = f->kind == API_MESSAGE_QUANTITY;
    if (json_is_string(value))
        str_append_n(&text, json_string_value(value), json_string_length(value));
    else if (json_is_number(value) && (quantity || json_is_integer(value)))
        json_format(value, &text);
    else
        return wrong_type(f, e);
    if (quantity) {
        write_bytes(&inside, 1, str_get(&text), text.len);
    } else if (json_is_string(value)) {
        write_number(&inside, 1, 1);
        write_bytes(&inside, 3, str_get(&text), text.len);
    } else {
        write_number(&inside, 2, (uint64_t)json_integer_value(value));
    }
    write_bytes(out, f->number, str_get(&inside), inside.len);
    return 0;
}

static int encode_value(field *f, const json_t *value, struct str *out, struct err *e)
{
    static const json_type types[] = {
        [API_MESSAGE_STRING] = JSON_STRING,    [API_MESSAGE_BOOL] = JSON_TRUE,
        [API_MESSAGE_INT] = JSON_INTEGER,      [API_MESSAGE_MESSAGE] = JSON_OBJECT,
        [API_MESSAGE_TIME] = JSON_STRING,      [API_MESSAGE_MICRO_TIME] = JSON_STRING,
        [API_MESSAGE_JSON] = JSON_OBJECT,      [API_MESSAGE_MAP] = JSON_OBJECT,
        [API_MESSAGE_BYTES_MAP] = JSON_OBJECT, [API_MESSAGE_LISTS] = JSON_OBJECT,
        [API_MESSAGE_BYTES] = JSON_STRING,     [API_MESSAGE_QUANTITIES] = JSON_OBJECT,
        [API_MESSAGE_INLINE] = JSON_OBJECT,
    };
    if (f->kind == API_MESSAGE_QUANTITY || f->kind == API_MESSAGE_INT_OR_STRING)
        return encode_loose(f, value, out, e);
    json_type type = json_is_boolean(value) ? JSON_TRUE : json_typeof(value);
    if (type != types[f->kind])
        return wrong_type(f, e);
    switch (f->kind) {
    case API_MESSAGE_STRING:
        write_bytes(out, f->number, json_string_value(value), json_string_length(value));
        return 0;
    case API_MESSAGE_BOOL:
        write_number(out, f->number, json_is_true(value));
        return 0;
    case API_MESSAGE_INT:
        write_number(out, f->number, (uint64_t)json_integer_value(value));
        return 0;
    case API_MESSAGE_TIME:
    case API_MESSAGE_MICRO_TIME:
        return encode_time(f, value, out, e);
    case API_MESSAGE_MAP:
    case API_MESSAGE_BYTES_MAP:
    case API_MESSAGE_QUANTITIES:
    case API_MESSAGE_LISTS:
        return encode_map(f, value, out, e);
    case API_MESSAGE_BYTES:
        return encode_base64(f, value, out, e);
    case API_MESSAGE_MESSAGE:
    case API_MESSAGE_INLINE:
    case API_MESSAGE_JSON:
        return encode_inside(f, value, out, e);
    case API_MESSAGE_QUANTITY:
    case API_MESSAGE_INT_OR_STRING:
        break; /* done above */
    }
    return wrong_type(f, e);
}

static int encode_fields(const json_t *object, field *fields, struct str *out, struct err *e)
{
    for (field *f = fields; f->number; f++) {
        bool inlined = f->kind == API_MESSAGE_INLINE;
        const json_t *value = inlined ? object : json_object_get(object, f->name);
        if (!value || json_is_null(value))
            continue;
        if (!f->repeated) {
            if (encode_value(f, value, out, e) < 0)
                return -1;
            continue;
        }
        size_t i;
        json_t *element;
        if (!json_is_array(value))
            return wrong_type(f, e);
        json_array_foreach((json_t *)value, i, element) {
            if (encode_value(f, element, out, e) < 0)
                return -1;
        }
    }
    return 0;
}

int apiserver_protobuf_format(const json_t *object, struct str *out, struct err *e)
{
    const char *version = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
    field *fields = version && kind ? api_message_find(version, kind) : NULL;
    if (!fields)
        return err_set(e, ERR_UNIMPLEMENTED, "NotAcceptable",
                       "only the following media types are accepted: application/json");
    _cleanup_(str_done) struct str type = {0}, raw = {0};
    if (encode_fields(object, fields, &raw, e) < 0)
        return -1;
    write_bytes(&type, 1, version, strlen(version));
    write_bytes(&type, 2, kind, strlen(kind));
    str_append_n(out, magic, sizeof(magic));
    write_bytes(out, 1, type.p, type.len);
    write_bytes(out, 2, str_get(&raw), raw.len);
    write_bytes(out, 3, "", 0);
    write_bytes(out, 4, "", 0);
    return 0;
}

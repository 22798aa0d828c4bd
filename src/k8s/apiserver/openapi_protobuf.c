/*
 * OpenAPI v2 in the protobuf that gnostic defines for it (OpenAPIv2.proto), from the JSON of the same.
 * The numbers are gnostic's. Here is only what documents of this server contain; what JSON has and a
 * table does not, is left out.
 */
#include "k8s/apiserver/openapi_v2.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };

/* How a value of JSON becomes a field. */
enum how {
    TEXT,
    TEXTS,
    FLAG,
    INTEGER,
    NUMBER,
    ANY,        /* {yaml = 2}, of which JSON is a part */
    ANYS,       /* a list of them */
    MESSAGE,    /* .of */
    MAP,        /* {{name = 1, value = 2} = 1, ...} */
    WRAPPED,    /* {.of = 1} */
    TYPE,       /* {text = 1} */
    MORE,       /* {schema = 1} or {bool = 2} */
    PARAMETERS, /* a list of messages that depend on where the parameter is */
    RESPONSES,  /* {{name = 1, value = {response = 1} = 2} = 1, ...} */
};

struct field {
    const char *name; /* NULL ends a table */
    unsigned number;
    enum how how;
    const struct openapi_message *of;
};

struct openapi_message {
    const struct field *fields;
    unsigned extensions; /* where members that begin with "x-" are */
};

/* clang-format off */
const struct openapi_message openapi_info = {
    (const struct field[]){{"title", 1, TEXT}, {"version", 2, TEXT}, {0}}, 7,
};

static const struct openapi_message external_docs = {
    (const struct field[]){{"description", 1, TEXT}, {"url", 2, TEXT}, {0}}, 3,
};

const struct openapi_message openapi_schema = {
    (const struct field[]){
        {"$ref", 1, TEXT}, {"format", 2, TEXT}, {"title", 3, TEXT}, {"description", 4, TEXT},
        {"default", 5, ANY}, {"multipleOf", 6, NUMBER}, {"maximum", 7, NUMBER},
        {"exclusiveMaximum", 8, FLAG}, {"minimum", 9, NUMBER}, {"exclusiveMinimum", 10, FLAG},
        {"maxLength", 11, INTEGER}, {"minLength", 12, INTEGER}, {"pattern", 13, TEXT},
        {"maxItems", 14, INTEGER}, {"minItems", 15, INTEGER}, {"uniqueItems", 16, FLAG},
        {"maxProperties", 17, INTEGER}, {"minProperties", 18, INTEGER}, {"required", 19, TEXTS},
        {"enum", 20, ANYS}, {"additionalProperties", 21, MORE}, {"type", 22, TYPE},
        {"items", 23, WRAPPED, &openapi_schema}, {"properties", 25, MAP, &openapi_schema},
        {"externalDocs", 29, MESSAGE, &external_docs}, {"example", 30, ANY}, {0},
    }, 31,
};

static const struct openapi_message body_parameter = {
    (const struct field[]){
        {"description", 1, TEXT}, {"name", 2, TEXT}, {"in", 3, TEXT}, {"required", 4, FLAG},
        {"schema", 5, MESSAGE, &openapi_schema}, {0},
    }, 6,
};

static const struct openapi_message query_parameter = {
    (const struct field[]){
        {"required", 1, FLAG}, {"in", 2, TEXT}, {"description", 3, TEXT}, {"name", 4, TEXT},
        {"type", 6, TEXT}, {"uniqueItems", 20, FLAG}, {0},
    }, 23,
};

static const struct openapi_message path_parameter = {
    (const struct field[]){
        {"required", 1, FLAG}, {"in", 2, TEXT}, {"description", 3, TEXT}, {"name", 4, TEXT},
        {"type", 5, TEXT}, {"uniqueItems", 19, FLAG}, {0},
    }, 22,
};

static const struct openapi_message response = {
    (const struct field[]){
        {"description", 1, TEXT}, {"schema", 2, WRAPPED, &openapi_schema}, {0},
    }, 5,
};

static const struct openapi_message operation = {
    (const struct field[]){
        {"description", 3, TEXT}, {"operationId", 5, TEXT}, {"produces", 6, TEXTS},
        {"consumes", 7, TEXTS}, {"parameters", 8, PARAMETERS}, {"responses", 9, RESPONSES}, {0},
    }, 13,
};

const struct openapi_message openapi_path_item = {
    (const struct field[]){
        {"get", 2, MESSAGE, &operation}, {"put", 3, MESSAGE, &operation},
        {"post", 4, MESSAGE, &operation}, {"delete", 5, MESSAGE, &operation},
        {"patch", 8, MESSAGE, &operation}, {"parameters", 9, PARAMETERS}, {0},
    }, 10,
};
/* clang-format on */

static void encode(const struct openapi_message *m, const json_t *object, struct str *out);

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

void openapi_write_bytes(struct str *out, unsigned number, const void *bytes, size_t n)
{
    write_varint(out, (uint64_t)number << 3 | BYTES);
    write_varint(out, n);
    str_append_n(out, bytes, n);
}

static void write_inside(struct str *out, unsigned number, const struct str *inside)
{
    openapi_write_bytes(out, number, str_get(inside), inside->len);
}

static void write_text(struct str *out, unsigned number, const json_t *text)
{
    openapi_write_bytes(out, number, json_string_value(text), json_string_length(text));
}

static void write_double(struct str *out, unsigned number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    write_varint(out, (uint64_t)number << 3 | FIXED64);
    for (unsigned shift = 0; shift < 64; shift += 8)
        str_append_c(out, (char)(bits >> shift));
}

static void write_any(struct str *out, unsigned number, const json_t *value)
{
    _cleanup_(str_done) struct str text = {0}, any = {0};
    json_format(value, &text);
    str_append_c(&text, '\n');
    write_inside(&any, 2, &text);
    write_inside(out, number, &any);
}

void openapi_write_message(struct str *out, unsigned number, const struct openapi_message *message,
                           const json_t *value)
{
    _cleanup_(str_done) struct str inside = {0};
    encode(message, value, &inside);
    write_inside(out, number, &inside);
}

void openapi_write_named(struct str *out, unsigned number, const char *name,
                         const struct openapi_message *message, const json_t *value)
{
    _cleanup_(str_done) struct str inside = {0};
    openapi_write_bytes(&inside, 1, name, strlen(name));
    openapi_write_message(&inside, 2, message, value);
    write_inside(out, number, &inside);
}

/* A message in a message, which says nothing by itself. */
static void write_wrapped(struct str *out, unsigned number, const struct openapi_message *message,
                          const json_t *value)
{
    _cleanup_(str_done) struct str inside = {0};
    openapi_write_message(&inside, 1, message, value);
    write_inside(out, number, &inside);
}

static void write_map(struct str *out, const struct field *f, const json_t *map)
{
    _cleanup_(str_done) struct str inside = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value)
        openapi_write_named(&inside, 1, key, f->of, value);
    write_inside(out, f->number, &inside);
}

static void write_responses(struct str *out, unsigned number, const json_t *map)
{
    _cleanup_(str_done) struct str inside = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value) {
        _cleanup_(str_done) struct str entry = {0};
        openapi_write_bytes(&entry, 1, key, strlen(key));
        write_wrapped(&entry, 2, &response, value);
        write_inside(&inside, 1, &entry);
    }
    write_inside(out, number, &inside);
}

/* ParametersItem{parameter = 1}; that has body = 1 or another = 2, which has query = 3, path = 4. */
static void write_parameter(struct str *out, unsigned number, const json_t *value)
{
    const char *in = json_str(value, "in");
    _cleanup_(str_done) struct str other = {0}, parameter = {0}, item = {0};
    if (!in)
        return;
    if (str_eq(in, "body")) {
        openapi_write_message(&parameter, 1, &body_parameter, value);
    } else {
        bool path = str_eq(in, "path");
        openapi_write_message(&other, path ? 4 : 3, path ? &path_parameter : &query_parameter,
                              value);
        write_inside(&parameter, 2, &other);
    }
    write_inside(&item, 1, &parameter);
    write_inside(out, number, &item);
}

static void write_more(struct str *out, unsigned number, const json_t *value)
{
    _cleanup_(str_done) struct str inside = {0};
    if (json_is_boolean(value)) {
        write_number(&inside, 2, json_is_true(value));
        write_inside(out, number, &inside);
    } else {
        write_wrapped(out, number, &openapi_schema, value);
    }
}

static void write_list(struct str *out, const struct field *f, const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) {
        if (f->how == TEXTS)
            write_text(out, f->number, one);
        else if (f->how == ANYS)
            write_any(out, f->number, one);
        else
            write_parameter(out, f->number, one);
    }
}

/* What a field of proto3 has when it is not there is not written. */
static void write_field(struct str *out, const struct field *f, const json_t *value)
{
    _cleanup_(str_done) struct str inside = {0};
    switch (f->how) {
    case TEXT:
        if (json_string_length(value))
            write_text(out, f->number, value);
        break;
    case FLAG:
        if (json_is_true(value))
            write_number(out, f->number, 1);
        break;
    case INTEGER:
        if (json_integer_value(value))
            write_number(out, f->number, (uint64_t)json_integer_value(value));
        break;
    case NUMBER:
        if (json_number_value(value) != 0)
            write_double(out, f->number, json_number_value(value));
        break;
    case ANY:
        write_any(out, f->number, value);
        break;
    case TEXTS:
    case ANYS:
    case PARAMETERS:
        write_list(out, f, value);
        break;
    case MESSAGE:
        openapi_write_message(out, f->number, f->of, value);
        break;
    case MAP:
        write_map(out, f, value);
        break;
    case WRAPPED:
        write_wrapped(out, f->number, f->of, value);
        break;
    case TYPE:
        write_text(&inside, 1, value);
        write_inside(out, f->number, &inside);
        break;
    case MORE:
        write_more(out, f->number, value);
        break;
    case RESPONSES:
        write_responses(out, f->number, value);
        break;
    }
}

/* As deep as the document, which is no deeper than the JSON parser allows. */
static void encode(const struct openapi_message *m, const json_t *object, struct str *out)
{
    const char *key;
    json_t *value;
    for (const struct field *f = m->fields; f->name; f++) {
        value = json_object_get(object, f->name);
        if (value)
            write_field(out, f, value);
    }
    json_object_foreach((json_t *)object, key, value) {
        if (str_starts_with(key, "x-")) {
            _cleanup_(str_done) struct str named = {0};
            openapi_write_bytes(&named, 1, key, strlen(key));
            write_any(&named, 2, value);
            write_inside(out, m->extensions, &named);
        }
    }
}

#include "json/json.h"

#include <limits.h>
#include <stdio.h>

#include "base/vec.h"
#include "json/internal.h"

bool json_scan(struct json_scan *s, const char *text, size_t len)
{
    while (s->at < len) {
        char c = text[s->at++];
        if (s->in_string) {
            if (s->escaped)
                s->escaped = false;
            else if (c == '\\')
                s->escaped = true;
            else if (c == '"')
                s->in_string = false;
            continue;
        }
        switch (c) {
        case '"':
            s->in_string = true;
            break;
        case ',':
            s->nodes++;
            break;
        case '{':
        case '[':
            s->nodes++;
            if (++s->depth > JSON_MAX_DEPTH && !s->too_deep) {
                s->too_deep = true;
                s->deep_at = s->at - 1;
            }
            break;
        case '}':
        case ']':
            if (s->depth && --s->depth == 0)
                return true;
            break;
        default:
            break;
        }
    }
    return false;
}

struct json_pos json_pos_at(const char *text, size_t len, size_t offset)
{
    struct json_pos pos = {1, 1};
    if (offset > len)
        offset = len;

    const char *p = text, *end = text + offset, *newline;
    for (; p < end && (newline = memchr(p, '\n', (size_t)(end - p))); p = newline + 1)
        pos.line++;
    for (; p < end; p++)
        pos.column += ((unsigned char)*p & 0xc0) != 0x80; /* what starts a character */
    return pos;
}

struct json_pos json_pos_add(struct json_pos base, struct json_pos pos)
{
    if (pos.line == 1)
        pos.column += base.column - 1;
    pos.line += base.line - 1;
    return pos;
}

void json_clean_message(struct err *e)
{
    if (!e)
        return;
    uint32_t c;
    for (char *p = e->msg, *end = p + strlen(p); p < end;) {
        size_t n = str_utf8(p, (size_t)(end - p), &c);
        if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            n += n == 0;
            memset(p, '?', n);
        }
        p += n;
    }
}

json_t *json_parse_at(const char *text, size_t len, size_t *ret_offset, struct err *e)
{
    *ret_offset = 0;
    if (len > JSON_MAX_BYTES) {
        err_set(e, ERR_INVALID_ARGUMENT, "TooLarge",
                "the JSON text has %zu bytes; at most %d are allowed", len, JSON_MAX_BYTES);
        return NULL;
    }
    struct json_scan scan = {0};
    json_scan(&scan, text, len);
    if (scan.too_deep) {
        *ret_offset = scan.deep_at;
        err_set(e, ERR_INVALID_ARGUMENT, "TooDeep",
                "nested too deeply; at most %d levels are allowed", JSON_MAX_DEPTH);
        return NULL;
    }
    if (scan.nodes > JSON_MAX_NODES) {
        err_set(e, ERR_INVALID_ARGUMENT, "TooLarge", "more than %d values; split the document",
                JSON_MAX_NODES);
        return NULL;
    }

    json_error_t error;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!value)
        *ret_offset = json_hint(text, len, &error, e);
    return value;
}

json_t *json_parse(const char *text, size_t len, struct json_pos *ret_pos, struct err *e)
{
    size_t offset;
    json_t *value = json_parse_at(text, len, &offset, e);
    if (value)
        return value;
    struct json_pos pos = json_pos_at(text, len, offset);
    json_clean_message(e);
    err_prefix(e, "line %u, column %u", pos.line, pos.column);
    if (ret_pos)
        *ret_pos = pos;
    return NULL;
}

const json_t *json_walk(const json_t *value, const char *const *keys)
{
    for (; value && *keys; keys++)
        value = json_object_get(value, *keys); /* NULL for what is no object */
    return value;
}

const char *json_str(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *json_text_or_empty(const json_t *value)
{
    const char *text = json_string_value(value);
    return text ? text : "";
}

json_t *json_find(const json_t *array, const char *key, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *it = json_array_get(array, i);
        const char *found = json_str(it, key);
        if (found && str_eq(found, text))
            return it;
    }
    return NULL;
}

static json_t *find_or_make(json_t *object, const char *key, json_t *(*make)(void))
{
    if (!json_object_get(object, key))
        json_object_set_new(object, key, make());
    return json_object_get(object, key);
}

json_t *json_object_at(json_t *object, const char *key)
{
    return find_or_make(object, key, json_object);
}

json_t *json_array_at(json_t *object, const char *key)
{
    return find_or_make(object, key, json_array);
}

const char *json_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* A container on the way down and how far in it the walk is. */
struct level {
    json_t *value;
    void *member; /* of an object */
    size_t next;  /* of an array */
};

static json_t *next_child(struct level *l)
{
    if (json_is_array(l->value))
        return json_array_get(l->value, l->next++);
    json_t *child = json_object_iter_value(l->member);
    l->member = json_object_iter_next(l->value, l->member);
    return child;
}

unsigned json_depth(const json_t *value)
{
    VEC(struct level) levels = {0};
    size_t deepest = 0;
    json_t *v = (json_t *)value;

    for (;;) {
        if (json_is_array(v) || json_is_object(v))
            vec_push(&levels, (struct level){v, json_object_iter(v), 0});
        if (levels.len > deepest)
            deepest = levels.len;
        while (levels.len && !(v = next_child(&vec_last(&levels))))
            levels.len--;
        if (!levels.len)
            break;
    }
    vec_done(&levels);
    return deepest > UINT_MAX ? UINT_MAX : (unsigned)deepest;
}

bool json_real_is_whole(double real, json_int_t *ret_whole)
{
    const double limit = 9223372036854775808.0; /* 2^63; converting what is outside is undefined */
    if (!(real >= -limit && real < limit) || (double)(json_int_t)real != real)
        return false;
    *ret_whole = (json_int_t)real;
    return true;
}

#include <stdio.h>

#include "base/vec.h"
#include "json/internal.h"

/* The shortest decimal text that reads back as the same number, always with a ".". */
static void format_real(double value, char buf[JSON_REAL_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, JSON_REAL_MAX, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    /* "1e+30" becomes "1.0e+30": some YAML readers take it for a string without the point. */
    if (strchr(buf, '.'))
        return;
    size_t at = strcspn(buf, "e");
    memmove(buf + at + 2, buf + at, strlen(buf + at) + 1);
    buf[at] = '.';
    buf[at + 1] = '0';
}

static void put_string(struct str *out, const char *text, size_t len)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    size_t plain = 0;

    str_append_c(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        str_append_n(out, text + plain, i - plain);
        plain = i + 1;
        const char *name = c ? strchr(named, c) : NULL;
        if (name && (name - named) % 2 == 0)
            str_appendf(out, "\\%c", name[1]);
        else
            str_appendf(out, "\\u%04x", c);
    }
    str_append_n(out, text + plain, len - plain);
    str_append_c(out, '"');
}

static void put_scalar(struct str *out, const json_t *value)
{
    char buf[JSON_REAL_MAX];
    switch (json_typeof(value)) {
    case JSON_STRING:
        put_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        str_appendf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        format_real(json_real_value(value), buf);
        str_append(out, buf);
        break;
    case JSON_TRUE:
        str_append(out, "true");
        break;
    case JSON_FALSE:
        str_append(out, "false");
        break;
    default:
        str_append(out, "null");
        break;
    }
}

/* A container that is being written and how far in it the writer is. */
struct level {
    json_t *value;
    void *member; /* of an object */
    size_t index;
};

static void put_newline(struct str *out, size_t levels, bool pretty)
{
    static const char blanks[] = "                                ";
    if (!pretty)
        return;
    str_append_c(out, '\n');
    for (size_t n = 2 * levels; n;) {
        size_t part = n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1;
        str_append_n(out, blanks, part);
        n -= part;
    }
}

/* What stands in front of the next child of the innermost container; NULL after the last. */
static json_t *put_next(struct str *out, struct level *l, size_t levels, bool pretty)
{
    bool object = json_is_object(l->value);
    json_t *child = object ? json_object_iter_value(l->member) : json_array_get(l->value, l->index);
    if (!child) {
        if (l->index)
            put_newline(out, levels - 1, pretty);
        str_append_c(out, object ? '}' : ']');
        return NULL;
    }
    if (l->index++)
        str_append_c(out, ',');
    put_newline(out, levels, pretty);
    if (object) {
        put_string(out, json_object_iter_key(l->member), json_object_iter_key_len(l->member));
        str_append(out, pretty ? ": " : ":");
        l->member = json_object_iter_next(l->value, l->member);
    }
    return child;
}

/*
 * A loop with its own stack, since the depth of a value that was built in memory has no bound.
 * jansson's writer prints 0.1 as 0.10000000000000001, which nobody wrote in their manifest.
 */
static void format(const json_t *value, struct str *out, bool pretty)
{
    VEC(struct level) levels = {0};
    json_t *v = (json_t *)value;

    for (;;) {
        if (json_is_object(v) || json_is_array(v)) {
            str_append_c(out, json_is_object(v) ? '{' : '[');
            vec_push(&levels, (struct level){v, json_object_iter(v), 0});
        } else {
            put_scalar(out, v);
        }
        while (levels.len && !(v = put_next(out, &vec_last(&levels), levels.len, pretty)))
            levels.len--;
        if (!levels.len)
            break;
    }
    vec_done(&levels);
}

void json_format_string(const char *text, size_t len, struct str *out)
{
    for (size_t i = 0, n; i < len; i += n) { /* most have nothing but ASCII */
        n = text[i] & 0x80 ? str_utf8(text + i, len - i, NULL) : 1;
        if (n)
            continue;
        char *clean = mem_strndup(text, len);
        for (size_t at = i; at < len; at += n) {
            n = clean[at] ? str_utf8(clean + at, len - at, NULL) : 1;
            if (!n) {
                clean[at] = '?';
                n = 1;
            }
        }
        put_string(out, clean, len);
        free(clean);
        return;
    }
    put_string(out, text, len);
}

void json_format(const json_t *value, struct str *out)
{
    format(value, out, false);
}

void json_format_pretty(const json_t *value, struct str *out)
{
    format(value, out, true);
}

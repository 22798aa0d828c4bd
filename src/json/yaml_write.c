/*
 * YAML out. Whether a string can be plain is decided twice: by what the text would be taken for
 * (yaml_scalar.c) and by the characters that mean something to YAML. When in doubt it is quoted;
 * quoting is always right.
 */
#include "json/internal.h"
#include "json/node.h"
#include "json/yaml.h"

enum { KEY_MAX = 1000 }; /* readers give up on a key whose colon is more than 1024 away */

static void put_indent(struct str *out, unsigned indent)
{
    for (; indent; indent--)
        str_append_c(out, ' ');
}

/* The character at p, and in *ret_len its bytes. The text is UTF-8, as in every json_t. */
static unsigned decode(const char *p, const char *end, size_t *ret_len)
{
    uint32_t code = 0;
    *ret_len = str_utf8(p, (size_t)(end - p), &code);
    *ret_len += *ret_len == 0;
    return code;
}

/* Whether YAML allows the character as it is, on a line. */
static bool is_printable(unsigned code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return false;
    return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe && code != 0xffff;
}

static bool all_printable(const char *text, size_t len, bool lines)
{
    const char *end = text + len;
    for (size_t n; text < end; text += n) {
        unsigned code = decode(text, end, &n);
        if (!is_printable(code) && !(lines && (code == '\n' || code == '\t')))
            return false;
    }
    return true;
}

static bool can_be_plain(const char *text, size_t len)
{
    if (len == 0 || text[0] == ' ' || text[len - 1] == ' ' || json_scalar_is_risky(text, len))
        return false;
    if (strchr("!&*-?:,[]{}#|>@`\"'%", text[0])) {
        /* "-x" and ":x" are strings; "- x" is not, and "---" is a marker. */
        bool dash = text[0] == '-' || text[0] == '?' || text[0] == ':';
        if (!dash || len == 1 || strchr(" -,[]{}", text[1]))
            return false;
    }
    if (len >= 3 && memcmp(text, "...", 3) == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool last = i + 1 == len;
        if (text[i] == ':' && (last || text[i + 1] == ' '))
            return false;
        if (text[i] == '#' && i && text[i - 1] == ' ')
            return false;
    }
    return all_printable(text, len, false);
}

static void put_quoted(struct str *out, const char *text, size_t len)
{
    static const char named[] = "\"\"\\\\\aa\bb\tt\nn\vv\ff\rr\x1b"
                                "e";
    const char *end = text + len;

    str_append_c(out, '"');
    for (size_t n; text < end; text += n) {
        unsigned code = decode(text, end, &n);
        const char *name = code && code < 0x80 ? strchr(named, (int)code) : NULL;
        if (name && (name - named) % 2 == 1)
            name = strchr(name + 1, (int)code);
        if (name && (name - named) % 2 == 0)
            str_appendf(out, "\\%c", name[1]);
        else if (is_printable(code))
            str_append_n(out, text, n);
        else
            str_appendf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
    }
    str_append_c(out, '"');
}

static void put_string(struct str *out, const char *text, size_t len)
{
    if (can_be_plain(text, len))
        str_append_n(out, text, len);
    else
        put_quoted(out, text, len);
}

/* A literal block holds printable lines; one that is all line breaks reads better quoted. */
static bool can_be_literal(const char *text, size_t len)
{
    if (!memchr(text, '\n', len) || !all_printable(text, len, true))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && text[i] != ' ' && text[i] != '\t')
            return true;
    }
    return false;
}

/* The block's header follows the key on its line; `indent` is that of its lines. */
static void put_literal(struct str *out, const char *text, size_t len, unsigned indent)
{
    bool ends = text[len - 1] == '\n';
    str_append(out, "|");
    /* The first line's blanks would be taken for indentation: say how deep it is. */
    if (strchr(" \t\n", text[0]))
        str_append(out, "2");
    if (!ends)
        str_append(out, "-");
    else if (len > 1 && text[len - 2] == '\n')
        str_append(out, "+");

    const char *end = text + len - ends;
    for (const char *p = text; p <= end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline ? newline : end) - p);
        str_append_c(out, '\n');
        if (n)
            put_indent(out, indent);
        str_append_n(out, p, n);
        p += n + 1;
    }
}

static void put_value(struct str *out, const json_t *value, unsigned indent, unsigned depth);

/* "key:" or, for a key that is too long for that, "? key" and ":" on the next line. */
static void put_key(struct str *out, const char *key, size_t len, unsigned indent)
{
    size_t start = out->len;
    put_string(out, key, len);
    if (out->len - start > KEY_MAX) {
        str_truncate(out, start);
        str_append(out, "? ");
        put_string(out, key, len);
        str_append_c(out, '\n');
        put_indent(out, indent);
    }
    str_append_c(out, ':');
}

static bool is_block(const json_t *value)
{
    return json_object_size(value) || json_array_size(value);
}

/* What stands after "key:": on the line, or on lines of its own below. */
static void put_member(struct str *out, const json_t *value, unsigned indent, unsigned depth)
{
    if (!is_block(value)) {
        str_append_c(out, ' ');
        put_value(out, value, indent + 2, depth);
        return;
    }
    /* A list is not indented below its key, as Kubernetes writes it. */
    unsigned below = json_is_array(value) ? indent : indent + 2;
    str_append_c(out, '\n');
    put_indent(out, below);
    put_value(out, value, below, depth);
}

static void put_scalar(struct str *out, const json_t *value, unsigned indent)
{
    if (!json_is_string(value)) {
        json_format(value, out);
        return;
    }
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    if (can_be_literal(text, len))
        put_literal(out, text, len, indent);
    else
        put_string(out, text, len);
}

/*
 * The value, where the cursor is at column `indent` already when it is a container. A scalar's
 * lines below the first are indented by `indent`. Without a newline at its end.
 */
static void put_value(struct str *out, const json_t *value, unsigned indent, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    bool first = true;

    /* What is deeper than any reader goes is written on one line, which needs no recursion. */
    if (depth > JSON_MAX_DEPTH || !is_block(value)) {
        if (json_is_object(value) || json_is_array(value))
            json_format(value, out);
        else
            put_scalar(out, value, indent);
        return;
    }
    if (json_is_object(value)) {
        size_t len;
        json_object_keylen_foreach((json_t *)value, key, len, member)
        {
            if (!first) {
                str_append_c(out, '\n');
                put_indent(out, indent);
            }
            first = false;
            put_key(out, key, len, indent);
            put_member(out, member, indent, depth + 1);
        }
        return;
    }
    json_array_foreach((json_t *)value, i, member) {
        if (i) {
            str_append_c(out, '\n');
            put_indent(out, indent);
        }
        str_append(out, "- ");
        put_value(out, member, indent + 2, depth + 1);
    }
}

void json_yaml_format(const json_t *value, struct str *out)
{
    /* The lines of a string that is the whole document must be indented too. */
    put_value(out, value, is_block(value) ? 0 : 2, 1);
    str_append_c(out, '\n');
}

/*
 * Field selectors. The terms are cut at commas, a term at its first operator; only then are values
 * unescaped, so a path can hold neither a comma nor an operator.
 */
#include <stdio.h>

#include "api/selector.h"

void api_field_selector_done(struct api_field_selector *s)
{
    vec_done(&s->terms);
    arena_done(&s->arena);
    *s = (struct api_field_selector){0};
}

/* Members joined by single dots, none of them empty. */
static bool is_path(const char *text, size_t n)
{
    if (n == 0 || text[0] == '.' || text[n - 1] == '.')
        return false;
    for (size_t i = 0; i + 1 < n; i++) {
        if (text[i] == '.' && text[i + 1] == '.')
            return false;
    }
    return true;
}

/* Where the character is in the whole text, counted in bytes from 1; paths are ASCII as a rule. */
static int bad(struct err *e, const char *text, const char *at, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSelector", "field selector, byte %zu: %s",
                   (size_t)(at - text) + 1, why);
}

/* The value from `at` to `end` without its backslashes; NULL when it has a stray character. */
static const char *unescape(const char *text, const char *at, const char *end,
                            struct api_field_selector *s, struct err *e)
{
    char *value = arena_alloc(&s->arena, (size_t)(end - at) + 1), *out = value;
    for (; at < end; at++) {
        if (*at == '=') {
            bad(e, text, at, "a '=' in a value is written '\\='");
            return NULL;
        }
        if (*at == '\\' && (++at == end || !strchr("\\,=", *at))) {
            bad(e, text, at - 1, "after '\\' must come '\\', ',' or '='; a single one is '\\\\'");
            return NULL;
        }
        *out++ = *at;
    }
    return value;
}

static int add_term(const char *text, const char *at, const char *end, struct api_field_selector *s,
                    struct err *e)
{
    const char *op = at;
    while (op < end && *op != '=' && !(*op == '!' && op + 1 < end && op[1] == '='))
        op++;
    if (op == end)
        return bad(e, text, at, "expected field=value, field==value or field!=value");
    if (!is_path(at, (size_t)(op - at)))
        return bad(e, text, at, "expected the path of a field, for example metadata.name");
    const char *value = op + 1 + (op + 1 < end && op[1] == '=');
    struct api_field_term term = {.path = arena_strndup(&s->arena, at, (size_t)(op - at)),
                                  .value = unescape(text, value, end, s, e),
                                  .differs = *op == '!'};
    if (!term.value)
        return -1;
    vec_push(&s->terms, term);
    return 0;
}

static int compare_terms(const void *a, const void *b)
{
    const struct api_field_term *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (order == 0)
        order = (int)y->differs - (int)x->differs; /* '!' sorts before '=' */
    return order ? order : strcmp(x->value, y->value);
}

static int parse(const char *text, struct api_field_selector *s, struct err *e)
{
    for (const char *at = text;;) {
        const char *end = at;
        while (*end && *end != ',')
            end += end[0] == '\\' && end[1] ? 2 : 1;
        if (s->terms.len >= API_SELECTOR_MAX_TERMS)
            return bad(e, text, at, "there are too many terms");
        if (end > at && add_term(text, at, end, s, e) < 0)
            return -1;
        if (!*end)
            break;
        at = end + 1;
    }
    if (s->terms.len)
        qsort(s->terms.p, s->terms.len, sizeof(*s->terms.p), compare_terms);
    return 0;
}

int api_field_selector_parse(const char *text, struct api_field_selector *ret_s, struct err *e)
{
    *ret_s = (struct api_field_selector){0};
    if (strlen(text) > API_SELECTOR_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "SelectorTooLong",
                       "field selector: may have %d bytes", API_SELECTOR_MAX_BYTES);
    int r = parse(text, ret_s, e);
    if (r < 0)
        api_field_selector_done(ret_s);
    return r;
}

/* The value at a dotted path; NULL when a step is missing. */
static const json_t *value_at(const json_t *value, const char *path)
{
    while (value && *path) {
        size_t n = strcspn(path, ".");
        value = json_object_getn(value, path, n);
        path += n + (path[n] == '.');
    }
    return value;
}

static bool value_is(const json_t *value, const char *text)
{
    char number[32];
    if (json_is_string(value))
        return str_eq(json_string_value(value), text);
    if (json_is_boolean(value))
        return str_eq(json_is_true(value) ? "true" : "false", text);
    if (json_is_integer(value)) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return str_eq(number, text);
    }
    return !*text;
}

bool api_field_selector_matches(const struct api_field_selector *s, const json_t *object)
{
    for (size_t i = 0; i < s->terms.len; i++) {
        const struct api_field_term *term = &s->terms.p[i];
        if (value_is(value_at(object, term->path), term->value) == term->differs)
            return false;
    }
    return true;
}

const char *api_field_selector_exact(const struct api_field_selector *s, const char *path)
{
    for (size_t i = 0; i < s->terms.len; i++) {
        const struct api_field_term *term = &s->terms.p[i];
        if (!term->differs && str_eq(term->path, path))
            return term->value;
    }
    return NULL;
}

void api_field_selector_format(const struct api_field_selector *s, struct str *out)
{
    for (size_t i = 0; i < s->terms.len; i++) {
        const struct api_field_term *term = &s->terms.p[i];
        str_appendf(out, "%s%s%s", i ? "," : "", term->path, term->differs ? "!=" : "=");
        for (const char *c = term->value; *c; c++) {
            if (strchr("\\,=", *c))
                str_append_c(out, '\\');
            str_append_c(out, *c);
        }
    }
}

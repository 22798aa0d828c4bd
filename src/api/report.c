#include "api/report.h"

#include "json/pointer.h"

static const struct {
    const char *reason, *text;
} causes[] = {
    [API_MISSING] = {"FieldValueRequired", "Required value"},
    [API_INVALID] = {"FieldValueInvalid", "Invalid value"},
    [API_UNSUPPORTED] = {"FieldValueNotSupported", "Unsupported value"},
    [API_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value"},
    [API_FORBIDDEN] = {"FieldValueForbidden", "Forbidden"},
    [API_WRONG_TYPE] = {"FieldValueTypeInvalid", "Invalid value"},
    [API_TOO_LONG] = {"FieldValueTooLong", "Too long"},
    [API_TOO_MANY] = {"FieldValueTooMany", "Too many"},
    [API_UNKNOWN] = {"FieldValueInvalid", "Unknown field"},
    [API_BAD_KEY] = {"FieldValueInvalid", "Invalid value"},
    [API_OWNED] = {"FieldManagerConflict", "Conflict"},
};

const char *api_cause_reason(enum api_cause cause)
{
    return causes[cause].reason;
}

void api_report_done(struct api_report *r)
{
    vec_done(&r->problems);
    vec_done(&r->renames);
    arena_done(&r->arena);
    *r = (struct api_report){0};
}

void api_report_clear(struct api_report *r)
{
    r->problems.len = r->renames.len = 0;
    r->errors = r->warnings = 0;
    arena_clear(&r->arena);
}

static void append_pointer(struct str *s, const struct api_path *at)
{
    if (!at)
        return;
    append_pointer(s, at->parent);
    if (at->key)
        json_pointer_append(s, at->key);
    else
        json_pointer_append_index(s, at->index);
}

void api_report_renamed(struct api_report *r, const struct api_path *normal,
                        const struct api_path *source)
{
    _cleanup_(str_done) struct str a = {0}, b = {0};
    append_pointer(&a, normal);
    append_pointer(&b, source);
    vec_push(&r->renames, (struct api_rename){arena_strdup(&r->arena, str_get(&a)),
                                              arena_strdup(&r->arena, str_get(&b))});
}

/* Newest first: a member renamed inside a list that was renamed before is translated outwards. */
static void to_source(const struct api_report *r, struct str *pointer)
{
    for (size_t i = r->renames.len; i-- > 0;) {
        const struct api_rename *rename = &r->renames.p[i];
        size_t n = strlen(rename->normal);
        const char *text = str_get(pointer);
        if (strncmp(text, rename->normal, n) != 0 || (text[n] != '/' && text[n] != '\0'))
            continue;
        struct str moved = {0};
        str_append(&moved, rename->source);
        str_append(&moved, text + n);
        str_done(pointer);
        *pointer = moved;
    }
}

/* "/spec/pools/0/nodeSelector/a~1b" -> "spec.pools[0].nodeSelector[a/b]" */
static void append_dotted(struct str *out, const char *pointer)
{
    _cleanup_(str_done) struct str token = {0};
    bool in_spec = false;
    while (json_pointer_next(&pointer, &token, NULL) > 0) {
        const char *text = str_get(&token);
        bool number = *text && strspn(text, "0123456789") == token.len;
        if (in_spec && (number || strpbrk(text, "./") || !*text)) {
            str_appendf(out, "[%s]", text);
        } else {
            str_appendf(out, "%s%s", in_spec ? "." : "", text);
        }
        in_spec = true;
    }
}

void api_path_format(const struct api_path *at, struct str *out)
{
    _cleanup_(str_done) struct str pointer = {0};
    append_pointer(&pointer, at);
    append_dotted(out, str_get(&pointer));
}

/* The value as it would stand in JSON, cut to a length that a line can bear. */
static void append_value(struct str *out, const json_t *value)
{
    enum { MOST = 80 };
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    if (text.len > MOST) {
        size_t n = MOST - 3;
        while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
            n--; /* not in the middle of a character */
        str_truncate(&text, n);
        str_append(&text, "...");
    }
    str_append(out, str_get(&text));
}

/* Counts one more; false when it is not kept. Texts cost time, so that is asked before any is made. */
static bool count(unsigned *n)
{
    return (*n)++ < API_MAX_PROBLEMS;
}

static void add(struct api_report *r, const struct api_path *at, struct api_problem problem,
                const char *message)
{
    _cleanup_(str_done) struct str pointer = {0}, path = {0};
    append_pointer(&pointer, at);
    to_source(r, &pointer);
    append_dotted(&path, str_get(&pointer));
    problem.pointer = arena_strdup(&r->arena, str_get(&pointer));
    problem.path = arena_strdup(&r->arena, str_get(&path));
    problem.message = arena_strdup(&r->arena, message);
    vec_push(&r->problems, problem);
}

void api_problem(struct api_report *r, const struct api_path *at, enum api_cause cause,
                 const json_t *value, const char *fmt, ...)
{
    if (!count(&r->errors))
        return;
    _cleanup_(str_done) struct str text = {0};
    str_append(&text, causes[cause].text);
    if (value) {
        str_append(&text, ": ");
        append_value(&text, value);
    }
    size_t before = text.len;
    str_append(&text, ": ");
    size_t begin = text.len;
    va_list ap;
    va_start(ap, fmt);
    str_vappendf(&text, fmt, ap);
    va_end(ap);
    if (text.len == begin)
        str_truncate(&text, before);
    bool at_key = cause == API_UNKNOWN || cause == API_MISSING || cause == API_BAD_KEY;
    add(r, at, (struct api_problem){.cause = cause, .at_key = at_key}, str_get(&text));
}

void api_report_owned(struct api_report *r, const char *path, const char *message)
{
    if (!count(&r->errors))
        return;
    vec_push(&r->problems, (struct api_problem){.cause = API_OWNED,
                                                .path = arena_strdup(&r->arena, path),
                                                .pointer = "",
                                                .message = arena_strdup(&r->arena, message)});
}

void api_warn(struct api_report *r, const struct api_path *at, const char *fmt, ...)
{
    if (!count(&r->warnings))
        return;
    _cleanup_(str_done) struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vappendf(&text, fmt, ap);
    va_end(ap);
    add(r, at, (struct api_problem){.cause = API_INVALID, .warning = true}, str_get(&text));
}

void api_warn_unknown(struct api_report *r, const struct api_path *at, const char *key)
{
    if (!count(&r->warnings))
        return;
    _cleanup_(str_done) struct str text = {0};
    str_appendf(&text, "unknown field \"%s\"", key);
    add(r, at, (struct api_problem){.cause = API_UNKNOWN, .warning = true, .at_key = true},
        str_get(&text));
}

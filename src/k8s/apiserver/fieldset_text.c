/*
 * Sets of fields as text: FieldsV1 in and out, and paths for people.
 */
#include <errno.h>

#include "k8s/apiserver/fieldset.h"

static const char letters[] = {
    [FIELDSET_FIELD] = 'f',
    [FIELDSET_KEY] = 'k',
    [FIELDSET_VALUE] = 'v',
    [FIELDSET_INDEX] = 'i',
};

static int malformed(struct err *e, const char *key, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "\"%.80s\" in fieldsV1: %s", key, why);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The members of an object in order, compact: however it was written, it is the same key. */
static const char *normal_key(struct arena *a, const json_t *object)
{
    const char *names[16];
    size_t n = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        if (n == ARRAY_SIZE(names) || json_is_object(value) || json_is_array(value))
            return NULL;
        names[n++] = key;
    }
    if (n == 0)
        return NULL;
    qsort(names, n, sizeof(names[0]), compare_keys);
    _cleanup_(str_done) struct str text = {0};
    for (size_t i = 0; i < n; i++) {
        str_append_c(&text, i ? ',' : '{');
        fieldset_quote(names[i], &text);
        str_append_c(&text, ':');
        json_format(json_object_get(object, names[i]), &text);
    }
    str_append_c(&text, '}');
    return arena_copy(a, text.p, text.len);
}

/* {"name":"x"}, as nearly all are, is normal already. */
static bool is_simple_key(const char *text)
{
    static const char *const parts[] = {"{\"", "\":\"", "\"}"};
    for (size_t i = 0;; i++) {
        if (!str_starts_with(text, parts[i]))
            return false;
        text += strlen(parts[i]);
        if (i == ARRAY_SIZE(parts) - 1)
            return *text == '\0';
        text += strcspn(text, "\"\\");
    }
}

/* The step's name in its normal form; NULL when it has none. */
static const char *normal_name(struct arena *a, enum fieldset_step step, const char *name)
{
    if (step == FIELDSET_FIELD || (step == FIELDSET_KEY && is_simple_key(name)))
        return name;
    if (step == FIELDSET_INDEX) {
        char *end;
        errno = 0;
        long index = strtol(name, &end, 10);
        return errno || end == name || *end ? NULL : arena_printf(a, "%ld", index);
    }
    json_auto_t *value = json_parse(name, strlen(name), NULL, NULL);
    if (step == FIELDSET_KEY)
        return json_is_object(value) ? normal_key(a, value) : NULL;
    if (!value)
        return NULL;
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    return arena_copy(a, text.p, text.len);
}

static int decode(struct arena *a, const json_t *fields, unsigned room, bool *ret_member,
                  struct fieldset **ret_children, struct err *e)
{
    struct fieldset_level level = {0};
    const char *key;
    json_t *value;
    *ret_member = json_object_size(fields) == 0;
    *ret_children = NULL;
    json_object_foreach((json_t *)fields, key, value) {
        if (!json_is_object(value))
            return malformed(e, key, "its value must be an object");
        if (str_eq(key, ".")) {
            *ret_member = true;
            continue;
        }
        if (!key[0] || key[1] != ':')
            return malformed(e, key, "a step begins with f:, k:, v: or i:");
        const char *letter = memchr(letters, key[0], sizeof(letters));
        if (!letter)
            continue;
        if (room == 0)
            return malformed(e, key, "is too deep");
        enum fieldset_step step = (enum fieldset_step)(letter - letters);
        const char *name = normal_name(a, step, key + 2);
        if (!name)
            return malformed(e, key, "what follows the colon cannot be read");
        bool member;
        struct fieldset *children;
        if (decode(a, value, room - 1, &member, &children, e) < 0)
            return -1;
        fieldset_add(a, &level, step, name, member, children);
    }
    *ret_children = fieldset_finish(a, &level);
    return 0;
}

int fieldset_decode(struct arena *a, const json_t *fields, const struct fieldset **ret_set,
                    struct err *e)
{
    bool member;
    struct fieldset *set;
    if (!json_is_object(fields))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "fieldsV1 must be an object");
    if (decode(a, fields, FIELDSET_MAX_DEPTH, &member, &set, e) < 0)
        return -1;
    *ret_set = set;
    return 0;
}

const char *fieldset_read_string(struct arena *a, const char **at)
{
    const char *start = *at, *p = start;
    if (*p++ != '"')
        return NULL;
    size_t escapes = 0;
    for (; *p != '"'; p++) {
        if (*p == '\\') {
            escapes++;
            p++;
            if (*p != '"' && *p != '\\') /* control characters: rare enough */
                return NULL;
        }
        if ((unsigned char)*p < 0x20)
            return NULL;
    }
    *at = p + 1;
    size_t n = (size_t)(p - start) - 1;
    char *text = arena_copy(a, start + 1, n);
    if (escapes) {
        char *out = text;
        for (size_t i = 0; i < n; i++) {
            i += text[i] == '\\';
            *out++ = text[i];
        }
        *out = '\0';
    }
    return text;
}

/* Behind the opening brace. */
static int read_level(struct arena *a, const char **at, unsigned room, bool *ret_member,
                      struct fieldset **ret_children)
{
    struct fieldset_level level = {0};
    *ret_member = **at == '}';
    for (bool first = true; **at != '}'; first = false) {
        if (!first && *(*at)++ != ',')
            return -1;
        const char *key = fieldset_read_string(a, at);
        if (!key || room == 0 || *(*at)++ != ':' || *(*at)++ != '{')
            return -1;
        bool member;
        struct fieldset *children;
        if (read_level(a, at, room - 1, &member, &children) < 0)
            return -1;
        const char *letter = *key ? memchr(letters, *key, sizeof(letters)) : NULL;
        if (str_eq(key, "."))
            *ret_member = true;
        else if (!letter || key[1] != ':')
            return -1;
        else
            fieldset_add(a, &level, (enum fieldset_step)(letter - letters), key + 2, member,
                         children);
    }
    (*at)++;
    *ret_children = fieldset_finish(a, &level);
    return 0;
}

int fieldset_read(struct arena *a, const char **at, const struct fieldset **ret_set)
{
    bool member;
    struct fieldset *set;
    if (*(*at)++ != '{' || read_level(a, at, FIELDSET_MAX_DEPTH, &member, &set) < 0)
        return -1;
    *ret_set = set;
    return 0;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* What a string needs to stand inside quotes. */
static void escape(const char *text, struct str *out)
{
    for (;;) {
        size_t plain = 0;
        while (is_plain(text[plain]))
            plain++;
        str_append_n(out, text, plain);
        text += plain;
        if (!*text)
            return;
        if (*text == '"' || *text == '\\')
            str_append_n(out, (const char[]){'\\', *text}, 2);
        else
            str_appendf(out, "\\u%04x", (unsigned char)*text);
        text++;
    }
}

void fieldset_quote(const char *text, struct str *out)
{
    str_append_c(out, '"');
    escape(text, out);
    str_append_c(out, '"');
}

static void encode(const struct fieldset *set, bool member, struct str *out)
{
    static const char tail[4] = {'"', ':', '{', '}'};
    bool dot = set && member;
    str_append(out, dot ? "{\".\":{}" : "{");
    for (bool first = !dot; set; set = set->next, first = false) {
        /* Most are short and plain: one append for all of it. */
        char text[80] = {',', '"', letters[set->step], ':'};
        size_t n = 4;
        const char *name = set->name;
        while (n < sizeof(text) - sizeof(tail) && is_plain(*name))
            text[n++] = *name++;
        if (*name) {
            str_append_n(out, text + first, n - first);
            escape(name, out);
            n = first;
        }
        memcpy(text + n, tail, sizeof(tail));
        str_append_n(out, text + first, n - first + (set->children ? 2 : sizeof(tail)));
        if (set->children)
            encode(set->children, set->member, out);
    }
    str_append_c(out, '}');
}

void fieldset_encode(const struct fieldset *set, struct str *out)
{
    encode(set, false, out);
}

/* {"port":80,"protocol":"TCP"} as port=80,protocol="TCP" */
static void append_keys(const char *name, struct str *out)
{
    json_auto_t *keys = json_parse(name, strlen(name), NULL, NULL);
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach(keys, key, value) {
        str_appendf(out, "%s%s=", first ? "" : ",", key);
        json_format(value, out);
        first = false;
    }
}

void fieldset_append_step(enum fieldset_step step, const char *name, struct str *out)
{
    if (step == FIELDSET_FIELD) {
        str_append_c(out, '.');
        str_append(out, name);
        return;
    }
    str_append_c(out, '[');
    if (step == FIELDSET_KEY)
        append_keys(name, out);
    else
        str_appendf(out, "%s%s", step == FIELDSET_VALUE ? "=" : "", name);
    str_append_c(out, ']');
}

/* Those of one level before those below it, as the original lists them. */
static void paths(const struct fieldset *set, struct str *path,
                  void (*fn)(void *context, const char *path), void *context)
{
    size_t len = path->len;
    for (const struct fieldset *s = set; s; s = s->next) {
        if (!s->member)
            continue;
        fieldset_append_step(s->step, s->name, path);
        fn(context, str_get(path));
        str_truncate(path, len);
    }
    for (const struct fieldset *s = set; s; s = s->next) {
        if (!s->children)
            continue;
        fieldset_append_step(s->step, s->name, path);
        paths(s->children, path, fn, context);
        str_truncate(path, len);
    }
}

void fieldset_paths(const struct fieldset *set, void (*fn)(void *context, const char *path),
                    void *context)
{
    _cleanup_(str_done) struct str path = {0};
    paths(set, &path, fn, context);
}

/*
 * Members that are in an object twice. The parser refuses them, and says of one where it is in the
 * text; here they are read as most parsers do, the last one counts, and each is named by its path.
 */
#include "base/map.h"
#include "json/internal.h"

/* Over text that was parsed: brackets match, and no deeper than JSON_MAX_DEPTH. */
struct walk {
    const char *p, *end;
    struct str path;
    void (*fn)(void *context, const char *path);
    void *context;
};

static void walk_value(struct walk *w);

static void skip_space(struct walk *w)
{
    while (w->p < w->end && json_is_one_of(*w->p, " \t\r\n"))
        w->p++;
}

static void skip_string(struct walk *w)
{
    for (w->p++; w->p < w->end && *w->p != '"'; w->p++) {
        if (*w->p == '\\')
            w->p++;
    }
    w->p++;
}

static json_t *walk_name(struct walk *w)
{
    const char *start = w->p;
    skip_string(w);
    return json_loadb(start, (size_t)(w->p - start), JSON_DECODE_ANY, NULL);
}

static void walk_object(struct walk *w)
{
    struct map seen = {0};
    for (w->p++, skip_space(w); w->p < w->end && *w->p != '}'; skip_space(w)) {
        json_auto_t *name = walk_name(w);
        const char *text = json_string_value(name);
        size_t before = w->path.len;
        str_appendf(&w->path, "%s%s", before ? "." : "", text ? text : "");
        if (text && map_set(&seen, text, w))
            w->fn(w->context, str_get(&w->path));
        skip_space(w);
        w->p++; /* the colon */
        walk_value(w);
        str_truncate(&w->path, before);
        skip_space(w);
        w->p += w->p < w->end && *w->p == ',';
    }
    w->p++;
    map_done(&seen);
}

static void walk_array(struct walk *w)
{
    size_t i = 0;
    for (w->p++, skip_space(w); w->p < w->end && *w->p != ']'; skip_space(w)) {
        size_t before = w->path.len;
        str_appendf(&w->path, "[%zu]", i++);
        walk_value(w);
        str_truncate(&w->path, before);
        skip_space(w);
        w->p += w->p < w->end && *w->p == ',';
    }
    w->p++;
}

static void walk_value(struct walk *w)
{
    skip_space(w);
    if (w->p >= w->end)
        return;
    if (*w->p == '{') {
        walk_object(w);
    } else if (*w->p == '[') {
        walk_array(w);
    } else if (*w->p == '"') {
        skip_string(w);
    } else {
        while (w->p < w->end && !json_is_one_of(*w->p, ",]} \t\r\n"))
            w->p++;
    }
}

json_t *json_parse_last(const char *text, size_t len, void (*fn)(void *context, const char *path),
                        void *context, struct err *e)
{
    json_t *value = json_parse(text, len, NULL, e);
    if (value || str_eq(e->reason, "TooLarge") || str_eq(e->reason, "TooDeep"))
        return value;
    value = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (!value)
        return NULL; /* *e says why */
    *e = (struct err){0};
    struct walk w = {.p = text, .end = text + len, .fn = fn, .context = context};
    walk_value(&w);
    str_done(&w.path);
    return value;
}

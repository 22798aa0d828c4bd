#include "kube/template.h"

#include <ctype.h>

#include "json/doc.h"
#include "json/pointer.h"

struct filling {
    const struct kube_template *template;
    const struct json_doc *doc;
    const json_t *values;
    struct str path; /* where we are, as a JSON pointer */
};

static int set_error(const struct filling *f, struct err *e, const char *what, const char *name,
                     size_t n)
{
    struct json_pos pos = {0};
    json_doc_locate(f->doc, str_get(&f->path), JSON_DOC_VALUE, &pos);
    return err_set(e, ERR_INTERNAL, "InvalidTemplate", "%s, line %u: %s: ${%.*s}",
                   f->template->name, pos.line, what, (int)n, name);
}

/* A placeholder. */
struct place {
    const char *name;
    size_t n;
    char end; /* '?', '.' for "...", or 0 */
    const char *after;
};

/* The placeholder that begins at "${"; what is none is an error. */
static int read_place(const struct filling *f, const char *at, struct place *ret, struct err *e)
{
    const char *name = at + 2;
    size_t n = 0;
    while (isalnum((unsigned char)name[n]))
        n++;
    const char *end = name + n;
    *ret = (struct place){.name = name, .n = n};
    if (*end == '?' || strncmp(end, "...", 3) == 0) {
        ret->end = *end;
        end += *end == '?' ? 1 : 3;
    }
    ret->after = end + 1;
    return n && *end == '}'
               ? 0
               : set_error(f, e, "write a name of letters and digits", name, strcspn(name, "}"));
}

static json_t *get_value(const struct filling *f, const struct place *p)
{
    return json_object_getn(f->values, p->name, p->n);
}

/* A text with placeholders in it. */
static json_t *fill_text(const struct filling *f, const char *text, struct err *e)
{
    _cleanup_(str_done) struct str out = {0};
    for (const char *at; (at = strstr(text, "${"));) {
        struct place p;
        str_append_n(&out, text, (size_t)(at - text));
        if (read_place(f, at, &p, e) < 0)
            return NULL;
        const json_t *value = get_value(f, &p);
        if (json_is_integer(value))
            str_appendf(&out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_string(value))
            str_append_n(&out, json_string_value(value), json_string_length(value));
        if (p.end || !value || !(json_is_integer(value) || json_is_string(value))) {
            set_error(f, e,
                      p.end    ? "within a text every value is needed"
                      : !value ? "no value is given for it"
                               : "within a text a string or an integer is needed",
                      p.name, p.n);
            return NULL;
        }
        text = p.after;
    }
    str_append(&out, text);
    return json_stringn(str_get(&out), out.len);
}

static int fill_value(struct filling *f, const json_t *value, json_t **ret, struct err *e);

static int fill_object(struct filling *f, const json_t *object, json_t *out, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        size_t before = f->path.len;
        json_pointer_append(&f->path, key);
        json_t *filled = NULL;
        if (key[0] == '$')
            return set_error(f, e, "$when stands in lists only, with $items", key, strlen(key));
        if (fill_value(f, value, &filled, e) < 0)
            return -1;
        if (filled)
            json_object_set_new(out, key, filled);
        str_truncate(&f->path, before);
    }
    return 0;
}

static int fill_items(struct filling *f, const json_t *list, json_t *out, struct err *e);

/* "- $when: NAME" with "$items: [...]". */
static int fill_when(struct filling *f, const json_t *item, json_t *out, struct err *e)
{
    const char *name = json_str(item, "$when");
    const json_t *items = json_object_get(item, "$items"),
                 *value = name ? json_object_get(f->values, name) : NULL;
    if (!name || !json_is_array(items) || json_object_size(item) != 2)
        return set_error(f, e, "an item has $when with a name, and $items with a list", "$when", 5);
    if (!value || json_is_false(value))
        return 0;
    size_t before = f->path.len;
    json_pointer_append(&f->path, "$items");
    if (fill_items(f, items, out, e) < 0)
        return -1;
    str_truncate(&f->path, before);
    return 0;
}

/* "- ${NAME...}": 1 when the item is one, and its values are in the list. */
static int splice_items(struct filling *f, const json_t *item, json_t *out, struct err *e)
{
    const char *text = json_string_value(item);
    struct place p;
    if (!text || strncmp(text, "${", 2) != 0)
        return 0;
    if (read_place(f, text, &p, e) < 0)
        return -1;
    if (p.end != '.' || *p.after)
        return 0;
    json_t *values = get_value(f, &p);
    if (values && !json_is_array(values))
        return set_error(f, e, "a list is needed", p.name, p.n);
    json_array_extend(out, values);
    return 1;
}

static int fill_item(struct filling *f, const json_t *item, json_t *out, struct err *e)
{
    if (json_object_get(item, "$when"))
        return fill_when(f, item, out, e);
    int spliced = splice_items(f, item, out, e);
    json_t *filled = NULL;
    if (spliced || fill_value(f, item, &filled, e) < 0)
        return spliced > 0 ? 0 : -1;
    if (filled)
        json_array_append_new(out, filled);
    return 0;
}

static int fill_items(struct filling *f, const json_t *list, json_t *out, struct err *e)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item) {
        size_t before = f->path.len;
        json_pointer_append_index(&f->path, i);
        if (fill_item(f, item, out, e) < 0)
            return -1;
        str_truncate(&f->path, before);
    }
    return 0;
}

static int fill_string(struct filling *f, const json_t *string, json_t **ret, struct err *e)
{
    const char *text = json_string_value(string);
    struct place p = {.after = ""};
    bool begins = strncmp(text, "${", 2) == 0;
    if (begins && read_place(f, text, &p, e) < 0)
        return -1;
    if (!begins || *p.after) {
        *ret = fill_text(f, text, e);
        return *ret ? 0 : -1;
    }
    json_t *value = get_value(f, &p);
    if (p.end == '.')
        return set_error(f, e, "\"...\" stands in lists only", p.name, p.n);
    if (!value && !p.end)
        return set_error(f, e, "no value is given for it", p.name, p.n);
    *ret = value ? json_incref(value) : NULL;
    return 0;
}

/* *ret is a new reference, or NULL for what is left out. */
static int fill_value(struct filling *f, const json_t *value, json_t **ret, struct err *e)
{
    if (json_is_string(value))
        return fill_string(f, value, ret, e);
    if (!json_is_object(value) && !json_is_array(value)) {
        *ret = json_incref((json_t *)(uintptr_t)value);
        return 0;
    }
    json_t *out = json_is_object(value) ? json_object() : json_array();
    if ((json_is_object(value) ? fill_object : fill_items)(f, value, out, e) < 0) {
        json_decref(out);
        return -1;
    }
    *ret = out;
    return 0;
}

json_t *kube_template_fill(const struct kube_template *t, const json_t *values, struct err *e)
{
    _cleanup_(json_stream_freep) struct json_stream *stream =
        json_stream_new_text(t->text, strlen(t->text));
    struct json_doc doc = {0};
    struct filling f = {.template = t, .doc = &doc, .values = values};
    json_t *object = NULL;
    int read = json_stream_next(stream, &doc, e);
    if (read > 0 && !json_is_object(doc.value))
        read = 0;
    if (read == 0)
        err_set(e, ERR_INTERNAL, "InvalidTemplate", "%s: holds no object", t->name);
    else if (read < 0)
        err_prefix(e, "%s", t->name);
    else
        fill_value(&f, doc.value, &object, e);
    str_done(&f.path);
    json_doc_done(&doc);
    return object;
}

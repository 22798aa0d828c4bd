#include "api/structure.h"

#include "api/message.h"
#include "base/map.h"
#include "base/quantity.h"
#include "base/rfc3339.h"

struct walk {
    enum api_unknown unknown;
    bool builtin; /* one of Kubernetes' own */
    struct api_report *report;
};

/* What is known of an object's members; one of both, or both. */
struct members {
    const struct api_field *fields;
    const struct api_message_field *message;
    bool keep; /* the table says that others are welcome */
};

static void check_object(const struct walk *w, const struct members *m, const json_t *object,
                         const struct api_path *at);

static const char *expected_of(const struct api_field *field)
{
    static const char *const names[] = {
        [API_OBJECT] = "an object",
        [API_STRING] = "a string",
        [API_BOOL] = "true or false",
        [API_INT] = "a whole number",
        [API_NUMBER] = "a number",
        [API_QUANTITY] = "a quantity such as 10Gi",
        [API_INT_OR_STRING] = "a whole number or a string",
        [API_BOOL_OR_STRING] = "a string",
        [API_TIME] = "a time such as \"2026-01-02T03:04:05Z\"",
        [API_ANY] = "a value",
    };
    return names[field->type];
}

/* What people usually meant when the type is wrong. */
static const char *type_hint(const struct api_field *field, const json_t *value)
{
    if (field->type == API_STRING && (json_is_boolean(value) || json_is_number(value)))
        return "; put it in quotes";
    if (json_is_string(value)) {
        const char *text = json_string_value(value), *colon = strchr(text, ':');
        if (field->type == API_OBJECT && colon && colon[1] && colon[1] != ' ' && colon[1] != '/')
            return "; a space is missing after the colon";
        if (field->type == API_BOOL && (str_eq(text, "true") || str_eq(text, "false")))
            return "; write it without quotes";
        if (field->type == API_INT && *text && strspn(text, "0123456789") == strlen(text))
            return "; write it without quotes";
    }
    return "";
}

static void wrong_type(const struct walk *w, const struct api_field *field, const json_t *value,
                       const struct api_path *at)
{
    api_problem(w->report, at, API_WRONG_TYPE, value, "must be %s, not %s %s%s", expected_of(field),
                strchr("aio", json_type_name(value)[0]) ? "an" : "a", json_type_name(value),
                type_hint(field, value));
}

static void append_words(struct str *out, const char *const *words)
{
    for (const char *const *word = words; *word; word++)
        str_appendf(out, "%s\"%s\"", word == words ? "" : ", ", *word);
}

static void check_text(const struct walk *w, const struct api_field *field, const json_t *value,
                       const struct api_path *at)
{
    const char *text = json_string_value(value);
    if (field->words && !str_in(text, field->words)) {
        _cleanup_(str_done) struct str words = {0};
        append_words(&words, field->words);
        const char *near = str_nearest(text, field->words);
        api_problem(w->report, at, API_UNSUPPORTED, value, "supported values: %s%s%s%s",
                    str_get(&words), near ? "; did you mean \"" : "", near ? near : "",
                    near ? "\"?" : "");
    }
    if (field->format && (*text || field->flags & API_REQUIRED)) {
        const char *why;
        if (field->format->max && strlen(text) > field->format->max)
            api_problem(w->report, at, API_TOO_LONG, value, "may not be more than %zu bytes",
                        field->format->max);
        else if ((why = field->format->check(text)))
            api_problem(w->report, at, API_INVALID, value, "%s", why);
    }
}

static void check_quantity(const struct walk *w, const struct api_field *field, const json_t *value,
                           const struct api_path *at)
{
    struct quantity q;
    struct err e = {0};
    _cleanup_(str_done) struct str number = {0};
    if (!json_is_string(value))
        json_format(value, &number);
    const char *text = json_is_string(value) ? json_string_value(value) : str_get(&number);
    if (quantity_parse(text, &q, &e) < 0) {
        api_problem(w->report, at, API_INVALID, value, "%s", e.msg);
        return;
    }
    if (quantity_sign(&q) < 0)
        api_problem(w->report, at, API_INVALID, value, "must not be negative");
    else if (field->flags & API_POSITIVE && quantity_sign(&q) == 0)
        api_problem(w->report, at, API_INVALID, value, "must be more than zero");
}

static void check_int(const struct walk *w, const struct api_field *field, const json_t *value,
                      const struct api_path *at)
{
    json_int_t number = json_integer_value(value);
    if (field->min < field->max && (number < field->min || number > field->max)) {
        if (field->max == INT64_MAX)
            api_problem(w->report, at, API_INVALID, value, "must be at least %lld",
                        (long long)field->min);
        else
            api_problem(w->report, at, API_INVALID, value, "must be between %lld and %lld",
                        (long long)field->min, (long long)field->max);
    }
}

static bool has_type(const struct walk *w, const struct api_field *field, const json_t *value)
{
    switch (field->type) {
    case API_OBJECT:
        return json_is_object(value);
    case API_STRING:
    case API_TIME:
    case API_BOOL_OR_STRING: /* the normal form has made it a string */
        return json_is_string(value);
    case API_BOOL:
        return json_is_boolean(value);
    case API_INT:
        return json_is_integer(value);
    case API_NUMBER:
        return json_is_number(value);
    case API_QUANTITY: /* Kubernetes' own kinds take "cpu: 0.5", custom resources do not */
        return json_is_string(value) || json_is_integer(value) ||
               (w->builtin && json_is_real(value));
    case API_INT_OR_STRING:
        return json_is_string(value) || json_is_integer(value);
    case API_ANY:
        return true;
    }
    return false;
}

/* One value: the field's own, a list's element or a map's member. */
static void check_value(const struct walk *w, const struct api_field *field,
                        const struct api_message_field *message, const json_t *value,
                        const struct api_path *at)
{
    if (!has_type(w, field, value)) {
        wrong_type(w, field, value, at);
        return;
    }
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value)) {
        api_problem(w->report, at, API_INVALID, value, "must not contain the character U+0000");
        return;
    }
    struct err e = {0};
    switch (field->type) {
    case API_OBJECT:
        if (field->fields || message)
            check_object(w, &(struct members){field->fields, message, field->flags & API_KEEP},
                         value, at);
        break;
    case API_QUANTITY:
        check_quantity(w, field, value, at);
        break;
    case API_INT:
        check_int(w, field, value, at);
        break;
    case API_TIME:
        if (rfc3339_parse(json_string_value(value), &(struct timespec){0}, &e) < 0)
            api_problem(w->report, at, API_INVALID, value, "%s", e.msg);
        break;
    default:
        if (json_is_string(value))
            check_text(w, field, value, at);
        break;
    }
}

/* What tells an element of a set or map from the others. */
static const char *id_of(const struct api_field *field, const json_t *list, size_t i)
{
    const json_t *element = json_array_get(list, i);
    return json_string_value(field->merge_key ? json_object_get(element, field->merge_key)
                                              : element);
}

/* Short lists, which most are, need no map. */
static bool is_repeated(const struct api_field *field, const json_t *list, size_t i,
                        struct map *seen)
{
    enum { SHORT = 8 };
    const char *id = id_of(field, list, i);
    if (!id)
        return false;
    if (json_array_size(list) > SHORT)
        return map_set(seen, id, (void *)list);
    for (size_t j = 0; j < i; j++) {
        const char *other = id_of(field, list, j);
        if (other && str_eq(other, id))
            return true;
    }
    return false;
}

static void check_list(const struct walk *w, const struct api_field *field,
                       const struct api_message_field *message, const json_t *list,
                       const struct api_path *at)
{
    bool unique = field->flags & API_SET || (!w->builtin && field->merge_key && !field->map_keys &&
                                             api_field_is_list_map(field));
    size_t i;
    json_t *element;
    struct map seen = {0};
    json_array_foreach(list, i, element) {
        const struct api_path *here = API_AT(at, i);
        check_value(w, field, message, element, here);
        if (unique && is_repeated(field, list, i, &seen)) {
            json_auto_t *id = json_string(id_of(field, list, i));
            api_problem(w->report, field->merge_key ? API_KEY(here, field->merge_key) : here,
                        API_DUPLICATE, id, "is in the list already");
        }
    }
    map_done(&seen);
}

static void check_map(const struct walk *w, const struct api_field *field,
                      const struct api_message_field *message, const json_t *map,
                      const struct api_path *at)
{
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)map, key, member) {
        const char *why = field->keys ? field->keys->check(key) : NULL;
        if (why) {
            json_auto_t *shown = json_string(key);
            api_problem(w->report, API_KEY(at, key), API_BAD_KEY, shown, "the name %s", why);
        }
        check_value(w, field, message, member, API_KEY(at, key));
    }
}

static void check_field(const struct walk *w, const struct api_field *field,
                        const struct api_message_field *message, const json_t *value,
                        const struct api_path *at)
{
    bool empty = (field->type == API_STRING && field->shape == API_ONE && json_is_string(value) &&
                  json_string_length(value) == 0) ||
                 (field->shape == API_LIST && json_is_array(value) && !json_array_size(value)) ||
                 (field->shape == API_MAP && json_is_object(value) && !json_object_size(value));
    if (empty && field->flags & API_REQUIRED) {
        api_problem(w->report, at, API_MISSING, NULL, "must not be empty");
    } else if (field->shape == API_LIST) {
        if (json_is_array(value))
            check_list(w, field, message, value, at);
        else
            api_problem(w->report, at, API_WRONG_TYPE, value,
                        "must be a list; start each element with \"- \"");
    } else if (field->shape == API_MAP) {
        if (json_is_object(value))
            check_map(w, field, message, value, at);
        else
            api_problem(w->report, at, API_WRONG_TYPE, value, "must be a map of names to values");
    } else {
        check_value(w, field, message, value, at);
    }
}

/* Names that were perhaps meant, as many as fit; ends with NULL. */
struct names {
    const char *name[256];
    size_t n;
};

static void add_name(struct names *names, const char *name)
{
    if (names->n + 1 < ARRAY_SIZE(names->name))
        names->name[names->n++] = name;
    names->name[names->n] = NULL;
}

static void add_message_names(struct names *names, const struct api_message_field *message)
{
    for (const struct api_message_field *m = message; m && m->number; m++) {
        if (m->kind == API_MESSAGE_INLINE)
            add_message_names(names, m->fields);
        else
            add_name(names, m->name);
    }
}

static void unknown_field(const struct walk *w, const struct members *m, const char *key,
                          const struct api_path *at)
{
    if (w->unknown == API_UNKNOWN_WARN) {
        api_warn_unknown(w->report, at, key);
        return;
    }
    struct names names = {0};
    for (const struct api_field *f = m->fields; f && f->name; f++) {
        add_name(&names, f->name);
        for (const char *const *alias = f->aliases; alias && *alias; alias++)
            add_name(&names, *alias);
    }
    add_message_names(&names, m->message);
    const char *near = str_nearest(key, names.name);
    json_auto_t *shown = json_string(key);
    if (near)
        api_problem(w->report, at, API_UNKNOWN, shown, "did you mean \"%s\"?", near);
    else
        api_problem(w->report, at, API_UNKNOWN, shown, "there is no field of this name here");
}

static void check_member(const struct walk *w, const struct members *m, const char *key,
                         const json_t *value, const struct api_path *at)
{
    const struct api_field *field = api_field_find(m->fields, key);
    const struct api_message_field *member = api_message_member(m->message, key);
    const struct api_message_field *inside = member ? member->fields : NULL;
    if (field) {
        check_field(w, field, inside, value, at);
    } else if (member) {
        const struct api_field untold = api_message_as_field(member);
        if (!json_is_null(value)) /* that is to say nothing */
            check_field(w, &untold, inside, value, at);
    } else if (w->unknown != API_UNKNOWN_IGNORE && (m->message || !m->keep)) {
        unknown_field(w, m, key, at);
    }
}

static void check_object(const struct walk *w, const struct members *m, const json_t *object,
                         const struct api_path *at)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
        check_member(w, m, key, value, API_KEY(at, key));
    for (const struct api_field *f = m->fields; f && f->name; f++) {
        if (f->flags & API_REQUIRED && !json_object_get(object, f->name))
            api_problem(w->report, API_KEY(at, f->name), API_MISSING, NULL, "must be %s",
                        f->shape == API_LIST  ? "a list"
                        : f->shape == API_MAP ? "a map of names to values"
                                              : expected_of(f));
    }
}

void api_check_structure(const struct api_kind *kind, const json_t *object,
                         enum api_unknown unknown, struct api_report *report)
{
    const struct members m = {api_kind_structure(kind), api_kind_message(kind), kind->schema};
    struct walk w = {unknown, kind->flags & API_BUILTIN, report};
    check_object(&w, &m, object, NULL);
}

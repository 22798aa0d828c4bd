#include "api/normalize.h"

static void normalize_object(const struct api_field *fields, json_t *object,
                             const struct api_path *at, struct api_report *report);

/* off and false arrive from YAML 1.1 as booleans; then synonyms. NULL: stays as it is. */
static json_t *normal_word(const struct api_field *field, const json_t *value)
{
    const char *text = NULL;
    if (json_is_string(value))
        text = json_string_value(value);
    else if (field->type == API_BOOL_OR_STRING && json_is_boolean(value))
        text = json_is_true(value) ? "on" : "off";
    if (!text)
        return NULL;
    for (const struct api_synonym *s = field->synonyms; s && s->from; s++) {
        if (str_eq(s->from, text))
            text = s->to;
    }
    if (json_is_string(value) && text == json_string_value(value))
        return NULL;
    return json_string(text);
}

/* 3.0 and 1e3 are whole numbers to the API; NULL: it is none. */
static json_t *whole_number(const json_t *value)
{
    json_int_t whole;
    if (!json_is_real(value) || !json_real_is_whole(json_real_value(value), &whole))
        return NULL;
    return json_integer(whole);
}

/* One value of the field (the field itself, a list's element, a map's member). */
static json_t *normalize_value(const struct api_field *field, json_t *value,
                               const struct api_path *at, struct api_report *report)
{
    if (field->type == API_OBJECT && field->fields && json_is_object(value))
        normalize_object(field->fields, value, at, report);
    else if (field->synonyms || field->type == API_BOOL_OR_STRING)
        return normal_word(field, value);
    else if (field->type == API_INT || field->type == API_QUANTITY ||
             field->type == API_INT_OR_STRING)
        return whole_number(value);
    return NULL;
}

static void normalize_field(const struct api_field *field, json_t *object, json_t *value,
                            const struct api_path *at, struct api_report *report)
{
    if (field->shape == API_LIST) {
        size_t i;
        json_t *element;
        json_array_foreach(value, i, element) {
            json_t *normal = normalize_value(field, element, API_AT(at, i), report);
            if (normal)
                json_array_set_new(value, i, normal);
        }
    } else if (field->shape == API_MAP) {
        const char *key;
        json_t *member;
        json_object_foreach(value, key, member) {
            json_t *normal = normalize_value(field, member, API_KEY(at, key), report);
            if (normal)
                json_object_set_new(value, key, normal);
        }
    } else if (field->type == API_QUANTITY && !(field->flags & API_REQUIRED) &&
               json_is_string(value) && json_string_length(value) == 0) {
        /* Some are strings to Go's clients, which write one that nobody set as "". */
        json_object_del(object, field->name);
    } else {
        json_t *normal = normalize_value(field, value, at, report);
        if (normal)
            json_object_set_new(object, field->name, normal);
    }
}

static void resolve_alias(const struct api_field *field, const char *alias, json_t *object,
                          const struct api_path *at, struct api_report *report)
{
    const json_t *own = json_object_get(object, field->name);
    if (json_is_null(json_object_get(object, alias))) {
        /* not given */
    } else if (own && !json_is_null(own)) {
        api_problem(report, API_KEY(at, alias), API_FORBIDDEN, NULL,
                    "is another name of '%s', which is set as well; keep one of them", field->name);
    } else {
        json_object_set(object, field->name, json_object_get(object, alias));
        api_report_renamed(report, API_KEY(at, field->name), API_KEY(at, alias));
    }
    json_object_del(object, alias);
}

/* Goes by the members, not by the table: an object has few of the fields that it could have. */
static void normalize_object(const struct api_field *fields, json_t *object,
                             const struct api_path *at, struct api_report *report)
{
    const char *key;
    json_t *value;
    void *next;
    const char *renamed[16];
    size_t n = 0;
    json_object_foreach_safe(object, next, key, value) {
        const struct api_field *field = api_field_find(fields, key);
        if (!field && (field = api_field_by_alias(fields, key)) && n < ARRAY_SIZE(renamed)) {
            renamed[n++] = field->name;
            resolve_alias(field, key, object, at, report);
        } else if (field && json_is_null(value)) {
            json_object_del(object, key);
        } else if (field) {
            normalize_field(field, object, value, API_KEY(at, key), report);
        }
    }
    /* A renamed member has gone to the end, where the loop may not have met it. */
    while (n > 0) {
        const struct api_field *field = api_field_find(fields, renamed[--n]);
        value = json_object_get(object, field->name);
        if (json_is_null(value))
            json_object_del(object, field->name);
        else if (value)
            normalize_field(field, object, value, API_KEY(at, field->name), report);
    }
}

void api_normalize(const struct api_kind *kind, json_t *object, struct api_report *report)
{
    normalize_object(api_kind_structure(kind), object, NULL, report);
    if (kind->normalize)
        kind->normalize(object, report);
}

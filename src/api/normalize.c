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
    double number = json_real_value(value);
    if (!json_is_real(value) || !(number > -0x1p53 && number < 0x1p53) ||
        number != (double)(json_int_t)number)
        return NULL;
    return json_integer((json_int_t)number);
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

static void normalize_field(const struct api_field *field, json_t *object,
                            const struct api_path *at, struct api_report *report)
{
    json_t *value = json_object_get(object, field->name);
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
    } else {
        json_t *normal = normalize_value(field, value, at, report);
        if (normal)
            json_object_set_new(object, field->name, normal);
    }
}

static void resolve_aliases(const struct api_field *field, json_t *object,
                            const struct api_path *at, struct api_report *report)
{
    for (const char *const *alias = field->aliases; alias && *alias; alias++) {
        json_t *value = json_object_get(object, *alias);
        if (!value)
            continue;
        if (json_object_get(object, field->name)) {
            api_problem(report, API_KEY(at, *alias), API_FORBIDDEN, NULL,
                        "is another name of '%s', which is set as well; keep one of them",
                        field->name);
        } else {
            json_object_set(object, field->name, value);
            api_report_renamed(report, API_KEY(at, field->name), API_KEY(at, *alias));
        }
        json_object_del(object, *alias);
    }
}

static void normalize_object(const struct api_field *fields, json_t *object,
                             const struct api_path *at, struct api_report *report)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        resolve_aliases(f, object, at, report);
        const json_t *value = json_object_get(object, f->name);
        if (json_is_null(value))
            json_object_del(object, f->name);
        else if (value)
            normalize_field(f, object, API_KEY(at, f->name), report);
    }
}

void api_normalize(const struct api_kind *kind, json_t *object, struct api_report *report)
{
    normalize_object(kind->fields, object, NULL, report);
    if (kind->normalize)
        kind->normalize(object, report);
}

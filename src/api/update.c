#include "api/update.h"

#include "base/quantity.h"

static void compare_objects(const struct api_field *fields, const json_t *old, const json_t *object,
                            const struct api_path *at, struct api_report *report);

static struct quantity quantity_of(const json_t *value)
{
    struct quantity q = {0};
    _cleanup_(str_done) struct str number = {0};
    if (json_is_number(value))
        json_format(value, &number);
    const char *text = json_is_string(value) ? json_string_value(value) : str_get(&number);
    (void)quantity_parse(text, &q, NULL);
    return q;
}

int api_quantity_cmp(const json_t *a, const json_t *b)
{
    struct quantity x = quantity_of(a), y = quantity_of(b);
    return quantity_cmp(&x, &y);
}

static bool is_set(const json_t *value)
{
    return value && !(json_is_string(value) && json_string_length(value) == 0);
}

static void compare_lists(const struct api_field *field, const json_t *old, const json_t *list,
                          const struct api_path *at, struct api_report *report)
{
    size_t i, j;
    json_t *element, *candidate;
    json_array_foreach(list, i, element) {
        const json_t *id = json_object_get(element, field->merge_key);
        json_array_foreach(old, j, candidate) {
            if (id && json_equal(id, json_object_get(candidate, field->merge_key)))
                compare_objects(field->fields, candidate, element, API_AT(at, i), report);
        }
    }
}

static void compare_objects(const struct api_field *fields, const json_t *old, const json_t *object,
                            const struct api_path *at, struct api_report *report)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        const json_t *was = json_object_get(old, f->name), *is = json_object_get(object, f->name);
        const struct api_path *here = API_KEY(at, f->name);
        if (!is_set(was))
            continue;
        if (f->flags & API_IMMUTABLE && (!is || !json_equal(was, is))) {
            _cleanup_(str_done) struct str before = {0};
            json_format(was, &before);
            api_problem(report, here, API_INVALID, is, "field is immutable (was %.80s)",
                        str_get(&before));
        } else if (f->flags & API_GROW_ONLY && is && api_quantity_cmp(is, was) < 0) {
            struct quantity q = quantity_of(was);
            char text[QUANTITY_TEXT_MAX];
            api_problem(report, here, API_FORBIDDEN, is,
                        "a volume cannot shrink; it has %s, ask for that or more",
                        quantity_format(&q, text));
        } else if (f->type == API_OBJECT && f->fields && is) {
            if (f->shape == API_LIST && f->merge_key)
                compare_lists(f, was, is, here, report);
            else if (f->shape == API_ONE)
                compare_objects(f->fields, was, is, here, report);
        }
    }
}

void api_check_update(const struct api_kind *kind, const json_t *old, const json_t *object,
                      struct api_report *report)
{
    compare_objects(kind->fields, old, object, NULL, report);
}

#include "api/update.h"

#include "base/map.h"
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

/* A quantity is the same in other words: 1Gi, 1024Mi. */
static bool is_same(const struct api_field *field, const json_t *was, const json_t *is)
{
    if (field->type == API_QUANTITY && field->shape == API_ONE && is)
        return api_quantity_cmp(was, is) == 0;
    return json_equal(was, is);
}

/* Whether the table says anything of updates, here or below. */
static bool has_rules(const struct api_field *fields)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        if (f->flags & (API_IMMUTABLE | API_GROW_ONLY) ||
            (f->type == API_OBJECT && has_rules(f->fields)))
            return true;
    }
    return false;
}

static void compare_lists(const struct api_field *field, const json_t *old, const json_t *list,
                          const struct api_path *at, struct api_report *report)
{
    size_t i;
    json_t *element;
    struct map before = {0};
    json_array_foreach(old, i, element) {
        const char *id = json_str(element, field->merge_key);
        if (id)
            map_set(&before, id, element);
    }
    json_array_foreach(list, i, element) {
        const char *id = json_str(element, field->merge_key);
        const json_t *was = id ? map_get(&before, id) : NULL;
        if (was)
            compare_objects(field->fields, was, element, API_AT(at, i), report);
    }
    map_done(&before);
}

/* `object` may be NULL: what has gone has lost its members too. */
static void compare_objects(const struct api_field *fields, const json_t *old, const json_t *object,
                            const struct api_path *at, struct api_report *report)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        const json_t *was = json_object_get(old, f->name), *is = json_object_get(object, f->name);
        const struct api_path *here = API_KEY(at, f->name);
        if (!is_set(was))
            continue;
        if (f->flags & API_IMMUTABLE && !is_same(f, was, is)) {
            _cleanup_(str_done) struct str before = {0};
            json_format(was, &before);
            api_problem(report, here, API_INVALID, is, "field is immutable (was %.80s)%s",
                        str_get(&before), is ? "" : "; put it back");
        } else if (f->flags & API_GROW_ONLY && is && api_quantity_cmp(is, was) < 0) {
            struct quantity q = quantity_of(was);
            char text[QUANTITY_TEXT_MAX];
            api_problem(report, here, API_FORBIDDEN, is,
                        "a volume cannot shrink; it has %s, ask for that or more",
                        quantity_format(&q, text));
        } else if (f->type == API_OBJECT && has_rules(f->fields)) {
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

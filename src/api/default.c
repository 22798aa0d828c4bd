#include "api/default.h"

/* The commonest without parsing: this runs for every object. */
static json_t *default_value(const struct api_field *f)
{
    if (f->shape == API_ONE && f->type == API_BOOL)
        return json_boolean(str_eq(f->def, "true"));
    if (f->shape == API_ONE && f->type == API_INT)
        return json_integer(strtoll(f->def, NULL, 10));
    if (str_eq(f->def, "{}"))
        return json_object();
    return json_loads(f->def, JSON_DECODE_ANY, NULL);
}

static void default_object(const struct api_field *fields, json_t *object)
{
    if (!json_is_object(object)) /* what is stored may be older than today's rules */
        return;
    for (const struct api_field *f = fields; f && f->name; f++) {
        json_t *value = json_object_get(object, f->name);
        if (!value && f->def) {
            value = default_value(f);
            json_object_set_new(object, f->name, value);
        }
        if (f->type != API_OBJECT || !f->fields)
            continue;
        size_t i;
        const char *key;
        json_t *member;
        if (f->shape == API_LIST) {
            json_array_foreach(value, i, member)
                default_object(f->fields, member);
        } else if (f->shape == API_MAP) {
            json_object_foreach(value, key, member)
                default_object(f->fields, member);
        } else {
            default_object(f->fields, value);
        }
    }
}

bool api_default(const struct api_kind *kind, json_t *object)
{
    default_object(api_kind_structure(kind), object);
    bool all = !kind->schema || kind->schema_rules->set_defaults(kind->schema, object);
    if (kind->derive)
        kind->derive(object);
    return all;
}

#include "api/field.h"

#include <stdio.h>

const struct api_field *api_field_find(const struct api_field *fields, const char *name)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        if (f->name[0] == name[0] && str_eq(f->name, name))
            return f;
    }
    return NULL;
}

const struct api_field *api_field_by_alias(const struct api_field *fields, const char *name)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        if (f->aliases && str_in(name, f->aliases))
            return f;
    }
    return NULL;
}

bool api_field_is_list_map(const struct api_field *field)
{
    const char *const alone[] = {field->merge_key, NULL};
    if (field->shape != API_LIST || field->flags & API_ATOMIC ||
        !(field->merge_key || field->map_keys))
        return false;
    for (const char *const *name = field->map_keys ? field->map_keys : alone; *name; name++) {
        const struct api_field *key = api_field_find(field->fields, *name);
        if (!key || !(key->flags & API_REQUIRED || key->def) || key->aliases)
            return false;
    }
    return true;
}

const char *api_field_type_text(const struct api_field *field, char buf[64])
{
    static const char *const names[] = {
        [API_OBJECT] = "Object",
        [API_STRING] = "string",
        [API_BOOL] = "boolean",
        [API_INT] = "integer",
        [API_NUMBER] = "number",
        [API_QUANTITY] = "Quantity",
        [API_INT_OR_STRING] = "IntOrString",
        [API_BOOL_OR_STRING] = "string",
        [API_TIME] = "Time",
        [API_ANY] = "any",
    };
    static const char *const shapes[] = {
        [API_ONE] = "", [API_LIST] = "[]", [API_MAP] = "map[string]"};
    snprintf(buf, 64, "%s%s", shapes[field->shape], names[field->type]);
    return buf;
}

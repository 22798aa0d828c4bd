#include "api/decode.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"

int64_t api_quantity_int(const json_t *quantity)
{
    struct quantity q = {0};
    if (json_is_integer(quantity))
        return json_integer_value(quantity);
    if (!json_is_string(quantity) || quantity_parse(json_string_value(quantity), &q, NULL) < 0)
        return 0;
    return quantity_to_int(&q);
}

/* The value of a field, under its name or an alias; NULL. */
static const json_t *find_value(const struct api_field *field, const json_t *object)
{
    const json_t *value = json_object_get(object, field->name);
    for (const char *const *alias = field->aliases; !value && alias && *alias; alias++)
        value = json_object_get(object, *alias);
    return value;
}

static const char *text_or_empty(const json_t *value)
{
    const char *text = json_string_value(value);
    return text ? text : "";
}

/* Whether the elements of a list are texts; else they are objects. */
static bool is_text(const struct api_field *field)
{
    return field->type == API_STRING || field->type == API_TIME;
}

static void decode_list(const struct api_field *field, const json_t *value, void *member,
                        struct arena *arena)
{
    API_ITEMS(void) *items = member;
    size_t n = json_array_size(value);
    if (!n)
        return;
    items->len = n;
    /* Without an arena it points to where nothing is. */
    items->p = arena ? arena_alloc(arena, n * field->item_size) : (void *)field->item_size;
    for (size_t i = 0; arena && i < n; i++) {
        const json_t *element = json_array_get(value, i);
        if (is_text(field))
            ((const char **)items->p)[i] = text_or_empty(element);
        else
            api_decode(field->fields, element, (char *)items->p + i * field->item_size, arena);
    }
}

static int64_t int_or_default(const struct api_field *field, const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value);
    return field->def ? strtoll(field->def, NULL, 10) : 0;
}

static void decode_value(const struct api_field *field, const json_t *value, void *member,
                         struct arena *arena)
{
    switch (field->type) {
    case API_STRING:
    case API_BOOL_OR_STRING:
    case API_TIME:
        *(const char **)member = text_or_empty(value);
        break;
    case API_BOOL:
        *(bool *)member = json_is_true(value);
        break;
    case API_INT:
        *(int64_t *)member = int_or_default(field, value);
        break;
    case API_QUANTITY:
        *(int64_t *)member = api_quantity_int(value);
        break;
    case API_OBJECT:
        if (field->fields) {
            api_decode(field->fields, value, member, arena);
            break;
        }
        /* fall through */
    default:
        *(const json_t **)member = value;
    }
}

void api_decode(const struct api_field *fields, const json_t *object, void *ret,
                struct arena *arena)
{
    for (const struct api_field *f = fields; f->name; f++) {
        if (!f->at)
            continue;
        const json_t *value = find_value(f, object);
        void *member = (char *)ret + f->at - 1;
        if (f->shape == API_LIST && f->item_size)
            decode_list(f, value, member, arena);
        else if (f->shape == API_ONE)
            decode_value(f, value, member, arena);
        else
            *(const json_t **)member = value;
    }
}

static json_t *encode_list(const struct api_field *field, const void *member)
{
    const API_ITEMS(char) *items = member;
    json_t *list = items->len ? json_array() : NULL;
    for (size_t i = 0; i < items->len; i++) {
        const char *at = items->p + i * field->item_size;
        json_array_append_new(list, is_text(field)
                                        ? json_string(*(const char *const *)(const void *)at)
                                        : api_encode(field->fields, at));
    }
    return list;
}

/* NULL: it is absent. */
static json_t *encode_value(const struct api_field *field, const void *member)
{
    switch (field->type) {
    case API_STRING:
    case API_BOOL_OR_STRING:
    case API_TIME: {
        const char *text = *(const char *const *)member;
        return text && *text ? json_string(text) : NULL;
    }
    case API_BOOL:
        return *(const bool *)member ? json_true() : NULL;
    case API_INT:
        return *(const int64_t *)member ? json_integer(*(const int64_t *)member) : NULL;
    case API_QUANTITY: {
        char text[QUANTITY_TEXT_MAX];
        struct quantity q = quantity_from_int(*(const int64_t *)member, QUANTITY_BINARY_SI);
        return *(const int64_t *)member ? json_string(quantity_format(&q, text)) : NULL;
    }
    case API_OBJECT:
        if (field->fields) {
            json_t *object = api_encode(field->fields, member);
            if (json_object_size(object))
                return object;
            json_decref(object);
            return NULL;
        }
        /* fall through */
    default:
        return json_incref(*(json_t *const *)member);
    }
}

json_t *api_encode(const struct api_field *fields, const void *value)
{
    json_t *object = json_object();
    for (const struct api_field *f = fields; f->name; f++) {
        if (!f->at)
            continue;
        const void *member = (const char *)value + f->at - 1;
        json_t *it = NULL;
        if (f->shape == API_LIST && f->item_size)
            it = encode_list(f, member);
        else if (f->shape == API_ONE)
            it = encode_value(f, member);
        else
            it = json_incref(*(json_t *const *)member);
        if (it)
            json_object_set_new(object, f->name, it);
    }
    return object;
}

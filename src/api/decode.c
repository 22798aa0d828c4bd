#include "api/decode.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"

/* 0 for what is none. */
static int64_t parse_quantity(const char *text)
{
    struct quantity q = {0};
    return text && quantity_parse(text, &q, NULL) == 0 ? quantity_to_int(&q) : 0;
}

int64_t api_quantity_int(const json_t *quantity)
{
    return json_is_integer(quantity) ? json_integer_value(quantity)
                                     : parse_quantity(json_string_value(quantity));
}

/* The value of a field, under its name or an alias; NULL. */
static const json_t *find_value(const struct api_field *field, const json_t *object)
{
    const json_t *value = json_object_get(object, field->name);
    for (const char *const *alias = field->aliases; !value && alias && *alias; alias++)
        value = json_object_get(object, *alias);
    return value;
}

/* What absence means, as plain text; NULL: nothing, or zero. A default of a text is one of its words. */
static const char *absent_text(const struct api_field *field)
{
    if (field->absent || !field->def || field->def[0] != '"')
        return field->absent ? field->absent : field->def;
    for (const char *const *word = field->words; word && *word; word++) {
        size_t n = strlen(*word);
        if (strlen(field->def) == n + 2 && !strncmp(field->def + 1, *word, n))
            return *word;
    }
    return NULL;
}

static const char *decode_text(const struct api_field *field, const json_t *value)
{
    const char *text = json_is_string(value) ? json_string_value(value) : absent_text(field);
    return text ? text : "";
}

static bool decode_bool(const struct api_field *field, const json_t *value)
{
    const char *absent = absent_text(field);
    return json_is_boolean(value) ? json_is_true(value) : absent && str_eq(absent, "true");
}

/* Of an integer or a quantity. */
static int64_t decode_int(const struct api_field *field, const json_t *value)
{
    const char *absent = absent_text(field);
    if (json_is_integer(value))
        return json_integer_value(value);
    if (field->type == API_INT)
        return absent ? strtoll(absent, NULL, 10) : 0;
    return parse_quantity(json_is_string(value) ? json_string_value(value) : absent);
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
            ((const char **)items->p)[i] = decode_text(field, element);
        else
            api_decode(field->fields, element, (char *)items->p + i * field->item_size, arena);
    }
}

static void decode_value(const struct api_field *field, const json_t *value, void *member,
                         struct arena *arena)
{
    if (field->as == API_AS_AMOUNT) {
        *(struct api_amount *)member = (struct api_amount){
            json_is_integer(value) ? "" : decode_text(field, value), decode_int(field, value)};
        return;
    }
    switch (field->type) {
    case API_STRING:
    case API_BOOL_OR_STRING:
    case API_TIME:
        *(const char **)member = decode_text(field, value);
        break;
    case API_BOOL:
        *(bool *)member = decode_bool(field, value);
        break;
    case API_INT:
    case API_QUANTITY:
        *(int64_t *)member = decode_int(field, value);
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
        else if (f->shape == API_ONE && f->as != API_AS_JSON)
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

static json_t *encode_quantity(int64_t n)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int(n, QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

/* NULL: it is what absence means. */
static json_t *encode_value(const struct api_field *field, const void *member)
{
    if (field->as == API_AS_AMOUNT) {
        const struct api_amount *amount = member;
        if (amount->n == decode_int(field, NULL))
            return NULL;
        return amount->text && *amount->text ? json_string(amount->text)
                                             : encode_quantity(amount->n);
    }
    switch (field->type) {
    case API_STRING:
    case API_BOOL_OR_STRING:
    case API_TIME: {
        const char *text = *(const char *const *)member;
        return text && !str_eq(text, decode_text(field, NULL)) ? json_string(text) : NULL;
    }
    case API_BOOL:
        return *(const bool *)member != decode_bool(field, NULL)
                   ? json_boolean(*(const bool *)member)
                   : NULL;
    case API_INT:
    case API_QUANTITY: {
        int64_t n = *(const int64_t *)member;
        if (n == decode_int(field, NULL))
            return NULL;
        return field->type == API_INT ? json_integer(n) : encode_quantity(n);
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
        else if (f->shape == API_ONE && f->as != API_AS_JSON)
            it = encode_value(f, member);
        else
            it = json_incref(*(json_t *const *)member);
        if (it)
            json_object_set_new(object, f->name, it);
    }
    return object;
}

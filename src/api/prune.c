#include "api/prune.h"

#include "api/message.h"

/* The members of an object; see structure.c. */
struct members {
    const struct api_field *fields;
    const struct api_message_field *message;
    bool keep;
};

static void prune_object(const struct members *m, json_t *object);

/* The value of a field that has members of its own: an object, or a list or map of them. */
static void prune_values(const struct members *m, enum api_shape shape, json_t *value)
{
    size_t i;
    const char *key;
    json_t *one;
    if (shape == API_LIST) {
        json_array_foreach(value, i, one)
            prune_object(m, one);
    } else if (shape == API_MAP) {
        json_object_foreach(value, key, one)
            prune_object(m, one);
    } else {
        prune_object(m, value);
    }
}

static void prune_object(const struct members *m, json_t *object)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        const struct api_field *field = api_field_find(m->fields, key);
        const struct api_message_field *member = api_message_member(m->message, key);
        if (!field && !member ? m->message || !m->keep : !field && json_is_null(value)) {
            json_object_del(object, key);
            continue;
        }
        struct members inside = {0};
        if (field) {
            inside.fields = field->fields;
            inside.keep = field->flags & API_KEEP;
        }
        if (member)
            inside.message = member->fields;
        if (inside.fields || inside.message)
            prune_values(&inside, field ? field->shape : api_message_as_field(member).shape, value);
    }
}

void api_prune(const struct api_kind *kind, json_t *object)
{
    const struct members m = {.fields = api_kind_structure(kind),
                              .message = api_kind_message(kind),
                              .keep = kind->schema};
    prune_object(&m, object);
}

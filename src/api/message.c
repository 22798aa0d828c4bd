#include "api/message.h"

const struct api_message_field *api_kind_message(const struct api_kind *kind)
{
    char version[128];
    return kind->flags & API_BUILTIN
               ? api_message_find(api_version_text(api_kind_canonical(kind), version), kind->kind)
               : NULL;
}

const struct api_message_field *api_message_member(const struct api_message_field *message,
                                                   const char *name)
{
    for (const struct api_message_field *m = message; m && m->number; m++) {
        const struct api_message_field *found = NULL;
        if (m->kind == API_MESSAGE_INLINE)
            found = api_message_member(m->fields, name);
        else if (str_eq(m->name, name))
            found = m;
        if (found)
            return found;
    }
    return NULL;
}

struct api_field api_message_as_field(const struct api_message_field *member)
{
    static const struct {
        enum api_type type;
        enum api_shape shape;
    } as[] = {
        [API_MESSAGE_STRING] = {API_STRING, API_ONE},
        [API_MESSAGE_BOOL] = {API_BOOL, API_ONE},
        [API_MESSAGE_INT] = {API_INT, API_ONE},
        [API_MESSAGE_BYTES] = {API_STRING, API_ONE},
        [API_MESSAGE_MESSAGE] = {API_OBJECT, API_ONE},
        [API_MESSAGE_TIME] = {API_TIME, API_ONE},
        [API_MESSAGE_MICRO_TIME] = {API_TIME, API_ONE},
        [API_MESSAGE_QUANTITY] = {API_QUANTITY, API_ONE},
        [API_MESSAGE_INT_OR_STRING] = {API_INT_OR_STRING, API_ONE},
        [API_MESSAGE_JSON] = {API_ANY, API_ONE},
        [API_MESSAGE_INLINE] = {API_ANY, API_ONE},
        [API_MESSAGE_MAP] = {API_STRING, API_MAP},
        [API_MESSAGE_BYTES_MAP] = {API_STRING, API_MAP},
        [API_MESSAGE_QUANTITIES] = {API_QUANTITY, API_MAP},
        [API_MESSAGE_LISTS] = {API_ANY, API_MAP},
    };
    return (struct api_field){.name = member->name,
                              .type = as[member->kind].type,
                              .shape = member->repeated ? API_LIST : as[member->kind].shape};
}

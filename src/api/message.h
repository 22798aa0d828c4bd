/*
 * The messages of Kubernetes' own kinds: every field that they have, with its type and its number in
 * protobuf.
 *
 * The tables of kinds (api/field.h) say what is known here of a field: its rules, its defaults, what
 * it is for. They leave out what nothing here makes use of. A message leaves out nothing, so that
 * together they tell a field that a kind does not have from one that only has no rules. Of a kind
 * without a message the table names all.
 *
 *     table      rules, defaults, merge keys, words for people     some of the fields
 *     message    type, number                                      all of them
 *
 * Tables do not recur; they are static and constant.
 */
#pragma once

#include "api/kind.h"

enum api_message_type {
    API_MESSAGE_STRING,
    API_MESSAGE_BOOL,
    API_MESSAGE_INT,
    API_MESSAGE_BYTES,      /* in JSON base64 */
    API_MESSAGE_MESSAGE,    /* .fields */
    API_MESSAGE_TIME,       /* {seconds, nanos}; in JSON to the second */
    API_MESSAGE_MICRO_TIME, /* in JSON to the microsecond */
    API_MESSAGE_QUANTITY,   /* {string} */
    /* {type, intVal, strVal}; type 1 is a string */
    API_MESSAGE_INT_OR_STRING,
    API_MESSAGE_JSON,       /* {raw}: the text of a JSON value */
    API_MESSAGE_INLINE,     /* .fields, which in JSON are members of the object around */
    API_MESSAGE_MAP,        /* of strings */
    API_MESSAGE_BYTES_MAP,  /* of bytes; in JSON base64 */
    API_MESSAGE_QUANTITIES, /* a map of quantities */
    API_MESSAGE_LISTS,      /* a map of lists of strings: {items} */
};

struct api_message_field {
    const char *name;
    unsigned number; /* 0 ends a table */
    enum api_message_type kind;
    const struct api_message_field *fields;
    bool repeated;
    bool keep; /* false, 0 and "" say something */
};

/* The message of a kind; NULL when there is none. */
const struct api_message_field *api_message_find(const char *api_version, const char *kind);
const struct api_message_field *api_kind_message(const struct api_kind *kind);

/* The member that JSON knows by that name, also of what is inline; NULL, also of no message. */
const struct api_message_field *api_message_member(const struct api_message_field *message,
                                                   const char *name);
/* What a table would say of the member: its name, type and shape. Its members are not in it. */
struct api_field api_message_as_field(const struct api_message_field *member);

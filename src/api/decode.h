/*
 * Objects as C structs.
 *
 * A row of a field table may name the member of a struct that holds the field's value:
 *
 *     {"nodeName", API_STRING, API_TEXT(struct lv_spec, node_name), .doc = "..."},
 *
 * The macro checks at compile time that the member has the C type of that kind of field, so a
 * misspelled or mistyped member does not build. api_decode() fills the struct from JSON by the
 * table, and api_encode() writes it back. What lies behind the border reads members, not strings.
 *
 *     field                     member                        absent
 *     string, time, word        const char *                  "", never NULL
 *     boolean                   bool                          false
 *     integer                   int64_t                       0
 *     quantity                  int64_t, rounded up           0
 *     quantity                  struct api_amount             "" and 0
 *     object                    a struct, or none of its own  all its members absent
 *     list of objects           API_ITEMS(struct x)           empty
 *     list of strings           API_ITEMS(const char *)       empty
 *     a map, or anything        const json_t *                NULL
 *
 * Where the table says what absence means, the member has that: the default (.def), or, where the
 * field is not written into objects, .absent. So a boolean may be true without being there:
 *
 *     {"autoScaling", API_BOOL, API_TRUTH(struct policy, rehomes), .absent = "true", .doc = "..."},
 *
 * Texts and JSON values are borrowed: they live as long as the object that was decoded. Lists are in
 * the arena. A field is found under its name or one of its aliases, so that objects in the published
 * form decode to the same struct. A value of the wrong type counts as absent: the server has checked
 * types before, and a file on the way here decides nothing.
 */
#pragma once

#include "api/field.h"
#include "base/arena.h"

#define API_ITEMS(type)                                                                            \
    struct {                                                                                       \
        type *p;                                                                                   \
        size_t len;                                                                                \
    }

/* A quantity as it is written, and in units, rounded up. A bare number has no text. */
struct api_amount {
    const char *text;
    int64_t n;
};

/*
 * Fills *ret by the table. `arena` may be NULL for those who read no list; a loop over one that is not
 * empty would fault then, and not pass for one over nothing.
 */
void api_decode(const struct api_field *fields, const json_t *object, void *ret,
                struct arena *arena);
/* The members that are not what absence means, as a new object. */
json_t *api_encode(const struct api_field *fields, const void *value);
/* A quantity, as text or number, in units, rounded up; 0 for what is none. */
int64_t api_quantity_int(const json_t *quantity);

/* For rows: offset and check. */
#define API_MEMBER_IS(type, member, as)                                                            \
    (offsetof(type, member) + 1 +                                                                  \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->member), as) ? 1 : -1]))
#define API_TEXT(type, member)      .at = API_MEMBER_IS(type, member, const char *)
#define API_TRUTH(type, member)     .at = API_MEMBER_IS(type, member, bool)
#define API_NUMBER_AT(type, member) .at = API_MEMBER_IS(type, member, int64_t)
#define API_JSON(type, member)      .at = API_MEMBER_IS(type, member, const json_t *), .as = API_AS_JSON
#define API_AMOUNT(type, member)                                                                   \
    .at = API_MEMBER_IS(type, member, struct api_amount), .as = API_AS_AMOUNT
#define API_STRUCT(type, member) .at = offsetof(type, member) + 1
/* The members of an object that are members of the struct around it, too. */
#define API_INLINE               .at = 1
#define API_ARRAY(type, member)                                                                    \
    .at = offsetof(type, member) + 1, .item_size = sizeof(*((type *)0)->member.p)

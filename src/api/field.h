/*
 * Kinds as tables.
 *
 * A kind is one table of fields. From that table, and nothing else, come its normal form (aliases
 * and old words), its defaults, its validation with field paths, its OpenAPI schema and CRD, its
 * strategic merge rules, its printer columns, `orlop explain` and the reference pages. What a table
 * cannot say (two fields that must agree, an update that may only grow) is a C function named in
 * it; the function runs only on objects whose structure the table has already accepted, so it need
 * not check types again.
 *
 * Tables are static and constant; they own nothing and need no clean-up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/json.h"

enum api_type {
    API_OBJECT, /* its members are in .fields; without .fields anything goes (needs API_KEEP) */
    API_STRING,
    API_BOOL,
    API_INT,
    API_NUMBER,
    API_QUANTITY,       /* "10Gi" or a bare number */
    API_INT_OR_STRING,  /* 80 or "http" */
    API_BOOL_OR_STRING, /* a word that YAML 1.1 may have read as a boolean: off */
    API_TIME,           /* RFC 3339 */
    API_ANY,            /* any value at all, kept as it is */
};

enum api_shape {
    API_ONE,
    API_LIST,
    API_MAP /* string keys, values of .type */
};

enum api_flag {
    API_REQUIRED = 1 << 0,      /* must be there; a string, list or map must not be empty either */
    API_IMMUTABLE = 1 << 1,     /* once set, neither changes nor goes away */
    API_KEEP = 1 << 2,          /* members that the table does not name are kept, not refused */
    API_SET = 1 << 3,           /* a list whose elements are scalars without repetition */
    API_POSITIVE = 1 << 4,      /* a quantity that must be more than zero */
    API_GROW_ONLY = 1 << 5,     /* a quantity that an update may raise but not lower */
    API_FOLDED = 1 << 6,        /* only in the published form: the normal form says it elsewhere */
    API_RETAIN_KEYS = 1 << 7,   /* strategic merge honours $retainKeys on it */
    API_EMBEDDED = 1 << 8,      /* an ObjectMeta inside a spec (a template's) */
    API_REPLACE = 1 << 9,       /* an object that strategic merge replaces whole */
    API_ATOMIC = 1 << 10,       /* server-side apply has the whole for one field, with one owner */
    API_ATOMIC_ITEMS = 1 << 11, /* the same of each element of a list or map */
};

/* How a struct of the kind has a field (api/decode.h). */
enum api_member {
    API_AS_TYPE,   /* by the field's type */
    API_AS_JSON,   /* const json_t *, whatever the type */
    API_AS_AMOUNT, /* struct api_amount, of a quantity */
};

/* A rule for the text of a string. */
struct api_format {
    const char *name;
    const char *pattern; /* the same rule for OpenAPI, as far as a regular expression goes */
    size_t max;          /* longest text allowed, 0: no limit */
    /* NULL when the text is fine, else what is wrong with it, as the end of a sentence. */
    const char *(*check)(const char *text);
};

/* A word that is accepted in place of another. */
struct api_synonym {
    const char *from, *to;
};

struct api_field {
    const char *name;
    enum api_type type;
    enum api_shape shape;
    unsigned flags;
    enum api_member as;
    const struct api_field *fields;     /* members; ends with a field without a name */
    const char *const *words;           /* the strings allowed; ends with NULL */
    const struct api_synonym *synonyms; /* ends with {NULL} */
    const char *const *aliases;         /* other names of this field; ends with NULL */
    const char *def;                    /* default, as JSON; written into objects */
    /*
     * What absence means where nothing is written into objects, as plain text: "true", "4096",
     * "CHAP". For api/decode.h alone.
     */
    const char *absent;
    int64_t min, max;                /* for API_INT, when min < max */
    const struct api_format *format; /* of the string, or of a map's values */
    const struct api_format *keys;   /* of a map's keys */
    const char *merge_key;           /* elements of a list are told apart by this member */
    /*
     * For server-side apply, where merge_key alone is not enough: all members that tell elements
     * apart, the merge key among them; ends with NULL. One that may be absent needs a default.
     */
    const char *const *map_keys;
    /* Where a struct of the kind has it, plus one (api/decode.h); 0: nowhere. */
    size_t at, item_size; /* item_size: of an element, for lists */
    const char *doc;
};

#define API_WORDS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define API_ALIASES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define API_KEYS(...)    ((const char *const[]){__VA_ARGS__, NULL})

/* The field of that name, aliases not considered; NULL. */
const struct api_field *api_field_find(const struct api_field *fields, const char *name);
/* The field that has that name as an alias; NULL. */
const struct api_field *api_field_by_alias(const struct api_field *fields, const char *name);
/*
 * Whether a cluster has the list for a map, in which no key is there twice: each element must have
 * the keys, under one name each.
 */
bool api_field_is_list_map(const struct api_field *field);
/* Its type as kubectl explain writes it: "[]Object", "map[string]string", "Quantity". */
const char *api_field_type_text(const struct api_field *field, char buf[64]);

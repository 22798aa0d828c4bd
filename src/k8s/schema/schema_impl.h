/*
 * What the files about schemas share: the compiled form.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/pattern.h"
#include "k8s/cel/cel.h"
#include "k8s/schema/schema.h"

enum schema_type {
    SCHEMA_ANY, /* none given */
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_NUMBER,
    SCHEMA_INTEGER,
    SCHEMA_BOOLEAN,
};

enum schema_flag {
    SCHEMA_NULLABLE = 1 << 0,
    SCHEMA_PRESERVE = 1 << 1, /* x-kubernetes-preserve-unknown-fields */
    SCHEMA_EMBEDDED = 1 << 2, /* x-kubernetes-embedded-resource, or the root itself */
    SCHEMA_INT_OR_STRING = 1 << 3,
    SCHEMA_ATOMIC = 1 << 4,      /* x-kubernetes-map-type: atomic */
    SCHEMA_ANY_MEMBER = 1 << 5,  /* additionalProperties: true */
    SCHEMA_HAS_DEFAULT = 1 << 6, /* here or below */
    SCHEMA_HAS_MERGE = 1 << 7,   /* something about merging, here or below */
    SCHEMA_HAS_CEL = 1 << 8,     /* here or below */
    SCHEMA_EXCLUSIVE_MIN = 1 << 9,
    SCHEMA_EXCLUSIVE_MAX = 1 << 10,
    SCHEMA_ROOT = 1 << 11,
};

enum schema_list { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

struct schema_member {
    const char *name;
    struct api_schema *schema;
};

struct schema_parts {
    struct api_schema **p;
    size_t n;
};

/* Bounds of counts; the upper ones are -1 where there is none. */
struct schema_counts {
    json_int_t min_length, max_length, min_items, max_items, min_properties, max_properties;
};

struct schema_format;

/* The rules for values; most nodes have none. */
struct schema_rules {
    struct schema_counts counts;
    const json_t *minimum, *maximum, *multiple_of, *words;
    const struct pattern *pattern;
    const char *pattern_text;
    const struct schema_format *format;
    struct schema_parts all_of, any_of, one_of;
    struct api_schema * not ;
};

struct api_schema {
    enum schema_type type;
    enum schema_list list;
    unsigned flags;
    struct schema_member *members; /* sorted by name */
    size_t n_members;
    struct api_schema *items;    /* of an array */
    struct api_schema *values;   /* additionalProperties */
    const char *const *required; /* ends with NULL; NULL: none */
    const char *const *keys;     /* of a list that is a map */
    const json_t *def;
    struct schema_rules *rules; /* NULL: none */
    struct schema_cel *cel;     /* rules in CEL (schema_cel.h); NULL: none */
    /* While it is compiled: those rules as JSON, and its type in them. */
    const json_t *validations;
    const struct cel_decl *decl;
};

struct api_schema_set {
    struct arena arena;
    json_t *values;      /* an array that owns defaults, enumerations and bounds */
    struct map patterns; /* by their text */
    VEC(struct cel_program *) programs;
    size_t nodes;
};

/* schema.c */
struct api_schema *schema_member(const struct api_schema *s, const char *name);
extern const char *const schema_type_names[]; /* by enum schema_type; "" for any */
struct schema_rules *schema_rules_of(struct api_schema_set *set, struct api_schema *s);

/* schema_rules.c: the keywords that are about values; false when the word is none of them. */
bool schema_compile_rule(struct api_schema_set *set, struct api_schema *s, const char *key,
                         const json_t *value, const struct api_path *at, struct api_report *report);

/* schema_compile.c: problems with a keyword of the wrong type; true when it has the right one. */
bool schema_want(struct api_report *report, const json_t *value, const struct api_path *at,
                 json_type type);

/*
 * schema_structural.c: the rules of a node whose keywords are read; `where` ends the sentence about
 * a missing type. The defaults are checked when the whole schema is there.
 */
void schema_check_structure(const struct api_schema *s, const json_t *json,
                            const struct api_path *at, const char *where,
                            struct api_report *report);
void schema_check_defaults(const struct api_schema *s, const struct api_path *at,
                           struct api_report *report);

/*
 * schema_cel.c: the rules in CEL of a schema that is structural, at that path. schema_cel_eval.c:
 * evaluates them, unless there are problems since that one that are in the way.
 */
void schema_compile_cel(struct api_schema_set *set, struct api_schema *s, const struct api_path *at,
                        struct api_report *report);
void schema_check_cel(const struct api_schema *s, const json_t *object, const json_t *old,
                      size_t first_problem, struct api_report *report);

/* schema_format.c */
const struct schema_format *
schema_format_find(const char *name); /* NULL: one that is not checked */
bool schema_format_check(const struct schema_format *f, const json_t *value);
const char *schema_format_name(const struct schema_format *f);

/* schema_prune.c: the walks below the root. */
/* False: there would be too many. */
bool schema_default(const struct api_schema *s, json_t *value);
void schema_prune(const struct api_schema *s, json_t *value, enum api_unknown unknown,
                  const struct api_path *at, struct api_report *report);

/* schema_validate.c */
struct schema_walk {
    struct api_report *report; /* NULL: only count */
    unsigned errors;
    size_t steps;  /* nodes that were looked at */
    int64_t since; /* when the first pattern was tried; 0: none yet */
    bool given_up; /* it is too much work */
};
void schema_validate(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                     const json_t *old, const struct api_path *at);
/* By what an element of a list that is a map or a set is known, as text; and all of them by it. */
void schema_identify(const struct api_schema *s, const json_t *element, struct str *out);
void schema_index_list(const struct api_schema *s, const json_t *list, struct map *by_id);
/* A problem with the words "PATH in body ..." that Kubernetes has for it. */
void schema_problem(struct schema_walk *w, const struct api_path *at, enum api_cause cause,
                    const json_t *value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Counts one; true when it is to be reported too. */
bool schema_reports(struct schema_walk *w);
/* schema_value.c: the rules of a value that has the right type. */
void schema_check_rules(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                        const struct api_path *at);

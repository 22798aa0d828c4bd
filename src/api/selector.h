/*
 * Selectors: which objects are meant.
 *
 * Label selectors are read exactly as Kubernetes reads them, from the text that people type and
 * from the LabelSelector that manifests carry:
 *
 *     a=b  a==b  a!=b  a in (b,c)  a notin (b,c)  a  !a  a>1  a<1       joined by ","
 *
 * A selector is a list of requirements sorted by key, all of which must hold; without any it
 * matches everything. The LabelSelector that is not there at all matches nothing.
 *
 * Field selectors compare fields of an object, named by a dotted path, with a text: only =, == and
 * != exist, and in a value the characters \ , = are written \\ \, \=.
 *
 * Selectors own their texts; zero-initialised is empty and matches everything.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "json/json.h"

enum {
    API_SELECTOR_MAX_BYTES = 64 * 1024, /* of the text */
    API_SELECTOR_MAX_TERMS = 1000,
    API_SELECTOR_MAX_VALUES = 10000, /* of all requirements together */
};

enum api_selector_op {
    API_SELECT_EQUAL,
    API_SELECT_DOUBLE_EQUAL, /* means the same and is written back as it was */
    API_SELECT_NOT_EQUAL,
    API_SELECT_IN,
    API_SELECT_NOT_IN,
    API_SELECT_EXISTS,
    API_SELECT_NOT_EXISTS,
    API_SELECT_GREATER,
    API_SELECT_LESS,
};

struct api_requirement {
    const char *key;
    enum api_selector_op op;
    const char **values; /* sorted */
    size_t nvalues;
};

struct api_selector {
    VEC(struct api_requirement) requirements; /* sorted by key */
    bool nothing;                             /* matches no object at all */
    size_t total_values;
    struct arena arena;
};

void api_selector_done(struct api_selector *s);
/*
 * Text to selector. On failure *ret_s is empty and the message says which character of the text is
 * wrong and what is expected there.
 */
int api_selector_parse(const char *text, struct api_selector *ret_s, struct err *e);
/* {matchLabels, matchExpressions} to selector; NULL makes the selector that matches nothing. */
int api_selector_from_json(const json_t *selector, struct api_selector *ret_s, struct err *e);
/* `labels` is metadata.labels; NULL is no labels. */
bool api_selector_matches(const struct api_selector *s, const json_t *labels);
/* The canonical text, appended: requirements sorted by key, values sorted. */
void api_selector_format(const struct api_selector *s, struct str *out);

struct api_field_term {
    const char *path, *value;
    bool differs; /* != */
};

struct api_field_selector {
    VEC(struct api_field_term) terms; /* sorted */
    struct arena arena;
};

void api_field_selector_done(struct api_field_selector *s);
int api_field_selector_parse(const char *text, struct api_field_selector *ret_s, struct err *e);
/*
 * A field that is missing, or is an object or list, counts as ""; numbers and booleans are compared
 * as they are written in JSON.
 */
bool api_field_selector_matches(const struct api_field_selector *s, const json_t *object);
void api_field_selector_format(const struct api_field_selector *s, struct str *out);
/* The value that the path must have, when the selector says so: a list by name is a get. NULL. */
const char *api_field_selector_exact(const struct api_field_selector *s, const char *path);

/*
 * Adds a requirement: what the parsers are made of. Texts are copied; key and values are checked,
 * values sorted.
 */
int api_selector_add(struct api_selector *s, const char *key, enum api_selector_op op,
                     const char **values, size_t nvalues, struct err *e);

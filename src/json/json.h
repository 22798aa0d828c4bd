/*
 * JSON values. The values are jansson's `json_t` (immutable once shared, atomically reference
 * counted, objects keep insertion order); this header is the only way to them, so that limits and
 * strictness are the same everywhere.
 *
 * Ownership: a `json_t *` that a function returns is a new reference unless the comment says
 * "borrowed". `json_auto_t` drops one at the end of a scope.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

enum {
    JSON_MAX_DEPTH = 256,             /* deeper is refused, in JSON and in YAML */
    JSON_MAX_NODES = 1000000,         /* of one document, aliases expanded */
    JSON_MAX_BYTES = 16 * 1024 * 1024 /* of one document's text */
};

struct json_pos {
    unsigned line, column; /* from 1; a column counts characters */
};

/*
 * Strict JSON: one value, UTF-8, no duplicate keys, no trailing text, within the limits above.
 * On failure the message starts with "line L, column C: " and *ret_pos, if given, says the same.
 */
json_t *json_parse(const char *text, size_t len, struct json_pos *ret_pos, struct err *e);
/*
 * The same, but of members that an object has twice the last counts, and fn is called for each that
 * takes the place of another: "spec.list[0].name".
 */
json_t *json_parse_last(const char *text, size_t len, void (*fn)(void *context, const char *path),
                        void *context, struct err *e);

/* Compact text, appended. */
void json_format(const json_t *value, struct str *out);
/* A string, which may hold anything: what is no UTF-8 becomes "?". */
void json_format_string(const char *text, size_t len, struct str *out);
/* Indented by two spaces, appended, ends without a newline. */
void json_format_pretty(const json_t *value, struct str *out);

/* Walks object keys: json_at(o, "spec", "pools") is o.spec.pools; NULL when a step is missing. */
const json_t *json_walk(const json_t *value, const char *const *keys);
#define json_at(value, ...) json_walk(value, (const char *const[]){__VA_ARGS__, NULL})
/* The string at that key; NULL when missing or not a string. Borrowed. */
const char *json_str(const json_t *object, const char *key);
/* The string at a path of keys; "" when it is missing or not a string. Borrowed. */
const char *json_text_or_empty(const json_t *value);
#define json_text(value, ...) json_text_or_empty(json_at(value, __VA_ARGS__))
/* The first object of an array that has that text at that key; NULL. Borrowed. */
json_t *json_find(const json_t *array, const char *key, const char *text);
/*
 * The object, or the array, that is a member; made when there is none. What is of another type stays,
 * for whoever checks that. Borrowed.
 */
json_t *json_object_at(json_t *object, const char *key);
json_t *json_array_at(json_t *object, const char *key);

/* "object", "array", "string", "integer", "number", "boolean", "null" */
const char *json_type_name(const json_t *value);
/* Whether a number that was written as a real, 3.0 or 1e3, is whole and fits; *ret_whole is it. */
bool json_real_is_whole(double real, json_int_t *ret_whole);
/* The longest chain of containers in value, to check what was built in memory. */
unsigned json_depth(const json_t *value);

/*
 * Messages quote the source, which may hold anything. Makes what a terminal would act on and what
 * is not UTF-8 (a message goes into JSON) into "?".
 */
void json_clean_message(struct err *e);

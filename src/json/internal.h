/*
 * What the files of this module share and nobody else includes.
 */
#pragma once

#include "base/arena.h"
#include "json/json.h"

static inline bool json_is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* json.c */

/* Line and column of a byte of text; an offset past the end is the end. */
struct json_pos json_pos_at(const char *text, size_t len, size_t offset);
/* A position in text that itself starts at base. */
struct json_pos json_pos_add(struct json_pos base, struct json_pos pos);
/*
 * Parses exactly text. On failure *ret_offset is the byte at which the mistake starts, and the
 * message has no position.
 */
json_t *json_parse_at(const char *text, size_t len, size_t *ret_offset, struct err *e);

/*
 * A walk over JSON text that knows brackets and strings and checks nothing else: it finds where a
 * value ends and keeps the parser away from what is too deep or too large. It can go on where it
 * stopped once there is more text. Starts zeroed.
 */
struct json_scan {
    size_t at; /* bytes seen */
    size_t nodes;
    size_t deep_at; /* with too_deep: the bracket that was one too many */
    unsigned depth;
    bool in_string, escaped, too_deep;
};
/* True when the bracket that opened first has closed; at is the byte after it. */
bool json_scan(struct json_scan *s, const char *text, size_t len);

/* json_hint.c: says in *e what is wrong where jansson gave up; returns the byte it starts at. */
size_t json_hint(const char *text, size_t len, const json_error_t *error, struct err *e);

/* json_write.c */

enum { JSON_REAL_MAX = 32 };

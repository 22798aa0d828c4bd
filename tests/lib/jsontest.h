/*
 * JSON in tests: values from text that must be valid, and comparison that shows both.
 */
#pragma once

#include "base/mem.h"
#include "json/json.h"
#include "unit.h"

static inline json_t *parse_json(const char *text)
{
    struct err e = {0};
    json_t *value = json_parse(text, strlen(text), NULL, &e);
    if (!value)
        fail_msg("%s: %s", text, e.msg);
    return value;
}

/* The same with ' for ", which reads better in C. */
static inline json_t *parse_quoted(const char *text)
{
    _cleanup_free_ char *copy = mem_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return parse_json(copy);
}

static inline void assert_json(const json_t *got, const json_t *expected, const char *what)
{
    _cleanup_(str_done) struct str shown = {0}, wanted = {0};
    if (json_equal(got, expected))
        return;
    if (got)
        json_format(got, &shown);
    json_format(expected, &wanted);
    fail_msg("%s: %s instead of %s", what, str_get(&shown), str_get(&wanted));
}

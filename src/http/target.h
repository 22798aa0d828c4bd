/*
 * The target of a request, "/a/b%2Fc?x=1&y", taken apart and decoded. Everything lies in the arena.
 *
 * Splitting comes before decoding, so an encoded delimiter never delimits. Refused: bad percent
 * sequences, bytes that decode to NUL or to no UTF-8, a target that is neither "/...", "*" nor
 * "http(s)://host/...".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct http_param {
    const char *name, *value;
};

struct http_target {
    const char *path; /* as it was sent */
    const char **segments;
    size_t n_segments;
    struct http_param *params;
    size_t n_params;
};

int http_target_parse(struct arena *a, const char *text, struct http_target *ret_target,
                      struct err *e);
/* The first of that name, or NULL. */
const char *http_target_param(const struct http_target *t, const char *name);

/* A header's name or a method: letters, digits and a few signs. */
bool http_is_token(const char *s);
/* What must not be in a header's value: line ends and the like. */
bool http_has_control(const char *s);

/*
 * What an answer says beside its object: warnings, which clients show to people, and of a refusal
 * the words of whoever refused. The request's caller owns the notes; any part of the request adds.
 */
#pragma once

#include "base/vec.h"
#include "json/json.h"

enum {
    APISERVER_WARNINGS = 100,       /* how many */
    APISERVER_WARNING_BYTES = 4096, /* all together */
};

struct apiserver_notes {
    VEC(char *) warnings;
    size_t bytes;   /* of all warnings */
    json_t *status; /* a Status with a code of its own; NULL: the error decides */
};

void apiserver_notes_done(struct apiserver_notes *n);
/* What was said already, or is too much, is not said. NULL: nobody listens. */
void apiserver_notes_warn(struct apiserver_notes *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The value of a Warning header (RFC 7234, code 299), appended. */
void apiserver_notes_header(const char *warning, struct str *out);

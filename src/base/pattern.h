/*
 * Regular expressions of schemas and of rules. They are written for RE2, which knows neither lookaround nor
 * references back: what RE2 would refuse is refused here too, so that a definition that this server
 * takes is one that a cluster takes. Matching is bounded: a text that a pattern has too much trouble
 * with is an answer of its own.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

enum { PATTERN_MAX = 8 * 1024 }; /* bytes of a pattern */

struct pattern;

/* INVALID_ARGUMENT with what is wrong and where. */
struct pattern *pattern_new(const char *text, struct err *e);
void pattern_free(struct pattern *p);
DEFINE_CLEANUP(struct pattern *, pattern_free)

enum pattern_match {
    PATTERN_NO,
    PATTERN_YES,
    PATTERN_TOO_HARD, /* it would take more work than a check is worth */
};

/* Whether the pattern is found anywhere in the text, which is UTF-8. Any thread, at any time. */
enum pattern_match pattern_match(const struct pattern *p, const char *text, size_t size);
/* The first place from a byte on where it is found. */
enum pattern_match pattern_find(const struct pattern *p, const char *text, size_t size, size_t from,
                                size_t *ret_start, size_t *ret_end);

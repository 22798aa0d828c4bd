/*
 * Regular expressions of schemas. They are written for RE2, which knows neither lookaround nor
 * references back: what RE2 would refuse is refused here too, so that a definition that this server
 * takes is one that a cluster takes. Matching is bounded: a text that a pattern has too much trouble
 * with is an answer of its own.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

enum { API_PATTERN_MAX = 8 * 1024 }; /* bytes of a pattern */

struct api_pattern;

/* INVALID_ARGUMENT with what is wrong and where. */
struct api_pattern *api_pattern_new(const char *text, struct err *e);
void api_pattern_free(struct api_pattern *p);
DEFINE_CLEANUP(struct api_pattern *, api_pattern_free)

enum api_match {
    API_MATCH_NO,
    API_MATCH_YES,
    API_MATCH_TOO_HARD, /* it would take more work than a check is worth */
};

/* Whether the pattern is found anywhere in the text, which is UTF-8. Any thread, at any time. */
enum api_match api_pattern_match(const struct api_pattern *p, const char *text, size_t size);

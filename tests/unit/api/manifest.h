/*
 * What tests of the API share: objects written as JSON with single quotes, and admission of them.
 */
#pragma once

#include "api/admit.h"
#include "jsontest.h"

/* The object as it would be stored, or NULL with problems in the report. */
static inline json_t *admit_update(const char *old, const char *text, struct api_report *report)
{
    json_auto_t *before = old ? parse_quoted(old) : NULL;
    json_auto_t *object = parse_quoted(text);
    const struct api_kind *kind = api_kind_of(object, report);
    bool admitted = kind && api_admit(kind, object, before, API_UNKNOWN_ERROR, report);
    return admitted ? json_incref(object) : NULL;
}

static inline json_t *admit(const char *text, struct api_report *report)
{
    return admit_update(NULL, text, report);
}

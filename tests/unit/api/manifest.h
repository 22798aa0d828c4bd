/*
 * What tests of the API share: objects written as JSON with single quotes, and admission of them.
 */
#pragma once

#include "api/admit.h"
#include "base/mem.h"
#include "unit.h"

static inline json_t *parse_json(const char *text)
{
    struct err e = {0};
    _cleanup_free_ char *copy = mem_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *value = json_parse(copy, strlen(copy), NULL, &e);
    if (!value)
        fail_msg("%s: %s", text, e.msg);
    return value;
}

/* The object as it would be stored, or NULL with problems in the report. */
static inline json_t *admit_update(const char *old, const char *text, struct api_report *report)
{
    json_auto_t *before = old ? parse_json(old) : NULL;
    json_auto_t *object = parse_json(text);
    const struct api_kind *kind = api_kind_of(object, report);
    bool admitted = kind && api_admit(kind, object, before, API_UNKNOWN_ERROR, report);
    return admitted ? json_incref(object) : NULL;
}

static inline json_t *admit(const char *text, struct api_report *report)
{
    return admit_update(NULL, text, report);
}

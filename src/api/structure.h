/*
 * Does an object have the structure its table describes: types, required and unknown members,
 * words, ranges, formats. Every deviation is reported, not only the first.
 */
#pragma once

#include "api/kind.h"

/* What to do about members that the table does not name. */
enum api_unknown {
    API_UNKNOWN_ERROR,
    API_UNKNOWN_WARN,
    API_UNKNOWN_IGNORE,
};

void api_check_structure(const struct api_kind *kind, const json_t *object,
                         enum api_unknown unknown, struct api_report *report);

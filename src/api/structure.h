/*
 * Does an object have the structure its table describes: types, required and unknown members,
 * words, ranges, formats. Every deviation is reported, not only the first.
 */
#pragma once

#include "api/kind.h"

void api_check_structure(const struct api_kind *kind, const json_t *object,
                         enum api_unknown unknown, struct api_report *report);

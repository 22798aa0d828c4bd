/*
 * The update rules that tables can say: API_IMMUTABLE and API_GROW_ONLY. Elements of lists are
 * compared with the old element of the same merge key; lists without one are not looked into.
 */
#pragma once

#include "api/kind.h"

void api_check_update(const struct api_kind *kind, const json_t *old, const json_t *object,
                      struct api_report *report);
/* Quantities as the API writes them, strings or bare numbers; both must have been validated. */
int api_quantity_cmp(const json_t *a, const json_t *b);

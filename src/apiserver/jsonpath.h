/*
 * The JSONPath of printer columns: members and elements, nothing that could find more than one.
 *
 *     .status.phase    .status.conditions[0].type    .metadata.labels.example\.test/name
 */
#pragma once

#include "json/json.h"

/* What the path leads to, borrowed; NULL when it is not there or the path is none of the above. */
const json_t *apiserver_jsonpath(const json_t *value, const char *path);

/*
 * The JSONPath of printer columns: members, elements, and the first element of which something
 * holds. A path that could find more finds the first.
 *
 *     .status.phase    .status.conditions[0].type    .metadata.labels.example\.test/name
 *     .status.conditions[?(@.type=="Ready")].status    .spec['a.b']    .spec.ports[*].name    [-1]
 */
#pragma once

#include "json/json.h"

/* What the path leads to, borrowed; NULL when it is not there or the path is none of the above. */
const json_t *apiserver_jsonpath(const json_t *value, const char *path);

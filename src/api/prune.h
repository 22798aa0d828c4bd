/*
 * Leaves of an object what its kind has, as a server does that reads objects into the types of its
 * language: what was not named by then is gone. Only of kinds whose members are all known; those that
 * users define have a schema for it.
 */
#pragma once

#include "api/kind.h"

/* Of an object whose structure was found right, but for members that the kind does not have. */
void api_prune(const struct api_kind *kind, json_t *object);

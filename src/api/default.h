/*
 * Defaults: fills in what the tables say of fields that are absent, in objects that are there. It
 * never creates an object just to hold defaults, unless that object's own default is {}.
 */
#pragma once

#include "api/kind.h"

/* False: the object would become too large by them, and some are missing. */
bool api_default(const struct api_kind *kind, json_t *object);

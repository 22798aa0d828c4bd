/*
 * The normal form of an object: every field under its own name, every word in its own spelling,
 * null the same as absent. Two manifests that mean the same have the same normal form, whichever peer's documents they
 * follow; the rest of the system reads only that.
 *
 * Works on objects nobody has checked yet: what has an unexpected type is left for the validation
 * that follows. Moves are recorded in the report, so that problems are shown where they were
 * written.
 */
#pragma once

#include "api/kind.h"

void api_normalize(const struct api_kind *kind, json_t *object, struct api_report *report);

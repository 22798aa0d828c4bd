/*
 * Strategic merge over the kinds' tables: which lists merge, by what, and what they hold.
 *
 * A node of the schema is the table of an object's members. Lists with a merge key merge by it,
 * lists that are sets are united, all others are replaced. What a table does not name, and what lies
 * below an object without a table, is unknown: there objects merge by key and lists are replaced.
 */
#pragma once

#include "api/kind.h"
#include "json/patch.h"

extern const struct json_smp_schema api_smp_schema;
/* The node to start from. */
const void *api_smp_root(const struct api_kind *kind);

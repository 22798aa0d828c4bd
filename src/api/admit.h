/*
 * Admission of one object: the same steps for the embedded API server, the webhook and
 * `orlop validate`.
 *
 *     object ─> kind? ─> normal form ─> structure ─> defaults ─> rules ─> update rules ─> admitted
 *
 * Of a kind with a schema, unknown members are dropped after the structure was checked, and the
 * schema's rules come first.
 *
 * Each step runs only when the ones before it found no error, except that structure reports all it
 * finds. Rules that look at other objects come after all of these, from whoever can read those
 * objects (api/among.h).
 */
#pragma once

#include "api/kind.h"
#include "api/structure.h"

/* The kind that an object says it is; NULL with a problem that says what to write. */
const struct api_kind *api_kind_of(const json_t *object, struct api_report *report);

/*
 * Makes of the object what would be stored: normal form, defaults filled in. False when there are
 * errors in the report; then the object is half way. It is changed in place and must be the
 * caller's alone. `old` is the stored object for an update, NULL for a create; it is not changed
 * and need not be in normal form. An update is the whole object: what is not in it is gone. Where
 * the caller leaves status alone, it puts the old one in first.
 */
bool api_admit(const struct api_kind *kind, json_t *object, const json_t *old,
               enum api_unknown unknown, struct api_report *report);
/*
 * The first part of it alone, what a schema can say, without the rules. False when the structure is
 * not the kind's, so that rules cannot be asked; the report may have errors otherwise too.
 */
bool api_admit_form(const struct api_kind *kind, json_t *object, enum api_unknown unknown,
                    struct api_report *report);

/* The normal form with defaults, without any check: for reading what is already stored. */
json_t *api_read(const struct api_kind *kind, const json_t *object);

/*
 * Objects seen through the table of their kind, as server-side apply sees them: what of an object
 * is one field, which fields it has, what two states of it differ in, and how one is merged into
 * another.
 *
 *     an object, a map                each member by its name             f:spec
 *     a list with a merge key         each element by its keys            k:{"name":"a"}
 *     a set                           each element by its value           v:"a"
 *     API_ATOMIC, any other list,     one field
 *     a scalar
 *
 * What a table does not name is seen by its own shape: objects by members, lists as one. So is what
 * does not have the shape that its table says; validation speaks of it elsewhere. A list that
 * should be seen by its elements but has one without keys, or two with the same, is one field.
 *
 * What the server alone sets (name, uid, resourceVersion and their like), apiVersion and kind are
 * nobody's: no set contains them.
 *
 * Objects are in normal form (api/normalize.h) and of the canonical version. Sets borrow names from
 * the objects they were made from.
 */
#pragma once

#include "api/kind.h"
#include "k8s/apiserver/fieldset.h"

/* What a configuration that has all of the object would own. */
const struct fieldset *typed_set(struct arena *a, const struct api_kind *kind,
                                 const json_t *object);

struct typed_changes {
    const struct fieldset *added, *modified, *removed;
};

/* `old` may be NULL: then all is added. */
struct typed_changes typed_compare(struct arena *a, const struct api_kind *kind, const json_t *old,
                                   const json_t *object);

/*
 * The live object with everything the configuration says; parts are shared with both. Elements that
 * both have follow the configuration's order, those of the live object alone keep their place.
 */
json_t *typed_merge(struct arena *a, const struct api_kind *kind, const json_t *live,
                    const json_t *config);
/* The object without these fields and what lies below them; parts are shared. */
json_t *typed_remove(struct arena *a, const struct api_kind *kind, const json_t *object,
                     const struct fieldset *set);
/* The set with all fields of tables that lead to one of its own. */
const struct fieldset *typed_named(struct arena *a, const struct api_kind *kind,
                                   const struct fieldset *set);
/* A configuration must be clear: lists by element must have the keys, each once. */
int typed_check(struct arena *a, const struct api_kind *kind, const json_t *config, struct err *e);

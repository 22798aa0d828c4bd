/*
 * Structural schemas: what a CustomResourceDefinition says of its objects, compiled.
 *
 * A schema does for the kinds that users define what the tables of fields do for those that are
 * built in: members that it does not name are dropped (pruned), what is missing gets its default,
 * and values are checked. Each of the three is one walk over the object; they descend where the
 * schema does, so their depth is the schema's, which is bounded.
 *
 *     definition ─ compile ─> struct api_schema ─> prune ─> default ─> validate
 *                     └ problems: what Kubernetes would not take for structural
 *
 * Rules below allOf, anyOf, oneOf and not are schemas too, of which only the value rules count.
 * Rules in CEL (x-kubernetes-validations) are compiled with the schema, and evaluated when the rest
 * is valid.
 *
 * Schemas do not change once they are compiled; any number of threads may use them. All schemas of
 * a set are freed with it.
 */
#pragma once

#include "api/kind.h"
#include "api/structure.h"

enum {
    API_SCHEMA_MAX_DEPTH = 100,   /* of schemas in schemas */
    API_SCHEMA_MAX_NODES = 50000, /* of one set */
};

struct api_schema;
struct api_schema_set;

struct api_schema_set *api_schema_set_new(void);
void api_schema_set_free(struct api_schema_set *set); /* NULL is fine */
DEFINE_CLEANUP(struct api_schema_set *, api_schema_set_free)

/*
 * Compiles the schema of a whole object, which stands at that path of its definition. NULL, with
 * problems in the report, when it is not structural.
 */
const struct api_schema *api_schema_compile(struct api_schema_set *set, const json_t *schema,
                                            const struct api_path *at, struct api_report *report);
/*
 * What the schema says about merging (list types, keys, atomic maps) as a table of fields; only what
 * differs from what goes for unknown fields is in it. Lives as long as the set.
 */
const struct api_field *api_schema_fields(struct api_schema_set *set, const struct api_schema *s);
/* What the schema has at a dotted path, ".spec.colour"; its type, or NULL when it has no such. */
const char *api_schema_type_at(const struct api_schema *s, const char *path);

/* The three below, for a kind that has such a schema. */
extern const struct api_schema_rules api_schema_rules;

/* Drops what the schema does not name; each such member is a problem, a warning, or nothing. */
void api_schema_prune(const struct api_schema *s, json_t *object, enum api_unknown unknown,
                      struct api_report *report);
/* False: they would make it too large, and some are missing. */
bool api_schema_default(const struct api_schema *s, json_t *object);
/*
 * Checks the values of a pruned and defaulted object, without its metadata. `old` is what an update
 * replaces, NULL of a create: parts that are as they were are not looked at again, so that an object
 * from before a rule existed can still be edited elsewhere.
 */
void api_schema_validate(const struct api_schema *s, const json_t *object, const json_t *old,
                         struct api_report *report);

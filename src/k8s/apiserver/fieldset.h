/*
 * Sets of fields: what a manager owns of an object, as metadata.managedFields says it.
 *
 *     {"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}, "f:type": {}}}
 *
 *     spec ──> ports ──> [port=80] * ──> name *
 *       └────> type *                                     * is in the set
 *
 * A set is a tree of what leads to its fields. Each level is a list of siblings without
 * repetition, in order, so every operation is one pass over both sets. A field can be in the set
 * itself ("."), because of fields below it, or both; what is neither is not in the tree. NULL is
 * the empty set.
 *
 * Sets are immutable, lie in an arena and share what they have in common. Names are borrowed where
 * that is possible: whatever a set was made from must not change as long as the set is used.
 */
#pragma once

#include "base/arena.h"
#include "base/mem.h"
#include "json/json.h"

enum {
    /* What lies deeper is one field: the set of an object must not be too deep to be read back. */
    FIELDSET_MAX_DEPTH = 100,
};

/* One step of a path; the letters are FieldsV1's and their order here is that of siblings. */
enum fieldset_step {
    FIELDSET_FIELD, /* f: a member by its name */
    FIELDSET_KEY,   /* k: an element by its keys, as JSON */
    FIELDSET_VALUE, /* v: an element by its value, as JSON */
    FIELDSET_INDEX, /* i: an element by its place */
};

struct fieldset {
    struct fieldset *next; /* sibling */
    struct fieldset *children;
    const char *name;
    enum fieldset_step step;
    bool member;
};

const struct fieldset *fieldset_union(struct arena *a, const struct fieldset *x,
                                      const struct fieldset *y);
/* What is in x and not in y: neither takes fields below another with it. */
const struct fieldset *fieldset_difference(struct arena *a, const struct fieldset *x,
                                           const struct fieldset *y);
const struct fieldset *fieldset_intersection(struct arena *a, const struct fieldset *x,
                                             const struct fieldset *y);
/* Whether all of y is in x. */
bool fieldset_contains(const struct fieldset *x, const struct fieldset *y);
bool fieldset_equal(const struct fieldset *x, const struct fieldset *y);

/* From FieldsV1; steps of kinds yet unknown are left out, as in Kubernetes. */
int fieldset_decode(struct arena *a, const json_t *fields, const struct fieldset **ret_set,
                    struct err *e);
/*
 * Reads what fieldset_encode() wrote, at *at, and moves *at behind it. It is many times faster than
 * decoding JSON and reads nothing else: -1 for whatever else may be the same in JSON. Text must be
 * terminated.
 */
int fieldset_read(struct arena *a, const char **at, const struct fieldset **ret_set);
/* The same for a string with its quotes: what fieldset_quote() wrote; NULL. */
const char *fieldset_read_string(struct arena *a, const char **at);
/* As FieldsV1, appended; the empty set is {}. */
void fieldset_encode(const struct fieldset *set, struct str *out);
/* A JSON string, appended. */
void fieldset_quote(const char *text, struct str *out);

/* Calls fn with each field as people read it: .spec.ports[port=80].name */
void fieldset_paths(const struct fieldset *set, void (*fn)(void *context, const char *path),
                    void *context);

/* One step of such a path, appended: .name, [port=80], [="a"], [3] */
void fieldset_append_step(enum fieldset_step step, const char *name, struct str *out);

/* Siblings that are being collected, in any order. Starts zeroed. */
struct fieldset_level {
    struct fieldset *first, *last;
    bool unsorted;
};

/* Nothing happens when it is neither in the set nor has children. */
void fieldset_add(struct arena *a, struct fieldset_level *level, enum fieldset_step step,
                  const char *name, bool member, struct fieldset *children);
/* The level, in order; of what was added twice both count. */
struct fieldset *fieldset_finish(struct arena *a, struct fieldset_level *level);

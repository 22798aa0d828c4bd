/*
 * Private to this module: what the two halves of strategic merge share. strategic.c merges objects
 * and reads the directives in them, strategic_list.c merges lists and puts them in order.
 */
#pragma once

#include "base/vec.h"
#include "json/patch.h"

struct smp {
    const struct json_smp_schema *schema;
    struct str path; /* of the value being merged, a JSON pointer, for messages */
    unsigned room;   /* levels that may still be entered */
    struct err *e;
};

/* Sets an error that begins with the current path; returns -1. */
int smp_error(struct smp *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Merges the object `patch` into the object *target, a reference of the caller's that is replaced
 * by one to the merged object. On failure *target is still a reference, to something unfinished.
 */
int smp_merge_object(struct smp *s, json_t **target, const json_t *patch, const void *node);

/* The merged list, by the field's strategy; NULL on error. */
json_t *smp_merge_list(struct smp *s, const json_t *doc, const json_t *patch,
                       const struct json_smp_field *field);
/* The list without the scalars in `gone`; NULL on error. */
json_t *smp_delete_scalars(struct smp *s, const json_t *doc, const json_t *gone);
/*
 * Merges (either of doc and patch may be NULL, not both) and then orders by `order`, the list of a
 * $setElementOrder; NULL on error.
 */
json_t *smp_merge_ordered(struct smp *s, const json_t *doc, const json_t *patch,
                          const json_t *order, const struct json_smp_field *field);

/*
 * A new reference to the value as it stands in a document that had nothing there: without objects
 * that are directives and, if asked, without the members that are null. NULL when the value is
 * itself a directive.
 */
json_t *smp_plain(const json_t *value, bool drop_nulls);

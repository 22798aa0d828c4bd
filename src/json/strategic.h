/*
 * Private to this module: what the parts of strategic merge share. strategic.c merges objects and
 * reads the directives in them, strategic_list.c merges lists, strategic_order.c orders them.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "json/patch.h"

struct smp {
    const struct json_smp_schema *schema;
    struct str path; /* of the value being merged, a JSON pointer, for messages */
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

/* Elements of a list while it is merged. */
struct smp_item {
    json_t *value; /* owned */
};

struct smp_items {
    struct smp_item *p;
    size_t len, cap;
};

void smp_items_done(struct smp_items *items);
/* Adds the elements of a list. */
void smp_items_take(struct smp_items *items, const json_t *list);

/* The identity of a scalar as text, different for different types. False for null, containers. */
bool smp_identity(const json_t *value, struct str *out);
/* That of an element; key is NULL in lists of scalars. An error when it has none. */
int smp_identify(struct smp *s, const json_t *element, const char *key, struct str *out);

/* Where each identity first stands in a list, counted from 1. Zero-initialised is empty. */
struct smp_index {
    struct map at;
    size_t most; /* places above do not count */
};

int smp_index_init(struct smp *s, struct smp_index *x, const json_t *list, const char *key);
void smp_index_done(struct smp_index *x);
/* 0 when it is not there. */
size_t smp_index_get(const struct smp_index *x, const char *id);
void smp_index_set(struct smp_index *x, const char *id, size_t at);

/* The items as a list, those in `order` in that order, the others in that of `doc`; NULL on error. */
json_t *smp_arrange(struct smp *s, const struct smp_items *items, const char *key,
                    const struct smp_index *order, const struct smp_index *doc);

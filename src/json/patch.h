/*
 * The three patch formats of the Kubernetes API. Each takes a document and a patch, changes
 * neither, and returns the patched document as a new value; NULL and *e when the patch does not
 * apply, saying which operation and which path. Parts that did not change are shared with the
 * original, which is why API values are never modified in place.
 */
#pragma once

#include "json/json.h"

enum { JSON_PATCH_MAX_OPS = 10000 };

/*
 * RFC 6902. `test` that fails is FAILED_PRECONDITION, a missing path NOT_FOUND. Three things that
 * the RFC refuses are allowed because the Kubernetes API allows them: `replace` of a member that is
 * not there adds it, `test` for null holds when the member is not there, and in a list -1 is the
 * last element, -2 the one before.
 */
json_t *json_patch_apply(const json_t *doc, const json_t *ops, struct err *e);
/* RFC 7386. A patch that is no object replaces the document: who wants an object checks first. */
json_t *json_merge_patch(const json_t *doc, const json_t *patch, struct err *e);
/* The merge patch that turns `from` into `to`; nulls inside `to` cannot be expressed. */
json_t *json_merge_diff(const json_t *from, const json_t *to);

/*
 * What strategic merge needs to know of a schema: how the lists below it merge. The kinds' tables
 * answer it (api/), this module does not know them. `node` is opaque; NULL is "nothing known":
 * objects below it merge by key and lists are replaced whole.
 */
enum json_list_kind {
    JSON_LIST_ATOMIC, /* the patch's list replaces */
    JSON_LIST_MAP,    /* merges element by element, found by merge_key */
    JSON_LIST_SET     /* scalars, united */
};

struct json_smp_field {
    /* The member's schema; a list's is that of its elements, a map's answers every name. */
    const void *node;
    enum json_list_kind list;
    const char *merge_key; /* for JSON_LIST_MAP */
    bool replace;          /* an object that the patch replaces whole */
    /* Who makes patches sends $retainKeys here; applying honours it anywhere, as Kubernetes does. */
    bool retain_keys;
};

struct json_smp_schema {
    /* False when the schema does not know that member: as if its node were NULL. */
    bool (*field)(const void *node, const char *name, struct json_smp_field *ret_field);
};

/*
 * Strategic merge, with $patch: replace|delete, $retainKeys, $setElementOrder/x and
 * $deleteFromPrimitiveList/x as Kubernetes has them ($patch: merge is what happens without it, and
 * refused there as here).
 */
json_t *json_smp_apply(const json_t *doc, const json_t *patch, const struct json_smp_schema *schema,
                       const void *root, struct err *e);

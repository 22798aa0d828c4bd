/*
 * RFC 7386, both ways: applying a merge patch, and finding the one between two documents.
 *
 * An object in the patch describes members, a null among them removes one, and anything else
 * (lists included) replaces what was there. So a patched document is never deeper than the deeper
 * of the two it was made from, and the recursion follows the patch, whose depth is checked first.
 */
#include "json/patch.h"
#include "json/share.h"

/* `doc` is NULL where the document has nothing: then the nulls of the patch have to go. */
static json_t *merge(const json_t *doc, const json_t *patch)
{
    if (!json_is_object(patch))
        return json_share(patch);
    json_t *merged = json_is_object(doc) ? json_copy(json_unconst(doc)) : json_object();
    const char *key;
    json_t *value;
    json_object_foreach(json_unconst(patch), key, value) {
        if (json_is_null(value))
            json_object_del(merged, key);
        else
            json_object_set_new_nocheck(merged, key, merge(json_object_get(merged, key), value));
    }
    return merged;
}

json_t *json_merge_patch(const json_t *doc, const json_t *patch, struct err *e)
{
    if (json_depth(patch) > JSON_MAX_DEPTH) {
        err_set(e, ERR_INVALID_ARGUMENT, "TooLarge", "the patch is more than %d levels deep",
                JSON_MAX_DEPTH);
        return NULL;
    }
    return merge(doc, patch);
}

/* The patch between the two, or NULL when they are equal and nothing need be said. */
static json_t *diff(const json_t *from, const json_t *to, unsigned room)
{
    if (!json_is_object(from) || !json_is_object(to) || room == 0)
        return json_equal(from, to) ? NULL : json_share(to);

    json_auto_t *patch = json_object();
    const char *key;
    json_t *value;
    json_object_foreach(json_unconst(from), key, value) {
        if (!json_object_get(to, key))
            json_object_set_new_nocheck(patch, key, json_null());
    }
    json_object_foreach(json_unconst(to), key, value) {
        const json_t *old = json_object_get(from, key);
        json_t *member = old ? diff(old, value, room - 1) : json_incref(value);
        if (member)
            json_object_set_new_nocheck(patch, key, member);
    }
    return json_object_size(patch) > 0 ? json_incref(patch) : NULL;
}

json_t *json_merge_diff(const json_t *from, const json_t *to)
{
    json_t *patch = diff(from, to, JSON_MAX_DEPTH);
    if (patch)
        return patch;
    /* No member differs; but only between objects can a patch be without members. */
    return json_is_object(to) ? json_object() : json_share(to);
}

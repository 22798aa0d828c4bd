/*
 * Strategic merge of lists: elements are found by their identity and merged one by one, or united
 * if they are scalars. strategic_order.c says what comes where.
 */
#include "json/pointer.h"
#include "json/share.h"
#include "json/strategic.h"

static bool same_type(const json_t *a, const json_t *b)
{
    return json_typeof(a) == json_typeof(b) || (json_is_number(a) && json_is_number(b)) ||
           (json_is_boolean(a) && json_is_boolean(b));
}

/* Lists merge when all their elements are of one type, and that is not list or null. */
static int check_elements(struct smp *s, const json_t *doc, const json_t *patch)
{
    const json_t *first = json_array_get(doc, 0), *lists[] = {doc, patch};
    if (!first)
        first = json_array_get(patch, 0);
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *v;
        json_array_foreach(lists[l], i, v) {
            if (json_is_array(v) || json_is_null(v))
                return smp_error(s, "elements of type %s cannot be merged", json_type_name(v));
            if (!same_type(first, v))
                return smp_error(s, "elements of type %s and of type %s cannot be merged",
                                 json_type_name(first), json_type_name(v));
        }
    }
    return 0;
}

static json_t *merge_scalars(struct smp *s, const json_t *doc, const json_t *patch)
{
    _cleanup_(smp_index_done) struct smp_index in_doc = {0}, in_patch = {0};
    _cleanup_(map_done) struct map seen = {0};
    _cleanup_(smp_items_done) struct smp_items items = {0};
    _cleanup_(str_done) struct str id = {0};
    if (smp_index_init(s, &in_doc, doc, NULL) < 0 || smp_index_init(s, &in_patch, patch, NULL) < 0)
        return NULL;
    const json_t *lists[] = {doc, patch};
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *v;
        json_array_foreach(lists[l], i, v) {
            smp_identity(v, &id);
            if (map_set(&seen, str_get(&id), v) == NULL)
                vec_push(&items, (struct smp_item){json_incref(v)});
        }
    }
    return smp_arrange(s, &items, NULL, &in_patch, &in_doc);
}

/*
 * Splits a patch list into elements to merge (`plain`, a new list) and what its elements with
 * $patch ask for: the identities to delete, or that the plain ones replace the whole list.
 */
static int read_directives(struct smp *s, const json_t *patch, const char *key, json_t *plain,
                           struct map *gone, bool *ret_replace)
{
    _cleanup_(str_done) struct str id = {0};
    *ret_replace = false;
    size_t i;
    json_t *v;
    json_array_foreach(patch, i, v) {
        if (!json_object_get(v, "$patch")) {
            json_array_append(plain, v);
            continue;
        }
        const char *directive = json_str(v, "$patch");
        if (directive && str_eq(directive, "replace")) {
            *ret_replace = true;
        } else if (directive && str_eq(directive, "delete")) {
            if (smp_identify(s, v, key, &id) < 0)
                return -1;
            map_set(gone, str_get(&id), v);
        } else {
            return smp_error(s, "$patch in a list element is \"replace\" or \"delete\"; "
                                "to merge, leave it out");
        }
    }
    return 0;
}

/* Merges each element of the patch into the item of the same identity, or adds it behind. */
static int merge_items(struct smp *s, struct smp_items *items, const json_t *patch,
                       const struct json_smp_field *f, struct smp_index *in_items)
{
    _cleanup_(str_done) struct str id = {0};
    for (size_t i = 0; i < json_array_size(patch); i++) {
        json_t *v = json_array_get(patch, i);
        if (smp_identify(s, v, f->merge_key, &id) < 0)
            return -1;
        in_items->most = items->len;
        size_t at = smp_index_get(in_items, str_get(&id));
        if (at == 0) {
            vec_push(items, (struct smp_item){json_incref(v)});
            smp_index_set(in_items, str_get(&id), items->len);
            continue;
        }
        size_t parent = s->path.len;
        json_pointer_append_index(&s->path, at - 1);
        if (smp_merge_object(s, &items->p[at - 1].value, v, f->node) < 0)
            return -1;
        str_truncate(&s->path, parent);
    }
    return 0;
}

/* The elements of the document that the patch does not delete. */
static json_t *remaining(struct smp *s, const json_t *doc, const char *key, const struct map *gone)
{
    _cleanup_(str_done) struct str id = {0};
    json_auto_t *left = json_array();
    size_t i;
    json_t *v;
    json_array_foreach(doc, i, v) {
        if (smp_identify(s, v, key, &id) < 0)
            return NULL;
        if (!map_has(gone, str_get(&id)))
            json_array_append(left, v);
    }
    return TAKE_PTR(left);
}

/* What replaces is a document of its own, into which nothing is merged. */
static json_t *replace_objects(struct smp *s, const json_t *plain, const char *key)
{
    _cleanup_(smp_index_done) struct smp_index here = {0}, nowhere = {0};
    _cleanup_(smp_items_done) struct smp_items items = {0};
    if (smp_index_init(s, &here, plain, key) < 0)
        return NULL;
    smp_items_take(&items, plain);
    return smp_arrange(s, &items, key, &nowhere, &here);
}

/*
 * Sets *ret_doc, which is empty, to the places by which a $setElementOrder then sorts what it does
 * not name. They are those of the document after the merge, but cut to its old length, as
 * Kubernetes has it: where elements were deleted, as many new ones have moved up and count as the
 * document's. Left empty when the patch replaces: the document's places are as they were.
 */
static json_t *merge_objects(struct smp *s, const json_t *doc, const json_t *patch,
                             const struct json_smp_field *f, struct smp_index *ret_doc)
{
    const char *key = f->merge_key;
    _cleanup_(map_done) struct map gone = {0};
    _cleanup_(smp_index_done) struct smp_index in_patch = {0};
    _cleanup_(smp_items_done) struct smp_items items = {0};
    json_auto_t *plain = json_array(), *left = NULL;
    bool replace;
    if (read_directives(s, patch, key, plain, &gone, &replace) < 0)
        return NULL;
    if (replace)
        return replace_objects(s, plain, key);
    left = remaining(s, doc, key, &gone);
    if (!left || smp_index_init(s, ret_doc, left, key) < 0 ||
        smp_index_init(s, &in_patch, plain, key) < 0)
        return NULL;
    smp_items_take(&items, left);
    if (merge_items(s, &items, plain, f, ret_doc) < 0)
        return NULL;
    ret_doc->most = json_array_size(left);
    json_t *merged = smp_arrange(s, &items, key, &in_patch, ret_doc);
    ret_doc->most = json_array_size(doc);
    return merged;
}

static json_t *merge_list(struct smp *s, const json_t *doc, const json_t *patch,
                          const struct json_smp_field *f, struct smp_index *ret_doc)
{
    const json_t *first = json_array_get(json_array_size(doc) ? doc : patch, 0);
    if (check_elements(s, doc, patch) < 0)
        return NULL;
    if (!first)
        return json_share(doc);
    bool objects = json_is_object(first);
    if (objects == (f->list == JSON_LIST_MAP))
        return objects ? merge_objects(s, doc, patch, f, ret_doc) : merge_scalars(s, doc, patch);
    smp_error(s, "this list merges %s, but has elements of type %s",
              objects ? "scalars" : "objects", json_type_name(first));
    return NULL;
}

json_t *smp_merge_list(struct smp *s, const json_t *doc, const json_t *patch,
                       const struct json_smp_field *f)
{
    _cleanup_(smp_index_done) struct smp_index in_doc = {0};
    if (f->list == JSON_LIST_ATOMIC)
        return json_share(patch);
    return merge_list(s, doc, patch, f, &in_doc);
}

json_t *smp_delete_scalars(struct smp *s, const json_t *doc, const json_t *gone)
{
    _cleanup_(smp_index_done) struct smp_index in_gone = {0};
    if (check_elements(s, doc, gone) < 0 || smp_index_init(s, &in_gone, gone, NULL) < 0)
        return NULL;
    return remaining(s, doc, NULL, &in_gone.at);
}

/* The elements that the patch sets have to be in the order list, one after another. */
static int check_order(struct smp *s, const json_t *patch, const json_t *order, const char *key)
{
    _cleanup_(str_done) struct str id = {0}, other = {0};
    size_t n = json_array_size(order), o = 0, i;
    if (n == 0)
        return 0;
    json_t *v;
    json_array_foreach(patch, i, v) {
        if (json_object_get(v, "$patch"))
            continue;
        if (smp_identify(s, v, key, &id) < 0)
            return -1;
        bool found = false;
        while (!found && o < n) {
            if (smp_identify(s, json_array_get(order, o++), key, &other) < 0)
                return -1;
            found = str_eq(str_get(&id), str_get(&other));
        }
        if (!found)
            return smp_error(s, "element %zu is not in $setElementOrder, or not in that order", i);
    }
    return 0;
}

json_t *smp_merge_ordered(struct smp *s, const json_t *doc, const json_t *patch,
                          const json_t *order, const struct json_smp_field *f)
{
    const char *key = f->list == JSON_LIST_MAP ? f->merge_key : NULL;
    _cleanup_(smp_index_done) struct smp_index in_order = {0}, in_doc = {0};
    _cleanup_(smp_items_done) struct smp_items items = {0};
    json_auto_t *merged = NULL;
    if (check_order(s, patch, order, key) < 0 || smp_index_init(s, &in_order, order, key) < 0)
        return NULL;
    if (!doc)
        merged = smp_plain(patch, false);
    else if (!patch)
        merged = json_share(doc);
    else if (f->list == JSON_LIST_ATOMIC)
        merged = json_share(patch);
    else
        merged = merge_list(s, doc, patch, f, &in_doc);
    if (!merged)
        return NULL;
    if (in_doc.most == 0 && doc && smp_index_init(s, &in_doc, doc, key) < 0)
        return NULL;
    smp_items_take(&items, merged);
    return smp_arrange(s, &items, key, &in_order, &in_doc);
}

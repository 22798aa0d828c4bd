/*
 * Strategic merge of lists, and the order of what comes out.
 *
 * Elements have an identity: the value of the merge key, or for scalars the element itself. Merging
 * finds them by it; ordering then looks at two lists of identities:
 *
 *     ordered   those that the patch (or $setElementOrder) names, in its order
 *     others    the rest, in the document's order
 *
 * and zips them: one of the others comes first only when both it and the next ordered one are in
 * the document and it stands before it there. New elements, which the document does not have,
 * therefore come as early as they can: a patch that only adds puts its elements in front.
 */
#include <inttypes.h>

#include "base/map.h"
#include "json/pointer.h"
#include "json/share.h"
#include "json/strategic.h"

/* References that the list owns. */
struct items {
    json_t **p;
    size_t len, cap;
};

static void items_done(struct items *items)
{
    vec_for_each (items, it)
        json_decref(*it);
    vec_done(items);
}

/* An identity as text; types differ in the first letter. False for null and containers. */
static bool identity_format(const json_t *value, struct str *out)
{
    str_clear(out);
    double real = json_real_value(value);
    switch (json_typeof(value)) {
    case JSON_STRING:
        str_append_c(out, 's');
        str_append_n(out, json_string_value(value), json_string_length(value));
        return true;
    case JSON_INTEGER:
        str_appendf(out, "n%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return true;
    case JSON_REAL:
        /* 5.0 is the 5 that another writer would have sent. */
        if (real > -0x1p53 && real < 0x1p53 && (double)(int64_t)real == real)
            str_appendf(out, "n%" PRId64, (int64_t)real);
        else
            str_appendf(out, "n%.17g", real);
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        str_append(out, json_is_true(value) ? "true" : "false");
        return true;
    default:
        return false;
    }
}

/* The identity of an element; key is NULL for scalars. */
static int identify(struct smp *s, const json_t *element, const char *key, struct str *out)
{
    const json_t *value = key ? json_object_get(element, key) : element;
    if (value && identity_format(value, out))
        return 0;
    if (!key)
        return smp_error(s, "an element of type %s in a list of scalars", json_type_name(element));
    if (!json_is_object(element))
        return smp_error(s, "an element of type %s; this list merges objects by \"%s\"",
                         json_type_name(element), key);
    if (!value)
        return smp_error(s, "an element without \"%s\", by which this list merges", key);
    return smp_error(s, "an element whose \"%s\", by which this list merges, is of type %s", key,
                     json_type_name(value));
}

/* Where each identity first stands in a list, counted from 1; places above `most` do not count. */
struct places {
    struct map at;
    size_t most;
};

static void places_done(struct places *p)
{
    map_done(&p->at);
}

/* 0 when it is not there. */
static size_t places_get(const struct places *p, const char *id)
{
    size_t at = (size_t)(uintptr_t)map_get(&p->at, id);
    return at <= p->most ? at : 0;
}

static void places_set(struct places *p, const char *id, size_t at)
{
    map_set(&p->at, id, (void *)(uintptr_t)at);
}

static int places_init(struct smp *s, struct places *p, const json_t *list, const char *key)
{
    _cleanup_(str_done) struct str id = {0};
    p->most = json_array_size(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (identify(s, json_array_get(list, i), key, &id) < 0)
            return -1;
        if (!map_has(&p->at, str_get(&id)))
            places_set(p, str_get(&id), i + 1);
    }
    return 0;
}

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
        json_array_foreach (lists[l], i, v) {
            if (json_is_array(v) || json_is_null(v))
                return smp_error(s, "elements of type %s cannot be merged", json_type_name(v));
            if (!same_type(first, v))
                return smp_error(s, "elements of type %s and of type %s cannot be merged",
                                 json_type_name(first), json_type_name(v));
        }
    }
    return 0;
}

struct place {
    size_t in_order, in_doc; /* from 1; 0 when it is not there */
    size_t seq;
    json_t *value; /* borrowed */
};

static int compare(size_t a, size_t b, const struct place *x, const struct place *y)
{
    if (a != b)
        return a < b ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int by_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return compare(x->in_order, y->in_order, x, y);
}

static int by_doc(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return compare(x->in_doc, y->in_doc, x, y);
}

/*
 * Sorts the elements that the order does not name. Only an empty $setElementOrder leaves new ones
 * among them; Kubernetes then sorts with a comparison by which a new element is less than any other
 * and greater too, and an insertion sort makes of it what it makes here. It does so up to 20
 * elements; longer lists get the new ones first.
 */
static void sort_others(struct place *p, size_t n)
{
    enum { INSERTION_SORT_MOST = 20 };
    bool all_known = true;
    for (size_t i = 0; i < n; i++)
        all_known = all_known && p[i].in_doc;
    if (all_known || n > INSERTION_SORT_MOST) {
        if (n)
            qsort(p, n, sizeof(*p), by_doc);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        for (size_t j = i; j > 0; j--) {
            if (p[j].in_doc && p[j - 1].in_doc && p[j].in_doc >= p[j - 1].in_doc)
                break;
            struct place swap = p[j];
            p[j] = p[j - 1];
            p[j - 1] = swap;
        }
    }
}

/* The list in its final order; see the top of the file. */
static json_t *zip(const struct place *ordered, size_t n_ordered, const struct place *others,
                   size_t n_others)
{
    json_t *list = json_array();
    size_t i = 0, j = 0;
    while (i < n_others || j < n_ordered) {
        bool other = j == n_ordered;
        if (i < n_others && j < n_ordered)
            other = others[i].in_doc && ordered[j].in_doc && others[i].in_doc < ordered[j].in_doc;
        json_array_append(list, other ? others[i++].value : ordered[j++].value);
    }
    return list;
}

static json_t *arrange(struct smp *s, const struct items *items, const char *key,
                       const struct places *order, const struct places *doc)
{
    if (items->len == 0)
        return json_array();
    _cleanup_(str_done) struct str id = {0};
    /* Ordered ones from the left, others from the right. */
    _cleanup_free_ struct place *places = mem_realloc_array(NULL, items->len, sizeof(*places));
    size_t left = 0, right = items->len;
    for (size_t i = 0; i < items->len; i++) {
        if (identify(s, items->p[i], key, &id) < 0)
            return NULL;
        struct place p = {.in_order = places_get(order, str_get(&id)),
                          .in_doc = places_get(doc, str_get(&id)),
                          .seq = i,
                          .value = items->p[i]};
        places[p.in_order ? left++ : --right] = p;
    }
    size_t n_others = items->len - left;
    struct place *others = places + left;
    for (size_t i = 0; i < n_others / 2; i++) {
        struct place swap = others[i];
        others[i] = others[n_others - 1 - i];
        others[n_others - 1 - i] = swap;
    }
    qsort(places, left, sizeof(*places), by_order);
    sort_others(others, n_others);
    return zip(places, left, others, n_others);
}

static void items_take(struct items *items, const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach (list, i, v)
        vec_push(items, json_incref(v));
}

static json_t *merge_scalars(struct smp *s, const json_t *doc, const json_t *patch)
{
    _cleanup_(places_done) struct places in_doc = {0}, in_patch = {0};
    _cleanup_(map_done) struct map seen = {0};
    _cleanup_(items_done) struct items items = {0};
    _cleanup_(str_done) struct str id = {0};
    if (places_init(s, &in_doc, doc, NULL) < 0 || places_init(s, &in_patch, patch, NULL) < 0)
        return NULL;
    const json_t *lists[] = {doc, patch};
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *v;
        json_array_foreach (lists[l], i, v) {
            identity_format(v, &id);
            if (map_set(&seen, str_get(&id), v) == NULL)
                vec_push(&items, json_incref(v));
        }
    }
    return arrange(s, &items, NULL, &in_patch, &in_doc);
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
    json_array_foreach (patch, i, v) {
        if (!json_object_get(v, "$patch")) {
            json_array_append(plain, v);
            continue;
        }
        const char *directive = json_str(v, "$patch");
        if (directive && str_eq(directive, "replace")) {
            *ret_replace = true;
        } else if (directive && str_eq(directive, "delete")) {
            if (identify(s, v, key, &id) < 0)
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
static int merge_items(struct smp *s, struct items *items, const json_t *patch,
                       const struct json_smp_field *f, struct places *in_items)
{
    _cleanup_(str_done) struct str id = {0};
    for (size_t i = 0; i < json_array_size(patch); i++) {
        json_t *v = json_array_get(patch, i);
        if (identify(s, v, f->merge_key, &id) < 0)
            return -1;
        in_items->most = items->len;
        size_t at = places_get(in_items, str_get(&id));
        if (at == 0) {
            vec_push(items, json_incref(v));
            places_set(in_items, str_get(&id), items->len);
            continue;
        }
        size_t parent = s->path.len;
        json_pointer_append_index(&s->path, at - 1);
        if (smp_merge_object(s, &items->p[at - 1], v, f->node) < 0)
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
    json_array_foreach (doc, i, v) {
        if (identify(s, v, key, &id) < 0)
            return NULL;
        if (!map_has(gone, str_get(&id)))
            json_array_append(left, v);
    }
    return TAKE_PTR(left);
}

/* What replaces is a document of its own, into which nothing is merged. */
static json_t *replace_objects(struct smp *s, const json_t *plain, const char *key)
{
    _cleanup_(places_done) struct places here = {0}, nowhere = {0};
    _cleanup_(items_done) struct items items = {0};
    if (places_init(s, &here, plain, key) < 0)
        return NULL;
    items_take(&items, plain);
    return arrange(s, &items, key, &nowhere, &here);
}

/*
 * Sets *ret_doc, which is empty, to the places by which a $setElementOrder then sorts what it does
 * not name. They are those of the document after the merge, but cut to its old length, as
 * Kubernetes has it: where elements were deleted, as many new ones have moved up and count as the
 * document's. Left empty when the patch replaces: the document's places are as they were.
 */
static json_t *merge_objects(struct smp *s, const json_t *doc, const json_t *patch,
                             const struct json_smp_field *f, struct places *ret_doc)
{
    const char *key = f->merge_key;
    _cleanup_(map_done) struct map gone = {0};
    _cleanup_(places_done) struct places in_patch = {0};
    _cleanup_(items_done) struct items items = {0};
    json_auto_t *plain = json_array(), *left = NULL;
    bool replace;
    if (read_directives(s, patch, key, plain, &gone, &replace) < 0)
        return NULL;
    if (replace)
        return replace_objects(s, plain, key);
    left = remaining(s, doc, key, &gone);
    if (!left || places_init(s, ret_doc, left, key) < 0 ||
        places_init(s, &in_patch, plain, key) < 0)
        return NULL;
    items_take(&items, left);
    if (merge_items(s, &items, plain, f, ret_doc) < 0)
        return NULL;
    ret_doc->most = json_array_size(left);
    json_t *merged = arrange(s, &items, key, &in_patch, ret_doc);
    ret_doc->most = json_array_size(doc);
    return merged;
}

static json_t *merge_list(struct smp *s, const json_t *doc, const json_t *patch,
                          const struct json_smp_field *f, struct places *ret_doc)
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
    _cleanup_(places_done) struct places in_doc = {0};
    if (f->list == JSON_LIST_ATOMIC)
        return json_share(patch);
    return merge_list(s, doc, patch, f, &in_doc);
}

json_t *smp_delete_scalars(struct smp *s, const json_t *doc, const json_t *gone)
{
    _cleanup_(places_done) struct places in_gone = {0};
    if (check_elements(s, doc, gone) < 0 || places_init(s, &in_gone, gone, NULL) < 0)
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
    json_array_foreach (patch, i, v) {
        if (json_object_get(v, "$patch"))
            continue;
        if (identify(s, v, key, &id) < 0)
            return -1;
        bool found = false;
        while (!found && o < n) {
            if (identify(s, json_array_get(order, o++), key, &other) < 0)
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
    _cleanup_(places_done) struct places in_order = {0}, in_doc = {0};
    _cleanup_(items_done) struct items items = {0};
    json_auto_t *merged = NULL;
    if (check_order(s, patch, order, key) < 0 || places_init(s, &in_order, order, key) < 0)
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
    if (in_doc.most == 0 && doc && places_init(s, &in_doc, doc, key) < 0)
        return NULL;
    items_take(&items, merged);
    return arrange(s, &items, key, &in_order, &in_doc);
}

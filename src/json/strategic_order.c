/*
 * The identity of list elements, and the order they come out in.
 *
 * An element is known by the value of the merge key, or a scalar by itself. Ordering looks at two
 * lists of identities:
 *
 *     ordered   those that the patch (or $setElementOrder) names, in its order
 *     others    the rest, in the document's order
 *
 * and zips them: one of the others comes first only when both it and the next ordered one are in
 * the document and it stands before it there. New elements, which the document does not have,
 * therefore come as early as they can: a patch that only adds puts its elements in front.
 */
#include "json/strategic.h"

void smp_items_done(struct smp_items *items)
{
    vec_for_each(items, it)
        json_decref(it->value);
    vec_done(items);
}

bool smp_identity(const json_t *value, struct str *out)
{
    str_clear(out);
    json_int_t whole;
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
        if (json_real_is_whole(json_real_value(value), &whole))
            str_appendf(out, "n%" JSON_INTEGER_FORMAT, whole);
        else
            str_appendf(out, "n%.17g", json_real_value(value));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        str_append(out, json_is_true(value) ? "true" : "false");
        return true;
    default:
        return false;
    }
}

int smp_identify(struct smp *s, const json_t *element, const char *key, struct str *out)
{
    const json_t *value = key ? json_object_get(element, key) : element;
    if (value && smp_identity(value, out))
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

void smp_index_done(struct smp_index *x)
{
    map_done(&x->at);
}

size_t smp_index_get(const struct smp_index *x, const char *id)
{
    size_t at = (size_t)(uintptr_t)map_get(&x->at, id);
    return at <= x->most ? at : 0;
}

void smp_index_set(struct smp_index *x, const char *id, size_t at)
{
    map_set(&x->at, id, (void *)(uintptr_t)at);
}

int smp_index_init(struct smp *s, struct smp_index *x, const json_t *list, const char *key)
{
    _cleanup_(str_done) struct str id = {0};
    x->most = json_array_size(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (smp_identify(s, json_array_get(list, i), key, &id) < 0)
            return -1;
        if (!map_has(&x->at, str_get(&id)))
            smp_index_set(x, str_get(&id), i + 1);
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

json_t *smp_arrange(struct smp *s, const struct smp_items *items, const char *key,
                    const struct smp_index *order, const struct smp_index *doc)
{
    if (items->len == 0)
        return json_array();
    _cleanup_(str_done) struct str id = {0};
    /* Ordered ones from the left, others from the right. */
    _cleanup_free_ struct place *places = mem_realloc_array(NULL, items->len, sizeof(*places));
    size_t left = 0, right = items->len;
    for (size_t i = 0; i < items->len; i++) {
        if (smp_identify(s, items->p[i].value, key, &id) < 0)
            return NULL;
        struct place p = {.in_order = smp_index_get(order, str_get(&id)),
                          .in_doc = smp_index_get(doc, str_get(&id)),
                          .seq = i,
                          .value = items->p[i].value};
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

void smp_items_take(struct smp_items *items, const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
        vec_push(items, (struct smp_item){json_incref(v)});
}

/*
 * Equality and order. Numbers of different types are compared by what they are worth; other values of
 * different types are not equal. Values nest as deep as JSON or an expression does, which is bounded.
 */
#include <math.h>

#include "k8s/cel/impl.h"

bool cel_is_number(const struct cel_value *v)
{
    return v->type == CEL_INT || v->type == CEL_UINT || v->type == CEL_DOUBLE;
}

static int order(bool less, bool greater)
{
    return less ? -1 : greater;
}

static int compare_double(double d, const struct cel_value *b)
{
    if (b->type == CEL_DOUBLE)
        return isnan(d) || isnan(b->real) ? -2 : order(d<b->real, d> b->real);
    if (isnan(d))
        return -2;
    if (b->type == CEL_INT) { /* exact: an integer may have more digits than a double */
        if (d < -0x1p63)
            return -1;
        if (d >= 0x1p63)
            return 1;
        int64_t whole = (int64_t)d;
        double rest = d - (double)whole;
        return whole != b->integer ? order(whole < b->integer, true) : order(rest<0, rest> 0);
    }
    if (d < 0)
        return -1;
    if (d >= 0x1p64)
        return 1;
    uint64_t whole = (uint64_t)d;
    return whole != b->natural ? order(whole < b->natural, true) : d > (double)whole;
}

static int compare_numbers(const struct cel_value *a, const struct cel_value *b)
{
    if (a->type == CEL_DOUBLE)
        return compare_double(a->real, b);
    if (b->type == CEL_DOUBLE) {
        int reverse = compare_double(b->real, a);
        return reverse == -2 ? -2 : -reverse;
    }
    if (a->type == CEL_INT && b->type == CEL_INT)
        return order(a->integer<b->integer, a->integer> b->integer);
    if (a->type == CEL_INT && a->integer < 0)
        return -1;
    if (b->type == CEL_INT && b->integer < 0)
        return 1;
    return order(a->natural<b->natural, a->natural> b->natural); /* the same bits */
}

static int compare_text(const struct cel_bytes *a, const struct cel_bytes *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int first = n ? memcmp(a->p, b->p, n) : 0;
    return first ? order(first < 0, true) : order(a->n<b->n, a->n> b->n);
}

int cel_compare(const struct cel_value *a, const struct cel_value *b)
{
    if (cel_is_number(a) && cel_is_number(b))
        return compare_numbers(a, b);
    if (a->type != b->type)
        return -2;
    switch (a->type) {
    case CEL_BOOL:
        return (int)a->truth - (int)b->truth;
    case CEL_STRING:
    case CEL_BYTES:
        return compare_text(&a->text, &b->text);
    case CEL_TIMESTAMP:
        return a->time.seconds != b->time.seconds
                   ? order(a->time.seconds < b->time.seconds, true)
                   : order(a->time.nanos<b->time.nanos, a->time.nanos> b->time.nanos);
    case CEL_DURATION:
        return order(a->integer<b->integer, a->integer> b->integer);
    case CEL_QUANTITY:
        return quantity_cmp(a->quantity, b->quantity);
    case CEL_SEMVER:
        return cel_semver_compare(a->semver, b->semver);
    default:
        return -2;
    }
}

/* Whether an element of a list is known by the same keys. */
static bool same_keys(struct cel_run *r, const struct cel_decl *d, const struct cel_value *a,
                      const struct cel_value *b)
{
    if (a->type != CEL_MAP || b->type != CEL_MAP)
        return false;
    for (const char *const *name = d->list_keys; *name; name++) {
        struct cel_value key = {.type = CEL_STRING, .text = {*name, strlen(*name)}}, x, y;
        int first = cel_map_find(r, a->map, &key, &x), second = cel_map_find(r, b->map, &key, &y);
        if (first != second || (first == 1 && !cel_equal(r, &x, &y)))
            return false;
    }
    return true;
}

/* The element of a list that is, or is known as, this one: its place, or -1. */
static ssize_t find_element(struct cel_run *r, const struct cel_list *l, const struct cel_value *v,
                            const struct cel_decl *d, struct cel_value *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, ret))
            return -1;
        if (d->list == CEL_LIST_MAP ? same_keys(r, d, v, ret) : cel_equal(r, v, ret))
            return (ssize_t)i;
        if (r->failure)
            return -1;
    }
    return -1;
}

static bool equal_lists(struct cel_run *r, const struct cel_list *a, const struct cel_list *b)
{
    const struct cel_decl *d = a->decl->list ? a->decl : b->decl;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        struct cel_value x, y;
        if (!cel_list_at(r, a, i, &x))
            return false;
        if (d->list != CEL_LIST_ATOMIC ? find_element(r, b, &x, d, &y) < 0
                                       : !cel_list_at(r, b, i, &y))
            return false;
        if (d->list != CEL_LIST_SET && !cel_equal(r, &x, &y))
            return false;
    }
    return true;
}

static bool equal_maps(struct cel_run *r, const struct cel_map *a, const struct cel_map *b)
{
    void *it = NULL;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        struct cel_pair pair;
        struct cel_value other;
        if (!cel_map_next(r, a, i, &it, &pair) || cel_map_find(r, b, &pair.key, &other) != 1 ||
            !cel_equal(r, &pair.value, &other))
            return false;
    }
    return true;
}

bool cel_equal(struct cel_run *r, const struct cel_value *a, const struct cel_value *b)
{
    if (!cel_spend(r, 1))
        return false;
    if (cel_is_number(a) && cel_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case CEL_NULL:
        return true;
    case CEL_TYPE:
        return compare_text(&a->text, &b->text) == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return a->text.n == b->text.n && cel_spend_bytes(r, a->text.n) &&
               compare_text(&a->text, &b->text) == 0;
    case CEL_LIST:
        return equal_lists(r, a->list, b->list);
    case CEL_MAP:
        return equal_maps(r, a->map, b->map);
    case CEL_OPTIONAL:
        return a->inner && b->inner ? cel_equal(r, a->inner, b->inner) : a->inner == b->inner;
    case CEL_URL:
        return cel_url_equal(a->url, b->url);
    case CEL_IP:
    case CEL_CIDR:
        return cel_address_equal(a->address, b->address);
    default:
        return cel_compare(a, b) == 0;
    }
}

/* X + Y of lists that are sets or maps: what Y has takes the place of the same in X, or follows. */
bool cel_merge_lists(struct cel_run *r, const struct cel_list *a, const struct cel_list *b,
                     struct cel_value *ret)
{
    const struct cel_decl *d = a->decl;
    if (!cel_spend(r, a->n + b->n))
        return false;
    struct cel_value *items = arena_alloc(&r->arena, (a->n + b->n + 1) * sizeof(*items)), found;
    size_t n = a->n;
    for (size_t i = 0; i < a->n; i++) {
        if (!cel_list_at(r, a, i, &items[i]))
            return false;
    }
    for (size_t i = 0; i < b->n; i++) {
        struct cel_value v;
        if (!cel_list_at(r, b, i, &v))
            return false;
        ssize_t at = d->list == CEL_LIST_ATOMIC ? -1 : find_element(r, a, &v, d, &found);
        if (r->failure)
            return false;
        items[at >= 0 ? (size_t)at : n++] = v;
    }
    struct cel_list *l = arena_new(&r->arena, struct cel_list);
    *l = (struct cel_list){.n = n, .items = items, .decl = d};
    *ret = (struct cel_value){.type = CEL_LIST, .list = l};
    return true;
}

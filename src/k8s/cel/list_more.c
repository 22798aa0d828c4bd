/*
 * Lists: functions that make other lists, and lists as sets.
 */
#include <stdlib.h>

#include "k8s/cel/list_impl.h"

#define EXPORTED(name)                                                                             \
    bool name(struct cel_run *r, const struct cel_value *args, size_t n, struct cel_value *ret)

/* All elements; NULL when that is too much. */
static struct cel_value *elements(struct cel_run *r, const struct cel_list *l)
{
    if (!cel_spend(r, l->n))
        return NULL;
    struct cel_value *items = arena_alloc(&r->arena, (l->n + 1) * sizeof(*items));
    for (size_t i = 0; i < l->n; i++) {
        if (!cel_list_at(r, l, i, &items[i]))
            return NULL;
    }
    return items;
}

EXPORTED(list_slice)
{
    (void)n;
    const struct cel_list *l = args[0].list;
    int64_t from = args[1].integer, to = args[2].integer;
    if (from < 0 || to < 0)
        return cel_fail(r, "cannot slice(%lld, %lld), negative indexes not supported",
                        (long long)from, (long long)to);
    if (from > to)
        return cel_fail(r,
                        "cannot slice(%lld, %lld), start index must be less than or equal to end "
                        "index",
                        (long long)from, (long long)to);
    if ((uint64_t)to > l->n)
        return cel_fail(r, "cannot slice(%lld, %lld), list is length %zu", (long long)from,
                        (long long)to, l->n);
    struct cel_value *items = elements(r, l);
    if (!items)
        return false;
    *ret = cel_make_list(r, items + from, (size_t)(to - from));
    return true;
}

struct flat {
    struct cel_value *p;
    size_t len, cap;
};

/* Lists nest as deep as JSON or an expression does. */
static bool flatten(struct cel_run *r, const struct cel_list *l, int64_t depth, struct flat *out)
{
    for (size_t i = 0; i < l->n; i++) {
        struct cel_value v;
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, &v))
            return false;
        if (v.type == CEL_LIST && depth > 0) {
            if (!flatten(r, v.list, depth - 1, out))
                return false;
        } else {
            vec_push(out, v);
        }
    }
    return true;
}

EXPORTED(list_flatten)
{
    int64_t depth = n == 2 ? args[1].integer : 1;
    if (depth < 0)
        return cel_fail(r, "level must be non-negative");
    struct flat out = {0};
    bool good = flatten(r, args[0].list, depth, &out);
    *ret = cel_make_list(r, out.p, out.len);
    vec_done(&out);
    return good;
}

EXPORTED(list_distinct)
{
    (void)n;
    struct cel_value *items = elements(r, args[0].list);
    size_t count = 0;
    for (size_t i = 0; items && i < args[0].list->n; i++) {
        bool seen = false;
        for (size_t j = 0; j < count && !seen; j++)
            seen = cel_equal(r, &items[i], &items[j]);
        if (r->failure)
            return false;
        if (!seen)
            items[count++] = items[i];
    }
    if (items)
        *ret = cel_make_list(r, items, count);
    return items;
}

EXPORTED(list_reverse)
{
    (void)n;
    size_t count = args[0].list->n;
    struct cel_value *items = elements(r, args[0].list);
    for (size_t i = 0; items && i < count / 2; i++) {
        struct cel_value v = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = v;
    }
    if (items)
        *ret = cel_make_list(r, items, count);
    return items;
}

static int compare(const void *a, const void *b)
{
    return cel_compare(a, b);
}

EXPORTED(list_sort)
{
    (void)n;
    size_t count = args[0].list->n;
    struct cel_value *items = elements(r, args[0].list);
    if (!items)
        return false;
    for (size_t i = 1; i < count; i++) {
        if (items[i].type != items[0].type || cel_compare(&items[0], &items[i]) == -2)
            return cel_fail(r, "list elements must have the same type");
    }
    if (count)
        qsort(items, count, sizeof(*items), compare);
    *ret = cel_make_list(r, items, count);
    return true;
}

static bool end(struct cel_run *r, const struct cel_list *l, bool last, struct cel_value *ret)
{
    if (l->n && !cel_list_at(r, l, last ? l->n - 1 : 0, ret))
        return false;
    *ret = cel_make_optional(r, l->n ? ret : NULL);
    return true;
}

EXPORTED(list_first)
{
    (void)n;
    return end(r, args[0].list, false, ret);
}

EXPORTED(list_last)
{
    (void)n;
    return end(r, args[0].list, true, ret);
}

EXPORTED(list_range)
{
    (void)n;
    size_t count = args[0].integer > 0 ? (size_t)args[0].integer : 0;
    if (!cel_spend(r, count))
        return false;
    struct cel_value *items = arena_alloc(&r->arena, (count + 1) * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = cel_make_int((int64_t)i);
    *ret = cel_make_list(r, items, count);
    return true;
}

/* Whether all, or any, elements of b are in a. */
static bool is_in(struct cel_run *r, const struct cel_list *a, const struct cel_list *b, bool all,
                  bool *ret)
{
    *ret = all;
    for (size_t i = 0; i < b->n && *ret == all; i++) {
        struct cel_value wanted, v;
        bool found = false;
        if (!cel_list_at(r, b, i, &wanted))
            return false;
        for (size_t j = 0; j < a->n && !found; j++) {
            if (!cel_list_at(r, a, j, &v))
                return false;
            found = cel_equal(r, &wanted, &v);
            if (r->failure)
                return false;
        }
        *ret = found;
    }
    return true;
}

EXPORTED(list_set_contains)
{
    (void)n;
    *ret = cel_make_bool(false);
    return is_in(r, args[0].list, args[1].list, true, &ret->truth);
}

EXPORTED(list_set_equivalent)
{
    (void)n;
    *ret = cel_make_bool(false);
    return is_in(r, args[0].list, args[1].list, true, &ret->truth) &&
           (!ret->truth || is_in(r, args[1].list, args[0].list, true, &ret->truth));
}

EXPORTED(list_set_intersects)
{
    (void)n;
    *ret = cel_make_bool(false);
    return is_in(r, args[0].list, args[1].list, false, &ret->truth);
}

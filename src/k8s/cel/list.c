/*
 * Lists: Kubernetes' own functions, and the table of all.
 */
#include "k8s/cel/list_impl.h"

/* The first of which a later one is smaller. */
LIST_FUNCTION(is_sorted)
{
    (void)n;
    const struct cel_list *l = args[0].list;
    struct cel_value before, v;
    *ret = cel_make_bool(true);
    for (size_t i = 0; i < l->n; i++) {
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, &v))
            return false;
        int order = i ? cel_compare(&before, &v) : 0;
        if (order == -2)
            return cel_no_overload(r);
        if (order > 0)
            *ret = cel_make_bool(false);
        before = v;
    }
    return true;
}

LIST_FUNCTION(sum)
{
    (void)n;
    const struct cel_function *add = cel_function_find("_+_", false);
    const struct cel_list *l = args[0].list;
    *ret = cel_make_int(0);
    for (size_t i = 0; i < l->n; i++) {
        struct cel_value pair[2] = {*ret};
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, &pair[1]))
            return false;
        if (i == 0) {
            *ret = pair[1];
            if (!cel_is_number(ret) && ret->type != CEL_DURATION)
                return cel_no_overload(r);
            continue;
        }
        const struct cel_function *f = add;
        while (f && !cel_function_fits(f, pair, 2))
            f = cel_function_next(f);
        if (!f || (pair[1].type != pair[0].type))
            return cel_no_overload(r);
        if (!f->call(r, pair, 2, ret))
            return false;
    }
    return true;
}

static bool extreme(struct cel_run *r, const struct cel_list *l, int sign, const char *name,
                    struct cel_value *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        struct cel_value v;
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, &v))
            return false;
        int order = i ? cel_compare(&v, ret) : sign;
        if (order == -2)
            return cel_no_overload(r);
        if (order == sign)
            *ret = v;
    }
    return l->n || cel_fail(r, "%s called on empty list", name);
}

LIST_FUNCTION(min)
{
    (void)n;
    return extreme(r, args[0].list, -1, "min", ret);
}

LIST_FUNCTION(max)
{
    (void)n;
    return extreme(r, args[0].list, 1, "max", ret);
}

LIST_FUNCTION(index_of)
{
    (void)n;
    *ret = cel_make_int(-1);
    for (size_t i = 0; i < args[0].list->n; i++) {
        struct cel_value v;
        if (!cel_list_at(r, args[0].list, i, &v))
            return false;
        bool same = cel_equal(r, &args[1], &v);
        if (r->failure)
            return false;
        if (same) {
            *ret = cel_make_int((int64_t)i);
            return true;
        }
    }
    return true;
}

LIST_FUNCTION(last_index_of)
{
    (void)n;
    *ret = cel_make_int(-1);
    for (size_t i = args[0].list->n; i-- > 0;) {
        struct cel_value v;
        if (!cel_list_at(r, args[0].list, i, &v))
            return false;
        bool same = cel_equal(r, &args[1], &v);
        if (r->failure)
            return false;
        if (same) {
            *ret = cel_make_int((int64_t)i);
            return true;
        }
    }
    return true;
}

const struct cel_function cel_list_functions[] = {
    {"isSorted", "bL", is_sorted, true},
    {"sum", "eL", sum, true},
    {"min", "eL", min, true},
    {"max", "eL", max, true},
    {"indexOf", "iLD", index_of, true},
    {"lastIndexOf", "iLD", last_index_of, true},
    {"slice", "aLii", list_slice, true},
    {"flatten", "LL", list_flatten, true},
    {"flatten", "LLi", list_flatten, true},
    {"distinct", "aL", list_distinct, true},
    {"reverse", "aL", list_reverse, true},
    {"sort", "aL", list_sort, true},
    {"first", "DL", list_first, true},
    {"last", "DL", list_last, true},
    {"lists.range", "Ii", list_range},
    {"sets.contains", "bLL", list_set_contains},
    {"sets.equivalent", "bLL", list_set_equivalent},
    {"sets.intersects", "bLL", list_set_intersects},
    {0},
};

/*
 * Optionals: values that may be there.
 */
#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

FUNCTION(of)
{
    (void)n;
    *ret = cel_make_optional(r, &args[0]);
    return true;
}

FUNCTION(none)
{
    (void)args, (void)n;
    *ret = cel_make_optional(r, NULL);
    return true;
}

static bool is_zero(const struct cel_value *v)
{
    switch (v->type) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v->truth;
    case CEL_INT:
    case CEL_DURATION:
        return v->integer == 0;
    case CEL_UINT:
        return v->natural == 0;
    case CEL_DOUBLE:
        return v->real == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return v->text.n == 0;
    case CEL_LIST:
        return v->list->n == 0;
    case CEL_MAP:
        return v->map->n == 0;
    case CEL_OPTIONAL:
        return !v->inner;
    default:
        return false;
    }
}

FUNCTION(of_non_zero)
{
    (void)n;
    *ret = cel_make_optional(r, is_zero(&args[0]) ? NULL : &args[0]);
    return true;
}

FUNCTION(has_value)
{
    (void)r, (void)n;
    *ret = cel_make_bool(args[0].inner);
    return true;
}

FUNCTION(value)
{
    (void)n;
    if (!args[0].inner)
        return cel_fail(r, "optional.none() dereference");
    *ret = *args[0].inner;
    return true;
}

FUNCTION(or)
{
    (void)r, (void)n;
    *ret = args[0].inner ? args[0] : args[1];
    return true;
}

FUNCTION(or_value)
{
    (void)r, (void)n;
    *ret = args[0].inner ? *args[0].inner : args[1];
    return true;
}

const struct cel_function cel_optional_functions[] = {
    {"optional.of", "wD", of},
    {"optional.none", "O", none},
    {"optional.ofNonZeroValue", "wD", of_non_zero},
    {"hasValue", "bO", has_value, true},
    {"value", "eO", value, true},
    {"or", "aOO", or, true},
    {"orValue", "eOD", or_value, true},
    {0},
};

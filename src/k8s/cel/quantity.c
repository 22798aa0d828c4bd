/*
 * Quantities: 1.5Gi, 100m. Where base/quantity.h refuses what Kubernetes caps, so does this.
 */
#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

static void make(struct cel_run *r, const struct quantity *q, struct cel_value *ret)
{
    struct quantity *own = arena_new(&r->arena, struct quantity);
    *own = *q;
    *ret = (struct cel_value){.type = CEL_QUANTITY, .quantity = own};
}

FUNCTION(to_quantity)
{
    (void)n;
    struct quantity q;
    struct err e = {0};
    if (quantity_parse(args[0].text.p, &q, &e) < 0)
        return cel_fail(r, "unable to parse quantity: %.200s", e.msg);
    make(r, &q, ret);
    return true;
}

FUNCTION(is_quantity)
{
    (void)r, (void)n;
    struct quantity q;
    *ret = cel_make_bool(quantity_parse(args[0].text.p, &q, NULL) == 0);
    return true;
}

FUNCTION(is_integer)
{
    (void)r, (void)n;
    *ret = cel_make_bool(quantity_is_whole(args[0].quantity));
    return true;
}

FUNCTION(as_integer)
{
    (void)n;
    if (!quantity_is_whole(args[0].quantity))
        return cel_fail(r, "cannot convert value to integer");
    *ret = cel_make_int(quantity_to_int(args[0].quantity));
    return true;
}

FUNCTION(as_double)
{
    (void)r, (void)n;
    *ret = (struct cel_value){.type = CEL_DOUBLE, .real = (double)args[0].quantity->nano / 1e9};
    return true;
}

FUNCTION(sign)
{
    (void)r, (void)n;
    *ret = cel_make_int(quantity_sign(args[0].quantity));
    return true;
}

static bool change(struct cel_run *r, const struct cel_value *args, bool subtract,
                   struct cel_value *ret)
{
    struct quantity other = args[1].type == CEL_INT
                                ? quantity_from_int(args[1].integer, args[0].quantity->format)
                                : *args[1].quantity,
                    q = {0};
    struct err e = {0};
    if ((subtract ? quantity_sub : quantity_add)(args[0].quantity, &other, &q, &e) < 0)
        return cel_fail(r, "%.200s", e.msg);
    make(r, &q, ret);
    return true;
}

FUNCTION(add)
{
    (void)n;
    return change(r, args, false, ret);
}

FUNCTION(sub)
{
    (void)n;
    return change(r, args, true, ret);
}

FUNCTION(is_greater)
{
    (void)r, (void)n;
    *ret = cel_make_bool(cel_compare(&args[0], &args[1]) > 0);
    return true;
}

FUNCTION(is_less)
{
    (void)r, (void)n;
    *ret = cel_make_bool(cel_compare(&args[0], &args[1]) < 0);
    return true;
}

FUNCTION(compare_to)
{
    (void)r, (void)n;
    *ret = cel_make_int(cel_compare(&args[0], &args[1]));
    return true;
}

const struct cel_function cel_quantity_functions[] = {
    {"quantity", "Qs", to_quantity},
    {"isQuantity", "bs", is_quantity},
    {"isInteger", "bQ", is_integer, true},
    {"asInteger", "iQ", as_integer, true},
    {"asApproximateFloat", "dQ", as_double, true},
    {"sign", "iQ", sign, true},
    {"add", "QQQ", add, true},
    {"add", "QQi", add, true},
    {"sub", "QQQ", sub, true},
    {"sub", "QQi", sub, true},
    {"isGreaterThan", "bQQ", is_greater, true},
    {"isGreaterThan", "bVV", is_greater, true},
    {"isLessThan", "bQQ", is_less, true},
    {"isLessThan", "bVV", is_less, true},
    {"compareTo", "iQQ", compare_to, true},
    {"compareTo", "iVV", compare_to, true},
    {0},
};

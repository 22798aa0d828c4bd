/*
 * The operators < <= > >=, of what has an order.
 */
#include "k8s/cel/impl.h"

static bool less(struct cel_run *r, const struct cel_value *args, size_t n, struct cel_value *ret)
{
    (void)n;
    if (args[0].type == CEL_STRING && !cel_spend_bytes(r, args[0].text.n))
        return false;
    *ret = cel_make_bool(cel_compare(&args[0], &args[1]) == -1);
    return true;
}

static bool greater(struct cel_run *r, const struct cel_value *args, size_t n,
                    struct cel_value *ret)
{
    return less(r, (const struct cel_value[]){args[1], args[0]}, n, ret);
}

static bool at_most(struct cel_run *r, const struct cel_value *args, size_t n,
                    struct cel_value *ret)
{
    if (!less(r, args, n, ret))
        return false;
    ret->truth |= cel_compare(&args[0], &args[1]) == 0;
    return true;
}

static bool at_least(struct cel_run *r, const struct cel_value *args, size_t n,
                     struct cel_value *ret)
{
    return at_most(r, (const struct cel_value[]){args[1], args[0]}, n, ret);
}

#define ORDER(name, f)                                                                             \
    {name, "bbb", f}, {name, "bii", f}, {name, "biu", f}, {name, "bid", f}, {name, "bui", f},      \
        {name, "buu", f}, {name, "bud", f}, {name, "bdi", f}, {name, "bdu", f}, {name, "bdd", f},  \
        {name, "bss", f}, {name, "byy", f}, {name, "btt", f},                                      \
    {                                                                                              \
        name, "bpp", f                                                                             \
    }

const struct cel_function cel_compare_functions[] = {
    ORDER("_<_", less), ORDER("_<=_", at_most), ORDER("_>_", greater), ORDER("_>=_", at_least), {0},
};

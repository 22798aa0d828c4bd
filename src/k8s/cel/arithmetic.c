/*
 * The operators + - * / % and the minus sign. Nothing wraps: what does not fit is an error.
 */
#include <math.h>

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

/* An operation on integers by one of the compiler's checked ones. */
#define CHECKED(name, builtin, member, type_, what)                                                \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)n;                                                                                   \
        *ret = (struct cel_value){.type = type_};                                                  \
        return !builtin(args[0].member, args[1].member, &ret->member) || cel_fail(r, what);        \
    }

CHECKED(add_int, __builtin_add_overflow, integer, CEL_INT, "integer overflow")
CHECKED(sub_int, __builtin_sub_overflow, integer, CEL_INT, "integer overflow")
CHECKED(mul_int, __builtin_mul_overflow, integer, CEL_INT, "integer overflow")
CHECKED(add_uint, __builtin_add_overflow, natural, CEL_UINT, "unsigned integer overflow")
CHECKED(sub_uint, __builtin_sub_overflow, natural, CEL_UINT, "unsigned integer overflow")
CHECKED(mul_uint, __builtin_mul_overflow, natural, CEL_UINT, "unsigned integer overflow")
CHECKED(add_duration, __builtin_add_overflow, integer, CEL_DURATION, "duration overflow")
CHECKED(sub_duration, __builtin_sub_overflow, integer, CEL_DURATION, "duration overflow")

FUNCTION(div_int)
{
    (void)n;
    if (args[1].integer == 0)
        return cel_fail(r, "division by zero");
    if (args[0].integer == INT64_MIN && args[1].integer == -1)
        return cel_fail(r, "integer overflow");
    *ret = cel_make_int(args[0].integer / args[1].integer);
    return true;
}

FUNCTION(mod_int)
{
    (void)n;
    if (args[1].integer == 0)
        return cel_fail(r, "modulus by zero");
    if (args[0].integer == INT64_MIN && args[1].integer == -1)
        return cel_fail(r, "integer overflow");
    *ret = cel_make_int(args[0].integer % args[1].integer);
    return true;
}

FUNCTION(div_uint)
{
    (void)n;
    if (args[1].natural == 0)
        return cel_fail(r, "division by zero");
    *ret = (struct cel_value){.type = CEL_UINT, .natural = args[0].natural / args[1].natural};
    return true;
}

FUNCTION(mod_uint)
{
    (void)n;
    if (args[1].natural == 0)
        return cel_fail(r, "modulus by zero");
    *ret = (struct cel_value){.type = CEL_UINT, .natural = args[0].natural % args[1].natural};
    return true;
}

static bool real(double value, struct cel_value *ret)
{
    *ret = (struct cel_value){.type = CEL_DOUBLE, .real = value};
    return true;
}

FUNCTION(add_double)
{
    (void)r, (void)n;
    return real(args[0].real + args[1].real, ret);
}

FUNCTION(sub_double)
{
    (void)r, (void)n;
    return real(args[0].real - args[1].real, ret);
}

FUNCTION(mul_double)
{
    (void)r, (void)n;
    return real(args[0].real * args[1].real, ret);
}

static double divide(double a, double b) __attribute__((no_sanitize("float-divide-by-zero")));
static double divide(double a, double b)
{
    return a / b;
}

FUNCTION(div_double)
{
    (void)r, (void)n;
    return real(divide(args[0].real, args[1].real), ret);
}

FUNCTION(negate_int)
{
    (void)n;
    if (args[0].integer == INT64_MIN)
        return cel_fail(r, "integer overflow");
    *ret = cel_make_int(-args[0].integer);
    return true;
}

FUNCTION(negate_double)
{
    (void)r, (void)n;
    return real(-args[0].real, ret);
}

FUNCTION(concatenate)
{
    (void)n;
    const struct cel_bytes *a = &args[0].text, *b = &args[1].text;
    if (!cel_spend_bytes(r, a->n + b->n))
        return false;
    char *both = arena_alloc(&r->arena, a->n + b->n + 1);
    memcpy(both, a->p, a->n);
    memcpy(both + a->n, b->p, b->n);
    *ret = (struct cel_value){.type = args[0].type, .text = {both, a->n + b->n}};
    return true;
}

FUNCTION(join_lists)
{
    (void)n;
    return cel_merge_lists(r, args[0].list, args[1].list, ret);
}

static bool move_time(struct cel_run *r, struct cel_time t, int64_t ns, struct cel_value *ret)
{
    enum { SECOND = 1000000000 };
    int64_t seconds = ns / SECOND, nanos = t.nanos + ns % SECOND;
    if (nanos < 0)
        nanos += SECOND, seconds--;
    if (nanos >= SECOND)
        nanos -= SECOND, seconds++;
    t.seconds += seconds; /* both are far from their limits */
    t.nanos = (int32_t)nanos;
    if (t.seconds < -62135596800 || t.seconds > 253402300799) /* the years 1 to 9999 */
        return cel_fail(r, "timestamp overflow");
    *ret = (struct cel_value){.type = CEL_TIMESTAMP, .time = t};
    return true;
}

FUNCTION(add_time)
{
    (void)n;
    return move_time(r, args[0].time, args[1].integer, ret);
}

FUNCTION(add_to_time)
{
    (void)n;
    return move_time(r, args[1].time, args[0].integer, ret);
}

FUNCTION(sub_from_time)
{
    (void)n;
    if (args[1].integer == INT64_MIN)
        return cel_fail(r, "timestamp overflow");
    return move_time(r, args[0].time, -args[1].integer, ret);
}

FUNCTION(between_times)
{
    (void)n;
    __int128 ns = (__int128)(args[0].time.seconds - args[1].time.seconds) * 1000000000 +
                  args[0].time.nanos - args[1].time.nanos;
    if (ns < INT64_MIN || ns > INT64_MAX)
        return cel_fail(r, "timestamp overflow");
    *ret = (struct cel_value){.type = CEL_DURATION, .integer = (int64_t)ns};
    return true;
}

const struct cel_function cel_arithmetic_functions[] = {
    {"_+_", "iii", add_int},       {"_+_", "uuu", add_uint},
    {"_+_", "ddd", add_double},    {"_+_", "sss", concatenate},
    {"_+_", "yyy", concatenate},   {"_+_", "aLL", join_lists},
    {"_+_", "ppp", add_duration},  {"_+_", "ttp", add_time},
    {"_+_", "tpt", add_to_time},   {"_-_", "iii", sub_int},
    {"_-_", "uuu", sub_uint},      {"_-_", "ddd", sub_double},
    {"_-_", "ppp", sub_duration},  {"_-_", "ttp", sub_from_time},
    {"_-_", "ptt", between_times}, {"_*_", "iii", mul_int},
    {"_*_", "uuu", mul_uint},      {"_*_", "ddd", mul_double},
    {"_/_", "iii", div_int},       {"_/_", "uuu", div_uint},
    {"_/_", "ddd", div_double},    {"_%_", "iii", mod_int},
    {"_%_", "uuu", mod_uint},      {"-_", "ii", negate_int},
    {"-_", "dd", negate_double},   {0},
};

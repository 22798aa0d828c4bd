/*
 * Conversions between types, and type() itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/base64.h"
#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

static bool mismatch(struct cel_run *r, const char *from, const char *to)
{
    return cel_fail(r, "type conversion error from '%s' to '%s'", from, to);
}

/* A number that fills the whole text, as strtoX() reads it; spaces and signs are counted out. */
static bool whole(const char *text, size_t size, const char *end)
{
    return size > 0 && end == text + size && strchr("+-0123456789.iInN", text[0]);
}

FUNCTION(same)
{
    (void)r, (void)n;
    *ret = args[0];
    return true;
}

FUNCTION(to_int)
{
    (void)n;
    const struct cel_value *v = &args[0];
    char *end;
    *ret = cel_make_int(0);
    switch (v->type) {
    case CEL_UINT:
        ret->integer = (int64_t)v->natural;
        return v->natural <= INT64_MAX || cel_fail(r, "integer overflow");
    case CEL_DOUBLE:
        if (isnan(v->real) || fabs(v->real) >= 9223372036854775808.0)
            return cel_fail(r, "integer overflow");
        ret->integer = (int64_t)v->real;
        return true;
    case CEL_STRING:
        errno = 0;
        ret->integer = strtoll(v->text.p, &end, 10);
        return (!errno && whole(v->text.p, v->text.n, end)) || mismatch(r, "string", "int");
    case CEL_TIMESTAMP:
        ret->integer = v->time.seconds;
        return true;
    default: /* a duration */
        ret->integer = v->integer;
        return true;
    }
}

FUNCTION(to_uint)
{
    (void)n;
    const struct cel_value *v = &args[0];
    char *end;
    *ret = (struct cel_value){.type = CEL_UINT};
    switch (v->type) {
    case CEL_INT:
        ret->natural = (uint64_t)v->integer;
        return v->integer >= 0 || cel_fail(r, "unsigned integer overflow");
    case CEL_DOUBLE:
        if (isnan(v->real) || v->real < 0 || v->real >= 18446744073709551616.0)
            return cel_fail(r, "unsigned integer overflow");
        ret->natural = (uint64_t)v->real;
        return true;
    default:
        errno = 0;
        ret->natural = strtoull(v->text.p, &end, 10);
        return (!errno && v->text.p[0] != '-' && whole(v->text.p, v->text.n, end)) ||
               mismatch(r, "string", "uint");
    }
}

FUNCTION(to_double)
{
    (void)n;
    const struct cel_value *v = &args[0];
    char *end;
    *ret = (struct cel_value){.type = CEL_DOUBLE};
    if (v->type == CEL_STRING) {
        ret->real = strtod(v->text.p, &end);
        return whole(v->text.p, v->text.n, end) || mismatch(r, "string", "double");
    }
    ret->real = v->type == CEL_INT ? (double)v->integer : (double)v->natural;
    return true;
}

FUNCTION(to_bool)
{
    (void)n;
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True", NULL};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False", NULL};
    *ret = cel_make_bool(str_in(args[0].text.p, yes));
    return ret->truth || str_in(args[0].text.p, no) || mismatch(r, "string", "bool");
}

FUNCTION(to_bytes)
{
    (void)r, (void)n;
    *ret = args[0];
    ret->type = CEL_BYTES;
    return true;
}

/* The shortest digits that mean this number. */
static void format_double(double d, struct str *out)
{
    char text[40];
    if (isnan(d) || isinf(d)) {
        str_append(out, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    double size = fabs(d);
    if (strchr(text, 'e') && size >= 1e-4 && size < 1e21)
        snprintf(text, sizeof(text), "%.0f", d);
    str_append(out, text);
}

static bool is_utf8(const struct cel_bytes *s)
{
    uint32_t c;
    for (size_t i = 0, n; i < s->n; i += n) {
        n = str_utf8(s->p + i, s->n - i, &c);
        if (!n)
            return false;
    }
    return true;
}

bool cel_string_of(struct cel_run *r, const struct cel_value *v, struct str *out)
{
    char text[QUANTITY_TEXT_MAX];
    switch (v->type) {
    case CEL_BOOL:
        str_append(out, v->truth ? "true" : "false");
        break;
    case CEL_INT:
        str_appendf(out, "%" PRId64, v->integer);
        break;
    case CEL_UINT:
        str_appendf(out, "%" PRIu64, v->natural);
        break;
    case CEL_DOUBLE:
        format_double(v->real, out);
        break;
    case CEL_BYTES:
        if (!is_utf8(&v->text))
            return cel_fail(r, "invalid UTF-8 in bytes, cannot convert to string");
        str_append_n(out, v->text.p, v->text.n);
        break;
    case CEL_STRING:
    case CEL_TYPE:
        str_append_n(out, v->text.p, v->text.n);
        break;
    case CEL_TIMESTAMP:
        cel_time_format(v->time, out);
        break;
    case CEL_DURATION:
        cel_duration_format(v->integer, out);
        break;
    case CEL_QUANTITY:
        str_append(out, quantity_format(v->quantity, text));
        break;
    case CEL_IP:
    case CEL_CIDR:
        cel_address_format(v->address, v->type == CEL_CIDR, out);
        break;
    case CEL_NULL:
        str_append(out, "null");
        break;
    default:
        return cel_no_overload(r);
    }
    return true;
}

FUNCTION(to_string)
{
    (void)n;
    _cleanup_(str_done) struct str out = {0};
    if (!cel_spend_bytes(r, args[0].type == CEL_BYTES ? args[0].text.n : 0) ||
        !cel_string_of(r, &args[0], &out))
        return false;
    *ret = cel_make_string(r, str_get(&out), out.len);
    return true;
}

FUNCTION(type_of)
{
    (void)r, (void)n;
    *ret = cel_make_type(args[0].type);
    return true;
}

const struct cel_function cel_convert_functions[] = {
    {"int", "ii", same},         {"int", "iu", to_int},
    {"int", "id", to_int},       {"int", "is", to_int},
    {"int", "it", to_int},       {"int", "ip", to_int},
    {"uint", "uu", same},        {"uint", "ui", to_uint},
    {"uint", "ud", to_uint},     {"uint", "us", to_uint},
    {"double", "dd", same},      {"double", "di", to_double},
    {"double", "du", to_double}, {"double", "ds", to_double},
    {"bool", "bb", same},        {"bool", "bs", to_bool},
    {"bytes", "yy", same},       {"bytes", "ys", to_bytes},
    {"string", "ss", same},      {"string", "sb", to_string},
    {"string", "si", to_string}, {"string", "su", to_string},
    {"string", "sd", to_string}, {"string", "sy", to_string},
    {"string", "st", to_string}, {"string", "sp", to_string},
    {"string", "sQ", to_string}, {"string", "sA", to_string},
    {"string", "sC", to_string}, {"dyn", "DD", same},
    {"type", "TD", type_of},     {0},
};

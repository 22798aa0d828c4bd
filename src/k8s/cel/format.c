/*
 * "%s has %d".format([a, b]), which messages are made with.
 *
 *     %s any value   %d whole numbers   %f %e with digits   %b binary   %x %X hexadecimal   %o octal
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "k8s/cel/impl.h"

enum { MOST_DIGITS = 100 };

static bool append(struct cel_run *r, const struct cel_value *v, struct str *out, unsigned depth);

static bool append_list(struct cel_run *r, const struct cel_list *l, struct str *out,
                        unsigned depth)
{
    str_append_c(out, '[');
    for (size_t i = 0; i < l->n; i++) {
        struct cel_value v;
        if (!cel_spend(r, 1) || !cel_list_at(r, l, i, &v))
            return false;
        str_append(out, i ? ", " : "");
        if (!append(r, &v, out, depth + 1))
            return false;
    }
    str_append_c(out, ']');
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return cel_compare(a, b);
}

/* By key, whatever order the map has. */
static bool append_map(struct cel_run *r, const struct cel_map *m, struct str *out, unsigned depth)
{
    void *it = NULL;
    if (!cel_spend(r, m->n))
        return false;
    struct cel_pair *pairs = arena_alloc(&r->arena, (m->n + 1) * sizeof(*pairs));
    for (size_t i = 0; i < m->n; i++) {
        if (!cel_map_next(r, m, i, &it, &pairs[i]))
            return false;
    }
    if (m->n)
        qsort(pairs, m->n, sizeof(*pairs), compare_keys);
    str_append_c(out, '{');
    for (size_t i = 0; i < m->n; i++) {
        str_append(out, i ? ", " : "");
        if (!append(r, &pairs[i].key, out, depth + 1))
            return false;
        str_append(out, ": ");
        if (!append(r, &pairs[i].value, out, depth + 1))
            return false;
    }
    str_append_c(out, '}');
    return true;
}

static bool append(struct cel_run *r, const struct cel_value *v, struct str *out, unsigned depth)
{
    if (depth > CEL_MAX_DEPTH)
        return cel_fail(r, "the value is too deep to be written");
    size_t before = out->len;
    bool good = v->type == CEL_LIST  ? append_list(r, v->list, out, depth)
                : v->type == CEL_MAP ? append_map(r, v->map, out, depth)
                                     : cel_string_of(r, v, out);
    return good && cel_spend_bytes(r, out->len - before);
}

static bool wrong(struct cel_run *r, const char *clause, const struct cel_value *v)
{
    return cel_fail(r, "error during formatting: %s clause cannot be used on %s", clause,
                    cel_type_names[v->type]);
}

static void append_base(struct str *out, uint64_t size, unsigned base, bool upper)
{
    char digits[65];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[size % base];
        size /= base;
    } while (size);
    str_append(out, digits + at);
}

static bool append_integer(struct cel_run *r, const struct cel_value *v, char letter,
                           struct str *out)
{
    char clause[3] = {'%', letter, '\0'};
    unsigned base = letter == 'd' ? 10 : letter == 'b' ? 2 : letter == 'o' ? 8 : 16;
    bool text = v->type == CEL_STRING || v->type == CEL_BYTES;
    if (base == 16 && text) {
        for (size_t i = 0; i < v->text.n; i++)
            str_appendf(out, letter == 'X' ? "%02X" : "%02x", (unsigned char)v->text.p[i]);
        return cel_spend_bytes(r, v->text.n);
    }
    if (v->type == CEL_BOOL && base == 2) {
        str_append(out, v->truth ? "1" : "0");
        return true;
    }
    if (v->type == CEL_UINT) {
        append_base(out, v->natural, base, letter == 'X');
        return true;
    }
    if (v->type == CEL_DOUBLE && base == 10 && (isnan(v->real) || isinf(v->real))) {
        str_append(out, isnan(v->real) ? "NaN" : v->real > 0 ? "Infinity" : "-Infinity");
        return true;
    }
    if (v->type != CEL_INT)
        return wrong(r, clause, v);
    str_append(out, v->integer < 0 ? "-" : "");
    append_base(out, v->integer < 0 ? 0 - (uint64_t)v->integer : (uint64_t)v->integer, base,
                letter == 'X');
    return true;
}

static bool append_real(struct cel_run *r, const struct cel_value *v, char letter, int digits,
                        struct str *out)
{
    char clause[3] = {'%', letter, '\0'};
    double d = v->type == CEL_DOUBLE ? v->real
               : v->type == CEL_INT  ? (double)v->integer
                                     : (double)v->natural;
    if (!cel_is_number(v))
        return wrong(r, clause, v);
    if (isnan(d) || isinf(d))
        str_append(out, isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
    else if (letter == 'f')
        str_appendf(out, "%.*f", digits, d);
    else
        str_appendf(out, "%.*e", digits, d);
    return true;
}

static bool clause(struct cel_run *r, const struct cel_value *v, char letter, int digits,
                   struct str *out)
{
    switch (letter) {
    case 's':
        return append(r, v, out, 0);
    case 'd':
    case 'b':
    case 'o':
    case 'x':
    case 'X':
        return append_integer(r, v, letter, out);
    case 'f':
    case 'e':
        return append_real(r, v, letter, digits, out);
    }
    return cel_fail(r, "could not parse formatting clause: unrecognized formatting clause \"%c\"",
                    letter);
}

static bool format(struct cel_run *r, const struct cel_value *args, size_t n, struct cel_value *ret)
{
    (void)n;
    _cleanup_(str_done) struct str out = {0};
    const struct cel_list *values = args[1].list;
    const char *at = args[0].text.p, *end = at + args[0].text.n;
    size_t used = 0;
    for (; at < end; at++) {
        if (*at != '%' || at[1] == '%') {
            at += *at == '%';
            str_append_c(&out, *at);
            continue;
        }
        int digits = 6;
        at++;
        if (*at == '.') {
            digits = (int)strtoul(at + 1, (char **)&at, 10);
            if (digits < 0 || digits > MOST_DIGITS)
                return cel_fail(r, "could not parse formatting clause: too many digits");
        }
        struct cel_value v;
        if (used >= values->n)
            return cel_fail(r, "index %zu out of range", used);
        if (!cel_spend(r, 1) || !cel_list_at(r, values, used++, &v) ||
            !clause(r, &v, *at, digits, &out))
            return false;
    }
    *ret = cel_make_string(r, str_get(&out), out.len);
    return cel_spend_bytes(r, args[0].text.n);
}

const struct cel_function cel_format_functions[] = {
    {"format", "ssL", format, true},
    {0},
};

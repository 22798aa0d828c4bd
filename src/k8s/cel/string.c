/*
 * Strings. Places in them are counted in characters; a string of ASCII letters, which most are, is
 * counted in one pass without decoding.
 */
#include <ctype.h>

#include "k8s/cel/string_impl.h"

int64_t cel_utf8_length(const char *p, size_t n)
{
    int64_t count = 0; /* bytes that do not continue a character */
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)p[i] & 0xc0) != 0x80;
    return count;
}

ssize_t cel_utf8_offset(const struct cel_bytes *s, int64_t place)
{
    int64_t seen = -1;
    if (place < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++) {
        seen += ((unsigned char)s->p[i] & 0xc0) != 0x80;
        if (seen == place)
            return (ssize_t)i;
    }
    return seen + 1 == place ? (ssize_t)s->n : -1;
}

FUNCTION(size)
{
    (void)n;
    if (args[0].type == CEL_STRING && !cel_spend_bytes(r, args[0].text.n))
        return false;
    *ret = cel_make_int(args[0].type == CEL_STRING ? cel_utf8_length(args[0].text.p, args[0].text.n)
                        : args[0].type == CEL_BYTES ? (int64_t)args[0].text.n
                        : args[0].type == CEL_LIST  ? (int64_t)args[0].list->n
                                                    : (int64_t)args[0].map->n);
    return true;
}

FUNCTION(starts_with)
{
    (void)n;
    const struct cel_bytes *s = &args[0].text, *t = &args[1].text;
    *ret = cel_make_bool(t->n <= s->n && memcmp(s->p, t->p, t->n) == 0);
    return cel_spend_bytes(r, t->n);
}

FUNCTION(ends_with)
{
    (void)n;
    const struct cel_bytes *s = &args[0].text, *t = &args[1].text;
    *ret = cel_make_bool(t->n <= s->n && memcmp(s->p + s->n - t->n, t->p, t->n) == 0);
    return cel_spend_bytes(r, t->n);
}

FUNCTION(contains)
{
    (void)n;
    const struct cel_bytes *s = &args[0].text, *t = &args[1].text;
    if (!cel_spend_bytes(r, s->n))
        return false;
    *ret = cel_make_bool(!t->n || memmem(s->p, s->n, t->p, t->n));
    return true;
}

static bool with_case(struct cel_run *r, const struct cel_bytes *s, int (*convert)(int),
                      struct cel_value *ret)
{
    if (!cel_spend_bytes(r, s->n))
        return false;
    char *copy = arena_copy(&r->arena, s->p, s->n);
    for (size_t i = 0; i < s->n; i++) {
        if ((unsigned char)copy[i] < 0x80)
            copy[i] = (char)convert((unsigned char)copy[i]);
    }
    *ret = (struct cel_value){.type = CEL_STRING, .text = {copy, s->n}};
    return true;
}

FUNCTION(lower)
{
    (void)n;
    return with_case(r, &args[0].text, tolower, ret);
}

FUNCTION(upper)
{
    (void)n;
    return with_case(r, &args[0].text, toupper, ret);
}

/* White space of Unicode. */
static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

FUNCTION(trim)
{
    (void)n;
    const struct cel_bytes *s = &args[0].text;
    size_t start = 0, end = 0;
    uint32_t c;
    bool any = false;
    if (!cel_spend_bytes(r, s->n))
        return false;
    for (size_t i = 0, length; i < s->n; i += length) {
        length = str_utf8(s->p + i, s->n - i, &c);
        length = length ? length : 1;
        if (is_space(c))
            continue;
        start = any ? start : i;
        end = i + length;
        any = true;
    }
    *ret = cel_make_string(r, s->p + start, end - start);
    return true;
}

FUNCTION(char_at)
{
    (void)n;
    const struct cel_bytes *s = &args[0].text;
    ssize_t at = cel_utf8_offset(s, args[1].integer);
    uint32_t c;
    if (at < 0)
        return cel_fail(r, "index out of range: %lld", (long long)args[1].integer);
    size_t length = (size_t)at < s->n ? str_utf8(s->p + at, s->n - (size_t)at, &c) : 0;
    *ret = cel_make_string(r, s->p + at, length);
    return cel_spend_bytes(r, s->n);
}

FUNCTION(substring)
{
    const struct cel_bytes *s = &args[0].text;
    int64_t from = args[1].integer, to = n == 3 ? args[2].integer : 0;
    ssize_t start = cel_utf8_offset(s, from);
    ssize_t end = n == 3 ? cel_utf8_offset(s, to) : (ssize_t)s->n;
    if (start < 0)
        return cel_fail(r, "index out of range: %lld", (long long)from);
    if (end < 0)
        return cel_fail(r, "index out of range: %lld", (long long)to);
    if (start > end)
        return cel_fail(r, "invalid substring range. start: %lld, end: %lld", (long long)from,
                        (long long)to);
    *ret = cel_make_string(r, s->p + start, (size_t)(end - start));
    return cel_spend_bytes(r, s->n);
}

FUNCTION(quote)
{
    (void)n;
    static const char special[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    const struct cel_bytes *s = &args[0].text;
    _cleanup_(str_done) struct str out = {0};
    if (!cel_spend_bytes(r, s->n))
        return false;
    str_append_c(&out, '"');
    for (size_t i = 0; i < s->n; i++) {
        const char *found = s->p[i] ? strchr(special, s->p[i]) : NULL;
        if (found)
            str_append_c(&out, '\\');
        str_append_c(&out, found ? letters[found - special] : s->p[i]);
    }
    str_append_c(&out, '"');
    *ret = cel_make_string(r, out.p, out.len);
    return true;
}

const struct cel_function cel_string_functions[] = {
    {"size", "is", size},
    {"size", "iy", size},
    {"size", "iL", size},
    {"size", "iM", size},
    {"size", "is", size, true},
    {"size", "iy", size, true},
    {"size", "iL", size, true},
    {"size", "iM", size, true},
    {"startsWith", "bss", starts_with, true},
    {"endsWith", "bss", ends_with, true},
    {"contains", "bss", contains, true},
    {"lowerAscii", "ss", lower, true},
    {"upperAscii", "ss", upper, true},
    {"trim", "ss", trim, true},
    {"charAt", "ssi", char_at, true},
    {"substring", "ssi", substring, true},
    {"substring", "ssii", substring, true},
    {"strings.quote", "ss", quote},
    {"indexOf", "iss", string_index_of, true},
    {"indexOf", "issi", string_index_of, true},
    {"lastIndexOf", "iss", string_last_index_of, true},
    {"lastIndexOf", "issi", string_last_index_of, true},
    {"replace", "ssss", string_replace, true},
    {"replace", "ssssi", string_replace, true},
    {"split", "Sss", string_split, true},
    {"split", "Sssi", string_split, true},
    {"join", "sL", string_join, true},
    {"join", "sLs", string_join, true},
    {"matches", "bss", string_matches, true},
    {"matches", "bss", string_matches},
    {"find", "sss", string_find, true},
    {"findAll", "Sss", string_find_all, true},
    {"findAll", "Sssi", string_find_all, true},
    {0},
};

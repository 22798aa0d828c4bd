/*
 * Functions that look for something in a string: another string, or a pattern.
 */
#include "k8s/cel/string_impl.h"

#define EXPORTED(name)                                                                             \
    bool name(struct cel_run *r, const struct cel_value *args, size_t n, struct cel_value *ret)

EXPORTED(string_index_of)
{
    const struct cel_bytes *s = &args[0].text, *t = &args[1].text;
    int64_t from = n == 3 ? args[2].integer : 0;
    ssize_t start = cel_utf8_offset(s, from);
    if (!cel_spend_bytes(r, s->n))
        return false;
    if (start < 0)
        return cel_fail(r, "index out of range: %lld", (long long)from);
    const char *found =
        t->n ? memmem(s->p + start, s->n - (size_t)start, t->p, t->n) : s->p + start;
    *ret = cel_make_int(found ? cel_utf8_length(s->p, (size_t)(found - s->p)) : -1);
    return true;
}

EXPORTED(string_last_index_of)
{
    const struct cel_bytes *s = &args[0].text, *t = &args[1].text;
    ssize_t last = n == 3 ? cel_utf8_offset(s, args[2].integer) : (ssize_t)s->n;
    if (!cel_spend_bytes(r, s->n))
        return false;
    if (last < 0)
        return cel_fail(r, "index out of range: %lld", (long long)args[2].integer);
    *ret = cel_make_int(-1);
    if (t->n > s->n)
        return true;
    size_t at = (size_t)last < s->n - t->n ? (size_t)last : s->n - t->n;
    for (;; at--) {
        if (memcmp(s->p + at, t->p, t->n) == 0) {
            *ret = cel_make_int(cel_utf8_length(s->p, at));
            return true;
        }
        if (at == 0)
            return true;
        if (!cel_spend_bytes(r, t->n))
            return false;
    }
}

/* The next place of `part`, between characters when it is empty; NULL. */
static const char *next_place(const struct cel_bytes *part, const char *at, const char *end,
                              bool first)
{
    if (part->n)
        return memmem(at, (size_t)(end - at), part->p, part->n);
    if (first)
        return at;
    uint32_t c;
    size_t length = at < end ? str_utf8(at, (size_t)(end - at), &c) : 0;
    return length ? at + length : NULL;
}

EXPORTED(string_replace)
{
    const struct cel_bytes *s = &args[0].text, *old = &args[1].text, *new = &args[2].text;
    int64_t limit = n == 4 ? args[3].integer : -1;
    const char *at = s->p, *end = s->p + s->n;
    _cleanup_(str_done) struct str out = {0};
    for (int64_t i = 0; limit < 0 || i < limit; i++) {
        const char *found = next_place(old, at, end, i == 0);
        if (!found)
            break;
        if (!cel_spend_bytes(r, (size_t)(found - at) + new->n + 10))
            return false;
        str_append_n(&out, at, (size_t)(found - at));
        str_append_n(&out, new->p, new->n);
        at = found + old->n;
    }
    str_append_n(&out, at, (size_t)(end - at));
    *ret = cel_make_string(r, str_get(&out), out.len);
    return cel_spend_bytes(r, s->n);
}

EXPORTED(string_split)
{
    const struct cel_bytes *s = &args[0].text, *by = &args[1].text;
    int64_t limit = n == 3 ? args[2].integer : -1;
    const char *at = s->p, *end = s->p + s->n;
    VEC(struct cel_value) parts = {0};
    bool paid = true;
    for (int64_t i = 1; limit != 0 && paid && (limit < 0 || i < limit); i++) {
        const char *found = next_place(by, at, end, false);
        if (!found || (!by->n && found == end))
            break;
        vec_push(&parts, cel_make_string(r, at, (size_t)(found - at)));
        at = found + by->n;
        paid = cel_spend(r, 1);
    }
    if (limit != 0 && paid && (by->n || s->n))
        vec_push(&parts, cel_make_string(r, at, (size_t)(end - at)));
    *ret = cel_make_list(r, parts.p, parts.len);
    vec_done(&parts);
    return paid && cel_spend_bytes(r, s->n);
}

EXPORTED(string_join)
{
    _cleanup_(str_done) struct str out = {0};
    for (size_t i = 0; i < args[0].list->n; i++) {
        struct cel_value v;
        if (!cel_list_at(r, args[0].list, i, &v))
            return false;
        if (v.type != CEL_STRING)
            return cel_no_overload(r);
        size_t between = n == 2 && i ? args[1].text.n : 0;
        if (!cel_spend_bytes(r, v.text.n + between + 10))
            return false;
        if (between)
            str_append_n(&out, args[1].text.p, between);
        str_append_n(&out, v.text.p, v.text.n);
    }
    *ret = cel_make_string(r, str_get(&out), out.len);
    return true;
}

/* The pattern of a call: compiled before, or now, when it is no constant; *ret_own is to be freed. */
static const struct pattern *pattern_of(struct cel_run *r, const struct cel_value *v,
                                        struct pattern **ret_own)
{
    struct err e = {0};
    if (r->pattern)
        return r->pattern;
    if (!cel_spend(r, 100 + v->text.n))
        return NULL;
    *ret_own = pattern_new(v->text.p, &e);
    if (!*ret_own)
        cel_fail(r, "invalid pattern: %.300s", e.msg);
    return *ret_own;
}

EXPORTED(string_matches)
{
    (void)n;
    _cleanup_(pattern_freep) struct pattern *own = NULL;
    const struct pattern *p = pattern_of(r, &args[1], &own);
    if (!p || !cel_spend(r, 10 + args[0].text.n))
        return false;
    enum pattern_match match = pattern_match(p, args[0].text.p, args[0].text.n);
    *ret = cel_make_bool(match == PATTERN_YES);
    if (match == PATTERN_TOO_HARD)
        return cel_spend(r, CEL_CALL_COST / 20) &&
               cel_fail(r, "the pattern takes too much work for this string");
    return true;
}

/* All places where a pattern is found, up to a limit; -1: all. */
static bool find(struct cel_run *r, const struct cel_value *args, int64_t limit,
                 struct cel_value *ret)
{
    _cleanup_(pattern_freep) struct pattern *own = NULL;
    const struct pattern *p = pattern_of(r, &args[1], &own);
    const struct cel_bytes *s = &args[0].text;
    VEC(struct cel_value) found = {0};
    bool good = p;
    for (size_t at = 0, start, end; good && at <= s->n && limit != 0; limit -= limit > 0) {
        good = cel_spend(r, 10 + (s->n - at));
        enum pattern_match match =
            good ? pattern_find(p, s->p, s->n, at, &start, &end) : PATTERN_NO;
        if (match == PATTERN_TOO_HARD)
            good = cel_fail(r, "the pattern takes too much work for this string");
        if (match != PATTERN_YES)
            break;
        vec_push(&found, cel_make_string(r, s->p + start, end - start));
        at = end > start ? end : end + 1;
        while (at < s->n && ((unsigned char)s->p[at] & 0xc0) == 0x80)
            at++;
    }
    *ret = cel_make_list(r, found.p, found.len);
    vec_done(&found);
    return good;
}

EXPORTED(string_find)
{
    (void)n;
    if (!find(r, args, 1, ret))
        return false;
    *ret = ret->list->n ? ret->list->items[0] : cel_make_string(r, "", 0);
    return true;
}

EXPORTED(string_find_all)
{
    return find(r, args, n == 3 ? args[2].integer : -1, ret);
}

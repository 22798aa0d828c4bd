/*
 * Literals: strings and bytes in all their quotes, and numbers.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "k8s/cel/impl.h"

struct quotes {
    const char *start; /* behind the quote */
    char quote;
    bool triple, raw, bytes;
};

/* Whether a string begins here: any of r and b, and a quote. */
static bool read_prefix(const char *at, struct quotes *q)
{
    *q = (struct quotes){0};
    for (int i = 0; i < 2; i++) {
        if (!q->raw && (*at == 'r' || *at == 'R'))
            q->raw = true, at++;
        else if (!q->bytes && (*at == 'b' || *at == 'B'))
            q->bytes = true, at++;
    }
    if (*at != '"' && *at != '\'')
        return false;
    q->quote = *at;
    q->triple = at[1] == *at && at[2] == *at;
    q->start = at + (q->triple ? 3 : 1);
    return true;
}

bool cel_at_string(const char *at)
{
    struct quotes q;
    return read_prefix(at, &q);
}

static void append_character(struct str *out, uint32_t c)
{
    if (c < 0x80) {
        str_append_c(out, (char)c);
    } else if (c < 0x800) {
        str_append_c(out, (char)(0xc0 | c >> 6));
        str_append_c(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        str_append_c(out, (char)(0xe0 | c >> 12));
        str_append_c(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_append_c(out, (char)(0x80 | (c & 0x3f)));
    } else {
        str_append_c(out, (char)(0xf0 | c >> 18));
        str_append_c(out, (char)(0x80 | (c >> 12 & 0x3f)));
        str_append_c(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_append_c(out, (char)(0x80 | (c & 0x3f)));
    }
}

/* So many digits of a base; false when there are not. */
static bool take_digits(const char **at, unsigned n, unsigned base, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < n; i++, (*at)++) {
        int c = tolower((unsigned char)**at);
        unsigned digit = isdigit(c)             ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 99;
        if (digit >= base)
            return false;
        *ret = *ret * base + digit;
    }
    return true;
}

/* One escape sequence, behind its backslash. */
static bool take_escape(const char **at, bool bytes, struct str *out)
{
    static const char letters[] = "abfnrtv\\'\"`?", meanings[] = "\a\b\f\n\r\t\v\\'\"`?";
    const char *found = **at ? strchr(letters, **at) : NULL;
    uint32_t c;
    if (found) {
        str_append_c(out, meanings[found - letters]);
        (*at)++;
        return true;
    }
    char kind = **at;
    bool octal = kind >= '0' && kind <= '3', wide = kind == 'u' || kind == 'U';
    if (!octal && kind != 'x' && kind != 'X' && !(wide && !bytes))
        return false;
    *at += octal ? 0 : 1;
    unsigned digits = octal ? 3 : kind == 'u' ? 4 : kind == 'U' ? 8 : 2;
    if (!take_digits(at, digits, octal ? 8 : 16, &c) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return false;
    if (bytes)
        str_append_c(out, (char)c);
    else
        append_character(out, c);
    return true;
}

static bool at_end(const struct quotes *q, const char *at)
{
    return *at == q->quote && (!q->triple || (at[1] == q->quote && at[2] == q->quote));
}

struct cel_node *cel_parse_string(struct cel_parser *p)
{
    struct quotes q;
    const char *start = p->at;
    _cleanup_(str_done) struct str text = {0};
    read_prefix(p->at, &q);
    for (p->at = q.start; !at_end(&q, p->at);) {
        if (!*p->at || (!q.triple && (*p->at == '\n' || *p->at == '\r')))
            return cel_fail_at(p->text, start, p->e, "Syntax error: the string does not end");
        if (*p->at == '\\' && !q.raw) {
            const char *escape = p->at++;
            if (!take_escape(&p->at, q.bytes, &text))
                return cel_fail_at(p->text, escape, p->e,
                                   "Syntax error: there is no such escape sequence");
        } else {
            str_append_c(&text, *p->at++);
        }
    }
    p->at += q.triple ? 3 : 1;
    uint32_t c;
    for (size_t i = 0, n; !q.bytes && i < text.len; i += n) {
        n = str_utf8(text.p + i, text.len - i, &c);
        if (!n)
            return cel_fail_at(p->text, start, p->e, "Syntax error: the string is no UTF-8");
    }
    const char *copy = arena_copy(&p->program->arena, str_get(&text), text.len);
    return cel_literal(
        p, start,
        (struct cel_value){.type = q.bytes ? CEL_BYTES : CEL_STRING, .text = {copy, text.len}});
}

/* How long a floating number is that begins here; 0 when it is none. */
static size_t double_length(const char *at)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(at, digits), whole = n;
    bool real = false;
    if (at[n] == '.' && isdigit((unsigned char)at[n + 1])) {
        real = true;
        n += 1 + strspn(at + n + 1, digits);
    }
    if ((at[n] == 'e' || at[n] == 'E') && (whole || real)) {
        size_t sign = at[n + 1] == '+' || at[n + 1] == '-' ? 1 : 0;
        size_t exponent = strspn(at + n + 1 + sign, digits);
        if (exponent)
            return n + 1 + sign + exponent;
    }
    return real ? n : 0;
}

/* A minus sign in front is part of an integer, because the smallest has no positive. */
struct cel_node *cel_parse_number(struct cel_parser *p)
{
    const char *start = p->at;
    bool negative = *p->at == '-';
    p->at += negative;
    p->at += negative ? strspn(p->at, " \t\r\n") : 0;
    size_t real = double_length(p->at);
    struct cel_value v = {.type = CEL_INT};
    char *end;
    if (real) {
        _cleanup_free_ char *copy = mem_strndup(p->at, real);
        v.type = CEL_DOUBLE;
        v.real = strtod(copy, NULL) * (negative ? -1 : 1);
        if (isinf(v.real))
            return cel_fail_at(p->text, start, p->e, "Syntax error: invalid double literal");
        p->at += real;
        return cel_literal(p, start, v);
    }
    bool hex = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
    errno = 0;
    unsigned long long value = strtoull(p->at + (hex ? 2 : 0), &end, hex ? 16 : 10);
    bool bad = errno || end == p->at + (hex ? 2 : 0) || (hex && !isxdigit((unsigned char)p->at[2]));
    p->at = end;
    if (*end == 'u' || *end == 'U') {
        p->at++;
        v.type = CEL_UINT;
        v.natural = value;
        bad |= negative;
    } else {
        bad |= value > (unsigned long long)INT64_MAX + (negative ? 1 : 0);
        v.integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    }
    if (bad || isalnum((unsigned char)*p->at) || *p->at == '_')
        return cel_fail_at(p->text, start, p->e, "Syntax error: invalid %s literal",
                           v.type == CEL_UINT ? "uint" : "int");
    return cel_literal(p, start, v);
}

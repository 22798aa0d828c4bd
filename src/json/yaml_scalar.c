/*
 * Which plain scalars are not strings. The rules are those of the reader in kubectl, so that a
 * manifest means the same to both: YAML 1.1 booleans with their one-letter forms, integers in four
 * bases with "_" between digits, an octal number by its leading zero. Sexagesimal numbers and dates
 * stay strings.
 */
#include <math.h>

#include "json/node.h"

enum { NUMBER_MAX = 512 }; /* a longer text is a string */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool word_in(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == len && memcmp(text, *words, len) == 0)
            return true;
    }
    return false;
}

static bool resolve_word(const char *text, size_t len, struct json_scalar *ret)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                        "True", "TRUE", "on",  "On",  "ON",  NULL};
    static const char *const falses[] = {"n",     "N",     "no",  "No",  "NO",  "false",
                                         "False", "FALSE", "off", "Off", "OFF", NULL};
    static const char *const others[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",
                                         ".INF",  "+.inf", "+.Inf", "+.INF", "-.inf",
                                         "-.Inf", "-.INF", NULL};
    if (len > 5)
        return false;
    if (word_in(text, len, nulls)) {
        ret->type = JSON_SCALAR_NULL;
    } else if (word_in(text, len, trues)) {
        ret->type = JSON_SCALAR_BOOL;
        ret->boolean = true;
    } else if (word_in(text, len, falses)) {
        ret->type = JSON_SCALAR_BOOL;
    } else if (word_in(text, len, others)) {
        ret->type = JSON_SCALAR_NOT_FINITE;
    } else {
        return false;
    }
    return true;
}

/* The value of one digit, 99 for none. */
static unsigned digit_value(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
}

/* p is terminated and has no "_". What is beyond 64 bits is no integer, and maybe a real. */
static bool resolve_int(const char *p, struct json_scalar *ret)
{
    bool sign = *p == '+' || *p == '-', negative = *p == '-';
    unsigned base = 10;

    p += sign;
    if (*p == '0' && p[1]) {
        char c = (char)(p[1] | 0x20);
        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        p += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
    }
    if (!*p)
        return false;
    uint64_t value = 0;
    for (; *p; p++) {
        unsigned digit = digit_value(*p);
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value <= INT64_MAX) {
        ret->type = JSON_SCALAR_INT;
        ret->integer = negative ? -(int64_t)value : (int64_t)value;
    } else if (negative && value == (uint64_t)INT64_MAX + 1) {
        ret->type = JSON_SCALAR_INT;
        ret->integer = INT64_MIN;
    } else if (!sign) {
        ret->type = JSON_SCALAR_REAL;
        ret->real = (double)value;
    } else {
        return false;
    }
    return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?; a number past the range is a string. */
static bool resolve_real(const char *p, struct json_scalar *ret)
{
    const char *start = p;
    p += *p == '+' || *p == '-';
    if (*p == '.' ? !is_digit(p[1]) : !is_digit(*p))
        return false;
    while (is_digit(*p))
        p++;
    p += *p == '.';
    while (is_digit(*p))
        p++;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p))
            return false;
        while (is_digit(*p))
            p++;
    }
    double value = strtod(start, NULL);
    if (*p || !isfinite(value))
        return false;
    ret->type = JSON_SCALAR_REAL;
    ret->real = value;
    return true;
}

struct json_scalar json_scalar_resolve(const char *text, size_t len)
{
    struct json_scalar s = {JSON_SCALAR_STRING, false, 0, 0};
    char c = len ? *text : '\0', buf[NUMBER_MAX];

    if (len == 0 || strchr("yYnNtTfFoO~+-.", c)) {
        if (resolve_word(text, len, &s))
            return s;
    }
    if (!is_digit(c) && c != '+' && c != '-' && c != '.')
        return s;
    if (len >= sizeof(buf) || memchr(text, '\0', len))
        return s;

    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        /* "_" may stand anywhere in what starts with a digit, and only between digits after ".". */
        if (text[i] != '_')
            buf[n++] = text[i];
        else if (c == '.' && (!is_digit(text[i - 1]) || i + 1 == len || !is_digit(text[i + 1])))
            return s;
    }
    buf[n] = '\0';
    if (c == '.' || !resolve_int(buf, &s))
        resolve_real(buf, &s);
    return s;
}

/* Only characters of the set from `from` on. */
static bool all_of(const char *text, size_t len, size_t from, const char *set)
{
    for (; from < len; from++) {
        if (!text[from] || !strchr(set, text[from]))
            return false;
    }
    return true;
}

/* Decimal in all spellings: 1_000, 1., 1e3, 1e400, 1.5_0; not 1.2.3, 10.0.0.1 or 1-2. */
static bool is_decimal(const char *text, size_t len)
{
    bool dot = false, exponent = false;
    for (size_t i = 0; i < len; i++) {
        if (is_digit(text[i]) || text[i] == '_')
            continue;
        if (text[i] == '.' && !dot && !exponent) {
            dot = true;
        } else if ((text[i] == 'e' || text[i] == 'E') && !exponent) {
            exponent = true;
            i += i + 1 < len && (text[i + 1] == '+' || text[i + 1] == '-');
        } else {
            return false;
        }
    }
    return true;
}

bool json_scalar_is_risky(const char *text, size_t len)
{
    if (json_scalar_resolve(text, len).type != JSON_SCALAR_STRING)
        return true;
    if (len == 1 && *text == '=') /* the "default value" of YAML 1.1 */
        return true;
    if (len == 2 && memcmp(text, "<<", 2) == 0)
        return true;

    size_t i = *text == '+' || *text == '-';
    if (i == len || (!is_digit(text[i]) && text[i] != '.'))
        return false;
    /* 0o17 is an integer in 1.2; so are all others with a base and any "_" to some readers. */
    if (len - i > 2 && text[i] == '0' && strchr("xXoObB", text[i + 1]))
        return all_of(text, len, i + 2, "0123456789abcdefABCDEF_");
    /* 1:30 is ninety in 1.1, and 2001-01-01 a date. */
    if (all_of(text, len, i, "0123456789_:.") && memchr(text, ':', len))
        return true;
    if (len >= 8 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]) &&
        is_digit(text[3]) && text[4] == '-')
        return true;
    return is_decimal(text + i, len - i);
}

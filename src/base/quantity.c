/*
 * A number's text is taken apart once, without making a value of it:
 *
 *     -1234.56Ki    negative, digits "1234" and "56", 2^10
 *     1234.56e-3    digits "1234" and "56", decimal point moved by -3
 *
 * The decimal point, moved by the exponent and by nine more places for nano, splits the digits in
 * two: those in front make an integer, those behind can only add a carry and round it up. Both are
 * walked once, so the work grows with the length of the text and never with the exponent.
 */
#include "base/quantity.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

typedef unsigned __int128 uint128;

static const uint128 NANO = 1000000000;
static const uint128 LIMIT = (uint128)INT64_MAX * 1000000000;

static const struct suffix {
    char text[3];
    enum quantity_format format;
    int exponent; /* of ten or, for Ki and its family, of two */
} suffixes[] = {
    {"n", QUANTITY_DECIMAL_SI, -9}, {"u", QUANTITY_DECIMAL_SI, -6}, {"m", QUANTITY_DECIMAL_SI, -3},
    {"", QUANTITY_DECIMAL_SI, 0},   {"k", QUANTITY_DECIMAL_SI, 3},  {"M", QUANTITY_DECIMAL_SI, 6},
    {"G", QUANTITY_DECIMAL_SI, 9},  {"T", QUANTITY_DECIMAL_SI, 12}, {"P", QUANTITY_DECIMAL_SI, 15},
    {"E", QUANTITY_DECIMAL_SI, 18}, {"Ki", QUANTITY_BINARY_SI, 10}, {"Mi", QUANTITY_BINARY_SI, 20},
    {"Gi", QUANTITY_BINARY_SI, 30}, {"Ti", QUANTITY_BINARY_SI, 40}, {"Pi", QUANTITY_BINARY_SI, 50},
    {"Ei", QUANTITY_BINARY_SI, 60},
};

/* The parts of a text; the digits stay where they are. */
struct parts {
    bool negative;
    const char *whole, *fraction;
    size_t nwhole, nfraction;
    enum quantity_format format;
    int64_t decimal; /* places that the decimal point moves right */
    int binary;      /* then times two to this */
};

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* Digits after e or E. What is absurd stays absurd, but small enough to add a length to. */
static bool parse_exponent(const char *s, int64_t *ret_exponent)
{
    bool negative = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    size_t n = count_digits(s);
    if (n == 0 || s[n] != '\0')
        return false;

    int64_t value = 0;
    for (; *s; s++) {
        if (value < INT64_MAX / 100)
            value = value * 10 + (*s - '0');
    }
    *ret_exponent = negative ? -value : value;
    return true;
}

static bool parse_suffix(const char *s, struct parts *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (strcmp(suffixes[i].text, s) != 0)
            continue;
        p->format = suffixes[i].format;
        if (p->format == QUANTITY_BINARY_SI)
            p->binary = suffixes[i].exponent;
        else
            p->decimal = suffixes[i].exponent;
        return true;
    }
    p->format = QUANTITY_DECIMAL_EXP;
    return (*s == 'e' || *s == 'E') && parse_exponent(s + 1, &p->decimal);
}

static bool split(const char *s, struct parts *p)
{
    *p = (struct parts){.negative = *s == '-'};
    if (*s == '-' || *s == '+')
        s++;
    p->whole = s;
    p->nwhole = count_digits(s);
    s += p->nwhole;
    if (*s == '.') {
        p->fraction = ++s;
        p->nfraction = count_digits(s);
        s += p->nfraction;
    }
    return p->nwhole + p->nfraction > 0 && parse_suffix(s, p);
}

/* The digit at a place counted from the first, as if zeros went on for ever after the last. */
static unsigned digit_at(const struct parts *p, size_t i)
{
    if (i < p->nwhole)
        return (unsigned)(p->whole[i] - '0');
    i -= p->nwhole;
    return i < p->nfraction ? (unsigned)(p->fraction[i] - '0') : 0;
}

/* The magnitude in nano, rounded up. False when it lies past the limit. */
static bool evaluate(const struct parts *p, uint128 *ret_nano)
{
    size_t ndigits = p->nwhole + p->nfraction;
    int64_t cut = (int64_t)p->nwhole + p->decimal + 9;

    /*
     * Behind the cut, last digit first: what a multiplication by hand carries over the point.
     * Without a power of two nothing is carried, so zeros between point and digits do not matter.
     */
    size_t behind = cut <= 0 ? 0 : (uint64_t)cut < ndigits ? (size_t)cut : ndigits;
    uint64_t carry = 0;
    bool rest = false;
    for (size_t i = ndigits; i-- > behind;) {
        uint64_t t = ((uint64_t)digit_at(p, i) << p->binary) + carry; /* < 10 * 2^60 */
        rest |= t % 10 != 0;
        carry = t / 10;
    }

    uint128 nano = 0;
    for (int64_t i = 0; i < cut && (nano != 0 || (uint64_t)i < ndigits); i++) {
        nano = nano * 10 + digit_at(p, (size_t)i);
        if (nano > LIMIT >> p->binary)
            return false;
    }
    nano = (nano << p->binary) + carry + rest;
    *ret_nano = nano;
    return nano <= LIMIT;
}

/* Shows as much of a hostile text as a person needs to recognise it. */
#define SHOWN      "\"%.*s%s\""
#define SHOW(text) (int)str_cut(text, 40), text, strnlen(text, 41) > 40 ? "..." : ""

int quantity_parse(const char *text, struct quantity *ret_q, struct err *e)
{
    struct parts parts;
    if (!split(text, &parts))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       SHOWN " is not a quantity: write a number with at most one suffix of "
                             "n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent, "
                             "such as 100Gi, 1.5Ti, 250m or 1e3",
                       SHOW(text));
    uint128 nano;
    if (!evaluate(&parts, &nano))
        return err_set(e, ERR_OUT_OF_RANGE, "OutOfRange",
                       SHOWN " is too large for a quantity: write one between -(2^63-1) and 2^63-1",
                       SHOW(text));

    /* Below one, two's powers say nothing; Kubernetes forgets them here and so sums agree. */
    if (parts.format == QUANTITY_BINARY_SI && nano > 0 && nano < NANO)
        parts.format = QUANTITY_DECIMAL_SI;
    *ret_q = (struct quantity){
        .nano = parts.negative ? -(__int128)nano : (__int128)nano,
        .format = parts.format,
    };
    return 0;
}

static uint128 magnitude(const struct quantity *q)
{
    return q->nano < 0 ? -(uint128)q->nano : (uint128)q->nano;
}

static const char *suffix_text(enum quantity_format format, int exponent)
{
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (suffixes[i].format == format && suffixes[i].exponent == exponent)
            return suffixes[i].text;
    }
    return "";
}

/* Puts text in front of what is there; out is where that begins. */
static char *prepend(char *out, const char *text)
{
    for (size_t n = strlen(text); n > 0;)
        *--out = text[--n];
    return out;
}

static char *prepend_number(char *out, uint128 value)
{
    do
        *--out = (char)('0' + (int)(value % 10));
    while ((value /= 10) != 0);
    return out;
}

char *quantity_format(const struct quantity *q, char buf[QUANTITY_TEXT_MAX])
{
    uint128 value = magnitude(q);
    enum quantity_format format = q->format;
    if (format == QUANTITY_BINARY_SI && (value < 1024 * NANO || !quantity_is_whole(q)))
        format = QUANTITY_DECIMAL_SI;

    bool binary = format == QUANTITY_BINARY_SI;
    if (binary)
        value /= NANO;
    uint128 factor = binary ? 1024 : 1000;
    int exponent = binary || value == 0 ? 0 : -9;
    for (; value != 0 && value % factor == 0; value /= factor)
        exponent += binary ? 10 : 3;

    char *end = buf + (QUANTITY_TEXT_MAX - 1), *out = end;
    *end = '\0';
    if (format == QUANTITY_DECIMAL_EXP && exponent != 0) {
        out = prepend_number(out, (uint128)(exponent < 0 ? -exponent : exponent));
        out = prepend(out, exponent < 0 ? "e-" : "e");
    } else {
        out = prepend(out, suffix_text(format, exponent));
    }
    out = prepend_number(out, value);
    if (q->nano < 0)
        out = prepend(out, "-");
    return memmove(buf, out, (size_t)(end - out) + 1);
}

struct quantity quantity_from_int(int64_t units, enum quantity_format format)
{
    return (struct quantity){.nano = (__int128)units * (__int128)NANO, .format = format};
}

bool quantity_is_whole(const struct quantity *q)
{
    return magnitude(q) % NANO == 0;
}

int64_t quantity_to_int(const struct quantity *q)
{
    __int128 units = (__int128)((magnitude(q) + NANO - 1) / NANO);
    return (int64_t)(q->nano < 0 ? -units : units);
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    return (a->nano > b->nano) - (a->nano < b->nano);
}

int quantity_sign(const struct quantity *q)
{
    return (q->nano > 0) - (q->nano < 0);
}

int quantity_add(const struct quantity *a, const struct quantity *b, struct quantity *ret_q,
                 struct err *e)
{
    struct quantity sum = {.nano = a->nano + b->nano, .format = a->format};
    if (magnitude(&sum) > LIMIT) {
        char left[QUANTITY_TEXT_MAX], right[QUANTITY_TEXT_MAX];
        return err_set(e, ERR_OUT_OF_RANGE, "OutOfRange",
                       "the sum of %s and %s is past the limit of a quantity, 2^63-1",
                       quantity_format(a, left), quantity_format(b, right));
    }
    *ret_q = sum;
    return 0;
}

int quantity_sub(const struct quantity *a, const struct quantity *b, struct quantity *ret_q,
                 struct err *e)
{
    struct quantity negated = {.nano = -b->nano, .format = b->format};
    return quantity_add(a, &negated, ret_q, e);
}

int quantity_parse_bytes(const char *text, uint64_t *ret_bytes, struct err *e)
{
    struct quantity q = {0};
    if (quantity_parse(text, &q, e) < 0)
        return -1;
    if (q.nano < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       SHOWN " is negative: write a size of zero or more, such as 10Gi",
                       SHOW(text));
    if (!quantity_is_whole(&q))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       SHOWN " is not a whole number of bytes: write a size such as 10Gi or 1.5Ti",
                       SHOW(text));
    *ret_bytes = (uint64_t)quantity_to_int(&q);
    return 0;
}

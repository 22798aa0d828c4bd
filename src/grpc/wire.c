#include "grpc/wire.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static const struct {
    char letter;
    int64_t ns;
} units[] = {
    {'n', 1},          {'u', 1000},        {'m', 1000000},
    {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000},
};

enum { DIGITS = 8 };

bool grpc_parse_timeout(const char *text, size_t n, int64_t *ret_ns)
{
    int64_t value = 0;
    if (n < 2 || n > DIGITS + 1)
        return false;
    for (size_t i = 0; i + 1 < n; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (text[i] - '0');
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (units[i].letter != text[n - 1])
            continue;
        if (__builtin_mul_overflow(value, units[i].ns, ret_ns))
            *ret_ns = INT64_MAX;
        return true;
    }
    return false;
}

void grpc_format_timeout(int64_t ns, char ret[16])
{
    static const int64_t most = 99999999;
    size_t u = 0;
    while (u + 1 < sizeof(units) / sizeof(*units) && (ns - 1) / units[u].ns + 1 > most)
        u++;
    int64_t value = (ns - 1) / units[u].ns + 1;
    snprintf(ret, 16, "%" PRId64 "%c", value < most ? value : most, units[u].letter);
}

void grpc_encode_message(const char *text, struct str *out)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c > '~' || c == '%')
            str_appendf(out, "%%%02X", c);
        else
            str_append_c(out, (char)c);
    }
}

static int hex_value(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

void grpc_decode_message(const char *text, size_t n, struct str *out)
{
    for (size_t i = 0; i < n; i++) {
        int high = text[i] == '%' && n - i > 2 ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        bool escape = low >= 0 && high * 16 + low; /* a NUL would end the text */
        str_append_c(out, escape ? (char)(high * 16 + low) : text[i]);
        i += escape ? 2 : 0;
    }
}

int grpc_take_message(const struct str *body, size_t from, size_t most, const uint8_t **ret_bytes,
                      size_t *ret_n, struct err *e)
{
    const uint8_t *p = (const uint8_t *)body->p + from;
    size_t n = body->len - from;
    if (n && p[0] > 1)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadMessage", "a message begins with the flag %u",
                       p[0]);
    if (n && p[0])
        return err_set(e, ERR_UNIMPLEMENTED, "Compressed",
                       "the message is compressed: send it with grpc-encoding identity");
    if (n < GRPC_PREFIX)
        return 0;
    size_t length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (length > most)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "TooLarge",
                       "the message has %zu bytes, more than the %zu that are taken", length, most);
    if (n - GRPC_PREFIX < length)
        return 0;
    *ret_bytes = p + GRPC_PREFIX;
    *ret_n = length;
    return 1;
}

void grpc_put_prefix(struct str *out, size_t n)
{
    const uint8_t prefix[GRPC_PREFIX] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
                                         (uint8_t)(n >> 8), (uint8_t)n};
    str_append_n(out, prefix, sizeof(prefix));
}

enum err_code grpc_parse_status(const char *text, size_t n)
{
    unsigned value = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)text[i]) || n > 2)
            return ERR_UNKNOWN;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return n && value <= ERR_UNAUTHENTICATED ? (enum err_code)value : ERR_UNKNOWN;
}

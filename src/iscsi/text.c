#include "iscsi/text.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/mem.h"

static bool valid_key(const char *key, size_t n)
{
    if (!n || n > ISCSI_KEY_MAX || !isalpha((unsigned char)key[0]))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)key[i];
        if (!isalnum(c) && !strchr(".-+@_#", c))
            return false;
    }
    return true;
}

bool iscsi_text_next(char *text, size_t n, size_t *at, const char **ret_key, const char **ret_value,
                     bool *ret_bad)
{
    while (*at < n && !text[*at])
        ++*at;
    if (*at >= n)
        return false;
    char *pair = text + *at;
    size_t length = strnlen(pair, n - *at);
    char *equals = memchr(pair, '=', length);
    if (!equals || !valid_key(pair, (size_t)(equals - pair))) {
        *ret_bad = true;
        return false;
    }
    *equals = '\0';
    *ret_key = pair;
    *ret_value = equals + 1;
    *at += length + 1;
    return true;
}

void iscsi_text_add(struct str *out, const char *key, const char *value)
{
    str_append(out, key);
    str_append_c(out, '=');
    str_append(out, value);
    str_append_c(out, '\0');
}

void iscsi_text_add_number(struct str *out, const char *key, uint32_t value)
{
    str_appendf(out, "%s=%u", key, value);
    str_append_c(out, '\0');
}

bool iscsi_text_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

bool iscsi_text_number(const char *text, uint32_t least, uint32_t most, uint32_t *ret)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text;
    if (!isxdigit((unsigned char)*digits) || strlen(digits) > 10)
        return false;
    char *end;
    unsigned long long v = strtoull(digits, &end, hex ? 16 : 10);
    if (*end || v < least || v > most)
        return false;
    *ret = (uint32_t)v;
    return true;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t parse_hex(const char *text, uint8_t *out, size_t room)
{
    size_t digits = strlen(text), n = (digits + 1) / 2, at = 0;
    if (!digits || n > room)
        return 0;
    memset(out, 0, n);
    for (size_t i = digits % 2; at < digits; at++, i++) {
        int v = nibble(text[at]);
        if (v < 0)
            return 0;
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | v);
    }
    return n;
}

size_t iscsi_text_binary(const char *text, uint8_t *out, size_t room)
{
    if (text[0] != '0')
        return 0;
    if (text[1] == 'x' || text[1] == 'X')
        return parse_hex(text + 2, out, room);
    if (text[1] != 'b' && text[1] != 'B')
        return 0;
    _cleanup_(str_done) struct str bytes = {0};
    if (!base64_parse(text + 2, strlen(text + 2), BASE64_STD, &bytes) || bytes.len > room)
        return 0;
    if (bytes.len)
        memcpy(out, bytes.p, bytes.len);
    return bytes.len;
}

void iscsi_text_add_binary(struct str *out, const char *key, const uint8_t *bytes, size_t n)
{
    str_appendf(out, "%s=0x", key);
    for (size_t i = 0; i < n; i++)
        str_appendf(out, "%02x", bytes[i]);
    str_append_c(out, '\0');
}

bool iscsi_name_valid(const char *name)
{
    size_t n = strlen(name);
    if (n < 5 || n > ISCSI_NAME_MAX ||
        !(str_starts_with(name, "iqn.") || str_starts_with(name, "eui.") ||
          str_starts_with(name, "naa.")))
        return false;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        if (*c < 0x80 && !isalnum(*c) && !strchr(".-:_", *c))
            return false;
    }
    return true;
}

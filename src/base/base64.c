#include "base/base64.h"

#include <stdint.h>

static const char letters[][65] = {
    [BASE64_STD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

void base64_format(const void *bytes, size_t n, enum base64_kind kind, struct str *out)
{
    const uint8_t *p = bytes;
    for (; n; p += n < 3 ? n : 3, n -= n < 3 ? n : 3) {
        uint32_t group = (uint32_t)p[0] << 16;
        group |= n > 1 ? (uint32_t)p[1] << 8 : 0;
        group |= n > 2 ? p[2] : 0;
        size_t used = n < 3 ? n + 1 : 4;
        for (size_t i = 0; i < 4; i++) {
            if (i < used)
                str_append_c(out, letters[kind][group >> (18 - 6 * i) & 63]);
            else if (kind == BASE64_STD)
                str_append_c(out, '=');
        }
    }
}

/* Its place among the letters, -1 when it is none. */
static int value_of(char c, enum base64_kind kind)
{
    const char *found = c ? strchr(letters[kind], c) : NULL;
    return found ? (int)(found - letters[kind]) : -1;
}

bool base64_parse(const char *text, size_t n, enum base64_kind kind, struct str *out)
{
    size_t start = out->len;
    if (kind == BASE64_STD) {
        if (n % 4)
            return false;
        for (int i = 0; i < 2 && n && text[n - 1] == '='; i++)
            n--;
    }
    uint32_t group = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++) {
        int value = value_of(text[i], kind);
        if (value < 0) {
            str_truncate(out, start);
            return false;
        }
        group = group << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            str_append_c(out, (char)(group >> bits & 0xff));
        }
    }
    if (bits < 6 && !(group & ((1U << bits) - 1)))
        return true;
    str_truncate(out, start);
    return false;
}

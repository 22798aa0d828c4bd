#include "base/uuid.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"

struct uuid uuid_random(void)
{
    struct uuid u;
    /* Soon after boot it waits for the kernel to gather entropy; no signal cuts that short. */
    if (getentropy(u.bytes, sizeof(u.bytes)) < 0)
        abort();
    u.bytes[6] = (uint8_t)((u.bytes[6] & 0x0f) | 0x40); /* version 4 */
    u.bytes[8] = (uint8_t)((u.bytes[8] & 0x3f) | 0x80); /* the variant of RFC 4122 */
    return u;
}

static bool dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

char *uuid_format(const struct uuid *u, char buf[UUID_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    char *out = buf;
    for (size_t i = 0; i < sizeof(u->bytes); i++) {
        if (dash_before(i))
            *out++ = '-';
        *out++ = digits[u->bytes[i] >> 4];
        *out++ = digits[u->bytes[i] & 15];
    }
    *out = '\0';
    return buf;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool parse(const char *s, struct uuid *u)
{
    for (size_t i = 0; i < sizeof(u->bytes); i++, s += 2) {
        if (dash_before(i) && *s++ != '-')
            return false;
        int high = hex_value(s[0]);
        int low = high < 0 ? -1 : hex_value(s[1]);
        if (low < 0)
            return false;
        u->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return *s == '\0';
}

int uuid_from_text(const char *text, struct uuid *ret_u, struct err *e)
{
    struct uuid u;
    if (!parse(text, &u))
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                       "\"%.*s%s\" is not a UUID: write one such as "
                       "123e4567-e89b-42d3-a456-426614174000",
                       (int)str_cut(text, 40), text, strnlen(text, 41) > 40 ? "..." : "");
    *ret_u = u;
    return 0;
}

struct uuid uuid_of_name(const char *name)
{
    struct uuid u;
    if (parse(name, &u))
        return u;
    /* FNV-1a, of 128 bits: enough to tell names apart, and no secret. */
    unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
    const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * prime;
    for (size_t i = 0; i < sizeof(u.bytes); i++)
        u.bytes[i] = (uint8_t)(hash >> 8 * i);
    u.bytes[6] = (uint8_t)((u.bytes[6] & 0x0f) | 0x80); /* version 8: of one's own making */
    u.bytes[8] = (uint8_t)((u.bytes[8] & 0x3f) | 0x80);
    return u;
}

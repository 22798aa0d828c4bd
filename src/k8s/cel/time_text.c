/*
 * Times and durations as text: RFC 3339, and what Go writes, 1h2m3.5s.
 */
#include <ctype.h>
#include <inttypes.h>

#include "base/rfc3339.h"
#include "k8s/cel/impl.h"

bool cel_time_parse(const char *text, bool date, struct cel_time *ret)
{
    struct timespec t;
    _cleanup_(str_done) struct str whole = {0};
    str_append(&whole, text);
    if (date)
        str_append(&whole, "T00:00:00Z");
    if (rfc3339_parse(str_get(&whole), &t, NULL) < 0)
        return false;
    *ret = (struct cel_time){t.tv_sec, (int32_t)t.tv_nsec};
    return true;
}

void cel_time_format(struct cel_time t, struct str *out)
{
    char text[RFC3339_MAX];
    struct timespec when = {.tv_sec = t.seconds, .tv_nsec = t.nanos};
    rfc3339_format(when, RFC3339_NANO, text);
    size_t n = strlen(text) - 1; /* without the Z: zeros that say nothing go, and their point */
    while (n > 0 && text[n - 1] == '0' && strchr(text, '.'))
        n--;
    n -= n > 0 && text[n - 1] == '.';
    str_append_n(out, text, n);
    str_append_c(out, 'Z');
}

static const struct unit {
    const char *name;
    int64_t ns;
} units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000},
    {"\xce\xbcs", 1000},
    {"ms", 1000000},
    {"s", 1000000000},
    {"m", (int64_t)60 * 1000000000},
    {"h", (int64_t)3600 * 1000000000},
    /* What schemas take beside what Go does. */
    {"nanos", 1},
    {"micros", 1000},
    {"millis", 1000000},
    {"sec", 1000000000},
    {"secs", 1000000000},
    {"second", 1000000000},
    {"seconds", 1000000000},
    {"min", (int64_t)60 * 1000000000},
    {"mins", (int64_t)60 * 1000000000},
    {"minute", (int64_t)60 * 1000000000},
    {"minutes", (int64_t)60 * 1000000000},
    {"hr", (int64_t)3600 * 1000000000},
    {"hrs", (int64_t)3600 * 1000000000},
    {"hour", (int64_t)3600 * 1000000000},
    {"hours", (int64_t)3600 * 1000000000},
    {"d", (int64_t)86400 * 1000000000},
    {"day", (int64_t)86400 * 1000000000},
    {"days", (int64_t)86400 * 1000000000},
    {"w", (int64_t)7 * 86400 * 1000000000},
    {"week", (int64_t)7 * 86400 * 1000000000},
    {"weeks", (int64_t)7 * 86400 * 1000000000},
};

enum { GO_UNITS = 8 };

static const struct unit *take_unit(const char **at, bool words)
{
    *at += words ? strspn(*at, " ") : 0;
    for (size_t i = 0; i < (words ? ARRAY_SIZE(units) : GO_UNITS); i++) {
        size_t n = strlen(units[i].name);
        if (str_starts_with(*at, units[i].name) && !isalpha((unsigned char)(*at)[n])) {
            *at += n;
            return &units[i];
        }
    }
    return NULL;
}

/* One number and its unit, added to *total. */
static bool take_part(const char **at, bool words, __int128 *total)
{
    __int128 number = 0, scale = 1;
    bool any = false, point = false;
    for (; isdigit((unsigned char)**at) || (**at == '.' && !point); (*at)++) {
        if (**at == '.') {
            point = true;
            continue;
        }
        any = true;
        if (point && scale >= 1000000000000000) /* finer than a nanosecond of an hour */
            continue;
        number = number * 10 + (**at - '0');
        scale *= point ? 10 : 1;
        if (number > (__int128)INT64_MAX * scale)
            return false;
    }
    const struct unit *u = any ? take_unit(at, words) : NULL;
    if (!u)
        return false;
    *total += number * u->ns / scale;
    return *total <= (__int128)INT64_MAX + 1;
}

bool cel_duration_parse(const char *text, bool words, int64_t *ret_ns)
{
    __int128 total = 0;
    bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (str_eq(text, "0")) {
        *ret_ns = 0;
        return true;
    }
    do {
        if (!take_part(&text, words, &total))
            return false;
    } while (*text);
    if (total > (__int128)INT64_MAX + negative)
        return false;
    *ret_ns = (int64_t)(negative ? -total : total);
    return true;
}

/* As CEL has it, in seconds. */
void cel_duration_format(int64_t ns, struct str *out)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char text[48];
    int n = snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "",
                     size / 1000000000, size % 1000000000);
    while (n > 0 && text[n - 1] == '0')
        n--;
    n -= n > 0 && text[n - 1] == '.';
    str_append_n(out, text, (size_t)n);
    str_append_c(out, 's');
}

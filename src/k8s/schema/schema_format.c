/*
 * The formats of schemas. Those that are not here are not checked, as Kubernetes does with formats
 * it does not know.
 */
#include <arpa/inet.h>

#include "base/rfc3339.h"
#include "k8s/schema/schema_impl.h"

struct schema_format {
    const char *name;
    bool (*check)(const char *text);
    json_int_t min, max; /* of integers, when min < max */
};

static bool is_hex(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdefABCDEF") >= n;
}

static bool is_date_time(const char *text)
{
    return rfc3339_parse(text, &(struct timespec){0}, NULL) == 0;
}

static bool is_date(const char *text)
{
    _cleanup_free_ char *time = mem_printf("%.32sT00:00:00Z", text);
    return strlen(text) == strlen("2006-01-02") && is_date_time(time);
}

/* How much of the text is a decimal number; 0: none. */
static size_t number_length(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    if (whole + part == 0)
        return 0;
    return whole + part + (text[whole] == '.');
}

/* Go's durations, 1h30m, -1.5h, 300ms, and the words that Kubernetes takes for them: 3 days. */
static bool is_duration(const char *text)
{
    static const char *const units[] = {"ns",
                                        "us",
                                        "µs",
                                        "μs",
                                        "ms",
                                        "s",
                                        "m",
                                        "h",
                                        "d",
                                        "w",
                                        "nanos",
                                        "micros",
                                        "millis",
                                        "sec",
                                        "secs",
                                        "min",
                                        "mins",
                                        "hr",
                                        "hrs",
                                        "second",
                                        "seconds",
                                        "minute",
                                        "minutes",
                                        "hour",
                                        "hours",
                                        "day",
                                        "days",
                                        "wk",
                                        "wks",
                                        "week",
                                        "weeks",
                                        "nanosecond",
                                        "nanoseconds",
                                        "microsecond",
                                        "microseconds",
                                        "millisecond",
                                        "milliseconds",
                                        NULL};
    text += *text == '-' || *text == '+';
    if (str_eq(text, "0"))
        return true;
    if (!*text)
        return false;
    while (*text) {
        size_t n = number_length(text);
        if (n == 0)
            return false;
        text += n;
        text += strspn(text, " ");
        char unit[16];
        n = strcspn(text, "0123456789. ");
        if (n == 0 || n >= sizeof(unit))
            return false;
        memcpy(unit, text, n);
        unit[n] = '\0';
        if (!str_in(unit, units))
            return false;
        text += n;
        text += strspn(text, " ");
    }
    return true;
}

static bool is_byte(const char *text)
{
    size_t n = strlen(text);
    size_t body = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    return n % 4 == 0 && n - body <= 2 && strspn(text + body, "=") == n - body;
}

/* Hexadecimal digits with or without hyphens between them; `version` 0: any. */
static bool is_uuid_of(const char *text, char version)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (!is_hex(text, groups[i]) || (i == 2 && version && *text != version) ||
            (i == 3 && version > '3' && !strchr("89abAB", *text)))
            return false;
        text += groups[i];
        text += *text == '-';
    }
    return !*text && text[-1] != '-';
}

static bool is_uuid(const char *text)
{
    return is_uuid_of(text, 0);
}

static bool is_uuid3(const char *text)
{
    return is_uuid_of(text, '3');
}

static bool is_uuid4(const char *text)
{
    return is_uuid_of(text, '4');
}

static bool is_uuid5(const char *text)
{
    return is_uuid_of(text, '5');
}

static bool is_ipv4(const char *text)
{
    return inet_pton(AF_INET, text, &(struct in_addr){0}) == 1;
}

static bool is_ipv6(const char *text)
{
    return inet_pton(AF_INET6, text, &(struct in6_addr){0}) == 1;
}

static bool is_cidr(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : 0;
    if (!slash || n >= sizeof(address))
        return false;
    memcpy(address, text, n);
    address[n] = '\0';
    size_t digits = strspn(slash + 1, "0123456789");
    if (digits == 0 || digits > 3 || slash[1 + digits] || (digits > 1 && slash[1] == '0'))
        return false;
    long bits = strtol(slash + 1, NULL, 10);
    return is_ipv4(address) ? bits <= 32 : is_ipv6(address) && bits <= 128;
}

/* Six or eight pairs joined by : or -. */
static bool is_mac(const char *text)
{
    size_t n = strlen(text);
    if ((n != 17 && n != 23) || (text[2] != ':' && text[2] != '-'))
        return false;
    for (size_t i = 0; i < n; i += 3) {
        if (!is_hex(text + i, 2) || (i + 2 < n && text[i + 2] != text[2]))
            return false;
    }
    return true;
}

static bool is_hostname(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    enum { LABEL = 63, NAME = 255 };
    if (!*text || strlen(text) > NAME)
        return false;
    while (*text) {
        size_t n = strcspn(text, ".");
        if (n == 0 || n > LABEL || *text == '-' || text[n - 1] == '-' || strspn(text, letters) < n)
            return false;
        text += n + (text[n] == '.');
    }
    return true;
}

static bool is_email(const char *text)
{
    const char *at = strrchr(text, '@');
    return at && at > text && !strpbrk(text, " \t\r\n<>,") && is_hostname(at + 1);
}

/* As Go's net/url.ParseRequestURI: absolute, or a path from the root. */
static bool is_uri(const char *text)
{
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f || (*c == '%' && !is_hex(c + 1, 2)))
            return false;
    }
    if (*text == '/')
        return true;
    size_t n = strcspn(text, ":/?#");
    return n > 0 && text[n] == ':' && ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z');
}

static bool is_hex_color(const char *text)
{
    text += *text == '#';
    size_t n = strlen(text);
    return (n == 3 || n == 6) && is_hex(text, n);
}

static bool is_bson_id(const char *text)
{
    return strlen(text) == 24 && is_hex(text, 24);
}

static const struct schema_format formats[] = {
    {"date-time", is_date_time},
    {"datetime", is_date_time},
    {"date", is_date},
    {"duration", is_duration},
    {"byte", is_byte},
    {"uuid", is_uuid},
    {"uuid3", is_uuid3},
    {"uuid4", is_uuid4},
    {"uuid5", is_uuid5},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"cidr", is_cidr},
    {"mac", is_mac},
    {"hostname", is_hostname},
    {"email", is_email},
    {"uri", is_uri},
    {"hexcolor", is_hex_color},
    {"bsonobjectid", is_bson_id},
    {"int32", NULL, INT32_MIN, INT32_MAX},
};

const struct schema_format *schema_format_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        if (str_eq(formats[i].name, name))
            return &formats[i];
    }
    return NULL;
}

const char *schema_format_name(const struct schema_format *f)
{
    return f->name;
}

bool schema_format_check(const struct schema_format *f, const json_t *value)
{
    if (f->check)
        return !json_is_string(value) || f->check(json_string_value(value));
    if (!json_is_number(value))
        return true;
    return json_number_value(value) >= (double)f->min && json_number_value(value) <= (double)f->max;
}

/*
 * Times and durations: making them and what they consist of. A time zone is UTC, or a distance from
 * it such as "+02:00"; names of places are not known here.
 */
#include <ctype.h>
#include <time.h>

#include "k8s/cel/impl.h"

#define FUNCTION(name)                                                                             \
    static bool name(struct cel_run *r, const struct cel_value *args, size_t n,                    \
                     struct cel_value *ret)

FUNCTION(same)
{
    (void)r, (void)n;
    *ret = args[0];
    return true;
}

FUNCTION(to_time)
{
    (void)n;
    *ret = (struct cel_value){.type = CEL_TIMESTAMP};
    if (args[0].type == CEL_INT) {
        ret->time.seconds = args[0].integer;
        return (args[0].integer >= -62135596800 && args[0].integer <= 253402300799) ||
               cel_fail(r, "timestamp overflow");
    }
    return cel_time_parse(args[0].text.p, false, &ret->time) ||
           cel_fail(r, "type conversion error from 'string' to 'google.protobuf.Timestamp'");
}

FUNCTION(to_duration)
{
    (void)n;
    *ret = (struct cel_value){.type = CEL_DURATION};
    if (args[0].type == CEL_INT) {
        ret->integer = args[0].integer;
        return true;
    }
    return cel_duration_parse(args[0].text.p, false, &ret->integer) ||
           cel_fail(r, "type conversion error from 'string' to 'google.protobuf.Duration'");
}

/* Seconds that a zone is ahead. */
static bool zone(struct cel_run *r, const char *text, int64_t *ret_seconds)
{
    int sign = *text == '-' ? -1 : 1;
    const char *digits = text + (*text == '-' || *text == '+');
    *ret_seconds = 0;
    if (str_eq(text, "UTC") || str_eq(text, "Z") || !*text)
        return true;
    if (strlen(digits) != 5 || digits[2] != ':' || strspn(digits, "0123456789:") != 5 ||
        digits[0] > '2' || digits[3] > '5')
        return cel_fail(r, "unknown time zone %.60s", text);
    int64_t hours = (digits[0] - '0') * 10 + (digits[1] - '0');
    int64_t minutes = (digits[3] - '0') * 10 + (digits[4] - '0');
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool parts(struct cel_run *r, const struct cel_value *args, size_t n, struct tm *ret)
{
    int64_t ahead = 0;
    if (n == 2 && !zone(r, args[1].text.p, &ahead))
        return false;
    time_t when = args[0].time.seconds + ahead;
    return gmtime_r(&when, ret) || cel_fail(r, "timestamp overflow");
}

#define PART(name, expression)                                                                     \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        struct tm t;                                                                               \
        if (!parts(r, args, n, &t))                                                                \
            return false;                                                                          \
        *ret = cel_make_int(expression);                                                           \
        return true;                                                                               \
    }

PART(year, t.tm_year + 1900)
PART(month, t.tm_mon)
PART(day_of_year, t.tm_yday)
PART(day_of_month, t.tm_mday - 1)
PART(date, t.tm_mday)
PART(day_of_week, t.tm_wday)
PART(hours, t.tm_hour)
PART(minutes, t.tm_min)
PART(seconds, t.tm_sec)
PART(milliseconds, (int64_t)args[0].time.nanos / 1000000 + 0 * t.tm_sec)

/* Of a duration: all of it in that unit. */
#define WHOLE(name, unit)                                                                          \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)r, (void)n;                                                                          \
        *ret = cel_make_int(args[0].integer / (unit));                                             \
        return true;                                                                               \
    }

#define SECOND ((int64_t)1000000000)
WHOLE(whole_hours, 3600 * SECOND)
WHOLE(whole_minutes, 60 * SECOND)
WHOLE(whole_seconds, SECOND)
WHOLE(whole_milliseconds, SECOND / 1000)

#define GETTER(name, f)                                                                            \
    {name, "it", f, true},                                                                         \
    {                                                                                              \
        name, "its", f, true                                                                       \
    }

const struct cel_function cel_time_functions[] = {
    {"timestamp", "tt", same},
    {"timestamp", "ts", to_time},
    {"timestamp", "ti", to_time},
    {"duration", "pp", same},
    {"duration", "ps", to_duration},
    {"duration", "pi", to_duration},
    GETTER("getFullYear", year),
    GETTER("getMonth", month),
    GETTER("getDayOfYear", day_of_year),
    GETTER("getDayOfMonth", day_of_month),
    GETTER("getDate", date),
    GETTER("getDayOfWeek", day_of_week),
    GETTER("getHours", hours),
    GETTER("getMinutes", minutes),
    GETTER("getSeconds", seconds),
    GETTER("getMilliseconds", milliseconds),
    {"getHours", "ip", whole_hours, true},
    {"getMinutes", "ip", whole_minutes, true},
    {"getSeconds", "ip", whole_seconds, true},
    {"getMilliseconds", "ip", whole_milliseconds, true},
    {0},
};

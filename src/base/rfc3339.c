/*
 * Days are counted in eras of 400 years, after which the calendar repeats, and in years that begin
 * on 1 March, so that the leap day is the last of its year and needs no special case.
 */
#include "base/rfc3339.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum {
    DAY = 24 * 60 * 60,
    DAYS_PER_ERA = 400 * 365 + 97,
    MARCH_0000_TO_1970 = 719468, /* days from 0000-03-01 to 1970-01-01 */
};

static const int64_t NS = 1000000000;
static const int64_t FIRST = -62167219200; /* 0000-01-01T00:00:00Z */
static const int64_t LAST = 253402300799;  /* 9999-12-31T23:59:59Z */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t days_from_civil(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - MARCH_0000_TO_1970;
}

static void civil_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    days += MARCH_0000_TO_1970;
    int64_t era = floor_div(days, DAYS_PER_ERA);
    int64_t day_of_era = days - era * DAYS_PER_ERA;
    /* Without the leap days up to here every year has 365 days. */
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    *ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(year_of_era + era * 400 + (*ret_month <= 2));
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* A number of exactly n digits between least and most, and the character after it. */
static bool take(const char **s, int n, int least, int most, const char *after, int *ret_value)
{
    int value = 0;
    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return false;
        value = value * 10 + (**s - '0');
    }
    size_t nafter = strlen(after);
    if (value < least || value > most || strncmp(*s, after, nafter) != 0)
        return false;
    *s += nafter;
    *ret_value = value;
    return true;
}

static bool take_fraction(const char **s, long *ret_ns)
{
    *ret_ns = 0;
    if (**s != '.')
        return true;
    ++*s;
    long scale = 100000000;
    int digits = 0;
    for (; **s >= '0' && **s <= '9' && digits < 9; ++*s, digits++, scale /= 10)
        *ret_ns += (**s - '0') * scale;
    return digits > 0;
}

/* Z or an offset, and nothing after it. */
static bool take_zone(const char *s, int *ret_offset)
{
    *ret_offset = 0;
    if (*s == 'Z')
        return s[1] == '\0';
    int sign = *s == '+' ? 1 : *s == '-' ? -1 : 0;
    int hours, minutes;
    s++;
    if (sign == 0 || !take(&s, 2, 0, 23, ":", &hours) || !take(&s, 2, 0, 59, "", &minutes))
        return false;
    *ret_offset = sign * (hours * 3600 + minutes * 60);
    return *s == '\0';
}

static bool parse(const char *s, struct timespec *ret_t)
{
    int year, month, day, hour, minute, second, offset;
    long ns;
    if (!take(&s, 4, 0, 9999, "-", &year) || !take(&s, 2, 1, 12, "-", &month) ||
        !take(&s, 2, 1, days_in_month(year, month), "T", &day) || !take(&s, 2, 0, 23, ":", &hour) ||
        !take(&s, 2, 0, 59, ":", &minute) || !take(&s, 2, 0, 59, "", &second) ||
        !take_fraction(&s, &ns) || !take_zone(s, &offset))
        return false;
    int64_t seconds =
        days_from_civil(year, month, day) * DAY + hour * 3600L + minute * 60L + second - offset;
    if (seconds < FIRST || seconds > LAST)
        return false;
    *ret_t = (struct timespec){.tv_sec = seconds, .tv_nsec = ns};
    return true;
}

int rfc3339_parse(const char *text, struct timespec *ret_t, struct err *e)
{
    if (parse(text, ret_t))
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                   "\"%.*s%s\" is not a time: write one such as 2026-01-02T03:04:05Z or "
                   "2026-01-02T03:04:05.678901+02:00",
                   (int)str_cut(text, 40), text, strnlen(text, 41) > 40 ? "..." : "");
}

/* So many digits and what stands behind them. By hand: every object and every log line has times. */
static char *put(char *at, unsigned value, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    at[digits] = after;
    return at + digits + 1;
}

char *rfc3339_format(struct timespec t, enum rfc3339_digits digits, char buf[RFC3339_MAX])
{
    if (t.tv_sec < FIRST)
        t = (struct timespec){.tv_sec = FIRST};
    if (t.tv_sec > LAST)
        t = (struct timespec){.tv_sec = LAST};

    int year, month, day;
    int64_t days = floor_div(t.tv_sec, DAY);
    civil_from_days(days, &year, &month, &day);
    unsigned second = (unsigned)(t.tv_sec - days * DAY);
    char *at = put(buf, (unsigned)year, 4, '-');
    at = put(at, (unsigned)month, 2, '-');
    at = put(at, (unsigned)day, 2, 'T');
    at = put(at, second / 3600, 2, ':');
    at = put(at, second / 60 % 60, 2, ':');
    at = put(at, second % 60, 2, '.');
    if (digits) {
        put(at, (unsigned)t.tv_nsec, 9, 'Z'); /* all of them, and then only the first count */
        at += digits + 1;
    }
    memcpy(at - 1, "Z", 2);
    return buf;
}

struct timespec rfc3339_from_ns(int64_t ns)
{
    long fraction = ns % NS;
    return (struct timespec){
        .tv_sec = floor_div(ns, NS),
        .tv_nsec = fraction < 0 ? fraction + NS : fraction,
    };
}

int64_t rfc3339_to_ns(struct timespec t)
{
    __int128 ns = (__int128)t.tv_sec * NS + t.tv_nsec;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

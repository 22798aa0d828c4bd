#include "base/age.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "base/str.h"

/* 0001-01-01T00:00:00Z: how programs in Go write a time that was never set. */
#define YEAR_ONE ((int64_t)-62135596800)

/* "3d2h", and "3d" when there are no hours. */
static const char *two_units(char buf[AGE_MAX], int64_t large, char large_unit, int64_t small,
                             char small_unit)
{
    if (small == 0)
        snprintf(buf, AGE_MAX, "%" PRId64 "%c", large, large_unit);
    else
        snprintf(buf, AGE_MAX, "%" PRId64 "%c%" PRId64 "%c", large, large_unit, small, small_unit);
    return buf;
}

const char *age_format(int64_t ns, char buf[AGE_MAX])
{
    enum { DAY = 24, YEAR = 365 };
    int64_t seconds = ns / CLOCK_SECOND;
    if (seconds < -1)
        return strcpy(buf, "<invalid>"); /* clocks that differ by more than a bit */
    if (seconds < 120)
        return two_units(buf, seconds < 0 ? 0 : seconds, 's', 0, 0);
    int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / DAY;
    if (minutes < 10)
        return two_units(buf, minutes, 'm', seconds % 60, 's');
    if (minutes < 180)
        return two_units(buf, minutes, 'm', 0, 0);
    if (hours < 8)
        return two_units(buf, hours, 'h', minutes % 60, 'm');
    if (hours < (int64_t)2 * DAY)
        return two_units(buf, hours, 'h', 0, 0);
    if (days < 8)
        return two_units(buf, days, 'd', hours % DAY, 'h');
    if (days < (int64_t)2 * YEAR)
        return two_units(buf, days, 'd', 0, 0);
    return two_units(buf, days / YEAR, 'y', days < (int64_t)8 * YEAR ? days % YEAR : 0, 'd');
}

const char *age_since(const char *time, int64_t now, char buf[AGE_MAX])
{
    struct timespec t;
    if (!*time || str_eq(time, "null"))
        return strcpy(buf, "<unknown>");
    if (rfc3339_parse(time, &t, NULL) < 0)
        return strcpy(buf, "<invalid>");
    if (t.tv_sec == YEAR_ONE && t.tv_nsec == 0)
        return strcpy(buf, "<unknown>");
    int64_t ns, then = rfc3339_to_ns(t);
    if (__builtin_sub_overflow(now, then, &ns))
        ns = then < 0 ? INT64_MAX : INT64_MIN;
    return age_format(ns, buf);
}

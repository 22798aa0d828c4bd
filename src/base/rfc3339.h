/*
 * Times as text, the way Kubernetes writes them: metav1.Time "2026-01-02T03:04:05Z" and MicroTime
 * "2026-01-02T03:04:05.678901Z". Own calendar arithmetic: no locale, no TZ, no time_t of 32 bits.
 * The years go from 0000 to 9999; a timespec here always has 0 <= tv_nsec < 10^9, also before 1970.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/err.h"

enum { RFC3339_MAX = sizeof("2026-01-02T03:04:05.123456789Z") };

/* How many digits of a second's fraction to write. */
enum rfc3339_digits {
    RFC3339_SECONDS = 0,
    RFC3339_MILLI = 3,
    RFC3339_MICRO = 6,
    RFC3339_NANO = 9,
};

/*
 * Strict: capital T and Z, two digits each, at most nine digits of fraction, days that exist. A leap
 * second (:60) is refused, as Go refuses it. INVALID_ARGUMENT and *ret_t as it was on failure.
 */
int rfc3339_parse(const char *text, struct timespec *ret_t, struct err *e);

/* In UTC, finer digits cut off, years past the ends as the nearest end; returns buf. */
char *rfc3339_format(struct timespec t, enum rfc3339_digits digits, char buf[RFC3339_MAX]);

struct timespec rfc3339_from_ns(int64_t ns);
/* INT64_MIN or INT64_MAX when the time lies outside the years 1677 to 2262. */
int64_t rfc3339_to_ns(struct timespec t);

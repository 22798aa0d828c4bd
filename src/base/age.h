/*
 * A length of time as kubectl writes ages: the two largest units while the second still matters,
 * "119s", "9m59s", "179m", "7h59m", "47h", "7d23h", "3y40d". More than a second below zero is
 * "<invalid>".
 */
#pragma once

#include <stdint.h>

enum { AGE_MAX = 32 };

/* Returns buf. */
const char *age_format(int64_t ns, char buf[AGE_MAX]);
/*
 * Since a time that is written down: "<unknown>" of none ("", "null", Go's year one), "<invalid>" of
 * what is no time.
 */
const char *age_since(const char *time, int64_t now, char buf[AGE_MAX]);

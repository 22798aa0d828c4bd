/*
 * One question to a program over its unix socket: a line goes out, a line comes back.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*
 * The request ends with a newline, the answer does not. UNAVAILABLE when nobody listens, or it ended in
 * the middle; DEADLINE_EXCEEDED when there is no answer in time: what was asked for may still be done.
 */
int ask_unix(const char *path, const struct str *request, int64_t timeout_ns,
             struct str *ret_answer, struct err *e);

/*
 * The one error type.
 *
 * An error is a gRPC code (what a machine does about it: retry, give up, answer 404), a CamelCase
 * reason (what a condition or an API Status carries) and a message (what a person reads: what is
 * wrong, where, and what to do). It lives on the caller's stack and owns nothing, so it needs no
 * clean-up and is never leaked.
 *
 * A function that can fail ends with `struct err *e` and returns 0 or -1 (or NULL). It sets the
 * error once, at the place that knows most; callers may put context in front with err_prefix().
 * Libraries set errors and never log. `e` may be NULL where the caller does not care why.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

/* The numbers are gRPC's and go on the wire and into LogicalVolume.status.code. */
enum err_code {
    ERR_OK = 0,
    ERR_CANCELLED = 1,
    ERR_UNKNOWN = 2,
    ERR_INVALID_ARGUMENT = 3,
    ERR_DEADLINE_EXCEEDED = 4,
    ERR_NOT_FOUND = 5,
    ERR_ALREADY_EXISTS = 6,
    ERR_PERMISSION_DENIED = 7,
    ERR_RESOURCE_EXHAUSTED = 8,
    ERR_FAILED_PRECONDITION = 9,
    ERR_ABORTED = 10,
    ERR_OUT_OF_RANGE = 11,
    ERR_UNIMPLEMENTED = 12,
    ERR_INTERNAL = 13,
    ERR_UNAVAILABLE = 14,
    ERR_DATA_LOSS = 15,
    ERR_UNAUTHENTICATED = 16,
};

struct err {
    enum err_code code;
    const char *reason; /* a string literal */
    char msg[1000];     /* cut with "..." when longer */
};

/* Sets *e and returns -1, so that a failing function can `return err_set(e, ...)`. */
int err_set(struct err *e, enum err_code code, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int err_vset(struct err *e, enum err_code code, const char *reason, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));

/* The same from errno: the code and reason follow from it, its text ends the message. */
int err_errno(struct err *e, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message; returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no gRPC code. */
const char *err_code_name(enum err_code code);
/* Errors that no retry can mend until somebody changes the request. */
bool err_is_infeasible(enum err_code code);

/*
 * The flags of a program, as a table. --help is always one, also -h; -v is --verbose where there is
 * one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct settings; /* each program has its own */

struct flag {
    const char *name,
        *argument; /* "FILE"; "[=BOOL]": it may be left out, and is NULL; NULL: none */
    int (*take)(struct settings *s, const char *text, struct err *e);
    const char *doc; /* of several lines, if need be */
};

struct flags {
    const char *program;  /* "orlop controller": in front of messages */
    const char *usage;    /* everything above the list of flags */
    const struct flag *p; /* ends with one without a name */
};

/* True: go on; words that are no flags are refused. False after help or what is wrong was shown, with the status to exit with. */
bool flags_parse(const struct flags *f, int argc, char **argv, struct settings *s, int *ret_status);

/* Shows what --help shows; the status to exit with: 0, or 2 when it is a mistake (stderr). */
int flags_usage(const struct flags *f, FILE *out);

/* For tables: INVALID_ARGUMENT with what to write instead. */
int flags_number(const char *text, unsigned long most, unsigned *ret_n, struct err *e);
/* "true", "false", or NULL for true. */
int flags_bool(const char *text, bool *ret_b, struct err *e);
/* "15s", "2m30s", "500ms", or a number of seconds. */
int flags_duration(const char *text, int64_t *ret_ns, struct err *e);

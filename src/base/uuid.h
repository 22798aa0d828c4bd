/*
 * Random UUIDs (version 4), as object UIDs, volume handles and node ids are.
 *
 * The names keep clear of libuuid's: a program that links a library using it would otherwise give
 * that library our functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

enum { UUID_TEXT_MAX = 37 };

struct uuid {
    uint8_t bytes[16];
};

/* From the kernel's random numbers; unguessable. */
struct uuid uuid_random(void);
/* 8-4-4-4-12 in lower case; returns buf. */
char *uuid_format(const struct uuid *u, char buf[UUID_TEXT_MAX]);
/* Strict: 36 characters in that form, of any version, either case. */
int uuid_from_text(const char *text, struct uuid *ret_u, struct err *e);

/* The same for the same name: the name's own if it is a UUID, else one made from it. */
struct uuid uuid_of_name(const char *name);

static inline bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

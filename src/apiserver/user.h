/*
 * Who asks.
 */
#pragma once

#include <stdbool.h>

#include "json/json.h"

struct apiserver_user {
    const char *name;          /* "system:anonymous" for nobody in particular */
    const char *uid;           /* NULL: none */
    const char *const *groups; /* ends with NULL */
    const json_t *extra;       /* lists of strings by key; NULL: none */
};

/* The server itself, for what it does of its own accord: it may do everything. */
extern const struct apiserver_user apiserver_self;

bool apiserver_user_in(const struct apiserver_user *user, const char *group);

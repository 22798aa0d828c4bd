/*
 * Who asks. Users never change once made and are counted, because a watch goes on long after its
 * request is over.
 */
#pragma once

#include <stdbool.h>

#include "base/mem.h"
#include "json/json.h"

struct apiserver_user {
    const char *name;          /* "system:anonymous" for nobody in particular */
    const char *uid;           /* NULL: none */
    const char *const *groups; /* ends with NULL */
    const json_t *extra;       /* lists of strings by key; NULL: none */
    bool counted;              /* made by apiserver_user_new(); else it lives for ever */
};

/* The server itself, for what it does of its own accord: it may do everything. */
extern const struct apiserver_user apiserver_self;
/* Who has shown no credentials. */
extern const struct apiserver_user apiserver_anonymous;

/* Copies the texts; `extra` may be NULL and is taken over. */
const struct apiserver_user *apiserver_user_new(const char *name, const char *uid,
                                                const char *const *groups, json_t *extra);
const struct apiserver_user *apiserver_user_ref(const struct apiserver_user *user);
void apiserver_user_unref(const struct apiserver_user *user); /* NULL is fine */
DEFINE_CLEANUP(const struct apiserver_user *, apiserver_user_unref)

bool apiserver_user_in(const struct apiserver_user *user, const char *group);
/* {username, uid, groups, extra} as reviews have it; what is empty is left out. */
json_t *apiserver_user_json(const struct apiserver_user *user);

/*
 * Which names a CustomResourceDefinition may have, and what its status says about them.
 *
 * A name that the definition has been given stays its own; one that is new to it must be nobody
 * else's in the group: neither of another definition nor of a kind in the tables.
 */
#pragma once

#include "api/kind.h"
#include "base/map.h"

struct apiserver_names {
    json_t *accepted;     /* those it may have: what to put into status.acceptedNames */
    const char *conflict; /* a reason, such as KindConflict; NULL: it may have all */
    char message[320];
};

/* Names of a group that are taken; of kinds and of resources apart. Zero-initialised is empty. */
struct apiserver_taken {
    struct map kinds, resources;
};

/* Adds the names of a definition, in the form of status.acceptedNames. */
void apiserver_taken_add(struct apiserver_taken *t, const json_t *names);
/* Adds those of the tables in that group, other than the kind with this plural. */
void apiserver_taken_add_tables(struct apiserver_taken *t, const char *group, const char *plural);
void apiserver_taken_done(struct apiserver_taken *t);

/* `before` are the names that it had been given; NULL: none. */
struct apiserver_names apiserver_names_accept(const json_t *requested, const json_t *before,
                                              const struct apiserver_taken *taken);

/* Whether a list of conditions says that the type is True. */
bool apiserver_condition_is_true(const json_t *conditions, const char *type);
/*
 * Sets a condition of a status; the time only moves when the condition does. False when it says so
 * already.
 */
bool apiserver_condition_set(json_t *status, const char *type, bool is, const char *reason,
                             const char *message, const char *now);

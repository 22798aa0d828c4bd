/*
 * Who owns whom: for each owner's uid, the objects that name it. Kept up to date change by change.
 *
 *     nodes:       id ──> the owners it names
 *     dependents:  owner's uid ──> ids of those that name it
 *
 * An id is "collection key", which is what the store finds an object by. Not thread-safe.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "json/json.h"

struct gc_reference {
    char *uid;
    bool blocks; /* foreground deletion of the owner waits for the object */
};

struct gc_node {
    char *id;
    VEC(struct gc_reference) owners;
};

struct gc_index {
    struct map nodes;      /* id -> struct gc_node */
    struct map dependents; /* uid -> struct map of id -> struct gc_node */
};

void gc_index_done(struct gc_index *x);
const struct gc_node *gc_index_node(const struct gc_index *x, const char *id);
/* The object's owners are these now (metadata.ownerReferences; NULL: none). Whether that is new. */
bool gc_index_set(struct gc_index *x, const char *id, const json_t *references);
/* The ids that name the uid, as a map's keys; NULL: none. */
const struct map *gc_index_dependents(const struct gc_index *x, const char *uid);
/* Whether any of those blocks. */
bool gc_index_is_blocked(const struct gc_index *x, const char *uid);

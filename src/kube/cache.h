/*
 * The objects of a collection by key, and by what indexes say of them. Private to informer.c.
 *
 * Not thread safe: the informer's lock goes around it.
 *
 *     entries:  key --> object, the values under which indexes have it
 *     indexes:  value --> set of keys
 *
 * Invariant: an index has a key under a value exactly when the entry says so.
 */
#pragma once

#include "base/map.h"
#include "kube/informer.h"

enum { CACHE_INDEXES_MAX = 16 };

/* What is kept of an object. The values are a list of pairs: a byte, which index; a string. */
struct cache_entry {
    struct kube_object *object;
    size_t size;
    char values[];
};

struct cache_index {
    const struct kube_index *index;
    struct map keys; /* value -> struct map of keys */
};

struct cache {
    struct map entries; /* key -> struct cache_entry */
    struct cache_index indexes[CACHE_INDEXES_MAX];
    size_t n_indexes;
};

void cache_done(struct cache *c);
/* -1: there are too many, or there is one of that name. */
int cache_add_index(struct cache *c, const struct kube_index *index);

/* An entry that is in no cache yet; takes over the reference. */
struct cache_entry *cache_entry_new(const struct cache *c, struct kube_object *object,
                                    const json_t *tree);
void cache_entry_free(struct cache_entry *e); /* NULL is ignored */

/* The object, borrowed; NULL. */
struct kube_object *cache_get(const struct cache *c, const char *key);
/* Puts it in, or takes it out with entry NULL; returns what was there, now the caller's, or NULL. */
struct cache_entry *cache_set(struct cache *c, const char *key, struct cache_entry *entry);
/* Makes these entries all that there is; *entries becomes what was there before. */
void cache_swap(struct cache *c, struct map *entries);
/* Appends references. An index that does not exist has nothing. */
void cache_find(const struct cache *c, const char *index, const char *value,
                struct kube_objects *ret_list);

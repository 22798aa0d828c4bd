/*
 * A hash map from strings to pointers.
 *
 * Keys are copied in; values are the caller's and are not freed. Keys may come from the network, so
 * the hash is keyed with a random seed drawn once per process: no peer can choose colliding keys.
 * Iteration is in insertion order; meanwhile entries may be removed but not added. Zero-initialised
 * is empty.
 *
 *     entries:  [ key value ][ key value ][ hole ] ...     in insertion order
 *     slots:    open addressing, each an index into entries
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    char *key; /* NULL marks a removed entry */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries;
    size_t used;     /* entries in use, holes included */
    size_t count;    /* entries in use, holes not included */
    uint32_t *slots; /* index + 1 into entries; 0 is free */
    size_t nslots;   /* a power of two */
};

void map_done(struct map *m);
/* The value, or NULL. */
void *map_get(const struct map *m, const char *key);
bool map_has(const struct map *m, const char *key);
/* Sets key to value and returns the value that was there, or NULL. */
void *map_set(struct map *m, const char *key, void *value);
/* Removes key and returns its value, or NULL. */
void *map_remove(struct map *m, const char *key);

#define map_for_each(m, it)                                                                        \
    for (struct map_entry *it = (m)->entries; it && it < (m)->entries + (m)->used; it++)           \
        if (!it->key) {                                                                            \
        } else

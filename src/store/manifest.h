/*
 * Which files a chain is made of: a small file beside them, replaced as a whole.
 *
 *     0       4        8       12      16        24        32         48 + 32 * i
 *     ├───────┼────────┼───────┼───────┼─────────┼─────────┼──────────┼──────────────────────────────────────────┬─ ...
 *     │ magic │ crc-32c│ next  │ count │ version │ revision│ identity │ number(8) snapshot(8) size(8) merged(8)   │
 *     └───────┴────────┴───────┴───────┴─────────┴─────────┴──────────┴──────────────────────────────────────────┴─ ...
 *
 * Layers stand from the bottom up; the last is the head. The bottom is number 0, the file that gave the chain its name.
 * The checksum is that of everything, with its own field zero.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

enum {
    MANIFEST_LAYERS = 72,
    MANIFEST_ENTRY = 32,
    MANIFEST_HEAD = 48,
    MANIFEST_MAX = MANIFEST_HEAD + MANIFEST_LAYERS * MANIFEST_ENTRY,
};

struct manifest_layer {
    uint32_t number; /* of its files */
    uint64_t
        snapshot; /* whose content ends here; 0: the head, or one that is to be merged with the one above */
    uint64_t size; /* of that snapshot */
    uint64_t
        merged; /* of one that is to be merged: bytes of the one above that are in it, durably */
};

struct manifest {
    uint32_t next;        /* number */
    uint64_t revision;    /* counts the times that it was replaced */
    struct uuid identity; /* the store's; zeroes: it has none */
    uint32_t n;
    struct manifest_layer layer[MANIFEST_LAYERS];
};

/* Bytes. */
size_t manifest_encode(const struct manifest *m, uint8_t out[MANIFEST_MAX]);
int manifest_decode(const uint8_t *in, size_t size, struct manifest *ret_m, struct err *e);

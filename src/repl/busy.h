/*
 * A quick answer to "may this range overlap one that is under way?": counts by granules of 64 KiB, hashed.
 * No means no; yes means look. Long ranges are counted apart and always mean look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { REPL_GRANULE = 16, REPL_GRANULES = 1024, REPL_WIDE = 32 };

struct repl_busy {
    uint32_t wide, any;
    uint16_t n[REPL_GRANULES];
};

static inline void repl_busy_count(struct repl_busy *b, uint64_t offset, uint64_t length, int by)
{
    uint64_t first = offset >> REPL_GRANULE, last = (offset + length - 1) >> REPL_GRANULE;
    b->any += (uint32_t)by;
    if (last - first >= REPL_WIDE) {
        b->wide += (uint32_t)by;
        return;
    }
    for (uint64_t g = first; g <= last; g++)
        b->n[g % REPL_GRANULES] = (uint16_t)(b->n[g % REPL_GRANULES] + by);
}

static inline bool repl_busy_maybe(const struct repl_busy *b, uint64_t offset, uint64_t length)
{
    uint64_t first = offset >> REPL_GRANULE, last = (offset + length - 1) >> REPL_GRANULE;
    if (!b->any)
        return false;
    if (b->wide || last - first >= REPL_WIDE)
        return true;
    for (uint64_t g = first; g <= last; g++)
        if (b->n[g % REPL_GRANULES])
            return true;
    return false;
}

static inline bool repl_overlap(uint64_t a, uint64_t a_length, uint64_t b, uint64_t b_length)
{
    return a < b + b_length && b < a + a_length;
}

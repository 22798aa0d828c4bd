/*
 * The replica's metadata on disk, encoded and decoded: two superblocks, then pages of the region map.
 *
 *     0        4096      8192
 *     ├────────┼─────────┼──────────┬──────────┬─ ...
 *     │ super  │ super   │ map page │ map page │
 *     │ A      │ B       │ 0        │ 1        │
 *
 * Superblocks are written by turns; the valid one with the higher generation counts, so a write that is torn
 * costs the older one at most. A page of the map that is torn says "unknown" of its regions, which is safe.
 */
#pragma once

#include "repl/repl.h"

void repl_super_encode(const struct repl_super *s, uint8_t out[REPL_SUPER_SIZE]);
/* Generation 0 for a block of zeros, which is a slot that was never written. */
int repl_super_decode(const uint8_t in[REPL_SUPER_SIZE], struct repl_super *ret_s, struct err *e);
/*
 * The one that counts, of slots A and B. One damaged slot is what a crash leaves; two are an error, since
 * going on as blank would forget promises.
 */
int repl_super_choose(const uint8_t a[REPL_SUPER_SIZE], const uint8_t b[REPL_SUPER_SIZE],
                      struct repl_super *ret_s, struct err *e);

static inline uint64_t repl_super_offset(uint64_t generation)
{
    return generation % 2 * REPL_SUPER_SIZE;
}
static inline uint64_t repl_page_offset(uint64_t page)
{
    return (2 + page) * REPL_SUPER_SIZE;
}

void repl_page_encode(uint64_t page, const uint64_t entries[REPL_PAGE_ENTRIES],
                      uint8_t out[REPL_SUPER_SIZE]);
/* Entries of 0 for a page of zeros, of REPL_UNKNOWN for one that is damaged; false then. */
bool repl_page_decode(uint64_t page, const uint8_t in[REPL_SUPER_SIZE],
                      uint64_t ret_entries[REPL_PAGE_ENTRIES]);

/*
 * A page of a layer's map as it is on disk, and the page in front of them. Each is there twice:
 *
 *     file   │ 0: header, header │ 1: page 0, page 0 │ 2: page 1, page 1 │ ...       8 KiB each
 *
 *     page   0                                   4064         4072      4076     4096
 *            ├── bits; of the header its numbers ─┼── sequence ─┼─ crc-32c ┼─ zeroes ─┤
 *
 * A page is written anew with the next sequence number: first the copy that this number, odd or even, says, then a sync,
 * then the other copy. So a crash tears at most one of the two, the other is that of the last sync, and a copy that
 * rots is replaced by the other, which says the same. The checksum is of everything, and of whose page it is: the
 * store's identity, the layer and the place. A page that was never written is zeroes; the header says how many are
 * not, so a page that was wiped out is missed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"

enum {
    PAGE_SIZE = 4096,
    PAGE_ROOM = 4064,
    PAGE_PAIR = 2 * PAGE_SIZE,
};

/* Whose page it is. */
struct page_place {
    struct uuid identity;
    uint32_t layer;
    uint64_t index; /* in the file: 0 is the header */
};

/* What the header says. */
struct page_header {
    uint64_t version; /* counts the times that the map was written */
    uint64_t written; /* pages that are not zeroes */
};

/* The rest of a page whose room is filled. */
void page_seal(uint8_t page[PAGE_SIZE], const struct page_place *place, uint64_t sequence);
/* The better of two copies: 0 or 1; -1: neither is whole. */
int page_choose(const uint8_t pair[PAGE_PAIR], const struct page_place *place,
                uint64_t *ret_sequence, bool *ret_both);
void page_header_put(uint8_t page[PAGE_SIZE], const struct page_header *h);
/* False: not ours. */
bool page_header_get(const uint8_t page[PAGE_SIZE], struct page_header *ret_h);

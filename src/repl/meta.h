/*
 * The replica's metadata on disk, encoded and decoded:
 *
 *     0         8 KiB     16 KiB     28 KiB     40 KiB
 *     ├─────────┼─────────┼──────────┼──────────┼──────────┬──────────┬─ ...
 *     │ super A │ super B │ log A    │ log B    │ map page │ map page │
 *     │         │         │          │          │ 0        │ 1        │
 *
 * Superblocks and the activity log have two slots each, written by turns. A slot is a row of sectors, and each sector
 * carries a checksum and the generation of the write that it belongs to:
 *
 *     sector: crc(4) magic(4) generation(8) index(2) sectors(2) bytes(4) payload(488)
 *
 * A disk writes a sector whole or not at all. So a crash in the middle of a write leaves sectors of two generations, all
 * of them sound: the slot is *torn*, and the other slot counts. A sector whose checksum is wrong was damaged by
 * something else, perhaps long after it was written: the slot may have been the newer one. Nobody can tell, so the
 * replica must not be trusted with what it once promised ("doubt").
 *
 * What is written is whole blocks of 4 KiB. Where a block cannot be read any more, as in a pool that found its checksum
 * wrong, a write to a part of it would fail, and nobody could ever make it good again.
 *
 * Every page of the map carries a checksum, the identity of the store that it is about, and the generation of the
 * superblock at the time. All pages are written when the map is made, so a page that is missing, or zeros, is damaged,
 * and its regions count as unknown.
 */
#pragma once

#include "repl/repl.h"

enum {
    REPL_META_SECTOR = 512,
    REPL_META_PAYLOAD = 488, /* of a sector */
    REPL_META_BLOCK = 4096,
    REPL_SUPER_SLOT = 8192,
    REPL_LOG_SLOT = 12288,
    REPL_SUPER_SECTORS = REPL_SUPER_SLOT / REPL_META_SECTOR,
    REPL_LOG_SECTORS = REPL_LOG_SLOT / REPL_META_SECTOR,
    REPL_META_HEAD = 2 * REPL_SUPER_SLOT + 2 * REPL_LOG_SLOT,
};
_Static_assert((int)REPL_SUPER_SIZE <= REPL_SUPER_SECTORS * (int)REPL_META_PAYLOAD, "a small slot");
_Static_assert(32 + 4 * REPL_ACTIVE <= REPL_LOG_SECTORS * (int)REPL_META_PAYLOAD, "a small slot");

/* A superblock as it is sent. Decodes to generation 0 from zeros. */
void repl_super_encode(const struct repl_super *s, uint8_t out[REPL_SUPER_SIZE]);
int repl_super_decode(const uint8_t in[REPL_SUPER_SIZE], struct repl_super *ret_s, struct err *e);
/* A superblock as it is on disk. */
void repl_super_slot(const struct repl_super *s, uint8_t out[REPL_SUPER_SLOT]);

enum repl_found {
    REPL_FOUND_NONE,  /* it was never written */
    REPL_FOUND_GOOD,  /* this is what was written last */
    REPL_FOUND_DOUBT, /* a slot is damaged: there may have been something newer */
    REPL_FOUND_BAD,   /* nothing can be read */
};

/* The superblock that counts. */
enum repl_found repl_super_choose(const uint8_t a[REPL_SUPER_SLOT],
                                  const uint8_t b[REPL_SUPER_SLOT], struct repl_super *ret_s);
/* Whether a store with this mark is the one that the metadata is about. */
bool repl_super_knows(const struct repl_super *s, const struct uuid *store, uint64_t generation);

/* The activity log: extents in which something may be written without being noted anywhere else. */
struct repl_log {
    uint64_t generation;
    uint64_t super_generation; /* of the superblock, when it was written */
    struct uuid store;
    uint32_t n;
    uint32_t extent[REPL_ACTIVE];
};

/* Bytes to be written: only as many blocks as it needs, or all of them. */
size_t repl_log_encode(const struct repl_log *log, bool whole, uint8_t out[REPL_LOG_SLOT]);
/* The log that counts, as this superblock knows it: one that is older than it was is damaged. */
enum repl_found repl_log_choose(const uint8_t a[REPL_LOG_SLOT], const uint8_t b[REPL_LOG_SLOT],
                                const struct repl_super *super, struct repl_log *ret_log);

static inline uint64_t repl_super_offset(uint64_t generation)
{
    return generation % 2 * REPL_SUPER_SLOT;
}
static inline uint64_t repl_log_offset(uint64_t generation)
{
    return 2 * REPL_SUPER_SLOT + generation % 2 * REPL_LOG_SLOT;
}
static inline uint64_t repl_page_offset(uint64_t page)
{
    return REPL_META_HEAD + page * REPL_SUPER_SIZE;
}

void repl_page_encode(uint64_t page, const struct uuid *store, uint64_t generation,
                      const uint64_t entries[REPL_PAGE_ENTRIES], uint8_t out[REPL_SUPER_SIZE]);
/* Entries of REPL_UNKNOWN, and false, for a page that is missing, damaged, or of another store. */
bool repl_page_decode(uint64_t page, const struct uuid *store, const uint8_t in[REPL_SUPER_SIZE],
                      uint64_t ret_entries[REPL_PAGE_ENTRIES]);

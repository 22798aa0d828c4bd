/*
 * What a volume must hold. Every block that is written gets a version; every sector of 512 bytes of
 * it carries where it belongs and which version it is of, under a checksum. So whoever reads a block
 * can tell what is wrong with it, without a copy of the data:
 *
 *     0        8        16         20        24                                  512
 *     | block  | seed   | version  | crc32c  | words that follow from the others |
 *
 * For each block three versions are known:
 *
 *     flushed <= acknowledged <= submitted
 *
 * A read during a run must see what is acknowledged, or what is under way. After a crash of the
 * target a block must be of a version between acknowledged (or flushed, if the machine lost its
 * power) and submitted. The map can be saved, and loaded by another process, for exactly that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { BENCH_SECTOR = 512 };

struct bench_versions {
    uint32_t flushed, acknowledged, submitted; /* 0: never written */
};

struct bench_map {
    uint64_t blocks, seed;
    uint32_t block_size;
    struct bench_versions *versions; /* owned */
};

enum bench_finding {
    BENCH_FINE,
    BENCH_LOST,      /* older than it has to be, or never written */
    BENCH_TORN,      /* sectors of several versions, though no write was under way */
    BENCH_MISPLACED, /* data of another block */
    BENCH_CORRUPT,   /* a checksum that does not match, or a version that was never written */
    BENCH_FINDINGS,
};

extern const char *const bench_finding_names[BENCH_FINDINGS];

void bench_map_init(struct bench_map *m, uint64_t blocks, uint32_t block_size, uint64_t seed);
void bench_map_done(struct bench_map *m);
/* Fills a block. */
void bench_map_stamp(const struct bench_map *m, uint64_t block, uint32_t version, uint8_t *data);
/* Looks at a block that was read while its versions were these. */
enum bench_finding bench_map_check(const struct bench_map *m, uint64_t block, const uint8_t *data,
                                   uint32_t at_least, uint32_t at_most);
int bench_map_save(const struct bench_map *m, const char *path, struct err *e);
/* Into a map that is zero. */
int bench_map_load(struct bench_map *m, const char *path, struct err *e);

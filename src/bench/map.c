#include "bench/map.h"

#include <string.h>

#include "base/crc.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

const char *const bench_finding_names[BENCH_FINDINGS] = {
    "fine", "lost", "torn", "misplaced", "corrupt",
};

struct sector {
    uint64_t block, seed; /* block: with the number of the sector in the upper bits */
    uint32_t version, crc;
    uint64_t words[(BENCH_SECTOR - 24) / 8];
};
_Static_assert(sizeof(struct sector) == BENCH_SECTOR, "a sector is a sector");

void bench_map_init(struct bench_map *m, uint64_t blocks, uint32_t block_size, uint64_t seed)
{
    *m = (struct bench_map){
        .blocks = blocks,
        .seed = seed,
        .block_size = block_size,
        .versions = mem_zalloc(blocks * sizeof(struct bench_versions)),
    };
}

void bench_map_done(struct bench_map *m)
{
    free(m->versions);
    m->versions = NULL;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccd;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

static uint64_t place(uint64_t block, uint32_t sector)
{
    return (uint64_t)sector << 48 | block;
}

/* The checksum of everything but itself. */
static uint32_t checksum(const struct sector *s)
{
    uint32_t crc = crc_32c(s, offsetof(struct sector, crc));
    return crc_32c_more(crc, s->words, sizeof(s->words));
}

void bench_map_stamp(const struct bench_map *m, uint64_t block, uint32_t version, uint8_t *data)
{
    for (uint32_t i = 0; i < m->block_size / BENCH_SECTOR; i++) {
        struct sector *s = (struct sector *)(void *)(data + (size_t)i * BENCH_SECTOR);
        s->block = place(block, i);
        s->seed = m->seed;
        s->version = version;
        uint64_t word = mix(m->seed ^ mix(s->block) ^ version);
        for (size_t w = 0; w < ARRAY_SIZE(s->words); w++)
            s->words[w] = word += 0x9e3779b97f4a7c15;
        s->crc = checksum(s);
    }
}

static bool is_zero(const struct sector *s)
{
    const uint8_t *p = (const uint8_t *)s;
    return !p[0] && memcmp(p, p + 1, BENCH_SECTOR - 1) == 0;
}

static enum bench_finding check_sector(const struct bench_map *m, uint64_t where,
                                       const struct sector *s, uint32_t at_least, uint32_t at_most)
{
    if (is_zero(s))
        return at_least ? BENCH_LOST : BENCH_FINE;
    if (s->crc != checksum(s))
        /* Where nothing of ours has to be, there may be anything. */
        return at_least ? BENCH_CORRUPT : BENCH_FINE;
    if (s->seed != m->seed)
        return at_least ? BENCH_LOST : BENCH_FINE; /* of an earlier run */
    if (s->block != where)
        return BENCH_MISPLACED;
    if (s->version > at_most)
        return BENCH_CORRUPT;
    return s->version < at_least ? BENCH_LOST : BENCH_FINE;
}

enum bench_finding bench_map_check(const struct bench_map *m, uint64_t block, const uint8_t *data,
                                   uint32_t at_least, uint32_t at_most)
{
    unsigned bad = 0, sectors = m->block_size / BENCH_SECTOR;
    enum bench_finding worst = BENCH_FINE;
    for (uint32_t i = 0; i < sectors; i++) {
        const struct sector *s = (const void *)(data + (size_t)i * BENCH_SECTOR);
        enum bench_finding f = check_sector(m, place(block, i), s, at_least, at_most);
        bad += f == BENCH_LOST;
        worst = f > worst ? f : worst;
    }
    /* Some sectors as they should be and some older: half of a write that was acknowledged. */
    return worst == BENCH_LOST && bad < sectors ? BENCH_TORN : worst;
}

/* ---- on disk: header, versions, checksum ---- */

struct header {
    char magic[16];
    uint64_t blocks, seed, block_size;
};

static const char magic[16] = "orlop-bench-map";

int bench_map_save(const struct bench_map *m, const char *path, struct err *e)
{
    _cleanup_(str_done) struct str s = {0};
    struct header h = {.blocks = m->blocks, .seed = m->seed, .block_size = m->block_size};
    memcpy(h.magic, magic, sizeof(magic));
    str_append_n(&s, &h, sizeof(h));
    str_append_n(&s, m->versions, m->blocks * sizeof(*m->versions));
    uint32_t crc = crc_32c(s.p, s.len);
    str_append_n(&s, &crc, sizeof(crc));
    return file_replace(path, s.p, s.len, 0644, e);
}

int bench_map_load(struct bench_map *m, const char *path, struct err *e)
{
    _cleanup_(str_done) struct str s = {0};
    struct header h;
    uint32_t crc;
    if (file_read(path, (size_t)4 << 30, &s, e) < 0)
        return -1;
    bool whole = s.len >= sizeof(h) + sizeof(crc);
    if (whole) {
        memcpy(&h, s.p, sizeof(h));
        memcpy(&crc, s.p + s.len - sizeof(crc), sizeof(crc));
        whole = memcmp(h.magic, magic, sizeof(magic)) == 0 &&
                h.blocks == (s.len - sizeof(h) - sizeof(crc)) / sizeof(*m->versions) &&
                h.block_size >= BENCH_SECTOR && h.block_size <= UINT32_MAX &&
                crc == crc_32c(s.p, s.len - sizeof(crc));
    }
    if (!whole)
        return err_set(e, ERR_DATA_LOSS, "InvalidMap",
                       "%s is no map of `orlop bench`, or it is damaged", path);
    bench_map_init(m, h.blocks, (uint32_t)h.block_size, h.seed);
    memcpy(m->versions, s.p + sizeof(h), h.blocks * sizeof(*m->versions));
    return 0;
}

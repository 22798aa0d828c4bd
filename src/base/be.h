/*
 * Numbers as they stand in protocols: big-endian, at any address.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t be_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be_get24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | be_get16(p + 1);
}

static inline uint32_t be_get32(const uint8_t *p)
{
    uint32_t n;
    memcpy(&n, p, sizeof(n));
    return be32toh(n);
}

static inline uint64_t be_get64(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, sizeof(n));
    return be64toh(n);
}

/* The lowest bytes of n. */

static inline void be_put16(uint8_t *p, uint64_t n)
{
    p[0] = (uint8_t)(n >> 8);
    p[1] = (uint8_t)n;
}

static inline void be_put24(uint8_t *p, uint64_t n)
{
    p[0] = (uint8_t)(n >> 16);
    be_put16(p + 1, n);
}

static inline void be_put32(uint8_t *p, uint64_t n)
{
    uint32_t big = htobe32((uint32_t)n);
    memcpy(p, &big, sizeof(big));
}

static inline void be_put64(uint8_t *p, uint64_t n)
{
    n = htobe64(n);
    memcpy(p, &n, sizeof(n));
}

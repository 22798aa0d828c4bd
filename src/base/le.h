/*
 * Numbers as they stand in our own frames and files: little-endian, at any address.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t le_get16(const uint8_t *p)
{
    uint16_t n;
    memcpy(&n, p, sizeof(n));
    return le16toh(n);
}

static inline uint32_t le_get32(const uint8_t *p)
{
    uint32_t n;
    memcpy(&n, p, sizeof(n));
    return le32toh(n);
}

static inline uint64_t le_get64(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, sizeof(n));
    return le64toh(n);
}

static inline void le_put16(uint8_t *p, uint16_t n)
{
    n = htole16(n);
    memcpy(p, &n, sizeof(n));
}

static inline void le_put32(uint8_t *p, uint32_t n)
{
    n = htole32(n);
    memcpy(p, &n, sizeof(n));
}

static inline void le_put64(uint8_t *p, uint64_t n)
{
    n = htole64(n);
    memcpy(p, &n, sizeof(n));
}

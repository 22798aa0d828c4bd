/*
 * CRC-32C (Castagnoli), the checksum of iSCSI digests, replication frames and stored blocks, and CRC-64/XZ, by which
 * replicas compare blocks. The work is done by ISA-L with the processor's own instructions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of one piece of data; 0 of none. */
uint32_t crc_32c(const void *data, size_t size);
/* Of a, followed by this piece, when crc is that of a: crc_32c(ab) == crc_32c_more(crc_32c(a), b) */
uint32_t crc_32c_more(uint32_t crc, const void *data, size_t size);
uint64_t crc_64(const void *data, size_t size);

/*
 * Frames: a header of 64 bytes, then a payload. docs/replication.md §2 has the layout.
 */
#pragma once

#include "repl/repl.h"

enum { REPL_HEADER = 64, REPL_FRAME_VERSION = 1 };

void repl_frame_encode(const struct repl_msg *m, uint8_t header[REPL_HEADER]);
/*
 * Checks everything that can be checked without the payload: magic, version, checksum, volume, type, flags,
 * and that length and ranges fit the type. An error ends the connection.
 */
int repl_frame_decode(const uint8_t header[REPL_HEADER], const struct uuid *volume,
                      struct repl_msg *ret_m, struct err *e);
/* Whether the payload is the one the header was made for. */
bool repl_frame_data_ok(const struct repl_msg *m, const void *payload);

/* CRC-32C of data in pieces. */
uint32_t repl_iov_crc(const struct iovec *iov, int n);
/* Copies to pieces; they hold at least size bytes. */
void repl_iov_fill(const struct iovec *iov, int n, const void *data, size_t size);
/*
 * 64-bit sums of blocks, to find out what differs without sending it. Not against an adversary: who writes
 * the volume can only harm the volume.
 */
uint64_t repl_sum(const void *data, size_t size);

/*
 * Frames: a header of 64 bytes, then a payload. docs/replication.md §2 has the layout.
 */
#pragma once

#include "repl/repl.h"

enum { REPL_HEADER = 64, REPL_FRAME_VERSION = 3 };

void repl_frame_encode(const struct repl_msg *m, uint8_t header[REPL_HEADER]);
/*
 * Checks everything that can be checked without the payload: magic, version, checksum, volume, type, flags,
 * and that length and ranges fit the type. An error ends the connection.
 */
int repl_frame_decode(const uint8_t header[REPL_HEADER], const struct uuid *volume,
                      struct repl_msg *ret_m, struct err *e);
/* Payloads that may be given up in pieces; all others are whole. */
static inline bool repl_frame_in_pieces(const struct repl_msg *m)
{
    return m->type == REPL_WRITE || m->type == REPL_DATA ||
           (m->type == REPL_READ_OK && !(m->seq & REPL_TAG_OWN));
}

/* CRC-32C of data in pieces; a payload is the one that its header was made for if it is the header's. */
uint32_t repl_iov_crc(const struct iovec *iov, int n);
/* Copies n bytes from pieces, `skip` bytes behind their beginning, to pieces; both have them. */
void repl_iov_copy(const struct iovec *to, int to_n, const struct iovec *from, int from_n,
                   size_t skip, size_t n);
/* The pieces of n bytes behind `skip`; how many, at most `most`. */
int repl_iov_cut(const struct iovec *iov, int iov_n, size_t skip, size_t n, struct iovec *out,
                 int most);
/*
 * 64-bit sums of blocks, to find out what differs without sending it. Not against an adversary: who writes
 * the volume can only harm the volume.
 */
uint64_t repl_sum(const void *data, size_t size);

/*
 * A connection that carries frames, on an event loop: bytes to frames, frames to bytes.
 *
 *     socket ──> slices ──TLS──> header, payload ── checked ──> frame()
 *     socket <── queue <──TLS── replio_send(): 64 bytes, then the payload
 *
 * Invariants:
 *   - There is no connection without a key. Until the peer has proved that he knows it (ready()), the connection has
 *     one small buffer, and no frame is given up.
 *   - A frame is given up only whole and checked: header, volume, checksum of the payload. One that is
 *     wrong ends the connection, for nothing after it can be trusted.
 *   - A payload stays where it was received, also in several pieces, if its frame may come so
 *     (repl_frame_in_pieces()) and they are no more than REPLIO_PIECES; else it is copied together once.
 *   - frame() may have no room. Then it is asked again after replio_conn_resume(), and nothing is read
 *     meanwhile: the peer is slowed down by TCP.
 *   - closed() is called once, last, from the loop. Nobody is called after replio_conn_close().
 */
#pragma once

#include "base/vec.h"
#include "io/stream.h"
#include "repl/frame.h"
#include "replio/payload.h"
#include "replio/tls.h"

enum { REPLIO_PIECES = 20 }; /* of a payload, at most; a MiB comes in 17 or 18 */

struct replio_conn;

struct replio_conn_ops {
    /* Once, before the first frame: the peer knows the key. Or NULL. */
    void (*ready)(struct replio_conn *c);
    /* The payload in pieces; who references owner has the vector, too. */
    bool (*frame)(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov, int n,
                  struct repl_buf *owner);
    /* After all that one receive brought. */
    void (*turn)(struct replio_conn *c);
    /* The connection was ended by the peer, the network or a bad frame; why is a sentence. */
    void (*closed)(struct replio_conn *c, const char *why);
};

struct replio_conn {
    const struct replio_conn_ops
        *ops; /* the owner's, with `volume`; the rest is the connection's */
    struct uuid volume;
    struct replio_payloads *payloads;
    struct replio_tls *tls; /* NULL: it has ended */
    struct io_stream stream;
    bool ended; /* by the owner, or by a bad frame: whatever comes is dropped */
    char why[200];
    uint8_t header[REPL_HEADER];
    uint32_t header_used;
    struct repl_msg msg; /* when the header is whole */
    /* A payload so far: pieces, with a reference to each one's buffer. */
    struct io_slice piece[REPLIO_PIECES];
    unsigned pieces;
    bool gathered; /* the only piece is memory of its own, for all of the payload */
    uint32_t payload_used;
    /* A frame that there was no room for, and what came behind it. */
    bool held;
    struct repl_buf *held_owner; /* its payload; NULL: it has none */
    VEC(struct io_slice) behind;
};

/*
 * ops and volume are set. The descriptor is the connection's from here on.
 */
void replio_conn_start(struct replio_conn *c, struct io_loop *loop,
                       struct replio_payloads *payloads, int fd, const struct replio_key *key,
                       bool server);
/* There is room again. */
void replio_conn_resume(struct replio_conn *c);
/* Now, without a word to the owner but closed(). */
void replio_conn_close(struct replio_conn *c);
/* Adds a frame, with its payload in pieces, to what leaves at the end of the turn. */
void replio_send(struct replio_conn *c, const struct repl_msg *m, const struct iovec *iov,
                 unsigned n);
/* Bytes that wait to be sent. */
static inline size_t replio_conn_queued(const struct replio_conn *c)
{
    return c->stream.out.bytes;
}

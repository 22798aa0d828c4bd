/*
 * Records of TLS 1.3 (RFC 8446, section 5), one direction each, once the handshake has made their secrets.
 *
 *     [23][3.3][length][ encrypted: data, its type ][tag]        the first five bytes are authenticated, too
 *
 * GnuTLS makes the handshake; its own records would cost two copies of each byte that comes and one of each that
 * leaves. Here data is encrypted from where it lies, also in several pieces, into what is sent, and decrypted into
 * the buffer in which it stays.
 *
 * Invariants:
 *   - A nonce is used once: it is the record's number under the initial vector of its key (section 5.3), and numbers
 *     only grow. After `update_after` records, far below the limit of AES-GCM, the sender changes to the next key
 *     (section 4.6.3).
 *   - Nothing of a record is given up before its tag was checked.
 *   - Of a record that has not come whole at most its own size is kept.
 */
#pragma once

#include "base/err.h"
#include "io/queue.h"
#include "replio/aead.h"

enum {
    REPLIO_SECRET = 32, /* SHA-256 */
    REPLIO_RECORD_HEADER = 5,
    REPLIO_RECORD_SIZE = 16384, /* at most, of its plain text */
    /* What we put into one: with all around it a quarter of a large buffer. */
    REPLIO_RECORD_DATA = 16384 - REPLIO_RECORD_HEADER - 1 - REPLIO_TAG,
};

struct replio_record_key {
    gnutls_cipher_algorithm_t algorithm;
    uint8_t secret[REPLIO_SECRET];
    struct replio_aead *aead; /* owned */
    uint8_t iv[REPLIO_NONCE];
    uint64_t number; /* of the next record */
};

struct replio_sealer {
    struct replio_record_key key;
    struct io_queue *out;
    struct io_buf *buf; /* records are made here, one behind the other */
    uint32_t used;
    uint64_t update_after;
};

struct replio_opener {
    struct replio_record_key key;
    struct io_pool *pool;
    struct io_buf *plain; /* plain text goes here */
    uint32_t used;
    struct io_buf *partial; /* a record that has not come whole */
    uint32_t partial_used;
    bool wants_update; /* the peer asks for a change of our key */
};

int replio_sealer_init(struct replio_sealer *s, gnutls_cipher_algorithm_t algorithm,
                       const uint8_t *secret, struct io_queue *out, struct err *e);
void replio_sealer_done(struct replio_sealer *s);
/* Data, a head and then pieces, as records to the queue. */
int replio_seal(struct replio_sealer *s, struct iovec head, const struct iovec *iov, unsigned n,
                struct err *e);
/* The next records are under the next key. */
int replio_seal_update(struct replio_sealer *s, struct err *e);

int replio_opener_init(struct replio_opener *o, gnutls_cipher_algorithm_t algorithm,
                       const uint8_t *secret, struct io_pool *pool, struct err *e);
void replio_opener_done(struct replio_opener *o);
/* What came; plain() for all data of records that are whole. Who needs a slice longer takes a reference. */
int replio_open(struct replio_opener *o, const uint8_t *data, size_t n,
                void (*plain)(void *context, struct io_slice *slice), void *context, struct err *e);

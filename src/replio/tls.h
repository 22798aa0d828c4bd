/*
 * TLS 1.3 on a connection between a target and a replica, without sockets: bytes in, bytes out.
 *
 *     stream ──ciphertext──> replio_tls_received() ──> plain() slices
 *     stream <──ciphertext── replio_tls_send() <── pieces of plain text
 *
 * Both sides know one key, the volume's (a pre-shared key): who does not know it cannot finish the
 * handshake, neither as target nor as replica, and what passes is encrypted under keys made anew for
 * each connection (ECDHE). What is sent before the handshake is done waits for it. GnuTLS makes the handshake;
 * record.h has what follows, with the cipher that is the fastest on the target's machine (aead.h).
 */
#pragma once

#include "base/err.h"
#include "io/queue.h"

struct replio_tls;

/* A key from a file: the bytes of its first line, at least 16 of them. To be freed by the next. */
struct replio_key;
int replio_key_read(const char *path, struct replio_key **ret_key, struct err *e);
/* The same from memory: its first line. `where` says in errors where it is from. */
int replio_key_new(const void *text, size_t n, const char *where, struct replio_key **ret_key,
                   struct err *e);
void replio_key_free(struct replio_key *key);

/* What was measured to be the fastest here, as "AES-128-GCM by IPSec_MB". */
const char *replio_fastest_cipher(void);

struct replio_tls_ops {
    /* Once, before any plain text: the handshake is done, so the other side knows the key. */
    void (*ready)(void *context);
    /* Plain text that came, in a buffer: who needs it longer takes a reference. */
    void (*plain)(void *context, struct io_slice *slice);
};

/* Ciphertext goes to `out`. The key must outlive it. */
struct replio_tls *replio_tls_new(const struct replio_key *key, bool server, struct io_queue *out,
                                  const struct replio_tls_ops *ops, void *context, struct err *e);
void replio_tls_free(struct replio_tls *t);
/* The handshake is done: the other side knows the key. */
bool replio_tls_ready(const struct replio_tls *t);
/* What it encrypts with, as "AES-128-GCM"; "" before it is ready. */
const char *replio_tls_cipher(const struct replio_tls *t);
/* Ciphertext that came. An error ends the connection. */
int replio_tls_received(struct replio_tls *t, const uint8_t *data, uint32_t n, struct err *e);
int replio_tls_send(struct replio_tls *t, struct iovec head, const struct iovec *iov, unsigned n,
                    struct err *e);

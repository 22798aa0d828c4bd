/*
 * Authenticated encryption for records: the ciphers that both sides may use, each by its fastest implementation.
 *
 * Which cipher is fast depends on the processor and on the libraries, so it is measured: the first time that
 * somebody asks, each implementation encrypts a few hundred KiB. The result is kept for the life of the process.
 *
 *     AES-128-GCM           by IPSec_MB where it was built in (vector instructions), or by GnuTLS
 *     CHACHA20-POLY1305     by GnuTLS
 *
 * Both have keys under SHA-256, as pre-shared keys of TLS 1.3 need it.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum { REPLIO_NONCE = 12, REPLIO_TAG = 16, REPLIO_AEAD_KEY_MOST = 32 };

struct replio_aead;

struct replio_cipher {
    const char *name; /* as GnuTLS' priority strings say it */
    const char *by;   /* whose implementation */
    gnutls_cipher_algorithm_t algorithm;
    int64_t ns; /* for 256 KiB, when it was measured */
};

/* All implementations that work here, fastest first; *ret_n of them. */
const struct replio_cipher *replio_ciphers(unsigned *ret_n);

/* By the fastest implementation of the algorithm; NULL: there is none. */
struct replio_aead *replio_aead_new(gnutls_cipher_algorithm_t algorithm, const uint8_t *key);
/* By one of replio_ciphers(). */
struct replio_aead *replio_aead_by(const struct replio_cipher *cipher, const uint8_t *key);
void replio_aead_free(struct replio_aead *a);
/* The pieces together, encrypted, and the tag behind them, to `out`. */
bool replio_aead_seal(struct replio_aead *a, const uint8_t *nonce, struct iovec aad,
                      const struct iovec *iov, unsigned n, uint8_t *out);
/* n bytes, of which the last are the tag; n - REPLIO_TAG go to `out`. False: not what was sealed. */
bool replio_aead_open(struct replio_aead *a, const uint8_t *nonce, struct iovec aad,
                      const uint8_t *in, size_t n, uint8_t *out);

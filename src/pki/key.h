/*
 * Private keys on the curve P-256 and what they sign. A key never changes; any number of threads may
 * use one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct pki_key;

enum {
    PKI_SIGNATURE = 64, /* ES256: r and s, 32 bytes each */
    PKI_DIGEST = 32,    /* SHA-256 */
};

int pki_key_generate(struct pki_key **ret_key, struct err *e);
/* The first private key of a PEM text; it must be one for this curve. */
int pki_key_parse(const char *pem, struct pki_key **ret_key, struct err *e);
void pki_key_free(struct pki_key *k);
DEFINE_CLEANUP(struct pki_key *, pki_key_free)
/* Appends it as PEM; the text is a secret, see pki_wipe(). */
void pki_key_format(const struct pki_key *k, struct str *out);
/* Tells keys apart without telling them: the digest of the public half, as base64url. */
const char *pki_key_id(const struct pki_key *k);

int pki_key_sign(const struct pki_key *k, const void *bytes, size_t n,
                 uint8_t ret_signature[PKI_SIGNATURE], struct err *e);
bool pki_key_verify(const struct pki_key *k, const void *bytes, size_t n,
                    const uint8_t signature[PKI_SIGNATURE]);

void pki_digest(const void *bytes, size_t n, uint8_t ret_digest[PKI_DIGEST]);
/* HMAC-SHA256. */
void pki_hmac(const void *key, size_t key_size, const void *bytes, size_t n,
              uint8_t ret_mac[PKI_DIGEST]);
bool pki_digest_equal(const uint8_t a[PKI_DIGEST], const uint8_t b[PKI_DIGEST]);
/* Whether two texts are the same, in a time that does not say how much of them is. */
bool pki_equal(const char *a, const char *b);
/* Frees a text that was a secret and leaves nothing of it in memory. */
void pki_wipe(struct str *s);

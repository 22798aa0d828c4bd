/*
 * Sealed bytes: encrypted with AES-256-GCM, so that whoever reads the disk learns nothing, and
 * whoever writes it is found out.
 *
 *     byte 0      1, which no JSON text begins with
 *     1 - 4       which key: the first bytes of its SHA-256
 *     5 - 16      nonce, random
 *     17 ...      as many bytes as there were, encrypted
 *     the last 16 the tag, over those and over what the bytes are sealed as
 *
 * Keys come from a file: one in each line, 64 hexadecimal digits; empty lines and those that begin
 * with # do not count. The first key encrypts, all decrypt. So keys are rotated by putting a new one
 * in front, starting the server, which seals anew what older keys sealed, and then taking the old ones
 * out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct apiserver_keys;

/*
 * Reads the file. One that is not there has no keys: nothing can be sealed or unsealed with them.
 * FAILED_PRECONDITION when others may read it, INVALID_ARGUMENT when it is no key file.
 */
int apiserver_keys_load(const char *path, struct apiserver_keys **ret_keys, struct err *e);
/* Makes a key and a file for it, which must not be there. */
int apiserver_keys_create(const char *path, struct apiserver_keys **ret_keys, struct err *e);
void apiserver_keys_free(struct apiserver_keys *k); /* wipes them; NULL is fine */
DEFINE_CLEANUP(struct apiserver_keys *, apiserver_keys_free)

size_t apiserver_keys_count(const struct apiserver_keys *k);

bool apiserver_is_sealed(const void *bytes, size_t size);
/* Whether the first key sealed it. */
bool apiserver_is_current(const struct apiserver_keys *k, const void *bytes, size_t size);
/* How many more bytes sealed ones are. */
size_t apiserver_seal_overhead(void);

/* Replaces *out by the sealed bytes. `as` says what they are; they can be unsealed as that only. */
int apiserver_seal(const struct apiserver_keys *k, const struct str *as, const void *bytes,
                   size_t size, struct str *out, struct err *e);
/*
 * Writes the plain bytes, size - apiserver_seal_overhead() of them, to `out`. FAILED_PRECONDITION
 * ("KeyMissing") when the key is not among these, DATA_LOSS when the bytes are not as they were
 * sealed.
 */
int apiserver_unseal(const struct apiserver_keys *k, const struct str *as, const void *bytes,
                     size_t size, char *out, struct err *e);

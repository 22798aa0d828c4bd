/*
 * GnuTLS' objects in scopes, and its errors as ours. Private to this module.
 */
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "pki/cert.h"

#define _pki_datum_ _cleanup_(pki_datum_done) gnutls_datum_t

/* Always wiped: most of what the library hands out here is secret, the rest is short. */
static inline void pki_datum_done(gnutls_datum_t *d)
{
    if (d->data)
        gnutls_memset(d->data, 0, d->size);
    gnutls_free(d->data);
}

/* The library's own headers do not take const data. */
static inline gnutls_datum_t pki_datum(const void *bytes, size_t n)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)bytes, .size = (unsigned)n};
}

static inline int pki_fail(struct err *e, int code, const char *what)
{
    return err_set(e, ERR_INTERNAL, "CryptographyFailed", "cannot %s: %s", what,
                   gnutls_strerror(code));
}

DEFINE_CLEANUP(gnutls_x509_crt_t, gnutls_x509_crt_deinit)
DEFINE_CLEANUP(gnutls_x509_privkey_t, gnutls_x509_privkey_deinit)
DEFINE_CLEANUP(gnutls_x509_crq_t, gnutls_x509_crq_deinit)
DEFINE_CLEANUP(gnutls_pubkey_t, gnutls_pubkey_deinit)

/* cert.c */
/* The library's own form of a key. */
gnutls_x509_privkey_t pki_native(const struct pki_key *k);
/* As pki_cert_issue(), for a key of which only the public half is known. */
int pki_cert_issue_public(const struct pki_key *ca_key, const char *ca_cert, gnutls_pubkey_t public,
                          const struct pki_request *request, struct str *ret_cert, struct err *e);
/* key.c: borrowed. */
gnutls_pubkey_t pki_public(const struct pki_key *k);

/*
 * Requests for a certificate (PKCS#10), as others send them.
 *
 * A request is hostile until pki_csr_parse() has taken it: it is short, well formed, signed by the
 * key that it is for, and that key is strong enough. Of what it asks for only the subject and the
 * public key ever get into a certificate, and nothing that was not looked at.
 */
#pragma once

#include "pki/cert.h"

enum {
    PKI_CSR_BYTES = 16 << 10,   /* of the PEM text */
    PKI_CSR_ORGANIZATIONS = 32, /* at most */
};

struct pki_csr {
    char *pem;
    char *common_name;          /* "": none */
    const char **organizations; /* ends with NULL */
    bool has_names;             /* it asks for DNS names, addresses, ... */
    bool other_subject;         /* the subject says more than these */
};

/* INVALID_ARGUMENT with what is wrong. */
int pki_csr_parse(const char *pem, size_t n, struct pki_csr *ret_csr, struct err *e);
void pki_csr_done(struct pki_csr *r);
/* A client's certificate with the subject and for the key of the request, appended. */
int pki_csr_issue(const struct pki_key *ca_key, const char *ca_cert, const struct pki_csr *csr,
                  int64_t from, int64_t until, struct str *ret_cert, struct err *e);
/* A new request for a key, appended as PEM. */
int pki_csr_make(const struct pki_key *key, const char *common_name,
                 const char *const *organizations, struct str *ret_pem, struct err *e);

/*
 * Certificates as PEM text: making them and asking what they say. Times are seconds since 1970.
 * Where a text holds several certificates the first is meant.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pki/key.h"

enum pki_use { PKI_SERVER, PKI_CLIENT };

struct pki_request {
    enum pki_use use;
    const char *common_name;
    const char *const *organizations; /* ends with NULL; NULL: none */
    const char *const *names;         /* of a server: DNS names and addresses; ends with NULL */
    int64_t from, until;
    int64_t seconds; /* that a leaf of an authority lives (authority.h) */
};

/* Each appends the certificate to *ret_cert. */
int pki_cert_authority(const struct pki_key *key, const char *common_name, int64_t from,
                       int64_t until, struct str *ret_cert, struct err *e);
int pki_cert_issue(const struct pki_key *ca_key, const char *ca_cert, const struct pki_key *key,
                   const struct pki_request *request, struct str *ret_cert, struct err *e);
/*
 * The authority `other` under this one: who trusts only this one and is shown the result accepts
 * what `other` issues.
 */
int pki_cert_cross(const struct pki_key *ca_key, const char *ca_cert, const char *other,
                   int64_t from, int64_t until, struct str *ret_cert, struct err *e);

struct pki_facts {
    int64_t from, until;
    bool self_signed;
};

int pki_cert_read(const char *cert, struct pki_facts *ret_facts, struct err *e);
/* Whether it is for this key, was issued by this authority, and has these and no other names. */
bool pki_cert_is_for(const char *cert, const struct pki_key *key);
bool pki_cert_is_by(const char *cert, const char *ca_cert);
bool pki_cert_has_names(const char *cert, const char *const *names);
/* "sha256:HEX" of its public key, as kubeadm pins authorities, appended. */
int pki_cert_pin(const char *cert, struct str *ret_pin, struct err *e);
/* The name is fine in a certificate: an address or a DNS name. */
bool pki_name_is_valid(const char *name);
/*
 * The next certificate of a text of many, appended; *at begins as the text and moves on. False at
 * the end.
 */
bool pki_cert_next(const char **at, struct str *ret_cert);

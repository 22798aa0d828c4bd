/*
 * A certificate authority in a folder, or wherever else files can be kept: it makes itself, issues certificates into files, and renews
 * all of that in time.
 *
 *     ca.pem      key of the authority, its certificate, then older authorities, then bridges
 *     ca.crt      for others to trust: the certificates of all authorities that live
 *     NAME.pem    key and certificate of a leaf
 *     NAME.pem    likewise a key alone
 *
 * A key and what belongs to it are one file, so that a crash leaves both old or both new. Files have
 * mode 0600, the folder 0700.
 *
 *     |--- made ------------------------ two thirds of its life -------------- end ---|
 *                      in use            a new one is made: both are trusted
 *
 * Whoever got only the old authority to trust must go on working while it lives: so the old one signs
 * the new one ("bridge") when it hands over, and servers show the bridge behind their certificate.
 * The key of the old one is gone then.
 *
 * The clock decides; it may jump. An authority that begins in the future is left alone, because those
 * who trust it cannot be told of another. Not thread-safe.
 */
#pragma once

#include "base/clock.h"
#include "pki/csr.h"

struct pki_authority;

/* A place for files, in which one is replaced as a whole. */
struct pki_files {
    /* NOT_FOUND when there is none. */
    int (*read)(void *context, const char *name, struct str *ret_text, struct err *e);
    int (*replace)(void *context, const char *name, const void *bytes, size_t n, struct err *e);
    void *context;
};

enum {
    PKI_AUTHORITY_DAYS = 3650,
    PKI_LEAF_DAYS = 365,
};

/* Reads or makes it. The clock must live as long. */
int pki_authority_open(const char *folder, const struct clock *clock,
                       struct pki_authority **ret_authority, struct err *e);
/* The same in another place, which must live as long; `where` names it in messages. */
int pki_authority_open_in(const struct pki_files *files, const char *where,
                          const struct clock *clock, struct pki_authority **ret_authority,
                          struct err *e);
void pki_authority_free(struct pki_authority *a);
DEFINE_CLEANUP(struct pki_authority *, pki_authority_free)

/* Makes the next authority if it is time. *ret_changed: the bundle is another now. */
int pki_authority_renew(struct pki_authority *a, bool *ret_changed, struct err *e);
/* The certificates to trust, newest first; until the next renewal. */
const char *pki_authority_bundle(const struct pki_authority *a);
/* When something should be looked at again, in seconds since 1970. */
int64_t pki_authority_due(const struct pki_authority *a);

struct pki_leaf {
    struct str key, chain; /* PEM; the chain is the certificate and bridges */
    int64_t due;           /* when to ask again */
};

void pki_leaf_done(struct pki_leaf *l);
/*
 * The leaf in NAME.pem, made anew when there is none that is good for the request: damaged, by
 * another authority, for other names, or past two thirds of its life. from and until of the request
 * are not used; it lives for `seconds`, or where that is 0 for PKI_LEAF_DAYS. *ret_changed: it is a new one. On failure *leaf is as it was.
 */
int pki_authority_leaf(struct pki_authority *a, const char *name, const struct pki_request *request,
                       struct pki_leaf *leaf, bool *ret_changed, struct err *e);
/*
 * A client's certificate as the request asks, appended with bridges: for that many seconds, 0 for as
 * long as a leaf lives, and never longer than that or than the authority.
 */
int pki_authority_sign(const struct pki_authority *a, const struct pki_csr *csr, int64_t seconds,
                       struct str *ret_chain, struct err *e);
/* The key in NAME.pem, made when there is none. */
int pki_authority_key(struct pki_authority *a, const char *name, struct pki_key **ret_key,
                      struct err *e);

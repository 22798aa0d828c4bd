#include "pki/csr.h"

#include "base/vec.h"
#include "pki/impl.h"

enum { RSA_BITS = 2048, RSA_BITS_MAX = 8192, EC_BITS = 256, TEXT = 256, SUBJECT = 40 };

#define _crq_    _cleanup_(gnutls_x509_crq_deinitp) gnutls_x509_crq_t
#define _pubkey_ _cleanup_(gnutls_pubkey_deinitp) gnutls_pubkey_t

static int invalid(struct err *e, const char *why)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidRequest", "%s", why);
}

void pki_csr_done(struct pki_csr *r)
{
    for (const char **o = r->organizations; o && *o; o++)
        free((char *)(uintptr_t)*o);
    free(r->organizations);
    free(r->common_name);
    free(r->pem);
    *r = (struct pki_csr){0};
}

/* The text of an attribute of the subject; NULL when there is none. */
static char *attribute(gnutls_x509_crq_t crq, const char *oid, unsigned index)
{
    char text[TEXT];
    size_t n = sizeof(text);
    if (gnutls_x509_crq_get_dn_by_oid(crq, oid, index, 0, text, &n) < 0 || n >= sizeof(text) ||
        strlen(text) != n) /* a name with a NUL in it means something else to others */
        return NULL;
    return mem_strdup(text);
}

/* How many parts the subject has, counted up to a bound. */
static unsigned subject_parts(gnutls_x509_crq_t crq)
{
    unsigned n = 0;
    for (; n <= SUBJECT; n++) {
        char oid[TEXT];
        size_t size = sizeof(oid);
        if (gnutls_x509_crq_get_dn_oid(crq, n, oid, &size) < 0)
            break;
    }
    return n;
}

static int take_subject(gnutls_x509_crq_t crq, struct pki_csr *r, struct err *e)
{
    VEC(const char *) organizations = {0};
    r->common_name = attribute(crq, GNUTLS_OID_X520_COMMON_NAME, 0);
    unsigned known = r->common_name ? 1 : 0;
    for (unsigned i = 0; i < PKI_CSR_ORGANIZATIONS; i++) {
        char *o = attribute(crq, GNUTLS_OID_X520_ORGANIZATION_NAME, i);
        if (!o)
            break;
        vec_push(&organizations, o);
        known++;
    }
    vec_push(&organizations, NULL);
    r->organizations = organizations.p;
    if (!r->common_name)
        r->common_name = mem_strdup("");
    unsigned parts = subject_parts(crq);
    r->other_subject = parts != known;
    return parts > SUBJECT ? invalid(e, "its subject has too many parts") : 0;
}

static int check_key(gnutls_pubkey_t public, struct err *e)
{
    unsigned bits = 0;
    int algorithm = gnutls_pubkey_get_pk_algorithm(public, &bits);
    switch (algorithm) {
    case GNUTLS_PK_RSA:
        return bits >= RSA_BITS && bits <= RSA_BITS_MAX
                   ? 0
                   : invalid(e, "an RSA key must have from 2048 to 8192 bits");
    case GNUTLS_PK_ECDSA:
        return bits >= EC_BITS ? 0 : invalid(e, "an ECDSA key must be for the curve P-256 or more");
    case GNUTLS_PK_EDDSA_ED25519:
        return 0;
    default:
        return invalid(e, "its key must be RSA, ECDSA or Ed25519");
    }
}

static int import(const char *pem, size_t n, gnutls_x509_crq_t *ret_crq,
                  gnutls_pubkey_t *ret_public, struct err *e)
{
    gnutls_datum_t text = pki_datum(pem, n);
    _crq_ crq = NULL;
    _pubkey_ public = NULL;
    if (gnutls_x509_crq_init(&crq) < 0 || gnutls_pubkey_init(&public) < 0)
        abort(); /* out of memory */
    if (gnutls_x509_crq_import(crq, &text, GNUTLS_X509_FMT_PEM) < 0)
        return invalid(e, "it is no certificate request (PKCS#10) in PEM");
    if (gnutls_pubkey_import_x509_crq(public, crq, 0) < 0)
        return invalid(e, "its public key cannot be read");
    *ret_crq = TAKE_PTR(crq);
    *ret_public = TAKE_PTR(public);
    return 0;
}

int pki_csr_parse(const char *pem, size_t n, struct pki_csr *ret_csr, struct err *e)
{
    static const char begin[] = "-----BEGIN";
    if (n > PKI_CSR_BYTES)
        return invalid(e, "it is longer than 16 KiB");
    if (n < sizeof(begin) || memcmp(pem, begin, sizeof(begin) - 1) != 0 || memchr(pem, '\0', n))
        return invalid(e, "it is no certificate request (PKCS#10) in PEM");
    _crq_ crq = NULL;
    _pubkey_ public = NULL;
    if (import(pem, n, &crq, &public, e) < 0 || check_key(public, e) < 0)
        return -1;
    if (gnutls_x509_crq_verify(crq, 0) < 0)
        return invalid(e, "it is not signed by its own key");
    struct pki_csr r = {.pem = mem_strndup(pem, n)};
    if (take_subject(crq, &r, e) < 0) {
        pki_csr_done(&r);
        return -1;
    }
    unsigned char name[1];
    size_t size = sizeof(name);
    unsigned type;
    r.has_names = gnutls_x509_crq_get_subject_alt_name(crq, 0, name, &size, &type, NULL) !=
                  GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
    *ret_csr = r;
    return 0;
}

int pki_csr_issue(const struct pki_key *ca_key, const char *ca_cert, const struct pki_csr *csr,
                  int64_t from, int64_t until, struct str *ret_cert, struct err *e)
{
    _crq_ crq = NULL;
    _pubkey_ public = NULL;
    const struct pki_request request = {
        .use = PKI_CLIENT,
        .common_name = csr->common_name,
        .organizations = csr->organizations,
        .from = from,
        .until = until,
    };
    if (import(csr->pem, strlen(csr->pem), &crq, &public, e) < 0)
        return -1;
    return pki_cert_issue_public(ca_key, ca_cert, public, &request, ret_cert, e);
}

int pki_csr_make(const struct pki_key *key, const char *common_name,
                 const char *const *organizations, struct str *ret_pem, struct err *e)
{
    _crq_ crq = NULL;
    _cleanup_(gnutls_x509_privkey_deinitp) gnutls_x509_privkey_t own = pki_native(key);
    _pki_datum_ pem = {0};
    int r = gnutls_x509_crq_init(&crq);
    if (r >= 0)
        r = gnutls_x509_crq_set_version(crq, 1);
    if (r >= 0)
        r = gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_COMMON_NAME, 0, common_name,
                                          (unsigned)strlen(common_name));
    for (; organizations && *organizations && r >= 0; organizations++)
        r = gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, *organizations,
                                          (unsigned)strlen(*organizations));
    if (r >= 0)
        r = gnutls_x509_crq_set_key(crq, own);
    if (r >= 0)
        r = gnutls_x509_crq_sign2(crq, own, GNUTLS_DIG_SHA256, 0);
    if (r >= 0)
        r = gnutls_x509_crq_export2(crq, GNUTLS_X509_FMT_PEM, &pem);
    if (r >= 0)
        str_append_n(ret_pem, pem.data, pem.size);
    return r < 0 ? pki_fail(e, r, "make a certificate request") : 0;
}

#include "pki/key.h"

#include "base/base64.h"
#include "pki/impl.h"

enum { HALF = PKI_SIGNATURE / 2 };

struct pki_key {
    gnutls_x509_privkey_t x509;
    gnutls_privkey_t private;
    gnutls_pubkey_t public;
    char *id;
};

void pki_key_free(struct pki_key *k)
{
    if (!k)
        return;
    if (k->public)
        gnutls_pubkey_deinit(k->public);
    if (k->private)
        gnutls_privkey_deinit(k->private);
    if (k->x509)
        gnutls_x509_privkey_deinit(k->x509);
    free(k->id);
    free(k);
}

static char *id_of(gnutls_pubkey_t public)
{
    _pki_datum_ der = {0};
    uint8_t digest[PKI_DIGEST];
    struct str text = {0};
    if (gnutls_pubkey_export2(public, GNUTLS_X509_FMT_DER, &der) < 0)
        abort(); /* out of memory */
    pki_digest(der.data, der.size, digest);
    base64_format(digest, sizeof(digest), BASE64_URL, &text);
    return str_take(&text);
}

/* The rest of a key whose x509 is set. */
static int finish(struct pki_key *k)
{
    int r = gnutls_privkey_init(&k->private);
    if (r >= 0)
        r = gnutls_pubkey_init(&k->public);
    if (r >= 0)
        r = gnutls_privkey_import_x509(k->private, k->x509, 0);
    if (r >= 0)
        r = gnutls_pubkey_import_privkey(k->public, k->private, 0, 0);
    if (r >= 0)
        k->id = id_of(k->public);
    return r;
}

int pki_key_generate(struct pki_key **ret_key, struct err *e)
{
    _cleanup_(pki_key_freep) struct pki_key *k = NEW(struct pki_key);
    int r = gnutls_x509_privkey_init(&k->x509);
    if (r >= 0)
        r = gnutls_x509_privkey_generate(k->x509, GNUTLS_PK_ECDSA,
                                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (r >= 0)
        r = finish(k);
    if (r < 0)
        return pki_fail(e, r, "make a private key");
    *ret_key = TAKE_PTR(k);
    return 0;
}

int pki_key_parse(const char *pem, struct pki_key **ret_key, struct err *e)
{
    _cleanup_(pki_key_freep) struct pki_key *k = NEW(struct pki_key);
    gnutls_datum_t text = pki_datum(pem, strlen(pem));
    int r = gnutls_x509_privkey_init(&k->x509);
    if (r >= 0)
        r = gnutls_x509_privkey_import2(k->x509, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (r < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidKey", "this is no private key in PEM: %s",
                       gnutls_strerror(r));
    gnutls_ecc_curve_t curve;
    if (gnutls_x509_privkey_export_ecc_raw(k->x509, &curve, NULL, NULL, NULL) < 0 ||
        curve != GNUTLS_ECC_CURVE_SECP256R1)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidKey",
                       "the private key is not for the curve P-256, the only one in use here");
    r = finish(k);
    if (r < 0)
        return pki_fail(e, r, "use a private key");
    *ret_key = TAKE_PTR(k);
    return 0;
}

void pki_key_format(const struct pki_key *k, struct str *out)
{
    _pki_datum_ pem = {0};
    if (gnutls_x509_privkey_export2_pkcs8(k->x509, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                          &pem) < 0)
        abort(); /* out of memory */
    str_append_n(out, pem.data, pem.size);
}

gnutls_pubkey_t pki_public(const struct pki_key *k)
{
    return k->public;
}

const char *pki_key_id(const struct pki_key *k)
{
    return k->id;
}

/* A big-endian number, which may be shorter or begin with a zero, in exactly HALF bytes. */
static bool put_number(const gnutls_datum_t *number, uint8_t *out)
{
    const unsigned char *p = number->data;
    unsigned n = number->size;
    for (; n && !*p; n--)
        p++;
    if (n > HALF)
        return false;
    memset(out, 0, HALF - n);
    memcpy(out + HALF - n, p, n);
    return true;
}

int pki_key_sign(const struct pki_key *k, const void *bytes, size_t n,
                 uint8_t ret_signature[PKI_SIGNATURE], struct err *e)
{
    gnutls_datum_t data = pki_datum(bytes, n);
    _pki_datum_ der = {0}, first = {0}, second = {0};
    int r = gnutls_privkey_sign_data2(k->private, GNUTLS_SIGN_ECDSA_SHA256, 0, &data, &der);
    if (r >= 0)
        r = gnutls_decode_rs_value(&der, &first, &second);
    if (r >= 0 &&
        (!put_number(&first, ret_signature) || !put_number(&second, ret_signature + HALF)))
        r = GNUTLS_E_INTERNAL_ERROR;
    return r < 0 ? pki_fail(e, r, "sign") : 0;
}

bool pki_key_verify(const struct pki_key *k, const void *bytes, size_t n,
                    const uint8_t signature[PKI_SIGNATURE])
{
    gnutls_datum_t data = pki_datum(bytes, n);
    gnutls_datum_t first = pki_datum(signature, HALF), second = pki_datum(signature + HALF, HALF);
    _pki_datum_ der = {0};
    return gnutls_encode_rs_value(&der, &first, &second) >= 0 &&
           gnutls_pubkey_verify_data2(k->public, GNUTLS_SIGN_ECDSA_SHA256, 0, &data, &der) >= 0;
}

void pki_digest(const void *bytes, size_t n, uint8_t ret_digest[PKI_DIGEST])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, n, ret_digest) < 0)
        abort(); /* out of memory */
}

void pki_hmac(const void *key, size_t key_size, const void *bytes, size_t n,
              uint8_t ret_mac[PKI_DIGEST])
{
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_size, bytes, n, ret_mac) < 0)
        abort(); /* out of memory */
}

bool pki_digest_equal(const uint8_t a[PKI_DIGEST], const uint8_t b[PKI_DIGEST])
{
    return gnutls_memcmp(a, b, PKI_DIGEST) == 0;
}

bool pki_equal(const char *a, const char *b)
{
    /* Digests have one length and say nothing of what they are of. */
    uint8_t x[PKI_DIGEST], y[PKI_DIGEST];
    pki_digest(a, strlen(a), x);
    pki_digest(b, strlen(b), y);
    return pki_digest_equal(x, y);
}

void pki_wipe(struct str *s)
{
    if (s->p)
        gnutls_memset(s->p, 0, s->cap);
    str_done(s);
}

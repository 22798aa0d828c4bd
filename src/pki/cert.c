#include "pki/cert.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include "base/vec.h"
#include "pki/impl.h"

enum { SERIAL = 16, NAME_MAX_BYTES = 253 };

#define _crt_ _cleanup_(gnutls_x509_crt_deinitp) gnutls_x509_crt_t
#define _key_ _cleanup_(gnutls_x509_privkey_deinitp) gnutls_x509_privkey_t

static gnutls_x509_crt_t parse(const char *pem)
{
    gnutls_datum_t text = pki_datum(pem, strlen(pem));
    _crt_ crt = NULL;
    if (gnutls_x509_crt_init(&crt) < 0 ||
        gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM) < 0)
        return NULL;
    return TAKE_PTR(crt);
}

static gnutls_x509_crt_t parse_or_fail(const char *pem, struct err *e)
{
    gnutls_x509_crt_t crt = parse(pem);
    if (!crt)
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidCertificate", "this is no certificate in PEM");
    return crt;
}

gnutls_x509_privkey_t pki_native(const struct pki_key *k)
{
    _cleanup_(pki_wipe) struct str pem = {0};
    pki_key_format(k, &pem);
    gnutls_datum_t text = pki_datum(pem.p, pem.len);
    gnutls_x509_privkey_t key = NULL;
    if (gnutls_x509_privkey_init(&key) < 0 ||
        gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM) < 0)
        abort(); /* out of memory */
    return key;
}

/* What all certificates have: version, a serial number nobody can guess, a name, an age. */
static int set_common(gnutls_x509_crt_t crt, int64_t from, int64_t until)
{
    uint8_t serial[SERIAL];
    if (getrandom(serial, sizeof(serial), 0) != (ssize_t)sizeof(serial))
        abort();
    serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, and always of full length */
    int r = gnutls_x509_crt_set_version(crt, 3);
    if (r >= 0)
        r = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
    if (r >= 0)
        r = gnutls_x509_crt_set_activation_time(crt, (time_t)from);
    if (r >= 0)
        r = gnutls_x509_crt_set_expiration_time(crt, (time_t)until);
    return r;
}

static int set_name(gnutls_x509_crt_t crt, const char *oid, const char *text)
{
    return gnutls_x509_crt_set_dn_by_oid(crt, oid, 0, text, (unsigned)strlen(text));
}

static int set_key_id(gnutls_x509_crt_t crt)
{
    unsigned char id[64];
    size_t n = sizeof(id);
    int r = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA1, id, &n);
    return r < 0 ? r : gnutls_x509_crt_set_subject_key_id(crt, id, n);
}

static int set_authority(gnutls_x509_crt_t crt)
{
    int r = gnutls_x509_crt_set_ca_status(crt, 1);
    if (r >= 0)
        r = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN |
                                                   GNUTLS_KEY_DIGITAL_SIGNATURE);
    return r >= 0 ? set_key_id(crt) : r;
}

/* Signs and appends. */
static int finish(gnutls_x509_crt_t crt, gnutls_x509_crt_t ca, const struct pki_key *ca_key,
                  struct str *ret_cert)
{
    unsigned char id[64];
    size_t n = sizeof(id);
    int r = 0;
    if (crt != ca && gnutls_x509_crt_get_subject_key_id(ca, id, &n, NULL) >= 0)
        r = gnutls_x509_crt_set_authority_key_id(crt, id, n);
    _key_ key = pki_native(ca_key);
    if (r >= 0)
        r = gnutls_x509_crt_sign2(crt, ca, key, GNUTLS_DIG_SHA256, 0);
    _pki_datum_ pem = {0};
    if (r >= 0)
        r = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);
    if (r >= 0)
        str_append_n(ret_cert, pem.data, pem.size);
    return r;
}

int pki_cert_authority(const struct pki_key *key, const char *common_name, int64_t from,
                       int64_t until, struct str *ret_cert, struct err *e)
{
    _crt_ crt = NULL;
    _key_ own = pki_native(key);
    int r = gnutls_x509_crt_init(&crt);
    if (r >= 0)
        r = set_common(crt, from, until);
    if (r >= 0)
        r = set_name(crt, GNUTLS_OID_X520_COMMON_NAME, common_name);
    if (r >= 0)
        r = gnutls_x509_crt_set_key(crt, own);
    if (r >= 0)
        r = set_authority(crt);
    if (r >= 0)
        r = finish(crt, crt, key, ret_cert);
    return r < 0 ? pki_fail(e, r, "make a certificate authority") : 0;
}

int pki_cert_cross(const struct pki_key *ca_key, const char *ca_cert, const char *other,
                   int64_t from, int64_t until, struct str *ret_cert, struct err *e)
{
    _crt_ ca = parse_or_fail(ca_cert, e);
    _crt_ subject = ca ? parse_or_fail(other, e) : NULL;
    if (!subject)
        return -1;
    _crt_ crt = NULL;
    _cleanup_free_ char *name = NULL;
    _pki_datum_ dn = {0};
    gnutls_pubkey_t public = NULL;
    int r = gnutls_x509_crt_init(&crt);
    if (r >= 0)
        r = gnutls_pubkey_init(&public);
    if (r >= 0)
        r = gnutls_pubkey_import_x509(public, subject, 0);
    if (r >= 0)
        r = gnutls_x509_crt_set_pubkey(crt, public);
    if (public)
        gnutls_pubkey_deinit(public);
    if (r >= 0)
        r = set_common(crt, from, until);
    if (r >= 0)
        r = gnutls_x509_crt_get_dn3(subject, &dn, 0);
    if (r >= 0) {
        name = mem_strndup((const char *)dn.data, dn.size);
        r = gnutls_x509_crt_set_dn(crt, name, NULL);
    }
    if (r >= 0)
        r = set_authority(crt);
    if (r >= 0)
        r = finish(crt, ca, ca_key, ret_cert);
    return r < 0 ? pki_fail(e, r, "sign the next certificate authority") : 0;
}

/* The bytes of an address, 4 or 16; 0 when it is none. */
static size_t address_bytes(const char *text, uint8_t ret_bytes[16])
{
    if (inet_pton(AF_INET, text, ret_bytes) == 1)
        return 4;
    return inet_pton(AF_INET6, text, ret_bytes) == 1 ? 16 : 0;
}

static int set_names(gnutls_x509_crt_t crt, const char *const *names)
{
    for (; names && *names; names++) {
        uint8_t address[16];
        size_t n = address_bytes(*names, address);
        int r =
            n ? gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address,
                                                     (unsigned)n, GNUTLS_FSAN_APPEND)
              : gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, *names,
                                                     (unsigned)strlen(*names), GNUTLS_FSAN_APPEND);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_request(gnutls_x509_crt_t crt, const struct pki_request *request)
{
    int r = set_name(crt, GNUTLS_OID_X520_COMMON_NAME, request->common_name);
    for (const char *const *o = request->organizations; o && *o && r >= 0; o++)
        r = set_name(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, *o);
    if (r >= 0)
        r = set_names(crt, request->names);
    if (r >= 0)
        r = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
    if (r >= 0)
        r = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
    if (r >= 0)
        r = gnutls_x509_crt_set_key_purpose_oid(
            crt, request->use == PKI_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT,
            0);
    return r;
}

int pki_cert_issue_public(const struct pki_key *ca_key, const char *ca_cert, gnutls_pubkey_t public,
                          const struct pki_request *request, struct str *ret_cert, struct err *e)
{
    for (const char *const *name = request->names; name && *name; name++) {
        if (!pki_name_is_valid(*name))
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidName",
                           "'%s' cannot stand in a certificate: write a DNS name or an address",
                           *name);
    }
    _crt_ ca = parse_or_fail(ca_cert, e);
    if (!ca)
        return -1;
    _crt_ crt = NULL;
    int r = gnutls_x509_crt_init(&crt);
    if (r >= 0)
        r = set_common(crt, request->from, request->until);
    if (r >= 0)
        r = gnutls_x509_crt_set_pubkey(crt, public);
    if (r >= 0)
        r = set_request(crt, request);
    if (r >= 0)
        r = set_key_id(crt);
    if (r >= 0)
        r = finish(crt, ca, ca_key, ret_cert);
    return r < 0 ? pki_fail(e, r, "issue a certificate") : 0;
}

int pki_cert_issue(const struct pki_key *ca_key, const char *ca_cert, const struct pki_key *key,
                   const struct pki_request *request, struct str *ret_cert, struct err *e)
{
    return pki_cert_issue_public(ca_key, ca_cert, pki_public(key), request, ret_cert, e);
}

int pki_cert_read(const char *cert, struct pki_facts *ret_facts, struct err *e)
{
    _crt_ crt = parse_or_fail(cert, e);
    if (!crt)
        return -1;
    ret_facts->from = gnutls_x509_crt_get_activation_time(crt);
    ret_facts->until = gnutls_x509_crt_get_expiration_time(crt);
    ret_facts->self_signed = gnutls_x509_crt_check_issuer(crt, crt);
    return 0;
}

int pki_cert_pin(const char *cert, struct str *ret_pin, struct err *e)
{
    _crt_ crt = parse_or_fail(cert, e);
    if (!crt)
        return -1;
    unsigned char id[64];
    size_t n = sizeof(id);
    int r = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, id, &n);
    if (r < 0)
        return pki_fail(e, r, "take the digest of a public key");
    str_append(ret_pin, "sha256:");
    for (size_t i = 0; i < n; i++)
        str_appendf(ret_pin, "%02x", id[i]);
    return 0;
}

bool pki_cert_is_for(const char *cert, const struct pki_key *key)
{
    _crt_ crt = parse(cert);
    if (!crt)
        return false;
    _key_ own = pki_native(key);
    unsigned char x[64], y[64];
    size_t n = sizeof(x), m = sizeof(y);
    return gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, x, &n) >= 0 &&
           gnutls_x509_privkey_get_key_id(own, GNUTLS_KEYID_USE_SHA256, y, &m) >= 0 && n == m &&
           memcmp(x, y, n) == 0;
}

bool pki_cert_is_by(const char *cert, const char *ca_cert)
{
    _crt_ crt = parse(cert), ca = parse(ca_cert);
    unsigned status = 0;
    /* The library takes a certificate that is itself trusted for one that is issued by that. */
    return crt && ca && gnutls_x509_crt_check_issuer(crt, ca) &&
           gnutls_x509_crt_verify(crt, &ca, 1,
                                  GNUTLS_VERIFY_DISABLE_TIME_CHECKS |
                                      GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS,
                                  &status) >= 0 &&
           status == 0;
}

/* Whether a subject alternative name, as its bytes are in the certificate, is that one. */
static bool is_name(const char *name, unsigned type, const char *bytes, size_t n)
{
    uint8_t address[16];
    size_t size = address_bytes(name, address);
    if (type == GNUTLS_SAN_IPADDRESS)
        return size == n && size && memcmp(address, bytes, n) == 0;
    return type == GNUTLS_SAN_DNSNAME && !size && strlen(name) == n && memcmp(name, bytes, n) == 0;
}

bool pki_cert_has_names(const char *cert, const char *const *names)
{
    _crt_ crt = parse(cert);
    unsigned have = 0, wanted = 0;
    while (names && names[wanted])
        wanted++;
    for (;; have++) {
        char bytes[NAME_MAX_BYTES + 1];
        size_t n = sizeof(bytes);
        int type = crt ? gnutls_x509_crt_get_subject_alt_name(crt, have, bytes, &n, NULL) : -1;
        if (type < 0)
            break;
        unsigned i = 0;
        while (i < wanted && !is_name(names[i], (unsigned)type, bytes, n))
            i++;
        if (i == wanted)
            return false;
    }
    return crt && have == wanted;
}

bool pki_name_is_valid(const char *name)
{
    uint8_t address[16];
    if (address_bytes(name, address))
        return true;
    size_t n = strlen(name), part = 0;
    if (str_starts_with(name, "*."))
        name += 2;
    for (const char *p = name; *p; p++) {
        bool letter = (*p >= '0' && *p <= '9') || ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z');
        if (*p == '.' && part == 0)
            return false;
        if (!letter && *p != '.' && *p != '_' && (*p != '-' || part == 0))
            return false;
        part = *p == '.' ? 0 : part + 1;
    }
    return part > 0 && n <= NAME_MAX_BYTES;
}

bool pki_cert_next(const char **at, struct str *ret_cert)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----";
    static const char end[] = "-----END CERTIFICATE-----";
    const char *from = strstr(*at, begin);
    const char *until = from ? strstr(from, end) : NULL;
    if (!until)
        return false;
    until += sizeof(end) - 1;
    str_append_n(ret_cert, from, (size_t)(until - from));
    str_append_c(ret_cert, '\n');
    *at = until;
    return true;
}

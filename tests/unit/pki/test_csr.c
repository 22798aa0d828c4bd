#include "pki/authority.h"
#include "pki/csr.h"
#include "pki/fixture.h"

static const char *const organizations[] = {"system:nodes", "more", NULL};

static void test_round_trip(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str pem = {0}, cert = {0};
    struct pki_csr csr = {0};
    struct pki_facts facts;
    assert_int_equal(pki_csr_make(key, "system:node:a", organizations, &pem, NULL), 0);
    assert_int_equal(pki_csr_parse(pem.p, pem.len, &csr, NULL), 0);
    assert_string_equal(csr.common_name, "system:node:a");
    assert_string_equal(csr.organizations[0], "system:nodes");
    assert_string_equal(csr.organizations[1], "more");
    assert_null(csr.organizations[2]);
    assert_false(csr.has_names);
    assert_false(csr.other_subject);
    assert_int_equal(pki_csr_issue(ca_key, ca.p, &csr, FROM, FROM + 60, &cert, NULL), 0);
    assert_true(pki_cert_is_for(cert.p, key));
    assert_true(pki_cert_is_by(cert.p, ca.p));
    assert_int_equal(pki_cert_read(cert.p, &facts, NULL), 0);
    assert_int_equal(facts.until, FROM + 60);
    pki_csr_done(&csr);
}

static void test_refused(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str pem = {0}, longer = {0};
    struct pki_csr csr = {0};
    struct err e = {0};
    assert_int_equal(pki_csr_make(key, "a", NULL, &pem, NULL), 0);
    static const char *const bad[] = {
        "", "x", "-----BEGIN CERTIFICATE REQUEST-----", "-----BEGIN CERTIFICATE REQUEST-----\n!!\n",
        "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(pki_csr_parse(bad[i], strlen(bad[i]), &csr, &e), -1);
        assert_string_equal(e.reason, "InvalidRequest");
    }
    assert_int_equal(pki_csr_parse(ca.p, ca.len, &csr, &e), -1); /* a certificate */
    str_append(&longer, pem.p);
    while (longer.len <= PKI_CSR_BYTES)
        str_append_c(&longer, '\n');
    assert_int_equal(pki_csr_parse(longer.p, longer.len, &csr, &e), -1);
    assert_non_null(strstr(e.msg, "16 KiB"));
    /* Every byte of it matters, or it is no longer a request. */
    for (size_t i = 40; i + 40 < pem.len; i += 7) {
        char was = pem.p[i];
        pem.p[i] = was == 'A' ? 'B' : 'A';
        if (was != '\n')
            assert_int_equal(pki_csr_parse(pem.p, pem.len, &csr, &e), -1);
        pem.p[i] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

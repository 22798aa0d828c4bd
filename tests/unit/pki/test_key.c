#include "pki/key.h"
#include "unit.h"

static struct pki_key *key_new(void)
{
    struct pki_key *k = NULL;
    struct err e = {0};
    if (pki_key_generate(&k, &e) < 0)
        fail_msg("%s", e.msg);
    return k;
}

static void test_text(void **state)
{
    (void)state;
    _cleanup_(pki_key_freep) struct pki_key *k = key_new(), *other = key_new(), *same = NULL;
    _cleanup_(pki_wipe) struct str pem = {0}, again = {0};
    pki_key_format(k, &pem);
    assert_true(str_starts_with(pem.p, "-----BEGIN PRIVATE KEY-----\n"));
    assert_int_equal(pki_key_parse(pem.p, &same, NULL), 0);
    pki_key_format(same, &again);
    assert_string_equal(pem.p, again.p);
    assert_string_equal(pki_key_id(k), pki_key_id(same));
    assert_string_not_equal(pki_key_id(k), pki_key_id(other));
    assert_int_equal(strlen(pki_key_id(k)), 43);
}

static void test_no_keys(void **state)
{
    /* A key for P-384, one for RSA of 512 bits, and what is no key. */
    static const char *const texts[] = {
        "",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\n"
        "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCGJX7Q8Wc6AT7cbIRF\n"
        "-----END PRIVATE KEY-----\n",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct pki_key *k = NULL;
        struct err e = {0};
        assert_int_equal(pki_key_parse(texts[i], &k, &e), -1);
        assert_string_equal(e.reason, "InvalidKey");
        assert_null(k);
    }
}

static void test_sign(void **state)
{
    (void)state;
    static const char text[] = "what is signed";
    _cleanup_(pki_key_freep) struct pki_key *k = key_new(), *other = key_new();
    uint8_t signature[PKI_SIGNATURE];
    /* Often enough for numbers that are a byte shorter. */
    for (int i = 0; i < 300; i++) {
        assert_int_equal(pki_key_sign(k, text, strlen(text), signature, NULL), 0);
        assert_true(pki_key_verify(k, text, strlen(text), signature));
    }
    assert_false(pki_key_verify(other, text, strlen(text), signature));
    assert_false(pki_key_verify(k, text, strlen(text) - 1, signature));
    for (size_t i = 0; i < PKI_SIGNATURE; i++) {
        signature[i] ^= 1;
        assert_false(pki_key_verify(k, text, strlen(text), signature));
        signature[i] ^= 1;
    }
    memset(signature, 0, sizeof(signature));
    assert_false(pki_key_verify(k, text, strlen(text), signature));
    memset(signature, 0xff, sizeof(signature));
    assert_false(pki_key_verify(k, text, strlen(text), signature));
}

static void test_equal(void **state)
{
    (void)state;
    assert_true(pki_equal("", ""));
    assert_true(pki_equal("secret", "secret"));
    assert_false(pki_equal("secret", "secreT"));
    assert_false(pki_equal("secret", "secret1"));
    assert_false(pki_equal("secret", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_sign),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "pki/fixture.h"

static const char *const names[] = {"localhost", "127.0.0.1", "::1", "*.example.test", NULL};

static void issue(struct str *cert)
{
    struct pki_request r = {
        .common_name = "server", .names = names, .from = FROM + 1, .until = UNTIL - 1};
    struct err e = {0};
    if (pki_cert_issue(ca_key, ca.p, key, &r, cert, &e) < 0)
        fail_msg("%s", e.msg);
}

static void test_facts(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str cert = {0};
    struct pki_facts facts;
    issue(&cert);
    assert_int_equal(pki_cert_read(cert.p, &facts, NULL), 0);
    assert_int_equal(facts.from, FROM + 1);
    assert_int_equal(facts.until, UNTIL - 1);
    assert_false(facts.self_signed);
    assert_int_equal(pki_cert_read(ca.p, &facts, NULL), 0);
    assert_true(facts.self_signed);
    struct err e = {0};
    assert_int_equal(pki_cert_read("nothing", &facts, &e), -1);
    assert_string_equal(e.reason, "InvalidCertificate");
}

static void test_belongs(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str cert = {0}, other = {0};
    issue(&cert);
    assert_true(pki_cert_is_for(cert.p, key));
    assert_false(pki_cert_is_for(cert.p, ca_key));
    assert_true(pki_cert_is_by(cert.p, ca.p));
    /* Another of the same name is another. */
    assert_int_equal(pki_cert_authority(key, "orlop-ca", FROM, UNTIL, &other, NULL), 0);
    assert_false(pki_cert_is_by(cert.p, other.p));
    assert_false(pki_cert_is_by(cert.p, cert.p));
}

static void test_names(void **state)
{
    static const char *const fewer[] = {"localhost", "127.0.0.1", "::1", NULL};
    static const char *const others[] = {"localhost", "127.0.0.1", "::2", "*.example.test", NULL};
    static const char *const more[] = {"localhost",      "127.0.0.1", "::1",
                                       "*.example.test", "another",   NULL};
    (void)state;
    _cleanup_(str_done) struct str cert = {0};
    issue(&cert);
    assert_true(pki_cert_has_names(cert.p, names));
    assert_false(pki_cert_has_names(cert.p, fewer));
    assert_false(pki_cert_has_names(cert.p, others));
    assert_false(pki_cert_has_names(cert.p, more));
    assert_false(pki_cert_has_names("nothing", names));
    assert_true(pki_cert_has_names(ca.p, NULL));
}

static void test_name_rules(void **state)
{
    static const struct {
        const char *name;
        bool valid;
    } cases[] = {
        {"a", true},        {"a-b.c", true},  {"10.0.0.1", true},  {"fe80::1", true}, {"*.a", true},
        {"a_b", true},      {"", false},      {".", false},        {"a..b", false},   {"a.", false},
        {"-a", false},      {"a b", false},   {"a\nb", false},     {"a*b", false},    {"*", false},
        {"a,DNS:b", false}, {"[::1]", false}, {"\xc3\xa4", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (pki_name_is_valid(cases[i].name) != cases[i].valid)
            fail_msg("'%s'", cases[i].name);
    }
    struct pki_request r = {
        .common_name = "x", .names = (const char *const[]){"no name", NULL}, .until = UNTIL};
    struct err e = {0};
    _cleanup_(str_done) struct str cert = {0};
    assert_int_equal(pki_cert_issue(ca_key, ca.p, key, &r, &cert, &e), -1);
    assert_string_equal(e.reason, "InvalidName");
    assert_int_equal(cert.len, 0);
}

static void test_cross(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str next = {0}, bridge = {0}, cert = {0};
    struct pki_request r = {.common_name = "server", .from = FROM, .until = UNTIL};
    struct pki_facts facts;
    assert_int_equal(pki_cert_authority(key, "next-ca", FROM, UNTIL, &next, NULL), 0);
    assert_int_equal(pki_cert_cross(ca_key, ca.p, next.p, FROM, UNTIL, &bridge, NULL), 0);
    assert_int_equal(pki_cert_issue(key, next.p, ca_key, &r, &cert, NULL), 0);
    assert_true(pki_cert_is_by(bridge.p, ca.p));
    assert_true(pki_cert_is_by(cert.p, bridge.p));
    assert_int_equal(pki_cert_read(bridge.p, &facts, NULL), 0);
    assert_false(facts.self_signed);
}

static void test_many(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str text = {0}, first = {0}, second = {0}, third = {0};
    str_append(&text, "in front\n");
    str_append(&text, ca.p);
    str_append(&text, "between\n");
    issue(&text);
    str_append(&text, "-----BEGIN CERTIFICATE-----\nhalf of one");
    const char *at = text.p;
    assert_true(pki_cert_next(&at, &first));
    assert_string_equal(first.p, ca.p);
    assert_true(pki_cert_next(&at, &second));
    assert_true(pki_cert_is_by(second.p, ca.p));
    assert_false(pki_cert_next(&at, &third));
    assert_int_equal(third.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts), cmocka_unit_test(test_belongs),
        cmocka_unit_test(test_names), cmocka_unit_test(test_name_rules),
        cmocka_unit_test(test_cross), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

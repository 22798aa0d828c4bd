/*
 * The authority over the years, with a clock that is moved.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "pki/authority.h"
#include "unit.h"

#define DAYS(n) ((int64_t)(n)*24 * 60 * 60 * CLOCK_SECOND)

static char *folder;
static struct clock_manual now;
static struct pki_authority *authority;
static struct pki_leaf server;
static const char *const names[] = {"localhost", "127.0.0.1", NULL};
static const struct pki_request request = {.common_name = "server", .names = names};

static void must_open(void)
{
    struct err e = {0};
    if (pki_authority_open(folder, &now.clock, &authority, &e) < 0)
        fail_msg("%s", e.msg);
}

static void reopen(void)
{
    pki_authority_free(authority);
    authority = NULL;
    must_open();
}

static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-pki-XXXXXX";
    char *top = mkdtemp(template);
    folder = mem_printf("%s/pki", top);
    clock_manual_init(&now, 1767323045 * CLOCK_SECOND);
    must_open();
    return 0;
}

static int end(void **state)
{
    (void)state;
    pki_authority_free(authority);
    authority = NULL;
    pki_leaf_done(&server);
    *strrchr(folder, '/') = '\0';
    int r = file_remove_tree(folder, NULL);
    free(folder);
    return r;
}

static bool renew_leaf(void)
{
    bool changed;
    struct err e = {0};
    if (pki_authority_leaf(authority, "server", &request, &server, &changed, &e) < 0)
        fail_msg("%s", e.msg);
    return changed;
}

static bool renew(void)
{
    bool changed;
    struct err e = {0};
    if (pki_authority_renew(authority, &changed, &e) < 0)
        fail_msg("%s", e.msg);
    return changed;
}

static size_t count_certs(const char *text)
{
    size_t n = 0;
    struct str cert = {0};
    while (pki_cert_next(&text, &cert))
        n++;
    str_done(&cert);
    return n;
}

static void read_file(const char *name, struct str *text)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    struct err e = {0};
    if (file_read(path, 1 << 20, text, &e) < 0)
        fail_msg("%s", e.msg);
}

static void write_file(const char *name, const char *text)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void test_modes(void **state)
{
    static const char *const files[] = {"ca.pem", "ca.crt", "server.pem", "accounts.pem"};
    (void)state;
    struct pki_key *key;
    struct stat st;
    assert_true(renew_leaf());
    assert_int_equal(pki_authority_key(authority, "accounts", &key, NULL), 0);
    pki_key_free(key);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, files[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

static void test_restart(void **state)
{
    (void)state;
    assert_true(renew_leaf());
    _cleanup_free_ char *bundle = mem_strdup(pki_authority_bundle(authority));
    _cleanup_free_ char *chain = mem_strdup(str_get(&server.chain));
    _cleanup_(pki_key_freep) struct pki_key *key = NULL, *same = NULL;
    assert_int_equal(pki_authority_key(authority, "accounts", &key, NULL), 0);
    reopen();
    assert_string_equal(pki_authority_bundle(authority), bundle);
    assert_false(renew_leaf());
    assert_string_equal(str_get(&server.chain), chain);
    assert_int_equal(pki_authority_key(authority, "accounts", &same, NULL), 0);
    assert_string_equal(pki_key_id(key), pki_key_id(same));
}

static void test_leaf_renewal(void **state)
{
    (void)state;
    assert_true(renew_leaf());
    int64_t due = server.due;
    assert_true(due > clock_real_ns(&now.clock) / CLOCK_SECOND);
    clock_manual_advance(&now, DAYS(PKI_LEAF_DAYS * 2 / 3 - 1));
    assert_false(renew_leaf());
    clock_manual_advance(&now, DAYS(2));
    assert_true(renew_leaf());
    assert_true(server.due > due);
    assert_false(renew_leaf());
    assert_false(renew());
    /* One from the future is of no use today. */
    clock_manual_set_real(&now, clock_real_ns(&now.clock) - DAYS(30));
    assert_true(renew_leaf());
}

static void test_leaf_conditions(void **state)
{
    (void)state;
    static const char *const others[] = {"localhost", "127.0.0.1", "more", NULL};
    struct pki_request r = request;
    bool changed;
    assert_true(renew_leaf());
    r.names = others;
    assert_int_equal(pki_authority_leaf(authority, "server", &r, &server, &changed, NULL), 0);
    assert_true(changed);
    assert_true(renew_leaf());
    write_file("server.pem", "damaged");
    assert_true(renew_leaf());
    /* A key that does not belong to the certificate. */
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    _cleanup_(pki_wipe) struct str text = {0};
    assert_int_equal(pki_key_generate(&key, NULL), 0);
    pki_key_format(key, &text);
    str_append(&text, server.chain.p);
    write_file("server.pem", text.p);
    assert_true(renew_leaf());
}

static void test_authority_renewal(void **state)
{
    (void)state;
    assert_true(renew_leaf());
    _cleanup_free_ char *first = mem_strdup(pki_authority_bundle(authority));
    assert_int_equal(count_certs(first), 1);
    assert_int_equal(count_certs(server.chain.p), 1);
    clock_manual_advance(&now, DAYS(PKI_AUTHORITY_DAYS * 2 / 3 - 1));
    assert_false(renew());
    assert_true(renew_leaf());
    clock_manual_advance(&now, DAYS(2));
    assert_true(renew());
    assert_false(renew());

    /* Both are trusted, the leaf is of the new one, and who knows only the old one can follow. */
    const char *bundle = pki_authority_bundle(authority);
    assert_int_equal(count_certs(bundle), 2);
    assert_non_null(strstr(bundle, first));
    assert_true(renew_leaf());
    assert_true(pki_cert_is_by(server.chain.p, bundle));
    assert_false(pki_cert_is_by(server.chain.p, first));
    assert_int_equal(count_certs(server.chain.p), 2);
    _cleanup_(str_done) struct str cert = {0}, bridge = {0}, file = {0};
    const char *at = server.chain.p;
    assert_true(pki_cert_next(&at, &cert));
    assert_true(pki_cert_next(&at, &bridge));
    assert_true(pki_cert_is_by(cert.p, bridge.p));
    assert_true(pki_cert_is_by(bridge.p, first));
    read_file("ca.crt", &file);
    assert_string_equal(file.p, bundle);

    _cleanup_free_ char *both = mem_strdup(bundle);
    reopen();
    assert_string_equal(pki_authority_bundle(authority), both);
    assert_false(renew_leaf());
    assert_int_equal(count_certs(server.chain.p), 2);

    /* The old one's end. */
    clock_manual_advance(&now, DAYS(PKI_AUTHORITY_DAYS / 3 + 1));
    reopen();
    assert_int_equal(count_certs(pki_authority_bundle(authority)), 1);
    assert_null(strstr(pki_authority_bundle(authority), first));
    renew_leaf();
    assert_int_equal(count_certs(server.chain.p), 1);
}

/* Nobody looked for so long that it is over: there is nothing to vouch for the next one. */
static void test_expired_authority(void **state)
{
    (void)state;
    _cleanup_free_ char *first = mem_strdup(pki_authority_bundle(authority));
    clock_manual_advance(&now, DAYS(PKI_AUTHORITY_DAYS + 1));
    reopen();
    assert_int_equal(count_certs(pki_authority_bundle(authority)), 1);
    assert_string_not_equal(pki_authority_bundle(authority), first);
    assert_true(renew_leaf());
    assert_int_equal(count_certs(server.chain.p), 1);
}

static void test_clock_back(void **state)
{
    (void)state;
    _cleanup_free_ char *first = mem_strdup(pki_authority_bundle(authority));
    clock_manual_set_real(&now, 0);
    reopen();
    assert_false(renew());
    assert_string_equal(pki_authority_bundle(authority), first);
}

/* What was made before the clock is set back a day is good after that; what is short-lived is not due when it is made. */
static void test_clock_back_a_day(void **state)
{
    (void)state;
    struct pki_request brief = request;
    struct pki_leaf leaf = {0};
    bool changed;
    brief.seconds = 600;
    assert_true(renew_leaf());
    assert_int_equal(pki_authority_leaf(authority, "brief", &brief, &leaf, &changed, NULL), 0);
    assert_in_range(leaf.due, clock_real_ns(&now.clock) / CLOCK_SECOND + 100,
                    clock_real_ns(&now.clock) / CLOCK_SECOND + 600);
    pki_leaf_done(&leaf);
    clock_manual_set_real(&now, clock_real_ns(&now.clock) - DAYS(1));
    assert_false(renew());
    assert_false(renew_leaf());
}

static void test_damage(void **state)
{
    (void)state;
    _cleanup_(pki_wipe) struct str text = {0}, other = {0};
    read_file("ca.pem", &text);
    _cleanup_(pki_key_freep) struct pki_key *key = NULL;
    assert_int_equal(pki_key_generate(&key, NULL), 0);
    pki_key_format(key, &other);
    str_append(&other, pki_authority_bundle(authority));
    _cleanup_free_ char *key_only =
        mem_strndup(text.p, (size_t)(strstr(text.p, "-----BEGIN CERTIFICATE") - text.p));
    const char *const texts[] = {"", "nothing", key_only, pki_authority_bundle(authority), other.p};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct pki_authority *a = NULL;
        struct err e = {0};
        write_file("ca.pem", texts[i]);
        assert_int_equal(pki_authority_open(folder, &now.clock, &a, &e), -1);
        assert_string_equal(e.reason, "DamagedAuthority");
        assert_null(strstr(e.msg, "PRIVATE"));
    }
    write_file("ca.pem", text.p);
    write_file("ca.crt", "old");
    reopen();
    _cleanup_(str_done) struct str mended = {0};
    read_file("ca.crt", &mended);
    assert_string_equal(mended.p, pki_authority_bundle(authority));
    /* A key is never replaced by itself: others have what it signed. */
    write_file("accounts.pem", "nothing");
    struct pki_key *k = NULL;
    assert_int_equal(pki_authority_key(authority, "accounts", &k, NULL), -1);
}

/* Files elsewhere: a place for a few. */
struct place {
    char *names[4];
    struct str texts[4];
};

static int read_place(void *context, const char *name, struct str *ret_text, struct err *e)
{
    struct place *p = context;
    for (size_t i = 0; i < ARRAY_SIZE(p->names) && p->names[i]; i++) {
        if (str_eq(p->names[i], name)) {
            str_append(ret_text, str_get(&p->texts[i]));
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND, "NotFound", "there is no %s", name);
}

static int write_place(void *context, const char *name, const void *bytes, size_t n, struct err *e)
{
    struct place *p = context;
    size_t i = 0;
    (void)e;
    while (p->names[i] && !str_eq(p->names[i], name))
        i++;
    if (!p->names[i])
        p->names[i] = mem_strdup(name);
    str_clear(&p->texts[i]);
    str_append_n(&p->texts[i], bytes, n);
    return 0;
}

/* The same authority is read from what was written; a leaf may live as shortly as one likes. */
static void test_other_place(void **state)
{
    (void)state;
    struct place place = {0};
    const struct pki_files files = {read_place, write_place, &place};
    struct pki_request brief = request;
    brief.seconds = 600;
    _cleanup_free_ char *bundle = NULL;
    for (int i = 0; i < 3; i++) {
        _cleanup_(pki_authority_freep) struct pki_authority *a = NULL;
        bool changed;
        assert_int_equal(pki_authority_open_in(&files, "memory", &now.clock, &a, NULL), 0);
        assert_int_equal(pki_authority_leaf(a, "server", &brief, &server, &changed, NULL), 0);
        assert_int_equal(changed, i != 1); /* new, the same, due */
        if (bundle)
            assert_string_equal(pki_authority_bundle(a), bundle);
        free(bundle);
        bundle = mem_strdup(pki_authority_bundle(a));
        struct pki_facts facts;
        assert_int_equal(pki_cert_read(str_get(&server.chain), &facts, NULL), 0);
        assert_true(facts.until - clock_real_ns(&now.clock) / CLOCK_SECOND <= 600);
        if (i == 1)
            clock_manual_advance(&now, 400 * CLOCK_SECOND);
    }
    assert_non_null(place.names[2]);
    for (size_t i = 0; i < ARRAY_SIZE(place.names); i++) {
        free(place.names[i]);
        str_done(&place.texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_modes, begin, end),
        cmocka_unit_test_setup_teardown(test_restart, begin, end),
        cmocka_unit_test_setup_teardown(test_leaf_renewal, begin, end),
        cmocka_unit_test_setup_teardown(test_leaf_conditions, begin, end),
        cmocka_unit_test_setup_teardown(test_authority_renewal, begin, end),
        cmocka_unit_test_setup_teardown(test_expired_authority, begin, end),
        cmocka_unit_test_setup_teardown(test_clock_back, begin, end),
        cmocka_unit_test_setup_teardown(test_clock_back_a_day, begin, end),
        cmocka_unit_test_setup_teardown(test_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_other_place, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

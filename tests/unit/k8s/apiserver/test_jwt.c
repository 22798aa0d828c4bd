#include "base/base64.h"
#include "jsontest.h"
#include "k8s/apiserver/jwt_cache.h"

static struct pki_key *key, *other;

static int begin(void **state)
{
    (void)state;
    return pki_key_generate(&key, NULL) < 0 || pki_key_generate(&other, NULL) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    pki_key_free(key);
    pki_key_free(other);
    return 0;
}

static char *sign(const struct pki_key *with, const char *claims)
{
    json_auto_t *value = parse_quoted(claims);
    struct str token = {0};
    struct err e = {0};
    if (apiserver_jwt_sign(with, value, &token, &e) < 0)
        fail_msg("%s", e.msg);
    return str_take(&token);
}

static void refused(const char *token)
{
    struct err e = {0};
    json_auto_t *claims = apiserver_jwt_verify(key, token, &e);
    if (claims)
        fail_msg("'%s' was taken", token);
    assert_int_equal(e.code, ERR_UNAUTHENTICATED);
    assert_string_equal(e.msg, "invalid bearer token");
}

/* A token whose first part is that header, signed with the key. */
static char *with_header(const char *header)
{
    struct str token = {0};
    uint8_t signature[PKI_SIGNATURE];
    _cleanup_free_ char *text = mem_strdup(header);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    base64_format(text, strlen(text), BASE64_URL, &token);
    str_append(&token, ".e30."); /* {} */
    assert_int_equal(pki_key_sign(key, token.p, token.len - 1, signature, NULL), 0);
    base64_format(signature, sizeof(signature), BASE64_URL, &token);
    return str_take(&token);
}

static void test_round(void **state)
{
    (void)state;
    static const char claims[] =
        "{'sub': 'system:serviceaccount:a:b', 'exp': 12345678901, 'aud': ['x']}";
    _cleanup_free_ char *token = sign(key, claims);
    struct err e = {0};
    json_auto_t *got = apiserver_jwt_verify(key, token, &e), *expected = parse_quoted(claims);
    assert_json(got, expected, "claims");
}

static void test_headers(void **state)
{
    static const char *const bad[] = {
        "{'alg': 'none'}",
        "{'alg': 'HS256'}",
        "{'alg': 'RS256'}",
        "{'alg': 'es256'}",
        "{'alg': 1}",
        "{}",
        "['ES256']",
        "{'alg': 'ES256', 'crit': ['x']}",
        "",
        "ES256",
        "{'alg': 'ES256', 'kid': 'another'}",
    };
    (void)state;
    _cleanup_free_ char *good = with_header("{'alg': 'ES256', 'typ': 'JWT'}");
    json_auto_t *claims = apiserver_jwt_verify(key, good, NULL);
    assert_non_null(claims);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_free_ char *token = with_header(bad[i]);
        refused(token);
    }
}

static void test_tampered(void **state)
{
    (void)state;
    _cleanup_free_ char *token = sign(key, "{'sub': 'a'}"), *theirs = sign(other, "{'sub': 'a'}");
    refused(theirs);
    /* Every letter, in all parts. */
    for (char *p = token; *p; p++) {
        char was = *p;
        *p = was == 'A' ? 'B' : 'A';
        refused(token);
        *p = was;
    }
    /* Cut anywhere. */
    for (size_t n = strlen(token); n-- > 0;) {
        _cleanup_free_ char *part = mem_strndup(token, n);
        refused(part);
    }
    _cleanup_free_ char *more = mem_printf("%sA", token), *dot = mem_printf("%s.", token);
    _cleanup_free_ char *fourth = mem_printf("%s.e30", token), *space = mem_printf("%s ", token);
    refused(more);
    refused(dot);
    refused(fourth);
    refused(space);
    /* Without a signature, as alg=none would have it. */
    refused("eyJhbGciOiJub25lIn0.e30.");
    refused("..");
    refused("");
}

/* The same signature written in another way would be another token. */
static void test_other_signature(void **state)
{
    (void)state;
    _cleanup_free_ char *token = sign(key, "{'sub': 'a'}");
    _cleanup_free_ char *padded = mem_printf("%s==", token);
    refused(padded);
}

static void test_size(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str claims = {0};
    str_append(&claims, "{'sub': '");
    while (claims.len < APISERVER_JWT_MAX)
        str_append_c(&claims, 'x');
    str_append(&claims, "'}");
    _cleanup_free_ char *token = sign(key, claims.p);
    refused(token);
}

/* Signatures are checked once; the result is the same as if they were checked each time. */
static void test_cache(void **state)
{
    (void)state;
    struct apiserver_jwt_cache *c = NEW(struct apiserver_jwt_cache);
    _cleanup_free_ char *a = sign(key, "{'sub': 'a'}"), *b = sign(key, "{'sub': 'b'}");
    json_auto_t *first = apiserver_jwt_cache_verify(c, key, a, NULL);
    for (size_t i = 0; i < APISERVER_JWT_CACHE; i++)
        json_object_set_new(c->places[i].claims, "kept", json_true());
    json_auto_t *again = apiserver_jwt_cache_verify(c, key, a, NULL);
    json_auto_t *second = apiserver_jwt_cache_verify(c, key, b, NULL);
    assert_non_null(first);
    assert_null(json_object_get(first, "kept")); /* each has its own */
    assert_true(json_is_true(json_object_get(again, "kept")));
    assert_string_equal(json_str(second, "sub"), "b");
    /* what is good for one key is not for another; what was refused is refused again */
    assert_null(apiserver_jwt_cache_verify(c, other, a, NULL));
    a[strlen(a) - 2] = a[strlen(a) - 2] == 'A' ? 'B' : 'A';
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        assert_null(apiserver_jwt_cache_verify(c, key, a, &e));
        assert_int_equal(e.code, ERR_UNAUTHENTICATED);
    }
    /* more than there are places */
    for (int i = 0; i < 2 * APISERVER_JWT_CACHE; i++) {
        _cleanup_free_ char *claims = mem_printf("{'sub': '%d'}", i);
        _cleanup_free_ char *token = sign(key, claims);
        json_auto_t *got = apiserver_jwt_cache_verify(c, key, token, NULL);
        assert_int_equal(atoi(json_str(got, "sub")), i);
    }
    apiserver_jwt_cache_done(c);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),    cmocka_unit_test(test_headers),
        cmocka_unit_test(test_tampered), cmocka_unit_test(test_other_signature),
        cmocka_unit_test(test_size),     cmocka_unit_test(test_cache),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

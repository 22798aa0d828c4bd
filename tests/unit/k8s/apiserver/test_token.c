#include "base/mem.h"
#include "k8s/apiserver/span.h"
#include "k8s/apiserver/token.h"
#include "unit.h"

static void test_there_and_back(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "ns/name", "ns/na", "ns/n", "a\xc3\xa4?>", NULL};
    for (const char *const *key = keys; *key; key++) {
        for (uint64_t revision = 0; revision < 3; revision++) {
            _cleanup_(str_done) struct str text = {0};
            struct apiserver_token token = {0};
            struct err e = {0};
            apiserver_token_format(revision, *key, &text);
            assert_null(strpbrk(text.p, "+/="));
            assert_int_equal(apiserver_token_parse(text.p, &token, &e), 0);
            assert_int_equal(token.revision, revision);
            assert_string_equal(token.after.p, *key);
            str_done(&token.after);
        }
    }
}

static void test_bad_tokens(void **state)
{
    (void)state;
    static const char *const tokens[] = {
        "!",
        "e30",
        "e",
        "W10",
        "bnVsbA",
        "eyJ2IjoieCIsInJ2IjoxLCJzdGFydCI6ImEifQ",                  /* another version */
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0", /* rv 0 */
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ",  /* no key */
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0",
        "eyJ2IjoibWV0YS5rO=x",
    };
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
        struct apiserver_token token = {0};
        struct err e = {0};
        assert_int_equal(apiserver_token_parse(tokens[i], &token, &e), -1);
        assert_string_equal(e.reason, "BadRequest");
        assert_null(token.after.p);
    }
}

static void test_spans(void **state)
{
    (void)state;
    static const struct {
        const char *text, *key, *value; /* NULL: none */
    } cases[] = {
        {"{\"a\":1,\"b\":2}", "b", "2"},
        {"{\"a\":{\"b\":3},\"b\":[2,{\"b\":4}]}", "b", "[2,{\"b\":4}]"},
        {"{\"a\":\"\\\"b\\\":1\",\"b\":\"x\\\\\"}", "b", "\"x\\\\\""},
        {" { \"a\" : [ ] , \"b\" : true } ", "b", "true"},
        {"{\"bb\":1}", "b", NULL},
        {"{}", "b", NULL},
        {"[\"b\",1]", "b", NULL},
        {"", "b", NULL},
        {"{\"b\"", "b", NULL},
        {"{\"b", "b", NULL},
        {"{\"a\":\"\\", "b", NULL},
        {"{\"a\":[[[", "b", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        /* of the exact size, so that a step too far is noticed */
        size_t size = strlen(cases[i].text);
        _cleanup_free_ char *text = mem_alloc(size ? size : 1);
        memcpy(text, cases[i].text, size);
        struct apiserver_span s = apiserver_span_member(text, size, cases[i].key);
        assert_int_equal(s.p != NULL, cases[i].value != NULL);
        if (s.p) {
            assert_int_equal(s.size, strlen(cases[i].value));
            assert_memory_equal(s.p, cases[i].value, s.size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_bad_tokens),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}

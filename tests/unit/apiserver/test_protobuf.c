#include "apiserver/protobuf.h"
#include "jsontest.h"

#define BYTES(s) (s), sizeof(s) - 1
#define AUTHN                                                                                      \
    "\x0a\x18"                                                                                     \
    "authentication.k8s.io/v1"

/* The envelope around a message; lengths are below 128. */
static void wrap(const char *kind, const void *message, size_t n, struct str *out)
{
    size_t type = strlen(AUTHN) + 2 + strlen(kind);
    assert_true(type < 128 && n < 128);
    str_append_n(out, "k8s\0\x0a", 5);
    str_append_c(out, (char)type);
    str_append(out, AUTHN);
    str_appendf(out, "\x12%c%s", (char)strlen(kind), kind);
    str_append_c(out, 0x12);
    str_append_c(out, (char)n);
    str_append_n(out, message, n);
    str_append_n(out, BYTES("\x1a\x00\x22\x00"));
}

static void test_known(void **state)
{
    static const struct {
        const char *kind, *message;
        size_t size;
        const char *json;
    } table[] = {
        {"SelfSubjectReview", BYTES(""), "{}"},
        {"SelfSubjectReview", BYTES("\x0a\x06\x0a\x00\x1a\x00\x32\x00\x12\x00"),
         "{'metadata': {}}"},
        {"TokenReview",
         BYTES("\x12\x0a\x0a\x03"
               "abc"
               "\x12\x01x\x12\x00"),
         "{'spec': {'token': 'abc', 'audiences': ['x', '']}}"},
        {"TokenRequest",
         BYTES("\x0a\x0e\x5a\x06\x0a\x01k\x12\x01v\x5a\x04\x0a\x02k2"
               "\x12\x17\x0a\x01"
               "a"
               "\x20\xd8\x04\x1a\x0f\x0a\x03Pod\x12\x02v1\x1a\x01p\x22\x01u"),
         "{'metadata': {'labels': {'k': 'v', 'k2': ''}}, 'spec': {'audiences': ['a'], "
         "'expirationSeconds': 600, 'boundObjectRef': {'kind': 'Pod', 'apiVersion': 'v1', 'name': "
         "'p', 'uid': 'u'}}}"},
        /* Fields that the table does not have, of every wire type. */
        {"TokenReview",
         BYTES("\x78\x01\x7a\x02zz\x79"
               "12345678"
               "\x7d"
               "1234"),
         "{}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(str_done) struct str bytes = {0};
        struct err e = {0};
        wrap(table[i].kind, table[i].message, table[i].size, &bytes);
        json_auto_t *got = apiserver_protobuf_decode(bytes.p, bytes.len, &e);
        if (!got)
            fail_msg("%s: %s", table[i].kind, e.msg);
        json_auto_t *expected = parse_quoted(table[i].json);
        json_object_set_new(expected, "kind", json_string(table[i].kind));
        json_object_set_new(expected, "apiVersion", json_string("authentication.k8s.io/v1"));
        assert_json(got, expected, table[i].kind);
        /* Cut anywhere: an error or less, never more. */
        for (size_t n = 0; n < bytes.len; n++) {
            char *part = mem_alloc(n + 1);
            memcpy(part, bytes.p, n);
            json_decref(apiserver_protobuf_decode(part, n, NULL));
            free(part);
        }
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *kind, *message;
        size_t size;
        const char *reason;
    } table[] = {
        {"Unheard", BYTES(""), "UnsupportedMediaType"},
        {"TokenReview",
         BYTES("\x12\x05\x0a\x01"
               "a"),
         "BadRequest"},                                               /* longer than it is */
        {"TokenReview", BYTES("\x12\x03\x0a\x01\xff"), "BadRequest"}, /* no UTF-8 */
        {"TokenReview", BYTES("\x12\x02\x08\x01"), "BadRequest"},     /* a number for a text */
        {"TokenReview", BYTES("\x10\x01"), "BadRequest"},             /* for an object */
        {"TokenReview", BYTES("\x13\x14"), "BadRequest"},             /* groups */
        {"TokenReview", BYTES("\x00\x01"), "BadRequest"},             /* field 0 */
        {"TokenReview", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "BadRequest"},
        {"TokenReview", BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "BadRequest"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(str_done) struct str bytes = {0};
        struct err e = {0};
        wrap(table[i].kind, table[i].message, table[i].size, &bytes);
        json_auto_t *got = apiserver_protobuf_decode(bytes.p, bytes.len, &e);
        if (got || !str_eq(e.reason, table[i].reason))
            fail_msg("case %zu: %s", i, got ? "was taken" : e.reason);
    }
    struct err e = {0};
    assert_null(apiserver_protobuf_decode("", 0, &e));
    assert_null(apiserver_protobuf_decode("k8s", 3, &e));
    assert_null(apiserver_protobuf_decode("{}  ", 4, &e));
    assert_string_equal(e.reason, "BadRequest");
    assert_null(apiserver_protobuf_decode("k8s\0", 4, &e));
    assert_string_equal(e.reason, "UnsupportedMediaType");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit.h"

static void test_set(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(err_set(&e, ERR_NOT_FOUND, "NotFound", "no pool %s", "tank"), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.reason, "NotFound");
    assert_string_equal(e.msg, "no pool tank");
    assert_int_equal(err_set(NULL, ERR_INTERNAL, "x", "%d", 1), -1);
    assert_int_equal(err_errno(NULL, ENOENT, "%d", 1), -1);
    assert_int_equal(err_prefix(NULL, "%d", 1), -1);

    /* from itself */
    assert_int_equal(err_set(&e, ERR_ABORTED, "Again", "<%s>", e.msg), -1);
    assert_string_equal(e.msg, "<no pool tank>");
    err_prefix(&e, "%s and %s", "node a", e.msg);
    assert_string_equal(e.msg, "node a and <no pool tank>: <no pool tank>");
    assert_int_equal(e.code, ERR_ABORTED);
}

static void test_errno(void **state)
{
    (void)state;
    static const struct {
        int errnum;
        enum err_code code;
        const char *reason;
    } table[] = {
        {ENOENT, ERR_NOT_FOUND, "NotFound"},
        {EEXIST, ERR_ALREADY_EXISTS, "AlreadyExists"},
        {EACCES, ERR_PERMISSION_DENIED, "Forbidden"},
        {ENOSPC, ERR_RESOURCE_EXHAUSTED, "NoSpace"},
        {EINVAL, ERR_INVALID_ARGUMENT, "Invalid"},
        {EBUSY, ERR_UNAVAILABLE, "Busy"},
        {ETIMEDOUT, ERR_DEADLINE_EXCEEDED, "Timeout"},
        {EIO, ERR_DATA_LOSS, "InputOutputError"},
        {EOPNOTSUPP, ERR_UNIMPLEMENTED, "NotSupported"},
        {EDOM, ERR_INTERNAL, "SystemError"},
        {0, ERR_INTERNAL, "SystemError"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e;
        assert_int_equal(err_errno(&e, table[i].errnum, "cannot open %s", "f"), -1);
        assert_int_equal(e.code, table[i].code);
        assert_string_equal(e.reason, table[i].reason);
        char want[256];
        snprintf(want, sizeof(want), "cannot open f: %s", strerror(table[i].errnum));
        assert_string_equal(e.msg, want);
    }
}

static void fill(char *buf, size_t n, const char *with)
{
    buf[0] = '\0';
    for (size_t i = 0, len = strlen(with); i + len <= n; i += len)
        memcpy(buf + i, with, len + 1);
}

/* A message that does not fit ends with "...", at the border of a character, and is terminated. */
static void test_cut(void **state)
{
    (void)state;
    char big[5001];
    struct err e;
    for (size_t n = sizeof(e.msg) - 5; n < sizeof(e.msg) + 5; n++) {
        fill(big, n, "x");
        err_set(&e, ERR_INTERNAL, "x", "%s", big);
        if (n < sizeof(e.msg)) {
            assert_string_equal(e.msg, big);
        } else {
            assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
            assert_true(str_ends_with(e.msg, "x..."));
        }
    }
    static const char *const fills[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                        "\x80"};
    for (size_t f = 0; f < ARRAY_SIZE(fills); f++) {
        fill(big, sizeof(big) - 1, fills[f]);
        for (int shift = 0; shift < 4; shift++) {
            for (int how = 0; how < 3; how++) {
                err_set(&e, ERR_INTERNAL, "x", "%.*s%s", shift, "abc", how ? "y" : big);
                if (how == 1)
                    err_prefix(&e, "%.*s%s", shift, "abc", big);
                if (how == 2)
                    err_errno(&e, EIO, "%.*s%s", shift, "abc", big);
                size_t n = strlen(e.msg);
                assert_true(n < sizeof(e.msg) && n > sizeof(e.msg) - 8);
                assert_true(str_ends_with(e.msg, "..."));
                for (size_t i = 0; i < n && fills[f][0] != '\x80';) {
                    uint32_t c;
                    size_t len = str_utf8(e.msg + i, n - i, &c);
                    assert_true(len > 0);
                    i += len;
                }
            }
        }
    }
}

static void test_prefix(void **state)
{
    (void)state;
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "NotFound", "no disk");
    assert_int_equal(err_prefix(&e, "pool %s", "tank"), -1);
    assert_int_equal(err_prefix(&e, "node"), -1);
    assert_string_equal(e.msg, "node: pool tank: no disk");
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.reason, "NotFound");
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        assert_string_equal(err_code_name((enum err_code)i), names[i]);
    assert_string_equal(err_code_name((enum err_code)17), "UNKNOWN");
    assert_string_equal(err_code_name((enum err_code) - 1), "UNKNOWN");
}

static void test_infeasible(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= ERR_UNAUTHENTICATED; i++) {
        bool want = i == ERR_INVALID_ARGUMENT || i == ERR_NOT_FOUND ||
                    i == ERR_FAILED_PRECONDITION || i == ERR_OUT_OF_RANGE;
        assert_int_equal(err_is_infeasible((enum err_code)i), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),   cmocka_unit_test(test_errno),
        cmocka_unit_test(test_cut),   cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_names), cmocka_unit_test(test_infeasible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

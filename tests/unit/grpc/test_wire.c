#include <string.h>

#include "base/mem.h"
#include "grpc/wire.h"
#include "unit.h"

static void expect_timeout(const char *text, int64_t ns)
{
    int64_t got = -1;
    bool valid = grpc_parse_timeout(text, strlen(text), &got);
    assert_int_equal(valid, ns >= 0);
    if (valid)
        assert_int_equal(got, ns);
}

static void test_timeouts_are_parsed(void **state)
{
    (void)state;
    expect_timeout("1n", 1);
    expect_timeout("5u", 5000);
    expect_timeout("100m", 100000000);
    expect_timeout("10S", 10000000000);
    expect_timeout("2M", 120000000000);
    expect_timeout("1H", 3600000000000);
    expect_timeout("99999999H", INT64_MAX);
    expect_timeout("", -1);
    expect_timeout("S", -1);
    expect_timeout("10", -1);
    expect_timeout("123456789S", -1);
    expect_timeout("-1S", -1);
    expect_timeout("1s", -1);
}

static void test_a_formatted_timeout_is_never_shorter(void **state)
{
    (void)state;
    const int64_t times[] = {1, 99999999, 100000000, 15000000000, 123456789012, INT64_MAX / 2};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        char text[16];
        int64_t back;
        grpc_format_timeout(times[i], text);
        assert_true(grpc_parse_timeout(text, strlen(text), &back));
        assert_true(back >= times[i]);
        assert_true(back - times[i] <= times[i] / 1000 + 1);
    }
}

static void expect_message(const char *text, const char *encoded)
{
    _cleanup_(str_done) struct str there = {0}, back = {0};
    grpc_encode_message(text, &there);
    assert_string_equal(str_get(&there), encoded);
    grpc_decode_message(str_get(&there), there.len, &back);
    assert_string_equal(str_get(&back), text);
}

static void test_messages_survive_a_header(void **state)
{
    (void)state;
    expect_message("plain text", "plain text");
    expect_message("100 % of \"it\"\n", "100 %25 of \"it\"%0A");
    expect_message("Größe", "Gr%C3%B6%C3%9Fe");
    _cleanup_(str_done) struct str odd = {0};
    grpc_decode_message("a%4%zz%00%", 10, &odd);
    assert_string_equal(str_get(&odd), "a%4%zz%00%");
}

static int take(const char *bytes, size_t n, size_t most, size_t *ret_n, enum err_code *ret_code)
{
    _cleanup_(str_done) struct str body = {0};
    const uint8_t *p;
    struct err e = {0};
    str_append_n(&body, bytes, n);
    int whole = grpc_take_message(&body, 0, most, &p, ret_n, &e);
    *ret_code = e.code;
    return whole;
}

static void test_a_message_is_taken_when_it_is_whole(void **state)
{
    (void)state;
    size_t n;
    enum err_code code;
    assert_int_equal(take("\0\0\0\0", 4, 10, &n, &code), 0);
    assert_int_equal(take("\0\0\0\0\0", 5, 10, &n, &code), 1);
    assert_int_equal(n, 0);
    assert_int_equal(take("\0\0\0\0\3ab", 7, 10, &n, &code), 0);
    assert_int_equal(take("\0\0\0\0\3abcd", 9, 10, &n, &code), 1);
    assert_int_equal(n, 3);
    assert_int_equal(take("\1\0\0\0\1a", 6, 10, &n, &code), -1);
    assert_int_equal(code, ERR_UNIMPLEMENTED);
    assert_int_equal(take("\2\0\0\0\1a", 6, 10, &n, &code), -1);
    assert_int_equal(code, ERR_INVALID_ARGUMENT);
    assert_int_equal(take("\0\xff\xff\xff\xff", 5, 10, &n, &code), -1);
    assert_int_equal(code, ERR_RESOURCE_EXHAUSTED);
}

static void test_a_status_is_a_code(void **state)
{
    (void)state;
    assert_int_equal(grpc_parse_status("0", 1), ERR_OK);
    assert_int_equal(grpc_parse_status("16", 2), ERR_UNAUTHENTICATED);
    assert_int_equal(grpc_parse_status("17", 2), ERR_UNKNOWN);
    assert_int_equal(grpc_parse_status("", 0), ERR_UNKNOWN);
    assert_int_equal(grpc_parse_status("1x", 2), ERR_UNKNOWN);
    assert_int_equal(grpc_parse_status("000", 3), ERR_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeouts_are_parsed),
        cmocka_unit_test(test_a_formatted_timeout_is_never_shorter),
        cmocka_unit_test(test_messages_survive_a_header),
        cmocka_unit_test(test_a_message_is_taken_when_it_is_whole),
        cmocka_unit_test(test_a_status_is_a_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

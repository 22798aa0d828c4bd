#include "base/map.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "unit.h"

static void test_random(void **state)
{
    (void)state;
    enum { N = 2000 };
    struct map seen = {0};
    uint8_t ones[16] = {0}, zeros[16] = {0};
    for (int i = 0; i < N; i++) {
        struct uuid u = uuid_random();
        assert_int_equal(u.bytes[6] >> 4, 4);
        assert_int_equal(u.bytes[8] >> 6, 2);
        for (size_t j = 0; j < sizeof(u.bytes); j++) {
            ones[j] |= u.bytes[j];
            zeros[j] |= (uint8_t)~u.bytes[j];
        }
        char buf[UUID_TEXT_MAX];
        assert_null(map_set(&seen, uuid_format(&u, buf), &seen));
    }
    assert_int_equal(seen.count, N);
    map_done(&seen);

    /* Every bit but those of version and variant has been 0 and 1. */
    for (size_t j = 0; j < sizeof(ones); j++) {
        uint8_t fixed = j == 6 ? 0xf0 : j == 8 ? 0xc0 : 0;
        assert_int_equal(ones[j] | fixed, 0xff);
        assert_int_equal(zeros[j] | fixed, 0xff);
    }
}

static void test_text(void **state)
{
    (void)state;
    static const struct uuid want = {{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x42, 0xd3, 0xa4, 0x56,
                                      0x42, 0x66, 0x14, 0x17, 0x40, 0xff}};
    struct uuid u;
    char buf[UUID_TEXT_MAX];
    assert_int_equal(uuid_from_text("123e4567-e89b-42d3-a456-4266141740ff", &u, NULL), 0);
    assert_true(uuid_eq(&u, &want));
    assert_int_equal(uuid_from_text("123E4567-E89B-42D3-A456-4266141740FF", &u, NULL), 0);
    assert_true(uuid_eq(&u, &want));
    assert_string_equal(uuid_format(&u, buf), "123e4567-e89b-42d3-a456-4266141740ff");
    u.bytes[15] = 0;
    assert_false(uuid_eq(&u, &want));
    assert_int_equal(uuid_from_text("00000000-0000-0000-0000-000000000000", &u, NULL), 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",
        "-",
        "123e4567-e89b-42d3-a456-4266141740f",
        "123e4567-e89b-42d3-a456-4266141740fff",
        "123e4567-e89b-42d3-a456-4266141740ff ",
        " 123e4567-e89b-42d3-a456-4266141740f",
        "123e4567e89b42d3a4564266141740ff",
        "123e4567-e89b-42d3-a4564266141740ff",
        "123e4567-e89b-42d3--a456-4266141740ff",
        "123e456-7e89b-42d3-a456-4266141740ff",
        "{123e4567-e89b-42d3-a456-4266141740ff}",
        "123e4567-e89b-42d3-a456-4266141740fg",
        "123e4567-e89b-42d3-a456-42661417 0ff",
        "123e4567-e89b-42d3-a456-+266141740ff",
        "0x3e4567-e89b-42d3-a456-4266141740ff",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct uuid u = {{9}};
        struct err e = {0};
        if (uuid_from_text(table[i], &u, &e) == 0)
            fail_msg("\"%s\" was taken", table[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.msg, table[i]));
        assert_int_equal(u.bytes[0], 9);
    }
    /* Every prefix: nothing reads past the end. */
    const char *whole = "123e4567-e89b-42d3-a456-4266141740ff";
    for (size_t n = 0; n < strlen(whole); n++) {
        _cleanup_free_ char *part = mem_strndup(whole, n);
        struct uuid u;
        assert_int_equal(uuid_from_text(part, &u, NULL), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

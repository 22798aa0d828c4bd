#include <string.h>

#include "base/crc.h"
#include "base/mem.h"
#include "unit.h"

/* RFC 3720, B.4, which writes the bytes in the order they have on the wire. */
static void test_rfc3720(void **state)
{
    (void)state;
    uint8_t data[32];
    memset(data, 0, sizeof(data));
    assert_int_equal(crc_32c(data, sizeof(data)), 0x8a9136aa);
    memset(data, 0xff, sizeof(data));
    assert_int_equal(crc_32c(data, sizeof(data)), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        data[i] = i;
    assert_int_equal(crc_32c(data, sizeof(data)), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++)
        data[i] = (uint8_t)(31 - i);
    assert_int_equal(crc_32c(data, sizeof(data)), 0x113fdb5c);

    static const uint8_t read_pdu[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    assert_int_equal(crc_32c(read_pdu, sizeof(read_pdu)), 0xd9963a56);
}

static void test_known(void **state)
{
    (void)state;
    assert_int_equal(crc_32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc_32c("", 0), 0);
    assert_int_equal(crc_32c(NULL, 0), 0);
    assert_int_equal(crc_32c("a", 1), 0xc1d04330);
    assert_true(crc_64("123456789", 9) == 0x995dc9bbdf1939fa); /* the check value of CRC-64/XZ */
}

/* Bit by bit, from the polynomial alone. */
static uint32_t slow(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void test_lengths_and_pieces(void **state)
{
    (void)state;
    enum { N = 5000 };
    _cleanup_free_ uint8_t *data = mem_alloc(N);
    uint32_t x = 1;
    for (size_t i = 0; i < N; i++)
        data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t offset = 0; offset < 9; offset++) {
        for (size_t n = 0; n < 600; n += n < 70 ? 1 : 37)
            assert_int_equal(crc_32c(data + offset, n), slow(data + offset, n));
    }
    uint32_t whole = slow(data, N);
    assert_int_equal(crc_32c(data, N), whole);
    for (size_t cut = 0; cut <= N; cut += 333) {
        uint32_t crc = crc_32c_more(0, data, cut);
        assert_int_equal(crc_32c_more(crc, data + cut, N - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc3720),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_lengths_and_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

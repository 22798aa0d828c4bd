/* Frames: what goes out comes in, and nothing else does. */
#include <string.h>

#include "base/crc.h"
#include "repl/frame.h"
#include "unit.h"

static const struct uuid volume = {{1, 2, 3}};

static const struct repl_msg messages[] = {
    {.type = REPL_HELLO, .flags = REPL_BLANK, .seq = 5, .length = REPL_SUPER_SIZE},
    {.type = REPL_WRITE,
     .flags = REPL_FUA,
     .epoch = 7,
     .seq = 9,
     .offset = 4096,
     .count = 512,
     .length = 512},
    {.type = REPL_ZERO, .seq = 1, .offset = 0, .count = REPL_MAX_ZERO},
    {.type = REPL_ACK, .seq = 100, .offset = 90},
    {.type = REPL_READ, .seq = UINT64_MAX, .offset = 512, .count = REPL_MAX_DATA},
    {.type = REPL_MAP, .seq = 3, .offset = 507, .count = 507},
    {.type = REPL_BYE},
};

static void as_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct repl_msg m = messages[i], got;
        struct err e = {0};
        uint8_t header[REPL_HEADER];
        m.volume = volume;
        m.data_crc = 77;
        repl_frame_encode(&m, header);
        assert_int_equal(repl_frame_decode(header, &volume, &got, &e), 0);
        assert_int_equal(got.type, m.type);
        assert_int_equal(got.flags, m.flags);
        assert_int_equal(got.epoch, m.epoch);
        assert_int_equal(got.length, m.length);
        assert_int_equal(got.data_crc, 77);
        assert_true(got.seq == m.seq && got.offset == m.offset && got.count == m.count);
    }
}

/* Each single bit that is turned is noticed. */
static void every_bit(void **state)
{
    (void)state;
    struct repl_msg m = messages[1], got;
    uint8_t header[REPL_HEADER];
    m.volume = volume;
    repl_frame_encode(&m, header);
    for (int bit = 0; bit < REPL_HEADER * 8; bit++) {
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(repl_frame_decode(header, &volume, &got, NULL), -1);
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void bounds(void **state)
{
    (void)state;
    static const struct {
        struct repl_msg m;
        const char *why;
    } bad[] = {
        {{.type = 0}, "unknown type"},
        {{.type = REPL_TYPES}, "unknown type"},
        {{.type = REPL_ACK, .flags = 1}, "unknown flags"},
        {{.type = REPL_ACK, .length = 1}, "longer than its type"},
        {{.type = REPL_WRITE, .count = 512, .length = 1024}, "not as long as its range"},
        {{.type = REPL_WRITE, .offset = 1, .count = 512, .length = 512}, "not made of sectors"},
        {{.type = REPL_WRITE}, "the range is empty"},
        {{.type = REPL_READ, .count = REPL_MAX_DATA + 512}, "the range is longer"},
        {{.type = REPL_READ, .offset = UINT64_MAX - 511, .count = 512}, "too high"},
        {{.type = REPL_MAP, .count = 511}, "the range is longer"},
        {{.type = REPL_BYE, .epoch = REPL_EPOCH_LAST + 1}, "an epoch that cannot be"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct repl_msg m = bad[i].m, got;
        struct err e = {0};
        uint8_t header[REPL_HEADER];
        m.volume = volume;
        repl_frame_encode(&m, header);
        assert_int_equal(repl_frame_decode(header, &volume, &got, &e), -1);
        assert_non_null(strstr(e.msg, bad[i].why));
    }
    struct repl_msg m = messages[3], got;
    struct err e = {0};
    uint8_t header[REPL_HEADER];
    repl_frame_encode(&m, header); /* volume 0 */
    assert_int_equal(repl_frame_decode(header, &volume, &got, &e), -1);
    assert_string_equal(e.reason, "OtherVolume");
}

static void data(void **state)
{
    (void)state;
    char text[] = "one two three";
    struct iovec iov[] = {{text, 4}, {text + 4, 9}};
    struct iovec whole = {text, 13};
    assert_int_equal(repl_iov_crc(iov, 2), repl_iov_crc(&whole, 1));
    text[12] = 'E';
    uint32_t other = repl_iov_crc(&whole, 1);
    text[12] = 'e';
    assert_int_not_equal(repl_iov_crc(iov, 2), other);
    /* To and from pieces that end at different places. */
    for (size_t skip = 0; skip < 13; skip++) {
        for (size_t n = 0; n <= 13 - skip; n++) {
            char a[3], b[14] = "", c[14] = "";
            struct iovec out[] = {{a, 3}, {b, 0}, {c, 10}}, cut[3];
            repl_iov_copy(out, 3, iov, 2, skip, n);
            assert_memory_equal(a, text + skip, n < 3 ? n : 3);
            if (n > 3)
                assert_memory_equal(c, text + skip + 3, n - 3);
            int pieces = repl_iov_cut(iov, 2, skip, n, cut, 3);
            assert_int_equal(pieces, !n ? 0 : skip < 4 && skip + n > 4 ? 2 : 1);
            assert_true(!n || cut[0].iov_base == text + skip);
        }
    }
}

/* Sums tell blocks apart, wherever the difference is. */
static void sums(void **state)
{
    (void)state;
    uint8_t block[4096] = {0};
    uint64_t zero = repl_sum(block, sizeof(block)), seen[4096 / 8];
    for (size_t i = 0; i < sizeof(block); i += 8) {
        block[i] = 1;
        seen[i / 8] = repl_sum(block, sizeof(block));
        block[i] = 0;
        assert_true(seen[i / 8] != zero);
        for (size_t k = 0; k < i / 8; k++)
            assert_true(seen[k] != seen[i / 8]);
    }
    assert_true(repl_sum(block, 512) != repl_sum(block, 1024));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_sent), cmocka_unit_test(every_bit), cmocka_unit_test(bounds),
        cmocka_unit_test(data),    cmocka_unit_test(sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "io/buf.h"
#include "io/queue.h"
#include "unit.h"

static void test_buffers(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct io_buf *bufs[300];
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(bufs); i++) {
            bufs[i] = io_buf_new(pool, i % 3 ? IO_SMALL : IO_LARGE);
            assert_int_equal((uintptr_t)bufs[i]->data % 4096, 0);
            assert_int_equal(bufs[i]->size, i % 3 ? IO_SMALL : IO_LARGE);
            memset(bufs[i]->data, (int)i, bufs[i]->size);
        }
        assert_int_equal(io_pool_used(pool), 200 * IO_SMALL + 100 * IO_LARGE);
        for (size_t i = 0; i < ARRAY_SIZE(bufs); i++) { /* none overlaps another */
            assert_int_equal(bufs[i]->data[0], (uint8_t)i);
            assert_int_equal(bufs[i]->data[bufs[i]->size - 1], (uint8_t)i);
            io_buf_unref(bufs[i]);
        }
        assert_int_equal(io_pool_used(pool), 0);
        io_pool_trim(pool);
    }
    /* the one used last is used next; a reference keeps it */
    struct io_buf *a = io_buf_new(pool, IO_SMALL);
    io_buf_ref(a);
    io_buf_unref(a);
    struct io_buf *b = io_buf_new(pool, IO_SMALL);
    assert_ptr_not_equal(a, b);
    io_buf_unref(a);
    assert_ptr_equal(io_buf_new(pool, IO_SMALL), a);
    io_buf_unref(a);
    io_buf_unref(b);
    io_buf_unref(NULL);
}

/* What comes out is what went in, whatever the pieces in which it goes in and out. */
static void test_queue(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct io_queue q;
    uint8_t *expected = mem_alloc(1 << 20);
    static const uint8_t constant[1000] = {1, 2, 3};
    unsigned seed = 1;
    io_queue_init(&q, pool);
    for (int round = 0; round < 20; round++) {
        size_t in = 0, out = 0;
        for (int i = 0; i < 200; i++) {
            uint32_t n = (uint32_t)rand_r(&seed) % 3000 + 1;
            struct io_buf *buf;
            switch (rand_r(&seed) % 4) {
            case 0:
                n = n % 100 + 1;
                memset(io_queue_reserve(&q, n), i, n);
                memset(expected + in, i, n);
                break;
            case 1:
                memset(expected + in, i, n);
                io_queue_copy(&q, expected + in, n);
                break;
            case 2:
                buf = io_buf_new(pool, IO_SMALL);
                memset(buf->data, i, IO_SMALL);
                io_queue_add(&q, buf, buf->data + 7, n);
                io_buf_unref(buf);
                memset(expected + in, i, n);
                break;
            default:
                n = n % 1000;
                io_queue_add(&q, NULL, constant, n);
                memcpy(expected + in, constant, n);
            }
            in += n;
            assert_int_equal(q.bytes, in - out);
            if (rand_r(&seed) % 3 == 0) { /* some leaves, as a socket would take it */
                struct iovec iov[16];
                unsigned count = io_queue_peek(&q, iov, ARRAY_SIZE(iov));
                size_t offered = 0;
                for (unsigned v = 0; v < count; v++) {
                    assert_memory_equal(iov[v].iov_base, expected + out + offered, iov[v].iov_len);
                    offered += iov[v].iov_len;
                }
                size_t taken = offered ? (size_t)rand_r(&seed) % (offered + 1) : 0;
                io_queue_drop(&q, taken);
                out += taken;
            }
        }
        if (round % 2)
            io_queue_drop(&q, q.bytes);
        else
            io_queue_done(&q);
        assert_int_equal(q.bytes, 0);
    }
    io_queue_done(&q);
    assert_int_equal(io_pool_used(pool), 0);
    free(expected);
}

/* Headers that follow one another are one piece. */
static void test_neighbours(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct io_queue q;
    struct iovec iov[8];
    io_queue_init(&q, pool);
    for (int i = 0; i < 85; i++)
        memset(io_queue_reserve(&q, 48), 0, 48);
    assert_int_equal(io_queue_peek(&q, iov, 8), 1);
    memset(io_queue_reserve(&q, 48), 0, 48);
    assert_int_equal(io_queue_peek(&q, iov, 8), 2);
    io_queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

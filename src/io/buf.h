/*
 * Reference-counted buffers: what is received once and then read from, by whoever still needs it.
 *
 *     socket ──recv──> buffer <── slice: header      parsed where it lies
 *                            <── slice: payload     source of a file's write and of N sends
 *
 * Invariants:
 *   - A buffer is 4 KiB-aligned and of one of three sizes. It belongs to the pool of one thread; counts
 *     are not atomic.
 *   - A pool never refuses: how much may be outstanding is the policy of those who take buffers
 *     (io_pool_used() tells). Memory of buffers that come back is used again, hottest first; what was
 *     not needed for a while is given back by io_pool_trim().
 *   - A slice is a part of a buffer and holds a reference when its owner says so. One without a buffer
 *     points at memory that outlives it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/mem.h"

enum { IO_SMALL = 4096, IO_LARGE = 65536, IO_HUGE = 1 << 20 };

struct io_pool;

struct io_buf {
    uint8_t *data;
    uint32_t size;
    uint32_t refs;
    struct io_pool *pool;
    struct io_buf *next; /* while free */
};

struct io_slice {
    struct io_buf *buf; /* NULL: memory that outlives the slice */
    uint8_t *data;
    uint32_t length;
};

struct io_pool *io_pool_new(void);
/* With no buffer left in use. */
void io_pool_free(struct io_pool *pool);
DEFINE_CLEANUP(struct io_pool *, io_pool_free)
/* Bytes of buffers in use. */
size_t io_pool_used(const struct io_pool *pool);
/* Gives memory of free buffers back to the system; their addresses stay. */
void io_pool_trim(struct io_pool *pool);

/* The smallest of the sizes that has n <= IO_HUGE bytes. */
static inline uint32_t io_buf_class(uint32_t n)
{
    return n <= IO_SMALL ? IO_SMALL : n <= IO_LARGE ? IO_LARGE : IO_HUGE;
}

/* size is one of the three; one reference, the caller's. Contents are arbitrary. */
struct io_buf *io_buf_new(struct io_pool *pool, uint32_t size);
void io_buf_release(struct io_buf *buf); /* private to the next */

static inline struct io_buf *io_buf_ref(struct io_buf *buf)
{
    buf->refs++;
    return buf;
}

static inline void io_buf_unref(struct io_buf *buf)
{
    if (buf && --buf->refs == 0)
        io_buf_release(buf);
}

#include "io/queue.h"

#include <assert.h>

void io_queue_init(struct io_queue *q, struct io_pool *pool)
{
    *q = (struct io_queue){.pool = pool};
}

static struct io_slice *at(const struct io_queue *q, unsigned i)
{
    return &q->slices[(q->head + i) & (q->cap - 1)];
}

void io_queue_done(struct io_queue *q)
{
    for (unsigned i = 0; i < q->count; i++)
        io_buf_unref(at(q, i)->buf);
    io_buf_unref(q->scratch);
    free(q->slices);
    *q = (struct io_queue){.pool = q->pool};
}

static void grow(struct io_queue *q)
{
    unsigned cap = q->cap ? q->cap * 2 : 16;
    struct io_slice *slices = mem_realloc_array(NULL, cap, sizeof(*slices));
    for (unsigned i = 0; i < q->count; i++)
        slices[i] = *at(q, i);
    free(q->slices);
    q->slices = slices;
    q->cap = cap;
    q->head = 0;
}

void io_queue_add(struct io_queue *q, struct io_buf *buf, const uint8_t *data, uint32_t length)
{
    if (!length)
        return;
    q->bytes += length;
    struct io_slice *last = q->count ? at(q, q->count - 1) : NULL;
    if (last && buf && last->buf == buf && last->data + last->length == data) {
        last->length += length;
        return;
    }
    if (q->count == q->cap)
        grow(q);
    *at(q, q->count++) = (struct io_slice){
        .buf = buf ? io_buf_ref(buf) : NULL,
        .data = (uint8_t *)(uintptr_t)data,
        .length = length,
    };
}

uint8_t *io_queue_reserve(struct io_queue *q, uint32_t n)
{
    assert(n <= IO_SMALL);
    if (!q->scratch || q->scratch->size - q->scratch_used < n) {
        io_buf_unref(q->scratch);
        q->scratch = io_buf_new(q->pool, IO_SMALL);
        q->scratch_used = 0;
    }
    uint8_t *room = q->scratch->data + q->scratch_used;
    q->scratch_used += n;
    io_queue_add(q, q->scratch, room, n);
    return room;
}

void io_queue_copy(struct io_queue *q, const void *data, size_t n)
{
    const uint8_t *from = data;
    while (n) {
        uint32_t most = n < IO_SMALL ? (uint32_t)n : IO_SMALL;
        memcpy(io_queue_reserve(q, most), from, most);
        from += most;
        n -= most;
    }
}

unsigned io_queue_peek(const struct io_queue *q, struct iovec *iov, unsigned most)
{
    unsigned n = 0;
    uint32_t skip = q->skipped;
    for (; n < q->count && n < most; n++) {
        const struct io_slice *s = at(q, n);
        iov[n] = (struct iovec){.iov_base = s->data + skip, .iov_len = s->length - skip};
        skip = 0;
    }
    return n;
}

void io_queue_drop(struct io_queue *q, size_t n)
{
    assert(n <= q->bytes);
    q->bytes -= n;
    while (n) {
        struct io_slice *s = at(q, 0);
        uint32_t left = s->length - q->skipped;
        if (n < left) {
            q->skipped += (uint32_t)n;
            return;
        }
        n -= left;
        q->skipped = 0;
        io_buf_unref(s->buf);
        q->head = (q->head + 1) & (q->cap - 1);
        q->count--;
    }
    /* Alone again: the scratch buffer is used from its beginning, which is in the cache. */
    if (!q->count && q->scratch && q->scratch->refs == 1)
        q->scratch_used = 0;
}

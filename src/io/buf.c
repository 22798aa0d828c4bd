/*
 * Buffers are cut from chunks of a mebibyte, each of one size:
 *
 *     chunk:  [ struct chunk: 1, 16 or 256 struct io_buf ]      malloc
 *             [ data ][ data ][ data ] ...                   mmap, aligned to pages
 *
 * Free buffers are stacked, so the one used last, which is still in the cache, is used next. Under
 * AddressSanitizer a free buffer is poisoned, so that who keeps a slice too long is found.
 */
#include "io/buf.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define poison(p, n)   ((void)(p))
#define unpoison(p, n) ((void)(p))
#endif

enum { CHUNK = 1 << 20 };

struct chunk {
    struct chunk *next;
    uint8_t *data; /* mapped, owned */
    struct io_buf bufs[];
};

struct class
{
    uint32_t size;
    struct io_buf *free;
};

struct io_pool {
    struct class classes[3];
    struct chunk *chunks;
    size_t used;
};

struct io_pool *io_pool_new(void)
{
    struct io_pool *pool = NEW(struct io_pool);
    pool->classes[0].size = IO_SMALL;
    pool->classes[1].size = IO_LARGE;
    pool->classes[2].size = IO_HUGE;
    return pool;
}

void io_pool_free(struct io_pool *pool)
{
    assert(pool->used == 0);
    for (struct chunk *c = pool->chunks, *next; c; c = next) {
        next = c->next;
        unpoison(c->data, CHUNK);
        munmap(c->data, CHUNK);
        free(c);
    }
    free(pool);
}

size_t io_pool_used(const struct io_pool *pool)
{
    return pool->used;
}

static void add_chunk(struct io_pool *pool, struct class *class)
{
    size_t n = CHUNK / class->size;
    struct chunk *c = mem_zalloc(sizeof(*c) + n * sizeof(struct io_buf));
    c->data = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->data == MAP_FAILED) {
        perror("out of memory for buffers");
        abort();
    }
    c->next = pool->chunks;
    pool->chunks = c;
    for (size_t i = n; i-- > 0;) {
        struct io_buf *buf = &c->bufs[i];
        *buf = (struct io_buf){
            .data = c->data + i * class->size,
            .size = class->size,
            .pool = pool,
            .next = class->free,
        };
        class->free = buf;
    }
    poison(c->data, CHUNK);
}

static struct class *class_of(struct io_pool *pool, uint32_t size)
{
    return &pool->classes[(size > IO_SMALL) + (size > IO_LARGE)];
}

struct io_buf *io_buf_new(struct io_pool *pool, uint32_t size)
{
    struct class *class = class_of(pool, size);
    assert(class->size == size);
    if (!class->free)
        add_chunk(pool, class);
    struct io_buf *buf = class->free;
    assert(buf);
    class->free = buf->next;
    buf->refs = 1;
    pool->used += size;
    unpoison(buf->data, size);
    return buf;
}

void io_buf_release(struct io_buf *buf)
{
    struct io_pool *pool = buf->pool;
    struct class *class = class_of(pool, buf->size);
    poison(buf->data, buf->size);
    buf->next = class->free;
    class->free = buf;
    pool->used -= buf->size;
}

void io_pool_trim(struct io_pool *pool)
{
    for (size_t i = 0; i < ARRAY_SIZE(pool->classes); i++) {
        for (struct io_buf *buf = pool->classes[i].free; buf; buf = buf->next)
            madvise(buf->data, buf->size, MADV_DONTNEED);
    }
}
